"""Mark completed tasks as done in the files that their plans were imported from."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.planning import import_plan
from idumb.app.planning.import_plan import Imported
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import outcome
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans import imported
from idumb.domain.plans.imported import Marked
from idumb.lazy_dataclass import dataclass

_Completed = dict[tuple[str, str], list[tuple[Imported, Collection[str]]]]


@dataclass(frozen=True, slots=True)
class Request:
    """Flags of `export --done`. `phase` None means every imported plan."""

    phase: str | None = None
    yes: bool = False


def run(services: Services, request: Request) -> Result:
    """Show the marks that would change and, after a yes, write them. Nothing else in the files changes."""
    preconditions.require_initialised(services)
    plans = [p for p in import_plan.plans(services) if _wanted(services, request, p)]
    if not plans:
        raise InputError(
            "export.nothing-imported",
            "No plan was imported from another tool." if request.phase is None
            else f"No plan of phase {request.phase} was imported from another tool.",
            hint="idumb import PATH imports one",
        )  # fmt: skip
    completed = _completed(services, plans)
    marked = _marked(services, completed)
    files, unmarked = _files(marked), _unmarked(marked)
    data: dict[str, Any] = {
        "completed": sum(len(ids) for rows in completed.values() for _, ids in rows),
        "files": [{"path": path, "tasks": list(ids)} for path, _, _, ids in files],
        "unmarked": unmarked,
        "diff": "".join(import_plan.difference(before, after, path) for path, before, after, _ in files),
        "written": False,
    }
    if not files:
        return Result({**data, "next": ["idumb status"]})
    words = ["idumb", "export", "--done", *([request.phase] if request.phase else [])]
    count = sum(len(ids) for *_, ids in files)
    what = f"Mark {count} task{'s' * (count != 1)} as done?"
    again = shlex.join([*words, "--yes"])
    if not (request.yes or import_plan.agreed(services, what, data["diff"], again)):
        raise Refusal(
            "export.not-confirmed",
            "Nothing was written: the marks need your confirmation.",
            hint=again,
            details={"diff": data["diff"], "command": again},
        )
    with operation.owned(services, "export") as owned:
        owned.record()
        if _files(_marked(services, completed)) != files:  # the question may have been open for hours
            raise Refusal(
                "export.changed",
                "The source changed while you were asked; nothing was written.",
                hint=shlex.join(words),
            )
        for path, _, after, _ in files:
            services.reports.write_source(path, after)
    return Result({**data, "written": True, "next": []})


def _wanted(services: Services, request: Request, each: Imported) -> bool:
    return request.phase is None or services.plans.same_phase(each.plan.phase, request.phase)


def _completed(services: Services, plans: Sequence[Imported]) -> _Completed:
    """Return the plans with completed tasks, and these, by tool and path of the source. One may have several plans."""
    completed: _Completed = {}
    for each in plans:
        state = run_lookup.latest_run(services, each.plan.phase)
        states = state.tasks if state is not None else {}
        tasks = [task.id for task in each.plan.tasks if imported.SOURCE_ID in task.extra and task.id in states]
        done = [id for id in tasks if states[id].status in outcome.DONE]
        if done:
            completed.setdefault((each.tool, each.path), []).append((each, done))
    return completed


def _marked(services: Services, completed: _Completed) -> dict[str, Marked | InputError]:
    """Return the marks of each source by its path, or why it gets none."""
    marked: dict[str, Marked | InputError] = {}
    for (kind, path), rows in completed.items():
        try:
            digests: dict[str, dict[str, str]] = {}
            for each, ids in rows:
                source = services.plans.source(path, kind, each.tag)
                digests.setdefault(each.tag, {}).update(imported.digests(each.plan, source, ids))
            marked[path] = services.plans.marked(path, kind, digests)
        except InputError as problem:  # a source that was moved away must not keep the others from their marks
            marked[path] = problem
    return marked


def _files(marked: Mapping[str, Marked | InputError]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [row for each in marked.values() if isinstance(each, Marked) for row in each.files]


def _unmarked(marked: Mapping[str, Marked | InputError]) -> list[dict[str, Any]]:
    """Return what idumb does not mark, with the reason."""
    rows: list[dict[str, Any]] = []
    for path, each in marked.items():
        if isinstance(each, InputError):
            rows.append({"path": path, "tasks": [], "reason": each.message})
            continue
        again = "changed since the import: "
        reasons = (
            *((ids, again + import_plan.command(path, tag)) for tag, ids in each.changed.items()),
            (each.unclear, "several tasks have this id"),
            (each.markless, "this format has no mark for it; mark it in its own tool"),
        )
        for tasks, reason in reasons:
            rows += [{"path": path, "tasks": list(tasks), "reason": reason}] if tasks else []
    return rows
