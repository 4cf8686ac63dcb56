"""What a proving tree takes from the user's repository: a git folder that reads its objects, and the bytes of files."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pygit2

from idumb import lazy_pattern
from idumb.domain import errors, paths
from idumb.git import git_program, guarded_files, open_repository, refs
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.objects.tree_objects import Item
from idumb.git.proving_files import GIT, Change, Content, is_attributes
from idumb.git.submodules import Submodules
from idumb.system.files import private_folders
from idumb.system.files.stamps import Stamp, facts

if TYPE_CHECKING:
    from idumb.git.converted_files import ConvertedFiles

_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
_OID = lazy_pattern.compile("[0-9a-f]{40,64}")
_AT_ONCE = 500
"""Files whose converted bytes are in memory together."""
_NO_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
_EXCLUDE = "info/exclude"


class ProvingGitFolder:
    """The git folder of a proving tree. It shares no ref, hook or setting with `user`, the user's repository."""

    def __init__(self, user: Repository) -> None:
        self._user = user
        self._alternates = open_repository.alternates(open_repository.lenders(user))
        self._opened: pygit2.Repository | None = None
        self.root = ""
        self._files: dict[str, tuple[Stamp, bytes]] = {}
        self._texts: dict[str, str] = {}
        self._hidden: tuple[str, ...] = ()

    @property
    def repository(self) -> pygit2.Repository:
        """Return the repository of the proving tree itself, whose attributes apply. AssertionError before `write`."""
        if self._opened is None:
            raise AssertionError("no git folder was written yet")
        return self._opened

    def write(
        self, root: str, tree: str, head: str | None, configure: Callable[[str], None], *, is_intact: bool = False
    ) -> None:
        """Write HEAD, an index of `tree`, and the tags, into the git folder of the working tree `root`.

        Unless it `is_intact`, make the folder again; `configure` adds to it what decides about line endings.
        """
        folder = os.path.join(root, GIT)
        if not is_intact or self._opened is None:
            self._texts = {}
            self._make(folder)
            configure(folder)
            self.root, self._opened = root, pygit2.Repository(root)
        texts = {
            "HEAD": f"{head}\n" if head else "ref: refs/heads/main\n",
            "packed-refs": "".join(self._packed_tags()),
            **({_EXCLUDE: self._excludes()} if self._hidden else {}),
        }
        for name, text in texts.items():
            if self._texts.get(name) != text:
                with open(os.path.join(folder, name), "w", encoding="utf-8", errors="surrogateescape") as stream:
                    stream.write(text)
                self._texts[name] = text
        shallow = os.path.join(self._user.common_dir, "shallow")
        if os.path.isfile(shallow):
            shutil.copyfile(shallow, os.path.join(folder, "shallow"))
        _write_index(self._opened, tree)
        stamps = [(path, Stamp(*facts(os.lstat(path)))) for path in _below(folder)]
        self._files = {path: (before, _state(path)) for path, before in stamps}

    def hide(self, paths: Iterable[str]) -> None:
        """Let git ignore untracked paths, which may be links: a rule such as `node_modules/` matches only folders."""
        self._hidden = tuple(paths)
        text = self._texts[_EXCLUDE] = self._excludes()
        place = os.path.join(self.root, GIT, _EXCLUDE)
        with open(place, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
        for path in (os.path.dirname(place), place):
            self._files[path] = Stamp(*facts(os.lstat(path))), _state(path)

    def _excludes(self) -> str:
        escaped = (re.sub(r"([\\*?[ ])", r"\\\1", path) for path in self._hidden if "\n" not in path)
        return "".join(f"/{path}\n" for path in escaped)

    def _make(self, folder: str) -> None:
        if os.path.lexists(folder):
            private_folders.remove_tree(folder)
        for below in ("objects/info", "refs/heads", "refs/tags", "info"):
            os.makedirs(os.path.join(folder, below))
        for name, text in (("HEAD", "ref: refs/heads/main\n"), ("config", _CONFIG)):
            with open(os.path.join(folder, name), "w", encoding="ascii") as stream:
                stream.write(text)
        with open(os.path.join(folder, "objects", "info", "alternates"), "wb") as alternates:
            alternates.write(self._alternates)

    def is_intact(self, settled: int) -> bool:
        """Return whether no check changed it. A check that only lists files with git may do so.

        A change after `settled`, in nanoseconds, may not show in a stamp.
        """
        try:
            is_same = all(facts(os.lstat(path)) == before for path, (before, _) in self._files.items())
            young = [(path, state) for path, (before, state) in self._files.items() if before.ctime >= settled]
            return is_same and all(_state(path) == state for path, state in young)
        except OSError:
            return False

    def close(self) -> None:
        self._opened = None

    def _packed_tags(self) -> Iterator[str]:
        """Yield lines for tags, from which tools compute versions."""
        yield "# pack-refs with: sorted \n"
        yield from (
            f"{oid} {name}\n"
            for name, oid in sorted(refs.listed(self._user.common_dir, "refs/tags/").items())
            if _OID.fullmatch(oid)
        )


class ProvingContents:
    """What a checkout of trees of the user's repository writes: files of submodules too, with line endings and filters.

    `git` is the git folder of the proving tree, whose attributes apply.
    """

    def __init__(self, user: Repository, objects: pygit2.Repository, git: ProvingGitFolder) -> None:
        self._user = user
        self._objects = objects
        self._git = git
        self._submodules: Submodules | None = None
        self._sparse = _skipped(user)
        self._converts = False
        self._conversion: ConvertedFiles | None = None

    @property
    def unlike(self) -> tuple[str, ...]:
        return () if self._conversion is None else self._conversion.unlike

    @property
    def missing(self) -> tuple[str, ...]:
        return () if self._submodules is None else self._submodules.missing

    def restart(self) -> None:
        """Forget the tree, and look again whether anything outside commits decides how files are checked out."""
        self._submodules = None
        if self._conversion is not None:
            self._conversion.forget()
        self._converts = guarded_files.of_repository(self._user).converts

    def note(self, changes: Iterable[Change]) -> None:
        """Take note of files that are about to be removed, or decide how others are checked out."""
        for path, item in changes:
            if item is None and self._conversion is not None:
                self._conversion.forget(path)
            elif item is not None and is_attributes(path):
                self._converts = True

    def configure(self, git_folder: str) -> None:
        """Give a git folder the same line endings and attributes, so that git finds no file changed."""
        if self._converts:
            self._opened_conversion().put_into(git_folder)

    def checked_out(self, files: Iterable[tuple[str, Item]]) -> Iterator[tuple[str, Item, Content]]:
        """Yield what a checkout writes."""
        rest = iter(files)
        while some := list(itertools.islice(rest, _AT_ONCE)):
            converted = self._converted(some) if self._converts else {}
            for path, item, data in self.stored(some):
                yield path, item, converted.get(path, data)

    def stored(self, files: Iterable[tuple[str, Item]]) -> Iterator[tuple[str, Item, bytes]]:
        """Yield the bytes that a commit holds; a submodule is an empty folder."""
        for path, item in files:
            try:
                owner = "" if self._submodules is None else self._submodules.owner(path)
                objects = self._objects if self._submodules is None or not owner else self._submodules[owner].objects
                is_folder = item.mode == tree_objects.SUBMODULE
                data = b"" if is_folder else objects.read(pygit2.Oid(item.oid))[1]
            except KeyError as problem:
                raise errors.Refusal(
                    "git.object-missing",
                    f"object {item.oid.hex()} of {path} is not in this repository (a partial clone?)",
                    hint="git fetch --refetch --no-filter brings everything",
                ) from problem
            yield path, item, data

    def _converted(self, files: Sequence[tuple[str, Item]]) -> Mapping[str, Content]:
        """Return path to what a checkout writes where that differs from what the commit holds."""
        from idumb.git.converted_files import Shown

        def stored(path: str, item: Item) -> bytes:
            return next(self.stored([(path, item)]))[2]

        shown = Shown(self._git.root, self._git.repository, self._submodules, stored)
        return self._opened_conversion().read(files, shown)

    def _opened_conversion(self) -> ConvertedFiles:
        if self._conversion is None:
            from idumb.git.converted_files import ConvertedFiles

            self._conversion = ConvertedFiles(self._user, self._objects)
        return self._conversion

    def difference(self, old: str, new: str, shown: Iterable[str]) -> list[Change]:
        """Return the changes that make `new` of `old`; files of a submodule come from its own repository.

        `shown` are the files of `old`, with those of its submodules.
        """
        rows = functools.partial(tree_objects.shared_rows, self._objects)
        changes: list[Change] = []
        for path, before, item in [*tree_objects.differences(rows, bytes.fromhex(old), bytes.fromhex(new))]:
            if path.endswith("/") or self._is_skipped(path):
                continue
            if before is not None and before.mode == tree_objects.SUBMODULE:
                if self._submodules is not None:
                    self._submodules.forget(path)
                changes += [(below, None) for below in shown if below.startswith(f"{path}/")]
            files = None
            if item is not None and item.mode == tree_objects.SUBMODULE:
                self._submodules = self._submodules or Submodules(self._user.root)
                files = self._submodules.files(path, item)
            changes += [(path, item)] if files is None else [(path, None), *files]
        return changes

    def _is_skipped(self, path: str) -> bool:
        """Return whether the user's sparse checkout omits a path, and so the user's files lack it."""
        return (
            bool(self._sparse)
            and (path in self._sparse or any(f"{folder}/" in self._sparse for folder in paths.folders_above(path)))
            and not os.path.lexists(os.path.join(self._user.root, path))
        )


def _write_index(repository: pygit2.Repository, tree: str) -> None:
    """Write an index of `tree`. Raises OSError: libgit2 itself reports a full disk in words only."""
    path = os.path.join(repository.path, "index")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{path}.lock")
    try:
        repository.index.read_tree(pygit2.Oid(hex=tree))
        repository.index.write()
    except pygit2.GitError as problem:
        number = next((n for n in _NO_WRITE if os.strerror(n) in str(problem)), errno.EIO)
        raise OSError(number, os.strerror(number), path) from problem


def _below(folder: str) -> Iterator[str]:
    for at, _, names in os.walk(folder):
        yield at
        yield from (os.path.join(at, name) for name in names)


def _state(path: str) -> bytes:
    """Return what a file contains, as a digest, or the names in a folder."""
    if os.path.isdir(path):
        return b"\0".join(map(os.fsencode, sorted(os.listdir(path))))
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).digest()


def _skipped(user: Repository) -> frozenset[str]:
    """Return the paths that the user's sparse checkout omits, before the first builder could change that."""
    if not os.path.lexists(os.path.join(user.git_dir, "info", "sparse-checkout")):
        return frozenset()
    listed = git_program.output(user.root, ["ls-files", "-t", "-z"])
    rows = (os.fsdecode(row) for row in listed.split(b"\0"))
    return frozenset(row[2:] for row in rows if row.startswith("S "))
