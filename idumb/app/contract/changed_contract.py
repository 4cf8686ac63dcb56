"""The ways on where the plans or the configuration of a run changed since it locked them; each can succeed now."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from idumb.app.contract import carried_tasks, contract_versions, loading, plan_changes
from idumb.app.core import next_actions
from idumb.app.core.services import Services, plans_ref
from idumb.domain import amendment
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.plans import step_plan
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.run import RunState

AMEND, FRESH = "amend", "start-fresh"


def choices(services: Services, state: RunState, changed: Sequence[str]) -> tuple[Choice, ...]:
    """`changed` are the paths of plans; none, where the configuration is not as it was."""
    back = _put_back(services, state, changed)
    if state.opened is not None:  # neither an amendment nor a new run begins while somebody works on a task
        return (_give_up(state.opened.id), back)
    now = present(services, state.phase)
    if now is None:
        return (back, _correct(state.phase))
    fresh = _fresh(state, now)
    if not changed:
        return (back, fresh)
    ways = [_look(state.phase)]
    if state.mode == STRICT:
        ways.append(_approve(state.phase))
    if _amendable(services, state, now):
        ways.append(_amend(state.phase))
    return (*ways, back, fresh)


def hint(state: RunState, offered: Sequence[Choice]) -> str:
    """The commands that show a changed plan and take it over, in the order in which they succeed."""
    phase, known = state.phase, {choice.id: choice.command for choice in offered}
    if state.opened is not None:
        task = state.opened.id
        return f"idumb give-up {task} --why REASON ends the attempt; or put the change back and idumb submit {task}"
    if AMEND in known:
        first = f"idumb approve {phase}, then " if state.mode == STRICT else ""
        return f"idumb plan-diff {phase} shows what; {first}{known[AMEND]} takes it over"
    if FRESH in known:
        return f"put it back and idumb resume {phase}, or {known[FRESH]}"
    return f"idumb check-plan {phase} shows what is wrong with it; or put it back and idumb resume {phase}"


def present(services: Services, phase: str) -> Contract | None:
    """The contract of what is there now; None where its plans have errors or are gone."""
    try:
        return loading.runnable(services, loading.of(services, phase))
    except IdumbError:
        return None


def _amendable(services: Services, state: RunState, now: Contract) -> bool:
    try:
        found = plan_changes.since(services, state, now)
    except IdumbError:
        return False
    return amendment.forbidden(found.diff, found.contract, now, state) is None


def _put_back(services: Services, state: RunState, changed: Sequence[str]) -> Choice:
    ref, locked = plans_ref(services, state.id, state.contract.version), {path for path, _ in state.contract.plans}
    kept = {path: shlex.quote(f"{ref}:{path.rsplit('/', 1)[-1]}") for path in changed if path in locked}
    commands = [f"git show {place} > {shlex.quote(path)}" for path, place in kept.items()]
    means = "the run goes on as it was agreed; the change is gone"
    if state.opened is not None:
        means = "the attempt can be submitted as it was agreed"
    return Choice("put-back", "put it back", means, "; ".join(commands) or None)


def _give_up(task: str) -> Choice:
    means = "its work is kept in a snapshot and put back; the change can then be taken over"
    return Choice("give-up", "end the open attempt first", means, f"idumb give-up {task} --why REASON")


def _correct(phase: str) -> Choice:
    means = "every error is listed with its line; nothing is run"
    return Choice("correct", "correct the plan", means, f"idumb check-plan {phase}")


def _look(phase: str) -> Choice:
    return Choice("look", "see what changed", "nothing is written or run", f"idumb plan-diff {phase}")


def _approve(phase: str) -> Choice:
    means = "nothing is run; a strict run takes a change over only once it is approved"
    return Choice("approve", "approve the plan as it is now", means, f"idumb approve {phase}")


def _amend(phase: str) -> Choice:
    means = "the difference is shown, all is checked again, and the run goes on under the next version"
    return Choice(AMEND, "take the change as an amendment", means, f"idumb amend {phase} --from-file")


def _fresh(state: RunState, now: Contract) -> Choice:
    """A new run of what is there; work on which it cannot build is taken back first, what is strict approved first."""
    commands = [step_plan.run_command(state.phase)]
    means = "done, unchanged tasks are kept; it needs your consent anew"
    if STRICT in (state.mode, now.mode):
        commands.insert(0, f"idumb approve {state.phase}")
    done = carried_tasks.done_but_changed(now, state)
    if done:
        means = "the work of done tasks that the change is about is taken back first; it needs your consent anew"
        commands.insert(0, f"idumb rollback {state.phase} --to {carried_tasks.before(state, done[0])}")
    return Choice(FRESH, "start a run of what is there now", means, "; ".join(commands))


def same_contract(services: Services, contract: Contract, state: RunState) -> None:
    """Refusal `run.contract-changed`, with every way on as a command."""
    if contract.hash == state.contract.hash or contract_versions.adopts(state, contract.hash):
        return
    was = dict(state.contract.plans)
    changed = [p.path for p in contract.plans if was.get(p.path) != p.sha256]
    changed += [path for path in was if path not in {p.path for p in contract.plans}]
    what = ", ".join(changed) if changed else "the configuration"
    why = f"{what} changed since run {state.number} of phase {state.phase} was locked"
    offered = choices(services, state, changed)
    raise Refusal(
        "run.contract-changed",
        f"{why}; it goes on only as it was agreed.",
        hint=hint(state, offered),
        details={
            "what": f"Go on with run {state.number} of phase {state.phase}",
            "why": why,
            "evidence": [f"locked contract {state.contract.hash}", f"present contract {contract.hash}", *changed],
            "choices": next_actions.rows(offered),
            "changed": changed,
            "was": state.contract.hash,
            "is": contract.hash,
        },
    )
