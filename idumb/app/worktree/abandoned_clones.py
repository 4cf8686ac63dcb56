"""Keeps what only a clone holds under a ref before the clone is removed.

Nothing froze an attempt that did not end, so its clone may have the only copy of an agent's work.
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
    known = next((t for t in context.journal.state.tasks.values() if t.attempt.running and t.id in context.begun), None)
    if known is None or task_base.made_in(context, known) == HERE:
        return
    ref = attempt_ref(context.services, context.run, known.id, known.attempt.number, _WHAT)
    if ref not in context.services.history.refs(ref):
        _keep(
            context.services,
            AbandonedClone(context.run, context.work.root),
            ref,
            f"{known.id}, attempt {known.attempt.number}",
        )


def put_away(services: Services, state: RunState) -> None:
    """Keep what killed commands left in clones of this run, and remove those."""
    for left in services.clones.abandoned():
        if left.run == state.id:
            _put_away(services, left, state)


def put_away_all(services: Services) -> None:
    """Do the same for every clone of the repository. The caller must own all its working trees."""
    for left in services.clones.abandoned():
        _put_away(services, left, _state(services, left.run))


def _state(services: Services, run: str) -> RunState:
    return replay(services.log.events(run=run))


def _put_away(services: Services, left: AbandonedClone, state: RunState) -> None:
    ref, reason = _name(services, left, state)
    _keep(services, left, ref, reason)
    services.clones.remove(left)


def _name(services: Services, left: AbandonedClone, state: RunState) -> tuple[str, str]:
    """Return the ref to keep it under, and why: that of the interrupted attempt if it has none yet."""
    running = next((t for t in state.tasks.values() if t.attempt.running and t.attempt.opened is None), None)
    if running is not None:
        ref = attempt_ref(services, left.run, running.id, running.attempt.number, _WHAT)
        if ref not in services.history.refs(ref):
            return ref, f"{running.id}, attempt {running.attempt.number}, interrupted"
    known = services.history.refs(run_ref(services, left.run, "clone-"))
    number = 1
    while (ref := run_ref(services, left.run, f"clone-{number}")) in known:
        number += 1
    return ref, f"the clone of run {left.run}"


def _keep(services: Services, left: AbandonedClone, ref: str, reason: str) -> None:
    kept = services.clones.keep(left, ref, reason)
    if kept is None:
        return
    changes = services.trees.changes(services.history.tree_of(services.history.head().commit), kept.tree)
    found = [change.path for change in changes if not paths.matches_any(change.path, paths.OWN_FILES)]
    there = [change.path for change in changes if change.new is not None and change.path in found]
    if there:
        shown = kept_at(ref, there[0])
        services.reporter.note(f"What was in the clone ({wording.listed(found)}) is kept: git show {shown}")


def checks(services: Services, owned: Callable[[], bool]) -> tuple[Check, ...]:
    """`owned` says whether some work tree of the repository has a live owner, whose clone is none that is left."""

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

    def left() -> Iterator[Symptom]:
        at_work = owned()
        for one in services.clones.abandoned():
            yield health.warn(
                f"the clone of run {one.run} is still there",
                one.path,
                means="a run is under way"
                if at_work
                else "its run was killed, and it may hold work that nothing else has",
                mend="idumb status",
                mends=not at_work,
                subject=one.path,
            )

    def put_away(symptom: Symptom) -> str:
        """Keep what killed commands left in clones of this run, and remove those clones."""
        for one in services.clones.abandoned():
            if one.path == symptom.subject:
                state = _state(services, one.run)
                ref, _ = _name(services, one, state)
                _put_away(services, one, state)
                return f"{one.path} was removed; what was in it is kept: {ref}"
        return f"{symptom.subject} is gone by now"

    return (
        Check("clones.place", "private copies can be made", place),
        Check("clones.left", "no clone of a killed run is left", left, put_away),
    )
