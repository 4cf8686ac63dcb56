"""What snapshots record beside git's trees: permission bits, and folders that were empty."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import pygit2

from idumb.domain import canonical_json
from idumb.domain.proof.ledger import Entry
from idumb.git.objects import tree_objects
from idumb.git.snapshot import META, WORKTREE

Noted = tuple[int, str, Mapping[str, Any]]
"""A snapshot's time, its tree, and its manifest."""

_KEPT = 0o777  # do not restore set-user-id and similar bits: the restored file may have another owner


class Manifest:
    """Reads the snapshots below a prefix of refs, newest first, on demand.

    `known` caches what commits say between restores: there may be thousands, and they never change.
    """

    def __init__(self, repository: pygit2.Repository, prefix: str, known: dict[str, Noted]) -> None:
        self._repository = repository
        self._prefix = prefix
        self._known = known

    def modes(self, wanted: Mapping[str, Entry]) -> Mapping[str, int]:
        """Return the unusual bits of the wanted files, from the newest snapshot that holds exactly these files."""
        rest = dict(wanted)
        found: dict[str, int] = {}
        if not rest:
            return found
        for tree, meta in self._snapshots:
            if not rest:
                break
            modes = meta.get("modes", {})
            held = [path for path, entry in rest.items() if tree_objects.entry(self._repository, tree, path) == entry]
            found.update((path, int(modes[path], 8) & _KEPT) for path in held if path in modes)
            for path in held:
                del rest[path]
        return found

    def was_empty(self, folder: str) -> bool:
        """Return whether the folder was empty when a snapshot was made: then it is the user's and not a task's work."""
        return folder in self._empty

    @functools.cached_property
    def _empty(self) -> frozenset[str]:
        return frozenset(folder.rstrip("/") for _, meta in self._snapshots for folder in meta.get("empty_folders", ()))

    @functools.cached_property
    def _snapshots(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return (tree, manifest), newest first."""
        return [(tree, meta) for _, tree, meta in sorted(self._read(), key=lambda one: one[0], reverse=True)]

    def _read(self) -> Iterator[Noted]:
        for name in self._repository.references:
            if not name.startswith(self._prefix):
                continue
            try:
                commit = str(self._repository.references[name].target)
                if commit not in self._known:
                    noted = _noted(self._repository, commit)
                    if noted is None:
                        continue
                    self._known[commit] = noted
                yield self._known[commit]
            except (pygit2.GitError, KeyError, ValueError):
                continue  # `doctor` reports a damaged snapshot; here it has no manifest


def _noted(repository: pygit2.Repository, name: str) -> Noted | None:
    commit = repository[name].peel(pygit2.Commit)
    items = tree_objects.rows_of(repository, name)
    if META not in items or WORKTREE not in items:
        return None
    data = repository[pygit2.Oid(items[META].oid)].read_raw()
    return commit.commit_time, items[WORKTREE].oid.hex(), canonical_json.decode(data)
