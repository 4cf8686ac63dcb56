"""Saved answers: one file each in the user's state directory, where no repository can put one."""

from __future__ import annotations

import dataclasses
import json
import os
import re

from idumb.domain import canonical_json
from idumb.domain.errors import Refusal
from idumb.domain.runs.saved_answers import SavedAnswer
from idumb.system.files import atomic_write, user_folders

FOLDER = "remembered"
_ID = re.compile(r"[0-9a-f]{12}")


class FileSavedAnswers:
    """Implements the port `SavedAnswers` for the repository of one common dir."""

    def __init__(self, common_dir: str) -> None:
        self._common_dir = common_dir

    def all(self) -> tuple[SavedAnswer, ...]:
        folder = self._folder()
        if not os.path.isdir(folder):
            return ()
        self._require_safe()
        names = sorted(name for name in os.listdir(folder) if _ID.fullmatch(name.removesuffix(".json")))
        read = (_read(os.path.join(folder, name), name.removesuffix(".json")) for name in names)
        return tuple(one for one in read if one is not None)

    def get(self, question: str) -> SavedAnswer | None:
        return next((one for one in self.all() if one.id == question), None)

    def keep(self, answer: SavedAnswer) -> None:
        self._require_safe()
        folder = user_folders.prepare(FOLDER, user_folders.repository_id(self._common_dir))
        self._require_safe()
        data = json.dumps(dataclasses.asdict(answer), sort_keys=True, indent=2).encode("ascii") + b"\n"
        atomic_write.write(os.path.join(folder, f"{answer.id}.json"), data, mode=0o600)

    def forget(self, question: str) -> bool:
        if self.get(question) is None:
            return False
        os.unlink(os.path.join(self._folder(), f"{question}.json"))
        return True

    def _folder(self) -> str:
        return os.path.join(user_folders.path(), FOLDER, user_folders.repository_id(self._common_dir))

    def _require_safe(self) -> None:
        problem = user_folders.problem(FOLDER, user_folders.repository_id(self._common_dir))
        if problem is not None:
            raise Refusal(
                "consent.unsafe",
                f"saved answers cannot be trusted: {problem}",
                hint="make the folder yours alone (owner you, mode 0700)",
            )


def _read(path: str, question: str) -> SavedAnswer | None:
    """Ignore a record that is damaged or that others could have written."""
    if user_folders.unsafe(path) is not None:
        return None
    try:
        with open(path, "rb") as stream:
            known = canonical_json.decode(stream.read())
    except ValueError:
        return None
    names = {f.name for f in dataclasses.fields(SavedAnswer)}
    if not isinstance(known, dict) or set(known) != names or not all(isinstance(v, str) for v in known.values()):
        return None
    return SavedAnswer(**known) if known["id"] == question else None
