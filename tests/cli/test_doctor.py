"""`idumb doctor`: reports every problem, changes nothing by itself, and names the next step (R-GIT-7, R-LOG-6)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support import doctor as doctors
from tests.support import seed
from tests.support.doctor import doctor, fixed, problems, symptoms_of
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project

project = prepared_project(doctors.create)


def test_a_healthy_project_has_no_problem_and_is_only_read(project: Project) -> None:
    """S1: no byte changes anywhere, including idumb's own state and the state directory."""
    places = [project.folder, Path(os.environ["XDG_STATE_HOME"])]

    def everything() -> dict[str, tuple[int, bytes]]:
        files = [f for place in places for f in sorted(place.rglob("*")) if f.is_file()]
        return {str(f): (f.stat().st_mtime_ns, f.read_bytes()) for f in files}

    project.repo.write(".git/hooks/pre-commit", "#!/bin/sh\n", mode=0o755)
    before = everything()
    answer = project.quick("doctor")
    assert answer.code == 0, answer.out
    assert "0 problems" in answer.out
    assert everything() == before
    data = doctor(project).data
    assert [c["code"] for c in data["checks"] if c["state"] != "ok"] == []
    assert len({check["code"] for check in data["checks"]}) == len(data["checks"])
    assert "pre-commit" in next(c["symptoms"][-1]["found"] for c in data["checks"] if c["code"] == "git.hooks")


