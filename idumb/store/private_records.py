"""Records that only the user can write: one JSON file each in the state directory, where no repository can put one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.errors import Refusal
from idumb.system.files import atomic_write, private_folders, user_folders


class PrivateRecords:
    """The records of one repository in the folder `kind` of the state directory.

    A `project` in a subfolder has records of its own.

    Refusal `consent.unsafe` if others could have written them; `subject` and `hint` word the refusal.
    """

    def __init__(self, kind: str, common_dir: str, subject: str, hint: str, project: str = "") -> None:
        self._kind = kind
        self._common_dir = common_dir
        self._project = project
        self._subject = subject
        self._hint = hint

    @property
    def repository(self) -> str:
        return user_folders.repository_id(self._common_dir, self._project)

    @property
    def folder(self) -> str:
        return os.path.join(user_folders.path(), self._kind, self.repository)

    def names(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the names that match, sorted."""
        self._require(user_folders.problem(self._kind, self.repository))
        try:
            return sorted(name for name in os.listdir(self.folder) if pattern.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a record: None if it is missing, empty if it is damaged."""
        path = os.path.join(self.folder, name)
        if not os.path.lexists(path):
            return None
        self._require(user_folders.problem(self._kind, self.repository) or private_folders.unsafe(path))
        try:
            with open(path, "rb") as stream:
                record = canonical_json.decode(stream.read())
        except ValueError:
            return {}
        return record if isinstance(record, dict) else {}

    def all(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (name, record) of the names that match."""
        for name in self.names(pattern):
            yield name, self.read(name) or {}

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        self._require(user_folders.problem(self._kind, self.repository))
        folder = user_folders.prepare(self._kind, self.repository)
        self._require(user_folders.problem(self._kind, self.repository))
        atomic_write.write(os.path.join(folder, name), encoded(record), mode=0o600)

    def _require(self, problem: str | None) -> None:
        if problem is not None:
            raise Refusal("consent.unsafe", f"{self._subject} cannot be trusted: {problem}", hint=self._hint)


def encoded(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, indent=2).encode("ascii") + b"\n"
