"""`idumb doctor` checks the machine: file systems, permissions, processes (R-LOG-6)."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support import doctor as doctors
from tests.support.doctor import doctor, fixed, problems, symptoms_of
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project

project = prepared_project(doctors.create)


def test_a_nearly_full_disk_is_named(tmp_path: Path) -> None:
    """F34."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=400", "none", str(place)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        repo = GitSandbox.create(place / "repo")
        words = [one["found"] for one in symptoms_of(Project(repo, repo.root), "disk.space", "problem")]
        assert len(words) == 2
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_git_folder_of_another_user_is_named(project: Project) -> None:
    """F25, S14."""
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give files away")
    os.chown(project.repo.git_dir, 65534, 65534)
    project.repo.git("config", "--global", "safe.directory", "*")
    assert "65534" in symptoms_of(project, "disk.writable", "warn")[0]["found"]


def test_permissions_that_are_too_open_are_fixed(project: Project) -> None:
    """S14: below a private folder any mode is private; a killed dry run leaves files with the user's modes."""
    folder = project.repo.common_dir / "idumb"
    project.repo.write(".git/idumb/worktrees/main/noted.json", "{}").chmod(0o644)
    project.repo.write(".git/idumb/rehearsals/1/a.txt", "a copy").chmod(0o644)
    assert problems(doctor(project), "store.private") == []
    folder.chmod(0o755)
    [found] = symptoms_of(project, "store.private", "warn")
    assert found["found"] == "the mode is 0755"
    fixed(project, "store.private")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_state_directory_that_others_can_write_is_named(project: Project) -> None:
    """S14: consent in it is ignored."""
    (Path(os.environ["XDG_STATE_HOME"]) / "idumb").chmod(0o777)
    assert "mode 0777" in symptoms_of(project, "state-directory.private", "problem")[0]["found"]


@pytest.mark.nightly
@pytest.mark.nightly
def test_orphaned_processes_of_a_killed_idumb_are_ended(project: Project) -> None:
    """F59: they are found by an inherited variable, in any folder; also those of a clone in the git folder."""
    clones = (project.repo.clones, project.repo.common_dir / "idumb/clones")
    places = [f"feed@{folder}" for folder in (project.folder, *(clone / "feed0123456789ab" for clone in clones))]
    started = [
        subprocess.Popen(["sleep", "600"], cwd="/", env={**os.environ, "IDUMB_RUN": "feed", "IDUMB_PLACE": place},
                         start_new_session=True)
        for place in (*places, "feed@/elsewhere")
    ]  # fmt: skip
    *orphans, spared = started
    try:
        found = {one["found"] for one in symptoms_of(project, "processes.left", "problem")}
        assert found == {f"process {orphan.pid} of run feed is still running" for orphan in orphans}
        fixed(project, "processes.left")
        assert [orphan.wait(10) for orphan in orphans] == [-signal.SIGTERM] * len(orphans)
        assert spared.poll() is None
    finally:
        for process in started:
            process.kill()
            process.wait()
