"""R-GIT-8: a branch for a phase on request, and projects in a subfolder of a repository (R-LOG-6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, failing_task, making, shell, task


def _project(sandbox: GitSandbox, settings: str = "run: {max_attempts: 1}\n") -> Project:
    project = projects.create(sandbox, files={"README.md": "# A project\n", "u.txt": "one\n"})
    project.configure(settings)
    project.plan([making("T1-01", "a.txt")])
    return project


def _dirty(sandbox: GitSandbox) -> None:
    """Staged, half staged and untracked work of the user's."""
    sandbox.write("u.txt", "two\n")
    sandbox.git("add", "u.txt")
    sandbox.write_all({"u.txt": "three\n", "mine.txt": "mine\n"})


def test_a_run_starts_on_its_own_branch_and_takes_no_uncommitted_work_along(sandbox: GitSandbox) -> None:
    project = _project(sandbox, "git:\n  branch: phase\n")
    _dirty(sandbox)
    main, before = sandbox.head(), sandbox.ledger()
    assert run(project).code == 0
    assert sandbox.git("symbolic-ref", "--short", "HEAD") == "idumb/phase-1"
    assert sandbox.git("rev-parse", "main") == main
    assert projects.user_bytes(before, sandbox.ledger()) == ["a.txt"]
    assert sandbox.git("diff", "--cached", "--name-only") == "u.txt"
    assert sandbox.git("show", ":u.txt") == "two"
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert sandbox.git("rev-parse", "main") == main
    sandbox.git("fsck", "--strict")


def test_an_impossible_branch_is_refused_before_anything_changes(sandbox: GitSandbox) -> None:
    project = _project(sandbox)
    sandbox.git("branch", "taken", "HEAD~1")
    sandbox.git("branch", "deep/below")
    sandbox.git("worktree", "add", "-q", "-b", "used", str(sandbox.root.parent / "used"))
    _dirty(sandbox)
    before = sandbox.ledger()
    for name, code in (
        ("taken", "git.branch-exists"),
        ("a..b", "git.branch-name"),
        ("taken/below", "git.branch-exists"),
        ("deep", "git.branch-exists"),
        ("used", "git.branch-exists"),
    ):
        answer = run(project, "--branch", name)
        assert (answer.code, answer.error["code"]) == (4, code), answer
        assert answer.error["hint"]
        assert sandbox.ledger() == before
        assert sandbox.kept("refs/idumb/") == {}
    assert run(project, "--branch", "deep-1").code == 0


def test_an_unfinished_run_stays_guided(sandbox: GitSandbox) -> None:
    project = _project(sandbox)
    project.plan([failing_task("T1-01", "a.txt")])
    assert run(project).code == 1
    assert run(project, "--mode", "strict").error["code"] == "mode.guided-run"


def test_an_unfinished_run_goes_on_on_another_branch_only_if_a_person_names_it(project: Project) -> None:
    """A hook protects main: the person moves to a branch, and the finished work is committed there."""
    repo = project.repo
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    hook = '#!/bin/sh\nif [ "$(git symbolic-ref --short HEAD)" = main ]; then echo "not on main"; exit 1; fi\n'
    repo.write(".git/hooks/pre-commit", hook, mode=0o755)
    main = repo.head()
    assert project.execute().error["code"] == "git.commit-refused"
    repo.git("switch", "--quiet", "-c", "feature")
    refused = project.resume()
    assert (refused.code, refused.error["code"], refused.error["hint"]) == (4, "git.other-branch", "git switch main")
    (choice,) = refused.error["details"]["choices"]
    assert choice["command"] == "idumb execute-phase 1 --branch feature"
    assert not project.exists("a.txt")
    ended = project.json("execute-phase", "1", "--branch", "feature")
    assert (ended.code, ended.data["counts"]) == (0, {"completed": 2})
    assert sum(task["attempts"] for task in ended.data["tasks"]) == 2, "finished work was built again"
    assert (repo.git("rev-parse", "main"), repo.git("status", "--porcelain")) == (main, "")
    repo.git("switch", "--quiet", "main")
    assert "execute-phase" not in str(project.json("undo").error), "a verified run does not go on elsewhere"
    repo.git("branch", "-m", "feature", "renamed")
    assert "git branch -m feature" in project.json("undo").error["message"]
    repo.git("branch", "-m", "renamed", "feature")
    repo.git("switch", "--quiet", "feature")
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0


