"""`idumb doctor` reports every planted problem and fixes it where that is safe (R-LOG-6, R-GIT-7)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/doctor.json").read_text(encoding="utf-8"))
DEAD = 2**22 - 3  # above the numbers that Linux gives to processes by default


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """One completed phase of two tasks."""
    sandbox.write("README.md", "# A project\n")
    made = Project(sandbox, sandbox.root)
    assert made.quick("init").code == 0
    made.plan([making("T1-01", "a.txt", "a\n"), making("T1-02", "b.txt", "b\n", after="T1-01")], commit=False)
    sandbox.commit("plan")
    approval = made.quick("check-plan", "1", "--json").data["contract_hash"]
    assert made.quick("execute-phase", "1", "--json", "--approve", approval).code == 0
    return made


def doctor(project: Project, *flags: str) -> Answer:
    answer = project.quick("doctor", "--json", *flags)
    assert answer.code in {0, 1}, answer.out
    jsonschema.validate(answer.data, SCHEMA)
    assert answer.data["healthy"] == (answer.code == 0)
    return answer


def seen(answer: Answer, code: str) -> list[dict[str, Any]]:
    """The symptoms of a check that are not ok."""
    check = next(check for check in answer.data["checks"] if check["code"] == code)
    return [symptom for symptom in check["symptoms"] if symptom["state"] != "ok"]


def found(project: Project, code: str, state: str) -> list[dict[str, Any]]:
    """The symptoms of one check, all in this state, each with its meaning and a next step."""
    symptoms = seen(doctor(project), code)
    assert symptoms
    assert {one["state"] for one in symptoms} == {state}
    assert all(one["means"] for one in symptoms)
    return symptoms


def mended(project: Project, code: str) -> list[str]:
    """Return what `--fix` did. Afterwards the check is ok, and a second `--fix` does nothing."""
    before = user_and_git(project)
    answer = doctor(project, "--fix")
    assert answer.data["mended"], answer.out
    assert seen(answer, code) == []
    assert doctor(project, "--fix").data["mended"] == []
    assert user_and_git(project) == before
    return list(answer.data["mended"])


def user_and_git(project: Project) -> tuple[object, ...]:
    """Return what `--fix` may never change: the user's files, index, branches, HEAD and configuration."""
    ledger = project.repo.ledger()
    files = {p: e for p, e in ledger.entries.items() if not p.startswith(".idumb")}
    return files, ledger.index, ledger.refs, ledger.head, ledger.config


def store(project: Project) -> Path:
    return project.repo.common_dir / "idumb" / "store.db"


def test_a_healthy_project_has_no_problem(project: Project) -> None:
    answer = project.idumb("doctor")
    assert answer.code == 0, answer.out
    assert "0 problems" in answer.out
    data = doctor(project).data
    # Of the machine, not of the project: an old git, a disk in memory.
    assert {c["code"] for c in data["checks"] if c["state"] != "ok"} <= {"git.program", "disk.kind"}
    assert len({check["code"] for check in data["checks"]}) == len(data["checks"])


def test_doctor_only_reads(project: Project) -> None:
    """S1: no byte changes anywhere, including idumb's own state and the state directory."""

    def everything() -> dict[str, tuple[int, bytes]]:
        places = [project.folder, Path(os.environ["XDG_STATE_HOME"])]
        files = [f for place in places for f in sorted(place.rglob("*")) if f.is_file()]
        return {str(f): (f.stat().st_mtime_ns, f.read_bytes()) for f in files}

    before = everything()
    assert project.idumb("doctor").code == 0
    assert everything() == before


def test_doctor_runs_no_program_of_the_repository(project: Project, tmp_path: Path) -> None:
    """S1: it runs no monitor, hook, filter, pager or alias of the repository."""
    canary = tmp_path / "canary"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {canary}\n", encoding="utf-8")
    trap.chmod(0o755)
    hooks = project.repo.common_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-commit"):
        shutil.copy(trap, hooks / name)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "filter.x.clean", "core.sshCommand", "alias.version"):
        project.repo.git("config", key, str(trap))
    project.repo.write(".gitattributes", "* filter=x diff=x\n")
    doctor(project)
    assert not canary.exists()
    names = next(c for c in doctor(project).data["checks"] if c["code"] == "git.hooks")["symptoms"][-1]["found"]
    assert "pre-commit" in names


