"""`idumb undo` shows what it reverts first, and `--yes` reverts only the last operation (R-GIT-3)."""

from __future__ import annotations

import pytest

from tests.cli.test_repository_states import at_terminal
from tests.cli.test_rollback import before_restoring
from tests.crash import harness
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, failing_task, making, task, write


def _ran(sandbox: GitSandbox) -> Project:
    """Phase 1 of two tasks ran."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "p1a.txt"), making("T1-03", "p1b.txt", after="T1-01")])
    assert project.execute().code == 0
    return project


ran = prepared_project(_ran)


def _left_uncommitted(sandbox: GitSandbox) -> Project:
    """T1-02 failed: a person changed a file that T1-01 had committed, made one, and deleted others of T1-01."""
    project = projects.create(sandbox)
    fields = "- **Builder:** human\n- **On failure:** block\n"
    failing = task("T1-02", files="modify `a.txt`, create `b.txt`", check="false", after="T1-01", fields=fields)
    first = [write(path, "one\n") for path in ("a.txt", "c.txt", "d/e.txt")]
    files = "create `a.txt`, create `c.txt`, create `d/e.txt`"
    project.plan([task("T1-01", files=files, check="true", steps=first), failing])
    assert project.execute().code == 5
    project.repo.write_all({"a.txt": "two\n", "b.txt": "two\n"})
    assert project.json("decide", "T1-02.work.1", "done").code == 0
    assert project.resume().code == 1
    project.repo.remove("c.txt")
    project.repo.remove("d/e.txt")
    return project


WORK = ("a.txt", "b.txt", "c.txt", "d/e.txt")
UNCOMMITTED = [" M a.txt", " D c.txt", " D d/e.txt", "?? b.txt"]


def _work(project: Project) -> list[str]:
    return [line for line in project.repo.status() if ".idumb/" not in line and ".planning/" not in line]


@pytest.mark.parametrize("killed", seed.one_on_a_push([False, True], "an undo that is killed"))
def test_undo_of_a_rollback_brings_uncommitted_work_back_uncommitted(prepared: Prepared, *, killed: bool) -> None:
    """R-GIT-3, R-GIT-6: the branch has what it had, and the files what they had. A hook makes git commit itself."""
    project = prepared.get(_left_uncommitted)
    project.repo.write(".git/hooks/pre-commit", "#!/bin/sh\n", mode=0o755)
    head = {path: entry for path, entry in project.repo.tree("HEAD").items() if path in WORK}
    assert sorted(_work(project)) == sorted(UNCOMMITTED)
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert _work(project) == []
    words = project.undoing()
    if killed:
        assert harness.run(project, *words, at="before SqliteEventLog.append .*undo.completed").code == harness.KILLED
    answer = project.json(*words)
    assert (answer.data["commit"], "not restored" in answer.out) == (project.repo.head(), False)
    assert sorted(_work(project)) == sorted(UNCOMMITTED)
    assert {path: entry for path, entry in project.repo.tree("HEAD").items() if path in WORK} == head
    kept = [ref.split("/")[-2:] for ref in project.repo.kept() if "/operations/" in ref]
    names = sorted(("" if id == words[-1] else "undo ") + name for id, name in kept)
    assert names == ["after", "before", "undo after", "undo before", "undo committed"]  # git collects no object of them
    assert [project.read("a.txt"), project.read("b.txt"), project.exists("c.txt")] == ["two\n", "two\n", False]


def test_undo_leaves_alone_what_the_user_has_in_the_place_of_files_that_were_gone(prepared: Prepared) -> None:
    """R-GIT-3, R-GIT-6: a folder with the name of a file, and a file with the name of a folder."""
    project = prepared.get(_left_uncommitted)
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    project.repo.write_all({"c.txt/mine.txt": "mine\n", "d": "mine\n"})
    answer = project.json(*project.undoing())
    assert (answer.code, answer.object["warnings"]) == (0, []), answer
    assert [project.read(path) for path in ("a.txt", "b.txt", "c.txt/mine.txt", "d")] == ["two\n"] * 2 + ["mine\n"] * 2


def test_undo_names_what_the_user_saved_while_it_brought_uncommitted_work_back(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GIT-3, R-GIT-6: after its commit, before it wrote the file."""
    project = prepared.get(_left_uncommitted)
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    words = project.undoing()
    before_restoring(monkeypatch, lambda: project.repo.write("a.txt", "mine\n"), 2)
    answer = project.quick(*words, "--json")
    assert (answer.code, answer.object["warnings"]) == (0, ["not restored, because they changed: a.txt"])
    assert (project.read("a.txt"), project.read("b.txt")) == ("mine\n", "two\n")
    recorded = project.events("--kind", "undo.completed")[-1]["payload"]
    assert (recorded["left"], recorded["paths"]) == (["a.txt"], ["b.txt", "c.txt", "d/e.txt"])


