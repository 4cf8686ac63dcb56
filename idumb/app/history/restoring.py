"""What rollback and undo share: keep the present, announce, put paths back compare-and-swap, commit, record.

Killed between the announcement and the record, the next command that goes on with the run finishes it first.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idumb.app.attempt import projections, proofs
from idumb.app.consent import approvals
from idumb.app.contract import contract_versions
from idumb.app.core import projection_paths
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, kept_at, run_ref
from idumb.app.ports.repository import Conflict, Snapshot
from idumb.app.worktree import exposed_secrets, preconditions, staged_changes
from idumb.domain import wording
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.ledger import SUBMODULE, Entry
from idumb.domain.runs import replay
from idumb.domain.runs.run import RunState
from idumb.domain.settings import COMMITTED

ROLLBACK = "rollback"
UNDO = "undo"
_TOLD = 3
_STAGED = "is staged otherwise"
_PLAIN, _PROGRAM, _LINK = 0o100644, 0o100755, 0o120000


@dataclass(frozen=True, slots=True)
class Target:
    """What is about to be put back: trees in which each of `paths` is as it shall be, and as it should be now.

    Trees hold no empty folders, so those that go, where they are empty, and those that come are named.
    """

    paths: tuple[str, ...]
    target: str
    expected: str
    tasks: tuple[str, ...]
    words: str
    removed_folders: tuple[str, ...] = ()
    made_folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """How a restore is recorded: `command` is rollback or undo, `said` goes into its last event."""

    command: str
    subject: str
    trailer: str
    said: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """`kept` is the ref of the state before; `left` are paths that somebody changed and that were left alone."""

    commit: str | None
    kept: str
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Word:
    """How a person agrees: `yes` is their word by flag, and `tell` then hears what is about to be done.

    `command` gives the word without a question; `operation` is what an undo takes back; `facts` are shown with it.
    """

    yes: bool
    command: str
    facts: tuple[str, ...] = ()
    operation: str | None = None
    tell: Callable[[str], None] | None = None


def confirm(services: Services, target: Target, word: Word) -> None:
    """A person's word, by flag or at the terminal."""
    if word.yes:
        if word.tell is not None:
            word.tell(_effect(target, word))
        return
    answer = services.asker.ask(_question(target, word))
    if answer is None or answer.choice != "yes":
        raise Refusal(
            "rollback.not-confirmed",
            f"Nothing was done: {_named(target, word)} needs your word.",
            hint=word.command,
            details={
                "paths": list(target.paths),
                "tasks": list(target.tasks),
                "facts": list(word.facts),
                **({"operation": word.operation} if word.operation else {}),
            },
        )


def _named(target: Target, word: Word) -> str:
    return f"{target.words}, {word.operation}," if word.operation else target.words


def _effect(target: Target, word: Word) -> str:
    files = wording.listed(map(wording.one_line, target.paths)) or "none"
    tasks = wording.listed(target.tasks) or "none"
    lines = [_named(target, word).removesuffix(","), f"tasks: {tasks}", f"files that change: {files}", *word.facts]
    return "\n  ".join(lines)


def _question(target: Target, word: Word) -> Decision:
    named = (word.operation,) if word.operation else ()
    return Decision(
        id="confirm",
        kind="rollback",
        what=target.words,
        why="Files go back to what they were; the present is kept under a ref first, and `idumb undo` brings it back.",
        evidence=(*named, *word.facts, *(f"task {t}" for t in target.tasks), *(f"file {p}" for p in target.paths)),
        choices=(
            Choice("yes", "do it", "these files change, and a new commit says so", word.command),
            Choice("no", "leave everything", "nothing happens"),
        ),
    )


def keep_present(services: Services, journal: Journal, target: Target) -> Snapshot:
    """The snapshot of what is there, after which nothing of it can be lost; Refusal where somebody changed a path."""
    ref = run_ref(services, journal.state.id, f"operations/{journal.operation}/before")
    before = services.trees.snapshot(ref, target.words, target.paths)
    conflicts = [Conflict(path, _why(services, before, path)) for path in _changed(services, before, target)]
    if journal.state.policy in COMMITTED:
        conflicts += [Conflict(path, _STAGED) for path in _staged_alone(services, before, target)]
    if conflicts:
        raise _conflict(services, target, before, conflicts)
    return before


def _staged_alone(services: Services, before: Snapshot, target: Target) -> list[str]:
    """Paths of which the index has bytes that stand nowhere else; the commit would take their place."""
    entry, staged = services.trees.entry, services.history.staged(target.paths)
    trees = (before.tree, target.expected, target.target)
    other = [p for p, found in staged.items() if found is not None and found not in [entry(t, p) for t in trees]]
    # A filter stores other bytes than the file has, and the file has them all the same.
    differ = services.history.unlike_index(other)
    return [p for p in other if p in differ]