def test_a_repository_without_commits_and_idumb_is_not_a_problem(sandbox: GitSandbox) -> None:
    made = Project(sandbox, sandbox.root)
    answer = doctor(made)
    assert answer.code == 0, answer.out
    assert seen(answer, "config.reads")[0]["mend"] == "idumb init"


# Where other commands refuse


def test_outside_a_repository_doctor_says_so_and_checks_the_machine(tmp_path: Path, home: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = doctor(Project(GitSandbox(tmp_path / "empty"), tmp_path / "empty"))
    assert answer.code == 1
    assert "git.program" in {check["code"] for check in answer.data["checks"]}
    assert "is not in a git repository" in seen(answer, "git.repository")[0]["found"]


def test_a_bare_repository_is_named(tmp_path: Path) -> None:
    bare = GitSandbox.create(tmp_path / "bare", options=("--bare",))
    assert "bare" in found(Project(bare, bare.root), "git.repository", "problem")[0]["found"]


def test_a_repository_in_an_unsupported_format_is_named(tmp_path: Path) -> None:
    """F15."""
    made = GitSandbox.create(tmp_path / "sha256", options=("--object-format=sha256",))
    made.write("a", "a")
    made.commit()
    place = Project(made, made.root)
    assert found(place, "git.format", "problem")[0]["found"] == "extensions.objectformat is sha256"
    assert found(place, "git.repository", "problem")


def test_an_unknown_extension_is_named(project: Project) -> None:
    """F15: git itself refuses to read such a repository."""
    project.repo.git("config", "core.repositoryFormatVersion", "1")
    config = project.repo.root / ".git/config"
    config.write_text(config.read_text() + "[extensions]\n\trefStorage = reftable\n", encoding="utf-8")
    answer = project.quick("doctor", "--json")
    assert seen(answer, "git.format")[0]["found"] == "extensions.refstorage is reftable"


def test_a_merge_in_progress_is_named(project: Project) -> None:
    (project.repo.git_dir / "MERGE_HEAD").write_text(project.repo.head() + "\n", encoding="utf-8")
    assert "merge" in found(project, "git.state", "problem")[0]["found"]


# Git


def test_a_branch_that_names_no_commit_is_named(project: Project) -> None:
    (project.repo.common_dir / "refs/heads/main").write_text("1" * 40 + "\n", encoding="utf-8")
    assert "reflog" in found(project, "git.head", "problem")[0]["mend"]


def test_a_ref_of_idumb_emptied_by_a_power_cut_is_restored(project: Project) -> None:
    """F31: the log knows its commit."""
    ref = next(name for name in project.repo.refs("refs/idumb/") if name.endswith("T1-01/1/checkpoint"))
    commit = project.repo.refs("refs/idumb/")[ref]
    (project.repo.common_dir / ref).write_bytes(b"")
    assert found(project, "git.refs", "problem")[0]["mends"]
    assert any(ref in line for line in mended(project, "git.refs"))
    assert project.repo.refs("refs/idumb/")[ref] == commit


def test_a_branch_emptied_by_a_power_cut_is_left_to_the_user(project: Project) -> None:
    """The branch belongs to the user; the check names what git knows."""
    project.repo.git("branch", "other")
    (project.repo.common_dir / "refs/heads/other").write_bytes(b"")
    symptom = found(project, "git.refs", "problem")[0]
    assert (symptom["path"], symptom["mends"]) == ("refs/heads/other", False)
    doctor(project, "--fix")
    assert (project.repo.common_dir / "refs/heads/other").read_bytes() == b""


def test_a_stale_lock_is_named_and_kept(project: Project) -> None:
    """M10: a killed git leaves it, and it may not belong to idumb."""
    lock = project.repo.git_dir / "index.lock"
    lock.touch()
    assert found(project, "git.locks", "problem")[0]["path"] == str(lock)
    doctor(project, "--fix")
    assert lock.exists()


def test_a_lock_of_a_live_process_names_the_process(project: Project) -> None:
    with (project.repo.git_dir / "index.lock").open("w"):
        assert f"process {os.getpid()} holds it" in found(project, "git.locks", "warn")[0]["found"]


def test_a_missing_identity_is_named(project: Project) -> None:
    project.repo.git("config", "--unset", "user.name")
    project.repo.git("config", "user.useConfigOnly", "true")
    assert "user.name" in found(project, "git.identity", "warn")[0]["mend"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("remote.x.mirror", "true"), ("remote.x.push", "+refs/*:refs/*"), ("remote.x.push", "refs/idumb/*:refs/idumb/*")],
)
def test_a_push_that_would_publish_snapshots_is_named(project: Project, key: str, value: str) -> None:
    """M9."""
    project.repo.git("config", key, value)
    assert "publishes snapshots" in found(project, "git.push", "warn")[0]["means"]


