"""Consent to an agent shows its configuration, and covers its program's path, not its bytes (R-LOCK-3).

Pending consent is a decision that waits for a person, for exactly the contract that it names.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_caller_detection import CODE, mark
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import edit
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, making, task

CONFIG = "builder: b\nbindings: {b: {adapter: command, argv: [coder]}}\n"


def put(folder: Path, text: str) -> str:
    """Write a program `coder` that writes this word into a.txt; return its path."""
    folder.mkdir(exist_ok=True)
    program = folder / "coder"
    program.write_text(f"#!/bin/sh\necho {text} > a.txt\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def _rolled_back(sandbox: GitSandbox) -> Project:
    """A phase that the coder in folder `one` built once, and that was rolled back."""
    project = projects.create(sandbox)
    project.configure(CONFIG)
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    with pytest.MonkeyPatch.context() as patch:
        _use_first(project, patch)
        assert project.execute().code == 0
    assert project.read("a.txt") == "one\n"
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    return project


def _use_first(project: Project, patch: pytest.MonkeyPatch) -> None:
    put(project.folder.parent / "one", "one")
    patch.setenv("PATH", str(project.folder.parent / "one"), prepend=":")


@pytest.fixture
def project(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = prepared.get(_rolled_back)
    _use_first(project, monkeypatch)
    return project


def again(project: Project, *flags: str) -> Answer:
    return project.quick("execute-phase", "1", "--force", "--json", *flags)


def test_a_different_program_of_the_same_name_needs_consent(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOCK-3: the refusal names both programs, and a hash that covers the new one."""
    here = project.quick("check-plan", "1", "--json").data
    assert here["consent"] is True
    other = put(tmp_path / "two", "two")
    monkeypatch.setenv("PATH", str(tmp_path / "two"), prepend=":")
    assert project.quick("check-plan", "1", "--json").data["consent"] is False
    both = f"agent b (program: was {project.folder.parent / 'one/coder'}, is {other})"
    for flags, code, named in (((), 5, "missing"), (("--approve", here["consent_hash"]), 4, "other-hash")):
        refused = again(project, *flags)
        assert (refused.code, refused.error["code"]) == (code, f"consent.{named}")
        assert refused.error["details"]["changed"] == ["agent b"]
        assert both in refused.error["message"]
    assert not project.exists("a.txt")
    assert again(project, "--no-verify", "--approve", refused.error["details"]["expected"]).code == 0
    assert project.read("a.txt") == "two\n"
    assert project.quick("check-plan", "1", "--json").data["consent"] is True


@pytest.mark.parametrize("revoked", [False, True])
def test_an_amendment_agrees_to_no_program_that_lacks_consent(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, revoked: bool
) -> None:
    """R-LOCK-3: another program of the same name, or one whose consent was revoked."""
    if revoked:
        assert project.json("approve", "1", "--revoke").code == 0
    else:
        put(tmp_path / "two", "two")
        monkeypatch.setenv("PATH", str(tmp_path / "two"), prepend=":")
    edit(project, "test -s a.txt", "test -f a.txt")
    assert project.json("amend", "1", "--from-file", "--yes").code == 0
    refused = project.resume()
    assert (refused.code, refused.error["code"], project.exists("a.txt")) == (5, "consent.missing", False)


def test_nobody_is_asked_to_consent_to_a_program_inside_the_repository(project: Project) -> None:
    """R-LOCK-3: the run would halt at it, so it is refused first, and nothing is recorded."""
    put(project.folder / "tools", "inside")
    project.configure("builder: b\nbindings:\n  b: {adapter: command, argv: [tools/coder]}\n")
    checked = project.quick("check-plan", "1", "--json")
    assert (checked.code, checked.data["findings"][0]["code"]) == (3, "agent.inside-repository")
    assert ".idumb/config.yaml:3 first" in checked.error["hint"]
    agreed = ("--approve", checked.data["consent_hash"])
    quick = project.quick("quick", "make b", "--files", "b.txt", "--check", "test -s b.txt", "--json")
    for refused in (project.json("execute-phase", "1"), project.json("execute-phase", "1", *agreed), quick):
        assert (refused.code, refused.error["code"]) == (4, "agent.inside-repository")
        assert refused.error["message"].startswith("The binding b: Program tools/coder is inside the repository")
    assert project.quick("check-plan", "1", "--json").data["consent"] is False
    assert project.quick("decisions", "--json").data["decisions"] == []


