"""Checks of what plans and tasks declare: it is complete, fits the requirements, and does not contradict itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from idumb.domain import paths, wording
from idumb.domain.intake.rule import Case, Hit, Hits, is_declaration, near
from idumb.domain.plans import graph, run_files
from idumb.domain.plans.plan import IRREVERSIBLE, Plan, Task
from idumb.domain.proof import ledger
from idumb.domain.proof.ledger import written_claims

SPECIFIED = ("inputs", "outputs", "errors", "side effects")
"""What every public name must declare, as the plan format spells it."""
_MOST_SECONDS, _MOST_FILES, _MOST_CRITERIA = 2 * 3600, 8, 7
_PRIVATE = re.compile(r"(?:^|\.)[_*]")  # a name, or a part of it
_RANKS = ("preserving", "extending", "modifying", "breaking")
_PROSE = (".md", ".rst", ".adoc", ".png", ".jpg", ".gif", ".svg")
_MARKS = "-*+#>|[] `"
"""What may stand before an id in Markdown."""


def unserved_requirements(case: Case) -> Hits:
    """Find requirements that no task of the phase serves."""
    served = {id for _, task in case.pairs for id in task.requirements}
    for plan in case.contract.plans:
        for id, text in plan.requirements.items():
            if id not in served:
                yield plan, None, Hit(f"{id}: {text}" if text else id, {"id": id})


def unlisted_requirements(case: Case) -> Hits:
    """Find requirements that a plan lists by id alone and that REQUIREMENTS.md does not contain."""
    if case.present is None:
        return
    for plan in case.contract.plans:
        for id, text in plan.requirements.items():
            if not text and not re.search(rf"(?<![\w-]){re.escape(id)}(?![\w-])", case.present.requirements):
                yield plan, None, Hit(id)


def requirement_texts(plan: Plan, ids: Iterable[str], document: str) -> tuple[str, ...]:
    """Return `ID: text` of each requirement; `document` is the text of REQUIREMENTS.md, "" without one."""
    lines = document.splitlines()
    texts = {
        id: plan.requirements.get(id) or next(filter(None, (_after(each, id) for each in lines)), "") for id in ids
    }
    return tuple(f"{id}: {text}" if text else id for id, text in texts.items())


def _after(line: str, id: str) -> str:
    """Return what a line says after an id that it begins with, or "". The id `R-1` does not begin `R-12`."""
    before, _, rest = line.partition(id)
    return "" if before.strip(_MARKS) or rest[:1].isalnum() else rest.strip(" *_`:|-–—")


def no_requirement(_: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find tasks that serve no requirement of a plan that declares some."""
    if plan.requirements and not task.requirements:
        declared = ", ".join(list(plan.requirements)[:8])
        yield Hit("no requirement", {"declared": declared}, accepted=declared)


def unknown_replaced(case: Case, _: Plan, task: Task) -> Iterator[Hit]:
    """Find criteria to replace that are no checks of a task before this one."""
    if not task.replaces:
        return
    earlier = graph.needed_by(case.contract.dependencies, task.id)
    known = [f"{id}/{c.id}" for id in earlier for c in case.contract.tasks[id].acceptance if c.command]
    yield from (near(name, known) for name in task.replaces if name not in known)


def without_field(field: str) -> Callable[[Case, Plan], Iterator[str]]:
    """Return the check for plans without a field; an empty list is a declaration."""

    def find(_: Case, plan: Plan) -> Iterator[str]:
        if is_declaration(plan) and field not in plan.spans:
            yield f"no {field}"

    return find


def no_success_criteria(_: Case, plan: Plan) -> Iterator[str]:
    if is_declaration(plan) and not plan.success_criteria:
        yield "no success criteria"


def no_invariants(case: Case) -> Hits:
    """Find plans that change public interfaces without declaring invariants."""
    for plan in case.contract.plans:
        task = next((task for task in plan.tasks if task.interfaces), None)
        if task is not None and "invariants" not in plan.spans:
            yield plan, task, Hit(f"interfaces in {task.id}, no invariants")


def no_change_class(case: Case) -> Hits:
    """Find tasks that write files without a change class, once for a plan."""
    for plan in filter(is_declaration, case.contract.plans):
        writing = [task for task in plan.tasks if not task.is_human and _may_change_behaviour(case, task)]
        if silent := [task for task in writing if task.change is None]:
            yield plan, silent[0], Hit(wording.listed(task.id for task in silent))