def test_an_ordinary_push_publishes_nothing(project: Project) -> None:
    project.repo.git("config", "remote.x.push", "refs/heads/*:refs/heads/*")
    assert seen(doctor(project), "git.push") == []


def test_hooks_from_another_folder_are_named(project: Project) -> None:
    project.repo.git("config", "core.hooksPath", ".husky")
    assert ".husky" in found(project, "git.hooks", "warn")[0]["found"]


def test_an_ignore_rule_that_hides_the_record_from_git_is_named(project: Project) -> None:
    project.repo.write(".gitignore", ".idumb/\n")
    assert ".gitignore:1:.idumb/" in found(project, "git.ignores", "warn")[0]["found"]


def test_half_written_objects_are_named(project: Project) -> None:
    """F34."""
    left = project.repo.common_dir / "objects/ab/tmp_obj_x1"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    assert "1 unfinished objects" in found(project, "git.objects", "warn")[0]["found"]


def test_a_leftover_clone_is_named(project: Project) -> None:
    for place in (project.repo.common_dir / "idumb/clones", project.repo.clones):
        (place / "feed0123456789ab").mkdir(parents=True, mode=0o700)
        assert "feed0123456789ab" in found(project, "clones.left", "warn")[0]["found"]
        (place / "feed0123456789ab").rmdir()


def test_a_nested_repository_is_reported(project: Project) -> None:
    inner = GitSandbox.create(project.folder / "inner")
    assert str(project.folder) in found(Project(inner, inner.root), "git.nested", "warn")[0]["found"]


# Machine


def test_a_file_system_that_loses_data_is_named(tmp_path: Path) -> None:
    """F42."""
    place = Path("/dev/shm")
    if not os.access(place, os.W_OK):
        pytest.skip("there is no /dev/shm")
    folder = place / f"idumb-{os.getpid()}-{tmp_path.name}"
    try:
        made = GitSandbox.create(folder)
        assert "lost when the machine stops" in found(Project(made, made.root), "disk.kind", "warn")[0]["means"]
    finally:
        shutil.rmtree(folder)


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
        made = GitSandbox.create(place / "repo")
        words = [one["found"] for one in found(Project(made, made.root), "disk.space", "problem")]
        assert len(words) == 2
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_git_folder_of_another_user_is_named(project: Project) -> None:
    """F25, S14."""
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give files away")
    os.chown(project.repo.git_dir, 65534, 65534)
    project.repo.git("config", "--global", "safe.directory", "*")
    assert "65534" in found(project, "disk.writable", "warn")[0]["found"]


def test_permissions_that_are_too_open_are_fixed(project: Project) -> None:
    """S14."""
    folder = project.repo.common_dir / "idumb"
    folder.chmod(0o755)
    store(project).chmod(0o644)
    assert {one["found"] for one in found(project, "store.private", "warn")} == {"the mode is 0755", "the mode is 0644"}
    mended(project, "store.private")
    assert (folder.stat().st_mode & 0o777, store(project).stat().st_mode & 0o777) == (0o700, 0o600)


