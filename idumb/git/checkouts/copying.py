"""Copies files and links of the user's working tree into a folder that programs can change."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from typing import IO

from idumb.git.checkouts import manifest, relocated
from idumb.git.checkouts.relocated import Environments

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_PERMISSIONS = 0o777
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EINVAL, errno.ENXIO})
"""What the system says of a file that was removed or replaced by something else, or that the user may not read."""


def is_possible(status: os.stat_result) -> bool:
    """Return whether something can be copied: a folder, a file or a link."""
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode)


def link_text(user: str, path: str) -> str:
    """Return where the copy of a link leads: if the user's leads into the working tree, to the same path there.

    The text is then relative. A link that leads out keeps its target, as an absolute path.
    """
    place = os.path.join(user, path)
    folder, text = os.path.dirname(place), os.readlink(place)
    target = os.path.normpath(os.path.join(folder, text))
    if not _is_below(target, user) and _is_below(real := os.path.realpath(place), user):
        target = real
    return os.path.relpath(target, folder) if _is_below(target, user) else target


def leads_out(user: str, path: str) -> bool:
    return os.path.islink(os.path.join(user, path)) and os.path.isabs(link_text(user, path))


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


class Copier:
    """Copies paths of the working tree `user` for the checkout `root`, whose environments are to lead there.

    `originals` is all that the checkout gets.
    """

    def __init__(self, user: str, root: str, originals: Mapping[str, os.stat_result]) -> None:
        self._user = user
        self._root = root
        self._originals = originals
        self._environments = Environments(user, originals)

    def copy(self, base: str, paths: Iterable[str]) -> None:
        """Make these paths below the folder `base`, in place of what is there; folders come before their content.

        A file that vanished or was replaced, or that the user may not read, is left out.
        """
        for folder, group in itertools.groupby(paths, os.path.dirname):
            with manifest.opened(base, folder) as descriptor:
                for path in group:
                    mode = self._originals[path].st_mode
                    if stat.S_ISDIR(mode):
                        with manifest.opened(base, path) as own:
                            os.fchmod(own, stat.S_IMODE(mode) | stat.S_IRWXU)
                    else:
                        self._place(base, path, descriptor, is_link=stat.S_ISLNK(mode))

    def _place(self, base: str, path: str, folder: int, *, is_link: bool) -> None:
        try:
            if is_link:
                os.symlink(self._link_text(path), os.path.basename(path), dir_fd=folder)
            else:
                self._copy_file(path, folder)
        except FileExistsError:
            manifest.remove(base, path)
            self._place(base, path, folder, is_link=is_link)
        except OSError as problem:
            if problem.errno not in _GONE:
                raise
            manifest.remove(base, path)

    def _link_text(self, path: str) -> str:
        """Refusal `checkout.leads-back` for a program of an environment that the checkout does not get."""
        text = link_text(self._user, path)
        target = os.path.normpath(os.path.join(os.path.dirname(path), text))
        if not os.path.isabs(text) and target not in self._originals and self._environments.is_startup(path):
            relocated.refuse(os.path.join(self._user, path))
        return text

    def _copy_file(self, path: str, folder: int) -> None:
        place = os.path.join(self._user, path)
        with open(os.open(place, _READ), "rb") as original:
            status = os.fstat(original.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(errno.ENOENT, "no longer a file", place)
            with open(os.open(os.path.basename(path), _NEW, 0o600, dir_fd=folder), "wb") as copy:
                is_changed = False
                if self._environments.is_startup(path) and status.st_size <= relocated.LARGEST:
                    content = original.read()
                    moved = relocated.relocate(content, self._user, self._root, place)
                    copy.write(moved)
                    is_changed = moved != content
                else:
                    _copy_bytes(original, copy, status.st_size)
                copy.flush()
                os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode) & _PERMISSIONS)
                if not is_changed:  # Python could take bytecode of the original for that of the copy
                    os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_bytes(original: IO[bytes], copy: IO[bytes], size: int) -> None:
    """Copy a file; both then share their blocks until one of them changes, if the file system can do that."""
    left = size
    with contextlib.suppress(OSError, AttributeError):  # not between all file systems, and only Linux has it
        while left > 0 and (count := os.copy_file_range(original.fileno(), copy.fileno(), left)):
            left -= count
    if left > 0:
        shutil.copyfileobj(original, copy, 1 << 20)
