"""How much idumb keeps of runs, what frees it, and what is refused afterwards (R-GIT-1, R-GIT-7)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from idumb.system import clock
from tests.support import ended_runs
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making, shell, task

NOW = clock.SystemClock.now
KEEP = "snapshot: {keep: 30}\n"


def names(project: Project, run: str) -> set[str]:
    """The names that idumb keeps of a run, without what comes before them."""
    return {name.partition(f"/runs/{run}/")[2] for name in project.repo.kept() if f"/runs/{run}/" in name}


def runs(project: Project) -> list[str]:
    return [str(event["run"]) for event in project.events("--kind", "run.started")]


def later(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    then = datetime.fromisoformat(NOW(clock.SystemClock())) + timedelta(days=days)
    monkeypatch.setattr(clock.SystemClock, "now", lambda _: f"{then:%Y-%m-%dT%H:%M:%S.%fZ}")


def execute_second_phase(project: Project) -> None:
    """The end of its run frees outdated ones."""
    project.plan([making("T2-01", "b.txt")], phase="2")
    assert project.execute(phase="2").code == 0


def check(project: Project, code: str) -> dict[str, object]:
    (row,) = [row for row in project.quick("doctor", "--json").data["checks"] if row["code"] == code]
    return {"state": row["state"], "found": " ".join(symptom["found"] for symptom in row["symptoms"])}


def test_status_and_doctor_say_what_is_kept_and_what_frees_it(prepared: Prepared) -> None:
    project = prepared.get(ended_runs.done)
    words = "Kept: the snapshots of 1 run; snapshot.keep (days) frees finished ones"
    assert project.json("status").data["kept"] == {"runs": 1, "replaced": 0, "words": words}
    assert words in project.quick("status").out.splitlines()
    found = check(project, "snapshots.kept")["found"]
    assert found == f"{words}. On disk: 0.0 MB that only idumb keeps"


@pytest.mark.nightly
def test_archive_frees_the_snapshots_of_the_runs_that_it_archives(prepared: Prepared) -> None:
    project = prepared.get(ended_runs.replaced)
    first, second = runs(project)
    kept, digest = names(project, second), project.events("--kind", "run.started")[0]["payload"]["plans"][0][1]
    assert "Kept: the snapshots of 2 runs; idumb archive frees those of replaced runs\n" in project.quick("status").out
    assert project.json("archive").data["freed"] == 1
    assert names(project, first) == {"plans"}
    assert names(project, second) == kept
    assert [place.name for place in project.repo.root.glob(".git/idumb/worktrees/*/transcripts/*")] == [second]
    assert [event["payload"] for event in project.events("--kind", "snapshots.freed")] == [{"runs": [first]}]
    project.repo.git("gc", "--quiet", "--prune=now")
    assert check(project, "log.refs")["state"] == "ok"
    assert project.quick("show", digest, "--plan").code == 0
    assert project.quick("audit", "verify").code == 0
    assert project.json("status").data["kept"]["runs"] == 1
    assert project.quick(*project.undoing()).code == 0


def test_the_snapshots_of_a_finished_run_are_freed_after_the_days_that_the_setting_says(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = prepared.get(ended_runs.done)
    project.configure(KEEP)
    later(monkeypatch, 29)
    execute_second_phase(project)
    assert "T1-01/1/base" in names(project, runs(project)[0])
    later(monkeypatch, 31)
    project.plan([making("T3-01", "c.txt")], phase="3")
    assert project.execute(phase="3").code == 0
    first, *others = runs(project)
    assert names(project, first) == {"plans"}
    assert all("base" in names(project, run) for run in others)


@pytest.mark.nightly
def test_what_needs_freed_snapshots_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """No commit has the trees of the snapshots: the phase was done and rolled back, and is done again and verified."""
    project.repo.write("untracked.txt", "in every snapshot")
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.quick(*project.undoing()).code == 0
    assert project.quick("verify-work", "1").code == 0
    project.repo.remove("untracked.txt")
    project.configure(KEEP)
    later(monkeypatch, 31)
    execute_second_phase(project)
    project.repo.git("gc", "--quiet", "--prune=now")
    before = project.repo.ledger()
    for command in (("rollback", "1", "--to", "start", "--yes"), ("show", "T1-01", "--diff"), ("verify-work", "1")):
        error = project.json(*command).error
        assert error["code"] == "snapshots.freed"
        assert error["message"].startswith("The snapshots of run 1 of phase 1 were freed")
        assert project.repo.ledger() == before


@pytest.mark.nightly
def test_a_run_that_is_not_finished_is_never_freed_nor_one_that_it_continues(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = prepared.get(ended_runs.done)
    project.plan([making("T1-01", "a.txt"), failing_task("T1-02", "c.txt", "T1-01")])
    assert project.execute().code == 1
    project.configure(KEEP)
    later(monkeypatch, 31)
    execute_second_phase(project)
    assert all("base" in names(project, run) for run in runs(project))
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0


@pytest.mark.nightly
def test_an_unusable_folder_is_refused_at_once_and_the_variable_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the sandbox of an agent, in which the user's state cannot be written."""
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=[shell("echo x > a.txt")])])
    consent = project.approval()
    monkeypatch.setenv("IDUMB_CHECKOUTS", "clones")
    before = project.repo.ledger()
    for flags in ((), ("--dry-run",)):
        answer = project.quick("execute-phase", "1", "--approve", consent, *flags, "--json")
        assert (answer.code, answer.error["code"]) == (4, "checkout.unusable"), answer
        assert answer.error["hint"].startswith("Set IDUMB_CHECKOUTS to ")
    assert project.repo.ledger() == before
    assert project.events("--kind", "run.started") == []
    assert check(project, "checkouts.place")["state"] == "warn"
    assert "IDUMB_CHECKOUTS" in project.quick("doctor").out
