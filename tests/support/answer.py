"""What a command said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

KEYS = ("schema", "command", "ok", "data", "warnings", "error")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said. `code` is negative where a signal ended it."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """The one object on standard output; anything else there is an AssertionError."""
        assert self.out.count("\n") == 1, self.out
        assert self.out.isascii()
        found = json.loads(self.out)
        assert isinstance(found, dict)
        assert set(found) == set(KEYS)
        assert found["ok"] == (self.code == 0)
        assert (found["error"] is None) == found["ok"]
        return found

    @property
    def data(self) -> dict[str, Any]:
        found = self.object["data"]
        assert isinstance(found, dict)
        return found

    @property
    def error(self) -> dict[str, Any]:
        found = self.object["error"]
        assert isinstance(found, dict), self.out
        assert set(found) == {"code", "message", "hint", "details"}
        return found
