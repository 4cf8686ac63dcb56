"""The port `History` for a project in a subfolder: one HEAD, branch and index, with the project's paths and commits."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace

from idumb.app.ports.repository import CommitAttempt, Head, RepositoryState
from idumb.domain import paths
from idumb.domain.proof.ledger import Entry
from idumb.domain.runs import guarded_names
from idumb.git.history import GitHistory
from idumb.git.projects.project_paths import ProjectPaths

_PRESENT = "is there"
Wrote = Callable[[str], bool]


class ProjectHistory:
    """Shows the project in `folder` of the repository of `whole`."""

    def __init__(self, whole: GitHistory, folder: str) -> None:
        self._whole = whole
        self._root = whole.root
        self._paths = ProjectPaths(folder)

    def head(self) -> Head:
        return self._whole.head()

    def state(self) -> RepositoryState:
        state = self._whole.state()
        guarded = {self._guarded(name): digest for name, digest in state.guarded.items()}
        rows = {self._guarded(name): settings for name, settings in state.configuration.items()}
        return replace(state, guarded={**guarded, **self._git_folders()}, configuration=rows)

    def _git_folders(self) -> Mapping[str, str]:
        """Return what makes the project's folder, or one above it, another repository for git and for idumb."""
        folders = paths.folders_above(f"{self._paths.folder}/")
        places = [place for folder in folders if os.path.lexists(os.path.join(self._root, place := f"{folder}/.git"))]
        return {self._paths.shown(place): _PRESENT for place in places}

    def _guarded(self, name: str) -> str:
        """Return the name of a guarded file; those in the working tree are paths."""
        return self._paths.shown(name) if guarded_names.in_tree(name) else name

    def hooks_in_tree(self) -> frozenset[str]:
        return frozenset(self._paths.all_shown(self._whole.hooks_in_tree()))

    def kept_refs(self) -> Mapping[str, str]:
        return self._whole.kept_refs()

    def expected_refs(self) -> Mapping[str, str]:
        return self._whole.expected_refs()

    def descends(self, commit: str, tip: str | None = None) -> bool:
        return self._whole.descends(commit, tip)

    def index(self) -> bytes | None:
        return self._whole.index()

    def index_changes(self, snapshot: str, present: bytes | None) -> tuple[str, ...]:
        return self._paths.all_shown(self._whole.index_changes(snapshot, present))

    def index_restore_input(self, snapshot: str, paths: Sequence[str]) -> tuple[bytes, tuple[str, ...]]:
        return self._whole.index_restore_input(snapshot, self._paths.all_stored(paths))

    def index_input(self, entries: Mapping[str, Entry | None]) -> bytes:
        return self._whole.index_input({self._paths.stored(path): entry for path, entry in entries.items()})

    def staged(self, paths: Sequence[str]) -> Mapping[str, Entry | None]:
        staged = self._whole.staged(self._paths.all_stored(paths))
        return {self._paths.shown(path): entry for path, entry in staged.items()}

    def index_command(self, snapshot: str) -> str:
        return self._whole.index_command(snapshot)

    def differing_from_index(self, paths: Sequence[str]) -> frozenset[str]:
        return frozenset(self._paths.all_shown(self._whole.differing_from_index(self._paths.all_stored(paths))))

    def committed(self, base: str | None, paths: Sequence[str]) -> Mapping[str, Container[str]]:
        blobs = self._whole.committed(base, self._paths.all_stored(paths))
        return {self._paths.shown(path): oids for path, oids in blobs.items()}

    def head_at(self, snapshot: str) -> str | None:
        return self._whole.head_at(snapshot)

    def tree_of(self, commit: str | None) -> str:
        return self._whole.tree_of(commit)

    def obstacle(self) -> tuple[str, str] | None:
        return self._whole.obstacle()

    def unsupported(self) -> tuple[str, str] | None:
        return self._whole.unsupported()

    def identity_problem(self) -> str | None:
        return self._whole.identity_problem()

    def head_tree(self) -> str | None:
        return self._whole.head_tree()

    def ignored(self, paths: Iterable[str]) -> frozenset[str]:
        return frozenset(self._paths.all_shown(self._whole.ignored(self._paths.all_stored(paths))))

    def repositories(self, places: Iterable[str]) -> tuple[str, ...]:
        return self._paths.all_shown(self._whole.repositories(self._paths.all_stored(places)))

    def added(self, paths: Sequence[str]) -> tuple[str, ...]:
        return self._paths.all_shown(self._whole.added(self._paths.all_stored(paths)))

    def recent_changes(self, limit: int) -> tuple[frozenset[str], ...]:
        rows = (frozenset(self._paths.kept(paths)) for paths in self._whole.recent_changes(limit))
        return tuple(row for row in rows if row)

    def uncommitted(self, paths: Sequence[str]) -> tuple[str, ...]:
        return self._paths.all_shown(self._whole.uncommitted(self._paths.all_stored(paths)))

    def commit(
        self,
        paths: Sequence[str],
        message: str,
        *,
        expected_head: str | None,
        hooks: bool,
        allow_empty: bool,
        wrote: Wrote = lambda _: False,
    ) -> CommitAttempt:
        attempt = self._whole.commit(
            self._paths.all_own(paths),
            message,
            expected_head=expected_head,
            hooks=hooks,
            allow_empty=allow_empty,
            wrote=self._wrote(wrote),
        )
        return self._shown(attempt)

    def begin_branch(self, name: str) -> None:
        self._whole.begin_branch(name)

    def settle_index(self, commit: str, paths: Sequence[str]) -> None:
        self._whole.settle_index(commit, self._paths.all_own(paths))

    def unstage(self, paths: Sequence[str]) -> bool:
        return self._whole.unstage(self._paths.all_own(paths))

    def advance(
        self,
        tip: str,
        message: str,
        *,
        expected_head: str | None,
        hooks: bool,
        wrote: Wrote = lambda _: False,
    ) -> CommitAttempt:
        attempt = self._whole.advance(tip, message, expected_head=expected_head, hooks=hooks, wrote=self._wrote(wrote))
        return self._shown(attempt)

    def _wrote(self, wrote: Wrote) -> Wrote:
        return lambda path: wrote(self._paths.shown(path))

    def _shown(self, attempt: CommitAttempt) -> CommitAttempt:
        guarded = tuple(self._guarded(name) for name in attempt.guarded)
        return replace(attempt, guarded=guarded, unrun=self._paths.all_shown(attempt.unrun))

    def trailers_since(self, base: str | None, limit: int = 10_000) -> tuple[tuple[str, Mapping[str, str]], ...]:
        return self._whole.trailers_since(base, limit)

    def refs(self, prefix: str) -> Mapping[str, str]:
        return self._whole.refs(prefix)

    def kept(self, name: str) -> str | None:
        return self._whole.kept(name)

    def keep_ref(self, ref: str, commit: str) -> None:
        self._whole.keep_ref(ref, commit)

    def fold(self, run: str) -> None:
        self._whole.fold(run)

    def free(self, run: str, is_kept: Callable[[str], bool]) -> None:
        self._whole.free(run, is_kept)

    def kept_bytes(self) -> int | None:
        return self._whole.kept_bytes()

    def delete_ref(self, ref: str, expected: str) -> None:
        self._whole.delete_ref(ref, expected)

    def remove_stale_files(self, since: str | None) -> Sequence[str]:
        return self._whole.remove_stale_files(since)
