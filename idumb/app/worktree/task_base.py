"""The tree that a task starts from, and the refusal of tasks whose files have uncommitted changes of the user."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from idumb.app.core import questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, from_start, is_projection
from idumb.app.worktree import exposed_secrets, tool_leftovers
from idumb.domain import contract as contracts
from idumb.domain import outcome, paths, wording
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState
from idumb.domain.settings import COMMIT_NONE


def tree_for_builder(context: RunContext, attempt: Attempt) -> str:
    """Return the tree that the builder of a new attempt starts from: what the task's commit would be based on.

    That is HEAD, with finished work that nobody committed and with the ignored files that the task declares. If the run
    commits nothing, or began without a commit, it is what the user's working tree holds now. The attempt has the
    snapshot of that.
    """
    trees, present = context.services.trees, attempt.snapshot.tree
    head = context.services.history.head().commit
    tree = context.services.history.tree_of(head)
    if _sees_all(context.state):
        added = [change.path for change in trees.changes(tree, present)]
    else:
        added = list(context.state.uncommitted())
        added += attempt.from_user
        missing = (path for path in attempt.literal_paths if trees.entry(tree, path) is None)
        added += [path for path in missing if trees.entry(present, path) is not None]
    return trees.committed(head, present, added) if added else tree


def _sees_all(state: RunState) -> bool:
    return state.policy == COMMIT_NONE or state.base.commit is None


def with_work_of_others(context: RunContext, attempt: Attempt) -> str:
    """Return the base with what other tasks of the run left in the files of this one since it was begun."""
    state, covers = context.state, paths.cover(attempt.written)
    begun, base = state.attempted.get(attempt.task.id, 0), attempt.base
    ended = [(t.checkpoint.seq, t.work) for t in state.tasks.values() if t.checkpoint and t.status in outcome.DONE]
    for seq, work in sorted(ended, key=lambda each: each[0]):
        theirs = [path for path in work.touched if covers(path)] if seq > begun else []
        base = context.work.overlay(base, work.left_tree or base, theirs) if theirs else base
    return base


def tree_between_attempts(services: Services, state: RunState, present: str) -> str:
    """Return the tree that checks judge outside attempts: HEAD, with the finished work that only `present` has."""
    return services.trees.committed(services.history.head().commit, present, state.uncommitted())


def tree_before(context: RunContext, attempt: Attempt) -> str:
    """Return the tree that checks judge before the work of an attempt: HEAD, with all that the attempt starts from."""
    tree = tree_between_attempts(context.services, context.state, attempt.base)
    return context.services.trees.overlay(tree, attempt.base, attempt.from_user) if attempt.from_user else tree


def changed_by_user(context: RunContext, task: Task) -> tuple[str, ...]:
    """Return the declared files with uncommitted changes of the user, which the task's commit would contain.

    He is asked about them before a program starts. Refuse where nobody is asked: in strict mode, in his own tree unless
    he has begun the task already, and about a file that the task creates.
    """
    settings, state = context.services.settings, context.state
    if task.is_human or state.policy == COMMIT_NONE or not (declared := ledger.written_paths(task.files)):
        return ()
    plan = context.contract.plan_of[task.id]
    in_place = contracts.in_place(plan, task, settings)
    if in_place and state.tasks[task.id].work.base is not None:
        return ()
    in_editor = contracts.in_editor(plan, task, settings)
    again = Action.of("start", task.id) if in_editor else Action.of("resume", context.contract.phase)
    known = {*state.uncommitted(), *questions.files_from_user(state, task.id)}
    theirs = tuple(path for path in _uncommitted(context, declared) if path not in known)
    existing = [path for path in _ignored(context, task) if path not in known]
    if existing:
        raise Refusal(
            "task.dirty-path",
            f"{task.id} must create files that exist already, untracked or ignored: {wording.listed(existing)}",
            hint=f"Move them away, or let the task modify them; then {again}",
            details={"task": task.id, "paths": existing},
        )
    if theirs and (in_place or context.strict or exposed_secrets.in_any_name(context.services, theirs)):
        raise Refusal(
            "task.dirty-path",
            f"{task.id} declares files with uncommitted changes that this run did not make: {wording.listed(theirs)}",
            hint=f"{ways_out(context.services, theirs)}, then {again}",
            details={"task": task.id, "paths": list(theirs)},
        )
    return theirs


def _uncommitted(context: RunContext, declared: Sequence[str]) -> tuple[str, ...]:
    """Return what the declared paths match that is not committed.

    A wide glob covers plans and reports too, which no task may write, leftovers of tools, and other repositories.
    """
    services = context.services
    found = services.history.uncommitted(declared)
    changed = (p for p in found if not paths.matches_any(p, paths.OWN_FILES))
    uncommitted = tool_leftovers.without_leftovers(services, context.state, changed, declared)
    others = services.history.repositories(p.rstrip("/") for p in uncommitted) if uncommitted else ()
    return tuple(p for p in uncommitted if paths.repository_of(p.rstrip("/"), others) is None)


def _ignored(context: RunContext, task: Task) -> tuple[str, ...]:
    """Return files that the task must create and for which a file or folder exists that HEAD lacks, perhaps ignored."""
    services, literal = context.services, frozenset(ledger.named_paths(task.files))
    new = [c.path for c in ledger.written_claims(task.files or ()) if c.verb == "create" and c.path in literal]
    new = [path for path in new if services.files.status(path) is not None]
    if not new:
        return ()
    trees = services.trees
    present, head = trees.scan(new), services.history.head_tree()
    there = (p for p in new if trees.entry(present, p) is not None or trees.is_folder(present, p))
    return tuple(p for p in there if trees.entry(head, p) is None and not trees.is_folder(head, p))


def ways_out(services: Services, dirty: Sequence[str]) -> str:
    """Return how a person gets uncommitted changes out of the way. A tracked file that is moved away is deleted."""
    if services.history.head().commit is None:
        return "Commit them (git commit)"  # git stash needs a commit
    names = (from_start(services, path) for path in dirty)
    shown = shlex.join(names) if len(dirty) <= wording.MOST_LISTED else "PATHS"
    return f"Commit them (git commit) or stash them (git stash push -a -- {shown})"


def not_saved(left_out: Mapping[str, str], contract: Contract) -> tuple[str, ...]:
    """Return a line for each reason why snapshots omit paths, so that a person knows before anything runs.

    Before an attempt, a snapshot also has the ignored files that its task declares by name.
    """
    declared = {path for task in contract.tasks.values() for path in ledger.named_paths(task.files)}
    by_reason: dict[str, list[str]] = {}
    for path, why in sorted(left_out.items()):
        if path in declared or is_projection(path):
            continue
        by_reason.setdefault(why, []).append(path)
    return tuple(
        f"Not in any snapshot, so idumb cannot restore it ({why}): {wording.listed(omitted)}"
        for why, omitted in by_reason.items()
    )


def unseen(context: RunContext) -> tuple[str, ...]:
    """Return what the user has not committed and programs do not see."""
    if _sees_all(context.state) or context.workspace.in_place:
        return ()
    state, changed = context.state, context.services.history.uncommitted(("**",))
    ours = {*state.uncommitted(), *(path for task in state.tasks for path in questions.files_from_user(state, task))}
    return tuple(p for p in changed if p not in ours and not paths.matches_any(p, paths.OWN_FILES))
