"""Keeps, under a ref, what only a clone holds before the clone is removed.

The clone of an attempt that did not end may have the only copy of the agent's work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, attempt_ref, kept_at, run_ref
from idumb.app.ports.workspace import AbandonedClone
from idumb.app.worktree import task_base
from idumb.domain import errors, health, paths, wording
from idumb.domain.health import Check, Symptom
from idumb.domain.runs.replay import replay
from idumb.domain.runs.run import RunState

HERE = "here"
_WHAT = "interrupted"


def close(context: RunContext) -> None:
    """Remove the clone of a command that ends, unless its contents cannot be kept."""
    if context.workspace.kind != HERE:
        try:
            keep_unfinished(context)
        except (errors.IdumbError, OSError) as problem:
            words = f"{context.work.root} stays, because what is in it could not be kept: {problem}"
            context.services.reporter.note(words)
            return
    context.workspace.close()


def keep_unfinished(context: RunContext) -> None:
    """Keep the files of an attempt that this command began in the clone and did not end."""
    if context.workspace.kind == HERE:
        return
    task_state = next(
        (t for t in context.journal.state.tasks.values() if t.attempt.running and t.id in context.begun), None
    )
    if task_state is None or task_base.made_in(context, task_state) == HERE:
        return
    ref = attempt_ref(context.services, context.run, task_state.id, task_state.attempt.number, _WHAT)
    if context.services.history.kept(ref) is None:
        _keep(
            context.services,
            AbandonedClone(context.run, context.work.root),
            ref,
            f"{task_state.id}, attempt {task_state.attempt.number}",
        )


def put_away(services: Services, state: RunState) -> None:
    """Keep what killed commands left in clones of this run, and remove those."""
    for clone in services.clones.abandoned():
        if clone.run == state.id:
            _put_away(services, clone, state)


def put_away_all(services: Services) -> None:
    """Do the same for every clone of the repository. The caller must own all its working trees."""
    for clone in services.clones.abandoned():
        _put_away(services, clone, _state(services, clone.run))


def _state(services: Services, run: str) -> RunState:
    return replay(services.log.events(run=run))


def _put_away(services: Services, abandoned: AbandonedClone, state: RunState) -> None:
    ref, reason = _name(services, abandoned, state)
    _keep(services, abandoned, ref, reason)
    services.clones.remove(abandoned)


def _name(services: Services, abandoned: AbandonedClone, state: RunState) -> tuple[str, str]:
    """Return the ref to keep it under, and why: that of the interrupted attempt if it has none yet."""
    running = next((t for t in state.tasks.values() if t.attempt.running and t.attempt.opened is None), None)
    if running is not None:
        ref = attempt_ref(services, abandoned.run, running.id, running.attempt.number, _WHAT)
        if services.history.kept(ref) is None:
            return ref, f"{running.id}, attempt {running.attempt.number}, interrupted"
    refs = services.history.refs(run_ref(services, abandoned.run, "clone-"))
    number = 1
    while (ref := run_ref(services, abandoned.run, f"clone-{number}")) in refs:
        number += 1
    return ref, f"the clone of run {abandoned.run}"


def _keep(services: Services, abandoned: AbandonedClone, ref: str, reason: str) -> None:
    kept = services.clones.keep(abandoned, ref, reason)
    if kept is None:
        return
    changes = services.trees.changes(services.history.tree_of(services.history.head().commit), kept.tree)
    changed = [change.path for change in changes if not paths.matches_any(change.path, paths.OWN_FILES)]
    present = [change.path for change in changes if change.new is not None and change.path in changed]
    if present:
        shown = kept_at(services, kept.commit, present[0])
        services.reporter.note(f"What was in the clone ({wording.listed(changed)}) is kept: git show {shown}")


def checks(services: Services, owned: Callable[[], bool]) -> tuple[Check, ...]:
    """`owned` returns whether a working tree of the repository has a live owner, whose clone is in use."""

    def place() -> Iterator[Symptom]:
        """Without a place for copies there are no clones and no dry runs."""
        try:
            services.clones.require_place()
        except errors.Refusal as refusal:
            yield health.warn(
                refusal.message,
                means="tasks cannot run in a clone, and nothing can be run dry",
                mend=refusal.hint or "",
            )
            return
        yield health.passed(services.clones.place())

    def abandoned_clones() -> Iterator[Symptom]:
        at_work = owned()
        for clone in services.clones.abandoned():
            yield health.warn(
                f"the clone of run {clone.run} is still there",
                clone.path,
                means="a run is under way"
                if at_work
                else "its run was killed, and it may hold work that nothing else has",
                mend="idumb status",
                fixes=not at_work,
                subject=clone.path,
            )

    def put_away(symptom: Symptom) -> str:
        """Keep what killed commands left in clones of this run, and remove those clones."""
        for clone in services.clones.abandoned():
            if clone.path == symptom.subject:
                state = _state(services, clone.run)
                ref, _ = _name(services, clone, state)
                _put_away(services, clone, state)
                return f"{clone.path} was removed; what was in it is kept: {ref}"
        return f"{symptom.subject} is gone by now"

    return (
        Check("clones.place", "private copies can be made", place),
        Check("clones.left", "no clone of a killed run is left", abandoned_clones, put_away),
    )