def _may_change_behaviour(case: Case, task: Task) -> bool:
    """Return whether a task writes files; strict mode also expects a class of documentation."""
    written = (claim.path for claim in written_claims(task.files or ()))
    return any(case.strict or not path.lower().endswith(_PROSE) for path in written)


def incomplete_interface(_: Case, __: Plan, task: Task) -> Iterator[Hit]:
    """Find public names that do not declare inputs, outputs, errors and side effects."""
    for interface in task.interfaces:
        missing = ", ".join(name for name in SPECIFIED if name not in interface.properties)
        if missing:
            yield Hit(f"{interface.name} without {missing}", {"name": interface.name, "missing": missing})


def irreversible(_: Case, __: Plan, task: Task) -> Iterator[str]:
    """Find irreversible tasks, whatever is accepted later."""
    if task.rollback.kind == IRREVERSIBLE:
        yield task.rollback.reason


def exceeded_limit(_: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find tasks whose declared files exceed the limits for files or paths. A glob may match one file or none."""
    allowed = task.limits or plan.limits
    if allowed is None:
        return
    declared = [path for path in ledger.written_paths(task.files) if not paths.has_wildcard(path)]
    if allowed.files is not None and len(declared) > allowed.files:
        count = f"{len(declared)} file{'s' * (len(declared) != 1)}"
        yield Hit(f"{count}, at most {allowed.files}", {"what": f"{count}, and its limit is {allowed.files}"})
    strays = [path for path in declared if allowed.paths and not paths.matches_any(path, allowed.paths)]
    if strays:
        yield Hit(strays[0], {"what": f"{wording.listed(strays)}, outside the paths of its limits"})


def contradicted_class(_: Case, __: Plan, task: Task) -> Iterator[Hit]:
    """Find tasks that declare a harmless change of Python, and symbols that make it a higher class.

    A name that is added and removed moves to another file, and may still be found where callers look.
    """
    written = ledger.written_paths(task.files)
    if task.change is None or not written or not all(map(_shows_public_names, written)):
        return
    added, removed = (_names(task, action) for action in ("add", "remove"))
    moved = {_without_modules(name) for name in added} & {_without_modules(name) for name in removed}
    for names, least, does in ((removed, "breaking", "removes"), (added, "extending", "adds")):
        public = [name for name in sorted(names) if not _PRIVATE.search(name) and _without_modules(name) not in moved]
        if public and _RANKS.index(task.change) < _RANKS.index(least):
            words = {"does": f"{does} {wording.listed(public)}", "least": least}
            yield Hit(task.change, words, accepted=least)
            break


def _shows_public_names(path: str) -> bool:
    """Return whether a name that a file defines is public if it looks so: elsewhere, a keyword decides that."""
    is_private = any(part.startswith("_") and part != "__init__.py" for part in path.split("/"))
    return path.endswith(".py") and not is_private and not run_files.has_no_callers(path)


def _without_modules(name: str) -> str:
    """Return a name without the modules before it, which have small letters: `pkg.Config.load` is `Config.load`."""
    parts = name.split(".")
    while len(parts) > 1 and not parts[0][:1].isupper():
        parts.pop(0)
    return ".".join(parts)


def _names(task: Task, action: str) -> frozenset[str]:
    return frozenset(claim.name for claim in task.symbols or () if claim.action == action)


def removed_interface(_: Case, __: Plan, task: Task) -> Iterator[str]:
    """Find interfaces that a task declares, and removes without adding them elsewhere."""
    gone = _names(task, "remove") - _names(task, "add")
    return iter(sorted(gone.intersection(interface.name for interface in task.interfaces)))


def large_tasks(_: Case, __: Plan, task: Task) -> Iterator[Hit]:
    """Find tasks that do too much at once: a long estimate, many files or many criteria."""
    reasons = [
        (field, f"{count} {noun}")
        for field, count, most, noun in (
            ("files", len(ledger.written_claims(task.files or ())), _MOST_FILES, "files"),
            ("acceptance", len(task.acceptance), _MOST_CRITERIA, "criteria"),
        )
        if count > most
    ]
    if task.estimate is not None and task.estimate > _MOST_SECONDS:
        reasons.insert(0, ("estimate", f"an estimate of {task.estimate / 3600:.3g} hours"))
    if reasons and not task.is_human:
        yield Hit(reasons[0][1], {"why": " and ".join(words for _, words in reasons)}, field=reasons[0][0])
