"""Work that reports, commits or an old iDumb record, and this log does not.

It is only shown. It completes no task.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from idumb.app.core import projection_paths, run_lookup
from idumb.app.core.services import Services
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError
from idumb.domain.runs import legacy

PASSED = "passed"

# Each thousand takes a few milliseconds. Beyond that, use the reports or `idumb doctor`.
COMMITS = 5000

Trailers = Sequence[tuple[str, Mapping[str, str]]]
"""Commits with their Idumb trailers, newest first."""


class OutsideWork:
    """Outside work by phase. Expensive lookups happen once for each instance."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def lookup(self, phase: str, folder: str | None) -> dict[str, Any]:
        """Return `by`, `run`, `result`, `created`, `verification` and `counts`; empty if nothing is recorded."""
        return self._reports(folder) or self._commits.get(_normalized(phase), {}) or self._old(phase)

    def _reports(self, folder: str | None) -> dict[str, Any]:
        reports = self.services.plans.recorded(folder) if folder is not None else {}
        if not reports:
            return {}
        summary, verification = reports.get("SUMMARY", {}), reports.get("VERIFICATION", {})
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

    @functools.cached_property
    def _commits(self) -> dict[str, dict[str, Any]]:
        try:
            commits = self.services.history.trailers_since(None, COMMITS)
        except IdumbError:
            return {}  # other checks report a repository that cannot be read
        recorded = {event.run for event in self.services.log.events(kind="run.started")}
        return from_commits(trailers for _, trailers in commits if trailers.get("Idumb-Run") not in recorded)

    def _old(self, phase: str) -> dict[str, Any]:
        rows = (row for event in self.services.log.events(kind=legacy.IMPORTED) for row in event.payload["phases"])
        claim = {_normalized(str(row["phase"])): row for row in rows}.get(_normalized(phase))
        if claim is None:
            return {}
        counts = {word: len(claim[word]) for word in ("completed", "failed", "blocked")}
        return _row("an old iDumb", None, claim.get("started_at"), counts)


def verified_report(services: Services, contract: Contract) -> dict[str, Any] | None:
    """Return the report in HEAD that says this contract was verified; None if there is none.

    Only a committed report counts, because git records who committed it.
    """
    path = projection_paths.report_path(contract.folder, "VERIFICATION")
    tree = services.history.head_tree()
    entry = services.trees.entry(tree, path) if tree is not None else None
    if entry is None:
        return None
    report = services.plans.report(services.trees.read(entry.oid), "VERIFICATION") or {}
    if report.get("status") != PASSED or report.get("contract_hash") != contract.hash:
        return None
    return {"path": path, "created": str(report.get("created", ""))}


def from_commits(newest_first: Iterable[Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    """Return what commit trailers say, by phase. Work that was rolled back does not count."""
    tasks: dict[str, dict[str, str]] = {}
    for _, trailers in _of_tasks(("", trailers) for trailers in newest_first):
        run = trailers.get("Idumb-Run", "")
        tasks.setdefault(run, {}).setdefault(trailers["Idumb-Task"], run)
    return _by_phase(tasks)


def commits_of_tasks(newest_first: Trailers) -> dict[str, str]:
    """Return by task the newest commit with its work. Work that was rolled back does not count."""
    commits: dict[str, str] = {}
    for commit, trailers in _of_tasks(newest_first):
        commits.setdefault(trailers["Idumb-Task"], commit)
    return commits


def _of_tasks(newest_first: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the commits of tasks that no later commit rolled back."""
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


def _by_phase(tasks: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    runs_by_phase: dict[str, dict[str, str]] = {}
    for run, task_ids in tasks.items():
        for task in task_ids:
            try:
                phase, name = run_lookup.find_task(task)
            except IdumbError:
                continue
            runs_by_phase.setdefault(_normalized(phase), {}).setdefault(name, run)
    rows = runs_by_phase.items()
    return {p: _row("commits", next(iter(name.values())), None, {"completed": len(name)}) for p, name in rows}


def _normalized(phase: str) -> str:
    """Normalize a phase number: `01` and `1` are the same phase."""
    return ".".join(part.lstrip("0") or "0" for part in phase.split("."))


def _row(by: str, run: str | None, created: object, counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "by": by,
        "run": run,
        "result": None,
        "created": str(created or ""),
        "verification": None,
        "counts": {"total": sum(counts.values()), **counts},
    }
