"""What a use case hands back: data for `--json`, an exit code, warnings. Words for people are made in `views/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from idumb.domain import errors


@dataclass(frozen=True, slots=True)
class Result:
    """`failure` (code, message, hint) is set when the command did its work and the answer is no; `details` say more."""

    data: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = errors.EXIT_DONE
    warnings: tuple[str, ...] = ()
    failure: tuple[str, str, str | None] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
