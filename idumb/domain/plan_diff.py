"""The difference between two contracts of a phase, by tasks and fields instead of lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from idumb.domain.contract import Contract
from idumb.domain.plans.plan import PLACES, Plan, Task, plain
from idumb.lazy_dataclass import dataclass

_OF_FILE = frozenset({"path", "sha256", "tasks"})


@dataclass(frozen=True, slots=True)
class FieldChange:
    """`old` and `new` are plain JSON values."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class TaskChange:
    id: str
    title: str
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class PlanChange:
    """Changed fields of a plan itself, not of its tasks."""

    path: str
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """Tasks by id, plans by path.

    - `order`: the old and the new order of the common tasks, None if it is the same.
    - `texts`: plans whose bytes differ without a relevant change.
    - `configuration`: only the settings differ.
    """

    plans_added: tuple[str, ...] = ()
    plans_removed: tuple[str, ...] = ()
    plans_changed: tuple[PlanChange, ...] = ()
    tasks_added: tuple[Task, ...] = ()
    tasks_removed: tuple[Task, ...] = ()
    tasks_changed: tuple[TaskChange, ...] = ()
    order: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    texts: tuple[str, ...] = ()
    configuration: bool = False

    @property
    def empty(self) -> bool:
        return self == PlanDiff()

    @property
    def changes_tasks(self) -> bool:
        """Whether the difference changes what runs: anything except texts and configuration."""
        return PlanDiff(texts=self.texts, configuration=self.configuration) != self


def compare(old: Contract, new: Contract, *, configuration: bool = False) -> PlanDiff:
    """Compare two contracts of the same phase."""
    before = {plan.path: plan for plan in old.plans}
    after = {plan.path: plan for plan in new.plans}
    common = [path for path in after if path in before]
    plans = tuple(
        PlanChange(path, changes) for path in common if (changes := _differences(before[path], after[path], _OF_FILE))
    )
    tasks = tuple(_tasks(old, new))
    touched = {plan.path for plan in plans} | {new.plan_of(task.id).path for task in tasks}
    added = tuple(new.tasks[t] for t in new.order if t not in old.tasks)
    removed = tuple(old.tasks[t] for t in old.order if t not in new.tasks)
    touched |= {new.plan_of(task.id).path for task in added} | {old.plan_of(task.id).path for task in removed}
    order = _order(old, new)
    unseen = (path for path in common if before[path].sha256 != after[path].sha256 and path not in touched)
    return PlanDiff(
        tuple(path for path in after if path not in before),
        tuple(path for path in before if path not in after),
        plans,
        added,
        removed,
        tasks,
        order,
        tuple(unseen) if order is None else (),
        configuration,
    )


def _tasks(old: Contract, new: Contract) -> Iterable[TaskChange]:
    was, now = old.plan_by_task(), new.plan_by_task()
    for task in new.order:
        if task not in old.tasks:
            continue
        changes = _differences(old.tasks[task], new.tasks[task], frozenset())
        if was[task].path != now[task].path:
            changes = (FieldChange("plan", was[task].path, now[task].path), *changes)
        if changes:
            yield TaskChange(task, new.tasks[task].title, changes)


def _differences(old: Plan | Task, new: Plan | Task, left_out: frozenset[str]) -> tuple[FieldChange, ...]:
    names = [f.name for f in fields(old) if f.name not in PLACES | left_out]
    pairs = ((name, plain(getattr(old, name)), plain(getattr(new, name))) for name in names)
    return tuple(FieldChange(name, was, now) for name, was, now in pairs if was != now)


def _order(old: Contract, new: Contract) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    was = tuple(t for t in old.order if t in new.tasks)
    now = tuple(t for t in new.order if t in old.tasks)
    return None if was == now else (was, now)


def as_dict(diff: PlanDiff) -> dict[str, Any]:
    """Return the form that `idumb check-plan --diff --json` prints."""
    return {
        "plans": {
            "added": list(diff.plans_added),
            "removed": list(diff.plans_removed),
            "changed": [{"path": p.path, "fields": _rows(p.fields)} for p in diff.plans_changed],
            "text_only": list(diff.texts),
        },
        "tasks": {
            "added": [{"id": t.id, "title": t.title} for t in diff.tasks_added],
            "removed": [{"id": t.id, "title": t.title} for t in diff.tasks_removed],
            "changed": [{"id": t.id, "title": t.title, "fields": _rows(t.fields)} for t in diff.tasks_changed],
        },
        "order": None if diff.order is None else {"old": list(diff.order[0]), "new": list(diff.order[1])},
        "configuration": diff.configuration,
    }


def _rows(changes: Iterable[FieldChange]) -> list[dict[str, Any]]:
    return [{"field": change.field, "old": change.old, "new": change.new} for change in changes]


def lines(diff: PlanDiff) -> tuple[str, ...]:
    """Return the difference for people, one line each; texts of the plan are not escaped."""
    rows = [f"plan added: {path}" for path in diff.plans_added]
    rows += [f"plan removed: {path}" for path in diff.plans_removed]
    for plan in diff.plans_changed:
        rows += [f"{plan.path}: {line}" for change in plan.fields for line in _words(change)]
    rows += [f"task added: {task.id} {task.title}" for task in diff.tasks_added]
    rows += [f"task removed: {task.id} {task.title}" for task in diff.tasks_removed]
    for changed in diff.tasks_changed:
        rows += [f"{changed.id}: {line}" for change in changed.fields for line in _words(change)]
    if diff.order is not None:
        rows.append(f"order: {_moved(*diff.order)}")
    rows += [f"{path}: only its text differs" for path in diff.texts]
    rows += ["the configuration differs"] if diff.configuration else []
    return tuple(rows)


def _moved(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    first = next(i for i, (was, now) in enumerate(zip(old, new, strict=True)) if was != now)
    return f"{new[first]} runs where {old[first]} did"


def _words(change: FieldChange) -> Iterable[str]:
    """Describe lists and objects by added and removed entries, and other values as old and new."""
    label = change.field.replace("_", " ")
    was, now = _parts(change.old), _parts(change.new)
    if was is None or now is None:
        yield f"{label}: {_short(change.old)} -> {_short(change.new)}"
        return
    removed, added = [p for p in was if p not in now], [p for p in now if p not in was]
    yield from (f"{label} - {part}" for part in removed)
    yield from (f"{label} + {part}" for part in added)
    if not removed and not added:
        yield f"{label}: the order differs"


def _parts(value: Any) -> list[str] | None:
    if isinstance(value, list):
        return [_entry(item) for item in value]
    if isinstance(value, Mapping):
        return [f"{key}: {_short(item)}" for key, item in value.items()]
    return [] if value is None else None


def _entry(value: Any) -> str:
    """Describe an entry of a list; an object by its values: `create a.py`, `AC-1 it is there check test -e a.py`."""
    if not isinstance(value, Mapping):
        return _short(value)
    return " ".join(_short(item) for item in value.values() if item not in (None, [], {}, "", False))


def _short(value: Any) -> str:
    """Describe a value in one phrase; an object by its values."""
    if value is None or value in ([], {}, ""):
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(
            f"{key} {_short(item)}" for key, item in value.items() if item not in (None, [], {}, "", False)
        )
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    return str(value)
