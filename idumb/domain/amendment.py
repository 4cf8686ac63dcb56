"""Amendments: how a person changes a locked plan, what that changes, and which changes the contract forbids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.intake.writes import UnmetClaim
from idumb.domain.plans.plan import PLACES, FileClaim, Plan, Task, plain
from idumb.domain.proof.ledger import written_paths
from idumb.domain.runs.run import RunState, TaskState

ADD = "add"
WIDEN = "widen"
DROP = "drop"
DECIDE = "decide"

UNCHANGEABLE = ("phase", "plan", "mode", "assumptions")
"""Fields of a plan that every completed task relies on."""


class Amendment(Struct, frozen=True):
    """One amendment of a plan.

    - add: `text` is a task in the plan's notation, added after the last one.
    - widen: `claim` is added to the files of `task`.
    - drop: `text` is the dependency to remove from `task`.
    - decide: `text` is added to the plan's decisions, under the name `task`.
    """

    kind: str
    task: str | None = None
    text: str = ""
    claim: FileClaim | None = None


class Forbidden(Struct, frozen=True):
    """Why an amendment is refused: a stable code, and words."""

    code: str
    words: str
    tasks: tuple[str, ...] = ()


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
    def empty(self) -> bool:
        return self == PlanDiff()

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
    touched = {plan.id for plan in plans} | {new.plan_of(task.id).path for task in tasks}
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


def _tasks(old: Contract, new: Contract) -> Iterable[Changed]:
    was, now = old.plan_by_task(), new.plan_by_task()
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


def forbidden(diff: PlanDiff, old: Contract, new: Contract, state: RunState) -> Forbidden | None:
    """Return the first reason why the run cannot continue under `new`, or None.

    Completed tasks and what they rely on cannot change, and no changes in files may lose their task.
    """
    done = [t for t, task_state in state.tasks.items() if is_completed(task_state)]
    # Which check a finished task replaces may be said later: its work is as it was.
    changed = {c.id for c in diff.tasks_changed if list(c.fields) != ["replaces"]}
    removed = {t.id for t in diff.tasks_removed}
    touched = [t for t in done if t in changed or t in removed]
    if touched:
        ids = wording.listed(touched)
        return Forbidden("amend.done", f"{ids} is completed, and completed tasks cannot be amended", tuple(touched))
    held = [(p.id, field) for p in diff.plans_changed for field in p.fields if field in UNCHANGEABLE]
    if held:
        path, field = held[0]
        return Forbidden(f"amend.{field}", f"{path} changes its {field}, on which the completed tasks rely")
    if state.attempted and diff.plans_removed:
        return Forbidden(
            "amend.plan-removed",
            f"{diff.plans_removed[0]} is gone, but it is part of the plan that this run was approved with",
        )
    return _orphans(removed, state) or _before_done(new, old, done)


class Overlap(Struct, frozen=True):
    """A file of the task `completed` that an added task would also change.

    If `path` is None, `task` repeats its title.
    """

    task: str
    verb: str
    path: str | None
    completed: str

    @property
    def words(self) -> str:
        if self.path is None:
            return f"{self.task} has the same title as {self.completed}, which is completed"
        return f"{self.task} would {self.verb} {self.path}, which the completed task {self.completed} produced"


def overlaps(diff: PlanDiff, new: Contract, state: RunState) -> tuple[Overlap, ...]:
    """Return files of completed tasks that added tasks would change, and completed tasks that they repeat."""
    owner: dict[str, str] = {}
    titles: dict[str, str] = {}
    for id, task_state in state.tasks.items():
        if is_completed(task_state) and id in new.tasks:
            owner |= dict.fromkeys((*written_paths(new.tasks[id].files), *task_state.work.touched), id)
            titles[wording.folded(new.tasks[id].title)] = id
    overlapping: list[Overlap] = []
    for task in diff.tasks_added:
        again = titles.get(wording.folded(task.title))
        overlapping += [Overlap(task.id, "repeat", None, again)] if again is not None else []
        changes = ((claim.verb, path) for claim in task.files or () for path in (claim.path, claim.target))
        overlapping += [
            Overlap(task.id, verb, path, owner[path]) for verb, path in changes if verb != "read" and path in owner
        ]
    return tuple(overlapping)


def conflict_with_completed(overlapping: Iterable[Overlap], unmet: Iterable[UnmetClaim]) -> Forbidden | None:
    """Return why an added task cannot succeed next to completed work, or None."""
    by_place = {(entry.task, entry.path): entry.completed for entry in overlapping}
    for entry in unmet:
        done = by_place.get((entry.task, entry.path))
        if done is not None:
            obstacle = "already exists" if entry.exists else "no longer exists"
            words = f"{entry.task} would {entry.claim.verb} {entry.path}, which {obstacle} because {done} is completed"
            return Forbidden("amend.against-done", words, (entry.task,))
    return None


def is_completed(task: TaskState) -> bool:
    """Whether the task is completed, or only the record of its completion is missing."""
    return task.status in outcome.DONE or task.intended


def _orphans(gone: Iterable[str], state: RunState) -> Forbidden | None:
    """Refuse to remove a task that changed files, because its changes would belong to no task."""
    attempted = [t for t in gone if t in state.tasks and (state.tasks[t].work.touched or state.tasks[t].effect)]
    if not attempted:
        return None
    return Forbidden(
        "amend.attempted", f"{', '.join(attempted)} was attempted and left changes in the files", tuple(attempted)
    )


def _before_done(new: Contract, old: Contract, done: Iterable[str]) -> Forbidden | None:
    """Refuse to make a completed task depend on one that is not."""
    completed = frozenset(done)
    for task in completed:
        late = [d for d in new.dependencies[task] if d not in completed and d not in old.dependencies[task]]
        if late:
            words = f"{task} is completed, but the amended plan makes it depend on {late[0]}, which is not"
            return Forbidden("amend.done", words, (task,))
    return None


def tasks_to_reset(diff: PlanDiff, state: RunState) -> tuple[str, ...]:
    """Return the failed and waiting tasks whose text changes; they can be retried."""
    changed = {c.id for c in diff.tasks_changed}
    stuck = (outcome.FAILED, outcome.WAITING)
    return tuple(t for t, task_state in state.tasks.items() if t in changed and task_state.status in stuck)


def running_tasks(diff: PlanDiff, state: RunState) -> tuple[str, ...]:
    """Return the interrupted tasks whose text changes; idumb records what they left before it amends."""
    changed = {c.id for c in diff.tasks_changed} | {t.id for t in diff.tasks_removed}
    return tuple(t for t, task_state in state.tasks.items() if t in changed and task_state.attempt.running)
