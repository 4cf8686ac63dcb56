"""Compares the programs that agents start now with the programs that the user consented to, and describes bindings.

A contract's hash does not identify programs, because PATH decides which file a name means. Only paths are compared, so
an agent can be updated in place.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb.app.consent import approval_parts
from idumb.app.core.services import Services
from idumb.app.ports.agents import Agents
from idumb.domain import canonical_json
from idumb.domain.consent.approval import StoredApproval
from idumb.domain.contract import Contract
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.settings import Binding
from idumb.lazy_dataclass import dataclass

_KEY = "programs"
_MISCONFIGURED = frozenset({"agent.bad-option", "agent.inside-repository", "agent.unknown-adapter"})


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """A binding that starts another program than the user consented to; `was` is None if it had none."""

    binding: str
    was: str | None
    now: str

    @property
    def words(self) -> str:
        return f"agent {self.binding}: you approved {self.was or 'no program'}, but it would now start {self.now}"


def current_programs(services: Services, contract: Contract, agents: Agents | None = None) -> dict[str, str]:
    """Return the absolute path of the program of each binding that starts one.

    `agents` are those of a run; None uses `services.adapters`.
    """
    programs = {}
    for name in approval_parts.agents(services.settings, contract):
        try:
            argv = (agents or services.adapters).get(name).describe()
        except AdapterError:  # the run itself reports this
            continue
        if argv:
            programs[name] = argv[0]
    return programs


def unusable(services: Services, contract: Contract) -> Iterator[tuple[str, AdapterError]]:
    """Yield the bindings that cannot start until the configuration changes, with the reason.

    Missing programs and keys are not reported, because they can be installed or set, or another machine has them.
    """
    for name in approval_parts.agents(services.settings, contract):
        try:
            services.adapters.get(name).describe()
        except AdapterError as problem:
            if problem.code in _MISCONFIGURED:
                yield name, problem


def require_usable(services: Services, contract: Contract) -> None:
    """Refuse a contract whose run would be certain to halt at one of its bindings."""
    for name, problem in unusable(services, contract):
        raise approval_parts.cannot_start(name, problem) from problem


def consent_record(services: Services, contract: Contract, earlier: str | None = None) -> dict[str, Any]:
    """The programs to record with consent. Those under the contract hash `earlier` keep the consent that they had."""
    now = current_programs(services, contract)
    kept = (
        {}
        if earlier is None
        else _recorded_programs(services, earlier) or _approved_programs(services, contract.phase, earlier)
    )
    return {_KEY: {name: kept.get(name, path) for name, path in now.items()}}


def changed_programs(services: Services, contract: Contract) -> tuple[ProgramChange, ...]:
    """The agents whose program changed after consent or approval; () if there was neither."""
    if services.consent.has_consent(contract.hash):
        was = _recorded_programs(services, contract.hash)
    else:
        was = _approved_programs(services, contract.phase, contract.hash)
        if not was:
            return ()
    return _differences(was, current_programs(services, contract))


def _differences(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[ProgramChange, ...]:
    return tuple(ProgramChange(name, was.get(name), path) for name, path in now.items() if was.get(name) != path)


def require(services: Services, contract: Contract, agents: Agents, again: str) -> None:
    """Require that a run starts the programs that the user consented to. Refusal `consent.other-program`.

    PATH may have changed while a question waited for its answer. `again` is the command that asks for consent again.
    """
    now = current_programs(services, contract, agents)
    consented = [_recorded_programs(services, contract.hash)] if services.consent.has_consent(contract.hash) else []
    consented += [
        _approval_programs(kept)
        for kept in services.consent.approvals(contract.phase)
        if _is_valid_for(kept, contract.hash)
    ]
    differences = [_differences(was, now) for was in consented]
    if not differences or () in differences:
        return
    raise Refusal(
        "consent.other-program",
        f"A program of phase {contract.phase} changed after you approved it:"
        f" {'; '.join(change.words for change in differences[0])}. Nothing was started.",
        hint=f"{again} asks for your consent again",
        details={
            "again": again,
            "contract_hash": contract.hash,
            "changed": [dataclasses.asdict(change) for change in differences[0]],
        },
    )


def consented(services: Services, contract: Contract) -> bool:
    """Whether plain consent to exactly these programs is recorded."""
    return services.consent.has_consent(contract.hash) and not changed_programs(services, contract)


def hash_with_programs(services: Services, contract: Contract) -> str:
    """A hash of the contract and its programs, to approve if only the programs changed."""
    return canonical_json.digest({"contract": contract.hash, _KEY: current_programs(services, contract)})


def _approved_programs(services: Services, phase: str, contract_hash: str) -> dict[str, str]:
    """The programs of the contract's newest approval that is not revoked; an approval includes consent."""
    programs = (
        _approval_programs(kept) for kept in services.consent.approvals(phase) if _is_valid_for(kept, contract_hash)
    )
    return next(programs, {})


def _approval_programs(kept: StoredApproval) -> dict[str, str]:
    bound = kept.approval.bound
    adapters: Any = bound["adapters"].value if "adapters" in bound else {}
    return {str(name): argv[0] for name, argv in adapters.items() if argv}


def _is_valid_for(kept: StoredApproval, contract_hash: str) -> bool:
    return kept.approval.contract_hash == contract_hash and kept.revoked is None


def _recorded_programs(services: Services, contract_hash: str) -> dict[str, str]:
    programs = services.consent.agreed(contract_hash).get(_KEY)
    return {str(name): str(path) for name, path in programs.items()} if isinstance(programs, dict) else {}


def describe_binding(
    services: Services, name: str, argv: Sequence[str] | None = None, *, models: Mapping[str, str | None]
) -> str:
    """`claude, starts /usr/bin/claude -p; environment: KEY; options: {"home": "user"}`, without known secrets.

    The line shows the whole configuration of the binding. `argv` is the resolved argument list; None asks the adapter,
    and the line says if the program is missing. `models` maps a role to its model; None is the agent's default.
    """
    binding = services.settings.bindings[name]
    starts = _starts(services, binding) if argv is None else _quoted(argv)
    return services.redaction.redact_output("; ".join([f"{binding.adapter}, {starts}", *_settings(binding, models)]))


def _starts(services: Services, binding: Binding) -> str:
    try:
        return _quoted(services.adapters.get(binding.name).describe())
    except AdapterError as problem:
        return f"{_quoted(binding.argv)} ({problem.message.rstrip('.')})"


def _quoted(argv: Sequence[str]) -> str:
    return f"starts {shlex.join(argv)}" if argv else "starts no program"


def _settings(binding: Binding, models: Mapping[str, str | None]) -> Iterator[str]:
    if binding.environment:
        yield f"environment: {', '.join(binding.environment)}"
    if binding.options:
        yield f"options: {json.dumps(dict(binding.options), sort_keys=True, ensure_ascii=False, default=str)}"
    if set(models.values()) == {binding.model}:
        yield from [f"model: {binding.model}"] if binding.model is not None else []
    else:
        instead = f", in place of {binding.model}"
        yield from (f"model as {r}: {m}{instead if binding.model not in {None, m} else ''}" for r, m in models.items())
    if binding.prompt != "stdin":
        yield f"prompt: {binding.prompt}"
    times = {"timeout": binding.timeout, "idle timeout": binding.idle_timeout}
    yield from (f"{name}: {seconds} s" for name, seconds in times.items() if seconds is not None)
    chosen = binding.limits.chosen() if binding.limits is not None else {}
    if chosen:
        yield f"limits: {', '.join(f'{name} {value}' for name, value in chosen.items())}"
