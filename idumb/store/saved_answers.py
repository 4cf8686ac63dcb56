"""Saved answers of people to questions that come again."""

from __future__ import annotations

import dataclasses
import os

from idumb import lazy_pattern
from idumb.domain.errors import Refusal
from idumb.domain.runs.saved_answers import SavedAnswer
from idumb.store.private_records import PrivateRecords

_NAME = lazy_pattern.compile(r"[0-9a-f]{12}(?:\.json)?")


class FileSavedAnswers:
    """Answers that the user asked to save, in the user's state directory, for this repository alone."""

    def __init__(self, common_dir: str, project: str = "") -> None:
        hint = "make the folder private (owned by you, mode 0700)"
        self._records = PrivateRecords("remembered", common_dir, "saved answers", hint, project)

    def all(self) -> tuple[SavedAnswer, ...]:
        if not os.path.isdir(self._records.folder):
            return ()
        answers = (self._read(name) for name in self._records.names(_NAME))
        return tuple(answer for answer in answers if answer is not None)

    def get(self, question: str) -> SavedAnswer | None:
        return next((answer for answer in self.all() if answer.id == question), None)

    def keep(self, answer: SavedAnswer) -> None:
        self._records.write(f"{answer.id}.json", dataclasses.asdict(answer))

    def forget(self, question: str) -> bool:
        """Delete a saved answer; return whether there was one."""
        if self.get(question) is None:
            return False
        os.unlink(os.path.join(self._records.folder, f"{question}.json"))
        return True

    def _read(self, name: str) -> SavedAnswer | None:
        """Ignore a record that is damaged or that others could have written."""
        try:
            record = self._records.read(name) or {}
        except Refusal:
            return None
        names = {field.name for field in dataclasses.fields(SavedAnswer)}
        if set(record) != names or not all(isinstance(value, str) for value in record.values()):
            return None
        return SavedAnswer(**record) if record["id"] == name.removesuffix(".json") else None
