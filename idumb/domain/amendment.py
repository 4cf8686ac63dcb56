"""Amendments: how a person changes a locked plan, and which changes the contract forbids."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.intake.writes import UnmetClaim
from idumb.domain.plan_diff import PlanDiff
from idumb.domain.plans.plan import STRICT, FileClaim
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
    if new.mode == STRICT != state.mode:  # by a new plan
        return Forbidden("amend.mode", "the phase would be strict, and its run is guided")
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
