"""Files that changed in the second in which git saw them.

Most builds of git compare the times of files in whole seconds. So git does not notice a file that changes again in the
same second, if it keeps its size and a program sets back the time of its modification. What git saw last is noted here
with nanoseconds, until that second is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Mapping

from idumb.git.shadow_folder import ShadowFolder
from idumb.system import clock

_NOTES = "young.json"
_SECOND = 1_000_000_000


def state(path: bytes) -> list[int] | None:
    """Return what shows that a file or a link changed, the time of that first; None for a folder, or nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return None  # a submodule, or what replaced a file
    return [status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino]


class YoungFiles:
    """Other processes find the notes in `folder`; without them, or if they are damaged, there are none."""

    def __init__(self, folder: ShadowFolder) -> None:
        self._folder = folder
        self._seen: dict[bytes, list[int]] = {}
        with contextlib.suppress(ValueError, AttributeError):
            self._seen = {os.fsencode(path): seen for path, seen in json.loads(folder.read(_NOTES)).items()}

    def note(self, before: Mapping[bytes, list[int] | None], at: Callable[[bytes], bytes]) -> None:
        """Note files that changed just now, or while git read them: with the state `before`, git may know no newer one.

        `at` returns the absolute path.
        """
        latest = clock.nanoseconds() - _SECOND
        for path, seen in before.items():
            if seen is not None and (seen[0] >= latest or state(at(path)) != seen):
                self._seen[path] = seen
        self._save()

    def unnoticed(self, at: Callable[[bytes], bytes]) -> set[bytes]:
        """Return the noted files that are not as they were, and forget those that git can tell apart from now on."""
        now = {path: state(at(path)) for path in self._seen}
        changed = {path for path, present in now.items() if present not in (None, self._seen[path])}
        if self._seen:
            latest = clock.nanoseconds() - _SECOND
            self._seen = {path: seen for path, seen in self._seen.items() if path not in changed and seen[0] >= latest}
            self._save()
        return changed

    def clear(self) -> None:
        self._seen = {}
        self._folder.remove(_NOTES)

    def _save(self) -> None:
        self._folder.write(_NOTES, json.dumps({os.fsdecode(path): seen for path, seen in self._seen.items()}))
