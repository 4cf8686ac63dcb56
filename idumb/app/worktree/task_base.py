"""The tree that an attempt starts from: which changes are the task's own, which are restored, which must be refused."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from idumb.app.core import projection_paths, run_lookup, schedule
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, attempt_ref
from idumb.app.ports.repository import NestedChange, Snapshot, Trees
from idumb.app.worktree import drift, exposed_secrets, tool_leftovers
from idumb.domain import agent, outcome, paths, wording
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import TaskState

UNFINISHED = "task.unfinished-path"


def refuse_foreign_changes(context: RunContext, task: Task, *, ahead: bool = False) -> None:
    """Refuse a task whose declared files have uncommitted changes that are not its own.

    `ahead` checks a task before its turn, so what another task left may still be fixed. In an editor, a failed attempt
    may be fixed before the next one begins, which continues with the files as they are. What a person who builds the
    task did since the first attempt began is the task's own.
    """
    if task.is_human or (context.workspace.kind != "here" and context.commits is None):
        return  # nothing is built in the user's tree, but a builder's commits must be delivered into it
    if is_begun_by_person(context, task):
        return
    dirty = _dirty(context, task)
    unfinished = {p: t for p in dirty if (t := _unfinished_writer(context, p)) is not None}
    fixed = _is_fixed_in_editor(context, task)
    theirs = [] if fixed else [p for p in dirty if p not in unfinished and not _made_by_run(context, p)]
    if ahead and theirs:
        theirs = _without_persons_work(context, theirs)
    covered = [] if fixed else [p for p in _ignored(context, task) if not _made_by_run(context, p)]
    again = f"idumb start {task.id}" if _in_editor(context, task) else f"idumb resume {context.contract.phase}"
    if covered:
        raise Refusal(
            "task.dirty-path",
            f"{task.id} must create files that exist already, untracked or ignored: {wording.listed(covered)}",
            hint=f"Move them away, or let the task modify them; then {again}",
            details={"task": task.id, "paths": covered},
        )
    if theirs:
        raise Refusal(
            "task.dirty-path",
            f"{task.id} declares files with uncommitted changes that this run did not make: {wording.listed(theirs)}",
            # A clone cannot deliver into these files either.
            hint=f"{ways_out(context.services, theirs)}, then {again}",
            details={"task": task.id, "paths": theirs},
        )
    if unfinished and not ahead:
        path, other = next(iter(unfinished.items()))
        status = context.journal.state.tasks[other].status
        raise Refusal(
            UNFINISHED,
            f"{task.id} declares {path}, where {other} ({status}) left unfinished work.",
            hint=f"Commit it or restore it with git, then idumb resume {context.contract.phase};"
            f" --retry-failed tries {other} again",
            details={"phase": context.contract.phase, "task": task.id, "paths": list(unfinished)},
        )


def _without_persons_work(context: RunContext, dirty: Sequence[str]) -> list[str]:
    """Return the paths without those of tasks that a person built, which are committed before other tasks begin."""
    states, tasks = context.journal.state.tasks, context.contract.tasks.values()
    answered = [t for t in tasks if states[t.id].status in schedule.RUNNABLE and is_begun_by_person(context, t)]
    covers = paths.cover(path for task in answered for path in ledger.written_paths(task.files))
    return [path for path in dirty if not covers(path)]


def ways_out(services: Services, dirty: Sequence[str]) -> str:
    """Return how a person gets uncommitted changes out of the way. A tracked file that is moved away is deleted."""
    history, trees = services.history, services.trees
    head, staged = history.head_tree(), history.staged(dirty)
    if head is None:
        return "Commit them (git commit)"  # git stash needs a commit
    tracked = [p for p in dirty if p in staged or trees.entry(head, p) is not None]
    shown = shlex.join(tracked) if len(tracked) <= wording.MOST_LISTED else "PATHS"
    stash = f"stash them (git stash push -- {shown})"
    if not tracked:
        return "Commit them (git commit) or move them away"
    if len(tracked) == len(dirty):
        return f"Commit them (git commit) or {stash}"
    return f"Commit them (git commit), or {stash} and move the untracked ones away"


def _task_state(context: RunContext, task: str) -> TaskState:
    return exposed_secrets.found_again(context.services, context.journal.state.tasks[task])


def _in_editor(context: RunContext, task: Task) -> bool:
    return contracts.in_editor(context.plans[task.id], task, context.services.settings)


def is_begun_by_person(context: RunContext, task: Task) -> bool:
    """Return whether a person was given the task in the user's tree; the base has the declared files as they were."""
    task_state = _task_state(context, task.id)
    begun = task_state.work.base is not None and made_in(context, task_state) == "here"
    return begun and contracts.by_person(context.plans[task.id], task, context.services.settings)


