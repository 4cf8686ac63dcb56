"""Pending consent: a decision that waits for a person, for exactly the contract that it names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_caller_detection import CODE, mark
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import edit
from tests.support.prepared import prepared_project
from tests.support.project import Project, making
from tests.support.schemas import validator

SCHEMA = validator("decision")
JUDGE = 'cat > /dev/null; echo \'{"verdict": "PASS", "judgements": []}\'\n'


def _project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    return project


project = prepared_project(_project)


def run(project: Project, *flags: str) -> Answer:
    return project.quick("execute-phase", "1", *flags, "--json")


def waiting(project: Project) -> list[str]:
    rows = project.quick("decisions", "--json").data["decisions"]
    for row in rows:
        SCHEMA.validate(row)
    return [str(row["id"]) for row in rows]


def decide(project: Project, *words: str) -> Answer:
    return project.quick("decide", *words, "--json")


def open_question(project: Project) -> str:
    """The id of the question that an execution without consent left."""
    stopped = run(project)
    assert (stopped.code, stopped.error["code"]) == (5, "consent.missing"), stopped
    return str(stopped.error["details"]["decision"])


def _judged(sandbox: GitSandbox) -> Project:
    """The phase has a verifier and a skeptic, and a criterion of its own."""
    project = projects.create(sandbox)
    (project.folder / "judge.sh").write_text(JUDGE, encoding="utf-8")
    project.repo.commit("judge")
    project.configure(
        "bindings: {judge: {adapter: command, argv: [sh, judge.sh]}}\n"
        "roles: {verifier: {binding: judge}, skeptic: {binding: judge}}\n"
    )
    project.plan([making("T1-01", "a.txt")], head="success_criteria: ['there — check: `test -s a.txt`']\n")
    return project


judged = prepared_project(_judged)


def test_missing_consent_waits_and_is_given_by_decide(project: Project) -> None:
    """R-ASK-2, R-ASK-3: it is listed with its contract, answered once in the person's state, and the phase runs."""
    before = project.repo.ledger()
    question = open_question(project)
    assert question == f"consent.{question.partition('.')[2]}"
    assert len(question) == len("consent.") + 64
    (row,) = project.quick("decisions", "--json").data["decisions"]
    assert (row["id"], row["kind"], row["phase"]) == (question, "consent", "1")
    assert any("test -s a.txt" in line for line in row["evidence"])
    assert f"idumb decide {question} run" in project.quick("decisions").out
    answered = decide(project, question, "run")
    assert (answered.code, answered.data["next"]) == (0, ["idumb execute-phase 1"])
    assert waiting(project) == []
    assert project.quick("check-plan", "1", "--json").data["consent"]
    assert before.changed_paths(project.repo.ledger()) == []
    assert run(project, "--no-verify").code == 0
    assert project.events("--kind", "decision.answered") == []  # the answer belongs to the person, not to the log
    assert decide(project, question, "run").error["code"] == "decision.unknown"


def test_answering_no_consents_to_nothing(project: Project) -> None:
    """R-ASK-2."""
    question = open_question(project)
    assert decide(project, question, "no").data["next"] == []
    assert waiting(project) == []
    assert open_question(project) == question  # the same is asked about the same


@pytest.mark.parametrize("change", ["plan", "configuration"])
def test_any_change_voids_the_question(project: Project, change: str) -> None:
    """R-ASK-2, R-LOCK-2: it is bound to the whole contract hash."""
    question = open_question(project)
    if change == "plan":
        edit(project, "T1-01: Task", "T1-01: Changed task")
    else:
        project.configure("run: {max_attempts: 2}\n")
    assert waiting(project) == []
    void = decide(project, question, "run")
    assert (void.code, void.error["code"]) == (4, "decision.void"), void
    assert "void: these changed since it was asked: contract (was " in void.error["message"]
    assert not project.quick("check-plan", "1", "--json").data["consent"]
    assert open_question(project) != question


def test_a_repository_cannot_contain_a_question_or_its_answer(project: Project, home: Path) -> None:
    """R-ASK-2: a record in another repository's name, or a damaged one, does not count."""
    question = open_question(project)
    (place,) = home.rglob(f"{question}.json")
    assert project.folder not in place.parents
    assert place.stat().st_mode & 0o077 == 0
    kept = json.loads(place.read_text(encoding="utf-8"))
    for text in ("{", "[]", json.dumps({**kept, "repository": "0" * 64}), json.dumps({**kept, "parts": 1})):
        place.write_text(text, encoding="utf-8")
        assert waiting(project) == []
        assert decide(project, question, "run").error["code"] == "decision.unknown"
    place.write_text(
        json.dumps({**kept, "question": {**kept["question"], "id": "consent." + "0" * 64}}), encoding="utf-8"
    )
    assert waiting(project) == []


def test_an_agent_cannot_answer_and_may_leave_the_question(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ASK-2."""
    mark(monkeypatch, project.folder)
    question = open_question(project)
    answer = decide(project, question, "run")
    assert (answer.code, answer.error["code"]) == (4, CODE)
    assert waiting(project) == [question]


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