def test_files_below_a_private_folder_count_as_private(project: Project) -> None:
    """S14: with any mode of its own; a killed dry run leaves files with the modes of the user's files."""
    folder = project.repo.common_dir / "idumb"
    project.repo.write(".git/idumb/worktrees/main/noted.json", "{}").chmod(0o644)
    project.repo.write(".git/idumb/rehearsals/1/a.txt", "a copy").chmod(0o644)
    assert seen(doctor(project), "store.private") == []
    folder.chmod(0o755)
    (folder / "worktrees").chmod(0o711)
    (folder / "worktrees/main").chmod(0o701)
    assert len(found(project, "store.private", "warn")) == 4


def test_objects_collected_before_the_fix_are_not_a_failure(project: Project) -> None:
    """S14: taking over the working tree removes copies and the owner card of a killed owner."""
    folder = project.repo.common_dir / "idumb"
    folder.chmod(0o755)
    card = project.repo.write(f".git/idumb/worktrees/main/.owner.json.{DEAD}-0a1b2c3d.tmp", "half")
    copied = project.repo.write(".git/idumb/rehearsals/1/a.txt", "a copy")
    card.parent.chmod(0o755)
    card.parent.parent.chmod(0o755)
    card.chmod(0o644)
    copied.chmod(0o644)
    answer = doctor(project, "--fix")
    (collected,) = answer.object["warnings"]
    assert "was killed" in collected
    assert seen(answer, "store.private") == []
    assert not card.exists()
    assert not copied.exists()


def test_a_state_directory_that_others_can_write_is_named(project: Project) -> None:
    """S14: consent in it is ignored."""
    (Path(os.environ["XDG_STATE_HOME"]) / "idumb").chmod(0o777)
    assert "mode 0777" in found(project, "state-directory.private", "problem")[0]["found"]


def test_temporary_files_of_a_killed_idumb_are_moved_aside(project: Project) -> None:
    names = [
        f".git/idumb/worktrees/main/.owner.json.{DEAD}-0a1b2c3d.tmp",
        f".idumb/brain/.state.json.{DEAD}-aa11bb22.tmp",
    ]
    for name in names:
        project.repo.write(name, "half")
    mine = project.repo.write(f".idumb/brain/.state.json.{os.getpid()}-aa11bb22.tmp", "being written")
    theirs = project.repo.write(".idumb/notes.tmp", "of the user")
    assert len(found(project, "temporary.files", "warn")) == 2
    mended(project, "temporary.files")
    assert not any(project.exists(name) for name in names)
    assert (mine.read_text(), theirs.read_text()) == ("being written", "of the user")
    kept = [f.read_text() for f in (project.repo.common_dir / "idumb/set-aside").iterdir()]
    assert kept
    assert set(kept) == {"half"}


@pytest.mark.parametrize("where", ["work tree", "clone", "clone of an older version"])
def test_orphaned_processes_of_a_killed_idumb_are_ended(project: Project, where: str) -> None:
    """F59: they are found by an inherited variable, in any folder."""
    folders = {
        "work tree": project.folder,
        "clone": project.repo.clones / "feed0123456789ab",
        "clone of an older version": project.repo.common_dir / "idumb/clones/feed0123456789ab",
    }
    place = f"feed@{folders[where]}"
    environment = {**os.environ, "IDUMB_RUN": "feed", "IDUMB_PLACE": place}
    other = {**os.environ, "IDUMB_RUN": "feed", "IDUMB_PLACE": "feed@/elsewhere"}
    left = subprocess.Popen(["sleep", "600"], cwd="/", env=environment, start_new_session=True)
    spared = subprocess.Popen(["sleep", "600"], cwd="/", env=other)
    try:
        assert (
            found(project, "processes.left", "problem")[0]["found"]
            == f"process {left.pid} of run feed is still running"
        )
        mended(project, "processes.left")
        assert left.wait(10) == -signal.SIGTERM
        assert spared.poll() is None
    finally:
        for process in (left, spared):
            process.kill()
            process.wait()