def _is_fixed_in_editor(context: RunContext, task: Task) -> bool:
    """Return whether an editor continues a failed attempt, whose base had the declared files without such changes."""
    task_state = _task_state(context, task.id)
    failed = (
        task_state.attempt.outcome == outcome.FAILED
        and task_state.work.base is not None
        and task_state.work.left_tree is not None
    )
    return failed and _in_editor(context, task)


def _own(task_state: TaskState) -> frozenset[str]:
    """Return what the task's own attempts may have changed, declared or not."""
    work = task_state.work
    return frozenset() if work.base is None else frozenset((*work.touched, *work.deviations))


def _dirty(context: RunContext, task: Task) -> tuple[str, ...]:
    """Return uncommitted declared paths, except those that the task's own attempts changed."""
    task_state = _task_state(context, task.id)
    declared = ledger.written_paths(task.files)
    if not declared:
        return ()
    own = _own(task_state)
    # A wide glob covers plans and projections too, which no task may write, and other repositories.
    foreign = (
        p
        for p in context.services.history.uncommitted(declared)
        if p not in own and not paths.matches_any(p, paths.OWN_FILES)
    )
    uncommitted = tool_leftovers.work_only(context.services, context.journal.state, foreign, declared=declared)
    others = context.services.history.repositories(p.rstrip("/") for p in uncommitted) if uncommitted else ()
    return tuple(p for p in uncommitted if paths.repository_of(p.rstrip("/"), others) is None)


def _ignored(context: RunContext, task: Task) -> tuple[str, ...]:
    """Return files that the task must create but that already exist; git ignores them, so `git status` omits them."""
    task_state = _task_state(context, task.id)
    own = _own(task_state)
    literal = frozenset(ledger.named_paths(task.files))
    new = [c.path for c in ledger.written_claims(task.files or ()) if c.verb == "create" and c.path in literal - own]
    if not new:
        return ()
    trees = context.services.trees
    present, head = trees.scan(new), context.services.history.head_tree()
    existing = [p for p in new if trees.entry(present, p) is not None]
    return tuple(p for p in existing if head is None or trees.entry(head, p) is None)


def not_saved(left_out: Mapping[str, str], contract: Contract) -> tuple[str, ...]:
    """Return a line for each reason why snapshots omit paths, so that a person knows before anything runs.

    Before an attempt, a snapshot also has the ignored files that its task declares by name.
    """
    declared = {path for task in contract.tasks.values() for path in ledger.named_paths(task.files)}
    by_reason: dict[str, list[str]] = {}
    for path, why in sorted(left_out.items()):
        if path in declared or projection_paths.is_projection(path):
            continue
        by_reason.setdefault(why, []).append(path)
    return tuple(
        f"Not in any snapshot, so idumb cannot restore it ({why}): {wording.listed(omitted)}"
        for why, omitted in by_reason.items()
    )


def _last_writer(context: RunContext, path: str) -> TaskState | None:
    """Return the task of this run, or carried into it, whose last attempt left the path as it is now."""
    state, work = context.journal.state, context.services.trees
    for task_id in sorted(state.attempted, key=state.attempted.__getitem__, reverse=True):
        task_state = _task_state(context, task_id)
        if task_state.work.left_tree is not None and path in task_state.work.touched:
            return (
                task_state
                if work.entry(task_state.work.left_tree, path) == work.entry(work.scan((path,)), path)
                else None
            )
    carried = [t for t in state.tasks.values() if t.carried_from and t.checkpoint and path in t.checkpoint.files]
    if not carried:
        return None
    last = max(carried, key=lambda t: t.checkpoint.seq if t.checkpoint else 0)
    same = last.work.left_tree is not None and work.entry(last.work.left_tree, path) == work.entry(
        work.scan((path,)), path
    )
    return last if same else None


def _unfinished_writer(context: RunContext, path: str) -> str | None:
    task_state = _last_writer(context, path)
    return task_state.id if task_state is not None and task_state.status not in outcome.DONE else None


def _made_by_run(context: RunContext, path: str) -> bool:
    return _last_writer(context, path) is not None


def restart(context: RunContext, task: Task) -> None:
    """Restore the paths that earlier attempts touched to the task base, unless somebody changed them since.

    Undeclared changes may be the user's, and committed ones are settled, so both stay.
    """
    task_state = _task_state(context, task.id)
    if task_state.work.base is None or task_state.work.left_tree is None:
        return
    if context.workspace.kind != "here":
        _put_all_back(context, task, task_state.work.base)
        return
    take_back(context, task)


def made_in(context: RunContext, task_state: TaskState) -> str:
    """Return the kind of workspace of a task's last attempt. A command may use another workspace than its run."""
    started = run_lookup.last_event(context.services, "attempt.started", context.run, task_state.id)
    kind = "" if started is None else str(started.payload.get("workspace", ""))
    return kind or context.journal.state.workspace


