"""Work that reports or an old iDumb record, and this log does not.

It is only shown. It completes no task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from idumb.app.core.services import Services, report_path
from idumb.domain.contract import Contract
from idumb.domain.runs import state_file

_PASSED = "passed"


def of_phase(services: Services, phase: str, folder: str | None) -> dict[str, Any]:
    """Return `by`, `run`, `result`, `created`, `verification` and `counts`; empty if nothing is recorded."""
    words = ("SUMMARY", "VERIFICATION")
    summary, verification = (services.plans.recorded(folder, w) if folder is not None else None for w in words)
    if summary is None and verification is None:
        return _of_old_idumb(services, phase)
    return _of_reports(summary or {}, verification or {})


def _of_reports(summary: Mapping[str, Any], verification: Mapping[str, Any]) -> dict[str, Any]:
    counts = {k.removeprefix("tasks_"): v for k, v in summary.items() if str(k).startswith("tasks_")}
    if summary and not any(number for status, number in counts.items() if status not in ("total", "pending")):
        return {}  # all of it was rolled back
    return {
        "by": "its reports",
        "run": summary.get("run"),
        "result": summary.get("result"),
        "created": str(summary.get("created", "")),
        "verification": verification.get("status"),
        "counts": counts,
    }


def _of_old_idumb(services: Services, phase: str) -> dict[str, Any]:
    rows = (row for event in services.log.events(kind=state_file.IMPORTED) for row in event.payload["phases"])
    claims = [row for row in rows if services.plans.same_phase(str(row["phase"]), phase)]
    if not claims:
        return {}
    counts = {word: len(claims[-1][word]) for word in ("completed", "failed", "blocked")}
    return {
        "by": "an old iDumb",
        "run": None,
        "result": None,
        "created": str(claims[-1].get("started_at") or ""),
        "verification": None,
        "counts": {"total": sum(counts.values()), **counts},
    }


def report_in_head(services: Services, folder: str) -> Mapping[str, Any]:
    """Return the report in HEAD that says the phase of a folder was verified; empty if there is none.

    Only a committed report counts, because git records who committed it.
    """
    entry = services.trees.entry(services.history.head_tree(), report_path(folder, "VERIFICATION"))
    report = None if entry is None else services.plans.report(services.trees.read(entry.oid), "VERIFICATION")
    return report if report is not None and report.get("status") == _PASSED else {}


def verified_report(services: Services, contract: Contract) -> dict[str, Any] | None:
    """Return the report in HEAD that says this contract was verified; None if there is none."""
    report = report_in_head(services, contract.folder)
    if report.get("contract_hash") != contract.hash:
        return None
    return {"path": report_path(contract.folder, "VERIFICATION"), "created": str(report.get("created", ""))}


def commits_of_tasks(newest_first: Sequence[tuple[str, Mapping[str, str]]]) -> dict[str, str]:
    """Return by task the newest commit with its work. Work that was rolled back does not count."""
    commits: dict[str, str] = {}
    for commit, trailers in _of_tasks(newest_first):
        commits.setdefault(trailers["Idumb-Task"], commit)
    return commits


def _of_tasks(newest_first: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the commits of tasks, except those that a later one rolled back: `Idumb-Rollback: T1-01` says so."""
    undone: dict[str, int] = {}
    cut: dict[str, str] = {}
    for commit, trailers in newest_first:
        run, task = trailers.get("Idumb-Run", ""), trailers.get("Idumb-Task")
        reverts = "Idumb-Rollback" in trailers or "Idumb-Undo" in trailers
        if reverts and undone.get(run):
            undone[run] -= 1
        elif "Idumb-Undo" in trailers:
            undone[run] = undone.get(run, 0) + 1
        elif "Idumb-Rollback" in trailers:
            cut.setdefault(run, trailers["Idumb-Rollback"])
        elif task is not None and _survives(cut, run, task):
            yield commit, trailers


def _survives(cut: dict[str, str], run: str, task: str) -> bool:
    """Return whether a task's commit is older than the one that its run was rolled back to."""
    if cut.get(run) == task:
        del cut[run]
    return run not in cut
