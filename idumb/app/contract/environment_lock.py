"""The environment lock: a run records what its attempts run under and compares it before each attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from idumb.app.contract import envelopes
from idumb.app.core import next_actions
from idumb.app.core.run_context import Attempt, RunContext
from idumb.app.core.services import Services
from idumb.domain import agent, canonical_json, confidence, outcome
from idumb.domain.consent import envelope
from idumb.domain.consent.envelope import NOTHING, Change, envelope_key
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.intake import registry
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import levels
from idumb.domain.runs.run import RunState
from idumb.domain.settings import Settings

ADAPTER = "adapter"
ENVELOPE = "envelope"
ACCEPTED = (ADAPTER, ENVELOPE)
"""Values of `--accept-changed`: a change of the agent, or any change."""


_LIVE = ("program", "tools", envelope.CHECKS)
"""Parts whose changes take effect during a run. Other changes take effect with the next command."""


def changed_since(services: Services, state: RunState, known: Contract) -> tuple[Change, ...]:
    """The parts that changed since the run was locked; () if it never was.

    An equivalent newer template is no change. Neither is the contract, which is compared separately.
    """
    if not state.contract.envelopes:
        return ()
    current = envelopes.present(services, services.adapters, known)
    differ = envelope.changes(state.contract.envelopes, current.envelopes)
    return tuple(c for c in differ if c.part != "validator" or current.grown.get(c.now) != c.was)


def lock_in(run_context: RunContext) -> None:
    """Record the environment of the run with its checks and confidence, or the changes if it is already recorded.

    The user accepted these changes before the run continued.
    """
    state, services = run_context.journal.state, run_context.services
    current = envelopes.present(services, run_context.agents, run_context.contract)
    run_context.watched["programs"] = current.programs
    run_context.watched["mark"] = _signature(run_context)
    if state.contract.lock_in is None or state.contract.lock_in["contract_hash"] != run_context.contract.hash:
        run_context.journal.write(run_context.journal.event("run.locked", **_locked(run_context, current)))
        return
    changes = envelope.changes(state.contract.envelopes, current.envelopes)
    if changes or set(current.envelopes) - set(state.contract.envelopes):
        _record_changes(run_context, changes, current, current.envelopes, during=False)


def _locked(run_context: RunContext, current: envelopes.EnvelopeSet) -> dict[str, Any]:
    services, known = run_context.services, run_context.contract
    rules = levels.rules(services.settings)
    findings = registry.findings(known, services.settings, services.policy)
    used = _blocking_agents(known, services.settings)
    judged = confidence.assess(known, findings, [name for name in used if _starts(run_context, name)], used)
    return {
        "contract_hash": known.hash,
        "checks": {"errors": 0, "warnings": len(findings)},
        "levels": [rule.as_dict() for rule in rules],
        "confidence": judged.score,
        "parts": [part.as_dict() for part in judged.parts],
        "envelopes": current.envelopes,
        "sources": current.sources,
    }


def _blocking_agents(known: Contract, settings: Settings) -> tuple[str, ...]:
    """The agents whose failure blocks execution: builders, and validators of level 1 and above."""
    blocking = levels.rule(settings, "validator").level > levels.INFORMATIONAL
    pairs = envelopes.builder_validator_pairs(known, settings).values()
    names = [name for pair in pairs for name in (pair[0], pair[1] if blocking else None)]
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _starts(run_context: RunContext, name: str) -> bool:
    try:
        run_context.agents.get(name).describe()
    except AdapterError:
        return False
    return True


def require(run_context: RunContext, attempt: Attempt) -> None:
    """Require, before each attempt, that its environment did not change since the lock.

    Strict mode refuses; guided mode records the change and continues. This stats a few files. `contract_lock` checks
    plans, configuration and policy.
    """
    mark = _signature(run_context)
    if mark is not None and mark == run_context.watched.get("mark"):
        return
    run_context.watched["mark"] = mark
    current = envelopes.present(run_context.services, run_context.agents, run_context.contract)
    changes = envelope.changes(run_context.journal.state.contract.envelopes, current.envelopes)
    reported = run_context.watched.setdefault("reported", set())
    new = tuple(c for c in changes if canonical_json.digest(c.as_dict()) not in reported)
    if not new:
        return
    if STRICT in (attempt.plan.mode, run_context.journal.state.mode):
        raise refusal(run_context.journal.state, new)
    reported.update(canonical_json.digest(c.as_dict()) for c in new)
    locked = run_context.journal.state.contract.envelopes
    taken = {
        key: envelope.seal(locked[key], **{part: made[part] for part in _LIVE})
        for key, made in current.envelopes.items()
        if key in locked
    }
    _record_changes(run_context, new, current, taken, during=True)


def _signature(run_context: RunContext) -> str | None:
    places = (*run_context.services.toolchain.files(), *run_context.watched.get("programs", ()))
    return run_context.services.files.signature(places)


def _record_changes(
    run_context: RunContext,
    changes: Sequence[Change],
    current: envelopes.EnvelopeSet,
    taken: Mapping[str, dict[str, Any]],
    *,
    during: bool,
) -> None:
    """Record the changes and report them. `taken` are the envelopes for the next attempts."""
    kept = {digest: current.sources[digest] for digest in _hashes(taken) if digest in current.sources}
    run_context.journal.write(
        run_context.journal.event(
            "envelope.changed", changes=[c.as_dict() for c in changes], envelopes=dict(taken), sources=kept
        )
    )
    for part in envelope.changed_agents(changes):
        late = "; the change takes effect with the next command" if during and part not in _LIVE else ""
        run_context.services.reporter.note(f"{describe_part(part)} changed after this run was locked{late}")


def _hashes(envelopes: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    return (value for made in envelopes.values() for value in made.values() if isinstance(value, str))


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


def describe_part(part: str) -> str:
    return _WORDS.get(part, part)


def require_same(
    services: Services, state: RunState, known: Contract, *, mode: str | None, accepted: Sequence[str]
) -> None:
    """Require that the environment is unchanged before a run continues. Refusal `envelope.changed`.

    A change of the agent refuses in any mode, another change only in strict mode. `accepted` has what the user accepts:
    `adapter`, or `envelope` for everything. Nothing is refused if the run has no attempts.
    """
    if not state.attempted or ENVELOPE in accepted:
        return
    changes = changed_since(services, state, known)
    refused = changes if STRICT in (mode, state.mode, known.mode) else [c for c in changes if _is_adapter_change(c)]
    if ADAPTER in accepted:
        refused = [c for c in refused if not _is_adapter_change(c)]
    if refused:
        _require_usable(services, state, refused)
        raise refusal(state, refused)


def _require_usable(services: Services, state: RunState, changes: Sequence[Change]) -> None:
    """Refuse first if the agent cannot be used now, as without its key or program: that is not another version."""
    for change in changes:
        builder, _, validator = change.binding.partition(" + ")
        name = {"program": builder, "validator": validator}.get(change.part, "")
        try:
            _ = services.adapters.get(name).describe() if name else ()
        except AdapterError as problem:
            words = f"Run {state.number} of phase {state.phase} cannot continue with {name}: {problem.message}"
            raise Refusal(problem.code, words, hint=problem.hint) from problem


def _is_adapter_change(change: Change) -> bool:
    return change.part in envelope.ADAPTER_PARTS


def refusal(state: RunState, changes: Sequence[Change]) -> Refusal:
    """Build the refusal: the user decides whether to continue, go back or start again."""
    parts = envelope.changed_agents(changes)
    names = ", ".join(describe_part(part) for part in parts)
    why = f"{names[:1].upper()}{names[1:]} changed after run {state.number} of phase {state.phase} was locked"
    offered = choices(state, ADAPTER if all(_is_adapter_change(c) for c in changes) else ENVELOPE)
    return Refusal(
        "envelope.changed",
        f"{why}; finished work was done before this change.",
        hint=f"{offered[0].command} continues anyway; {offered[-1].command} rolls back its work",
        details=next_actions.offer(
            f"Continue run {state.number} of phase {state.phase}",
            why,
            [f"{c.binding}: {describe_part(c.part)} was {_short(c.was)}, is {_short(c.now)}" for c in changes],
            offered,
            parts=list(parts),
            changes=[c.as_dict() for c in changes],
        ),
    )


def _short(value: Any) -> str:
    if value is None:
        return "unknown"
    text = value if isinstance(value, str) else envelopes.readable(value).replace("\n", "")
    return text[:16] if len(text) == len(NOTHING) else text


def choices(state: RunState, accept: str) -> tuple[Choice, ...]:
    """The choices for a run whose environment changed."""
    go_on = f"idumb resume {state.phase} --accept-changed {accept}"
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
    return (kept, *back, next_actions.start_fresh(state.phase))


def attempt_payload(run_context: RunContext, attempt: Attempt) -> dict[str, Any]:
    """The part of `attempt.started` about the environment: `envelope`, `request`, and their sources."""
    key = envelope_key(attempt.builder, attempt.validator)
    known = run_context.journal.state.contract.envelopes.get(key)
    if known is None:
        known = envelopes.present(run_context.services, run_context.agents, run_context.contract).envelopes[key]
    request = request_digest(run_context, attempt, str(known["adapter"]))
    wanted = envelope.context_paths(attempt.task)
    entries = {path: run_context.work.entry(attempt.base, path) for path in wanted}
    # A reference may name no file; a condition may name a folder, which has no hash.
    needed = {c.subject.rstrip("/") for c in attempt.task.preconditions if c.kind == envelope.CONTEXT}
    context = {p: e.oid if e else None for p, e in entries.items() if e is not None or p in needed}
    parts: dict[str, Any] = {"context": envelope.context_digest(context)} if context else {}
    told: dict[str, Any] = {"context": context} if context else {}
    if attempt.conversation is not None:
        resumes = {"session": attempt.conversation.session, "attempt": attempt.conversation.attempt}
        parts, told = {**parts, "conversation": canonical_json.digest(resumes)}, {**told, "resumes": resumes}
    return {"envelope": envelope.seal(known, **parts) if parts else dict(known), "request": request, **told}


def request_digest(run_context: RunContext, attempt: Attempt, adapter: str) -> str:
    """A hash that distinguishes the requests of attempts under the same envelope.

    The envelope includes plans and template. Steps ignore feedback.
    """
    task = run_context.journal.state.tasks[attempt.task.id].digest
    told = (
        []
        if agent.capabilities_of(adapter).deterministic or not attempt.feedback
        else [attempt.feedback, attempt.number]
    )
    return canonical_json.digest([task, *told])
