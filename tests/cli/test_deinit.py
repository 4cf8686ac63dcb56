"""`idumb deinit` lists what it removes and keeps, and backs up everything that it removes (R-GIT-8)."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from idumb.system import private_folders
from tests.support import doctor as doctors
from tests.support import warm
from tests.support.prepared import Prepared
from tests.support.project import Project


@pytest.fixture
def project(prepared: Prepared) -> Project:
    project = prepared.get(doctors.create)
    project.repo.write("mine.txt", "untracked\n")
    return project


def state_dir() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "idumb"


def remaining(project: Project) -> list[str]:
    """What remains of idumb, except backups and files for users."""
    remains = [f"idumb/{p.name}" for p in (project.repo.common_dir).glob("idumb*")]
    remains += list(project.repo.kept("refs/idumb/"))
    return remains + [p.name for kind in ("consent", "log") for p in (state_dir() / kind).glob("*")]


def test_what_is_mounted_in_a_checkout_is_not_removed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str) -> None:
        if folder.startswith(str(project.repo.clones)):
            raise OSError(errno.EBUSY, "something is mounted here", folder)

    monkeypatch.setattr(private_folders, "require_no_mounts", refuse)
    before = sorted(project.repo.clones.rglob("*"))
    answer = project.quick("deinit", "--yes", "--json")
    assert "something is mounted here" in answer.error["message"]
    assert sorted(project.repo.clones.rglob("*")) == before


def test_what_cannot_be_removed_is_named_by_its_path(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a container had put files of another user into a checkout."""

    def refuse(name: str, at: int) -> None:
        raise OSError(errno.ENOTEMPTY, "it cannot be removed", name)

    monkeypatch.setattr(private_folders, "remove_at", refuse)
    answer = project.quick("deinit", "--yes", "--json")
    assert f"{state_dir()}/consent/" in answer.error["message"]


def test_deinit_removes_refs_log_and_consent_and_keeps_every_user_byte(project: Project) -> None:
    """R-GIT-8, R-LOG-9: the commits still tell what was done."""
    before, commits = project.repo.ledger(), project.subjects()
    refs = sorted(project.repo.refs("refs/idumb/"))
    answer = project.quick("deinit", "--yes", "--json")
    assert answer.code == 0, answer.out
    assert answer.data["refs"] == 3
    assert answer.data["ref_names"] == refs
    assert {folder["what"] for folder in answer.data["folders"]} == {
        "consent",
        "backups of the event log",
        "event log and state of working trees",
        "checkouts of the working tree",
    }
    assert remaining(project) == []
    assert not project.repo.clones.exists()
    assert before == project.repo.ledger()
    assert project.subjects() == commits
    assert project.repo.git("fsck", "--full", "--no-dangling") == ""
    row = project.quick("status", "--json").data["phases"][0]
    assert (row["state"], row["elsewhere"]["by"]) == ("recorded", "its reports")  # as in a colleague's clone
    assert project.quick("init").code == 0


def test_the_printed_commands_restore_everything(project: Project, tmp_path: Path) -> None:
    """R-GIT-8: the commands under `next`: refs from the bundle, the log and its copy from the files."""
    events, refs = project.events(), project.repo.kept("refs/idumb/")
    gone = project.quick("deinit", "--yes", "--backup", str(tmp_path / "a backup"), "--json")
    project.repo.git("gc", "--quiet", "--prune=now")
    for command in gone.data["next"]:
        subprocess.run(["sh", "-c", command], cwd=project.folder, check=True, capture_output=True)
    assert project.repo.kept("refs/idumb/") == refs
    assert project.events() == events
    assert project.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0
    assert not project.exists("a.txt")


def test_deinit_asks_first_and_lists_what_it_removes_before_and_after(
    project: Project,
) -> None:
    """R-GIT-8: and then there is nothing to do."""
    before, refs = remaining(project), sorted(project.repo.refs("refs/idumb/"))
    answer = project.quick("deinit")
    assert (answer.code, remaining(project)) == (4, before)
    for words in ("3 refs under refs/idumb/", "event log", "every commit and branch", "idumb deinit --yes\n"):
        assert words in answer.err
    assert project.quick("deinit", "--json").error["details"]["ref_names"] == refs
    assert project.quick("deinit", "--files", "--json").error["hint"] == "idumb deinit --files --yes"
    assert not (state_dir() / "backups").exists()
    removed = project.quick("deinit", "--yes").out
    assert [ref for ref in refs if f"  {ref}\n" not in removed] == []
    again = project.quick("deinit", "--yes", "--json")
    assert (again.code, again.data["removed"], again.data["backup"]) == (0, False, None)


