"""Programs work in checkouts outside the repository, and what only a checkout holds is kept (R-GIT-7)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import warm
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, shell, task


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n", ".gitignore": "node_modules/\n"})


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["relative", "in the work tree", "cannot be written", "a link"])
def test_an_unusable_folder_is_refused_at_once_and_the_variable_named(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """As in the sandbox of an agent, in which the user's state cannot be written."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path)
    places = {
        "relative": "clones",
        "in the work tree": str(project.folder / "clones"),
        "cannot be written": str(tmp_path / "file/clones"),
        "a link": str(tmp_path / "link"),
    }
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=[shell("echo x > a.txt")])])
    consent = project.approval()
    monkeypatch.setenv("IDUMB_CHECKOUTS", places[how])
    before = project.repo.ledger()
    for flags in ((), ("--dry-run",)):
        answer = project.quick("execute-phase", "1", "--approve", consent, *flags, "--json")
        assert (answer.code, answer.error["code"]) == (4, "checkout.unusable"), answer
        assert "IDUMB_CHECKOUTS" in str(answer.error)
    assert project.repo.ledger() == before
    assert project.events("--kind", "run.started") == []
    checks = {row["code"]: row for row in project.quick("doctor", "--json").data["checks"]}
    assert checks["checkouts.place"]["state"] == "warn"
    assert "IDUMB_CHECKOUTS" in str(checks["checkouts.place"])


@pytest.fixture
def killed_run(project: Project) -> Project:
    """A run that was killed while its builder worked. It is not prepared: its checkout is beside the repository."""
    interrupted(project, signal.SIGKILL)
    return project


def interrupted(project: Project, number: signal.Signals) -> None:
    """The builder commits half of its work, writes more and is stopped; the next one writes all of it."""
    folder = project.folder.parent
    door, go = folder / "door", folder / "go"
    os.mkfifo(door)
    built = "echo half > a.txt; echo other > kept.txt; git add .; git commit -qm 'Half of it'; echo more > a.txt"
    script = f"if [ -e {go} ]; then echo whole > a.txt; exit; fi; {built}; cat {door}; sleep 60"
    binding = f'{{adapter: command, argv: [sh, -c, "{script}"]}}'
    project.configure(f"builder: agent\nbindings:\n  agent: {binding}\n")
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    started = warm.start(project.start, "execute-phase", "1", "--approve", project.approval())
    handle = os.open(door, os.O_WRONLY)
    os.kill(started.pid, number)
    os.close(handle)
    started.wait()
    go.touch()


def kept(project: Project) -> str:
    """The snapshot of what the stopped builder left."""
    (name,) = [name for name in project.repo.kept() if name.rpartition("/")[2] == "interrupted"]
    snapshot = project.repo.kept()[name]
    assert project.repo.git("show", f"{snapshot}:worktree/a.txt") == "more"
    assert project.repo.git("show", f"{snapshot}:worktree/kept.txt") == "other"
    return snapshot


def test_deinit_puts_it_into_the_backup_and_removes_the_checkouts(killed_run: Project, tmp_path: Path) -> None:
    question = killed_run.quick("deinit", "--json")
    assert str(killed_run.repo.clones) in str(question.error["details"]["folders"])
    backup = tmp_path / "backup"
    assert killed_run.quick("deinit", "--yes", "--backup", str(backup), "--json").code == 0
    assert not killed_run.repo.clones.exists()
    killed_run.repo.git("fetch", "--quiet", str(backup / "refs.bundle"), "refs/idumb/*:refs/idumb/*")
    kept(killed_run)
