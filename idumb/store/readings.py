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


class Readings:
    """The readings kept in one folder. `may_keep` decides whether a text may be written there."""

    def __init__(self, folder: str, may_keep: Callable[[str], bool]) -> None:
        self._folder = folder
        self._may_keep = may_keep

    def get(self, name: str, source: Callable[[], str | None], read: Callable[[], Any]) -> Any:
        """Return what `read` returns, as JSON would: the kept value if it was read from the same source.

        `source` identifies what is read by its content, or returns None if that is unknown.
        """
        before = source()
        if before is None:
            return read()
        kept = self._kept()
        if name in kept and kept[name][0] == before:
            return kept[name][1]
        value = read()
        if source() == before:
            self._keep({**kept, name: [before, value]})
        return value

    def _kept(self) -> dict[str, Any]:
        try:
            with open(os.path.join(self._folder, NAME), "rb") as stream:
                stored = json.loads(status_view.unsealed(stream.read()))
            kept: dict[str, Any] = stored["kept"] if stored["version"] == __version__ else {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}
        return kept

    def _keep(self, kept: dict[str, Any]) -> None:
        text = json.dumps({"version": __version__, "kept": kept}, separators=(",", ":"))
        if not self._may_keep(text):
            return
        try:
            private_folders.make(self._folder)
            path = os.path.join(self._folder, NAME)
            atomic_write.write(path, status_view.sealed(text.encode("ascii")), durable=False, mode=0o600)
        except OSError:
            pass  # a read-only repository still shows its status
