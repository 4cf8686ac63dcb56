"""`idumb backup` and `idumb archive` on a real project (R-LOG-8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import ended_runs
from tests.support import project as projects
from tests.support.prepared import Prepared
from tests.support.project import Project, making


@pytest.fixture
def project(prepared: Prepared) -> Project:
    return prepared.get(ended_runs.done)


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
    assert project.quick("archive").out == "Nothing to move: the newest run is kept (--keep-runs 1).\n"
    kept = "Nothing to move: the newest 3 runs are kept (--keep-runs 3).\n"
    assert project.quick("archive", "--keep-runs", "3").out == kept
    project.plan([making("T2-01", "b.txt", "x\n")], phase="2")
    assert project.execute("--no-verify", phase="2").code == 0
    assert project.quick("archive").out == "Nothing to move: the newest run of each phase is kept.\n"


def test_archive_says_that_an_unfinished_run_needs_its_events(prepared: Prepared) -> None:
    assert prepared.get(projects.create).quick("archive").out == "Nothing to move: no run has started.\n"
    unfinished = prepared.get(ended_runs.failed)
    assert unfinished.quick("archive").out == "Nothing to move: runs that can continue need every event.\n"


def test_a_replaced_run_is_archived_and_can_still_be_shown(prepared: Prepared) -> None:
    project = prepared.get(ended_runs.replaced)
    first = first_run(project)
    events = project.quick("log", "--run", first, "--json").data["events"]
    newest = project.quick("log", "1", "--json").data
    assert newest["run"] != first
    for kept in (("--keep-runs", "2"), ("--before", "2000-01-01")):
        assert project.quick("archive", *kept, "--json").data["moved"] == 0
    answer = project.quick("archive", "--json")
    assert answer.data["moved"] > 5
    assert answer.data["segments"][-1]["last"] == answer.data["archived"]
    assert project.quick("log", "1", "--json").data == newest
    assert project.quick("log", "--run", first, "--json").data["events"] == events
    assert project.quick("audit", "verify").code == 0
    assert project.quick("status").code == 0
    assert project.quick(*project.undoing()).code == 0


def test_doctor_detects_and_repairs_a_damaged_segment(prepared: Prepared) -> None:
    """R-LOG-2: the events are in the copy too."""
    project = prepared.get(ended_runs.replaced)
    first = first_run(project)
    assert project.quick("archive", "--json").data["moved"] > 5
    events = project.quick("log", "--run", first, "--json").data["events"]
    (segment,) = (project.repo.common_dir / "idumb" / "archive").iterdir()
    segment.write_bytes(b"damaged")
    assert project.quick("audit", "verify", "--json").error["code"] == "store.segment"
    assert project.quick("resume", "1", "--json").code == 0
    assert project.quick("doctor").code == 1
    project.quick("doctor", "--fix")
    assert project.quick("audit", "verify").code == 0
    assert project.quick("log", "--run", first, "--json").data["events"] == events
