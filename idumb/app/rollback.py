"""Rollback and undo: put back the paths that tasks changed, never anything else, never over a user's change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from idumb.app import loading, place, publish, recording, recovery, session
from idumb.app.journal import Journal
from idumb.app.ports import Snapshot
from idumb.app.result import Result
from idumb.app.services import Services, run_ref
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import InputError, Refusal
from idumb.domain.event import Event
from idumb.domain.evidence import Evidence
from idumb.domain.run import START, RunState, TaskState, replay

UNDOABLE = ("rollback.completed", "undo.completed", "attempt.started")


@dataclass(frozen=True, slots=True)
class Target:
    """What is about to be put back: trees in which each of `paths` is as it shall be, and as it should be now."""

    paths: tuple[str, ...]
    target: str
    expected: str
    tasks: tuple[str, ...]
    words: str


def rollback(services: Services, phase: str, to: str, *, yes: bool) -> Result:
    """Back to the checkpoint after task `to`, or to the start of the run."""
    place.require_initialised(services)
    contract = _contract(services, phase)
    state = session.require_run(services, contract.phase)
    target_task = _checked(state, to)
    if not attempted_after(services, state, target_task):
        return Result(
            {
                "phase": state.phase,
                "to": to,
                "paths": [],
                "tasks": [],
                "commit": None,
                "next": [f"idumb resume {state.phase}"],
            }
        )
    place.require_repository(services)
    place.require_branch(services, state)
    with session.owned(services, "rollback") as owned:
        journal = owned.journal(state)
        _settle_killed(services, journal, contract)
        undone = attempted_after(services, state, target_task)
        present = services.trees.scan(_all_paths(undone))
        target = _target(services, present, undone, f"rollback of phase {state.phase} to {to}")
        _confirm(services, target, yes=yes, command=f"idumb rollback {phase} --to {to} --yes")
        before, after, commit = _put_back(
            services, journal, target, f"Roll back phase {state.phase} to {to}", f"Idumb-Rollback: {to}"
        )
        journal.write(
            journal.event(
                "rollback.completed",
                to=to,
                tasks=list(target.tasks),
                paths=list(target.paths),
                commit=commit,
                before=before.commit,
                before_tree=before.tree,
                after_tree=after,
            )
        )
        _publish(services, contract, state, target.tasks)
        invariants = _invariants(services, state, contract)
    return Result(
        {
            "phase": state.phase,
            "to": to,
            "invariants": [recording.evidence_payload(e) for e in invariants],
            "paths": list(target.paths),
            "tasks": list(target.tasks),
            "commit": commit,
            "kept": before.ref,
            "next": ["idumb undo", f"idumb resume {state.phase}"],
        },
        warnings=_broken(invariants),
    )


def _invariants(services: Services, state: RunState, contract: Contract) -> tuple[Evidence, ...]:
    """The plans' invariants, judged again on what was put back; only commands that somebody consented to."""
    if contract.hash != state.contract_hash or not services.consent.given(contract.hash):
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


