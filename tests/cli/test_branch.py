"""R-GIT-8: a branch for a phase on request, and projects in a subfolder of a repository."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, making


def _project(sandbox: GitSandbox, settings: str = "", *, first: bool = True) -> Project:
    sandbox.write_all({"README.md": "# A project\n", "u.txt": "one\n"})
    project = Project(sandbox, sandbox.root)
    if first:
        sandbox.commit("first")
    assert project.quick("init").code == 0
    if first:
        project.configure(settings or "run:\n  max_attempts: 1\n")
    else:
        (project.folder / ".idumb" / "config.yaml").write_text(settings, encoding="utf-8")
    project.plan([making("T1-01", "a.txt")], commit=first)
    return project


def _dirty(sandbox: GitSandbox) -> None:
    """Staged, half staged and untracked work of the user's."""
    sandbox.write("u.txt", "two\n")
    sandbox.git("add", "u.txt")
    sandbox.write("u.txt", "three\n")
    sandbox.write("mine.txt", "mine\n")


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
    _dirty(sandbox)
    before = sandbox.ledger()
    for name, code in (
        ("taken", "git.branch-exists"),
        ("a..b", "git.branch-name"),
        ("taken/below", "git.branch-exists"),
        ("deep", "git.branch-exists"),
    ):
        answer = run(project, "--branch", name)
        assert (answer.code, answer.error["code"]) == (4, code), answer
        assert answer.error["hint"]
        assert sandbox.ledger() == before
        assert sandbox.kept("refs/idumb/") == {}
    assert run(project, "--branch", "deep-1").code == 0


def test_scope_root_keeps_a_plan_in_its_subfolder(sandbox: GitSandbox) -> None:
    """Paths count from the root wherever a command starts; `scope.root` keeps tasks in the folder."""
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
