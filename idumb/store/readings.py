"""What takes a library to read and seldom changes, kept as JSON with a name of what it was read from.

Nothing depends on the file: if it is missing, damaged or of another version, everything is read again.
"""

from __future__ import annotations

import json
import os

from idumb import __version__
from idumb.store import status_view
from idumb.system.files import atomic_write, private_folders

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the names
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NAME = "readings.json"
_SCHEMA = 1  # raise it if a reader returns something else for the same source


class Readings:
    """The readings kept in one folder. `may_keep` decides whether a text may be written there."""

    def __init__(self, folder: str, may_keep: Callable[[str], bool]) -> None:
        self._folder = folder
        self._may_keep = may_keep

    def get(
        self, name: str, source: Callable[[], str | None], read: Callable[[], Any], fits: Callable[[Any], bool]
    ) -> Any:
        """Return what `read` returns, as JSON would: the kept value if it was read from the same source and `fits`.

        `source` identifies what is read by its content, or returns None if that is unknown.
        """
        before = source()
        if before is None:
            return read()
        kept = self._kept()
        if name in kept and kept[name][0] == before and fits(kept[name][1]):
            return kept[name][1]
        value = read()
        if source() == before:
            self._keep({**kept, name: [before, value]})
        return value

    def _kept(self) -> dict[str, Any]:
        try:
            with open(os.path.join(self._folder, NAME), "rb") as stream:
                stored = json.loads(status_view.unsealed(stream.read()))
            kept: dict[str, Any] = stored["kept"] if stored["version"] == [__version__, _SCHEMA] else {}
            return {name: [source, value] for name, (source, value) in kept.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}

    def _keep(self, kept: dict[str, Any]) -> None:
        text = json.dumps({"version": [__version__, _SCHEMA], "kept": kept}, separators=(",", ":"))
        path = os.path.join(self._folder, NAME)
        try:
            if not self._may_keep(text):
                if os.path.lexists(path):  # something in it may have become a secret since
                    os.unlink(path)
                return
            private_folders.make(self._folder)
            atomic_write.write(path, status_view.sealed(text.encode("ascii")), durable=False, mode=0o600)
        except OSError:
            pass  # a read-only repository still shows its status
