"""`idumb metrics`: figures over all runs, for people, programs and Prometheus."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.test_report_page import reviewed
from tests.support import ended_runs
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making


@pytest.mark.usefixtures("home")
def test_figures_count_attempts_agents_and_people_of_all_runs_or_of_a_period(prepared: Prepared) -> None:
    """R-OPS-1."""
    project = prepared.get(reviewed)
    data = project.json("metrics").data
    assert data["tasks"] == {"completed": 1, "failed": 0, "skipped": 0, "accepted": 0}
    assert data["first_pass"] == {"completed": 1, "at_once": 0}
    rows = {(row["adapter"], row["model"]): row for row in data["agents"]}
    built = rows["command", "middle"]
    assert (built["calls"], built["tokens"], built["cost_usd"]) == (2, 240, 0.5)
    assert built["outcomes"] == {"failed": 1, "completed": 1}
    assert data["waiting_seconds"] > 0
    assert [(row["phase"], row["runs"]) for row in data["workflows"]] == [("1", 1)]
    assert "1 completed; 0 of 1 completed with their first attempt" in project.quick("metrics").out
    # In a period, what ended in it counts; a wait that began before it counts from its beginning.
    (answered,) = project.events("1", "--kind", "decision.answered")
    before = data
    data = project.json("metrics", "--since", answered["at"]).data
    assert (data["runs"]["halted"], before["runs"]["halted"]) == (1, 2)
    assert data["tasks"]["completed"] == 1
    assert [(row["adapter"], row["calls"]) for row in data["agents"]] == [("command", 1), ("steps", 1)]
    assert data["waiting_seconds"] == 0 < before["waiting_seconds"]
    assert data["workflows"] == []
    assert project.json("metrics", "--since", "2999-01-01").data["agents"] == []


def test_the_last_run_success_and_failure_of_each_phase_are_named(project: Project) -> None:
    """R-OPS-1."""
    project.plan([failing_task("T1-01", "a.txt")])
    project.plan([making("T2-01", "b.txt")], phase="2")
    assert project.execute("--max-attempts", "1").code == 1
    assert project.execute(phase="2").code == 0
    first, second = project.json("metrics").data["workflows"]
    assert [second[name] for name in ("phase", "runs", "completed", "failed")] == ["2", 1, 1, 0]
    assert second["last"] < second["last_success"]
    assert (first["failed"], first["last_success"]) == (1, "")
    assert second["seconds"] > 0
    assert f"last failure {first['last_failure'][:10]}" in project.quick("metrics").out
    assert project.quick("rollback", "2", "--to", "start", "--yes").code == project.quick("resume", "2").code == 0
    data = project.json("metrics").data
    assert (data["tasks"]["completed"], data["first_pass"]) == (2, {"completed": 2, "at_once": 2}), "it began anew"


def test_prometheus_reads_the_same_figures(prepared: Prepared) -> None:
    project = prepared.get(ended_runs.done)
    families = {f.name: f for f in text_string_to_metric_families(project.quick("metrics", "--prometheus").out)}
    tasks = {sample.labels["status"]: sample.value for sample in families["idumb_tasks"].samples}
    assert tasks == {"completed": 1, "failed": 0, "skipped": 0, "accepted": 0}
    (call,) = families["idumb_calls"].samples
    assert (call.labels, call.value) == ({"adapter": "steps", "model": "", "outcome": "completed"}, 1)
    assert all(family.type in ("counter", "gauge") and family.documentation for family in families.values())