def test_files_are_removed_only_on_request_and_are_in_the_backup(project: Project, tmp_path: Path) -> None:
    assert project.quick("deinit", "--yes", "--no-backup", "--json").data["backup"] is None
    assert project.exists(".idumb/config.yaml")
    config = project.read(".idumb/config.yaml")
    backup, outside = tmp_path / "kept", project.repo.write("outside/precious", "x")
    (project.folder / ".idumb/link").symlink_to(outside.parent)  # it is removed and not followed
    answer = project.quick("deinit", "--yes", "--files", "--backup", str(backup), "--json")
    assert ".idumb/config.yaml" in answer.data["files"]
    assert not project.exists(".idumb")
    assert (backup / "dot-idumb/config.yaml").read_text(encoding="utf-8") == config
    assert project.exists(".planning/phases/1/01-PLAN.md")
    assert outside.read_text(encoding="utf-8") == "x"


def test_a_damaged_log_is_removed_too_and_kept_unchanged_in_the_backup(project: Project, tmp_path: Path) -> None:
    store = project.repo.common_dir / "idumb/store.db"
    store.write_bytes(b"damaged")
    assert project.quick("deinit", "--yes", "--backup", str(tmp_path / "b"), "--json").code == 0
    assert (tmp_path / "b/idumb/store.db").read_bytes() == b"damaged"
    assert remaining(project) == []


def test_deinit_removes_nothing_if_refs_cannot_be_backed_up(project: Project) -> None:
    oid = next(iter(project.repo.kept("refs/idumb/").values()))
    project.repo.object_file(oid).unlink()
    before = remaining(project)
    answer = project.quick("deinit", "--yes", "--json")
    assert answer.code == 4
    assert "--no-backup" in answer.error["hint"]
    assert remaining(project) == before
    assert project.quick("deinit", "--yes", "--no-backup", "--json").code == 0
    assert remaining(project) == []


def test_a_backup_never_goes_into_a_folder_that_is_not_empty(project: Project, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x", encoding="utf-8")
    for place in (tmp_path, tmp_path / "mine"):
        answer = project.quick("deinit", "--yes", "--backup", str(place), "--json")
        assert (answer.code, answer.error["code"]) == (4, "backup.exists")
    assert remaining(project)


def test_the_backup_is_private_and_complete_but_for_what_an_agent_unpacked(project: Project, tmp_path: Path) -> None:
    """S14, R-ADAPT-2: snapshots hold untracked files; the agent can unpack its 240 MB again."""
    project.repo.write(".git/idumb/worktrees/main/unpacked/copilot/app.js", "x")
    backup, events = tmp_path / "b", len(project.events())
    assert project.quick("deinit", "--yes", "--backup", str(backup), "--json").code == 0
    assert not (project.folder / ".git/idumb").exists()
    assert {f.stat().st_mode & 0o077 for f in [backup, *backup.rglob("*")]} == {0}
    assert [p for p in backup.rglob("*") if p.name == "unpacked"] == []
    with sqlite3.connect(backup / "idumb/store.db") as db:
        assert db.execute("SELECT COUNT(*) FROM events").fetchone()[0] >= events
    db.close()


_POINTS = frozenset({"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "subprocess.Popen", "shutil.rmtree"})


def die_at(number: int) -> None:
    """In the process of a command, before it starts: kill it at the point with this number."""
    points = iter(range(1, number))

    def count(event: str, arguments: object) -> None:
        if event in _POINTS and next(points, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


@pytest.mark.nightly
def test_a_deinit_killed_anywhere_is_finished_by_running_it_again(prepared: Prepared) -> None:
    """F30: nothing of the user changes, and nothing of idumb remains."""
    for number in range(1, 200, 3):
        project = prepared.get(doctors.create)
        before = project.repo.ledger()
        if not _killed_at(project, number):
            break
        answer = project.quick("deinit", "--yes", "--json")
        assert answer.code == 0, (number, answer.out)
        assert remaining(project) == [], number
        assert before == project.repo.ledger(), number
    assert number > 30, "it was killed at several points"


def _killed_at(project: Project, number: int) -> bool:
    """Return False if it finished before."""
    arguments = ("deinit", "--yes", "--json")
    done = warm.run(project.start, *arguments, hook=f"{__name__}:die_at", given=number)
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code != 0
