"""`idumb backup` and `idumb archive` on a real project (R-LOG-2, R-LOG-8)."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_projections import brain, fixed, forget
from tests.support import ended_runs
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, making

project = prepared_project(ended_runs.done)


def first_run(project: Project) -> str:
    return str(project.events("--kind", "run.started")[0]["run"])


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
    first = first_run(project)
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
