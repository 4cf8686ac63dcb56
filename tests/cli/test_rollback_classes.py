"""Tasks with effects outside the files: their rollback commands, or a refusal; and no retry without the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, shell, task, write


def _effect(id: str, path: str, rollback: str, *, after: str = "none", check: str = "true") -> str:
    """A task with a file of its own and one line in `outside.log`, which git ignores, as its effect."""
    return task(
        id,
        files=f"create `{path}`",
        check=check,
        after=after,
        steps=(write(path, "made\n"), shell(f"echo did {id} >> outside.log")),
        fields=f"- **Rollback:** {rollback}\n",
    )


def _taking_back(*commands: str) -> str:
    return "compensatable\n" + "".join(f"  - `{command}`\n" for command in commands)


IRREVERSIBLE = "irreversible: it tells the world"


def _ran(sandbox: GitSandbox, *tasks: str, codes: tuple[int, ...] = (0,)) -> Project:
    sandbox.write_all({"README.md": "# A project\n", ".gitignore": "*.log\n"})
    project = Project(sandbox, sandbox.root)
    sandbox.commit("first")
    assert project.quick("init").code == 0
    project.configure("run:\n  max_attempts: 2\n")
    project.plan(tasks)
    _accept(project, *(t.split(":")[0].removeprefix("### ") for t in tasks if IRREVERSIBLE in t))
    assert _execute(project).code in codes
    return project


def _accept(project: Project, *tasks: str, phase: str = "1") -> None:
    """Accept each irreversible task by name, which it needs before it runs."""
    if tasks:
        named = [word for one in tasks for word in ("--accept-irreversible", one)]
        consent = project.quick("check-plan", phase, "--json").data["contract_hash"]
        assert project.quick("approve", phase, *project.answers(phase), "--hash", consent, *named).code == 0


def _execute(project: Project) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, "--json")


def _back(project: Project, to: str = "start", *more: str) -> Answer:
    return project.quick("rollback", "1", "--to", to, "--yes", *more, "--json")


def test_compensation_commands_run_newest_task_first_and_before_files_are_restored(sandbox: GitSandbox) -> None:
    """R-GIT-4, R-PLAN-3."""
    project = _ran(
        sandbox,
        _effect("T1-01", "a.txt", _taking_back("test -e a.txt && echo undid 1 >> outside.log")),
        _effect("T1-02", "b.txt", _taking_back("echo undid 2 >> outside.log", "echo undid 2 fully >> outside.log"),
                after="T1-01"),
    )  # fmt: skip
    answer = _back(project)
    assert answer.code == 0, answer
    assert answer.data["compensated"] == ["T1-02", "T1-01"]
    assert project.read("outside.log").splitlines()[2:] == ["undid 2", "undid 2 fully", "undid 1"]
    assert not project.exists("a.txt")
    undone = project.quick("undo", "--yes", "--json")
    assert undone.code == 0, undone
    assert project.read("a.txt") == "made\n"
    assert any("T1-01" in warning and "is not repeated" in warning for warning in undone.object["warnings"])


def test_a_failed_compensation_stops_the_rollback_and_completed_ones_are_not_repeated(
    sandbox: GitSandbox,
) -> None:
    """R-GIT-4: exit 1, recorded, and no file has moved."""
    project = _ran(
        sandbox,
        _effect("T1-01", "a.txt", _taking_back("test -e mended.log")),
        _effect("T1-02", "b.txt", _taking_back("echo undid 2 >> outside.log"), after="T1-01"),
    )
    failed = _back(project)
    assert failed.code == 1, failed
    assert failed.error["code"] == "rollback.command-failed"
    assert failed.error["details"]["done"] == ["T1-02"]
    assert project.exists("a.txt")
    assert project.exists("b.txt")
    recorded = [e for e in project.events("--task", "T1-01") if e["kind"] == "evidence.recorded"]
    assert recorded[-1]["payload"]["result"] == "failed"
    project.repo.write("mended.log", "")
    again = _back(project)
    assert again.code == 0, again
    assert again.data["compensated"] == ["T1-01"]
    assert project.read("outside.log").count("undid 2") == 1
    assert not project.exists("b.txt")


def test_a_file_changed_by_a_compensation_command_is_not_a_conflict(sandbox: GitSandbox) -> None:
    """R-GIT-4: the rollback of a migration may rewrite the task's files."""
    project = _ran(sandbox, _effect("T1-01", "a.txt", _taking_back("echo migrated down > a.txt")))
    assert _back(project).code == 0
    assert not project.exists("a.txt")
    assert project.quick("undo", "--yes", "--json").code == 0
    assert project.read("a.txt") == "made\n"


