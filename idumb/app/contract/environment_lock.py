"""Lock-in: what attempts run under is recorded when a run starts, and held against what is there at every step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idumb.app.core import next_actions
from idumb.app.core.run_context import Attempt, Bench
from idumb.app.core.services import Services
from idumb.app.ports.agents import Agent, Agents, capabilities
from idumb.domain import agent, canonical_json, confidence, contract, outcome, roles
from idumb.domain.consent import envelope
from idumb.domain.consent.envelope import NOTHING, Change, Envelope, envelope_key, text_digest
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.intake import ground, registry
from idumb.domain.plans.plan import STRICT
from idumb.domain.proof import levels
from idumb.domain.runs.run import RunState
from idumb.domain.settings import Binding, Settings

ADAPTER = "adapter"
ENVELOPE = "envelope"
ACCEPTED = (ADAPTER, ENVELOPE)
"""What a person may say has changed and may stay so: the agent, or anything."""

_BARE_VALIDATOR = "26732de59694f8059c2fb031300b83ed0eb47dde34d0a1d4afcb267f0c5bd150"
"""The hash of the shipped template of a validator before it asked for evidence; runs locked under it go on."""

_LIVE = ("program", "tools", envelope.CHECKS)
"""Parts that a change reaches while a run goes on; what else changes is read by the next command."""


@dataclass(slots=True)
class Found:
    """Envelopes by the key of their builder and validator; `sources` has the readable text of each hash.

    `grown` maps a hash to the one under an earlier shipped template, which asked the same in fewer words.
    """

    envelopes: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)
    grown: dict[str, str] = field(default_factory=dict)

    def keep(self, text: str) -> str:
        """The hash of a text, which is kept."""
        digest = text_digest(text)
        if text:
            self.sources[digest] = text
        return digest


def _pairs(known: Contract, settings: Settings) -> dict[str, tuple[str, str | None]]:
    """Every builder with its validator that the contract needs, in the order of their first use."""
    found = (
        (contract.builder_of(plan, task, settings), contract.validator_of(plan, task, settings))
        for plan in known.plans
        for task in plan.tasks
    )
    return {envelope_key(b, v): (b, v) for b, v in dict.fromkeys(found) if b is not None}


def present(services: Services, agents: Agents, known: Contract) -> Found:
    """What attempts of this contract would run under now."""
    settings = services.settings
    found = Found()
    common = _Common(services, agents, settings, found)
    shared: dict[str, Any] = {
        "idumb": services.version,
        "contract": known.hash,
        "context": NOTHING,
        "conversation": NOTHING,
        "rules": found.keep(_readable([rule.as_dict() for rule in levels.rules(settings)])),
        "policy": _policy(services, found),
        "tools": dict(services.toolchain.versions()),
        envelope.CHECKS: _checks(services, known, found),
    }
    for key, (builder, validator) in _pairs(known, settings).items():
        own = _of_agent(common, builder, agent.BUILDER)
        # An amendment that brings in another agent changes nothing for these two.
        ruling = roles.settings_of_runs(settings, (builder, validator))
        found.sources[ruling.digest()] = services.redaction.redact_output(_readable(ruling.deciding()))
        judged = _of_validator(common, validator)
        made = Envelope(**shared, **own, binding=builder, validator=judged, configuration=ruling.digest())
        found.envelopes[key] = {**made.as_dict(), "digest": made.digest}
    return found


def _checks(services: Services, known: Contract, found: Found) -> dict[str, str]:
    """Each program that a check starts, with its place and the hash of its bytes; those of the work tree are tasks'."""
    places = services.files.programs(sorted(ground.named_programs(known)))
    found.programs += places.values()
    digests = services.files.digests(places.values())
    return {
        name: services.redaction.redact_output(f"{place} {digests.get(place, 'unreadable')}")
        for name, place in sorted(places.items())
    }


@dataclass(frozen=True, slots=True)
class _Common:
    services: Services
    agents: Agents
    settings: Settings
    found: Found


