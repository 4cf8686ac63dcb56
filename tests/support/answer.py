"""The answer of a command: exit code and output, as text and JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

FAILURES = frozenset({1, 70, 129, 130, 143})
KEYS = ("schema", "command", "ok", "data", "ways", "warnings", "error")


@dataclass(frozen=True, slots=True)
class Answer:
    """Exit code and output of a command. If a signal ended the command, `code` is negative."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """Return the only object on standard output; anything else there is an AssertionError."""
        assert self.out.count("\n") == 1, self.out
        assert self.out.isascii()
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        assert set(answer) == set(KEYS)
        assert answer["ok"] == (self.code == 0)
        assert (answer["error"] is None) == answer["ok"]
        return answer

    @property
    def data(self) -> dict[str, Any]:
        data = self.object["data"]
        assert isinstance(data, dict)
        return data

    @property
    def error(self) -> dict[str, Any]:
        error = self.object["error"]
        assert isinstance(error, dict), self.out
        assert set(error) == {"code", "message", "hint", "details"}
        _stated(error["details"], failed=self.code in FAILURES)
        return error


def _stated(details: dict[str, Any], *, failed: bool) -> None:
    """Assert the parts of every error: R-ASK-1, and R-RUN-7 if the work failed or was interrupted."""
    assert details["what"], details
    assert details["why"], details
    assert details["evidence"], details
    assert details["choices"], details
    for choice in details["choices"]:
        assert set(choice) == {"id", "text", "consequence", "command"}, choice
        assert choice["id"], choice
        assert choice["text"], choice
        assert choice["consequence"], choice
    if failed:
        assert set(details) >= {"status", "step_id", "tool", "error", "plan_hash", "audit_trail"}, details
        assert details["status"] in {"failed", "waiting", "interrupted"}, details
        assert details["error"], details
