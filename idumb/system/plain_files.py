"""Reads files that a repository may have put there: a pipe would wait for ever, a device or a huge file never end."""

from __future__ import annotations

import errno
import os
import stat


def read(path: str, most: int) -> bytes:
    """The first `most` bytes of a regular file, links followed; OSError for whatever else is there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is a pipe, a socket or a device", path)
        return stream.read(most)
