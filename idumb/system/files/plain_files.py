"""Reads files that a repository may have put there: a pipe would wait for ever, a device or a huge file never end."""

from __future__ import annotations

import errno
import os
import stat


def read(path: str, most: int, *, links: bool = True) -> bytes:
    """The first `most` bytes of a regular file; OSError for whatever else is there, and for a link without `links`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device", path)
    with open(descriptor, "rb") as stream:
        return stream.read(most)
