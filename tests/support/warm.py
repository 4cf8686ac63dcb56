"""Command lines without start-up cost: a process that has imported everything forks for each of them."""

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


def seconds_used() -> float:
    """Processor seconds of all commands of the shared server that ended. Those of others count when they end."""
    return _shared_server().used if _shared_server.cache_info().currsize else 0.0


class Server:
    """The process that forks; `preload` is put into its LD_PRELOAD, and so into that of every case."""

    def __init__(self, preload: str = "", environment: Mapping[str, str] | None = None) -> None:
        self._numbers = iter(range(1 << 30))
        self._news: dict[tuple[int, str], int] = {}
        self.used = 0.0
        inherited = {**os.environ, **(environment or {}), "PYTHONPATH": str(_ROOT)}
        if preload:
            inherited["LD_PRELOAD"] = preload
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_server"],
            cwd=_ROOT,
            env=inherited,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._next() == {"ready": True}

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def begin(self, request: Mapping[str, Any]) -> tuple[int, int]:
        """(number, process) of a case that was forked."""
        number = next(self._numbers)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, **request}).encode("ascii") + b"\n")
        return number, self.answer(number, "pid")

    def answer(self, number: int, key: str) -> int:
        """The `pid` or the `status` of a case; waits for it."""
        while (number, key) not in self._news:
            message = self._next()
            self.used += message.get("seconds", 0.0)
            self._news.update({(message["id"], name): message[name] for name in ("pid", "status") if name in message})
        return self._news.pop((number, key))

    def _next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that forks has ended"
        message: dict[str, Any] = json.loads(line)
        return message


@functools.cache
def _shared_server() -> Server:
    """One for all that this process runs, since its start costs more than most tests; it ends with this process."""
    server = Server()
    atexit.register(server.end)
    return server


class Started:
    """A command line that runs; `pid` is its process, which leads a session of its own."""

    def __init__(self, server: Server, request: Mapping[str, Any]) -> None:
        self._server = server
        self._out, self._err = Path(request["out"]), Path(request["err"])
        self._number, self.pid = server.begin(request)
        self.answer: Answer | None = None

    def wait(self) -> Answer:
        """Return its answer after it has ended; the files of the output are then dropped."""
        if self.answer is None:
            code = self._server.answer(self._number, "status")
            self.answer = Answer(code, _read_once(self._out), _read_once(self._err))
        return self.answer


class Warm:
    """Command lines that write to `folder`.

    Use it as a context: `preload` and `environment` take a server of its own, which ends with the context.
    """

    def __init__(self, folder: Path, *, preload: str = "", environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._numbers = iter(range(1 << 30))
        self._own = Server(preload, environment) if preload or environment else None
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own is not None:
            self._own.end()

    def start(
        self,
        cwd: Path,
        *argv: str,
        environment: Mapping[str, str] | None = None,
        hook: str = "",
        given: Any = None,
        typed: str = "",
        terminal: str = "",
        pipe: Path | None = None,
    ) -> Started:
        """Begin a command line, with `typed` on standard input, or at the terminal of that name.

        Whoever reads the named `pipe` gets its output, and the answer has none.

        `hook` is `module:function`, called with `given` in the child before it runs.
        """
        number = next(self._numbers)
        source = Path(os.devnull)
        if typed:
            source = self._folder / f"{number}.in"
            source.write_text(typed, encoding="utf-8")
        request = {
            "cwd": str(cwd),
            "argv": list(argv),
            "environment": {**os.environ, **(environment or {})},
            "in": terminal or str(source),
            "out": terminal or str(pipe or self._folder / f"{number}.out"),
            "err": terminal or str(self._folder / f"{number}.err"),
            "hook": hook,
            "given": given,
        }
        return Started(self._own or _shared_server(), request)

    def run(self, cwd: Path, *argv: str, **options: Any) -> Answer:
        """A command line to its end; `options` are those of `start`."""
        return self.start(cwd, *argv, **options).wait()


def _read_once(path: Path) -> str:
    """Return the output of a case; one that was killed at once may have no file yet, one at a terminal has none."""
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    path.unlink()
    return text


@functools.cache
def of_this_process() -> Warm:
    """One for all tests that this process runs, with a folder that goes at its end."""
    folder = tempfile.TemporaryDirectory(prefix="idumb-tests-warm-")
    atexit.register(folder.cleanup)
    return Warm(Path(folder.name))


def start(cwd: Path, *argv: str, **options: Any) -> Started:
    """`Warm.start` of this process."""
    return of_this_process().start(cwd, *argv, **options)


def run(cwd: Path, *argv: str, **options: Any) -> Answer:
    """`Warm.run` of this process."""
    return of_this_process().run(cwd, *argv, **options)
