"""One plan, built by a model behind a server and by an ACP agent: the same tree (R-ADAPT-2)."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import acp_agent, chat_server
from tests.support import project as projects
from tests.support.chat_server import ChatServer
from tests.support.fake_model import serving
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, task


def write_calls(path: str) -> chat_server.Response:
    return chat_server.calls(("write_file", {"path": path, "content": "made\n", "intent": "as the task says"}))


def by_model(address: str, model: str) -> str:
    options = f"options: {{base_url: '{address}/v1'}}"
    return f"builder: one\nbindings: {{one: {{adapter: model, model: 'openai:{model}', {options}}}}}\n"


def bytes_of(project: Project) -> dict[str, bytes]:
    return {name: (project.folder / name).read_bytes() for name in ("a.txt", "b/c.txt", "README.md")}


@pytest.mark.nightly
def test_every_builder_produces_the_same_files_from_the_same_plan(sandbox: GitSandbox) -> None:
    """R-ADAPT-2."""
    project = projects.create(sandbox)
    answers = [
        chat_server.calls(("write_file", {"path": "README.md", "content": "mine\n", "intent": "more"})),
        write_calls("a.txt"),
        write_calls("b/c.txt"),
        chat_server.text("Done."),
    ]
    script = json.dumps(
        [sys.executable, acp_agent.__file__, "write", "README.md", "write", "a.txt", "write", "b/c.txt"]
    )
    made = {"a.txt": b"made\n", "b/c.txt": b"made\n", "README.md": b"# A project\n"}
    with ChatServer(*answers).serving() as server:
        bindings = {
            "model": "builder: one\nbindings: {one: {adapter: model, model: 'openai-chat:m',"
            f" options: {{base_url: '{server.url}'}}}}}}\n",
            "acp": f"builder: one\nbindings: {{one: {{adapter: acp, argv: {script}}}}}\n",
        }
        check = "grep -q made a.txt b/c.txt"
        project.plan([task("T1-01", files="create `a.txt`, `b/c.txt`", check=check)])
        for name, configuration in bindings.items():
            project.configure(configuration)
            answer = run(project, "--no-verify")
            assert answer.code == 0, (name, answer)
            assert bytes_of(project) == made, name
            assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
            assert not project.exists("a.txt")


def test_an_unknown_model_costs_no_attempt_and_the_run_continues_after_the_fix(
    sandbox: GitSandbox,
) -> None:
    """R-ADAPT-1, R-ADAPT-2: the ids that are accepted are listed."""
    project = projects.create(sandbox)
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q made a.txt")])
    with serving("answers: [{fault: unknown-model}]") as refusing:
        project.configure(by_model(refusing.address, "nonsense"))
        answer = run(project)
    assert (answer.code, answer.error["details"]["failure"]) == (1, "unknown-model")
    assert "available models: fake-model" in answer.error["message"]
    assert "Correct or omit `model` in .idumb/config.yaml, then idumb execute-phase 1" in answer.error["message"]
    assert answer.error["hint"] == "idumb execute-phase 1"
    wants = "when: T1-01\ntools: true\nanswers: [{write: {path: a.txt, content: made}}, {say: Done.}]"
    with serving(wants) as served:
        project.configure(by_model(served.address, "fake-model"))
        again = run(project, "--no-verify")
        assert again.code == 0, again
    assert project.read("a.txt") == "made"
