"""How checks get the paths that the user provides, so that no check can damage them.

A folder is linked, and checks run with mounts of their own, in which writing to it changes a private layer. If the
machine allows no such mounts, the folder is copied, unless it is too large: then a check can write into it. Files are
copied. Copies stay with the working tree and follow the originals by the difference.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from idumb.app.ports.checks import COPIED, LINKED, PROTECTED, Borrowed
from idumb.git import provided_paths
from idumb.git.path_copies import PathCopies, is_small, walk
from idumb.system.files import file_systems, private_folders
from idumb.system.processes import child_process, private_layers

if TYPE_CHECKING:
    from idumb.git.prepared_outputs import Prepared

LAYERS = "layers"
"""The folder beside the working tree that holds what checks wrote into protected folders."""
_PROBE = ("/bin/sh", "-c", ":")
_LONGEST_PROBE = 20
_MOST_LINKS = 100
_MOST_ENTRIES = 1_000_000
_TOO_MANY = ""


class _Lent(NamedTuple):
    """A path that `lender` provides, which is the user's working tree or a folder of outputs; `real` has no links."""

    lender: str
    real: str
    is_prepared: bool


class BorrowedPaths:
    """`root` is the working tree of checks, `user` the one that provides. `shared` are paths that checks may change.

    `above` are packages in folders above `user`, which the caller links above `root`.
    """

    def __init__(self, user: str, root: str, shared: Sequence[str] = (), above: Sequence[str] = ()) -> None:
        self._user = user
        self._root = root
        self._real_root = os.path.realpath(root)
        self._layers = os.path.join(os.path.dirname(root), LAYERS)
        self._shared = frozenset(path.rstrip("/") for path in shared)
        self._above = tuple(dict.fromkeys(os.path.realpath(_packages_folder(path)) for path in above))
        self._copies = PathCopies(user)
        self._usable: dict[tuple[str, ...], bool] = {}
        self._small: dict[str, bool] = {}
        self._leading_out: dict[str, list[str]] = {}
        self.now = Borrowed()

    @property
    def kept(self) -> frozenset[str]:
        """Return the copies, relative to the working tree; they stay when it changes."""
        return frozenset(os.path.relpath(place, self._root) for place in self._copies.places)

    def bring(self, paths: Iterable[str], prepared: Prepared | None = None) -> None:
        """Provide these paths of the user and what is `prepared`, and nothing else."""
        private_folders.remove_tree(self._layers)
        lent = self._lent(paths, prepared)
        own = {name: path.real for name, path in lent.items() if name not in self._shared}
        files = {name for name, real in own.items() if os.path.isfile(real) and self._is_small(real)}
        folders = {n: p for n, p in own.items() if n not in files and _is_data(p) and not self._is_around(p)}
        outside = dict(self._links_out({n: p for n, p in folders.items() if not lent[n].is_prepared}))
        shared = [path.real for name, path in lent.items() if name in self._shared]
        launcher, hidden = self._protect(folders.values(), outside.values(), shared)
        ways = dict.fromkeys(lent, LINKED) | dict.fromkeys(files, COPIED)
        for name, real in folders.items():
            if launcher:
                ways[name] = PROTECTED
            elif self._is_small(real):
                ways[name] = COPIED
        self._place(lent, ways)
        ways |= dict.fromkeys(self._reachable(outside, hidden, ways), LINKED)
        is_prepared = frozenset(name for name, path in lent.items() if path.is_prepared)
        of_user = {name: way for name, way in ways.items() if name not in is_prepared}
        self.now = Borrowed(of_user, launcher, tuple(name for name in lent if name in is_prepared))

    def _lent(self, paths: Iterable[str], prepared: Prepared | None) -> dict[str, _Lent]:
        """Return the existing paths to provide, by name; what is prepared comes last and replaces the user's."""
        lent = dict.fromkeys(provided_paths.present(self._user, self._root, paths), self._user)
        if prepared is not None:
            for name in provided_paths.present(prepared.folder, self._root, prepared.paths):
                lent.pop(name, None)
                lent[name] = prepared.folder
        return {
            name: _Lent(lender, os.path.realpath(os.path.join(lender, name)), lender != self._user)
            for name, lender in lent.items()
        }

    def _protect(
        self, folders: Collection[str], outside: Collection[str], shared: Collection[str]
    ) -> tuple[tuple[str, ...], frozenset[str]]:
        """Return the arguments that protect folders, and which places outside of them they protect too.

        A place outside can be the only one on which no layer can lie; then the folders are protected without it.
        """
        hidden = frozenset(place for place in outside if self._may_protect(place, shared))
        launcher = self._protecting([*folders, *hidden, *self._above])
        if launcher or not hidden:
            return launcher, hidden if launcher else frozenset()
        return self._protecting([*folders, *self._above]), frozenset()

    def _reachable(self, outside: Mapping[str, str], hidden: Collection[str], ways: Mapping[str, str]) -> Iterator[str]:
        """Yield the links `outside` through which a check can change what they lead to."""
        copied = tuple(f"{name}/" for name, way in ways.items() if way == COPIED)
        user = f"{os.path.realpath(self._user)}/"
        for name, place in outside.items():
            # A link of a copy leads to the tree of checks, if it led to the user's.
            leads_to_tree = name.startswith(copied) and f"{place}/".startswith(user)
            if place not in hidden and not leads_to_tree:
                yield name

    def _place(self, lent: Mapping[str, _Lent], ways: Mapping[str, str]) -> None:
        """Copy or link each path into the working tree, and remove other copies."""
        unwanted = set(self._copies.places)
        for name, path in lent.items():
            if ways[name] == COPIED:
                self._copy(name, path, unwanted)
            else:
                provided_paths.provide(name, path.lender, self._root)
        for place in unwanted:
            folder = os.path.dirname(place)
            above = os.path.relpath(folder, self._root)
            # A check may have put a link on the way, which may lead to the user's files.
            if os.path.realpath(folder) == os.path.normpath(os.path.join(self._real_root, above)):
                self._copies.remove(place)

    def forget(self) -> None:
        """Start again in an empty working tree."""
        self._copies.forget()

    def _copy(self, name: str, path: _Lent, unwanted: set[str]) -> None:
        top = os.path.join(self._root, name)

        def place(source: str, target: str) -> None:
            unwanted.discard(target)
            self._copies.bring(path.real if target == top else source, target)

        provided_paths.provide(name, path.lender, self._root, place, self._copies.places)

    def _links_out(self, folders: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the links that lead out of provided folders, and where to: a check that follows one leaves them.

        Of `node_modules`, these are the packages outside of the user's working tree; others are redirected.
        """
        for name, place in folders.items():
            if os.path.basename(name) == provided_paths.PACKAGES:
                yield from self._packages_outside(os.path.join(self._user, name))
            elif not os.path.isfile(os.path.join(place, provided_paths.VENV)):
                if name not in self._leading_out:
                    self._leading_out[name] = _leading_out(place)
                for path in self._leading_out[name]:
                    if path == _TOO_MANY:
                        yield name, "/"
                    else:
                        yield os.path.join(name, path), os.path.realpath(os.path.join(place, path))

    def _packages_outside(self, folder: str) -> Iterator[tuple[str, str]]:
        for path in filter(os.path.islink, provided_paths.packages(folder)):
            real = os.path.realpath(path)
            if os.path.isdir(real) and not f"{real}/".startswith(f"{os.path.realpath(self._user)}/"):
                yield os.path.relpath(path, self._user), real

    def _may_protect(self, place: str, shared: Iterable[str]) -> bool:
        """Return whether nothing below a place must stay writable: the tree of checks, or a shared path."""
        return not self._is_around(place) and not any(f"{path}/".startswith(f"{place}/") for path in shared)

    def _protecting(self, places: Iterable[str]) -> tuple[str, ...]:
        """Return the arguments that protect these places from a program; () if the machine cannot do it."""
        chosen = list[str]()
        for place in sorted({place for place in places if not self._is_around(place)}):
            if not any(f"{place}/".startswith(f"{other}/") for other in chosen):
                chosen.append(place)
        key = tuple(chosen)
        words = private_layers.command(key, self._layers) if sys.platform == "linux" else ()
        if words and key not in self._usable:
            self._usable[key] = self._is_usable(words)
        return words if words and self._usable[key] else ()

    def _is_usable(self, words: Sequence[str]) -> bool:
        try:
            probe = child_process.run((*words, *_PROBE), cwd="/", environment={}, timeout=_LONGEST_PROBE)
        except OSError:
            return False
        return probe.exit_code == 0

    def _is_around(self, place: str) -> bool:
        return f"{os.path.realpath(self._root)}/".startswith(f"{place.rstrip('/')}/")

    def _is_small(self, place: str) -> bool:
        """Return whether a place is small enough for a copy. It is decided once, because copies stay."""
        if place not in self._small:
            self._small[place] = is_small(place, file_systems.room(os.path.dirname(self._root)).bytes // 2)
        return self._small[place]


def _is_data(place: str) -> bool:
    """Return whether a place is a folder or a regular file: a socket or a device can be neither copied nor layered."""
    return os.path.isdir(place) or os.path.isfile(place)


def _leading_out(top: str) -> list[str]:
    """Return the links in a folder that lead to files elsewhere, relative to it, or only `_TOO_MANY`."""
    links = list[str]()
    for number, (path, status) in enumerate(walk(top)):
        if number > _MOST_ENTRIES or len(links) > _MOST_LINKS:
            return [_TOO_MANY]
        if stat.S_ISLNK(status.st_mode):
            real = os.path.realpath(os.path.join(top, path))
            if _is_data(real) and not f"{real}/".startswith(f"{top}/"):
                links.append(path)
    return links


def _packages_folder(path: str) -> str:
    return f"{path.rpartition(f'/{provided_paths.PACKAGES}/')[0]}/{provided_paths.PACKAGES}"
