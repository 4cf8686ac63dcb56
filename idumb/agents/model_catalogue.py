"""Looks up the model ids that a server or an agent accepts, for the message about an unknown model."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idumb.agents.model_server import Endpoint, NoAnswer
from idumb.domain import canonical_json, wording
from idumb.domain.errors import AdapterError

SECONDS = 10.0
_MOST = 20
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Server:
    """Where an agent's server lists its models. `address` and `key` are names of variables.

    `usual` is the address if that variable is not set. The key is sent in `header`, after the prefix `before`.
    """

    address: str
    key: str
    usual: str = ""
    path: str = "/models"
    header: str = "Authorization"
    before: str = "Bearer "
    more: Mapping[str, str] | None = None

    def models(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the ids that the server lists, or none if the request fails."""
        key, address = environment.get(self.key, ""), environment.get(self.address) or self.usual
        if not address or not (key or self.address in environment):
            return ()
        headers = {**(self.more or {}), **({self.header: f"{self.before}{key}"} if key else {})}
        try:
            return listed(Endpoint(address.rstrip("/")), headers, self.path)
        except AdapterError:
            return ()


def listed(endpoint: Endpoint, headers: Mapping[str, str], path: str = "/models") -> tuple[str, ...]:
    """Return the ids of the models that a server lists, in any protocol; none if it does not answer."""
    try:
        answer = endpoint.get(path, {"Accept": "application/json", **headers}, until=time.monotonic() + SECONDS)
        found = canonical_json.decode(answer.body) if answer.status == 200 else None
    except (NoAnswer, ValueError):
        return ()
    rows: Any = found.get("data", found.get("models")) if isinstance(found, dict) else None
    given = [row.get("id") or row.get("slug") or row.get("name") for row in rows or () if isinstance(row, dict)]
    return plain(id.removeprefix("models/") for id in given if isinstance(id, str)) if isinstance(rows, list) else ()


def plain(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids that are one printable word."""
    return tuple(id for id in ids if 0 < len(id) <= _LONGEST and id.isprintable() and " " not in id)


def words(ids: Sequence[str]) -> str:
    """Describe the accepted ids for the user."""
    if not ids:
        return "it does not list its models"
    return f"available models: {wording.listed(ids, _MOST)}"
