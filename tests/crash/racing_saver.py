"""A program that saves the same files over and over, and knows which of its texts it overwrote itself.

`python -m tests.crash.racing_saver FOLDER LOCK PATH…` prints a line and saves until its input ends. Then it prints the
texts that it saved and those that it overwrote. Between two texts of its own it saves one that idumb expects, as
undo in an editor does.
"""

from __future__ import annotations

import fcntl
import json
import select
import sys
from pathlib import Path

from idumb.git.restore import atomic_moves
from idumb.git.restore.path_state import Spot

EXPECTED = ("base\n", "work\n")


class Saver:
    def __init__(self, folder: Path, lock: Path) -> None:
        self.folder = folder
        self.lock = lock.open("w")
        self.saved: list[str] = []
        self.overwritten: list[str] = []

    def save(self, path: str, text: str, *, in_place: bool) -> None:
        try:
            self._write(path, text) if in_place else self._exchange(path, text)
        except (FileNotFoundError, FileExistsError):
            return  # idumb moved it aside or placed it just now
        self.saved.append(text)

    def _write(self, path: str, text: str) -> None:
        """The lock is held while the file is open: idumb waits with its last look, as no program saves for minutes."""
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        try:
            with (self.folder / path).open("r+", encoding="utf-8") as stream:
                self.overwritten.append(stream.read())
                stream.seek(0)
                stream.truncate()
                stream.write(text)
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def _exchange(self, path: str, text: str) -> None:
        """Save as an editor does by renaming, but see what was there."""
        target, new = self.folder / path, self.folder / ".saving"
        new.write_text(text, encoding="utf-8")
        try:
            if target.exists():
                atomic_moves.exchange(Spot(None, str(new)), Spot(None, str(target)))
                self.overwritten.append(new.read_text(encoding="utf-8"))
            else:
                atomic_moves.place(Spot(None, str(new)), Spot(None, str(target)))
        finally:
            new.unlink(missing_ok=True)


def main(folder: str, lock: str, *paths: str) -> None:
    saver = Saver(Path(folder), Path(lock))
    number = 0
    print("ready", flush=True)  # noqa: T201 - the test reads it
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        for path in paths:
            number += 1
            saver.save(path, f"{path} {number}\n", in_place=number % 3 == 0)
            saver.save(path, EXPECTED[number % 2], in_place=False)
    print(json.dumps({"saved": saver.saved, "overwritten": saver.overwritten}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
