"""What unfinished tasks of a phase's last run left in the files, which a new run restores before it starts.

What a person built, or changed since an attempt ended, is never restored: a new run is refused before it changes
anything. What a killed agent left is restored as `resume` does it, and the report says where it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from idumb.app.contract import carried_tasks, changed_contract
from idumb.app.core import next_actions
from idumb.app.core.services import Services
from idumb.app.worktree import exposed_secrets, task_base, tool_leftovers
from idumb.domain import outcome, paths, wording
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import Refusal
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import TaskState
from idumb.lazy_dataclass import dataclass

CODE = "run.unfinished-work"
_CHANGED = "changed since its last attempt"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What one task left uncommitted: each of `paths` differs from the tree `base`, as in the tree `left` or since."""

    task: TaskState
    base: str
    left: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutBack:
    """Unfinished work of an earlier run, restored before a new run starts."""

    task: str
    paths: tuple[str, ...]


def _of_run(
    services: Services, contract: Contract, before: RunState | None, branch: str | None = None
) -> tuple[Unfinished, ...]:
    """Return what unfinished tasks of the last run left, newest first.

    () if it ran in a clone or on another branch than the new run, which begins on `branch`, by default that of HEAD.
    """
    if before is None or before.workspace != "here" or before.branch != (branch or services.history.head().branch):
        return ()
    found: list[Unfinished] = []
    later: set[str] = set()
    for task_id in sorted(before.attempted, key=before.attempted.__getitem__, reverse=True):
        task = exposed_secrets.found_again(services, before.tasks[task_id])
        if task.status not in outcome.DONE and task.work.base is not None:
            left, touched = _left_by(services, contract, before, task)
            own = [p for p in touched if p not in later and p not in set(task.work.deviations)]
            changed = tuple(p for p in services.history.uncommitted(own) if _differs(services, p, task.work.base, left))
            found.append(Unfinished(task, task.work.base, left, changed))
        later.update(task.work.touched)
    return tuple(found)


def _differs(services: Services, path: str, one: str, other: str) -> bool:
    return services.trees.entry(one, path) != services.trees.entry(other, path)


def _left_by(
    services: Services, contract: Contract, before: RunState, task_state: TaskState
) -> tuple[str, tuple[str, ...]]:
    """Return the tree and the paths that an unfinished task left; a killed one left its declared paths as they are."""
    if task_state.work.left_tree is not None and not task_state.attempt.running:
        return task_state.work.left_tree, task_state.work.touched
    task = contract.tasks.get(task_state.id)
    declared = ledger.written_paths(task.files) if task is not None else ()
    present = services.trees.scan(ledger.named_paths(task.files) if task is not None else ())
    changes = services.trees.changes(task_state.work.base or present, present)
    covered = (c.path for c in changes if paths.matches_any(c.path, declared))
    return present, tool_leftovers.work_only(services, before, covered, present, declared)


def put_back(services: Services, contract: Contract, before: RunState | None) -> tuple[PutBack, ...]:
    """Restore what unfinished tasks of the last run left uncommitted and nobody changed since, newest first."""
    done: list[PutBack] = []
    for left in _of_run(services, contract, before):
        put = tuple(_put_back(services, left))
        done += [PutBack(left.task.id, put)] if put else []
    return tuple(done)


def _put_back(services: Services, left: Unfinished) -> Iterator[str]:
    for path in left.paths:
        if not services.trees.restore(left.base, left.left, (path,)):
            yield path


def require_own(services: Services, contract: Contract, before: RunState | None, branch: str | None) -> None:
    """Refusal `run.unfinished-work` if a new run on this branch would restore what may be a person's work."""
    unfinished = _of_run(services, contract, before, branch)
    if before is None or not unfinished:
        return
    present = services.trees.scan(path for left in unfinished for path in left.paths)
    writes = paths.cover([path for task in contract.tasks.values() for path in ledger.written_paths(task.files)])
    theirs = [
        (left, why, found)
        for left in unfinished
        for why, found in _perhaps_theirs(services, left, present)
        if why != _CHANGED or _is_in_the_way(services, left, present, found, writes)
    ]
    if not theirs:
        return
    named = tuple(dict.fromkeys(path for _, _, found in theirs for path in found))
    tasks = tuple(dict.fromkeys(left.task.id for left, _, _ in theirs))
    same = all(why != _CHANGED for _, why, _ in theirs)
    keeps = f"{task_base.ways_out(services, named)}, then run the command again"
    amends = changed_contract.amendment(services, before, contract)
    choices = (*amends, *_other_choices(before, tasks, keeps, same=same))
    raise Refusal(
        CODE,
        f"Run {before.number} of phase {contract.phase} did not finish {wording.listed(tasks)}, and a new run would"
        f" restore files that may hold your work: {wording.listed(named)}. Nothing was changed.",
        hint=f"{amends[0].command} continues the run with them, or: {keeps}" if amends else keeps,
        details=next_actions.offer(
            f"Start a new run of phase {contract.phase}",
            "idumb restores only what an agent left",
            (f"{left.task.id}: {wording.listed(found)} ({why})" for left, why, found in theirs),
            choices,
            phase=contract.phase,
            paths=list(named),
            tasks=list(tasks),
        ),
    )


def _perhaps_theirs(services: Services, left: Unfinished, present: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield paths that may hold a person's work, with the reason. A path that is as in the base holds none."""
    open_paths = tuple(p for p in left.paths if _differs(services, p, present, left.base))
    changed = tuple(p for p in open_paths if _differs(services, p, present, left.left))
    same = tuple(p for p in open_paths if p not in changed)
    if changed:
        yield _CHANGED, changed
    built = task_base.built_by_person(services, left.task, present, same)
    if built:
        yield "a person built it", built


def _is_in_the_way(
    services: Services, left: Unfinished, present: str, changed: Sequence[str], writes: Callable[[str], bool]
) -> bool:
    """Return whether other files of the task would be restored beside changed ones, or the new run writes those.

    A changed file itself is never restored. Long after a run, it may be changed for another reason.
    """
    beside = (path for path in left.paths if path not in changed and _differs(services, path, present, left.base))
    return any(beside) or any(map(writes, changed))


def _other_choices(before: RunState, tasks: Sequence[str], keeps: str, *, same: bool) -> tuple[Choice, ...]:
    """Return how to start from the work, and how to start without it.

    `keeps` says both. `same`: the files are as the tasks left them. A rollback refuses other files.
    """
    if not same:
        return (Choice("move", keeps, "the new run starts from what is committed"),)
    commit = Choice("commit", "commit them (git commit), then run the command again", "the new run starts from them")
    return (commit, _roll_back(before, tasks))


def _roll_back(before: RunState, tasks: Sequence[str]) -> Choice:
    """Return the choice to roll back these tasks, which names finished ones that are rolled back with them."""
    first = min(tasks, key=before.attempted.__getitem__)
    done = [task for task, state in before.tasks.items() if state.status in outcome.DONE]
    with_them = [task for task in done if before.attempted.get(task, 0) > before.attempted[first]]
    also = f", as before {wording.listed(with_them)} too, which must be done again" if with_them else ""
    return Choice(
        "roll-back",
        "roll back the unfinished work, then run the command again",
        f"the files are restored{also}, and a snapshot that the answer names keeps them as they are now",
        f"idumb rollback {before.phase} --to {carried_tasks.rollback_target(before, first)}",
    )
