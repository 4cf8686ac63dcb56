"""The final check of a run: workspace state and derived call ids (R-RUN-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from idumb.app.attempt.attempt_events import call_id
from idumb.app.core.run_context import RunContext
from idumb.app.engine import runner
from idumb.app.engine.moves import Ending
from tests.support.plans import run
from tests.support.project import Project, task, write

if TYPE_CHECKING:
    import pytest


def workspace(project: Project) -> dict[str, object]:
    return dict(project.events("--kind", "run.completed")[-1]["payload"]["workspace"])


def session(project: Project) -> str:
    return str(project.quick("status", "--json").data["phases"][0]["session"])


def test_a_file_that_differs_from_its_task_s_result_is_reported(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-RUN-2, R-RUN-13: its mode or its bytes. What the user did not commit is named. Ids of calls are not random.

    An ignored file counts if a task declares it. The session is active until the run ends. A completed phase is
    verified by `execute-phase` too, which starts no run, and leaves no report uncommitted.
    """
    steps = [write("a.txt", "a\n"), write("tool.sh", "#!/bin/sh\n"), write("seen.log", "x\n")]
    project.plan([task("T1-01", files="create `a.txt`, create `tool.sh`, create `seen.log`", steps=steps)])
    between, sessions = runner._paused, set()

    def looked(context: RunContext) -> Ending | None:
        sessions.add(session(project))
        return between(context)

    monkeypatch.setattr(runner, "_paused", looked)
    done = run(project, "--no-verify")
    assert (done.code, done.data["session"], sessions, session(project)) == (0, "closed", {"active"}, "closed")
    assert workspace(project) == {"wrong": [], "changed": [], "more": 0}
    calls = project.events("--kind", "step.finished")
    run_id = str(calls[0]["run"])
    assert [e["payload"]["call"] for e in calls] == [call_id(run_id, "T1-01", 1, index) for index in range(3)]
    assert len({e["payload"]["call"] for e in calls}) == 3
    again = run(project)
    assert (again.code, again.data["run"], project.repo.status()) == (0, run_id, [])
    words = "only by the tasks' own checks; the phase itself declares no check"
    assert (again.data["verification"]["status"], again.data["verification"]["reason"]) == ("passed", words)
    assert project.quick("verify-work", "1", "--json").data["mismatches"] == []
    changed = "a.txt is not as T1-01 left it"
    (project.folder / "a.txt").write_text("else\n")
    answer = project.quick("verify-work", "1", "--json")
    assert (answer.code, answer.data["workspace"]["wrong"], answer.data["workspace"]["changed"]) == (0, [], ["a.txt"])
    (project.folder / "tool.sh").chmod(0o755)
    project.repo.commit("mine", "a.txt", "tool.sh")
    answer = project.quick("verify-work", "1", "--json")
    wrong = [changed, "tool.sh has mode 100755, and T1-01 left it with 100644"]
    assert (answer.code, answer.data["workspace"]["wrong"]) == (1, wrong)
    assert changed in answer.data["mismatches"]
