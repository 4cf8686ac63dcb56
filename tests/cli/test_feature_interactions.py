"""Combinations of features that once failed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.support import ended_runs
from tests.support.prepared import Prepared
from tests.support.project import Project, making, shell, task, write


def failing(id: str, path: str, content: str = "bad\n", **more: str) -> str:
    """A task that writes a file in which its check does not find the expected text."""
    return task(id, files=f"create `{path}`", check=f"grep -q good {path}", steps=[write(path, content)], **more)


# -- failures that a person fixes ---------------------------------------------------------------------------------


@pytest.mark.nightly
def test_accepted_work_is_delivered_unless_its_files_changed_and_can_be_rolled_back(prepared: Prepared) -> None:
    """R-GIT-3, R-RUN-5: the accepted result is what the task left; what the user saved there is not overwritten."""
    project = prepared.get(ended_runs.failed)
    project.repo.write("a.txt", "mine\n")
    refused = project.json("accept", "T1-01", "--why", "good enough")
    assert (refused.code, refused.error["code"]) == (4, "task.changed-since")
    assert project.read("a.txt") == "mine\n"
    project.repo.remove("a.txt")
    assert project.json("accept", "T1-01", "--why", "good enough").code == 0
    assert (project.read("a.txt"), project.repo.git("show", "HEAD:a.txt")) == ("bad\n", "bad")
    back = project.quick("rollback", "1", "--to", "start", "--yes")
    assert back.code == 0, back.out
    assert not project.exists("a.txt")
    assert project.quick(*project.undoing()).code == 0
    assert project.read("a.txt") == "bad\n"


def test_completed_work_that_the_plan_changed_is_reverted_before_it_is_repeated(prepared: Prepared) -> None:
    """R-RUN-12: the refusal names the next step; `ended_runs.replaced` goes on to the end."""
    project = prepared.get(ended_runs.done)
    project.plan([making("T1-01", "a.txt", "other\n")])
    refused = project.execute()
    assert (refused.code, refused.error["code"]) == (4, "plan.done-changed")
    assert "idumb rollback 1 --to start" in refused.error["hint"]
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("a.txt")


@pytest.mark.nightly
def test_undo_of_a_run_keeps_work_that_a_person_accepted_before(prepared: Prepared) -> None:
    """R-GIT-3."""
    project = prepared.get(ended_runs.failed)
    assert project.quick("accept", "T1-01", "--why", "good enough").code == 0
    assert project.resume("--no-verify").code == 0
    assert project.quick(*project.undoing(), "--json").data["tasks"] == ["T1-02"]
    assert project.exists("a.txt")


def test_after_a_rollback_uncommitted_user_changes_are_refused_again(prepared: Prepared) -> None:
    """R-GIT-6: the user's edit does not go into the task's commit."""
    project = prepared.get(ended_runs.done)
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    project.repo.write("a.txt", "mine\n")
    answer = project.resume()
    assert (answer.code, (answer.error or {}).get("code")) == (4, "task.dirty-path")


def test_tests_that_must_fail_before_the_work_run_again_after_a_rollback(project: Project) -> None:
    """R-GATE-3, R-GIT-5: what they leave is not the builder's."""
    test = "touch cache.bin && test -e a.txt -o -e done.txt"
    tests = f"- **Tests:**\n  - `{test}` — fails before, passes after: a is there\n"
    project.plan([making("T1-01", "a.txt", fields=tests)])
    answer = project.execute("--no-verify")
    assert (answer.code, answer.data["tasks"][0]["files"]) == (0, ["a.txt"]), answer.out
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    project.repo.write("done.txt", "")
    project.repo.commit("done", "done.txt")
    answer = project.resume()
    assert answer.code == 1
    assert "must fail before" in answer.data["tasks"][0]["reason"]


