"""Restores paths for rollback and undo: snapshot, record the intent, compare and swap, commit, record the result.

If the process is killed in between, the next command that continues the run finishes the restore first.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from idumb.app.attempt import projections
from idumb.app.consent import phase_grants
from idumb.app.core import actions
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, checkpoint_path, fields, run_ref
from idumb.app.history import restore_conflicts
from idumb.app.history.restore_conflicts import Target
from idumb.app.ports import Snapshot
from idumb.app.worktree import exposed_secrets, preconditions, task_base
from idumb.domain import wording
from idumb.domain.action import Action, Choice, Decision
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.ledger import SUBMODULE
from idumb.domain.runs import replay
from idumb.domain.runs.event import Event, NewEvent
from idumb.domain.runs.run import RunState
from idumb.domain.settings import COMMIT_TASK

ROLLBACK = "rollback"
UNDO = "undo"


class Intent(Struct, frozen=True):
    """What a person asked for, and how it is recorded: `command` is rollback or undo, `words` say it to people.

    `fields` is added to its last event; `then` are events that are recorded together with that one, whichever command
    finishes the restore. Without `yes` there is a question; `confirming` is the command that confirms without one.
    `operation` is the one that an undo reverts. `past` are irreversible tasks whose effects stay.
    """

    command: str
    words: str
    subject: str
    trailer: str
    fields: Mapping[str, Any]
    yes: bool = True
    confirming: Action = Action("rollback")
    operation: str = ""
    past: tuple[str, ...] = ()
    then: tuple[NewEvent, ...] = ()


class RestoreResult(Struct, frozen=True):
    """`kept` is the ref of the state before. `not_restored` are the paths that the user changed since."""

    commit: str | None
    kept: str
    not_restored: tuple[str, ...] = ()


def confirm(services: Services, intent: Intent, target: Target, facts: Sequence[str]) -> None:
    """Require confirmation, by option or at the terminal. Refusal `rollback.not-confirmed`."""
    if intent.yes:
        return
    what, details = intent.words, dict[str, Any](facts=[*facts], **fields(target, "paths", "tasks"))
    evidence = (*facts, *(f"task {t}" for t in target.tasks), *(f"file {p}" for p in target.paths))
    if intent.operation:
        what, evidence = f"{intent.words}, {intent.operation},", (intent.operation, *evidence)
        details["operation"] = intent.operation
    why = "Files return to an earlier state. A snapshot of the present is kept, and `idumb undo` restores it."
    yes = Choice("yes", "restore them", "these files change, and a new commit records it", intent.confirming)
    no = ("change nothing", "nothing changes")
    question = Decision.confirmation("confirm", "rollback", intent.words, why, evidence, yes, *no)
    words = f"Nothing was changed: {what} needs your confirmation."
    actions.require_yes(services, question, Refusal("rollback.not-confirmed", words, details=details))


def keep_present(services: Services, journal: Journal, intent: Intent, target: Target) -> Snapshot:
    """Take a snapshot of the present files. Refuses if the user changed one of the paths."""
    exposed_secrets.require_public_names(services, target.paths)
    ref = run_ref(services, journal.state.id, f"operations/{journal.operation}/before")
    before = services.trees.snapshot(ref, intent.words, target.paths)
    conflicts = restore_conflicts.find(services, before, target, commits=journal.state.policy == COMMIT_TASK)
    if conflicts:
        raise restore_conflicts.refusal(services, target, before, conflicts)
    return before


def restore_paths(
    services: Services, journal: Journal, contract: Contract, intent: Intent, target: Target, before: Snapshot
) -> RestoreResult:
    """Record the intent, restore the paths that are still as in `before`, commit, and record the result."""
    committed = restore_conflicts.committable(services, target, before.tree)
    for name, tree in {"after": target.target, **({"committed": committed} if target.committed else {})}.items():
        ref = run_ref(services, journal.state.id, f"operations/{journal.operation}/{name}")
        services.trees.keep(ref, tree, f"{name}, {intent.words}")
    journal.append(
        "rollback.intended",
        **fields(intent, "command", "words", "subject", "trailer"),
        **fields(target, "tasks", "paths"),
        operation=journal.operation,
        said=dict(intent.fields),
        then=[{"kind": event.kind, "task": event.task, "payload": event.payload} for event in intent.then],
        before=before.commit,
        before_tree=before.tree,
        committed_tree=committed,
        after_tree=target.target,
        uncommitted=list(_uncommitted(services, target.paths, before.tree)),
        ref=before.ref,
        head=services.history.head().commit,
    )
    return _record(services, journal, contract, _restore_unchanged(services, committed, before.tree, target.paths))


def finish_interrupted(services: Services, journal: Journal, contract: Contract) -> RestoreResult | None:
    """Finish an interrupted restore. Paths that the user changed meanwhile are reported and stay as they are."""
    intended = journal.state.restoring
    if intended is None:
        return None
    services.reporter.note(f"Finishing the interrupted {intended['words']}")
    committed, before, after = (intended[f"{name}_tree"] for name in ("committed", "before", "after"))
    paths = intended["paths"]
    entry, present = services.trees.entry, services.trees.scan(paths)
    finished = {p for p in paths if entry(present, p) == entry(after, p) != entry(committed, p)}
    rest = _restore_unchanged(services, committed, before, [p for p in paths if p not in finished])
    restored = tuple(p for p in paths if p in finished or p in rest.paths)
    done = _record(services, journal, contract, Restored(restored, rest.changed))
    for words in skipped_warnings(done):
        services.reporter.note(words)
    return done


class Restored(NamedTuple):
    """The paths that are restored, and those that stay, because the user changed them."""

    paths: tuple[str, ...]
    changed: tuple[str, ...]


def _restore_unchanged(services: Services, target: str, expected: str, paths: Sequence[str]) -> Restored:
    """Restore these paths but those that the user changed."""
    user_changed: tuple[str, ...] = ()
    while conflicts := services.trees.restore(target, expected, paths):
        user_changed = (*user_changed, *(c.path for c in conflicts))
        paths = [path for path in paths if path not in user_changed]
    return Restored(tuple(paths), user_changed)


def _record(services: Services, journal: Journal, contract: Contract, restored: Restored) -> RestoreResult:
    """Commit what is restored, bring uncommitted work back on top of it, and record the result."""
    paths, state, intended = restored.paths, journal.state, journal.state.restoring
    assert intended is not None  # noqa: S101 - it is recorded first
    kind = f"{intended['command']}.completed"
    payload = {name: intended[name] for name in ("operation", "tasks", "before", "before_tree", "after_tree")}
    payload |= {**intended["said"], "paths": list(paths), "left": list(restored.changed)}
    reports = _reports(services, _state_after(state, kind, payload), contract, intended["tasks"])
    commit, reports_committed = (
        _commit(services, state, intended, paths, reports) if state.policy == COMMIT_TASK else (None, ())
    )
    committed, after = intended["committed_tree"], intended["after_tree"]
    entry = services.trees.entry
    on_top = [p for p in paths if entry(committed, p) != entry(after, p)] if committed != after else []
    changed = _restore_unchanged(services, after, committed, on_top).changed
    not_restored = (*restored.changed, *changed)
    payload |= {"paths": [p for p in paths if p not in changed], "left": list(not_restored), "commit": commit}
    events = [journal.event(kind, **payload)]
    events += [journal.event(each["kind"], each["task"], **each["payload"]) for each in intended["then"]]
    if reports_committed:
        events.append(journal.event("reports.committed", commit=commit, paths=list(reports_committed)))
    journal.write(*events)
    return RestoreResult(commit, intended["before"], not_restored)


def _state_after(state: RunState, kind: str, fields: Mapping[str, Any]) -> RunState:
    """Return the state after this event, so that its reports go into the same commit."""
    after = copy.copy(state)
    for name in ("tasks", "answers", "operations", "attempted"):
        setattr(after, name, dict(getattr(state, name)))
    event = Event(state.last_seq, "", state.id, None, None, kind, fields, 1, 0, state.changed_at, "", "")
    replay.apply(after, event)
    return after


def _commit(
    services: Services, state: RunState, intended: Mapping[str, Any], paths: Sequence[str], reports: Sequence[str]
) -> tuple[str | None, tuple[str, ...]]:
    """Commit the files and reports, or only the files if git refuses that; return the commit and its reports."""
    committable = projections.corrections(services, state, reports)
    since = services.history.trailers_since(intended["head"])
    operation = intended["operation"]
    existing = next((commit for commit, trailers in since if trailers.get("Idumb-Operation") == operation), None)
    if existing is not None:  # it was created before the process was killed
        return existing, ()
    trees, after = services.trees, intended["committed_tree"]
    uncommitted = _uncommitted(services, paths, after)
    # If the user has a folder with the name of a deleted file, a commit of that name would commit the whole folder.
    files = tuple(p for p in uncommitted if trees.entry(after, p) or not trees.is_folder(intended["before_tree"], p))
    unwanted = _uncommitted_before(services, state, after, files)
    changed = tuple(path for path in files if path not in unwanted)
    message = preconditions.message_of_run(services, state, intended["subject"])
    message += f"{intended['trailer']}\nIdumb-Operation: {operation}\n"
    if committable:
        attempt = preconditions.commit(
            services, state, (*changed, *committable), f"{message}Idumb-Reports: {state.phase}\n"
        )
        if attempt.commit is not None:
            return attempt.commit, committable
    refused = "The files are restored, but git refused the commit"
    return preconditions.commit_or_fail(services, state, changed, message, refused), ()


def _uncommitted_before(services: Services, state: RunState, tree: str, paths: Sequence[str]) -> frozenset[str]:
    """Return files to restore without a commit, because they were not committed before.

    No commit has their path, or they contain a known secret that no commit has at that path.
    """
    back = {path: entry for path in paths if (entry := services.trees.entry(tree, path)) is not None}
    if not back:
        return frozenset()
    carried = any(task.carried_from for task in state.tasks.values())  # committed before this run began
    committed = services.history.committed(None if carried else state.base.commit, back)
    new = {p: e.oid for p, e in back.items() if e.mode != SUBMODULE and e.oid not in committed.get(p, ())}
    return exposed_secrets.paths_with_secret(services, new).union(path for path in back if path not in committed)


def _uncommitted(services: Services, paths: Sequence[str], tree: str) -> tuple[str, ...]:
    """Return the paths of the present `tree` that HEAD has not or otherwise. Git does not report ignored ones."""
    entry, head = services.trees.entry, services.history.head().commit
    before, after = services.history.tree_of(head), services.trees.committed(head, tree, paths)
    staged = services.history.staged(paths)
    return tuple(path for path in paths if path in staged or entry(after, path) != entry(before, path))


def publish_reports(services: Services, journal: Journal, contract: Contract, tasks: Sequence[str]) -> tuple[str, ...]:
    """Write the reports again and commit those that the restore could not commit; return warnings."""
    reports = _reports(services, journal.state, contract, tasks)
    return projections.record_corrections(services, journal, reports)


def _reports(services: Services, state: RunState, contract: Contract, tasks: Sequence[str]) -> tuple[str, ...]:
    """Update progress, checkpoints of these tasks and verification; return the paths of the reports."""
    touched = [checkpoint_path(state.phase, task) for task in tasks]
    for task in tasks:
        if task in state.tasks and state.tasks[task].checkpoint is None:
            projections.remove(services, checkpoint_path(state.phase, task))
    touched += projections.write_at_end(services, contract, state)
    touched += projections.rewrite_verification(services, contract, state)
    return tuple(dict.fromkeys(touched))


def check_invariants(services: Services, state: RunState, contract: Contract) -> tuple[Evidence, ...]:
    """Check the plans' invariants on the restored files, if their commands are still approved."""
    invariants = [invariant for plan in contract.plans for invariant in plan.invariants]
    if not invariants:
        return ()
    try:
        phase_grants.require_for(services, contract, state)
    except Refusal:  # the files are already restored, so this only skips the checks
        return ()
    checks = services.open_checks(services.here, state.id).given(contract.variables)
    tree = task_base.tree_between_attempts(services, state, services.trees.scan())
    results = []
    for invariant in invariants:
        with services.interrupts.armed():
            subject = f"invariant {invariant.id}"
            results.append(checks.command(subject, invariant.text, invariant.check, tree=tree))
    checks.end_processes()
    return tuple(results)


def skipped_warnings(done: RestoreResult) -> tuple[str, ...]:
    return (f"not restored, because they changed: {wording.listed(done.not_restored)}",) if done.not_restored else ()
