"""A program saves the same files while idumb restores them: no text that it saved is lost. R-GIT-3."""

from __future__ import annotations

import contextlib
import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from idumb.git import discover
from idumb.git.trees import GitTrees
from tests.crash import racing_saver
from tests.support.gitrepo import GitSandbox

PATHS = ("a.txt", "d/b.txt", "d/c.txt", "new.txt")


class Saving:
    """A saver beside the test."""

    def __init__(self, lock: TextIO, process: subprocess.Popen[str]) -> None:
        self._lock = lock
        self._process = process

    def end(self) -> set[str]:
        """Return the texts that it saved and did not overwrite itself."""
        told = json.loads(self._process.communicate(timeout=60)[0])
        assert told["saved"]
        return {*told["saved"]} - {*told["overwritten"]}

    @contextlib.contextmanager
    def pausing(self) -> Iterator[None]:
        """No file is open in the saver."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        yield
        fcntl.flock(self._lock, fcntl.LOCK_UN)


@contextlib.contextmanager
def saving(folder: Path, lock_file: Path, *paths: str) -> Iterator[Saving]:
    words = [sys.executable, "-m", "tests.crash.racing_saver", str(folder), str(lock_file), *paths]
    with (
        lock_file.open("w") as lock,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield Saving(lock, process)
        finally:
            process.kill()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.nightly)])
def test_every_text_saved_during_restores_is_at_its_path_or_named(
    sandbox: GitSandbox, tmp_path: Path, rounds: int
) -> None:
    """It saves by renaming and in place, and at any moment of a restore."""
    trees = GitTrees(discover.find(str(sandbox.root)))
    base_text, work_text = racing_saver.EXPECTED
    sandbox.write_all(dict.fromkeys(PATHS[:3], base_text))
    base = trees.scan()
    sandbox.write_all(dict.fromkeys(PATHS, work_text))
    work = trees.scan()
    named: tuple[str, ...] = ()
    with saving(sandbox.root, tmp_path / "lock", *PATHS) as saver:
        for target, expected in [(base, work), (work, base)] * rounds:
            for path in PATHS:
                trees.restore(target, expected, [path])
            with saver.pausing():
                named = trees.release_displaced()
        left = saver.end()
    places = [*map(Path, named), *(sandbox.root / path for path in PATHS if (sandbox.root / path).exists())]
    assert left - {place.read_text(encoding="utf-8") for place in places} <= {*racing_saver.EXPECTED}