def _of_agent(common: _Common, binding: str, role: str) -> dict[str, Any]:
    """The parts that an agent in a role brings: adapter, program, model, prompt template."""
    who = common.agents.get(binding)
    program, argv = _program(common, who)
    filled = roles.resolve(common.settings, role, binding)
    template = common.services.toolchain.template(filled.prompt) if filled.template is None else filled.template
    silent = not capabilities(who).reads_prompt
    return {
        "adapter": who.name,
        "adapter_version": who.version,
        "program": program,
        "model": None if silent else filled.model or _model(common.settings.bindings.get(binding), argv),
        "prompt": NOTHING if silent else common.found.keep(template),
    }


def _program(common: _Common, who: Agent) -> tuple[str | None, Sequence[str]]:
    """A hash of the argument list and of the files that are started: the program, and the script it is given."""
    try:
        argv = who.describe()
    except AdapterError:
        return None, ()
    if not argv:
        return NOTHING, ()
    named = [argv[0], *next(([a] for a in argv[1:] if not a.startswith("-")), [])]
    common.found.programs += named
    digests = common.services.files.digests(named)
    text = common.services.redaction.redact_output(_readable({"argv": list(argv), "files": dict(digests)}))
    return common.found.keep(text), argv


def _model(binding: Binding | None, argv: Sequence[str]) -> str | None:
    """The model where the configuration names one: an option of the adapter, or `--model` of its program."""
    if binding is not None and isinstance(binding.options.get("model"), str):
        return str(binding.options["model"])
    for i, word in enumerate(argv):
        if word.startswith("--model="):
            return word.partition("=")[2] or None
        if word == "--model" and i + 1 < len(argv):
            return argv[i + 1]
    return None


def _of_validator(common: _Common, name: str | None) -> str:
    if name is None:
        return NOTHING
    parts = _of_agent(common, name, agent.VALIDATOR) if name != "human" else {"adapter": "human"}
    made = {"binding": name, **parts}
    digest = common.found.keep(_readable(made))
    if roles.resolve(common.settings, agent.VALIDATOR, name).template is None and "prompt" in parts:
        common.found.grown[digest] = text_digest(_readable({**made, "prompt": _BARE_VALIDATOR}))
    return digest


def _policy(services: Services, found: Found) -> str:
    policy = services.policy
    if not policy.sources:
        return NOTHING
    allowed = None if policy.tools is None else sorted(policy.tools)
    return found.keep(_readable({"tools": allowed, "sources": [list(source) for source in policy.sources]}))


def _readable(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True)


def changed_since(services: Services, state: RunState, known: Contract) -> tuple[Change, ...]:
    """Parts that are not what they were when the run was locked in; empty where it never was.

    A shipped template that grew keeps nobody from going on. The contract is not among them: who goes on with a run
    looks at its plans first.
    """
    if not state.contract.envelopes:
        return ()
    found = present(services, services.adapters, known)
    differ = envelope.changes(state.contract.envelopes, found.envelopes)
    return tuple(c for c in differ if c.part != "validator" or found.grown.get(c.now) != c.was)


def lock_in(bench: Bench) -> None:
    """Record what the run's attempts run under, with its checks and its confidence, unless that is recorded already.

    Whoever goes on with a run in spite of a change has been asked before; the change is recorded.
    """
    state, services = bench.journal.state, bench.services
    found = present(services, bench.agents, bench.contract)
    bench.watched["programs"] = found.programs
    bench.watched["mark"] = _mark(bench)
    if state.contract.lock_in is None or state.contract.lock_in["contract_hash"] != bench.contract.hash:
        bench.journal.write(bench.journal.event("run.locked", **_locked(bench, found)))
        return
    changes = envelope.changes(state.contract.envelopes, found.envelopes)
    if changes or set(found.envelopes) - set(state.contract.envelopes):
        _tell(bench, changes, found, found.envelopes, during=False)


def _locked(bench: Bench, found: Found) -> dict[str, Any]:
    services, known = bench.services, bench.contract
    rules = levels.rules(services.settings)
    findings = registry.findings(known, services.settings, services.policy)
    used = _named(known, services.settings)
    judged = confidence.assess(known, findings, [name for name in used if _starts(bench, name)], used)
    return {
        "contract_hash": known.hash,
        "checks": {"errors": 0, "warnings": len(findings)},
        "levels": [rule.as_dict() for rule in rules],
        "confidence": judged.score,
        "parts": [part.as_dict() for part in judged.parts],
        "envelopes": found.envelopes,
        "sources": found.sources,
    }


