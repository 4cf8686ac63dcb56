"""Work that was done elsewhere: told by reports, by commits or by an old iDumb, witnessed by nobody here.

Shown, never counted: no task is done because of it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from idumb.app.contract import legacy_claims
from idumb.app.core import projection_paths, run_lookup
from idumb.app.core.services import Services
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError

PASSED = "passed"

# A few milliseconds for each thousand; who wants more has the reports, or `idumb doctor`.
_COMMITS = 5000


@dataclass(frozen=True)
class OutsideWork:
    """Asked for each phase of one view; what is dear is looked up once."""

    services: Services

    def of(self, phase: str, folder: str | None) -> dict[str, Any]:
        """`by`, `run`, `result`, `created`, `verification`, `counts`; empty where nothing is told."""
        return self._reports(folder) or self._commits.get(legacy_claims.plain(phase), {}) or self._old(phase)

    def _reports(self, folder: str | None) -> dict[str, Any]:
        found = self.services.plans.recorded(folder) if folder is not None else {}
        if not found:
            return {}
        summary, verification = found.get("SUMMARY", {}), found.get("VERIFICATION", {})
        return {
            "by": "its reports",
            "run": summary.get("run"),
            "result": summary.get("result"),
            "created": str(summary.get("created", "")),
            "verification": verification.get("status"),
            "counts": {k.removeprefix("tasks_"): v for k, v in summary.items() if str(k).startswith("tasks_")},
        }

    @functools.cached_property
    def _commits(self) -> dict[str, dict[str, Any]]:
        try:
            found = self.services.history.trailers_since(None, _COMMITS)
        except IdumbError:
            return {}  # a repository that cannot be read is told of elsewhere
        known = {event.run for event in self.services.log.events(kind="run.started")}
        return from_commits(trailers for _, trailers in found if trailers.get("Idumb-Run") not in known)

    def _old(self, phase: str) -> dict[str, Any]:
        told = {legacy_claims.plain(name): row for name, row in legacy_claims.by_phase(self.services).items()}.get(
            legacy_claims.plain(phase)
        )
        if told is None:
            return {}
        counts = {word: len(told[word]) for word in ("completed", "failed", "blocked")}
        return _row("an old iDumb", None, told.get("started_at"), counts)


def verified_report(services: Services, contract: Contract) -> dict[str, Any] | None:
    """What HEAD's report says where it says that this very contract was verified; None where it does not.

    Only what is committed is looked at: a report that was written and not committed is nobody's word.
    """
    path = projection_paths.report_path(contract.folder, "VERIFICATION")
    tree = services.history.head_tree()
    found = services.trees.entry(tree, path) if tree is not None else None
    if found is None:
        return None
    told = services.plans.report(services.trees.read(found.oid), "VERIFICATION") or {}
    if told.get("status") != PASSED or told.get("contract_hash") != contract.hash:
        return None
    return {"path": path, "created": str(told.get("created", ""))}


def from_commits(newest_first: Iterable[Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    """Phase to what the trailers of commits say; work that was rolled back does not count."""
    undone: dict[str, int] = {}
    cut: dict[str, str] = {}
    tasks: dict[str, dict[str, str]] = {}
    for trailers in newest_first:
        run, task = trailers.get("Idumb-Run", ""), trailers.get("Idumb-Task")
        back = "Idumb-Rollback" in trailers or "Idumb-Undo" in trailers
        if back and undone.get(run):
            undone[run] -= 1
        elif "Idumb-Undo" in trailers:
            undone[run] = undone.get(run, 0) + 1
        elif "Idumb-Rollback" in trailers:
            cut.setdefault(run, trailers["Idumb-Rollback"])
        elif task is not None and _survives(cut, run, task):
            tasks.setdefault(run, {}).setdefault(task, run)
    return _by_phase(tasks)


def _survives(cut: dict[str, str], run: str, task: str) -> bool:
    """Whether a task's commit lies before the one that its run was rolled back to."""
    if cut.get(run) == task:
        del cut[run]
    return run not in cut


def _by_phase(tasks: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, str]] = {}
    for run, named in tasks.items():
        for task in named:
            try:
                phase, known = run_lookup.find_task(task)
            except IdumbError:
                continue
            found.setdefault(legacy_claims.plain(phase), {}).setdefault(known, run)
    rows = found.items()
    return {p: _row("commits", next(iter(known.values())), None, {"completed": len(known)}) for p, known in rows}


def _row(by: str, run: str | None, created: object, counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "by": by,
        "run": run,
        "result": None,
        "created": str(created or ""),
        "verification": None,
        "counts": {"total": sum(counts.values()), **counts},
    }
