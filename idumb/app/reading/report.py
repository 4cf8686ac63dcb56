"""The reports of the newest run of a phase, as the log describes them: to print, or as files."""

from __future__ import annotations

from idumb.app.attempt import projections
from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.session import operation


def report(services: Services, phase: str, *, write: bool) -> Result:
    """Return every report of a phase. `write` also writes the files, and the plan if only the run has it."""
    state = run_lookup.named_run(services, phase)
    contract = loading.locked_contract(services, state)
    texts = projections.reports_of(services, contract, state)
    plans = [row for row in services.plans.plans(contract.folder) if services.plans.is_kept(row[0])]
    if write:
        with operation.owned(services, "report") as owned:
            owned.record()
            for path, data in plans:
                services.reports.write_source(path, data.decode("utf-8", "surrogateescape"))
            for path, text in texts.items():
                projections.write_report(services, path, text)
    return Result(
        {
            "phase": state.phase,
            "run": state.id,
            "reports": [{"path": path, "text": text} for path, text in texts.items()],
            "written": [*(path for path, _ in plans), *texts] if write else [],
        }
    )
