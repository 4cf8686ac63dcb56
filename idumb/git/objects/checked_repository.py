"""A repository of libgit2 whose loose objects are read and verified here.

libgit2 1.9 never returns from a loose object that is cut off, and no signal ends that. What it reads by itself, such as
the ancestors of a commit in a walk, is not protected.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Sequence
from typing import Any

import pygit2
from pygit2.enums import ObjectType

from idumb.domain import errors

_FULL = 40
_KINDS = {b"commit": ObjectType.COMMIT, b"tree": ObjectType.TREE, b"blob": ObjectType.BLOB, b"tag": ObjectType.TAG}
_CODE, _HINT = "git.object-missing", "git fsck; idumb doctor"


class Missing(errors.Refusal, KeyError):
    """An object is not there: libgit2's error for callers that expect it, and a refusal for the user."""

    def __init__(self, name: str) -> None:
        super().__init__(_CODE, f"object {name} is missing", hint=_HINT)


class Damaged(errors.Refusal, pygit2.GitError):
    """An object cannot be read: libgit2's error for callers that expect it, and a refusal for the user."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(_CODE, f"object {name} is damaged: {why}", hint=_HINT)


class CheckedRepository(pygit2.Repository):
    """`folders` have loose objects, those of lenders included."""

    folders: Sequence[str] = ()

    def read(self, oid: pygit2.Oid | str) -> tuple[int, bytes]:
        """Return kind and bytes of an object. Raises Missing or Damaged."""
        loose = self._loose(str(oid))
        if loose is not None:
            return loose
        try:
            return super().read(oid)
        except KeyError as problem:
            raise Missing(str(oid)) from problem

    def __getitem__(self, oid: pygit2.Oid | str) -> Any:
        """Return an object. Raises Missing or Damaged."""
        self._loose(str(oid))
        try:
            return super().__getitem__(oid)
        except KeyError as problem:
            raise Missing(str(oid)) from problem

    def _loose(self, name: str) -> tuple[ObjectType, bytes] | None:
        """Return a loose object; None if there is none, and for a shortened name."""
        if len(name) == _FULL:
            for folder in self.folders:
                # What cannot be opened is left to libgit2, which looks into packs, and words the failure.
                with contextlib.suppress(OSError), open(f"{folder}/{name[:2]}/{name[2:]}", "rb") as stream:
                    return _inflated(name, stream.read())
        return None


def _inflated(name: str, data: bytes) -> tuple[ObjectType, bytes]:
    inflater = zlib.decompressobj()
    try:
        whole = inflater.decompress(data)
    except zlib.error as problem:
        raise Damaged(name, str(problem)) from problem
    if not inflater.eof:
        raise Damaged(name, "its file is cut off")
    header, _, body = whole.partition(b"\0")
    kind = _KINDS.get(header.partition(b" ")[0])
    if kind is None or hashlib.sha1(whole, usedforsecurity=False).hexdigest() != name:
        raise Damaged(name, "its file has other bytes")
    return kind, body
