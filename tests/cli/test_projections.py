"""Projections, backups, archives and the audit of the log (R-LOG-2, R-LOG-3, R-LOG-4, R-LOG-8, R-LOG-9)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support import ended_runs
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, making, task, write

STATE = ".idumb/brain/state.json"
EXECUTION = ".idumb/brain/execution/1"
NOTES = ".idumb/brain/notes.md"


def brain(project: Project) -> dict[str, bytes]:
    """Every file below `.idumb/brain` with its bytes."""
    folder = project.folder / ".idumb/brain"
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def forget(project: Project, *keep: str) -> None:
    """Remove everything that idumb wrote to `.idumb/brain`."""
    kept = {name: project.read(name) for name in (".idumb/brain/README.md", *keep)}
    shutil.rmtree(project.folder / ".idumb/brain")
    for name, text in kept.items():
        project.repo.write(name, text)


def fixed(project: Project) -> list[str]:
    answer = project.json("doctor", "--fix")
    check = next(check for check in answer.data["checks"] if check["code"] == "projections.true")
    assert [one for one in check["symptoms"] if one["state"] != "ok"] == []
    return list(answer.data["fixed"])


def state(project: Project) -> dict[str, Any]:
    return dict(json.loads(project.read(STATE)))


def history(project: Project) -> list[tuple[str, str]]:
    return [(line["action"], line["result"]) for line in state(project)["history"]]


def eventful(sandbox: GitSandbox) -> Project:
    """Two phases: the run of one failed and was accepted and resumed, that of the other was rolled back."""
    project = projects.create(sandbox)
    wrong = task("T1-02", files="create `b.txt`", check="false", steps=[write("b.txt", "b\n")])
    handed = making("T1-01", "a.txt", fields="- **Handoff to:** human\n")
    project.plan([handed, wrong])
    project.plan([making("T2-01", "c.txt")], phase="2")
    assert project.execute("--max-attempts", "2").code == 1
    document = project.read(f"{EXECUTION}/checkpoint-T1-02.md")
    assert "\nretry_count: 1\n" in document
    assert project.json("accept", "T1-02", "--why", "so").code == 0
    assert project.read(f"{EXECUTION}/checkpoint-T1-02.md") == document, "it shows the state at its checkpoint"
    assert project.resume().code == 0
    assert project.execute(phase="2").code == 0
    assert project.json("rollback", "2", "--to", "start", "--yes").code == 0
    return project


def test_all_projections_are_rebuilt_byte_for_byte(sandbox: GitSandbox) -> None:
    """R-LOG-4: history, timestamps and documents are the same as before."""
    project = eventful(sandbox)
    before = brain(project)
    assert history(project) == [("execute-phase:1", "pass"), ("execute-phase:2", "fail")]
    assert sorted(name.split("/")[0] for name in before) == ["README.md", *["execution"] * 4, "handoffs", "state.json"]
    forget(project)
    assert fixed(project)
    assert brain(project) == before
    assert fixed(project) == []


def test_a_state_file_of_somebody_else_is_kept_before_it_is_replaced(sandbox: GitSandbox) -> None:
    """R-LOG-9: init imports one; without it, nothing of it is lost either."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    project.repo.write(STATE, '{"mine": 1}')
    assert project.execute().code == 0
    project.repo.write(STATE, '{"mine": 2}')
    check = next(c for c in project.json("doctor").data["checks"] if c["code"] == "projections.true")
    assert [(s["path"], s["fixes"]) for s in check["symptoms"]] == [(STATE, True)]
    fixed(project)
    assert history(project) == [("execute-phase:1", "pass")]
    kept = [path.read_text() for path in (project.repo.common_dir / "idumb/set-aside").rglob("*") if path.is_file()]
    assert sorted(kept) == ['{"mine": 1}', '{"mine": 2}']


