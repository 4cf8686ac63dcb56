"""One plan, built by declared steps, a model behind a server and an ACP agent: the same tree (R-ADAPT-2)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support import acp_agent, chat_server
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.chat_server import ChatServer
from tests.support.fake_model import serving
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task, write

STEPS = {"T1-01": (write("a.txt", "made\n"),), "T1-02": (write("b/c.txt", "made\n"),)}


def tasks(*, steps: bool) -> list[str]:
    step_fields = STEPS if steps else {}
    return [
        task("T1-01", files="create `a.txt`", check="grep -q made a.txt", steps=step_fields.get("T1-01", ())),
        task(
            "T1-02",
            files="create `b/c.txt`",
            check="grep -q made b/c.txt",
            after="T1-01",
            steps=step_fields.get("T1-02", ()),
        ),
    ]


def execute(project: Project) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, "--json")


def write_calls(path: str) -> chat_server.Response:
    return chat_server.calls(("write_file", {"path": path, "content": "made\n", "intent": "as the task says"}))


def by_http(address: str, model: str) -> str:
    options = f"options: {{base_url: '{address}/v1'}}"
    return f"builder: one\nbindings: {{one: {{adapter: http, model: {model}, {options}}}}}\n"


def bytes_of(project: Project) -> dict[str, bytes]:
    return {name: (project.folder / name).read_bytes() for name in ("a.txt", "b/c.txt", "README.md")}


def test_every_builder_produces_the_same_files_from_the_same_plan(sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-ADAPT-2."""
    project = projects.create(sandbox)
    answers = [
        chat_server.calls(("write_file", {"path": "README.md", "content": "mine\n", "intent": "more"})),
        write_calls("a.txt"),
        chat_server.text("Done."),
        write_calls("b/c.txt"),
        chat_server.text("Done."),
    ]
    script = json.dumps(
        [sys.executable, acp_agent.__file__, "write", "README.md", "write", "a.txt", "write", "b/c.txt"]
    )
    trees = []
    with ChatServer(*answers).serving() as server:
        bindings = {
            "steps": "",
            "http": f"builder: one\nbindings: {{one: {{adapter: http, options: {{base_url: '{server.url}'}}}}}}\n",
            "acp": f"builder: one\nbindings: {{one: {{adapter: acp, argv: {script}}}}}\n",
        }
        for name, configuration in bindings.items():
            project.configure(configuration)
            project.plan(tasks(steps=name == "steps"))
            answer = execute(project)
            assert answer.code == 0, (name, answer)
            trees.append(bytes_of(project))
            assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
            assert not project.exists("a.txt")
    assert trees[0] == trees[1] == trees[2]


def test_an_unknown_model_costs_no_attempt_and_the_run_continues_after_the_fix(
    sandbox: GitSandbox,
) -> None:
    """R-ADAPT-1, R-ADAPT-2: the ids that are accepted are listed."""
    project = projects.create(sandbox)
    project.plan(tasks(steps=False)[:1])
    wants = "when: T1-01\ntools: true\nanswers: [{write: {path: a.txt, content: made}}, {say: Done.}]"
    with serving("answers: [{fault: unknown-model}]") as refusing:
        project.configure(by_http(refusing.address, "nonsense"))
        answer = execute(project)
    assert (answer.code, answer.error["details"]["failure"]) == (1, "unknown-model")
    assert "available models: fake-model" in answer.error["message"]
    assert "Correct or omit `model` in .idumb/config.yaml, then idumb execute-phase 1" in answer.error["message"]
    assert answer.error["hint"] == "idumb execute-phase 1"
    wants = "when: T1-01\ntools: true\nanswers: [{write: {path: a.txt, content: made}}, {say: Done.}]"
    with serving(wants) as served:
        project.configure(by_http(served.address, "fake-model"))
        again = execute(project)
        assert again.code == 0, again
    assert project.read("a.txt") == "made"


@pytest.mark.parametrize(
    ("response", "kind", "word"),
    [
        (chat_server.error(401, "bad key"), "not-logged-in", "bad key"),
        (chat_server.error(404, "no such path"), "missing", "no such path"),
        (chat_server.error(404, "no such model"), "unknown-model", "it does not list its models"),
    ],
)
def test_a_server_that_refuses_stops_the_run_and_costs_no_attempt(
    sandbox: GitSandbox, response: chat_server.Response, kind: str, word: str
) -> None:
    """R-ADAPT-2."""
    project = projects.create(sandbox)
    project.plan(tasks(steps=False)[:1])
    with ChatServer(response).serving() as server:
        project.configure(
            f"builder: one\nbindings: {{one: {{adapter: http, options: {{base_url: '{server.url}'}}}}}}\n"
        )
        answer = execute(project)
        assert answer.code == 1, answer
        assert word in answer.out
        finished = project.events("--kind", "attempt.finished")
        assert [e["payload"]["builder"]["failure"] for e in finished] == [kind]
        server.answers = [write_calls("a.txt"), chat_server.text("Done.")]
        assert project.quick("resume", "1", "--retry-failed", "--json").code == 0
    assert project.read("a.txt") == "made\n"
