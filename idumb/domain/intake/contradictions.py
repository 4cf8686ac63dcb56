"""Checks of what a task declares: it exceeds its limits, its change class, its interfaces or what one task can do."""

from __future__ import annotations

from collections.abc import Iterator

from idumb.domain import paths, wording
from idumb.domain.intake.rule import Case, Hit
from idumb.domain.plans import run_files
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.proof import ledger

_MOST_SECONDS, _MOST_FILES, _MOST_CRITERIA = 2 * 3600, 8, 7
_RANKS = ("preserving", "extending", "modifying", "breaking")


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
        public = [name for name in sorted(names) if _is_public(name) and _without_modules(name) not in moved]
        if public and _RANKS.index(task.change) < _RANKS.index(least):
            words = {"does": f"{does} {wording.listed(public)}", "least": least}
            yield Hit(task.change, words, accepted=least)
            break


def _shows_public_names(path: str) -> bool:
    """Return whether a name that a file defines is public if it looks so: elsewhere, a keyword decides that."""
    is_private = any(part.startswith("_") and part != "__init__.py" for part in path.split("/"))
    return path.endswith(".py") and not is_private and not run_files.has_no_callers(path)


def _is_public(name: str) -> bool:
    return not any(part.startswith(("_", "*")) for part in name.split("."))


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


def large(_: Case, __: Plan, task: Task) -> Iterator[Hit]:
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
