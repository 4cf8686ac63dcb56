"""Ignored paths of the user's working tree that a proving tree borrows: `node_modules`, a virtual environment, data.

Each is copied. Two kinds of links lead back into the user's own folder, where a check would judge other bytes than the
commit's: workspace packages in `node_modules`, and editable installs in a virtual environment. The first are redirected
here; for the second, `python_path` returns the folders that Python must search first.
"""

from __future__ import annotations

import ast
import contextlib
import glob
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from idumb import lazy_pattern
from idumb.domain.errors import Refusal
from idumb.git.path_copies import PathCopies

if TYPE_CHECKING:
    from idumb.git.prepared_outputs import Prepared

PACKAGES = "node_modules"
_PROGRAMS = ".bin"
_GIT = ".git"
VENV = "pyvenv.cfg"
_SITE = ("lib/python*/site-packages", "Lib/site-packages")
_MAPPING = lazy_pattern.compile(r"^MAPPING\b[^=]*=\s*(\{.*?\})\s*$", re.MULTILINE | re.DOTALL)


Placing = Callable[[str, str], None]
"""Makes the second path what the first is: a link to it, or a copy of it. Nothing is at the second."""


class ProvidedCopies:
    """The copies in the working tree `root` of paths of the `user`'s, and of what `checkout.prepare` made."""

    def __init__(self, user: str, root: str) -> None:
        self._user, self._root = user, root
        self._copies = PathCopies(user)
        self.provided: tuple[str, ...] = ()
        self.prepared: tuple[str, ...] = ()

    @property
    def kept(self) -> frozenset[str]:
        """Return the copies, relative to the working tree; they stay when it changes."""
        return frozenset(os.path.relpath(place, self._root) for place in self._copies.places)

    def bring(self, paths: Iterable[str], prepared: Prepared | None = None) -> None:
        """Provide these paths of the user and what is `prepared`, and nothing else."""
        lenders = dict.fromkeys(present(self._user, self._root, paths), self._user)
        made = () if prepared is None else present(prepared.folder, self._root, prepared.paths)
        lenders |= dict.fromkeys(made, prepared.folder if prepared is not None else "")
        unwanted = set(self._copies.places)
        for name, lender in lenders.items():
            self._copy(name, lender, unwanted)
        real_root = os.path.realpath(self._root)
        for place in unwanted:
            folder = os.path.dirname(place)
            # A check may have put a link on the way, which may lead to the user's files.
            if os.path.realpath(folder) == os.path.normpath(
                os.path.join(real_root, os.path.relpath(folder, self._root))
            ):
                self._copies.remove(place)
        self.provided, self.prepared = tuple(name for name in lenders if name not in made), made

    def forget(self) -> None:
        """Start again in an empty working tree."""
        self._copies.forget()

    def _copy(self, name: str, lender: str, unwanted: set[str]) -> None:
        top = os.path.join(self._root, name)

        def place(source: str, target: str) -> None:
            unwanted.discard(target)
            self._copies.bring(os.path.realpath(source) if target == top else source, target)

        provide(name, lender, self._root, place, self._copies.places)


def present(user: str, root: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those paths that exist in the working tree `user` and may be in `root`, without slash at the end."""
    names = dict.fromkeys(path.rstrip("/") for path in paths)
    return tuple(n for n in names if os.path.lexists(os.path.join(user, n)) and not _leads_away(n, root))


def provide(path: str, user: str, root: str, place: Placing, again: Collection[str] = ()) -> None:
    """Place an existing path of the working tree `user` into `root`; files of the tree stay.

    What is at the paths `again` was placed before, and `place` is called for it again.
    """
    target = os.path.join(root, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    _provide(os.path.join(user, path), target, user, root, place, again)


def _leads_away(path: str, root: str) -> bool:
    """Return whether a link of the tree leads what is linked at `path` out of `root`, or into a git folder."""
    real = os.path.realpath(os.path.join(root, os.path.dirname(path)))
    parts = [*path.split("/"), *os.path.relpath(real, os.path.realpath(root)).split(os.sep)]
    return any(name == ".." or name.lower() == _GIT for name in parts)


def _provide(source: str, target: str, user: str, root: str, place: Placing, again: Collection[str]) -> None:
    packages = os.path.basename(source) == PACKAGES
    if packages and not os.path.lexists(target) and os.path.isdir(source):
        os.mkdir(target)
    if target in again or not os.path.lexists(target):
        redirected = _redirected(source, user, root)
        if redirected == source:
            place(source, target)
        else:
            os.symlink(redirected, target)
    elif os.path.isdir(source) and os.path.isdir(target) and not os.path.islink(target):
        for name in os.listdir(source):
            below = os.path.join(source, name)
            if packages and _is_group(below) and not os.path.lexists(os.path.join(target, name)):
                os.mkdir(os.path.join(target, name))
            _provide(below, os.path.join(target, name), user, root, place, again)


def _is_group(path: str) -> bool:
    """Return whether an entry of `node_modules` holds packages or their programs, which can be links themselves."""
    name = os.path.basename(path)
    return (name.startswith("@") or name == _PROGRAMS) and os.path.isdir(path) and not os.path.islink(path)


def _redirected(source: str, user: str, root: str) -> str:
    """Return what to link to: the tree's own folder, if `source` is a link to one of the user's outside of packages."""
    if os.path.islink(source):
        real = os.path.realpath(source)
        inside = os.path.relpath(real, os.path.realpath(user))
        if not inside.startswith("..") and PACKAGES not in inside.split(os.sep):
            return os.path.join(root, inside)
    return source


def python_path(user: str, root: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of `root` that replace those of `user` which editable installs name.

    Refusal `checkout.leads-back` if one of them cannot be replaced.
    """
    environments = (os.path.join(user, path.rstrip("/")) for path in paths)
    folders = (f for place in environments if os.path.isfile(os.path.join(place, VENV)) for f in _editable(place, user))
    return tuple(dict.fromkeys(os.path.join(root, os.path.relpath(f, os.path.realpath(user))) for f in folders))


def _editable(environment: str, user: str) -> Iterator[str]:
    """Return the real folders below `user` that the environment's editable installs put on Python's path."""
    inside = os.path.realpath(user) + os.sep
    for site in (place for pattern in _SITE for place in glob.glob(os.path.join(environment, pattern))):
        for path in sorted(glob.glob(os.path.join(glob.escape(site), "*.pth"))):
            for line in _lines(path):
                real = os.path.realpath(os.path.join(site, line))
                if line.startswith(("import ", "import\t")):
                    yield from _of_finder(site, line, inside, path)
                elif f"{real}/".startswith(inside) and os.path.isdir(real):
                    yield real


def _of_finder(site: str, line: str, inside: str, path: str) -> Iterator[str]:
    """Return the folders of the packages that a generated import hook maps, as setuptools writes it."""
    module = re.match(r"import (__editable__\w+)", line)
    text = "\n".join(_lines(os.path.join(site, f"{module[1]}.py"))) if module else line
    mapping = _MAPPING.search(text)
    if mapping is not None:
        with contextlib.suppress(ValueError, SyntaxError):
            for place in ast.literal_eval(mapping[1]).values():
                real = os.path.realpath(place)
                if real.startswith(inside):
                    yield os.path.dirname(real)
            return
    if inside in text:
        raise Refusal(
            "checkout.leads-back",
            f"{path} leads Python to your own folder, so a check would not judge the commit.",
            hint="Install the project without --editable in an environment of its own",
        )


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return [line.strip() for line in stream.read(1 << 20).splitlines() if line.strip()]
    except OSError:
        return []