def _broken(invariants: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(f"{e.subject} does not hold after this: {e.text} ({e.result})" for e in invariants if not e.passed)


def _settle_killed(services: Services, journal: Journal, contract: Contract) -> None:
    """What a killed attempt left is its own too, so it is recorded before anything is put back."""
    killed = [t for t, known in journal.state.tasks.items() if known.running and t in contract.tasks]
    if not killed:
        return
    bench = session.bench(services, journal, contract)
    for task in killed:
        recovery.record_interruption(bench, contract.tasks[task])
    bench.workspace.close()


def undo(services: Services, *, yes: bool) -> Result:
    """Undo the newest rollback, undo or run of this work tree."""
    place.require_initialised(services)
    found = _newest(services)
    if found is None:
        raise Refusal("undo.nothing", "There is nothing to undo in this work tree.", hint="idumb log")
    state, event = found
    if event.kind == "attempt.started":
        return _undo_run(services, state, event, yes=yes)
    p = event.payload
    place.require_repository(services)
    place.require_branch(services, state)
    with session.owned(services, "undo") as owned:
        services.trees.scan(p["paths"])
        words = f"undo of {event.kind.split('.')[0]}" + (f" to {p['to']}" if "to" in p else "")
        target = Target(tuple(p["paths"]), p["before_tree"], p["after_tree"], tuple(p["tasks"]), words)
        _confirm(services, target, yes=yes, command="idumb undo --yes")
        journal = owned.journal(state)
        subject = f"Undo: {words.removeprefix('undo of ')}"
        before, after, commit = _put_back(services, journal, target, subject, f"Idumb-Undo: {event.operation}")
        journal.write(
            journal.event(
                "undo.completed",
                undone=event.operation,
                paths=list(target.paths),
                tasks=list(target.tasks),
                commit=commit,
                before=before.commit,
                before_tree=before.tree,
                after_tree=after,
            )
        )
        contract = _contract(services, state.phase)
        _publish(services, contract, state, target.tasks)
        invariants = _invariants(services, state, contract)
    return Result(
        {
            "undone": event.operation,
            "invariants": [recording.evidence_payload(e) for e in invariants],
            "what": words.removeprefix("undo of "),
            "phase": state.phase,
            "paths": list(target.paths),
            "tasks": list(target.tasks),
            "commit": commit,
            "kept": before.ref,
            "next": ["idumb next", "idumb undo"],
        },
        warnings=_broken(invariants),
    )


def _undo_run(services: Services, state: RunState, event: Event, *, yes: bool) -> Result:
    """Undoing a run is a rollback of the tasks that its operation tried first."""
    first = next(iter(services.log.events(run=state.id, operation=event.operation, kind="attempt.started", limit=1)))
    done_before = [
        (k.checkpoint.seq, k.id)
        for _, k in _attempts(services, state, {})
        if k.checkpoint and k.checkpoint.seq < first.seq and state.tasks[k.id].status in outcome.DONE
    ]
    return rollback(services, state.phase, max(done_before)[1] if done_before else START, yes=yes)


def _newest(services: Services) -> tuple[RunState, Event] | None:
    """The newest undoable event over all phases' newest runs."""
    best: tuple[RunState, Event] | None = None
    for phase in services.runs.phases():
        state = session.latest_run(services, phase)
        if state is None:
            continue
        for kind in UNDOABLE:
            for event in services.log.events(run=state.id, kind=kind, newest_first=True, limit=1):
                if best is None or event.seq > best[1].seq:
                    best = (state, event)
    return best


def _contract(services: Services, phase: str) -> Contract:
    loaded = loading.load(services.plans, phase, services.settings)
    if loaded.contract is None:
        raise InputError(
            "plan.invalid", f"Phase {phase} cannot be read.", findings=loaded.findings, hint=f"idumb check-plan {phase}"
        )
    return loaded.contract


def _checked(state: RunState, to: str) -> str:
    if to == START:
        return to
    match = next((t for t in state.tasks if t.casefold() == to.casefold()), None)
    if match is None or state.tasks[match].checkpoint is None:
        known = [t for t, k in state.tasks.items() if k.checkpoint is not None]
        raise InputError(
            "rollback.no-checkpoint",
            f"There is no checkpoint of {to} in run {state.number} of phase {state.phase}.",
            hint=f"--to start, or one of: {', '.join(known) or 'none yet'}",
        )
    return match


def attempted_after(services: Services, state: RunState, to: str) -> tuple[TaskState, ...]:
    """Tasks attempted after the checkpoint, in the order of their first attempt.

    Those carried from earlier runs of the phase are included.
    """
    order = _attempts(services, state, {})
    if to != START:
        limit = _position(order, to)
        order = order[limit + 1 :]
    return tuple(known for _, known in order)


def _position(order: Sequence[tuple[int, TaskState]], task: str) -> int:
    checkpoint = next(k.checkpoint for _, k in order if k.id == task)
    last = checkpoint.seq if checkpoint else 0
    return max((i for i, (seq, _) in enumerate(order) if seq <= last), default=-1)


def _attempts(services: Services, state: RunState, seen: dict[str, RunState]) -> list[tuple[int, TaskState]]:
    found = [(seq, state.tasks[task]) for task, seq in state.attempted.items()]
    for task, known in state.tasks.items():
        if known.carried_from and known.checkpoint is not None and task not in state.attempted:
            origin = _origin(services, known, seen)
            if origin is not None:
                found.append(origin)
    return sorted(found, key=lambda item: item[0])


def _origin(services: Services, known: TaskState, seen: dict[str, RunState]) -> tuple[int, TaskState] | None:
    """The run that really did a carried task, followed back as far as need be."""
    while known.carried_from is not None:
        run = known.carried_from
        if run not in seen:
            seen[run] = replay(services.log.events(run=run))
        earlier = seen[run]
        if known.id in earlier.attempted:
            return earlier.attempted[known.id], earlier.tasks[known.id]
        known = earlier.tasks[known.id]
    return None


def _all_paths(undone: Sequence[TaskState]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for known in undone for path in known.touched))


