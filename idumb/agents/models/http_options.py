"""Checks `bindings.<name>.options` of agents that are reached over a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idumb.agents.model_server import Endpoint
from idumb.domain.errors import AdapterError
from idumb.domain.finding import nearest
from idumb.domain.settings import Binding

JSON_SCHEMA, JSON_OBJECT, IN_PROMPT = "json_schema", "json_object", "prompt"
_TURNS = 50
_KNOWN = ("base_url", "key", "plain_http", "proxy", "schema", "tools", "turns", "parameters", "model")


@dataclass(frozen=True, slots=True)
class Options:
    """The checked options of a binding. `schema` says how to request a reply in a given form."""

    endpoint: Endpoint
    key: str | None
    model: str | None
    schema: str
    tools: bool
    turns: int
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, binding: Binding, environment: Mapping[str, str]) -> Options:
        given = dict(binding.options)
        require_known(binding, given, _KNOWN)
        address = of_type(binding, given, "base_url", str, "")
        if not address:
            raise wrong(binding, "base_url", "is missing", "For example http://127.0.0.1:8080/v1.")
        proxy = of_type(binding, given, "proxy", str, "")
        schema = of_type(binding, given, "schema", str, JSON_SCHEMA)
        if schema not in {JSON_SCHEMA, JSON_OBJECT, IN_PROMPT}:
            raise wrong(binding, "schema", f"must be {JSON_SCHEMA}, {JSON_OBJECT} or {IN_PROMPT}")
        return cls(
            Endpoint(address, plain=of_type(binding, given, "plain_http", bool, default=False), proxy=proxy or None),
            key_of(binding, given, environment),
            binding.model or of_type(binding, given, "model", str, "") or None,
            schema,
            of_type(binding, given, "tools", bool, default=True),
            of_type(binding, given, "turns", int, _TURNS),
            of_type(binding, given, "parameters", dict, {}),
        )


def require_known(binding: Binding, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise AdapterError for an option that the binding's adapter does not have."""
    for name in given:
        if name not in known:
            near = nearest(name, known)
            words = f"is not an option of {binding.adapter}"
            raise wrong(binding, name, words, f"Did you mean {near}?" if near else None)


def of_type(binding: Binding, given: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = given.get(name, default)
    if (isinstance(value, Mapping) and kind is dict) or (isinstance(value, tuple) and kind is list):
        return kind(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise wrong(binding, name, f"must be of type {kind.__name__}")
    return value


def wrong(binding: Binding, name: str, words: str, hint: str | None = None) -> AdapterError:
    place = f"bindings.{binding.name}.options.{name}"
    return AdapterError(
        "agent.bad-option", f"{place} {words}.", hint=hint or "For the options, run `idumb help agents`."
    )


def key_of(binding: Binding, given: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    """Return the value of the key's variable; None if the configuration names none."""
    name = of_type(binding, given, "key", str, "") or next(iter(binding.environment), "")
    if not name:
        return None
    if name not in binding.environment:
        raise wrong(binding, "key", "must be one of the binding's variables", f"Add {name} to its `environment`.")
    value = environment.get(name, "").strip()
    if not value:
        raise AdapterError("agent.no-key", f"{name} is not set.", hint=f"Run `export {name}=...`, then retry.")
    if not value.isascii() or not value.isprintable():
        raise AdapterError(
            "agent.no-key",
            f"{name} contains characters that are not valid in a key.",
            hint=f"Set {name} to the key again.",
        )
    return value