def _named(known: Contract, settings: Settings) -> tuple[str, ...]:
    """Every agent that blocks execution: builders, and validators of level 1 and above."""
    blocking = levels.rule(settings, "validator").level > levels.INFORMATIONAL
    pairs = _pairs(known, settings).values()
    names = [name for pair in pairs for name in (pair[0], pair[1] if blocking else None)]
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _starts(bench: Bench, name: str) -> bool:
    try:
        bench.agents.get(name).describe()
    except AdapterError:
        return False
    return True


def require(bench: Bench, attempt: Attempt) -> None:
    """Before each attempt: nothing that it runs under changed since the run was locked in.

    Strict mode refuses at once; guided mode tells, records it and goes on. Costs a look at a few files. Plans,
    configuration and policy have a lock of their own (`idumb.app.lock`).
    """
    mark = _mark(bench)
    if mark is not None and mark == bench.watched.get("mark"):
        return
    bench.watched["mark"] = mark
    found = present(bench.services, bench.agents, bench.contract)
    changes = envelope.changes(bench.journal.state.contract.envelopes, found.envelopes)
    told = bench.watched.setdefault("told", set())
    new = tuple(c for c in changes if canonical_json.digest(c.as_dict()) not in told)
    if not new:
        return
    if STRICT in (attempt.plan.mode, bench.journal.state.mode):
        raise refusal(bench.journal.state, new)
    told.update(canonical_json.digest(c.as_dict()) for c in new)
    locked = bench.journal.state.contract.envelopes
    taken = {
        key: envelope.seal(locked[key], **{part: made[part] for part in _LIVE})
        for key, made in found.envelopes.items()
        if key in locked
    }
    _tell(bench, new, found, taken, during=True)


def _mark(bench: Bench) -> str | None:
    places = (*bench.services.toolchain.files(), *bench.watched.get("programs", ()))
    return bench.services.files.signature(places)


def _tell(
    bench: Bench, changes: Sequence[Change], found: Found, taken: Mapping[str, dict[str, Any]], *, during: bool
) -> None:
    """One note and one event; `taken` are the envelopes under which attempts run from here on."""
    kept = {digest: found.sources[digest] for digest in _hashes(taken) if digest in found.sources}
    bench.journal.write(
        bench.journal.event(
            "envelope.changed", changes=[c.as_dict() for c in changes], envelopes=dict(taken), sources=kept
        )
    )
    for part in envelope.changed_agents(changes):
        late = "; what it is now is for the next command" if during and part not in _LIVE else ""
        bench.services.reporter.note(f"{words(part)} changed since this run was locked in{late}")


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


def words(part: str) -> str:
    return _WORDS.get(part, part)


def require_same(
    services: Services, state: RunState, known: Contract, *, mode: str | None, accepted: Sequence[str]
) -> None:
    """Before a run goes on: another version of its agent refuses in any mode, any other change a strict run.

    `accepted` are the words of a person: `adapter`, or `envelope` for all of it. Nothing is refused where nothing
    that the run made is left.
    """
    if not state.attempted or ENVELOPE in accepted:
        return
    changes = changed_since(services, state, known)
    wrong = changes if STRICT in (mode, state.mode, known.mode) else [c for c in changes if _of_adapter(c)]
    if ADAPTER in accepted:
        wrong = [c for c in wrong if not _of_adapter(c)]
    if wrong:
        _require_usable(services, state, wrong)
        raise refusal(state, wrong)


def _require_usable(services: Services, state: RunState, changes: Sequence[Change]) -> None:
    """An agent that cannot be used now (its key is not set, its program is gone) is no other version of itself."""
    for change in changes:
        builder, _, validator = change.binding.partition(" + ")
        name = {"program": builder, "validator": validator}.get(change.part, "")
        try:
            _ = services.adapters.get(name).describe() if name else ()
        except AdapterError as problem:
            words = f"Run {state.number} of phase {state.phase} cannot go on with {name}: {problem.message}"
            raise Refusal(problem.code, words, hint=problem.hint) from problem


