"""A user who saves, stages and commits every 50 ms, and knows which texts they replaced themselves.

`python -m tests.crash.busy_user FOLDER SEED PATH…` prints a line and works on these paths until its input ends; then it
prints its `Diary`. A line `begin PATH` adds a path that a task changes too; `end PATH` takes it away, and `commit PATH`
commits it. Each is answered with a line.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import random
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TICK = 0.05
_EXCHANGE = 2
_HERE = -100  # AT_FDCWD
_TRIES = 400
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Save:
    """`how` is `rename`, `in place` or `swap file`; `at` is the time of the file, in seconds since 1970."""

    path: str
    text: str
    how: str
    at: float


@dataclass(slots=True)
class Diary:
    """`replaced` are texts, of anybody, that a save replaced; `staged` maps a path to the blob that was left staged.

    `commits` are the messages of commits that git made; `refusals` are git's words when it made none.
    """

    saves: list[Save] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    staged: dict[str, str] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, line: str) -> Diary:
        values: dict[str, Any] = json.loads(line)
        return cls(**{**values, "saves": [Save(**row) for row in values["saves"]]})


class BusyUser:
    def __init__(self, folder: Path, seed: int, paths: list[str]) -> None:
        self.diary = Diary()
        self._folder = folder
        self._paths = paths
        self._chance = random.Random(seed)
        self._commit: subprocess.Popen[str] | None = None  # its hook takes longer than many saves
        self._committed = ("", "")  # path and message
        self._number = 0

    def work(self) -> None:
        path = self._chance.choice(self._paths)
        self._save(path)
        self._look_at_commit()
        if self._commit is None:
            act = self._chance.random()
            if act < 0.04:
                self._begin_commit(path, staged=act < 0.02)
            elif act < 0.1:
                self._stage(path)

    def obey(self, order: str, path: str) -> None:
        if order == "begin":
            self._paths.append(path)
            self._save(path)
        elif order == "end":
            self._paths.remove(path)
        else:
            self._commit_all(path)

    def _commit_all(self, path: str) -> None:
        self.rest()
        for _ in range(_TRIES):
            if not self._git("status", "--porcelain", "--", path).stdout:
                break
            self._begin_commit(path, staged=False)
            self.rest()

    def rest(self) -> None:
        """Wait for the commit that git makes."""
        while self._commit is not None:
            select.select([], [], [], TICK)
            self._look_at_commit()

    def _save(self, path: str) -> None:
        self._number += 1
        place, text = self._folder / path, f"{path} {self._number}\n"
        how, save = self._chance.choice(
            (("rename", self._exchange), ("in place", self._write), ("swap file", self._swap))
        )
        at = save(place, text)
        if at is not None:
            self.diary.saves.append(Save(path, text, how, at))

    def _exchange(self, place: Path, text: str) -> float | None:
        """Rename a new file over the old one, but see what was there. Return None if nothing was saved."""
        new = place.with_name(f".{place.name}.new")
        new.write_text(text, encoding="utf-8")
        at = new.stat().st_mtime
        if _libc.renameat2(_HERE, os.fsencode(new), _HERE, os.fsencode(place), _EXCHANGE) == 0:
            self._remove(new)
            return at
        try:
            os.link(new, place)
        except FileExistsError:
            return None
        finally:
            new.unlink()
        return at

    def _write(self, place: Path, text: str) -> float:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
        with os.fdopen(handle, "r+", encoding="utf-8") as stream:
            self.diary.replaced.append(stream.read())
            stream.seek(0)
            stream.truncate()
            stream.write(text)
            stream.flush()
            return os.fstat(handle).st_mtime

    def _swap(self, place: Path, text: str) -> float:
        """Write a swap file, move the old file aside, write a new one, remove the other two, as Vim does."""
        swap, backup = place.with_name(f".{place.name}.swp"), place.with_name(f"{place.name}~")
        swap.write_text(text, encoding="utf-8")
        try:
            place.rename(backup)
        except FileNotFoundError:
            at = self._write(place, text)
        else:
            at = self._write(place, text)
            self._remove(backup)
        swap.unlink()
        return at

    def _remove(self, displaced: Path) -> None:
        self.diary.replaced.append(displaced.read_text(encoding="utf-8"))
        displaced.unlink()

    def _stage(self, path: str) -> None:
        if self._git("add", "--", path).returncode == 0:
            self._note_staged(path)

    def _begin_commit(self, path: str, *, staged: bool) -> None:
        """Begin to commit what is staged, or what is in the file now."""
        self._stage(path)
        self._number += 1
        self._committed = path, f"user {self._number}"
        words = ["git", "commit", "--quiet", "-m", self._committed[1], *([] if staged else ["--", path])]
        self._commit = subprocess.Popen(
            words, cwd=self._folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def _look_at_commit(self) -> None:
        if self._commit is None or self._commit.poll() is None:
            return
        path, message = self._committed
        out, _ = self._commit.communicate()
        if self._commit.returncode == 0:
            self.diary.commits.append(message)
        elif "nothing" not in out and "no changes" not in out:
            self.diary.refusals.append(out)
        self._commit = None
        self._note_staged(path)

    def _note_staged(self, path: str) -> None:
        entry = self._git("ls-files", "--stage", "--", path).stdout.split()
        if entry:
            self.diary.staged[path] = entry[1]

    def _git(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(["git", *words], cwd=self._folder, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            self.diary.refusals.append(done.stderr)
        return done


def main(folder: str, seed: str, *paths: str) -> None:
    user = BusyUser(Path(folder), int(seed), list(paths))
    print("ready", flush=True)  # noqa: T201 - the programme reads it
    due = time.monotonic()
    while True:
        if not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            due = time.monotonic() + TICK
            user.work()
        elif line := sys.stdin.readline():
            user.obey(*line.split())
            print("done", flush=True)  # noqa: T201
        else:
            break
    user.rest()
    print(json.dumps(dataclasses.asdict(user.diary)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
