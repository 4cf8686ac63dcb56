"""The result of a use case: data for `--json`, an exit code and warnings. `views/` renders it as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from idumb.domain import errors
from idumb.domain.action import Action
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """`failure` (code, message, hint) is set if the command worked and its answer is no; `details` belong to it.

    `data` is JSON-serialisable but for the actions in it, of which an answer has the commands and the tools.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = errors.EXIT_DONE
    warnings: tuple[str, ...] = ()
    failure: tuple[str, str, Action | str | None] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