def take_back(context: RunContext, task: Task, *, asked: bool = False) -> None:
    """Restore what attempts changed in the user's own tree; refuse if somebody changed it since.

    Unless somebody `asked` for it, refuse too if a person built it.
    """
    task_state, trees = _task_state(context, task.id), context.services.trees
    if task_state.work.base is None or task_state.work.left_tree is None:
        return
    own = _own_paths(context, task_state, trees.scan(task_state.work.touched)) if task_state.work.touched else ()
    if _person_built(task_state) is not None and not asked:
        own = context.services.history.uncommitted(own)
        _refuse_built_by_person(context, task_state, own)
    conflicts = trees.restore(task_state.work.base, task_state.work.left_tree, own) if own else ()
    if conflicts:
        raise _cannot_start_over(
            context, task.id, "these files changed since its last attempt", [c.path for c in conflicts]
        )
    if own and task_state.attempt.outcome == outcome.CANCELLED:
        _tell_where(context, task, task_state.attempt.number, task_state.work.left_tree, own)


def _person_built(task_state: TaskState) -> int | None:
    """Return the number of the last attempt in which a person built; None if there was none."""
    if task_state.attempt.adapter in agent.BY_PERSON:
        return task_state.attempt.number
    return None if task_state.work.by_person is None else task_state.work.by_person[0]


