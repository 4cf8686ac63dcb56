"""Command lines without the cost of a start: a process that has imported everything forks for each of them."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.answer import Answer

_ROOT = Path(__file__).parents[2]


class Started:
    """A command line that runs; `pid` is its process, which leads a session of its own."""

    def __init__(self, warm: Warm, number: int, out: Path, err: Path) -> None:
        self._warm = warm
        self._number = number
        self._out = out
        self._err = err
        self.pid = warm._told(number, "pid")

    def wait(self) -> Answer:
        """Its answer once it has ended; what it printed is forgotten here."""
        code = self._warm._told(self._number, "status")
        return Answer(code, _taken(self._out), _taken(self._err))


class Warm:
    """Use it as a context. `preload` is put into LD_PRELOAD of the process that forks, and so of every case."""

    def __init__(self, folder: Path, *, preload: str = "", environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._numbers = iter(range(1 << 30))
        self._news: dict[tuple[int, str], int] = {}
        inherited = {**os.environ, **(environment or {}), "PYTHONPATH": str(_ROOT)}
        if preload:
            inherited["LD_PRELOAD"] = preload
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_server"],
            cwd=_ROOT,
            env=inherited,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        folder.mkdir(parents=True, exist_ok=True)
        assert self._next() == {"ready": True}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(timeout=60)
        self._server.stdout.close()

    def start(
        self,
        cwd: Path,
        *argv: str,
        environment: Mapping[str, str] | None = None,
        hook: str = "",
        given: Any = None,
        typed: str = "",
    ) -> Started:
        """Begin a command line, with `typed` on standard input.

        `hook` is `module:function`, called with `given` in the child before it runs.
        """
        number = next(self._numbers)
        out, err = self._folder / f"{number}.out", self._folder / f"{number}.err"
        source = Path(os.devnull)
        if typed:
            source = self._folder / f"{number}.in"
            source.write_text(typed, encoding="utf-8")
        request = {
            "id": number,
            "cwd": str(cwd),
            "argv": list(argv),
            "environment": {**os.environ, **(environment or {})},
            "in": str(source),
            "out": str(out),
            "err": str(err),
            "hook": hook,
            "given": given,
        }
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request).encode("ascii") + b"\n")
        return Started(self, number, out, err)

    def run(self, cwd: Path, *argv: str, **options: Any) -> Answer:
        """A command line to its end; `options` are those of `start`."""
        return self.start(cwd, *argv, **options).wait()

    def _told(self, number: int, what: str) -> int:
        while (number, what) not in self._news:
            message = self._next()
            self._news.update({(message["id"], name): message[name] for name in ("pid", "status") if name in message})
        return self._news.pop((number, what))

    def _next(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, "the process that forks has ended"
        found: dict[str, Any] = json.loads(line)
        return found


def _taken(path: Path) -> str:
    """What a case printed; a case that was killed at once may have no file yet."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""
    path.unlink()
    return text


@functools.cache
def of_this_process() -> Warm:
    """One for all tests that this process runs, ended with it."""
    folder = tempfile.TemporaryDirectory(prefix="idumb-tests-warm-")
    atexit.register(folder.cleanup)
    warm = Warm(Path(folder.name))
    atexit.register(warm.__exit__, None, None, None)
    return warm