AGENTS = """\
builder: b
validator: hosted
bindings:
  b: {adapter: handoff, environment: [AWS_SECRET_ACCESS_KEY], timeout: 77, options: {folder: FOLDER, wait: 4}}
  hosted: {adapter: model, model: "openai:small", environment: [MODEL_KEY], options: {base_url: "http://127.0.0.1:9/v1"}}
roles: {planner: {binding: b}, researcher: {binding: hosted}}
"""
SHOWN = (
    (
        'b: handoff, starts no program; environment: AWS_SECRET_ACCESS_KEY; options: {"folder": "FOLDER", "wait": 4};'
        " timeout: 77 s"
    ),
    (
        "hosted: model, starts no program; environment: MODEL_KEY;"
        ' options: {"base_url": "http://127.0.0.1:9/v1"}; model: openai:small'
    ),
)


@pytest.fixture
def configured(sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("MODEL_KEY", "not-to-be-seen")
    project = projects.create(sandbox)
    project.configure(AGENTS.replace("FOLDER", str(tmp_path / "away")))
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    return project


def expected(tmp_path: Path) -> list[str]:
    return [line.replace("FOLDER", str(tmp_path / "away")) for line in SHOWN]


@pytest.mark.parametrize("command", ["execute-phase", "approve"])
def test_consent_to_a_phase_shows_adapter_server_variables_and_options(
    configured: Project, tmp_path: Path, command: str
) -> None:
    """R-LOCK-3."""
    answer = configured.quick(command, "1", "--json")
    assert answer.code == (5 if command == "execute-phase" else 4), answer
    agents = [line for line in answer.error["details"]["evidence"] if line.startswith("agent ")]
    assert agents == [f"agent {line}" for line in expected(tmp_path)]


def test_a_secret_in_an_option_is_hidden_and_a_missing_program_is_shown(configured: Project) -> None:
    """R-LOCK-3."""
    token = "ghp_" + "a1B2" * 9
    configured.configure(
        "builder: b\nbindings:\n  b: {adapter: command, argv: [no-such-agent, 'two words'], options: {token: "
        + token
        + "}}\n"
    )
    answer = configured.quick("execute-phase", "1", "--json")
    (line,) = (text for text in answer.error["details"]["evidence"] if text.startswith("agent "))
    assert line.startswith("agent b: command, starts no-such-agent 'two words' (")
    assert "[redacted:" in line
    assert token not in answer.out


JUDGE = 'cat > /dev/null; echo \'{"verdict": "PASS", "judgements": []}\'\n'


def _project(sandbox: GitSandbox) -> Project:
    asked = projects.create(sandbox)
    asked.plan([making("T1-01", "a.txt")])
    return asked


asked = prepared_project(_project)


def run(asked: Project, *flags: str) -> Answer:
    return asked.quick("execute-phase", "1", *flags, "--json")


def waiting(asked: Project) -> list[str]:
    return [str(row["id"]) for row in asked.quick("decisions", "--json").data["decisions"]]


def decide(asked: Project, *words: str) -> Answer:
    return asked.quick("decide", *words, "--json")


def open_question(asked: Project) -> str:
    """The id of the question that an execution without consent left."""
    stopped = run(asked)
    assert (stopped.code, stopped.error["code"]) == (5, "consent.missing"), stopped
    return str(stopped.error["details"]["decision"])


def _judged(sandbox: GitSandbox) -> Project:
    """The phase has a verifier and a skeptic, and a criterion of its own."""
    asked = projects.create(sandbox)
    (asked.folder / "judge.sh").write_text(JUDGE, encoding="utf-8")
    asked.repo.commit("judge")
    asked.configure(
        "bindings: {judge: {adapter: command, argv: [sh, judge.sh]}}\n"
        "roles: {verifier: {binding: judge}, skeptic: {binding: judge}}\n"
    )
    asked.plan([making("T1-01", "a.txt")], head="success_criteria: ['there — check: `test -s a.txt`']\n")
    return asked


judged = prepared_project(_judged)


def test_missing_consent_waits_and_is_given_by_decide(asked: Project) -> None:
    """R-ASK-2, R-ASK-3: it is listed with its contract, answered once in the person's state, and the phase runs."""
    before = asked.repo.ledger()
    question = open_question(asked)
    assert question == f"consent.{question.partition('.')[2]}"
    assert len(question) == len("consent.") + 64
    (row,) = asked.quick("decisions", "--json").data["decisions"]
    assert (row["id"], row["kind"], row["phase"]) == (question, "consent", "1")
    assert any("test -s a.txt" in line for line in row["evidence"])
    assert f"idumb decide {question} run" in asked.quick("decisions").out
    answered = decide(asked, question, "run")
    assert (answered.code, answered.data["next"]) == (0, ["idumb execute-phase 1"])
    assert waiting(asked) == []
    assert asked.quick("check-plan", "1", "--json").data["consent"]
    assert before.changed_paths(asked.repo.ledger()) == []
    assert run(asked, "--no-verify").code == 0
    assert asked.events("--kind", "decision.answered") == []  # the answer belongs to the person, not to the log
    assert decide(asked, question, "run").error["code"] == "decision.unknown"


def test_answering_no_consents_to_nothing(asked: Project) -> None:
    """R-ASK-2."""
    question = open_question(asked)
    assert decide(asked, question, "no").data["next"] == []
    assert waiting(asked) == []
    assert open_question(asked) == question  # the same is asked about the same


@pytest.mark.parametrize("change", ["plan", "configuration"])
def test_any_change_voids_the_question(asked: Project, change: str) -> None:
    """R-ASK-2, R-LOCK-2: it is bound to the whole contract hash."""
    question = open_question(asked)
    if change == "plan":
        edit(asked, "T1-01: Task", "T1-01: Changed task")
    else:
        asked.configure("run: {max_attempts: 2}\n")
    assert waiting(asked) == []
    void = decide(asked, question, "run")
    assert (void.code, void.error["code"]) == (4, "decision.void"), void
    assert "void: these changed since it was asked: contract (was " in void.error["message"]
    assert not asked.quick("check-plan", "1", "--json").data["consent"]
    assert open_question(asked) != question


def test_a_repository_cannot_contain_a_question_or_its_answer(asked: Project, home: Path) -> None:
    """R-ASK-2: a record in another repository's name, or a damaged one, does not count."""
    question = open_question(asked)
    (place,) = home.rglob(f"{question}.json")
    assert asked.folder not in place.parents
    assert place.stat().st_mode & 0o077 == 0
    kept = json.loads(place.read_text(encoding="utf-8"))
    damaged = ({**kept, "repository": "0" * 64}, {**kept, "parts": 1}, {**kept, "question": {"id": question}})
    for text in ("{", "[]", *map(json.dumps, damaged)):
        place.write_text(text, encoding="utf-8")
        assert waiting(asked) == []
        assert decide(asked, question, "run").error["code"] == "decision.unknown"
    place.write_text(
        json.dumps({**kept, "question": {**kept["question"], "id": "consent." + "0" * 64}}), encoding="utf-8"
    )
    assert waiting(asked) == []


def test_an_agent_cannot_answer_and_may_leave_the_question(asked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ASK-2."""
    mark(monkeypatch, asked.folder)
    question = open_question(asked)
    answer = decide(asked, question, "run")
    assert (answer.code, answer.error["code"]) == (4, CODE)
    assert waiting(asked) == [question]


@pytest.mark.nightly
def test_one_hash_agrees_to_the_phase_and_its_judges(judged: Project) -> None:
    """R-ASK-1, R-ADAPT-5: `check-plan` and the refusal show it; that of the contract alone is another."""
    checked, details = judged.quick("check-plan", "1", "--json").data, run(judged).error["details"]
    one = details["consent_hash"]
    assert one == checked["consent_hash"] != checked["contract_hash"]
    assert details["choices"][0]["command"] == f"idumb execute-phase 1 --approve {one}"
    assert run(judged, "--approve", checked["contract_hash"]).error["code"] == "consent.other-hash"
    done = run(judged, "--approve", one)
    assert done.code == 0, done
    assert [one["verdict"] for one in done.data["verification"]["judged_by"]] == ["PASS", "PASS"]
    again = judged.quick("verify-work", "1", "--approve", one, "--json")
    assert again.code == 0, again
