"""Builds the envelopes of a contract: what its attempts would run under now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from idumb.app.core.services import Services
from idumb.app.ports import Agent, Agents
from idumb.domain import agent, envelope
from idumb.domain.agent import capabilities
from idumb.domain.contract import Contract, builder_of, envelope_key, validator_of
from idumb.domain.envelope import NOTHING, Envelope, text_digest
from idumb.domain.errors import AdapterError
from idumb.domain.intake import check_commands
from idumb.domain.proof import gate_table
from idumb.domain.settings import Binding


class EnvelopeSet(Struct):
    """Envelopes by the key of their builder and validator; `sources` maps each hash to its text."""

    envelopes: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)

    def keep(self, text: str) -> str:
        """Add a text; return its hash."""
        digest = text_digest(text)
        if text:
            self.sources[digest] = text
        return digest


def current_envelopes(services: Services, agents: Agents, contract: Contract) -> EnvelopeSet:
    """The envelopes that attempts of this contract would run under now."""
    settings = services.settings
    current = EnvelopeSet()
    shared: dict[str, Any] = {
        "idumb": services.version,
        "contract": contract.hash,
        "context": NOTHING,
        "rules": current.keep(readable([rule.as_dict() for rule in gate_table.rules(settings)])),
        "policy": _policy(services, current),
        "tools": dict(services.toolchain.versions()),
        envelope.CHECKS: _checks(services, contract, current),
    }
    tasks = ((plan, task) for plan in contract.plans for task in plan.tasks)
    pairs = dict.fromkeys((builder_of(*each, settings), validator_of(*each, settings)) for each in tasks)
    for builder, validator in pairs:
        if builder is None:
            continue
        own = _agent_parts(services, agents, current, builder, agent.BUILDER)
        # An amendment that adds another agent must not change the envelope of these two.
        ruling = settings.of_runs((builder, validator))
        current.sources[ruling.digest()] = services.redactor.redact_output(readable(ruling.deciding()))
        judged = _validator_digest(services, agents, current, validator)
        computed = Envelope(**shared, **own, binding=builder, validator=judged, configuration=ruling.digest())
        current.envelopes[envelope_key(builder, validator)] = envelope.seal(asdict(computed))
    return current


def _checks(services: Services, contract: Contract, collected: EnvelopeSet) -> dict[str, str]:
    """Return path and hash of each program that checks start. Those in the working tree belong to tasks."""
    places = services.named_files.programs(sorted(check_commands.named_programs(contract)))
    collected.programs += places.values()
    digests = services.named_files.digests(places.values())
    return {
        name: services.redactor.redact_output(f"{place} {digests.get(place, 'unreadable')}")
        for name, place in sorted(places.items())
    }


def _agent_parts(services: Services, agents: Agents, collected: EnvelopeSet, binding: str, role: str) -> dict[str, Any]:
    """Return the parts of an agent in a role: adapter, program, model, prompt template."""
    who, settings = agents.get(binding), services.settings
    program, argv = _program(services, collected, who)
    filled = settings.role(role, binding)
    template = services.toolchain.template(filled.prompt) if filled.template is None else filled.template
    silent = not capabilities(who).reads_prompt
    return {
        "adapter": who.name,
        "adapter_version": who.version,
        "program": program,
        "model": None if silent else filled.model or _model(settings.bindings.get(binding), argv),
        "prompt": NOTHING if silent else collected.keep(template),
    }


def _program(services: Services, collected: EnvelopeSet, who: Agent) -> tuple[str | None, Sequence[str]]:
    """A hash of the argument list, the program and its script, if any; and the argument list."""
    try:
        argv = who.describe()
    except AdapterError:
        return None, ()
    if not argv:
        return NOTHING, ()
    program_files = [argv[0], *next(([a] for a in argv[1:] if not a.startswith("-")), [])]
    collected.programs += program_files
    digests = services.named_files.digests(program_files)
    text = services.redactor.redact_output(readable({"argv": list(argv), "files": dict(digests)}))
    return collected.keep(text), argv


def _model(binding: Binding | None, argv: Sequence[str]) -> str | None:
    """The model in the configuration: an option of the adapter, or `--model` of its program."""
    if binding is not None and isinstance(binding.options.get("model"), str):
        return str(binding.options["model"])
    for i, word in enumerate(argv):
        if word.startswith("--model="):
            return word.partition("=")[2] or None
        if word == "--model" and i + 1 < len(argv):
            return argv[i + 1]
    return None


def _validator_digest(services: Services, agents: Agents, collected: EnvelopeSet, name: str | None) -> str:
    if name is None:
        return NOTHING
    is_person = name == agent.HUMAN
    parts = {"adapter": name} if is_person else _agent_parts(services, agents, collected, name, agent.VALIDATOR)
    return collected.keep(readable({"binding": name, **parts}))


def _policy(services: Services, collected: EnvelopeSet) -> str:
    policy = services.policy
    if not policy.sources:
        return NOTHING
    allowed = None if policy.tools is None else sorted(policy.tools)
    return collected.keep(readable({"tools": allowed, "sources": [list(source) for source in policy.sources]}))


def readable(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True)