def _changed(services: Services, before: Snapshot, target: Target) -> list[str]:
    """Paths that are neither as the tasks left them nor as they shall be."""
    entry = services.trees.entry
    return [
        p for p in target.paths if entry(before.tree, p) not in (entry(target.expected, p), entry(target.target, p))
    ]


def _why(services: Services, before: Snapshot, path: str) -> str:
    found = services.trees.entry(before.tree, path)
    if found is None:
        return "was deleted since"
    return "is empty now; a crash may have cut it" if services.trees.read(found.oid) == b"" else "was changed since"


def _conflict(services: Services, target: Target, before: Snapshot, conflicts: Sequence[Conflict]) -> Refusal:
    """Both versions are kept, and the words say under which names."""
    named = ", ".join(f"{c.path} ({c.why})" for c in conflicts)
    ways = [_unstaged(c.path) if c.why == _STAGED else _ways(services, target, before, c.path) for c in conflicts]
    more = f" (details.files has those of {len(ways) - _TOLD} more files)" if len(ways) > _TOLD else ""
    told = "; ".join(f"{keep}, then {back}" if keep else back for keep, back in ways[:_TOLD])
    return Refusal(
        "rollback.conflict",
        f"Nothing was changed, because these files changed since: {named}",
        hint=f"Keep your version elsewhere, put the file back as the tasks left it (rm: they left none): {told}{more};"
        " then run the command again",
        details={
            "paths": [c.path for c in conflicts],
            "kept": before.ref,
            "expected": target.expected,
            "files": [
                {"path": c.path, "keep": keep or None, "put_back": back}
                for c, (keep, back) in zip(conflicts, ways, strict=True)
            ],
        },
    )


def _unstaged(path: str) -> tuple[str, str]:
    place = shlex.quote(path)
    return f"git show {shlex.quote(f':{path}')} > {shlex.quote(f'{path}.staged')}", f"git reset -q -- {place}"


def _ways(services: Services, target: Target, before: Snapshot, path: str) -> tuple[str, str]:
    """Commands: one that keeps the user's version beside it ("" where there is none), one that puts the tasks' back."""
    named = kept_at(before.ref, path)
    mine = services.trees.entry(before.tree, path)
    theirs = services.trees.entry(target.expected, path)
    keep = f"git show {shlex.quote(named)} > {shlex.quote(f'{path}.mine')}" if mine is not None else ""
    if theirs is None:
        return keep, f"rm -f {shlex.quote(path)}"  # the tasks left no such file
    return keep, _written(theirs, path, present=mine)


def _written(entry: Entry, path: str, *, present: Entry | None) -> str:
    """A shell command for the root of the work tree; a link is made anew, and bits are set where they differ."""
    place = shlex.quote(path)
    if entry.mode == _LINK:
        return f'ln -sfn -- "$(git show {entry.oid})" {place}'
    away = f"rm {place} && " if present is not None and present.mode == _LINK else ""
    folder = f"mkdir -p {shlex.quote(path.rpartition('/')[0])} && " if present is None and "/" in path else ""
    bits = "" if entry.mode == (present.mode if present else _PLAIN) else ("+x" if entry.mode == _PROGRAM else "-x")
    return f"{away}{folder}git show {entry.oid} > {place}" + (f" && chmod {bits} {place}" if bits else "")


def put_back(
    services: Services, journal: Journal, contract: Contract, target: Target, before: Snapshot, intent: Intent
) -> Done:
    """Announce, restore what is still as `before` has it, commit what differs from HEAD, record."""
    ref = run_ref(services, journal.state.id, f"operations/{journal.operation}/after")
    services.trees.keep(ref, target.target, f"after {target.words}", before.commit)
    journal.write(
        journal.event(
            "rollback.intended",
            command=intent.command,
            operation=journal.operation,
            subject=intent.subject,
            trailer=intent.trailer,
            said=dict(intent.said),
            words=target.words,
            tasks=list(target.tasks),
            paths=list(target.paths),
            before=before.commit,
            before_tree=before.tree,
            expected_tree=target.expected,
            after_tree=target.target,
            removed_folders=list(target.removed_folders),
            made_folders=list(target.made_folders),
            ref=before.ref,
            head=services.history.head().commit,
        )
    )
    conflicts = services.trees.restore(target.target, target.expected, target.paths, tell=services.reporter.note)
    if conflicts and _untouched(services, target, before, conflicts):
        journal.write(journal.event("rollback.abandoned", reason="; ".join(f"{c.path} {c.why}" for c in conflicts)))
        raise _conflict(services, target, before, conflicts)
    # Somebody changed a path when others were put back already: half of it would be neither the one nor the other.
    paths, left = _rest(services, journal.state) if conflicts else (target.paths, ())
    return _record(services, journal, contract, paths, left)


