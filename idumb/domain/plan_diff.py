"""The difference of two contracts of a phase: which plans and tasks changed, field by field, as data and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from idumb.domain.contract import Contract
from idumb.domain.plans.plan import PLACES, Plan, Task, plain

_NOTHING: tuple[Any, ...] = (None, [], {}, "", False)
Fields = Mapping[str, tuple[Any, Any]]
"""The changed fields: old and new, as plain JSON values."""


class Changed(Struct, frozen=True):
    """A task, or a plan itself without its tasks: `id` is the task's id or the plan's path."""

    id: str
    title: str
    fields: Fields


class PlanDiff(Struct, frozen=True):
    """Tasks by id, plans by path.

    - `order`: the old and the new order of the common tasks, None if it is the same.
    - `texts`: plans whose bytes differ without a relevant change.
    - `configuration`: only the settings differ.
    """

    plans_added: tuple[str, ...] = ()
    plans_removed: tuple[str, ...] = ()
    plans_changed: tuple[Changed, ...] = ()
    tasks_added: tuple[Task, ...] = ()
    tasks_removed: tuple[Task, ...] = ()
    tasks_changed: tuple[Changed, ...] = ()
    order: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    texts: tuple[str, ...] = ()
    configuration: bool = False

    @property
    def changes_tasks(self) -> bool:
        """Whether the difference changes what runs: anything except texts and configuration."""
        return PlanDiff(texts=self.texts, configuration=self.configuration) != self

    def as_dict(self) -> dict[str, Any]:
        """Return the form that `idumb check-plan --diff --json` prints."""
        return {
            "plans": {
                "added": list(self.plans_added),
                "removed": list(self.plans_removed),
                "changed": [{"path": p.id, "fields": _rows(p.fields)} for p in self.plans_changed],
                "text_only": list(self.texts),
            },
            "tasks": {
                "added": [{"id": t.id, "title": t.title} for t in self.tasks_added],
                "removed": [{"id": t.id, "title": t.title} for t in self.tasks_removed],
                "changed": [{"id": t.id, "title": t.title, "fields": _rows(t.fields)} for t in self.tasks_changed],
            },
            "order": None if self.order is None else {"old": list(self.order[0]), "new": list(self.order[1])},
            "configuration": self.configuration,
        }

    def lines(self) -> tuple[str, ...]:
        """Return the difference for people, one line each; texts of the plan are not escaped."""
        rows = [f"plan added: {path}" for path in self.plans_added]
        rows += [f"plan removed: {path}" for path in self.plans_removed]
        rows += _lines(self.plans_changed)
        rows += [f"task added: {task.id} {task.title}" for task in self.tasks_added]
        rows += [f"task removed: {task.id} {task.title}" for task in self.tasks_removed]
        rows += _lines(self.tasks_changed)
        if self.order is not None:
            rows.append(f"order: {_moved(*self.order)}")
        rows += [f"{path}: only its text differs" for path in self.texts]
        rows += ["the configuration differs"] if self.configuration else []
        return tuple(rows)


def compare(old: Contract, new: Contract, *, configuration: bool = False) -> PlanDiff:
    """Compare two contracts of the same phase."""
    before = {plan.path: plan for plan in old.plans}
    after = {plan.path: plan for plan in new.plans}
    common = [path for path in after if path in before]
    pairs = ((path, _differences(before[path], after[path], frozenset({"path", "sha256", "tasks"}))) for path in common)
    plans = tuple(Changed(path, after[path].title, changes) for path, changes in pairs if changes)
    tasks = tuple(_tasks(old, new))
    touched = {plan.id for plan in plans} | {new.plan_of[task.id].path for task in tasks}
    added = tuple(new.tasks[t] for t in new.order if t not in old.tasks)
    removed = tuple(old.tasks[t] for t in old.order if t not in new.tasks)
    touched |= {new.plan_of[task.id].path for task in added} | {old.plan_of[task.id].path for task in removed}
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


def _tasks(old: Contract, new: Contract) -> Iterable[Changed]:
    was, now = old.plan_of, new.plan_of
    for id in new.order:
        if id in old.tasks:
            moved = {} if was[id].path == now[id].path else {"plan": (was[id].path, now[id].path)}
            changes = moved | _differences(old.tasks[id], new.tasks[id])
            if changes:
                yield Changed(id, new.tasks[id].title, changes)


def _differences(
    old: Plan | Task, new: Plan | Task, left_out: frozenset[str] = frozenset()
) -> dict[str, tuple[Any, Any]]:
    names = [name for name in old.__struct_fields__ if name not in PLACES | left_out]
    pairs = ((name, plain(getattr(old, name)), plain(getattr(new, name))) for name in names)
    return {name: (was, now) for name, was, now in pairs if was != now}


def _order(old: Contract, new: Contract) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    was = tuple(t for t in old.order if t in new.tasks)
    now = tuple(t for t in new.order if t in old.tasks)
    return None if was == now else (was, now)


def _rows(changes: Fields) -> list[dict[str, Any]]:
    return [{"field": field, "old": old, "new": new} for field, (old, new) in changes.items()]


def _moved(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    first = next(i for i, (was, now) in enumerate(zip(old, new, strict=True)) if was != now)
    return f"{new[first]} runs where {old[first]} did"


def _lines(changes: Iterable[Changed]) -> list[str]:
    rows = ((one.id, words) for one in changes for field in one.fields for words in _words(field, *one.fields[field]))
    return [f"{id}: {words}" for id, words in rows]


def _words(field: str, old: Any, new: Any) -> Iterable[str]:
    """Describe lists and objects by added and removed entries, and other values as old and new."""
    label, was, now = field.replace("_", " "), _parts(old), _parts(new)
    if was is None or now is None:
        yield f"{label}: {_short(old)} -> {_short(new)}"
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
    return " ".join(_short(item) for item in value.values() if item not in _NOTHING)


def _short(value: Any) -> str:
    """Describe a value in one phrase; an object by its values."""
    if value is None or value in ([], {}, ""):
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_short(item)}" for key, item in value.items() if item not in _NOTHING)
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    return str(value)
