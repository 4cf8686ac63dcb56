"""The prompt templates and programs that attempts depend on, and the redaction of secrets."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from idumb.system.files import shipped_files
from idumb.system.redaction import Redactor

ROLES = ("builder", "validator")


class LocalToolchain:
    """Implements the port `Toolchain`. `git` finds the git program, `git_version` runs it."""

    def __init__(self, git: Callable[[], str], git_version: Callable[[], str]) -> None:
        self._git = git
        self._git_version = git_version

    def files(self) -> tuple[str, ...]:
        return self._files

    @cached_property
    def _files(self) -> tuple[str, ...]:
        templates = (shipped_files.place(_template(role)) for role in ROLES)
        return tuple(path for path in (self._git(), *templates) if path is not None)

    def template(self, name: str) -> str:
        return shipped_files.template(_template(name)) if shipped_files.place(_template(name)) else ""

    def versions(self) -> Mapping[str, str]:
        return {"python": platform.python_version(), "git": self._git_version()}


class LocalRedaction:
    """Implements the port `Redaction`. `redactor` knows possible secrets, `secrets` certain ones."""

    def __init__(self, redactor: Redactor, secrets: Redactor) -> None:
        self._redactor = redactor
        self._secrets = secrets

    def redact_output(self, text: str) -> str:
        return self._redactor.text(text)

    def redact(self, text: str) -> str:
        return self._secrets.text(text)

    def may_match(self, redacted: str, text: str) -> bool:
        return self._secrets.may_hide(redacted, text)

    def knows_secrets(self) -> bool:
        return self._secrets.knows

    def find(self, pieces: Iterable[bytes]) -> tuple[tuple[str, int], ...]:
        return self._secrets.named(pieces)

    def variables_in(self, pieces: Iterable[bytes], wanted: frozenset[str]) -> frozenset[str]:
        return self._secrets.names(pieces, wanted)


def _template(role: str) -> str:
    return f"prompts/{role}.md"