def test_outside_a_repository_doctor_says_so_and_checks_the_machine(tmp_path: Path, home: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = doctor(Project(GitSandbox(tmp_path / "empty"), tmp_path / "empty"))
    assert answer.code == 1
    assert "git.program" in {check["code"] for check in answer.data["checks"]}
    assert "is not in a git repository" in problems(answer, "git.repository")[0]["found"]


def test_doctor_does_not_send_to_git_status_for_a_missing_object(project: Project) -> None:
    tree = project.repo.git("rev-parse", "HEAD^{tree}").strip()
    (project.repo.git_dir / "objects" / tree[:2] / tree[2:]).unlink()
    found = symptoms_of(project, "git.state", "problem")[0]
    assert (f"object {tree} is missing" in found["found"], "git fsck" in str(found)) == (True, True)


def test_a_merge_in_progress_is_named(project: Project) -> None:
    (project.repo.git_dir / "MERGE_HEAD").write_text(project.repo.head() + "\n", encoding="utf-8")
    assert "merge" in symptoms_of(project, "git.state", "problem")[0]["found"]


def test_a_configuration_that_cannot_be_read_is_named(project: Project) -> None:
    project.configure("bindings: 1\n")
    assert symptoms_of(project, "config.reads", "problem")


def test_fixes_are_recorded_in_the_log(project: Project) -> None:
    (project.folder / ".idumb/brain/execution/1/progress.json").unlink()
    answer = doctor(project, "--fix")
    lines = answer.data["fixed"]
    assert (answer.code, len(lines)) == (0, 1)
    assert project.events("--kind", "doctor.fixed")[0]["payload"] == {"done": lines, "failed": []}


PROGRESS = ".idumb/brain/execution/1/progress.json"
CHECKPOINT = ".idumb/brain/execution/1/checkpoint-T1-01.md"
STATE = ".idumb/brain/state.json"
CONFLICT = b"<<<<<<< ours\n{}\n=======\n{ }\n>>>>>>> theirs\n"


@pytest.mark.parametrize(
    "damages",
    seed.one_on_a_push(
        [((None, CONFLICT, b"[" * 4000),), ((b"[" * 4000, b"\xff", b""),), ((b"\xff", None, b"{"),)],
        "damaged projections",
    ),
)
def test_lost_and_damaged_projections_are_rebuilt(project: Project, damages: tuple[bytes | None, ...]) -> None:
    """F44: they are rebuilt from the log, and the previous files are backed up."""
    paths = (PROGRESS, CHECKPOINT, STATE)
    before = {path: project.read(path) for path in paths}
    for path, damage in zip(paths, damages, strict=True):
        (project.folder / path).unlink()
        if damage is not None:
            project.repo.write(path, damage)
    assert {one["path"] for one in symptoms_of(project, "projections.true", "warn")} == set(paths)
    lines = fixed(project, "projections.true")
    kept = [Path(line.rpartition(" ")[2]) for line in lines]
    assert {place.read_bytes() for place in kept if place.is_file()} >= {damage for damage in damages if damage}
    assert doctor(project, "--fix").data["fixed"] == []
    assert json.loads(project.read(PROGRESS))["completed"] == ["T1-01", "T1-02"]
    assert project.read(CHECKPOINT) == before[CHECKPOINT]
    assert json.loads(project.read(STATE))["history"][0]["run"] == json.loads(before[STATE])["history"][0]["run"]


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
@pytest.mark.parametrize("content", ["", "1" * 40 + "\n"])
def test_a_head_that_names_no_commit_is_named(project: Project, name: str, content: str) -> None:
    """As after a power cut. Nothing of git's is changed."""
    place = project.repo.common_dir / name
    place.write_text(content, encoding="utf-8")
    assert "reflog" in symptoms_of(project, "git.state", "problem")[0]["fix"]
    assert place.read_text(encoding="utf-8") == content


def test_a_ref_of_idumb_emptied_by_a_power_cut_is_restored(project: Project) -> None:
    """F31: the log knows what it named."""
    kept = project.repo.kept()
    (ref,) = [name for name in project.repo.refs("refs/idumb/") if "/done/" in name]
    (project.repo.common_dir / ref).write_bytes(b"")
    assert symptoms_of(project, "git.refs", "problem")[0]["fixes"]
    assert any(ref in line for line in fixed(project, "git.refs"))
    assert {name: oid for name, oid in project.repo.kept().items() if not name.endswith("/scan")} == {
        name: oid for name, oid in kept.items() if not name.endswith("/scan")
    }


def test_a_branch_emptied_by_a_power_cut_is_left_to_the_user(project: Project) -> None:
    """The branch belongs to the user; the check names what git knows."""
    project.repo.git("branch", "other")
    (project.repo.common_dir / "refs/heads/other").write_bytes(b"")
    symptom = symptoms_of(project, "git.refs", "problem")[0]
    assert (symptom["path"], symptom["fixes"]) == ("refs/heads/other", False)
    doctor(project, "--fix")
    assert (project.repo.common_dir / "refs/heads/other").read_bytes() == b""


def test_what_stands_in_the_way_is_named(project: Project) -> None:
    """M10, F34: a missing identity, hooks elsewhere, an ignored record, and what killed programs left behind."""
    project.repo.git("config", "--unset", "user.name")
    project.repo.git("config", "user.useConfigOnly", "true")
    project.repo.git("config", "core.hooksPath", ".husky")
    project.repo.write(".gitignore", ".idumb/\n")
    lock = project.repo.write(".git/index.lock")
    answer = doctor(project)
    assert "user.name" in problems(answer, "git.identity")[0]["fix"]
    assert ".husky" in problems(answer, "git.hooks")[0]["found"]
    (hooks,) = (check for check in answer.data["checks"] if check["code"] == "git.hooks")
    assert [symptom["state"] for symptom in hooks["symptoms"]] == ["warn"], "not also: none"
    assert ".gitignore:1:.idumb/" in problems(answer, "git.ignores")[0]["found"]
    assert [one["path"] for one in problems(answer, "git.locks")] == [str(lock)]
    doctor(project, "--fix")
    assert lock.exists()  # it may not belong to idumb


@pytest.mark.nightly
def test_a_push_that_would_publish_snapshots_is_named(project: Project) -> None:
    """M9."""
    for name, value in (("mirror", "true"), ("push", "+refs/*:refs/*")):
        project.repo.git("config", f"remote.x.{name}", value)
        assert "publishes snapshots" in symptoms_of(project, "git.push", "warn")[0]["means"], value
        project.repo.git("config", "--unset", f"remote.x.{name}")


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
