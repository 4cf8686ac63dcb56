"""How plans and configuration differ from those that a run locked, and what can be done then.

Every action that is offered can succeed now. A new run takes over the finished tasks that did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from idumb.app.contract import contract_versions, loading
from idumb.app.core import actions, kept_runs, run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.services import Result, Services, plans_ref
from idumb.app.worktree import preconditions
from idumb.domain import contract as contracts
from idumb.domain import outcome, plan_diff
from idumb.domain.action import REASON, Action, Choice
from idumb.domain.amendment import forbidden
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import DROPPED, EFFECT, RunState

AMEND, FRESH = "amend", "start-fresh"


def choices(services: Services, state: RunState, changed: Sequence[str]) -> tuple[Choice, ...]:
    """`changed` are the paths of plans; () if the configuration changed."""
    phase, opened = state.phase, state.opened
    means = "the run continues as approved, without the change"
    commands = loading.restore_commands(services, state, changed) if changed else ""
    if opened is not None:  # neither an amendment nor a new run starts while an attempt is open
        means = "a snapshot keeps its work, the files are restored, and then the run can be amended"
        give_up = Choice(
            "give-up", "end the open attempt first", means, Action.of("give-up", opened.id, "--why", REASON)
        )
        return (give_up, Choice("put-back", "revert it", "the attempt can be submitted as approved", commands or None))
    back = Choice("put-back", "revert it", means, commands or None)
    now = present_contract(services, phase)
    if now is None:
        means = "every error is listed with its line; nothing runs"
        correct = Choice("correct", "fix the plan", means, Action.of("check-plan", phase))
        return (back, correct, *_go_back(services, state))
    otherwise = (back, *_go_back(services, state), _fresh_choice(state, now))
    if not changed and now.hash == state.contract.hash:  # the policy changed, which no amendment takes over
        return otherwise
    offered = [
        Choice("look", "see what changed", "nothing is written or run", Action.of("check-plan", phase, "--diff"))
    ]
    if state.mode == STRICT:
        means = "nothing runs; a strict run takes over a change only after it is approved"
        offered.append(Choice("approve", "approve the plan as it is now", means, Action.of("approve", phase)))
    if _amendable(services, state, now):
        offered.append(_amend_choice(phase))
    return (*offered, *otherwise)


def _go_back(services: Services, state: RunState) -> tuple[Choice, ...]:
    """Return the choice to restore the last checkpoint; () if nothing is after it, or the rollback would be refused."""
    done = [(t.checkpoint.seq, t.id) for t in state.tasks.values() if t.status in outcome.DONE and t.checkpoint]
    seq, last = max(done, default=(0, ""))
    after = [task for task, began in state.attempted.items() if began > seq]
    if not last or not after or any(state.tasks[task].effect == EFFECT for task in after):
        return ()
    try:
        loading.locked_contract(services, state)
        kept_runs.require_snapshots(services, state, after)
        preconditions.require_branch(services, state)
    except IdumbError:
        return ()
    means = f"work after {last} is rolled back and kept in a snapshot; the run still continues only as approved"
    command = Action.of("rollback", state.phase, "--to", last)
    return (Choice("go-back", "go back to the last checkpoint", means, command),)


def present_contract(services: Services, phase: str) -> Contract | None:
    """The present contract; None if its plans have errors or are missing."""
    try:
        return loading.valid_contract(services, loading.load_phase(services, phase))
    except IdumbError:
        return None


def _amendable(services: Services, state: RunState, now: Contract) -> bool:
    try:
        changes = since_lock(services, state, now)
    except IdumbError:
        return False
    return forbidden(changes.diff, changes.contract, now, state) is None


def _amend_choice(phase: str) -> Choice:
    means = "the difference is shown, everything is checked again, and the run continues under the next version"
    return Choice(AMEND, "amend the run with the change", means, Action.of("amend", phase, "--from-file"))


def _fresh_choice(state: RunState, now: Contract) -> Choice:
    """A new run of the present plans, after a rollback of work that it would repeat and, if strict, an approval."""
    commands = [phase_ids.run_command(state.phase)]
    means = "finished, unchanged tasks are kept; the new run needs your consent"
    if STRICT in (state.mode, now.mode):
        commands.insert(0, Action.of("approve", state.phase))
    done = done_but_changed(now, state)
    if done:
        means = "finished tasks that changed are rolled back first; the new run needs your consent"
        commands.insert(0, Action.of("rollback", state.phase, "--to", rollback_target(state, done[0])))
    return Choice(FRESH, "start a new run of the present plans", means, "; ".join(map(str, commands)))


def require_not_dropped(state: RunState) -> None:
    if state.state == DROPPED:
        raise Refusal(
            "phase.dropped",
            f"Phase {state.phase} was dropped: {state.reason}",
            hint=actions.undo_drop(state),
            details={"phase": state.phase},
        )


def require_contract_of_run(services: Services, contract: Contract, state: RunState) -> None:
    """Refusal `phase.dropped`, or `run.contract-changed` if this is not the contract of the run."""
    require_not_dropped(state)
    if contract_versions.is_run_of(state, contract):
        return
    was = dict(state.contract.plans)
    changed = [p.path for p in contract.plans if was.get(p.path) != p.sha256]
    changed += [path for path in was if path not in {p.path for p in contract.plans}]
    subject = ", ".join(changed) if changed else "the configuration"
    why = f"{subject} changed since run {state.number} of phase {state.phase} was locked"
    evidence = (f"locked contract {state.contract.hash}", f"present contract {contract.hash}", *changed)
    more = {"changed": changed, "was": state.contract.hash, "is": contract.hash}
    so = "the run continues only as approved"
    raise refusal(services, state, changed, "run.contract-changed", (why, so), evidence, **more)


def refusal(
    services: Services,
    state: RunState,
    plans: Sequence[str],
    code: str,
    words: tuple[str, str],
    evidence: Sequence[str],
    **more: Any,
) -> Refusal:
    """Return the refusal to continue a run whose `plans` changed; () if it is something else that changed."""
    offered, (why, so) = choices(services, state, plans), words
    blocked = f"Continue run {state.number} of phase {state.phase}"
    details = actions.offer(blocked, why, evidence, offered, **more)
    return Refusal(code, f"{why}; {so}.", hint=_hint(state, offered), details=details)


def _hint(state: RunState, offered: Sequence[Choice]) -> str:
    """The commands that show a changed plan and amend the run, in the order to run them."""
    phase, commands = state.phase, {choice.id: choice.command for choice in offered}
    if state.opened is not None:
        task = state.opened.id
        return f"idumb give-up {task} --why REASON ends the attempt; or revert the change and run idumb submit {task}"
    if AMEND in commands:
        first = f"idumb approve {phase}, then " if state.mode == STRICT else ""
        return f"idumb check-plan {phase} --diff shows the change; {first}{commands[AMEND]} amends the run"
    if FRESH in commands:
        return f"Revert it and run idumb resume {phase}, or {commands[FRESH]}"
    return f"idumb check-plan {phase} shows the errors; or revert it and run idumb resume {phase}"


class ChangesSinceLock(Struct, frozen=True):
    """`contract` as it was locked, and `diff` to the present plans."""

    state: RunState
    contract: Contract
    diff: plan_diff.PlanDiff


def difference(services: Services, phase: str) -> Result:
    """`idumb check-plan N --diff`: compare the plans with those that the newest run locked. Reads only."""
    now = loading.require_contract(services, phase)
    state = run_lookup.require_run(services, now.phase)
    diff, same = since_lock(services, state, now).diff, now.hash == state.contract.hash
    data: dict[str, Any] = {
        "phase": now.phase,
        "since": {
            "run": state.id,
            "number": state.number,
            "version": state.contract.version,
            "contract_hash": state.contract.hash,
            "ref": plans_ref(services, state.id, state.contract.version),
            "at": str(state.contract.amendments[-1]["at"]) if state.contract.amendments else state.started_at,
        },
        "contract_hash": now.hash,
        "same": same,
        **diff.as_dict(),
        "lines": list(diff.lines()),
        "verified": same and contract_versions.is_verified(state, now),
        "next": [actions.NEXT if same else Action.of("amend", now.phase, "--from-file")],
    }
    return Result(data)


def since_lock(services: Services, state: RunState, now: Contract) -> ChangesSinceLock:
    """Compare the plans that the run last locked with `now`. Refuses if the locked plans are lost."""
    locked = loading.locked_contract(services, state)
    diff = plan_diff.compare(locked, now, configuration=locked.hash != state.contract.hash)
    return ChangesSinceLock(state, locked, diff)


# Finished tasks that a new run takes over


def carried_tasks(contract: Contract, before: RunState) -> tuple[str, ...]:
    """The tasks that the previous run finished, that did not change, and whose dependencies are carried too."""
    tasks: dict[str, None] = {}
    for task in contract.order:
        earlier = before.tasks.get(task)
        if earlier and earlier.omitted_by in ((task,) if contract.tasks[task].is_history else tasks):
            tasks[task] = None
            continue
        if earlier is None or earlier.status not in outcome.DONE or earlier.checkpoint is None:
            continue
        same = earlier.digest == contracts.task_digest(contract.tasks[task])
        if same and all(d in tasks for d in contract.dependencies[task]):
            tasks[task] = None
    return tuple(tasks)


def done_but_changed(contract: Contract, before: RunState) -> tuple[str, ...]:
    """Finished tasks that a new run would repeat on top of their own work; () if the files contain none of it."""
    kept = carried_tasks(contract, before)
    again = [
        task
        for task in before.attempted
        if task in contract.tasks and task not in kept and before.tasks[task].status in outcome.DONE
    ]
    return tuple(again) if any(before.tasks[t].work.touched for t in again) else ()


def rollback_target(state: RunState, task: str) -> str:
    """The target of a rollback that undoes this task: the task attempted before it, or `start`."""
    earlier = [t for t, seq in state.attempted.items() if seq < state.attempted[task]]
    return earlier[-1] if earlier else "start"


def events_of_carried(journal: Journal, contract: Contract, before: RunState) -> list[NewEvent]:
    """Return the events that record the carried tasks in the new run."""
    carried_events: list[NewEvent] = []
    for task in carried_tasks(contract, before):
        earlier = before.tasks[task]
        if earlier.status == outcome.OMITTED:
            carried_events.append(journal.event("task.omitted", task, by=earlier.omitted_by, reason=earlier.reason))
            continue
        assert earlier.checkpoint is not None  # noqa: S101 - `carried_tasks` requires a checkpoint
        carried_events.append(
            journal.event(
                "task.carried",
                task,
                from_run=before.id,
                status=earlier.status,
                reason=earlier.reason,
                effect=earlier.effect,
                **({"outputs": dict(earlier.outputs)} if earlier.outputs else {}),
                checkpoint=asdict(earlier.checkpoint),
            )
        )
    return carried_events