def test_foreign_files_are_left_or_kept(sandbox: GitSandbox) -> None:
    """R-LOG-9: even if a file of idumb has the same path, and a state file that could not be recorded."""
    project = projects.create(sandbox)
    theirs = "---\nid: checkpoint-T1-01\ntask_id: T1-01\nstatus: failed\n---\n\n# Mine\n"
    project.repo.write_all({NOTES: "mine\n", f"{EXECUTION}/checkpoint-T1-01.md": theirs, "mine.json": "{}\n"})
    (project.folder / STATE).symlink_to("../../mine.json")
    project.plan([making("T1-01", "a.txt")])
    answer = project.execute()
    assert answer.code == 0
    assert f"{STATE} is left as it is" in " ".join(answer.object["warnings"])
    assert project.read(NOTES) == "mine\n"
    kept = [path.read_text() for path in (project.repo.common_dir / "idumb/set-aside").rglob("*") if path.is_file()]
    assert kept == [theirs]
    assert project.json("doctor", "--fix").data["fixed"] == []
    assert (project.folder / STATE).is_symlink()
    (project.folder / STATE).unlink()
    fixed(project)
    assert history(project) == [("execute-phase:1", "pass")]
    before = brain(project)
    forget(project, NOTES)
    fixed(project)
    assert brain(project) == before


project = prepared_project(ended_runs.done)


def test_a_backup_is_written_and_verified_and_damage_is_reported(project: Project, tmp_path: Path) -> None:
    file = str(tmp_path / "log.backup")
    written = project.quick("backup", file, "--json")
    assert (written.code, written.data["verified"], written.data["path"]) == (0, True, file)
    checked = project.quick("backup", "--verify", file, "--json")
    assert checked.data == written.data
    assert project.quick("backup", file, "--json").error["code"] == "backup.exists"
    Path(file).write_bytes(b"nothing of the kind")
    assert project.quick("backup", "--verify", file, "--json").error["code"] == "store.corrupt"


def test_events_of_a_live_run_are_never_archived(project: Project) -> None:
    before = project.quick("log", "1", "--json").data
    answer = project.quick("archive", "--json")
    assert (answer.code, answer.data["moved"]) == (0, 0)
    assert project.quick("log", "1", "--json").data == before
    assert project.quick("archive").out.startswith("Nothing to move: unfinished runs, the newest run of each phase,")
    project.plan([making("T2-01", "b.txt", "x\n")], phase="2")
    assert project.execute("--no-verify", phase="2").code == 0
    assert project.quick("archive", "--json").data["moved"] == 0


def test_a_replaced_run_is_archived_and_still_verified_and_its_projections_are_rebuilt(prepared: Prepared) -> None:
    """R-LOG-4: earlier runs of a phase keep their lines in `state.json`."""
    project = prepared.get(ended_runs.replaced)
    first = project.events("--kind", "run.started")[0]["run"]
    newest = project.quick("log", "1", "--json").data
    assert newest["run"] != first
    assert project.quick("archive", "--keep-runs", "2", "--json").data["moved"] == 0
    answer = project.quick("archive", "--json")
    (record,) = answer.data["runs"]
    assert (record["run"], record["events"]) == (first, answer.data["moved"])
    assert project.quick("log", "1", "--json").data == newest
    start, *history, last = project.quick("log", "--run", first, "--json").data["events"]
    assert (start["kind"], last["kind"], last["payload"]["file"]) == ("run.started", "log.archived", record["file"])
    assert {event["kind"] for event in history} <= {"history.recorded"}
    assert project.quick("archive", "--json").data["moved"] == 0
    before = brain(project)
    forget(project)
    fixed(project)
    assert brain(project) == before
    for command in (("audit", "verify"), ("status",), project.undoing()):
        assert project.quick(*command).code == 0
    (project.repo.common_dir / "idumb" / "archive" / record["file"]).write_bytes(b"damaged")
    assert project.quick("audit", "verify", "--json").error["code"] == "audit.broken"
    assert project.quick("resume", "1", "--json").code == 0
