"""Describes the configuration of a binding in one line, for a question about consent."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from idumb.app.core.services import Services
from idumb.domain.errors import AdapterError
from idumb.domain.settings import Binding


def describe(
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