def test_work_that_the_other_branch_lacks_is_asked_about(halted: Project) -> None:
    halted.repo.git("switch", "--quiet", "-c", "older", "HEAD~2")
    asked = halted.json("execute-phase", "1", "--branch", "older")
    assert (asked.code, asked.error["code"]) == (5, "run.history-changed")
    assert "of T1-02 is no longer on older" in asked.error["message"]


def test_what_comes_next_is_the_unfinished_run_of_this_branch(project: Project) -> None:
    repo = project.repo
    for phase in ("1", "2"):
        project.plan([failing_task(f"T{phase}-01", f"{phase}.txt")], phase=phase)
    project.commit_own()
    for phase in ("1", "2"):
        repo.git("switch", "--quiet", "-c", f"on-{phase}", "main")
        assert project.execute("--max-attempts", "1", phase=phase).code == 1
    for phase in ("2", "1"):
        repo.git("switch", "--quiet", f"on-{phase}")
        assert project.json("next").data["next"]["phase"] == phase
    repo.git("switch", "--quiet", "main")
    assert project.json("next").data["next"]["command"] == "git switch on-1"


def test_scope_root_keeps_a_plan_in_its_subfolder(sandbox: GitSandbox) -> None:
    """R-LOCK-5: paths count from the root wherever a command starts; `scope.root` keeps tasks in the folder."""
    project = _project(sandbox)
    sandbox.write("app/main.py", "pass\n")
    project.plan([making("T1-01", "b.txt")], head="scope: {root: app}\n")
    inside = Project(sandbox, sandbox.root / "app")
    refused = inside.quick("check-plan", "1", "--json")
    assert {row["code"] for row in refused.data["findings"] if row["severity"] == "error"} == {"path.outside-scope"}
    project.plan([making("T1-01", "app/b.txt")], head="scope: {root: app}\n")
    answer = run(inside)
    assert answer.code == 0, answer
    assert project.read("app/b.txt") == "made\n"


PLAN = ".planning/phases/1/01-PLAN.md"


@pytest.fixture
def halted(project: Project) -> Project:
    """T1-01 and T1-02 are done; T1-03, which depends on both, failed."""
    steps = [shell("cat a.txt b.txt > c.txt"), shell("test -e ok")]
    project.plan(
        [
            making("T1-01", "a.txt"),
            making("T1-02", "b.txt", after="T1-01"),
            task("T1-03", files="create `c.txt`", check="test -s c.txt", after="T1-02", steps=steps),
        ]
    )
    assert project.execute("--max-attempts", "1", "--no-verify").code == 1
    project.repo.commit_with({"ok": ""}, "ok")
    return project


