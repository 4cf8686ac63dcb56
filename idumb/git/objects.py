"""The objects of a repository. A git that waits for the next question reads them; idumb adds trees and blobs.

What git answers is verified, because git does not compare an object with its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable

from idumb.domain import errors
from idumb.git import disk, git_program
from idumb.git.discover import Repository

BLOB, TREE, COMMIT = "blob", "tree", "commit"
_CODE, _HINT = "git.object-missing", "git fsck; idumb doctor"
_OID = re.compile("[0-9a-f]{40}")
_MOST_LENDERS = 50
_FIELDS = 2  # of an answer about an object that is missing


class Damaged(errors.Refusal):
    """An object cannot be read."""

    def __init__(self, oid: str, why: str = "cannot be read") -> None:
        super().__init__(_CODE, f"object {oid} {why}", hint=_HINT)


class Missing(Damaged, KeyError):
    """An object is not there."""

    def __init__(self, oid: str) -> None:
        super().__init__(oid, "is missing")


class Objects:
    """Those of the repository `place`, and of the repositories that lend it theirs; `folder` has its own."""

    def __init__(self, place: Repository) -> None:
        self.place = place
        self.folder = os.path.join(place.common_dir, "objects")
        self._alone = threading.Lock()
        self._git: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None

    def read(self, oid: str) -> tuple[str, bytes]:
        """Return kind and bytes of an object. Raises Missing or Damaged."""
        kind, _, data = self._ask("contents", oid)
        if _whole(kind, data)[1] != oid:
            raise Damaged(oid)
        return kind, data

    def about(self, oid: str) -> tuple[str, int]:
        """Return kind and size of an object. Raises Missing or Damaged."""
        return self._ask("info", oid)[:2]

    def __contains__(self, oid: str) -> bool:
        with contextlib.suppress(Damaged):
            return bool(self.about(oid))
        return False

    def write(self, kind: str, data: bytes) -> str:
        """Store an object, on disk before git can see it; return its id. Raises OSError.

        What is in a pack is stored too: git may be about to remove the pack.
        """
        whole, oid = _whole(kind, data)
        place = self.loose(oid)
        with contextlib.suppress(OSError):
            os.utime(place)  # `git gc` removes what is old and has no name
        if not os.path.exists(place):
            folder = os.path.dirname(place)
            os.makedirs(folder, exist_ok=True)
            with (
                contextlib.suppress(FileNotFoundError),
                tempfile.NamedTemporaryFile(dir=folder, prefix="tmp_obj_") as new,
            ):
                new.write(zlib.compress(whole, 1))
                new.flush()
                disk.force([new.name])
                os.chmod(new.name, 0o444)
                os.rename(new.name, place)
            disk.force([folder, self.folder])
        return oid

    def forget(self) -> None:
        """Find only what is there from now on: git goes on to find objects in a pack that was removed."""
        with self._alone:
            self._stop()

    def _stop(self) -> None:
        self._end()
        self._git = None

    def _ask(self, command: str, oid: str) -> tuple[str, int, bytes]:
        """Return kind, size and perhaps content. Ask again if git ended: somebody may have killed it."""
        if not _OID.fullmatch(oid):
            raise Missing(oid)
        with self._alone:
            answer = self._answer(command, oid) or self._answer(command, oid)
        if answer is None or not answer[0]:
            raise Damaged(oid) if os.path.exists(self.loose(oid)) else Missing(oid)
        return answer

    def _answer(self, command: str, oid: str) -> tuple[str, int, bytes] | None:
        """Return git's answer; None if git ended, as it does at a damaged object. The kind is "" if there is none."""
        if self._git is None:
            self._git = git_program.reader(self.place.root, self.place.git_dir)
            self._end = weakref.finalize(self, git_program.end, self._git)
        asked, told = self._git.stdin, self._git.stdout
        assert asked is not None and told is not None  # noqa: S101, PT018 - pipes were asked for
        is_whole = False
        try:
            asked.write(f"{command} {oid}\n".encode("ascii"))
            asked.flush()
            words = told.readline().decode("ascii", "replace").split()
            kind, size = (words[1], int(words[2])) if len(words) > _FIELDS else ("", 0)
            wanted = size + 1 if kind and command == "contents" else 0  # with a line break
            data = told.read(wanted)
            is_whole = bool(words) and len(data) == wanted
        except BrokenPipeError:
            return None
        finally:
            if not is_whole:  # also after an interrupt: the rest of the answer would be taken for the next one
                self._stop()
        return (kind, size, data[:-1]) if is_whole else None

    def loose(self, oid: str) -> str:
        """Return where an object is that is in no pack."""
        return f"{self.folder}/{oid[:2]}/{oid[2:]}"


def _whole(kind: str, data: bytes) -> tuple[bytes, str]:
    """Return the bytes of an object with its header, and its id."""
    whole = b"%b %d\0%b" % (kind.encode("ascii"), len(data), data)
    return whole, hashlib.sha1(whole, usedforsecurity=False).hexdigest()


def lenders(place: Repository) -> tuple[str, ...]:
    """Return the user's object folder, and those that it borrows from.

    All are listed, because git ignores relative names in the second repository of such a chain.
    """
    folders = [os.path.join(place.common_dir, "objects")]
    for folder in folders:
        with contextlib.suppress(OSError), open(os.path.join(folder, "info", "alternates"), "rb") as stream:
            # git decodes quoted names itself.
            plain = [line for line in stream.read().splitlines() if line and not line.startswith((b"#", b'"'))]
            borrowed = (os.path.normpath(os.path.join(folder, os.fsdecode(line))) for line in plain)
            folders += [path for path in borrowed if path not in folders][: _MOST_LENDERS - len(folders)]
    return tuple(folders)
