"""`idumb metrics`: figures over all runs, for people, programs and Prometheus."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.test_report_page import reviewed
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, making


@pytest.mark.usefixtures("home")
def test_figures_of_all_runs_count_attempts_agents_and_people(prepared: Prepared) -> None:
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


def test_prometheus_reads_the_same_figures(project: Project) -> None:
    project.plan([making("T1-01", "a.txt")])
    assert run(project).code == 0
    families = {f.name: f for f in text_string_to_metric_families(project.quick("metrics", "--prometheus").out)}
    tasks = {sample.labels["status"]: sample.value for sample in families["idumb_tasks"].samples}
    assert tasks == {"completed": 1, "failed": 0, "skipped": 0, "accepted": 0}
    (call,) = families["idumb_calls"].samples
    assert (call.labels, call.value) == ({"adapter": "steps", "model": "", "outcome": "completed"}, 1)
    assert all(family.type in ("counter", "gauge") and family.documentation for family in families.values())
