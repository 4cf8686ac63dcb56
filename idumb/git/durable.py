"""Forces files and folders to disk, many at once: the journal then commits them together instead of one by one."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# More threads gained nothing where it was measured, and starting them for each call cost more than the fsyncs.
_THREADS = 3


def force(paths: Iterable[str]) -> None:
    """Return when every file and folder is on disk. Raises OSError; a failed fsync is never tried again."""
    todo = list(dict.fromkeys(paths))
    if len(todo) <= 2:
        _force_all(todo)
        return
    shares = [todo[start::_THREADS] for start in range(min(_THREADS, len(todo)))]
    begun = [_pool(os.getpid()).submit(_force_all, share) for share in shares]
    failures = [one.exception() for one in begun]  # waits for all of them
    for failure in failures:
        if failure is not None:
            raise failure


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - the threads of a process do not survive a fork
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_THREADS, "durable")


def _force_all(paths: Iterable[str]) -> None:
    for path in paths:
        _force(path)


def _force(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