def lose(project: Project) -> str:
    """Drop the commit of T1-02, and keep the one after it."""
    lost = project.repo.git("rev-parse", "HEAD~1").strip()
    project.repo.git("rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
    return lost


def test_a_done_task_whose_commit_the_branch_lost_is_named_and_asked_about(halted: Project) -> None:
    """Case: `git reset` or a rebase drops a commit of an unfinished run."""
    project, lost = halted, lose(halted)
    words = f"commit {lost[:7]} of T1-02 is no longer on main"
    view = project.json("status").data
    assert (view["phases"][0]["tasks"]["completed"], view["phases"][0]["reason"]) == (1, words)
    assert view["next"] == {"phase": "1", "command": "idumb resume 1", "tool": None, "why": words}
    shown = project.json("show", "T1-02").data
    assert (shown["status"], shown["reason"]) == ("ready", words)
    assert words in project.quick("doctor").out
    refused = project.resume("--retry-failed")
    assert (refused.code, project.exists("b.txt")) == (5, False)
    assert project.json("status").data["next"]["command"] == "idumb decisions"
    (question,) = [d for d in project.json("decisions").data["decisions"] if d["kind"] == "history"]
    assert [choice["id"] for choice in question["choices"]] == ["again", "fresh"]
    assert project.json("decide", question["id"], "again").code == 0
    ended = project.resume("--retry-failed", "--no-verify")
    assert (ended.code, project.read("c.txt")) == (0, "made\nmade\n")


def about_history(project: Project) -> Any:
    (question,) = [d for d in project.json("decisions").data["decisions"] if d["kind"] == "history"]
    return question


def lose_the_newest(project: Project) -> str:
    """Reset the branch to before T1-02, whose commit is its newest. The plan, which has the answers, stays."""
    lost, plan = project.repo.git("rev-parse", "HEAD").strip(), project.read(PLAN)
    project.repo.git("reset", "-q", "--hard", "HEAD~1")
    project.repo.write(PLAN, plan)
    return lost


def _reset(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    failing = task("T1-03", files="create `c.txt`", check="test -s c.txt", after="T1-02", steps=[shell("test -e ok")])
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"), failing])
    assert project.execute("--max-attempts", "1", "--no-verify").code == 1
    lose_the_newest(project)
    assert project.resume("--retry-failed").code == 5
    return project


reset = prepared_project(_reset)
"""T1-03 failed, and the branch lost the commit of T1-02."""


def test_the_commit_is_brought_back_but_not_over_files_of_the_user(reset: Project) -> None:
    project, question, head = reset, about_history(reset), reset.repo.head()
    lost = question["evidence"][0]
    assert [choice["id"] for choice in question["choices"]] == ["again", "return", "fresh"]
    project.repo.write("b.txt", "mine")
    refused = project.json("decide", question["id"], "return")
    assert (refused.code, refused.error["code"]) == (4, "run.history-changed")
    assert (project.read("b.txt"), project.repo.head()) == ("mine", head)
    assert about_history(project)["id"] == question["id"]
    project.repo.remove("b.txt")
    assert project.json("decide", question["id"], "return").code == 0
    assert (project.repo.head(), project.read("b.txt")) == (lost, "made\n")
    assert project.repo.git("status", "--porcelain", "b.txt") == ""
    assert project.resume("--retry-failed", "--max-attempts", "1").code == 1
    assert project.statuses()["T1-02"] == "completed"
    assert project.json("decisions").data["decisions"][0]["kind"] == "stopped"


def test_the_run_starts_afresh_if_that_is_the_answer(reset: Project) -> None:
    """R-LOG-7: a new commit restores the files from before the run."""
    done = reset.json("decide", about_history(reset)["id"], "fresh")
    assert (done.code, reset.exists("a.txt"), "completed" in reset.statuses().values()) == (0, False, False)
    assert reset.resume("--max-attempts", "1", "--no-verify").code == 1
    assert reset.statuses() == {"T1-01": "completed", "T1-02": "completed", "T1-03": "failed"}


def test_a_verified_phase_stays_verified_and_says_that_its_commits_were_rewritten(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    project.repo.git("reset", "-q", "--soft", "HEAD~2")
    project.repo.commit("squashed")
    (row,) = project.json("status").data["phases"]
    assert (row["state"], row["reason"]) == ("verified", "its commits were rewritten since")


def test_work_that_the_branch_loses_while_an_agent_builds_stops_the_run(project: Project) -> None:
    """The agent of T1-02 resets the user's branch to before T1-01."""
    drop = shell('git -C "$IDUMB_REPOSITORY" reset -q --hard HEAD~1')
    loses = task(
        "T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01", steps=[drop, shell("echo made > b.txt")]
    )
    project.plan([making("T1-01", "a.txt"), loses, making("T1-03", "c.txt")])
    plan = project.read(PLAN)
    ended = project.execute("--no-verify")
    assert (ended.code, ended.error["code"]) == (5, "run.waiting")
    assert "T1-01 is no longer on main" in ended.error["message"]
    assert not project.exists("b.txt")
    assert not project.exists("c.txt")
    assert plan == project.read(PLAN)


def test_work_waits_for_the_end_of_a_rebase_that_began_meanwhile(project: Project) -> None:
    """HEAD is on no branch then, and nothing leads back to one."""
    rebase = 'git -C "$IDUMB_REPOSITORY" -c sequence.editor="sed -i 1s/pick/edit/" rebase -q -i HEAD~1'
    steps = [shell(rebase), shell("echo made > a.txt")]
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=steps)])
    waiting = project.execute()
    assert (waiting.code, waiting.error["hint"], project.exists("a.txt")) == (5, "git status", False)
    assert "a rebase is in progress" in waiting.error["message"]
    assert project.resume().error["code"] == "git.rebase-in-progress"
    assert project.json("next").data["next"]["command"] == "git status"
    project.repo.git("rebase", "--abort")
    assert (project.resume().code, project.read("a.txt")) == (0, "made\n")
