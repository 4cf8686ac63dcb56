"""History that the user rewrote: which done work of an unfinished run its branch does not have any more."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from idumb.app.core import questions
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.worktree import final_state
from idumb.domain import outcome
from idumb.domain.decision import RESET
from idumb.domain.errors import Refusal, Waiting
from idumb.domain.plans import graph
from idumb.domain.runs.run import CLOSED, RunState
from idumb.domain.runs.task_state import TaskState


def commits(state: RunState) -> list[tuple[str, TaskState]]:
    """Return the commits of done tasks with their tasks, the oldest first."""
    done = (task for task in state.tasks.values() if task.status in outcome.DONE)
    rows = ((task.accepted_commit or (task.checkpoint and task.checkpoint.commit), task) for task in done)
    kept = [(commit, task) for commit, task in rows if commit]
    return sorted(kept, key=lambda row: row[1].checkpoint.seq if row[1].checkpoint else 0)


def is_rewritten(services: Services, state: RunState) -> bool:
    """Return whether the branch of a run does not have its newest commit, and with that none that is below it."""
    made = commits(state)
    if not made or services.history.head().branch != state.branch:
        return False
    return not services.history.descends(made[-1][0])


def lost(services: Services, state: RunState) -> dict[str, str]:
    """Return the done tasks of an unfinished run that the branch lost, with their commits.

    It has neither the commit, nor one with its trailers, nor the files as this task or a later one left them.
    """
    made = commits(state)
    if state.state in CLOSED or not made or services.history.head().branch != state.branch:
        return {}
    rows = dict(services.history.trailers_since(state.base.commit))
    if all(commit in rows or services.history.descends(commit) for commit, _ in made):
        return {}
    named = {(t.get("Idumb-Run"), t.get("Idumb-Task")) for t in rows.values()}
    head = services.history.head_tree() or ""
    found: dict[str, str] = {}
    for number, (commit, task) in enumerate(made):
        there = {(run, task.id) for run in (state.id, task.carried_from)} & named or services.history.descends(commit)
        later = [made_later for _, made_later in made[number:]]
        if not there and not all(_is_there(services, state, head, path, later) for path in task.work.touched):
            found[task.id] = commit
    return found


def _is_there(services: Services, state: RunState, head: str, path: str, tasks: list[TaskState]) -> bool:
    present = services.trees.entry(head, path)
    trees = (final_state.left_by(services, state, task.id) for task in tasks if path in task.work.touched)
    return any(tree is not None and services.trees.entry(tree, path) == present for tree in trees)


def words(state: RunState, gone: Mapping[str, str]) -> str:
    return "; ".join(f"commit {c[:7]} of {task} is no longer on {state.branch or 'HEAD'}" for task, c in gone.items())


def mark(services: Services, state: RunState) -> str:
    """Mark what the branch lost as not done, in a state that is only read. Return it in words; "" if there is none."""
    gone = lost(services, state)
    said = words(state, gone)
    for task in gone:
        state.tasks[task] = dataclasses.replace(state.tasks[task], status=outcome.PENDING, reason=said)
    return said


def refuse(services: Services, state: RunState) -> None:
    """Refuse to build on work that the branch lost: `resume` asks what follows."""
    if gone := lost(services, state):
        hint = f"idumb resume {state.phase} asks what follows"
        raise Refusal("run.history-changed", words(state, gone), hint=hint, details={"phase": state.phase})


def require_kept(context: RunContext) -> None:
    """Ask what follows if the branch lost done work; without the answer to build it again, nothing runs."""
    services, state = context.services, context.journal.state
    gone = lost(services, state)
    if not gone:
        return
    task, (*_, newest) = context.contract.tasks[next(iter(gone))], gone.values()
    ahead = services.history.descends(services.history.head().commit or "", newest)
    back = f"git merge --ff-only {newest}" if ahead else f"git cherry-pick {' '.join(gone.values())}"
    question = questions.history(task, state, words(state, gone), tuple(gone.values()), back)
    answer = context.journal.ask_once(services.asker, question)
    if answer is None or questions.chosen(state, question.id).move != RESET:
        decide = f"idumb decide {question.id} {questions.AGAIN}, then idumb resume {state.phase}"
        raise Waiting("run.history-changed", question.what, hint=decide, details={"phase": state.phase})
    tasks = context.contract.tasks
    below = (tasks[id] for id in graph.dependents(context.contract.dependencies, gone))
    looked = (task.id for task in below if task.kind == "human-verify" and state.tasks[task.id].status in outcome.DONE)
    # What a person looked at is gone.
    context.journal.write(*(context.journal.event("task.reset", id, reason="history") for id in (*gone, *looked)))