def test_show_prints_the_files_of_a_killed_attempt(project: Project, tmp_path: Path) -> None:
    """R-LOG-6, R-GIT-2: they are in no tree of the user's, and the next attempt starts without them."""
    note = tmp_path / "again"
    kill = shell(f"[ -e {note} ] || {{ touch {note}; kill -9 $PPID; }}")
    steps = [shell("echo half >> README.md"), kill, shell("echo more >> README.md")]
    project.plan([task("T1-01", files="modify `README.md`", steps=steps)])
    before = project.read("README.md")
    assert project.idumb("execute-phase", "1", "--approve", project.approval()).code == -9
    assert project.read("README.md") == before
    assert project.resume("--no-verify").code == 0
    assert project.read("README.md") == f"{before}half\nmore\n"
    killed = project.quick("show", "T1-01", "--json").data["attempts"][0]
    assert project.repo.git(*shlex.split(killed["kept"][0])[1:]) == f"{before}half"


# -- people -------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_each_plan_of_a_phase_asks_about_its_own_success_criteria(project: Project) -> None:
    """R-ADAPT-5: one answer never counts for two criteria, and after a no the old answer is about other files."""
    for name, path in (("01", "a.txt"), ("02", "b.txt")):
        project.plan([making(f"T1-{name}", path)], name=name,
                     tail=f"\n## Success criteria\n\n- [ ] {path} reads well — human\n")  # fmt: skip

    def decide(count: int, answer: str, then: int) -> None:
        decisions = project.quick("decisions", "--json").data["decisions"]
        assert len(decisions) == count
        assert project.quick("decide", decisions[0]["id"], answer).code == 0
        assert project.quick("verify-work", "1").code == then

    assert project.execute().code == 5
    decide(2, "yes", then=5)
    decide(1, "no", then=1)
    assert project.quick("verify-work", "1").code == 5
    assert len(project.quick("decisions", "--json").data["decisions"]) == 2


# -- hooks, policies, places --------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_run_continues_with_a_changed_plan_if_commits_are_disabled(project: Project) -> None:
    """R-RUN-12: with policy `none` the work of carried tasks is uncommitted, and it is idumb's."""
    project.configure("git: {commit: none}\n")
    first = making("T1-01", "a.txt", "good\n")
    project.plan([first])
    assert project.execute("--no-verify").code == 0
    more = task(
        "T1-02", files="modify `a.txt`", check="grep -q more a.txt", after="T1-01", steps=[shell("echo more >> a.txt")]
    )
    project.plan([first, more])
    answer = project.execute("--no-verify")
    assert answer.code == 0, answer.out


@pytest.mark.nightly
def test_a_phase_with_an_unmet_requirement_is_not_verified_silently(project: Project) -> None:
    """R-RUN-13: a skipped task leaves its requirement open."""
    head = "requirements:\n  REQ-1: A\n  REQ-2: B\n"
    project.plan([making("T1-01", "a.txt", fields="- **Requirements:** REQ-1\n"),
                  failing("T1-02", "b.txt", fields="- **Requirements:** REQ-2\n")], head=head)  # fmt: skip
    assert project.execute("--max-attempts", "1").code == 1
    assert project.quick("skip", "T1-02", "--why", "later").code == 0
    answer = project.resume()
    assert (answer.code, answer.error["code"]) == (1, "verification.partial")
    assert "REQ-2 is not met: T1-02 is skipped" in answer.error["message"]


@pytest.mark.nightly
def test_work_that_timed_out_and_was_skipped_is_removed_from_the_tree(project: Project) -> None:
    """R-PLAN-3: `On timeout: skip` leaves the task out, half of its work included."""
    slow = task("T1-01", files="create `half.txt`", steps=[write("half.txt", "h\n"), shell("exec sleep 30")],
                fields="- **Timeout:** 1s\n- **On timeout:** skip\n")  # fmt: skip
    project.plan([slow, making("T1-02", "b.txt")])
    answer = project.execute()
    assert project.statuses() == {"T1-01": "skipped", "T1-02": "completed"}
    assert not project.exists("half.txt") or "half.txt" in json.dumps(answer.object)
