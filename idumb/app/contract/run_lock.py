"""The lock of a run: its plans, configuration, policy and environment must be as they were when the run was locked.

A changed contract stops the run. A changed environment stops a strict run; a guided one records it and continues.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from idumb.app.consent import phase_grants
from idumb.app.contract import envelopes
from idumb.app.core import actions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext, RunRequest
from idumb.app.core.services import Services, from_start
from idumb.domain import canonical_json, envelope, outcome, wording
from idumb.domain import contract as contracts
from idumb.domain.action import Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.envelope import NOTHING, Change
from idumb.domain.errors import InputError, Refusal
from idumb.domain.grant import FILES, PLANS
from idumb.domain.intake import registry, self_check
from idumb.domain.intake.rule import Case
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import gate_table
from idumb.domain.runs.run import RunState

CONFIGURATION = ".idumb/config.yaml"
POLICY = ".idumb/policy/tools.yaml"
PROMPTS = ".idumb/prompts"


def require_sources(services: Services, contract: Contract) -> tuple[tuple[str, bytes], ...]:
    """Return the bytes of a contract's plans. Refusal `lock.plan-changed` if they changed after they were loaded."""
    plans = services.plans.plans(contract.folder)
    if contracts.source_hashes(plans) != {p.path: p.sha256 for p in contract.plans}:
        raise Refusal(
            "lock.plan-changed",
            f"A plan of phase {contract.phase} changed while this command started. Nothing ran.",
            hint=Action.of("check-plan", contract.phase),
            details={
                "phase": contract.phase,
                "run": phase_ids.run_command(contract.phase),
                "changed": [path for path, _ in plans],
            },
        )
    return plans


def uncommitted_inputs(services: Services, plans: Iterable[str], *, reports: bool) -> Mapping[str, Any] | None:
    """The files that a run depends on and HEAD lacks, with the command that commits them; None if HEAD has them all.

    With `reports`, reports are committed, so a clone would have them without the plan. Ignored files are excluded.
    """
    policy = (path for path, _ in services.policy.sources if not path.startswith("/"))
    prompts = (f"{PROMPTS}/{name}.md" for name in services.settings.prompts)
    missing = services.history.added((*plans, CONFIGURATION, *policy, *prompts))
    if not missing:
        return None
    names = shlex.join(from_start(services, path) for path in missing)
    command = f"git add -- {names} && git commit -m 'Plan and settings' -- {names}"
    return {"paths": list(missing), "command": command, "reports": reports}


def lock_in(context: RunContext) -> None:
    """Record the environment of the run with its checks and confidence, or the changes if it is already recorded.

    The user accepted these changes before the run continued. Plans, configuration and policy must be unchanged.
    """
    state, services = context.state, context.services
    current = envelopes.current_envelopes(services, context.agents, context.contract)
    context.locked.programs = tuple(current.programs)
    _require_same_files(context)  # without a mark: what changed since it was read, the first attempt compares
    if state.contract.lock_in is None or state.contract.lock_in["contract_hash"] != context.contract.hash:
        context.journal.append("run.locked", **_lock_payload(context, current))
        return
    changes = envelope.changes(state.contract.envelopes, current.envelopes)
    if changes or set(current.envelopes) - set(state.contract.envelopes):
        _record_changes(context, changes, current)


def _lock_payload(context: RunContext, current: envelopes.EnvelopeSet) -> dict[str, Any]:
    services, contract = context.services, context.contract
    findings = registry.findings(Case(contract, services.settings, services.policy))
    judged = self_check.assess(contract, findings)
    return {
        "contract_hash": contract.hash,
        "checks": {"errors": 0, "warnings": len(findings)},
        "levels": [rule.as_dict() for rule in gate_table.rules(services.settings)],
        "confidence": judged.score,
        "parts": [part.as_dict() for part in judged.parts],
        "envelopes": current.envelopes,
        "sources": current.sources,
    }


def require_unchanged(context: RunContext, attempt: Attempt) -> None:
    """Require, before each attempt, that nothing changed since the lock, and in strict mode a valid approval.

    A guided run keeps the plan that it started with, and names an edit of it once. Files are read only if their size,
    times or location show that they may have changed. Refusal `lock.plan-changed`, `lock.configuration-changed`,
    `envelope.changed` or that of the approval.
    """
    services, locked, mark = context.services, context.locked, _mark(context)
    if mark is None or mark != locked.mark or (locked.until and locked.until <= services.clock.now()):
        _require_same_files(context, keeps_plan=not context.strict)
        if context.strict:
            kept = phase_grants.require_approval(services, context.contract)
            locked.until, locked.bound_files = kept.expires or "", tuple(kept.parts[FILES].value)
        _require_environment(context)
        locked.mark = mark
    phase_grants.require_accepted(services, context.contract, strict=context.strict, asks=False, only=attempt.task.id)


def _mark(context: RunContext) -> str | None:
    """Return a fingerprint of the watched files and of consent; None if one changed just now."""
    files = context.services.named_files.signature(_watched_files(context))
    return None if files is None else f"{files}.{context.services.consent.mark()}"


def _watched_files(context: RunContext) -> tuple[str, ...]:
    """Plans, their folder, configuration, templates, policy and programs; if strict, the files that commands name."""
    return (
        context.contract.folder,
        CONFIGURATION,
        POLICY,
        *(path for path, _ in context.state.contract.plans),
        *(path for path, _ in context.services.policy.sources),
        PROMPTS,
        *(f"{PROMPTS}/{name}.md" for name in context.services.settings.prompts),
        *context.services.toolchain.files(),
        *context.locked.programs,
        *context.locked.bound_files,
    )


