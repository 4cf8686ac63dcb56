"""Whether the run of a phase has ended with nothing left to run, to write or to commit.

It loads little, because `resume` asks it first.
"""

from __future__ import annotations

from idumb.app.core import run_lookup
from idumb.app.core.services import Result, Services, report_path
from idumb.domain import contract as contracts
from idumb.domain.action import Action
from idumb.domain.runs.run import COMPLETED, RunState


def answer(services: Services, phase: str, *, judged: bool) -> Result | None:
    """Return what `resume` answers about such a run; None if something may be left to do. `judged`: verified, too."""
    state = run_lookup.newest_run(services, phase)
    if state is None or state.state != COMPLETED or state.restoring is not None or (judged and not state.verified):
        return None
    folder = state.contract.plans[0][0].rpartition("/")[0]
    if contracts.source_hashes(services.plans.plans(folder)) != dict(state.contract.plans):
        return None
    return complete(state) if has_reports(services, state, folder) else None


def complete(state: RunState) -> Result:
    return Result({"run": state.id, "phase": state.phase, "outcome": "complete", "next": [Action("next")]})


def has_reports(services: Services, state: RunState, folder: str) -> bool:
    """Return whether the reports are where they belong: in the log, in a commit, or in files that are not committed."""
    if state.reports_in_log:
        return True
    recorded = run_lookup.last_event(services, "reports.committed", state.id)
    judged = run_lookup.last_event(services, "verification.recorded", state.id)
    if recorded is not None and (judged is None or recorded.seq > judged.seq):
        return True
    paths = [report_path(folder, report) for report in ("SUMMARY", "VERIFICATION")]
    if not all(services.files.exists(path) for path in paths):
        return False
    if not state.commits_reports:
        return True
    return not services.history.uncommitted(paths) and run_lookup.commit_of_reports(services, state) is None
