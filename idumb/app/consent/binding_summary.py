"""What a binding lets an agent do, in words: the one line that every question about consent shows of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from idumb.app.core.services import Services
from idumb.domain.errors import AdapterError
from idumb.domain.settings import Binding


def line(services: Services, name: str, argv: Sequence[str] | None = None, *, models: Mapping[str, str | None]) -> str:
    """`claude, starts /usr/bin/claude -p; environment: KEY; options: {"home": "user"}`, without known secrets.

    Everything is there that the configuration says of the binding. `argv` is what the adapter starts, resolved; None
    asks the adapter, and a program that is not there is told as such. `models` are those that it is asked for, by the
    role that it fills; None is the agent's own choice.
    """
    found = services.settings.bindings[name]
    starts = _starts(services, found) if argv is None else _quoted(argv)
    return services.redaction.redact_output("; ".join([f"{found.adapter}, {starts}", *_more(found, models)]))


def _starts(services: Services, found: Binding) -> str:
    try:
        return _quoted(services.adapters.get(found.name).describe())
    except AdapterError as problem:
        return f"{_quoted(found.argv)} ({problem.message.rstrip('.')})"


def _quoted(argv: Sequence[str]) -> str:
    return f"starts {shlex.join(argv)}" if argv else "starts no program"


def _more(found: Binding, models: Mapping[str, str | None]) -> Iterator[str]:
    if found.environment:
        yield f"environment: {', '.join(found.environment)}"
    if found.options:
        yield f"options: {json.dumps(dict(found.options), sort_keys=True, ensure_ascii=False, default=str)}"
    if set(models.values()) == {found.model}:
        yield from [f"model: {found.model}"] if found.model is not None else []
    else:
        instead = f", in place of {found.model}"
        yield from (f"model as {r}: {m}{instead if found.model not in {None, m} else ''}" for r, m in models.items())
    if found.prompt != "stdin":
        yield f"prompt: {found.prompt}"
    times = {"timeout": found.timeout, "idle timeout": found.idle_timeout}
    yield from (f"{name}: {seconds} s" for name, seconds in times.items() if seconds is not None)
    chosen = found.limits.chosen() if found.limits is not None else {}
    if chosen:
        yield f"limits: {', '.join(f'{name} {value}' for name, value in chosen.items())}"