def _untouched(services: Services, target: Target, before: Snapshot, conflicts: Sequence[Conflict]) -> bool:
    """Whether nothing was put back yet."""
    entry, present = services.trees.entry, services.trees.scan(target.paths)
    refused = {c.path for c in conflicts}
    return all(entry(present, p) == entry(before.tree, p) for p in target.paths if p not in refused)


def settle(services: Services, journal: Journal, contract: Contract) -> Done | None:
    """Finish a restore that was ended in the middle. What somebody changed since stays as it is, and is named."""
    intended = journal.state.restoring
    if intended is None:
        return None
    services.reporter.note(f"{intended['words']} was ended in the middle; it is finished now")
    done = _record(services, journal, contract, *_rest(services, journal.state))
    for words in left_alone(done):
        services.reporter.note(words)
    publish_all(services, journal, contract, intended["tasks"])
    return done


def _rest(services: Services, state: RunState) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Put back what still can be of an announced restore; the paths that are, and those that somebody changed."""
    intended = state.restoring or {}
    left = tuple[str, ...]()
    trees = (intended["after_tree"], intended["expected_tree"])
    paths = exposed_secrets.names_in(services, intended["paths"], *trees)
    while conflicts := services.trees.restore(*trees, paths, tell=services.reporter.note):
        left = (*left, *(c.path for c in conflicts))
        paths = tuple(path for path in paths if path not in set(left))
    return paths, left


def _put_folders(services: Services, intended: Mapping[str, Any]) -> None:
    trees = (intended["before_tree"], intended["after_tree"])
    removed = exposed_secrets.folders_in(services, intended.get("removed_folders", ()), *trees)
    made = exposed_secrets.folders_in(services, intended.get("made_folders", ()), *trees)
    if removed:
        services.trees.remove_folders(removed)
    if made:
        services.trees.make_folders(made)


def _record(
    services: Services, journal: Journal, contract: Contract, paths: Sequence[str], left: tuple[str, ...]
) -> Done:
    state, intended = journal.state, journal.state.restoring
    if intended is None:
        raise AssertionError("a restore is announced before it is recorded")
    _put_folders(services, intended)
    said = {
        **intended["said"],
        "operation": intended["operation"],
        "tasks": list(intended["tasks"]),
        "paths": list(paths),
        "left": list(left),
        "before": intended["before"],
        "before_tree": intended["before_tree"],
        "after_tree": intended["after_tree"],
        "removed_folders": list(intended.get("removed_folders", ())),
        "made_folders": list(intended.get("made_folders", ())),
    }
    kind = f"{intended['command']}.completed"
    reports = _reports(services, _after(state, kind, said), contract, intended["tasks"])
    commit, told = _commit(services, state, intended, paths, reports) if state.policy in COMMITTED else (None, ())
    events = [journal.event(kind, **said, commit=commit)]
    events += [journal.event("reports.committed", commit=commit, paths=list(told))] if told else []
    journal.write(*events)
    return Done(commit, intended["ref"], left)


def _after(state: RunState, kind: str, said: Mapping[str, Any]) -> RunState:
    """The state as it is once this is recorded, so that the reports of it go into the same commit."""
    found = dataclasses.replace(
        state,
        tasks=dict(state.tasks),
        answers=dict(state.answers),
        operations=dict(state.operations),
        attempted=dict(state.attempted),
    )
    replay.apply(found, contract_versions.unwritten(kind, None, said, state.id, state.last_seq, state.changed_at))
    return found


def _commit(
    services: Services, state: RunState, intended: Mapping[str, Any], paths: Sequence[str], reports: Sequence[str]
) -> tuple[str | None, tuple[str, ...]]:
    """The commit of the files and the reports, and which reports are in it; of the files alone where git refuses it."""
    told = projections.to_commit(services, state, reports)
    made = _made(services, intended)
    if made is not None:
        services.history.settle(made, (*paths, *reports))
        return made, ()
    new = _new(services, paths, intended["after_tree"])
    found = dict.fromkeys((*services.history.uncommitted(paths), *new))
    # A folder of the user's where a file goes: to commit that name would commit everything in the folder.
    files = tuple(path for path in found if not services.trees.is_folder(intended["before_tree"], path))
    unasked = _uncommitted_before(services, state, intended["after_tree"], files)
    changed = tuple(path for path in files if path not in unasked)
    message = f"{intended['subject']}\n\nIdumb-Run: {state.id}\n{intended['trailer']}\n"
    message += f"Idumb-Operation: {intended['operation']}\n"
    # Between a kill and the command that finishes the restore, a person may have staged something.
    ref = run_ref(services, state.id, f"operations/{intended['operation']}/staged")
    trees = (intended["before_tree"], intended["expected_tree"], intended["after_tree"])
    staged = staged_changes.hold(services, ref, changed, trees, f"what was staged before {intended['words']}")
    made, told = _written_to_history(services, state, changed, told, message)
    staged_changes.tell_replaced(services, ref, staged, intended["words"])
    return made, told


def _written_to_history(
    services: Services, state: RunState, changed: Sequence[str], told: tuple[str, ...], message: str
) -> tuple[str | None, tuple[str, ...]]:
    if told:
        whole = preconditions.commit(services, (*changed, *told), f"{message}Idumb-Reports: {state.phase}\n")
        if whole.commit is not None:
            return whole.commit, told
    refused = "The files are put back, but git refused the commit"
    return preconditions.commit_or_fail(services, changed, message, refused), ()


def _uncommitted_before(services: Services, state: RunState, tree: str, paths: Sequence[str]) -> frozenset[str]:
    """Files that are put back and stay uncommitted, as they were.

    No commit has their path, or they hold a known secret that no commit has at that path.
    """
    back = {path: entry for path in paths if (entry := services.trees.entry(tree, path)) is not None}
    if not back:
        return frozenset()
    carried = any(known.carried_from for known in state.tasks.values())  # committed before this run began
    known = services.history.committed(None if carried else state.base.commit, tuple(back))
    new = {p: e.oid for p, e in back.items() if e.mode != SUBMODULE and e.oid not in known.get(p, ())}
    return exposed_secrets.secret_in(services, new).union(path for path in back if path not in known)


def _made(services: Services, intended: Mapping[str, Any]) -> str | None:
    """The commit of this restore, where it was made just before the executor was ended."""
    for commit, trailers in services.history.trailers_since(intended["head"]):
        if trailers.get("Idumb-Operation") == intended["operation"]:
            return commit
    return None


def _new(services: Services, paths: Sequence[str], tree: str) -> Iterator[str]:
    """Files that HEAD lacks: git does not call them uncommitted where its ignore rules cover them."""
    head = services.history.head_tree()
    for path in paths:
        if services.trees.entry(tree, path) is not None and (head is None or services.trees.entry(head, path) is None):
            yield path


def publish_all(services: Services, journal: Journal, contract: Contract, tasks: Sequence[str]) -> tuple[str, ...]:
    """The reports once more, and the commit of what the restore could not commit with its files; warnings."""
    return projections.record_reports(services, journal, _reports(services, journal.state, contract, tasks))


def _reports(services: Services, state: RunState, contract: Contract, tasks: Sequence[str]) -> tuple[str, ...]:
    """Progress is trimmed to match; checkpoints of rolled-back tasks go, or come back; verified is what still is."""
    touched = [projection_paths.checkpoint_path(state.phase, task) for task in tasks]
    known = [task for task in tasks if task in state.tasks]
    for task in known:
        if state.tasks[task].checkpoint is None:
            projections.remove(services, projection_paths.checkpoint_path(state.phase, task))
    back = [task for task in known if state.tasks[task].checkpoint is not None and task in contract.tasks]
    projections.checkpoints_again(services, state, contract, back)
    if set(contract.order) == set(state.tasks):
        touched += projections.ending(services, contract, state)
    touched += projections.verification(services, contract, state)
    return tuple(dict.fromkeys(touched))


def invariants(services: Services, state: RunState, contract: Contract) -> tuple[Evidence, ...]:
    """The plans' invariants, judged again on what was put back; only commands that a word holds for."""
    if contract.hash != state.contract.hash:
        return ()
    try:
        approvals.require_for(services, contract, state)
    except Refusal:  # the files are back already: nothing more is started, and nothing is refused
        return ()
    checks = services.open_checks(services.open_workspace("here", state.id), state.id)
    limit = float(services.settings.run.check_timeout)
    found = []
    for invariant in (i for plan in contract.plans for i in plan.invariants):
        with services.interrupts.armed():
            subject = f"invariant {invariant.id}"
            found.append(checks.command(subject, invariant.text, invariant.check, timeout=limit, tree=None))
    checks.end_processes()
    return tuple(found)


def answer(done: Done, target: Target, state: RunState, judged: Sequence[Evidence], **more: Any) -> dict[str, Any]:
    """What both commands print."""
    return {
        "phase": state.phase,
        "invariants": [proofs.evidence_payload(e) for e in judged],
        "paths": list(target.paths),
        "tasks": list(target.tasks),
        "commit": done.commit,
        "kept": done.kept,
        **more,
    }


def left_alone(done: Done) -> tuple[str, ...]:
    return (f"changed since and left as they are: {wording.listed(done.left)}",) if done.left else ()


def broken(judged: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(f"{e.subject} does not hold after this: {e.text} ({e.result})" for e in judged if not e.passed)