def _of_adapter(change: Change) -> bool:
    return change.part in envelope.ADAPTER_PARTS


def refusal(state: RunState, changes: Sequence[Change]) -> Refusal:
    """Whether to go on, to go back or to start anew is for a person to say."""
    parts = envelope.changed_agents(changes)
    said = ", ".join(words(part) for part in parts)
    why = f"{said[:1].upper()}{said[1:]} changed since run {state.number} of phase {state.phase} was locked in"
    ways = choices(state, ADAPTER if all(_of_adapter(c) for c in changes) else ENVELOPE)
    return Refusal(
        "envelope.changed",
        f"{why}; what is done was made under something else.",
        hint=f"{ways[0].command} goes on all the same; {ways[-1].command} takes its work back",
        details={
            "what": f"Go on with run {state.number} of phase {state.phase}",
            "why": why,
            "evidence": [f"{c.binding}: {words(c.part)} was {_short(c.was)}, is {_short(c.now)}" for c in changes],
            "choices": next_actions.rows(ways),
            "parts": list(parts),
            "changes": [c.as_dict() for c in changes],
        },
    )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else "unknown" if value is None else _readable(value).replace("\n", "")
    return text[:16] if len(text) == len(NOTHING) else text


def choices(state: RunState, accept: str) -> tuple[Choice, ...]:
    """The three ways on of a run whose envelope changed."""
    go_on = f"idumb resume {state.phase} --accept-changed {accept}"
    done = [t for t in state.attempted if state.tasks[t].status in outcome.DONE]
    back = [
        Choice(
            "go-back",
            "go back to the last checkpoint first",
            "what was begun after it is taken back and kept; then the run goes on under what is there now",
            f"idumb rollback {state.phase} --to {task}; {go_on}",
        )
        for task in done[-1:]
    ]
    kept = Choice("go-on", "go on under what is there now", "the change is recorded; what is done stays done", go_on)
    return (kept, *back, next_actions.start_fresh(state.phase))


def of_attempt(bench: Bench, attempt: Attempt, builder: str) -> dict[str, Any]:
    """The payload of `attempt.started` that tells of it: `envelope` and `request`, and what else goes into it."""
    validator = contract.validator_of(attempt.plan, attempt.task, bench.services.settings)
    key = envelope_key(builder, validator)
    known = bench.journal.state.contract.envelopes.get(key)
    if known is None:
        known = present(bench.services, bench.agents, bench.contract).envelopes[key]
    request = request_digest(bench, attempt, str(known["adapter"]))
    wanted = envelope.context_paths(attempt.task)
    entries = {path: bench.work.entry(attempt.base, path) for path in wanted}
    # A word in the references that names nothing is no file; a folder of a condition is one that nobody can hash.
    needed = {c.subject.rstrip("/") for c in attempt.task.preconditions if c.kind == envelope.CONTEXT}
    context = {p: e.oid if e else None for p, e in entries.items() if e is not None or p in needed}
    parts: dict[str, Any] = {"context": envelope.context_digest(context)} if context else {}
    told: dict[str, Any] = {"context": context} if context else {}
    if attempt.conversation is not None:
        resumes = {"session": attempt.conversation.session, "attempt": attempt.conversation.attempt}
        parts, told = {**parts, "conversation": canonical_json.digest(resumes)}, {**told, "resumes": resumes}
    return {"envelope": envelope.seal(known, **parts) if parts else dict(known), "request": request, **told}


def request_digest(bench: Bench, attempt: Attempt, adapter: str) -> str:
    """A hash of what tells one attempt's request from another's under the same envelope.

    Plans and template are in the envelope. Steps are made whatever the attempt before was told.
    """
    task = bench.journal.state.tasks[attempt.task.id].digest
    told = (
        []
        if agent.capabilities_of(adapter).deterministic or not attempt.feedback
        else [attempt.feedback, attempt.number]
    )
    return canonical_json.digest([task, *told])
