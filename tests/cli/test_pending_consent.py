"""Pending consent: a decision that waits for a person, for exactly the contract that it names."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import jsonschema
import pytest

from tests.cli.test_caller_detection import CODE, mark
from tests.cli.test_editor import follows
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.approvals import approve
from tests.support.gitrepo import GitSandbox
from tests.support.plans import edit
from tests.support.prepared import Prepared
from tests.support.project import Project, making
from tests.support.schemas import published
from tests.support.terminal import answering

SCHEMA = published("decision")
JUDGE = 'cat > /dev/null; echo \'{"verdict": "PASS", "judgements": []}\'\n'


def _project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    return project


@pytest.fixture
def project(prepared: Prepared) -> Project:
    return prepared.get(_project)


def run(project: Project, *flags: str) -> Answer:
    return project.quick("execute-phase", "1", *flags, "--json")


def waiting(project: Project) -> list[str]:
    rows = project.quick("decisions", "--json").data["decisions"]
    for row in rows:
        jsonschema.Draft202012Validator(SCHEMA).validate(row)
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


@pytest.fixture
def judged(prepared: Prepared) -> Project:
    return prepared.get(_judged)


def _unjudged(sandbox: GitSandbox) -> Project:
    """It ran with an approval of the phase alone."""
    project = _judged(sandbox)
    approve(project)
    assert run(project).code == 1
    return project


@pytest.fixture
def unjudged(prepared: Prepared) -> Project:
    return prepared.get(_unjudged)


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


def test_another_program_makes_another_question(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ASK-2: a name that means another file since then was not agreed to."""

    def at(folder: str) -> None:
        program = tmp_path / folder / "coder"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho made > a.txt\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)

    at("one")
    project.configure("bindings: {coder: {adapter: command, argv: [coder]}}\n")
    project.plan([making("T1-01", "a.txt", steps=[], fields="- **Builder:** coder\n")])
    question = open_question(project)
    at("two")
    assert decide(project, question, "run").error["code"] == "decision.void"
    assert decide(project, open_question(project), "run").code == 0
    at("three")
    moved = run(project)
    assert (moved.code, moved.error["details"]["changed"]) == (5, ["agent coder"]), moved
    assert decide(project, moved.error["details"]["decision"], "run").code == 0
    assert project.json("check-plan", "1").data["consent"]


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


def test_no_option_saves_consent(project: Project) -> None:
    """R-ASK-3."""
    question = open_question(project)
    assert decide(project, question, "perhaps").error["code"] == "decision.bad-choice"
    assert waiting(project) == [question]


def test_if_the_question_cannot_be_stored_the_option_remains(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ASK-1: no decision is pending, and the exit code says so."""
    from idumb.store.consent import FileConsentStore

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FileConsentStore, "keep_question", full)
    stopped = run(project)
    assert (stopped.code, stopped.error["code"]) == (4, "consent.missing")
    assert "waits" not in stopped.error["message"]
    assert "--approve" in str(stopped.error["details"]["choices"])


def test_answering_no_at_the_terminal_leaves_no_question(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ASK-2."""
    answering(monkeypatch, "no")
    assert project.quick("execute-phase", "1").code == 4
    assert waiting(project) == []


def test_a_question_that_times_out_at_the_terminal_stays_pending(project: Project, screen: io.StringIO) -> None:
    """R-ASK-2, R-ASK-3."""
    stopped = project.quick("execute-phase", "1")
    assert stopped.code == 5, stopped
    assert "No answer within" in screen.getvalue()
    assert decide(project, waiting(project)[0], "run").code == 0


def test_neither_a_dry_run_nor_a_wrong_hash_leaves_a_question(project: Project) -> None:
    """R-ASK-2: consent to a dry run is not kept, and a given hash is not a question."""
    assert run(project, "--dry-run").code == 4
    assert run(project, "--approve", "0" * 64).error["code"] == "consent.other-hash"
    words = ("quick", "Say it", "--files", "b.txt", "--check", "true", "--builder", "human")
    assert project.quick(*words, "--json").error["code"] == "consent.missing"  # its plan is not written yet
    assert waiting(project) == []


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


@pytest.mark.nightly
def test_work_needs_no_consent_to_its_judges(unjudged: Project) -> None:
    """R-ADAPT-5: with consent to the phase alone it runs, and its judges are not asked."""
    assert unjudged.statuses() == {"T1-01": "completed"}
    (recorded,) = unjudged.events("--kind", "verification.recorded")
    assert [one["verdict"] for one in recorded["payload"]["judged_by"]] == [None, None]
    stopped = unjudged.json("verify-work", "1")
    assert (stopped.code, stopped.error["code"]) == (5, "consent.missing")
    question = stopped.error["details"]["decision"]
    assert question in waiting(unjudged)
    assert decide(unjudged, question, "run").data["next"] == ["idumb verify-work 1"]
    assert unjudged.json("verify-work", "1").code == 0


def test_consent_does_not_cover_agents_that_changed_since_the_question(judged: Project) -> None:
    """R-ASK-2."""
    question = open_question(judged)
    (judged.folder / "judge.sh").write_text(JUDGE + "\n", encoding="utf-8")
    assert waiting(judged) == []
    assert decide(judged, question, "run").error["code"] == "decision.void"


def test_status_and_next_show_pending_consent_as_a_decision(project: Project) -> None:
    """R-ASK-2: until it is answered or its subject disappears."""
    follows(project.quick("status", "--json"), "status")
    question = open_question(project)
    for _ in range(2):  # no kept view hides it, or shows it later
        row = follows(project.quick("status", "--json"), "status")["phases"][0]
        assert [one["id"] for one in row["decisions"]] == [question]
        assert project.quick("next", "--json").data["next"]["command"] == "idumb decisions"
    assert question in project.quick("status").out
    assert question in project.quick("next").out
    assert question in project.quick("next", "1").out
    mine = follows(project.quick("next", "1", "--json"), "upcoming")
    assert [one["id"] for one in mine["decisions"]] == [question]
    assert mine["next"] == ["idumb decisions", "idumb execute-phase 1"]
    assert decide(project, question, "run").code == 0
    assert project.quick("status", "--json").data["phases"][0]["decisions"] == []
    assert project.quick("next", "--json").data["next"]["command"] == "idumb execute-phase 1"


def test_a_state_directory_that_others_can_write_does_not_break_status(project: Project, home: Path) -> None:
    """R-ASK-2: an untrusted record is not listed; a command that starts something reports the reason."""
    question = open_question(project)
    (place,) = home.rglob(f"{question}.json")
    place.chmod(0o666)
    assert project.quick("status", "--json").data["phases"][0]["decisions"] == []
    assert project.quick("decisions", "--json").error["code"] == "consent.unsafe"