def _target(services: Services, present: str, undone: Sequence[TaskState], words: str) -> Target:
    """Each path as it was before the first task that touched it, and as the last one left it."""
    target = expected = present
    placed: set[str] = set()
    for known in undone:
        fresh = [p for p in known.touched if p not in placed]
        placed.update(fresh)
        if fresh and known.base:
            target = services.trees.overlay(target, known.base, fresh)
        if known.touched and known.left:
            expected = services.trees.overlay(expected, known.left, known.touched)
    return Target(tuple(sorted(placed)), target, expected, tuple(k.id for k in undone), words)


def _confirm(services: Services, target: Target, *, yes: bool, command: str) -> None:
    if yes:
        return
    answer = services.asker.ask(_question(target, command))
    if answer is None or answer.choice != "yes":
        raise Refusal(
            "rollback.not-confirmed",
            f"Nothing was done: {target.words} needs your word.",
            hint=command,
            details={"paths": list(target.paths), "tasks": list(target.tasks)},
        )


def _question(target: Target, command: str) -> Decision:
    return Decision(
        id="confirm",
        kind="rollback",
        what=target.words,
        why="Files go back to what they were; the present is kept under a ref first, and `idumb undo` brings it back.",
        evidence=(*(f"task {t}" for t in target.tasks), *(f"file {p}" for p in target.paths)),
        choices=(
            Choice("yes", "do it", "these files change, and a new commit says so", command),
            Choice("no", "leave everything", "nothing happens"),
        ),
    )


def _put_back(
    services: Services, journal: Journal, target: Target, subject: str, trailer: str
) -> tuple[Snapshot, str, str | None]:
    """Keep the present, restore compare-and-swap, commit what differs from HEAD; (before, tree after, commit)."""
    state = journal.state
    ref = run_ref(services, state.id, f"operations/{journal.operation}/before")
    before = services.trees.snapshot(ref, target.words, target.paths)
    conflicts = services.trees.restore(target.target, target.expected, target.paths)
    if conflicts:
        named = ", ".join(f"{c.path} ({c.why})" for c in conflicts)
        raise Refusal(
            "rollback.conflict",
            f"Nothing was changed, because these files changed since: {named}",
            hint="Keep your version elsewhere, put these files back as the tasks left them (idumb diff TASK shows how),"
            " then say it again",
            details={"paths": [c.path for c in conflicts], "kept": before.ref},
        )
    after = services.trees.scan(target.paths)
    if _goes_on(services, journal):
        before = dataclasses.replace(before, tree=services.trees.overlay(before.tree, target.expected, target.paths))
    commit = None
    if state.policy == "task":
        commit = _commit(services, state, target.paths, after, subject, trailer)
    return before, after, commit


def _goes_on(services: Services, journal: Journal) -> bool:
    """Whether the operation before was a rollback or undo that was ended after it had begun to put files back.

    What is undone then is not the present, but what was there before that one.
    """
    run = journal.state.id
    started = services.log.events(run=run, kind="operation.started", newest_first=True, limit=2)
    before = next((e for e in started if e.operation != journal.operation), None)
    if before is None or before.payload["command"] not in {"rollback", "undo"}:
        return False
    kinds = {e.kind for e in services.log.events(run=run, operation=before.operation)}
    return kinds.isdisjoint({"rollback.completed", "undo.completed"})


def _commit(
    services: Services, state: RunState, paths: Sequence[str], tree: str, subject: str, trailer: str
) -> str | None:
    changed = tuple(dict.fromkeys((*services.history.uncommitted(paths), *_new(services, paths, tree))))
    message = f"{subject}\n\nIdumb-Run: {state.id}\n{trailer}\n"
    return place.commit_or_fail(services, changed, message, "The files are put back, but git refused the commit")


def _new(services: Services, paths: Sequence[str], tree: str) -> Iterator[str]:
    """Files that HEAD lacks: git does not call them uncommitted where its ignore rules cover them."""
    head = services.history.head_tree()
    for path in paths:
        if services.trees.entry(tree, path) is not None and (head is None or services.trees.entry(head, path) is None):
            yield path


def _publish(services: Services, contract: Contract, state: RunState, tasks: Sequence[str]) -> None:
    """Progress is trimmed to match; checkpoint files of rolled-back tasks go, or come back; all in one commit."""
    touched = []
    for task in tasks:
        known = state.tasks.get(task)
        touched.append(publish.checkpoint_path(state.phase, task))
        if known is not None and known.checkpoint is None:
            publish.remove(services, touched[-1])
        elif known is not None and task in contract.tasks:
            publish.checkpoint_again(services, state, contract.tasks[task])
    if set(contract.order) == set(state.tasks):
        touched += publish.ending(services, contract, state)
    if services.settings.git.commit_reports and state.policy == "task":
        publish.commit_reports(services, state, tuple(dict.fromkeys(touched)))