@pytest.mark.nightly
def test_undo_finishes_the_killed_rollback_that_it_reverts(ran: Project) -> None:
    """R-GIT-3: both are in one process, and the report is that of the run again."""
    words = ("rollback", "1", "--to", "start", "--yes")
    assert harness.run(ran, *words, at="before SqliteEventLog.append .*rollback.completed").code == harness.KILLED
    (intended,) = ran.events("--kind", "rollback.intended")
    assert ran.json("undo", "--yes", "--operation", intended["payload"]["operation"]).code == 0
    assert "- **Completed:** 2\n" in ran.repo.git("show", "HEAD:.planning/phases/1/1-SUMMARY.md")


def test_an_operation_that_is_undone_already_stays_undone(ran: Project) -> None:
    """R-GIT-3: a repeated command line changes nothing."""
    words = ran.undoing()
    first = ran.json(*words)
    again = ran.json(*words)
    assert (again.code, again.data["what"], again.data["commit"]) == (0, first.data["what"], first.data["commit"])
    assert not ran.exists("p1b.txt")


def test_refusal_and_question_name_phase_operation_and_effect(ran: Project) -> None:
    """R-ASK-1, R-ASK-2: without a terminal and at one, where no is an answer."""
    (first,) = (event["operation"] for event in ran.events("--kind", "operation.started"))
    error = ran.json("undo").error
    assert (error["code"], error["hint"]) == ("rollback.not-confirmed", f"idumb undo --yes --operation {first}")
    assert error["details"]["operation"] == f"operation {first} (execute-phase)"
    assert ran.json("undo", "--yes").error["hint"] == error["hint"]
    assert error["details"]["paths"] == ["p1a.txt", "p1b.txt"]
    message = ran.quick("undo").err
    assert f"undo of run 1 of phase 1, operation {first} (execute-phase), needs your confirmation" in message
    assert "p1a.txt, p1b.txt" in message
    code, screen = at_terminal(ran, ("undo",), "no")
    assert code == 4
    for words in ("undo of run 1 of phase 1", f"operation {first} (execute-phase)", "task T1-03", "file p1b.txt"):
        assert words in screen
    assert ran.exists("p1b.txt")


def test_without_operations_there_is_nothing_to_undo(project: Project) -> None:
    assert project.json("undo", "--yes").error["code"] == "undo.nothing"
    answer = project.json("undo", "--yes", "--operation", "nonsense")
    assert (answer.code, answer.error["code"], answer.error["hint"]) == (4, "undo.no-such-operation", "idumb log")


@pytest.mark.nightly
def test_undo_of_a_run_of_which_an_amendment_left_no_task_says_what_it_was_asked_for(project: Project) -> None:
    project.plan([failing_task("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    assert project.execute("--max-attempts", "1").code == 1
    project.plan([making("T1-02", "b.txt")], commit=False)
    assert project.quick("amend", "1", "--from-file", "--yes").code == 0
    answer = project.json("undo")
    assert (answer.data["what"], answer.data["paths"], answer.data["next"]) == ("run 1 of phase 1", [], ["idumb next"])
