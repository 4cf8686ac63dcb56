"""`idumb doctor` checks and rebuilds the event log, and compares it with refs and commits (R-LOG-6)."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.support import doctor as doctors
from tests.support import project as projects
from tests.support import seed
from tests.support.doctor import DEAD, doctor, fixed, problems, store, symptoms_of
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task

project = prepared_project(doctors.create)


@pytest.mark.parametrize("damage", seed.one_on_a_push(["gone", "flipped", "older"], "damage to the log"))
def test_a_damaged_event_log_is_restored(project: Project, damage: str) -> None:
    """R-LOG-2: F43: it is restored from its newest backup, and the damaged file is kept."""
    events = project.events()
    place = store(project)
    data = place.read_bytes()
    if damage == "gone":
        place.unlink()
    elif damage == "older":
        older = place.with_name("older.db")
        shutil.copy(place, older)
        project.plan([making("T2-01", "c.txt")], phase="2")
        assert project.execute("--no-verify", phase="2").code == 0
        events = project.events()
        shutil.move(older, place)
    else:
        place.write_bytes(data[:20_000] + b"\xff" * 30_000 + data[50_000:])
    assert project.quick("log", "--json").code == 4
    assert symptoms_of(project, "store.opens", "problem")[0]["fixes"]
    assert any("the event log was restored" in line for line in fixed(project, "store.opens"))
    assert project.events()[: len(events)] == events
    assert project.quick("resume", "1", "--json").code in {0, 4}


def test_a_changed_event_is_detected_and_restored(project: Project) -> None:
    """F67."""
    events = project.events()
    with sqlite3.connect(store(project)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE events SET payload = replace(payload, 'write_file', 'xxxxx_file')")
    db.close()
    answer = doctor(project)
    assert problems(answer, "store.opens") + problems(answer, "store.chain")
    fixed(project, "store.chain")
    assert project.events()[: len(events)] == events


def state_folder() -> Path:
    (folder,) = (Path(os.environ["XDG_STATE_HOME"]) / "idumb" / "log").iterdir()
    return folder


def test_a_log_without_backup_is_begun_anew_only_after_a_yes(project: Project) -> None:
    """R-LOG-2: F43: idumb never starts silently with an empty log."""
    store(project).unlink()
    shutil.rmtree(state_folder())
    symptom = symptoms_of(project, "store.opens", "problem")[0]
    assert (symptom["fixes"], symptom["fix"]) == (False, "idumb doctor --fix --accept-loss")
    assert symptom["means"].startswith("there is no good backup")
    refs = project.repo.kept("refs/idumb/")
    doctor(project, "--fix")
    assert not store(project).exists()
    doctor(project, "--fix", "--accept-loss")
    assert project.repo.kept("refs/idumb/") == refs
    (gap,) = project.events("--kind", "log.restored")
    assert (gap["payload"]["events"], gap["payload"]["backup"]) == (0, None)


def test_tasks_after_the_newest_backup_are_taken_from_their_commits(project: Project, tmp_path: Path) -> None:
    """R-LOG-2: what is missing is named first, and restored only after a yes."""
    late = task("T2-02", files="create `d.txt`", check=f"test -e {tmp_path}/gate", steps=[shell("echo d > d.txt")])
    project.plan([making("T2-01", "c.txt"), late], phase="2")
    assert project.execute("--max-attempts", "1", phase="2").code == 1
    kept = set(state_folder().glob("*.db"))
    (tmp_path / "gate").touch()
    assert project.quick("resume", "2", "--retry-failed").code == 0
    for newer in set(state_folder().glob("*.db")) - kept:
        newer.unlink()
    store(project).unlink()
    assert "are missing" in symptoms_of(project, "store.opens", "problem")[0]["means"]
    commits = project.repo.git("rev-list", "--count", "HEAD")
    done = doctor(project, "--fix", "--accept-loss").data["fixed"]
    assert any(line.startswith("T2-02 is done: commit ") for line in done), done
    assert project.quick("resume", "2", "--json").code == 0
    (accepted,) = project.events("--kind", "task.accepted")
    assert (accepted["task"], accepted["payload"]["by"]) == ("T2-02", "idumb doctor")
    assert int(project.repo.git("rev-list", "--count", "HEAD")) - int(commits) <= 1  # only reports


def test_a_killed_owner_is_no_problem_and_refs_of_an_unknown_run_are_kept(project: Project) -> None:
    """F41: the next command takes over from a dead owner."""
    card = store(project).parent / "worktrees/main/owner.json"
    owner = {"pid": DEAD, "started": 1, "host": os.uname().nodename, "command": "resume", "since": "x"}
    card.write_text(json.dumps(owner), encoding="utf-8")
    card.chmod(0o600)
    name = "refs/idumb/worktrees/main/runs/feed/base"
    project.repo.git("update-ref", name, "HEAD")
    answer = doctor(project)
    assert answer.data["healthy"]
    assert problems(answer, "store.owner") == []
    assert f"process {DEAD}" in json.dumps(answer.data)
    doctor(project, "--fix")
    assert name in project.repo.kept("refs/idumb/")


@pytest.mark.nightly
def test_doctor_fixes_nothing_while_a_run_is_active(sandbox: GitSandbox, tmp_path: Path) -> None:
    """F40: the refusal names the holder; checks still run, and what the run has yet to write is no symptom."""
    project = projects.create(sandbox)
    os.mkfifo(tmp_path / "door")
    step = shell(f"echo > {tmp_path}/door; sleep 30")
    project.plan([task("T1-01", files="create `a`", check="true", steps=[step])])
    with project.beside("execute-phase", "1", "--approve", project.approval()):
        (tmp_path / "door").read_text(encoding="ascii")
        (project.repo.common_dir / "idumb").chmod(0o755)
        assert doctor(project).code == 0
        refused = project.json("doctor", "--fix")
        assert (refused.code, refused.error["code"]) == (4, "lock.held")
        project.repo.write(".idumb/brain/execution/1/progress.json", "{}")
        assert problems(doctor(project), "projections.true") == []


@pytest.mark.nightly
def test_names_of_finished_runs_come_back_after_their_ref_was_deleted(project: Project) -> None:
    """The log names each snapshot and checkpoint, and plans. `written` is a note."""
    project.configure("git: {reports: none}\n")
    project.plan([making("T2-01", "c.txt")], phase="2")
    assert project.execute("--no-verify", phase="2").code == 0
    refs = without_scan(project)
    assert {name.rpartition("/")[2] for name in refs} >= {"plans", "base", "checkpoint", "written"}
    for ref in project.repo.refs("refs/idumb/worktrees/main/done/"):
        project.repo.git("update-ref", "-d", ref)
    fixed(project, "log.refs")
    assert without_scan(project) == refs


def without_scan(project: Project) -> dict[str, str]:
    """What idumb keeps, without the memory of the last scan."""
    return {name: oid for name, oid in project.repo.kept().items() if not name.endswith("/scan")}


def test_snapshots_that_are_lost_or_damaged_for_good_stay_a_problem(project: Project) -> None:
    """F34: libgit2 raises another error at a damaged object, and it must not end the doctor."""
    bases = {name: oid for name, oid in project.repo.kept().items() if name.endswith("/base")}
    lost, damaged = map(project.repo.object_file, sorted({*bases.values()}))
    lost.unlink()
    damaged.write_bytes(b"no object")
    symptoms = symptoms_of(project, "log.refs", "problem")
    assert {one["path"]: one["fixes"] for one in symptoms} == dict.fromkeys(bases, False)
    assert all(bases[one["path"]] in one["found"] for one in symptoms)
