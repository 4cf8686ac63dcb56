"""What a failed attempt of a program left, which is only in its checkpoint, put into the user's working tree."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from idumb.app.core import actions
from idumb.app.core.services import Services
from idumb.app.ports.repository import Conflict
from idumb.domain import wording
from idumb.domain.action import Action, Choice
from idumb.domain.errors import Refusal
from idumb.domain.runs.run import TaskState


def files(task: TaskState, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the paths to deliver; none if a person did the work, which is in his tree already."""
    if task.checkpoint is None or task.work.base is None or task.work.touched:
        return ()
    return tuple(path for path in task.checkpoint.files if path not in without)


def deliver(services: Services, task: TaskState, chosen: Sequence[str]) -> None:
    """Write these paths, or none: Refusal `task.changed-since` if one is not as in the base of the work."""
    conflicts = _write(services, task, chosen)
    if conflicts:
        raise _changed(task.id, [conflict.path for conflict in conflicts])


def deliver_beside(services: Services, task: TaskState, chosen: Sequence[str]) -> tuple[str, ...]:
    """Write these paths, except those that the user changed since; return these."""
    yours = tuple(conflict.path for conflict in _write(services, task, chosen))
    if yours:
        deliver(services, task, [path for path in chosen if path not in yours])
    return yours


def _write(services: Services, task: TaskState, chosen: Sequence[str]) -> tuple[Conflict, ...]:
    if not chosen or task.checkpoint is None or task.work.base is None:
        return ()
    copy, base = services.open_checkout(), task.work.base
    return put(services, copy.raw(task.checkpoint.tree, chosen), copy.raw(base, chosen), base, chosen)


def put(services: Services, work: str, before: str, base: str, paths: Sequence[str]) -> tuple[Conflict, ...]:
    """Write these files of `work` over those of `before`: of `base`, with the bytes that git gives them.

    Return those that the user changed; then nothing is written.
    """
    trees = services.trees
    conflicts = trees.restore(work, before, paths) if paths else ()
    same = unmodified(services, base, [conflict.path for conflict in conflicts])
    if not conflicts or len(same) < len(conflicts):
        return conflicts
    return trees.restore(work, trees.overlay(before, trees.scan(same), same), paths)


def unmodified(services: Services, base: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return those that git calls unmodified, whatever bytes a line ending, a filter or a mode gives them."""
    if not paths:
        return ()
    trees = services.trees
    cleaned = trees.committed(services.history.head().commit, trees.scan(paths), paths)
    return tuple(path for path in paths if trees.entry(cleaned, path) == trees.entry(base, path))


def _changed(task: str, paths: list[str]) -> Refusal:
    take = Choice(
        "take",
        "keep your version of them, and take the rest",
        "what you did not change is written here, and idumb submit judges all of it",
        Action.of("take", task),
    )
    return Refusal(
        "task.changed-since",
        f"{task} was built from other files: these have changed here since: {wording.listed(paths)}",
        hint=f"idumb take {task} keeps your version and writes the rest; or move yours away, then repeat the command",
        details={"paths": paths, "task": task, "choices": actions.rows((take,))},
    )
