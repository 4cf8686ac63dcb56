"""How checks get the paths that the user provides, so that no check can damage them.

A folder is linked, and checks run with mounts of their own, in which writing to it changes a private layer. If the
machine allows no such mounts, the folder is copied, unless it is too large: then a check can write into it. Files are
copied. Copies stay with the working tree and follow the originals by the difference.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

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
        made = () if prepared is None else provided_paths.present(prepared.folder, self._root, prepared.paths)
        names = (*(n for n in provided_paths.present(self._user, self._root, paths) if n not in made), *made)
        lenders = dict.fromkeys(names, self._user)
        if prepared is not None:
            lenders |= dict.fromkeys(made, prepared.folder)
        real = {name: os.path.realpath(os.path.join(lenders[name], name)) for name in names}
        own = {name: real[name] for name in names if name not in self._shared}
        files = {name for name, place in own.items() if os.path.isfile(place) and self._is_small(place)}
        folders = {n: p for n, p in own.items() if n not in files and _is_data(p) and not self._is_around(p)}
        outside = dict(self._links_out({name: place for name, place in folders.items() if name not in made}))
        kept_apart = [place for place in outside.values() if self._may_protect(place, real)]
        launcher = self._protecting([*folders.values(), *kept_apart, *self._above])
        if not launcher and kept_apart:  # what a link leads to may be the only folder on which no layer can lie
            kept_apart = []
            launcher = self._protecting([*folders.values(), *self._above])
        ways = dict.fromkeys(names, LINKED) | dict.fromkeys(files, COPIED)
        for name, place in folders.items():
            if launcher:
                ways[name] = PROTECTED
            elif self._is_small(place):
                ways[name] = COPIED
        unwanted = set(self._copies.places)
        for name in names:
            if ways[name] == COPIED:
                self._copy(name, lenders[name], real[name], unwanted)
            else:
                provided_paths.provide(name, lenders[name], self._root)
        for place in unwanted:
            above = os.path.relpath(os.path.dirname(place), self._root)
            if os.path.realpath(os.path.dirname(place)) == os.path.normpath(os.path.join(self._real_root, above)):
                self._copies.remove(
                    place
                )  # otherwise a check made a link on the way, and it may lead to the user's files
        reachable = [name for name, place in outside.items() if not launcher or place not in kept_apart]
        copied = tuple(f"{name}/" for name, way in ways.items() if way == COPIED)
        user = f"{os.path.realpath(self._user)}/"
        # A link of a copy leads to the tree of checks, if it led to the user's.
        ways |= {n: LINKED for n in reachable if not (n.startswith(copied) and f"{outside[n]}/".startswith(user))}
        of_user = {name: way for name, way in ways.items() if name not in made}
        self.now = Borrowed(of_user, launcher, made)

    def forget(self) -> None:
        """Start again in an empty working tree."""
        self._copies.forget()

    def _copy(self, name: str, lender: str, real: str, unwanted: set[str]) -> None:
        top = os.path.join(self._root, name)

        def place(source: str, target: str) -> None:
            unwanted.discard(target)
            self._copies.bring(real if target == top else source, target)

        provided_paths.provide(name, lender, self._root, place, self._copies.places)

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
                    yield (
                        (os.path.join(name, path), os.path.realpath(os.path.join(place, path))) if path else (name, "/")
                    )

    def _packages_outside(self, folder: str) -> Iterator[tuple[str, str]]:
        for path in filter(os.path.islink, provided_paths.packages(folder)):
            real = os.path.realpath(path)
            if os.path.isdir(real) and not f"{real}/".startswith(f"{os.path.realpath(self._user)}/"):
                yield os.path.relpath(path, self._user), real

    def _may_protect(self, place: str, real: Mapping[str, str]) -> bool:
        """Return whether nothing below a place must stay writable: the tree of checks, or a shared path."""
        shared = [where for name, where in real.items() if name in self._shared]
        return not self._is_around(place) and not any(f"{where}/".startswith(f"{place}/") for where in shared)

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
    """Return the links in a folder that lead to files elsewhere, relative to it; "" stands for too many of them."""
    found = list[str]()
    for number, (path, status) in enumerate(walk(top)):
        if number > _MOST_ENTRIES or len(found) > _MOST_LINKS:
            return [""]
        if stat.S_ISLNK(status.st_mode):
            real = os.path.realpath(os.path.join(top, path))
            if _is_data(real) and not f"{real}/".startswith(f"{top}/"):
                found.append(path)
    return found


def _packages_folder(path: str) -> str:
    return f"{path.rpartition(f'/{provided_paths.PACKAGES}/')[0]}/{provided_paths.PACKAGES}"
