"""What a run works with and does not bring itself: prompt templates and the programs of the machine."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from idumb.system.files import shipped_files
from idumb.system.redaction import Redactor

ROLES = ("builder", "validator")


class LocalSurroundings:
    """Implements the port `Surroundings`.

    `git` finds the git program, `git_version` asks it, `redactor` knows what may be a secret, `secrets` what is one.
    """

    def __init__(
        self, git: Callable[[], str], git_version: Callable[[], str], redactor: Redactor, secrets: Redactor
    ) -> None:
        self._git = git
        self._git_version = git_version
        self._redactor = redactor
        self._secrets = secrets

    def places(self) -> tuple[str, ...]:
        return self._places

    @cached_property
    def _places(self) -> tuple[str, ...]:
        templates = (shipped_files.place(_template(role)) for role in ROLES)
        found = (self._git(), *templates)
        return tuple(path for path in found if path is not None)

    def template(self, name: str) -> str:
        return shipped_files.template(_template(name)) if shipped_files.place(_template(name)) else ""

    def tools(self) -> Mapping[str, str]:
        return {"python": platform.python_version(), "git": self._git_version()}

    def shown(self, text: str) -> str:
        return self._redactor.text(text)

    def knows_secrets(self) -> bool:
        return self._secrets.knows

    def without_secrets(self, text: str) -> str:
        return self._secrets.text(text)

    def may_hide(self, shown: str, text: str) -> bool:
        return self._secrets.may_hide(shown, text)

    def secrets_in(self, pieces: Iterable[bytes]) -> tuple[tuple[str, int], ...]:
        return self._secrets.named(pieces)

    def held_in(self, pieces: Iterable[bytes], wanted: frozenset[str]) -> frozenset[str]:
        return self._secrets.names(pieces, wanted)


def _template(role: str) -> str:
    return f"prompts/{role}.md"
