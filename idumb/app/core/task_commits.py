"""Which commit has the work of a task, or of all completed tasks of a run."""

from __future__ import annotations

from idumb.app.core.services import Services
from idumb.domain import outcome
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import TaskState
from idumb.domain.settings import COMMIT_TASK
from idumb.lazy_dataclass import dataclass

FILES = "worktree"
"""The path of the files in a hidden checkpoint."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where work is: a commit. Else `paths` of the hidden checkpoint `snapshot`, on the commit `head`."""

    commit: str | None
    snapshot: str | None = None
    head: str | None = None
    paths: tuple[str, ...] = ()


def of_task(state: RunState, task: TaskState) -> Place | None:
    """Return where the work of a task is; None if neither a commit nor a checkpoint has it.

    A completed task that changed nothing, or that a person built, is in the commit that was HEAD after it.
    """
    kept = task.checkpoint
    head = kept.git_hash if kept is not None and state.policy == COMMIT_TASK else None
    commit = task.accepted_commit or (kept.commit if kept is not None else None) or head
    if commit is not None:
        return Place(commit)
    if kept is None:
        return None
    return Place(None, kept.snapshot, kept.git_hash, _paths_until(state, kept.seq))


def _paths_until(state: RunState, seq: int) -> tuple[str, ...]:
    """Return the paths of the tasks that were completed until an event and that no commit has."""
    done = (task for task in state.tasks.values() if task.status in outcome.DONE)
    kept = ((task, task.checkpoint) for task in done if task.checkpoint is not None)
    return tuple(
        sorted({path for task, one in kept if one.seq <= seq and not one.commit for path in task.work.touched})
    )


def of_run(services: Services, state: RunState) -> Place | None:
    """Return where the work of all completed tasks of a run is: its newest commit or checkpoint."""
    done = [task for task in state.tasks.values() if task.status in outcome.DONE]
    kept = sorted((t for t in done if t.checkpoint), key=lambda t: t.checkpoint.seq if t.checkpoint else 0)
    place = of_task(state, kept[-1]) if kept else None
    for commit in filter(None, (task.accepted_commit for task in done)):
        if place is None or place.commit is None or services.history.descends(place.commit, commit):
            place = Place(commit)
    return place
