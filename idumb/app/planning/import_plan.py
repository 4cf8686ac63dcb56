"""Import the plan of another tool as a plan of idumb, and import it again after its source changed."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Result, Services, fields, same_command, write_forced
from idumb.app.planning import draft_plan, phase_context
from idumb.app.planning.draft_plan import Draft, PlanFile
from idumb.app.planning.phase_context import PhaseLocation
from idumb.app.review import amend
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import amendment, wording
from idumb.domain.action import Action, Choice, Decision
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import errors
from idumb.domain.plans import imported
from idumb.domain.plans.imported import Target
from idumb.domain.plans.plan import SOURCE_DIGEST, STRICT, Plan
from idumb.domain.plans.source_tasks import SourcePlan

_MARK = b"\nx-source:"


class Request(Struct, frozen=True):
    """Flags of `import`. `path` is relative to the repository, or absolute outside of it."""

    path: str
    kind: str | None = None
    phase: str | None = None
    tag: str = ""
    yes: bool = False


class Imported(Struct, frozen=True):
    """A plan that was imported, with its present text, and the tool, path and tag of its source."""

    plan: Plan
    text: str
    tool: str
    path: str
    tag: str


def run(services: Services, request: Request, who: str) -> Result:
    """Write the plan; if it was imported before, show what changed in the source and, after a yes, adopt it."""
    source, earlier = _found(services, request)
    return _written(services, request, source) if earlier is None else _updated(services, request, source, earlier, who)


def _found(services: Services, request: Request) -> tuple[SourcePlan, Imported | None]:
    """Return the source, and the plan that was imported from it. It is read again in the format of that import."""
    known = tuple(plans(services))
    kind = request.kind or next((each.tool for each in known if each.path == request.path), None)
    source = services.plans.source(request.path, kind, request.tag)
    own = next((each for each in known if (each.path, each.tag) == (source.path, source.tag)), None)
    earlier = own or next((each for each in known if _is_moved(services, each, source)), None)
    if earlier is None or earlier.tool == source.kind:
        return source, earlier
    if request.kind is None:  # a folder was named, and its file was recognized as something else
        return services.plans.source(source.path, earlier.tool, request.tag), earlier
    words = f"{source.path} was imported as {earlier.tool} into {earlier.plan.path}."
    details = {"path": earlier.plan.path, "tool": earlier.tool}
    raise Refusal("import.other-format", words, hint=Action.of("import", request.path), details=details)


def _is_moved(services: Services, earlier: Imported, source: SourcePlan) -> bool:
    """Whether the file of an import is gone, and most of its tasks are in the source as they were."""
    now = imported.pairs(earlier.plan, source)
    tasks = [task for task in earlier.plan.tasks if task.id in now]
    same = [task for task in tasks if str(task.extra.get(SOURCE_DIGEST)).startswith(now[task.id].digest())]
    is_most = len(same) * 2 > len(earlier.plan.tasks) and earlier.tool == source.kind
    return is_most and not services.named_files.existing([earlier.path])


def plans(services: Services) -> Iterator[Imported]:
    """Yield every imported plan of the repository."""
    files = (row for _, folder in services.plans.phases() for row in services.plans.plans(folder) if _MARK in row[1])
    for path, data in files:
        parsed = services.plans.parse(data, path)
        plan = parsed.plan or parsed.draft
        value = plan.extra.get("x-source") if plan is not None else None
        if plan is not None and isinstance(value, dict):
            yield Imported(plan, parsed.text, *(str(value.get(name) or "") for name in ("tool", "path", "tag")))


def _target(services: Services, where: PhaseLocation, plan: str, source: SourcePlan, own: Mapping[str, str]) -> Target:
    taken: list[str] = []
    for path, data in services.plans.plans(where.folder):
        parsed = services.plans.parse(data, path)
        present = parsed.plan or parsed.draft
        taken += [task.id for task in present.tasks] if present is not None else []
    ids = imported.ids(where.phase, source.tasks, own, taken)
    return Target(where.phase, plan, ids, lambda path: bool(services.named_files.existing([path])))


def _written(services: Services, request: Request, source: SourcePlan) -> Result:
    where = _location(services, request, source)
    file = draft_plan.next_plan(services, where)
    target = _target(services, where, file.id, source, {})
    text = imported.text(source, target)
    draft = draft_plan.judge(services, file, text)
    _require_readable(draft, source)
    with operation.recorded(services, "import"):
        draft_plan.write(services, draft)
    data = _data(source, target, draft)
    return Result({**data, "written": True, "changes": [], "diff": "", "next": [Action.of("check-plan", where.phase)]})


def _location(services: Services, request: Request, source: SourcePlan) -> PhaseLocation:
    """Return the phase of `--to`, which may be new; else the first phase if it has no plan, else one after the last."""
    if request.phase is not None:
        try:
            return phase_context.locate(services, request.phase)
        except InputError as problem:
            if problem.code != "phase.not-found" or not re.fullmatch(r"\d+[A-Za-z]?(?:\.\d+)*", request.phase):
                raise
    first = next(iter(phase_context.numbers(services)), "") if request.phase is None else ""
    if re.match(r"\d", first) and not services.plans.plans((where := phase_context.locate(services, first)).folder):
        return where
    phase = request.phase or phase_context.next_number(services)
    return PhaseLocation(phase, f".planning/phases/{phase}", source.title)


def _require_readable(draft: Draft, source: SourcePlan) -> None:
    """Refuse to write a text that idumb could not read again. What a person must add is no obstacle."""
    if draft.parsed.plan is None:
        why, found = f"{source.path} cannot be written into {draft.path}.", errors(draft.parsed.findings)
        raise InputError("import.cannot-write", why, findings=found, hint=f"Correct {draft.path}")


def _data(source: SourcePlan, target: Target, draft: Draft) -> dict[str, Any]:
    """Return the answer. People may have added the files and checks that an import lacks."""
    plan = draft.parsed.plan or draft.parsed.draft
    missing = {task.id: list(imported.missing(task)) for task in plan.tasks} if plan is not None else {}
    own = ((target.ids[task.id], task) for task in source.tasks)
    tasks = [
        {"id": id, "source_id": task.id, **fields(task, "title", "done", "inferred"), "missing": missing.get(id, [])}
        for id, task in own
    ]
    return {
        "phase": target.phase,
        "path": draft.path,
        "kind": source.kind,
        "source": source.path,
        "tasks": tasks,
        "unread": [{"path": name, "line": line, "text": text} for name, line, text in source.unread],
        "findings": [finding.as_dict() for finding in errors(draft.findings)],
    }


def _updated(services: Services, request: Request, source: SourcePlan, earlier: Imported, who: str) -> Result:
    plan = earlier.plan
    where = phase_context.locate(services, plan.phase)
    if request.phase is not None and not services.plans.same_phase(request.phase, plan.phase):
        why = f"{source.path} was imported as {plan.path}, which is not in phase {request.phase}."
        raise Refusal("import.elsewhere", why, hint=f"idumb import {shlex.quote(request.path)} updates that plan")
    own = {current.id: id for id, current in imported.pairs(plan, source).items()}
    target = _target(services, where, plan.plan, source, own)
    state = run_lookup.latest_run(services, plan.phase)
    completed = {id for id, task in state.tasks.items() if amendment.is_completed(task)} if state is not None else ()
    text, changes = imported.updated(earlier.text, plan, source, target, completed)
    draft = draft_plan.judge(services, PlanFile(where, plan.plan, plan.path), text)
    data = {**_data(source, target, draft), "changes": list(changes), "diff": "", "written": False}
    if text == earlier.text:
        return Result({**data, "next": [Action.of("check-plan", plan.phase)]})
    _require_readable(draft, source)
    lines = (earlier.text.splitlines(keepends=True), text.splitlines(keepends=True))
    data["diff"] = "".join(difflib.unified_diff(*lines, f"a/{plan.path}", f"b/{plan.path}"))
    agreeing = same_command(services, "--yes")
    what = f"Change {plan.path} as {source.path} changed?"
    question = Decision.confirmation(
        "source.change", "plan", what, "Nothing else changes.", wording.truncate(data["diff"]).split("\n"),
        Choice("yes", "write it", "the file changes as shown", agreeing), "write nothing", "nothing changes",
    )  # fmt: skip
    if not request.yes:
        words = "Nothing was written: the change needs your confirmation."
        details = {"diff": data["diff"], "command": agreeing}
        actions.require_yes(services, question, Refusal("import.not-confirmed", words, details=details))
    ways = [Action.of("check-plan", plan.phase)]
    if state is None:
        _write(services, plan, earlier.text, text)
    elif data["findings"] or STRICT in (state.mode, plan.mode):
        preconditions.require_settled(state)
        _write(services, plan, earlier.text, text)
        ways += [Action.of("approve", plan.phase)] if STRICT in (state.mode, plan.mode) else []
        ways.append(Action.of("amend", plan.phase, "--from-file"))
    else:
        rewrite = amend.Rewrite(plan.path, _bytes(earlier.text), _bytes(text))
        change = amend.Request(plan.phase, rewrite=rewrite, why="the source changed", yes=True)
        amend.amend(services, change, who)
        ways = [Action.of("resume", plan.phase)]
    return Result({**data, "written": True, "next": ways})


def _write(services: Services, plan: Plan, before: str, text: str) -> None:
    """Write the changed plan. A run that cannot adopt it, because something must be added first, waits for `amend`."""
    with operation.recorded(services, "import"):
        if services.plans.read(plan.path) != _bytes(before):
            why = f"{plan.path} changed while you were asked; nothing was written."
            raise Refusal("import.changed", why, hint=same_command(services))
        write_forced(services, plan.path, text)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