def _require_same_files(context: RunContext, *, keeps_plan: bool = False) -> None:
    """Refuse if plans, configuration or policy differ from the newest lock; with `keeps_plan`, only name the plans."""
    services, locked = context.services, dict(context.state.contract.plans)
    try:
        present = contracts.source_hashes(services.plans.plans(context.contract.folder))
        settings, policy = services.present_settings(), services.present_policy()
    except InputError as problem:
        raise _contract_refusal(
            context, "plan" if problem.code.startswith("plan") else "configuration", [problem.message]
        ) from None
    changed = sorted(path for path in {*present, *locked} if present.get(path) != locked.get(path))
    if changed and not keeps_plan:
        raise _contract_refusal(context, "plan", changed)
    if changed:
        edit = canonical_json.digest([[path, present.get(path)] for path in changed])
        shows = Action.of("check-plan", context.state.phase, "--diff")
        words = f"{wording.listed(changed)} changed; this run keeps the plan that it started with"
        context.tell_once(edit, f"{words}. {shows} shows the change.")
    governing = [contracts.governing_settings(context.contract.plans, each) for each in (settings, services.settings)]
    if governing[0].digest() != governing[1].digest():
        raise _contract_refusal(context, "configuration", [CONFIGURATION])
    if policy.digest != services.policy.digest:
        raise _contract_refusal(context, "policy", [path for path, _ in services.policy.sources] or ["the policy"])


def _contract_refusal(context: RunContext, part: str, changed: Sequence[str]) -> Refusal:
    from idumb.app.contract import changed_contract  # only a refusal needs it

    is_plan, state = part == "plan", context.state
    why = f"{wording.listed(changed)} changed during the run of phase {state.phase}"
    so = "it runs only as locked, so it stopped before the next task"
    plans, more = changed if is_plan else (), {"changed": list(changed), "part": PLANS if is_plan else part}
    code = f"lock.{part}-changed"
    return changed_contract.refusal(context.services, state, plans, code, (why, so), changed, **more)


def _require_environment(context: RunContext) -> None:
    """Require the environment of the lock in strict mode; in guided mode, record what changed and continue."""
    state = context.state
    current = envelopes.current_envelopes(context.services, context.agents, context.contract)
    changes = envelope.changes(state.contract.envelopes, current.envelopes)
    if changes and context.strict:
        raise _environment_refusal(state, changes)
    if changes:
        _record_changes(context, changes, current)


def _record_changes(context: RunContext, changes: Sequence[Change], current: envelopes.EnvelopeSet) -> None:
    """Record the changes, with the envelopes of the next attempts, and report them."""
    rows = [asdict(c) for c in changes]
    context.journal.append("envelope.changed", changes=rows, envelopes=current.envelopes, sources=current.sources)
    for part in envelope.changed_agents(changes):
        context.services.reporter.note(f"{_WORDS.get(part, part)} changed after this run was locked")


_WORDS = {
    "idumb": "idumb's own version",
    "adapter": "the agent's adapter",
    "adapter_version": "the version of the agent's adapter",
    "program": "the agent's program",
    "model": "the model",
    "prompt": "the prompt template",
    "validator": "the validator",
    "rules": "the rules of gates and roles",
    "tools": "a tool's version",
    envelope.CHECKS: "a program that checks start",
    "policy": "the policy of tools",
    "configuration": "the configuration",
}


def require_same_environment(services: Services, state: RunState, contract: Contract, request: RunRequest) -> None:
    """Require that the environment is unchanged before a strict run continues. Refusal `envelope.changed`.

    A guided run records what changed. Nothing is refused if the user accepts it, or if the run has no attempts.
    """
    if state.mode == STRICT and state.attempted and state.contract.envelopes and not request.accept_changed:
        current = envelopes.current_envelopes(services, services.adapters, contract)
        changes = envelope.changes(state.contract.envelopes, current.envelopes)
        if changes:
            raise _environment_refusal(state, changes)


def _environment_refusal(state: RunState, changes: Sequence[Change]) -> Refusal:
    """Build the refusal: the user decides whether to continue, go back or start again."""
    parts = envelope.changed_agents(changes)
    names = ", ".join(_WORDS.get(part, part) for part in parts)
    why = f"{names[:1].upper()}{names[1:]} changed after run {state.number} of phase {state.phase} was locked"
    offered = _choices(state)
    return Refusal(
        "envelope.changed",
        f"{why}; finished work was done before this change.",
        hint=f"{offered[0].command} continues anyway; {offered[-1].command} rolls back its work",
        details=actions.offer(
            f"Continue run {state.number} of phase {state.phase}",
            why,
            [f"{c.binding}: {_WORDS.get(c.part, c.part)} was {_short(c.was)}, is {_short(c.now)}" for c in changes],
            offered,
            parts=list(parts),
            changes=[asdict(c) for c in changes],
        ),
    )


def _short(value: Any) -> str:
    if value is None:
        return "unknown"
    text = value if isinstance(value, str) else envelopes.readable(value).replace("\n", "")
    return text[:16] if len(text) == len(NOTHING) else text


def _choices(state: RunState) -> tuple[Choice, ...]:
    """The choices for a run whose environment changed."""
    go_on = f"idumb resume {state.phase} --accept-changed"
    done = [t for t in state.attempted if state.tasks[t].status in outcome.DONE]
    back = [
        Choice(
            "go-back",
            "go back to the last checkpoint first",
            "later work is rolled back and kept in a snapshot; then the run continues in the present environment",
            f"idumb rollback {state.phase} --to {task}; {go_on}",
        )
        for task in done[-1:]
    ]
    kept = Choice(
        "go-on", "continue in the present environment", "the change is recorded; finished tasks stay finished", go_on
    )
    return (kept, *back, actions.start_fresh(state.phase))