def test_the_refusal_of_a_rollback_past_an_irreversible_task_is_readable(sandbox: GitSandbox) -> None:
    """R-GIT-4."""
    project = _ran(sandbox, _effect("T1-01", "a.txt", IRREVERSIBLE))
    refused = project.quick("rollback", "1", "--to", "start", "--yes")
    assert refused.code == 4, refused
    assert "it tells the world" in refused.err
    assert "--past T1-01" in refused.err


def test_a_rollback_past_an_irreversible_task_is_refused_unless_the_task_is_named(sandbox: GitSandbox) -> None:
    """R-GIT-4, F64: its effect remains, and the task is retried only when the user says so."""
    project = _ran(
        sandbox,
        _effect("T1-01", "a.txt", "reversible"),
        _effect("T1-02", "b.txt", IRREVERSIBLE, after="T1-01"),
        _effect("T1-03", "c.txt", "reversible", after="T1-02"),
    )
    before = project.repo.ledger()
    refused = _back(project)
    assert refused.code == 4, refused
    assert refused.error["code"] == "rollback.irreversible"
    assert "--past T1-02" in refused.error["hint"]
    assert projects.user_bytes(before, project.repo.ledger()) == []
    assert _back(project, "T1-02").code == 0
    assert not project.exists("c.txt")
    past = _back(project, "start", "--past", "t1-02")
    assert past.code == 0, past
    assert past.data["past"] == ["T1-02"]
    assert any("tells the world" in warning for warning in past.object["warnings"])
    waiting = project.quick("resume", "1", "--json")
    assert waiting.code == 5, waiting
    assert project.read("outside.log").count("did T1-02") == 1
    question = waiting.data["decisions"][0]
    assert question["kind"] == "effect"
    assert project.quick("decide", question["id"], "again", "--json").code == 0
    assert project.quick("resume", "1", "--json").code == 0
    assert project.read("outside.log").count("did T1-02") == 2


def test_a_failed_task_with_an_effect_is_not_retried_automatically(sandbox: GitSandbox) -> None:
    """F64: a failed deployment may be half done."""
    project = _ran(sandbox, _effect("T1-01", "a.txt", IRREVERSIBLE, check="test -e allowed.log"), codes=(5,))
    assert project.read("outside.log") == "did T1-01\n"
    question = project.quick("decisions", "--json").data["decisions"][0]
    assert project.quick("decide", question["id"], "skip", "--json").code == 0
    assert project.quick("resume", "1", "--json").data["counts"] == {"skipped": 1}
    assert project.read("outside.log") == "did T1-01\n"


@pytest.mark.slow
def test_a_killed_attempt_of_a_task_with_an_effect_becomes_a_decision(sandbox: GitSandbox, tmp_path: Path) -> None:
    """F64: killed between work and record, a reversible task runs again, but this one does not."""
    from tests.crash import harness

    project = _ran(sandbox, _effect("T1-01", "a.txt", "reversible"))
    project.plan([_effect("T2-01", "b.txt", IRREVERSIBLE)], phase="2")
    consent = project.approval("2")
    whole = harness.copy(project.folder, tmp_path / "whole")
    for one in (whole, project):
        _accept(one, "T2-01", phase="2")
    assert harness.run(whole, "execute-phase", "2", "--approve", consent, count=tmp_path / "points").code == 0
    names = (tmp_path / "points").read_text(encoding="utf-8").splitlines()
    point = next(n for n, name in enumerate(names) if name.startswith("before SqliteEventLog.append step.finished"))
    killed = harness.run(project, "execute-phase", "2", "--approve", consent, at=point)
    assert killed.code == harness.KILLED
    waiting = project.quick("resume", "2", "--json")
    assert waiting.code == 5, waiting
    assert project.read("outside.log").count("did T2-01") == 1
    accepted = project.quick("accept", "T2-01", "--why", "it is out", "--json")
    assert accepted.code == 0, accepted


def test_consent_shows_the_commands_of_a_rollback(sandbox: GitSandbox) -> None:
    """R-GIT-4: such a command needs consent, so the user sees it."""
    project = _ran(sandbox, _effect("T1-01", "a.txt", _taking_back("echo back")))
    project.plan([_effect("T1-01", "a.txt", _taking_back("echo other"))])
    refused = project.quick("execute-phase", "1", "--force", "--json")
    assert refused.error["code"] == "consent.missing"
    assert any("echo other, on rollback" in line for line in refused.error["details"]["evidence"])


def test_the_approved_compensation_commands_run_even_if_the_plan_changed(sandbox: GitSandbox) -> None:
    """R-GIT-4: the rollback is that of the plan that ran."""
    project = _ran(sandbox, _effect("T1-01", "a.txt", _taking_back("echo agreed >> outside.log")))
    project.plan([_effect("T1-01", "a.txt", _taking_back("echo other >> outside.log"))])
    assert _back(project).code == 0
    assert project.read("outside.log").splitlines()[1:] == ["agreed"]