def built_by_person(services: Services, task_state: TaskState, present: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that a person built, of `paths` that differ from the task base in the tree `present`.

    If agents continued from that, those are meant that are still as the person left them.
    """
    if task_state.attempt.adapter in agent.BY_PERSON:
        return tuple(paths)
    if task_state.work.by_person is None:
        return ()
    entry, (_, left) = services.trees.entry, task_state.work.by_person
    return tuple(path for path in paths if entry(present, path) == entry(left, path))


def _refuse_built_by_person(context: RunContext, task_state: TaskState, own: Sequence[str]) -> None:
    """Refuse to restore a person's uncommitted work for another builder or workspace."""
    entry, present = context.services.trees.entry, context.services.trees.scan(own)
    changed = [path for path in own if entry(present, path) != entry(task_state.work.base or "", path)]
    theirs = list(built_by_person(context.services, task_state, present, changed))
    if theirs:
        why = f"a person built these files in attempt {_person_built(task_state)}"
        raise _cannot_start_over(context, task_state.id, why, theirs)


def _cannot_start_over(context: RunContext, task: str, why: str, changed: list[str]) -> Refusal:
    return Refusal(
        "task.changed-since",
        f"{task} must start over from its base, but {why}: {wording.listed(changed)}",
        hint=f"{ways_out(context.services, changed)}, then idumb resume {context.contract.phase}",
        details={"phase": context.contract.phase, "paths": changed, "task": task},
    )


def _tell_where(context: RunContext, task: Task, attempt: int, left_tree: str, own: tuple[str, ...]) -> None:
    """Report where the work of an interrupted attempt is kept: a person may have worked in the same files since."""
    ref = attempt_ref(context.services, context.run, task.id, attempt, "interrupted")
    kept = context.services.history.kept(ref) or ref
    shown = drift.show_commands(context.services, kept, left_tree, own)
    if shown:
        context.services.reporter.note(f"{task.id} starts over; what was in {wording.listed(own)} is kept: {shown}")


def _put_all_back(context: RunContext, task: Task, base: str) -> None:
    """Restore the clone to the task base. Nothing in a clone is the user's."""
    literal = tuple(p for p in ledger.written_paths(task.files) if not paths.has_wildcard(p))
    present = context.work.scan(literal)
    changed = (c.path for c in context.work.changes(base, present))
    context.work.restore(base, present, [p for p in changed if not paths.matches_any(p, paths.OWN_FILES)])


def task_base(context: RunContext, attempt: Attempt, present: str) -> str:
    """Return the present tree without what earlier attempts left in it."""
    if context.workspace.kind != "here":
        return attempt.base
    task_state = _task_state(context, attempt.task.id)
    attributed = {*_own_paths(context, task_state, present), *_open_deviations(context, task_state, present)}
    if is_begun_by_person(context, attempt.task):
        # A person works between the question and the answer. A wide glob also covers what idumb wrote meanwhile.
        covers = paths.cover(ledger.written_paths(attempt.task.files))
        changes = (c.path for c in context.work.changes(attempt.base, present) if covers(c.path))
        attributed |= {path for path in changes if not paths.matches_any(path, paths.OWN_FILES)}
        base = context.work.overlay(present, attempt.base, sorted(attributed)) if attributed else present
        for other in _done_since(context, task_state.id):
            theirs = sorted(attributed.intersection(other.work.touched))
            base = context.work.overlay(base, other.work.left_tree or base, theirs) if theirs else base
        return base
    if _is_fixed_in_editor(context, attempt.task):
        dirty = (*_dirty(context, attempt.task), *_ignored(context, attempt.task))
        attributed |= {path for path in dirty if not _made_by_run(context, path)}
    return context.work.overlay(present, attempt.base, sorted(attributed)) if attributed else present


def _done_since(context: RunContext, task: str) -> list[TaskState]:
    """Return the other tasks that this run finished after the first attempt at a task began, oldest first."""
    state = context.journal.state
    done = [
        (other.checkpoint.seq, other)
        for other in state.tasks.values()
        if other.id != task and other.status in outcome.DONE and other.checkpoint and not other.carried_from
    ]
    return [other for seq, other in sorted(done, key=lambda one: one[0]) if seq > state.attempted.get(task, seq)]


def tell_changed_since(context: RunContext, attempt: Attempt, snapshot: Snapshot) -> None:
    """Report what somebody changed since the last attempt, before the builder continues from it and may replace it."""
    task_state, task = _task_state(context, attempt.task.id), attempt.task
    left_tree, base = task_state.work.left_tree, task_state.work.base
    if left_tree is None or base is None or _in_editor(context, task) or is_begun_by_person(context, task):
        return
    entry, head = context.services.trees.entry, context.services.history.head_tree()
    by_person = task_state.attempt.adapter in agent.BY_PERSON
    kept = [tree for tree in (None if by_person else left_tree, base, head) if tree is not None]
    changed = [p for p in task_state.work.touched if entry(snapshot.tree, p) not in [entry(tree, p) for tree in kept]]
    shown = drift.show_commands(context.services, snapshot.commit, snapshot.tree, changed)
    if shown:
        what = "that a person built in" if by_person else "that changed since"
        words = f"{task.id} continues from files {what} attempt {task_state.attempt.number}: {wording.listed(changed)}"
        context.services.reporter.note(f"{words} (kept: {shown})")


def _own_paths(context: RunContext, task_state: TaskState, present: str) -> tuple[str, ...]:
    """Return what attempts touched, except what somebody else has changed and committed since."""
    touched = tuple(p for p in task_state.work.touched if p not in set(task_state.work.deviations))
    head = context.services.history.head_tree() if touched else None
    if head is None or task_state.work.left_tree is None:
        return touched
    return tuple(
        p for p in touched if not _settled(context.services.trees, p, task_state.work.left_tree, present, head)
    )


def _settled(work: Trees, path: str, left_tree: str, present: str, head: str) -> bool:
    now = work.entry(present, path)
    return now != work.entry(left_tree, path) and now == work.entry(head, path)


def _open_deviations(context: RunContext, task_state: TaskState, present: str) -> tuple[str, ...]:
    """Return undeclared changes of earlier attempts that nobody has committed since."""
    deviations = tuple(p for p in task_state.work.deviations if not paths.is_outside(p))
    head = context.services.history.head_tree() if deviations else None
    if head is None:
        return deviations
    return tuple(p for p in deviations if context.work.entry(present, p) != context.work.entry(head, p))


def left_by_interruption(context: RunContext, task: Task) -> tuple[str, ...]:
    """Return what may be an interrupted attempt's undeclared work: not restored, not committed, and not accepted."""
    task_state = _task_state(context, task.id)
    base = task_state.work.base
    if base is None or context.workspace.kind != "here":
        return ()
    declared = paths.cover((*ledger.written_paths(task.files), *task_state.work.accepted_paths))
    trees, strays = context.services.trees, task_state.work.deviations
    present = trees.scan(strays)  # first, because it finds the nested repositories
    inner = {change.path for change in nested_changes(context, task_state)} if trees.repositories() else set()
    possible = [path for path in strays if path in inner or not declared(path)]
    changed = [path for path in _open_deviations(context, task_state, present) if path in possible]
    differing = {path for path in changed if trees.entry(present, path) != trees.entry(base, path)}
    return tuple(path for path in possible if path in differing or path in inner)


def nested_changes(context: RunContext, task_state: TaskState) -> tuple[NestedChange, ...]:
    """Return what changed in nested repositories since the last attempt of a task began."""
    ref = attempt_ref(context.services, context.run, task_state.id, task_state.attempt.number, "base")
    commit = context.services.history.kept(ref)
    return () if commit is None else context.services.trees.nested_changes(Snapshot(commit, "", ref))


def tree_between_attempts(services: Services, state: RunState, present: str) -> str:
    """Return the tree that checks judge before an attempt or after the last; `present` is the user's working tree."""
    return services.trees.committed(services.history.head().commit, present, state.uncommitted())