# The event log


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "flipped", "older"])
def test_a_damaged_event_log_is_rebuilt(project: Project, damage: str) -> None:
    """R-LOG-2: F43: it is rebuilt from its copy, and the damaged file is kept."""
    events = project.events()
    place = store(project)
    data = place.read_bytes()
    if damage == "gone":
        place.unlink()
    elif damage == "older":
        older = place.with_name("older.db")
        shutil.copy(place, older)
        project.plan([making("T2-01", "c.txt")], phase="2")
        assert project.execute(phase="2").code == 0
        events = project.events()
        shutil.move(older, place)
    else:
        bytes_now = {"empty": b"", "cut": data[: len(data) // 2], "flipped": data[:5000] + b"\xff" * 3000 + data[8000:]}
        place.write_bytes(bytes_now[damage])
    assert project.json("log").code == 4
    assert found(project, "store.opens", "problem")[0]["mends"]
    assert any("the event log was rebuilt" in line for line in mended(project, "store.opens"))
    assert project.events()[: len(events)] == events
    assert project.json("resume", "1").code in {0, 4}


def test_a_changed_event_is_detected_and_restored_from_the_copy(project: Project) -> None:
    """F67."""
    events = project.events()
    with sqlite3.connect(store(project)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE events SET payload = replace(payload, 'write_file', 'xxxxx_file')")
    db.close()
    answer = doctor(project)
    assert seen(answer, "store.opens") + seen(answer, "store.chain")
    mended(project, "store.chain")
    assert project.events()[: len(events)] == events


def test_a_log_that_cannot_be_restored_is_reported_with_the_remaining_refs(project: Project) -> None:
    """R-LOG-2: F43: idumb never starts silently with an empty log."""
    store(project).unlink()
    shutil.rmtree(Path(os.environ["XDG_STATE_HOME"]) / "idumb" / "events")
    symptom = found(project, "store.opens", "problem")[0]
    assert (symptom["mends"], "refs/idumb" in symptom["means"]) == (False, True)
    refs = project.repo.refs("refs/idumb/")
    doctor(project, "--fix")
    assert not store(project).exists()
    assert project.repo.refs("refs/idumb/") == refs


@pytest.mark.parametrize("damage", [None, b"", b"<<<<<<< x\n"])
def test_a_lost_anchor_is_rewritten(project: Project, damage: bytes | None) -> None:
    anchor = store(project).with_name("anchor.json")
    before = anchor.read_bytes()
    anchor.unlink()
    if damage is not None:
        anchor.write_bytes(damage)
    found(project, "store.anchor", "warn")
    mended(project, "store.anchor")
    assert json.loads(anchor.read_bytes())["seq"] >= json.loads(before)["seq"]


def test_a_damaged_copy_is_kept_and_rebuilt(project: Project) -> None:
    copy = next((Path(os.environ["XDG_STATE_HOME"]) / "idumb").rglob("events.jsonl"))
    lines = copy.read_bytes().splitlines(keepends=True)
    copy.write_bytes(b"".join([*lines[:3], b"#" + lines[3], *lines[4:]]))
    assert "1 of its lines" in found(project, "store.copy", "warn")[0]["found"]
    mended(project, "store.copy")
    hashes = [json.loads(line)["hash"] for line in copy.read_bytes().splitlines()]
    assert hashes[: len(lines)] == [json.loads(line)["hash"] for line in lines]


def test_files_unpacked_by_an_agent_are_reported_and_removed_by_fix(project: Project) -> None:
    """R-ADAPT-2, R-OPS-3: the files are not a problem, and removing them loses nothing."""
    place = project.folder / ".git/idumb/worktrees/main/unpacked/copilot/pkg/1.0"
    place.mkdir(parents=True)
    (place / "app.js").write_bytes(b"x" * 2_000_000)
    answer = doctor(project)
    [check] = [one for one in answer.data["checks"] if one["code"] == "agents.unpacked"]
    assert answer.data["healthy"]
    assert "2 MB" in check["symptoms"][0]["found"]
    assert "was removed (2 MB)" in " ".join(mended(project, "agents.unpacked"))
    assert not place.parents[2].exists()


def test_the_owner_file_of_a_dead_process_is_reported_and_replaced(project: Project) -> None:
    """F41."""
    card = store(project).parent / "worktrees/main/owner.json"
    known = {"pid": DEAD, "started": 1, "boot": None, "host": os.uname().nodename, "command": "resume", "since": "x"}
    card.write_text(json.dumps(known), encoding="utf-8")
    card.chmod(0o600)
    assert f"process {DEAD}" in found(project, "store.owner", "warn")[0]["found"]
    mended(project, "store.owner")
    assert not card.exists()


def test_doctor_fixes_nothing_while_a_run_is_active(sandbox: GitSandbox) -> None:
    """F40: the refusal names the holder; checks still run."""
    made = projects.create(sandbox)
    made.plan([task("T1-01", files="create `a`", check="true", steps=[shell("sleep 30")])])
    with made.running("execute-phase", "1", "--approve", made.approval()) as running:
        running.wait_for("attempt.started")
        store(made).with_name("anchor.json").chmod(0o644)
        assert doctor(made).code == 0
        refused = made.json("doctor", "--fix")
        assert (refused.code, refused.error["code"]) == (4, "lock.held")
        assert seen(doctor(made), "run.killed") == []
        os.kill(running.pid, signal.SIGKILL)
        running.end()
    assert found(made, "run.killed", "warn")[0]["mend"] == "idumb resume 1"


# Log against the rest


def test_a_deleted_ref_is_restored(project: Project) -> None:
    """M2: the commit still exists, and the log names it."""
    refs = project.repo.refs("refs/idumb/")
    for name in refs:
        if "/runs/" in name and not name.endswith("/plans"):
            project.repo.git("update-ref", "-d", name)
    assert all(one["mends"] for one in found(project, "log.refs", "problem"))
    mended(project, "log.refs")
    assert project.repo.refs("refs/idumb/") == refs


def test_a_snapshot_that_is_lost_for_good_stays_a_problem(project: Project) -> None:
    ref = next(name for name in project.repo.refs("refs/idumb/") if name.endswith("T1-01/1/base"))
    oid = project.repo.refs("refs/idumb/")[ref]
    project.repo.git("update-ref", "-d", ref)
    (project.repo.common_dir / "objects" / oid[:2] / oid[2:]).unlink()
    symptom = found(project, "log.refs", "problem")[0]
    assert (symptom["path"], symptom["mends"], oid in symptom["found"]) == (ref, False, True)


def test_refs_of_a_run_that_is_not_in_the_log_are_reported_and_kept(project: Project) -> None:
    name = "refs/idumb/worktrees/main/runs/feed/base"
    project.repo.git("update-ref", name, "HEAD")
    assert "run feed" in found(project, "log.unknown-refs", "warn")[0]["found"]
    doctor(project, "--fix")
    assert name in project.repo.refs("refs/idumb/")


def test_commits_made_elsewhere_are_reported(project: Project, tmp_path: Path) -> None:
    project.repo.git("clone", "--quiet", ".", str(tmp_path / "clone"))
    clone = Project(GitSandbox(tmp_path / "clone"), tmp_path / "clone")
    assert "is not in the event log" in found(clone, "log.branch", "warn")[0]["found"]


def test_a_rewritten_and_pruned_commit_is_reported(project: Project) -> None:
    """F58: the checkpoint still has its files, and the parents of later snapshots still exist."""
    project.repo.git("reset", "--quiet", "--soft", "HEAD~3")
    project.repo.git("reflog", "expire", "--expire=now", "--all")
    project.repo.git("gc", "--quiet", "--prune=now")
    words = [one["found"] for one in found(project, "log.branch", "warn")]
    assert [line.rpartition(" of ")[2] for line in words] == ["T1-02 no longer exists"]


def test_a_snapshot_with_a_damaged_object_is_reported_as_missing(project: Project) -> None:
    """F34: libgit2 raises another error here, and it must not end the doctor."""
    ref, oid = next(iter(project.repo.refs("refs/idumb/").items()))
    place = project.repo.common_dir / "objects" / oid[:2] / oid[2:]
    place.chmod(0o600)
    place.write_bytes(b"no object")
    symptoms = found(project, "log.refs", "problem")
    assert [one["path"] for one in symptoms] == [ref]
    assert oid in symptoms[0]["found"]


def test_git_s_own_files_that_changed_since_the_run_began_are_named(project: Project) -> None:
    """F53: the check does not blame the user."""
    assert seen(doctor(project), "git.guarded") == []
    project.repo.git("config", "core.editor", "true")
    hook = project.repo.common_dir / "hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n", encoding="utf-8")
    symptoms = {one["path"]: one["found"].split(" after")[0] for one in found(project, "git.guarded", "warn")}
    assert symptoms == {".git/config": "changed", ".git/hooks/pre-commit": "added"}


def test_a_run_in_another_working_tree_is_not_checked_against_these_files(project: Project, tmp_path: Path) -> None:
    """R-GIT-7: a linked work tree has a file `commondir`, and a repository has none."""
    project.repo.git("worktree", "add", "--quiet", str(tmp_path / "two"), "-b", "two")
    two = Project(GitSandbox(tmp_path / "two"), tmp_path / "two")
    two.plan([making("T1-01", "of-two.txt")])
    assert two.execute("--force").code == 0
    assert seen(doctor(project), "git.guarded") == []


# Files


def test_an_invalid_configuration_is_named_with_its_line(project: Project) -> None:
    project.repo.write(".idumb/config.yaml", "git:\n  comit: task\n")
    assert ".idumb/config.yaml:2" in found(project, "config.reads", "problem")[0]["found"]


def test_an_invalid_plan_is_named(project: Project) -> None:
    project.repo.write(".planning/phases/3/01-PLAN.md", "---\ntype: plan\n---\n")
    assert found(project, "plans.read", "warn")[0]["mend"] == "idumb check-plan 3"


def test_a_file_emptied_by_a_power_cut_is_reported_with_the_command_that_shows_it(project: Project) -> None:
    """M3: the check does not blame the user, and it does not restore the file."""
    (project.folder / "a.txt").write_bytes(b"")
    symptom = found(project, "files.emptied", "problem")[0]
    assert symptom["path"] == "a.txt"
    assert project.repo.git(*symptom["mend"].split()[1:]) == "a"
    doctor(project, "--fix")
    assert (project.folder / "a.txt").read_bytes() == b""


PROGRESS = ".idumb/brain/execution/1/progress.json"
CHECKPOINT = ".idumb/brain/execution/1/checkpoint-T1-01.md"
STATE = ".idumb/brain/state.json"
CONFLICT = "<<<<<<< ours\n{}\n=======\n{ }\n>>>>>>> theirs\n"


@pytest.mark.parametrize("path", [PROGRESS, CHECKPOINT, STATE])
@pytest.mark.parametrize("damage", [None, "", "{", CONFLICT, "\udcff", "[" * 4000])
def test_a_lost_or_damaged_projection_is_rebuilt(project: Project, path: str, damage: str | None) -> None:
    """F44: it is rebuilt from the log, and the previous file is backed up."""
    before = project.read(path)
    (project.folder / path).unlink()
    if damage is not None:
        project.repo.write(path, damage.encode("utf-8", "surrogateescape"))
    assert found(project, "projections.true", "warn")[0]["path"] == path
    lines = mended(project, "projections.true")
    if damage:
        kept = Path(lines[0].rpartition(" ")[2])
        assert kept.read_bytes() == damage.encode("utf-8", "surrogateescape")
    if path == PROGRESS:
        assert json.loads(project.read(path))["completed"] == ["T1-01", "T1-02"]
    elif path == STATE:
        assert json.loads(project.read(path))["history"][0]["run"] == json.loads(before)["history"][0]["run"]
    else:
        assert project.read(path) == before


def test_an_outdated_projection_is_named_and_rebuilt(project: Project) -> None:
    known = json.loads(project.read(PROGRESS))
    project.repo.write(PROGRESS, json.dumps({**known, "completed": ["T1-01"]}))
    assert "completed" in found(project, "projections.true", "warn")[0]["found"]
    mended(project, "projections.true")
    assert json.loads(project.read(PROGRESS))["completed"] == ["T1-01", "T1-02"]


def test_files_of_an_old_idumb_are_named_until_init_migrates_them(project: Project) -> None:
    """R-LOG-9."""
    project.repo.write(".idumb/brain/execution/9/progress.json", '{"completed": ["T9-01"], "failed": []}')
    assert found(project, "legacy.taken-over", "warn")[0]["mend"] == "idumb init"
    assert project.idumb("init").code == 0
    assert seen(doctor(project), "legacy.taken-over") == []


_POINTS = frozenset(
    {"os.rename", "os.remove", "os.link", "os.mkdir", "os.chmod", "sqlite3.connect", "subprocess.Popen"}
)


def killed_at(project: Project, number: int) -> bool:
    """Run `doctor --fix` up to the point with this number, where the power fails; return whether it got there."""
    child = os.fork()
    if child == 0:
        points = iter(range(1, number))

        def count(event: str, arguments: object) -> None:
            if event in _POINTS and next(points, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        project.quick("doctor", "--fix", "--json")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.slow
def test_the_next_fix_finishes_one_killed_anywhere(project: Project) -> None:
    """F30: log, refs, modes and projections at once."""
    before, refs = user_and_git(project), project.repo.refs("refs/idumb/")
    events = project.quick("log", "--limit", "1000", "--json").data["events"]
    kept = store(project).read_bytes()
    for number in range(1, 300, 29):
        store(project).write_bytes(kept[: len(kept) // 2])
        (project.folder / PROGRESS).unlink()
        project.repo.git("update-ref", "-d", next(name for name in refs if name.endswith("T1-01/1/base")))
        store(project).parent.chmod(0o755)
        killed = killed_at(project, number)
        answer = doctor(project, "--fix")
        assert answer.code == 0, (number, answer.out)
        found = project.quick("log", "--limit", "1000", "--json").data["events"]
        assert found[: len(events)] == events, number
        assert project.repo.refs("refs/idumb/") == refs, number
        assert user_and_git(project) == before, number
        if not killed:
            break
    assert number > 20


def test_fixes_are_recorded_in_the_log(project: Project) -> None:
    (project.folder / PROGRESS).unlink()
    lines = mended(project, "projections.true")
    assert project.events("--kind", "doctor.mended")[0]["payload"] == {"done": lines, "failed": []}


def test_the_old_name_of_fix_still_works_and_is_on_no_page(project: Project) -> None:
    (project.folder / PROGRESS).unlink()
    answer = doctor(project, "--mend")
    assert (answer.code, len(answer.data["mended"])) == (0, 1)
    shown = project.quick("doctor", "--help").out
    assert ("--fix" in shown, "--mend" in shown) == (True, False)


def test_a_missing_log_is_one_problem_and_its_consequences_are_reported_once(project: Project) -> None:
    """R-LOG-6: the same cause nine times would hide the one next step."""
    store(project).unlink()
    shutil.rmtree(Path(os.environ["XDG_STATE_HOME"]) / "idumb" / "events")
    told = project.quick("doctor").out
    assert told.count("see store.opens") == 1
    cause = found(project, "store.opens", "problem")[0]["found"]
    assert told.count(cause) == 1
    assert "log.refs, log.unknown-refs" in told
    answer = doctor(project)
    assert {one["state"] for one in seen(answer, "log.refs")} == {"warn"}
    assert sum(answer.data["counts"].values()) == len(answer.data["checks"])
    assert answer.data["counts"]["not_examined"] > 1


def test_an_unreadable_configuration_is_one_problem(project: Project) -> None:
    """R-OPS-4: checks that need it are not examined, and the plans are not reported as wrong."""
    project.configure("builder: [\n")
    answer, told = doctor(project), project.quick("doctor").out
    assert [one["code"] for one in answer.data["checks"] if one["state"] == "problem"] == ["config.reads"]
    assert "skipped  plans.read: see config.reads" in told
    assert told.count("Invalid YAML") == 1
    assert "phase 1 cannot run" not in told


def test_problems_with_one_cause_name_the_next_step_once(project: Project) -> None:
    for name in ("state.json", "execution/1/progress.json"):
        (project.folder / ".idumb/brain" / name).unlink()
    told = project.quick("doctor").out
    assert "state.json: the file is missing" in told
    assert "progress.json: the file is missing" in told
    assert told.count("next: idumb doctor --fix") == 1


def test_problems_are_exit_code_1_and_name_the_next_command(project: Project) -> None:
    store(project).unlink()
    answer = project.idumb("doctor")
    assert answer.code == 1
    assert "[doctor.problems]" in answer.err
    assert "next: idumb doctor --fix" in answer.err
