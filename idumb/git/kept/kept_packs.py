"""Loose objects of idumb moved into packs, so that a long run leaves few files.

Only objects that idumb wrote, and that its refs reach: git would write others out again as soon as it collects garbage.
The tree that a ref names is never packed, because the next name replaces it. A loose object is deleted when the pack
and its index are on disk and have been read back. A failure costs nothing: the objects stay loose.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pygit2

from idumb import lazy_pattern
from idumb.domain import errors
from idumb.git import git_program, open_repository, refs
from idumb.git.discover import Repository
from idumb.git.kept import kept_table, replaced_trees
from idumb.git.objects import durable_files, object_writer, tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.system.files import atomic_write, private_folders

MOST = 10
"""Packs of idumb in one repository."""
_HARMLESS = (OSError, ValueError, KeyError, MemoryError, RecursionError, pygit2.GitError, errors.Refusal)
"""Failures that cost nothing."""
_REPLACED = " replaced"
_NOTES = 1 << 20
"""So many bytes of notes are read: ten times what many short commands leave. What is in the rest stays loose."""
_SUFFIXES = (".pack", ".rev", ".idx")
"""The files of a pack. Git sees a pack when its index is there, so this is the last one to come and the first to go."""
_LARGE = 1 << 20  # to copy a larger file from pack to pack would cost more than it saves
# `packSizeLimit` would split the pack. The others bound time and memory: the pack is made beside the user's work.
_OPTIONS = (
    "-c", "pack.packSizeLimit=0",
    "-c", "pack.threads=1",
    "-c", "pack.windowMemory=64m",
    "-c", "core.bigFileThreshold=256k",
)  # fmt: skip
_NAME = lazy_pattern.compile(r"pack-[0-9a-f]{40}")
_OF_GIT = (".bitmap", ".keep", ".mtimes", ".promisor")
"""Files of a pack that git has taken over: such a pack stays as it is."""


class _Pack(NamedTuple):
    """A pack that idumb wrote. If it is not `clean`, idumb was killed, and loose copies of its objects may remain."""

    objects: int
    clean: bool


def pack(place: Repository, repository: pygit2.Repository, writer: Writer) -> None:
    """Pack what the writer has put among git's loose objects, as far as idumb's refs reach it now."""
    _note_replaced(repository, writer)
    names, writer.loose, writer.packed = writer.loose | writer.unreached, set(), True
    writer.unreached = names
    with contextlib.suppress(*_HARMLESS):
        names -= replaced_trees.delete(place, repository, writer.replaced, _noted(place))
    with contextlib.suppress(*_HARMLESS):
        names -= _pack(place, repository, names)


def settle(place: Repository, repository: pygit2.Repository, writer: Writer) -> None:
    """At the end of a command, note what is loose for the next one. Pack it if that is much, or the rest of a run."""
    _note_replaced(repository, writer)
    names, replaced = writer.loose | writer.unreached, writer.replaced
    writer.loose, writer.unreached, writer.replaced = set(), set(), {}
    noted = _state(place, "loose-objects")
    with contextlib.suppress(*_HARMLESS):
        _append(noted, [*sorted(names - replaced.keys()), *(name + _REPLACED for name in replaced)])
        if writer.packed or os.stat(noted).st_size >= object_writer.MANY * (40 + 1):
            lines = _read(noted)
            os.unlink(noted)
            marked = (line.removesuffix(_REPLACED) for line in lines if line.endswith(_REPLACED))
            # Whatever happened to the file, no object of the user is deleted.
            named = filter(replaced_trees.is_name, marked)
            replaced = {name: None for name in named if kept_table.is_ours(repository, name)}
            with contextlib.suppress(*_HARMLESS):
                replaced_trees.delete(place, repository, replaced, _noted(place))
            _append(noted, [name + _REPLACED for name in replaced])
            _pack(place, repository, set(filter(replaced_trees.is_name, lines)))


def _note_replaced(repository: pygit2.Repository, writer: Writer) -> None:
    """Note the trees that the moves of our ref replaced. That is left for now, because a move is part of each task."""
    moved, writer.moved = writer.moved, []
    for before, after in moved:
        with contextlib.suppress(errors.Refusal):  # a tree that cannot be read may stay
            for oid in kept_table.replaced(repository, before, kept_table.tree(repository, bytes.fromhex(after))):
                writer.replaced.pop(oid, None)
                writer.replaced[oid] = None


def _read(path: str) -> list[str]:
    """Return the lines of a file of notes."""
    with open(path, "rb", opener=_private) as stream:
        return stream.read(_NOTES).decode("ascii", "replace").splitlines()


def _append(path: str, lines: Sequence[str]) -> None:
    if lines:
        with open(path, "ab", opener=_private) as stream:
            stream.write("".join(f"{line}\n" for line in lines).encode("ascii"))


def _private(path: str, flags: int) -> int:
    """Open a file of idumb's. A link is not followed, and a pipe does not block."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def _state(place: Repository, name: str) -> str:
    return os.path.join(place.common_dir, "idumb", name)


def _pack(place: Repository, repository: pygit2.Repository, candidates: Collection[str]) -> set[str]:
    """Return the candidates that need not be looked at again: they are packed, or too large."""
    objects = os.path.join(place.common_dir, "objects")
    with _alone(_state(place, "packs.lock")) as is_alone:
        if not is_alone:
            return set()
        packs = _known(place, os.path.join(objects, "pack"))
        named = dict(_reached(place, repository, candidates))
        new = {name: path for name, path in named.items() if _is_small(replaced_trees.loose(objects, name))}
        if not new:
            return set(named)
        merged = _to_merge(os.path.join(objects, "pack"), packs, len(new))
        if len(packs) - len(merged) >= MOST:
            return set()
        folder = object_writer.private_folder(place)
        private_folders.make_below(place.common_dir, os.path.join(folder, "pack"))
        try:
            _replace(place, folder, new, packs, merged)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return set(named)


def _replace(
    place: Repository, folder: str, new: Mapping[str, str], packs: dict[str, _Pack], merged: Sequence[str]
) -> None:
    """Write a pack of new objects and those of the `merged` packs; then remove the loose objects and the old packs."""
    objects, run = os.path.join(place.common_dir, "objects"), _Git(place, folder)
    target = os.path.join(objects, "pack")
    wanted, unclean = dict(new), set(new)
    for name in merged:
        of_pack = run.names(os.path.join(target, f"{name}.idx"))
        wanted = dict.fromkeys(of_pack, "") | wanted
        unclean |= set() if packs[name].clean else of_pack
    made = run.pack(wanted)
    files = [file for suffix in _SUFFIXES if os.path.exists(file := os.path.join(folder, "pack", made + suffix))]
    durable_files.force(files)
    if not run.is_whole(made, wanted):
        return
    packs[made] = _Pack(len(wanted), clean=False)
    _note(place, packs)
    _move(files, target)
    durable_files.force([target])
    # `git repack` may have moved all of it into a pack of its own meanwhile, and removed this one.
    if not all(os.path.exists(os.path.join(target, made + suffix)) for suffix in (".pack", ".idx")):
        return
    for name in unclean:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(replaced_trees.loose(objects, name))
    for name in merged:
        if name != made:
            _remove(target, name)
            del packs[name]
    packs[made] = _Pack(len(wanted), clean=True)
    _note(place, packs)


def _move(files: Sequence[str], target: str) -> None:
    """Move a new pack to git's packs. If that is impossible, nothing new of it stays there.

    A pack is named after its bytes. So one that exists is replaced by the same bytes, which have been read back.
    """
    os.makedirs(target, exist_ok=True)
    targets = [os.path.join(target, os.path.basename(file)) for file in files]
    new = [path for path in targets if not os.path.exists(path)]
    try:
        for file, path in zip(files, targets, strict=True):
            os.rename(file, path)
    except OSError:
        for path in new:
            with contextlib.suppress(OSError):
                os.unlink(path)
        raise


class _Git(NamedTuple):
    """The git program, reading the repository's objects, and writing only into a folder of idumb's."""

    place: Repository
    folder: str

    def pack(self, names: Mapping[str, str]) -> str:
        """Return the name of a pack of these objects. Their paths let git find similar ones."""
        os.makedirs(os.path.join(self.folder, "info"), exist_ok=True)
        with open(os.path.join(self.folder, "info", "alternates"), "wb") as stream:
            stream.write(open_repository.alternates([os.path.join(self.place.common_dir, "objects")]))
        rows = b"".join(os.fsencode(f"{name} {path}".replace("\n", " ")) + b"\n" for name, path in names.items())
        base = os.path.join(self.folder, "pack", "pack")
        made = self._run([*_OPTIONS, "pack-objects", "--quiet", "--delta-base-offset", base], rows)
        (hashed,) = made.decode("ascii").split()
        return f"pack-{hashed}"

    def is_whole(self, pack: str, names: Collection[str]) -> bool:
        """Read a pack back; return whether it holds these objects and no byte of it is damaged."""
        index = os.path.join(self.folder, "pack", f"{pack}.idx")
        self._run(["verify-pack", index])
        return self.names(index) >= set(names)

    def names(self, index: str) -> set[str]:
        with open(index, "rb") as stream:
            listed = self._run(["show-index"], stream.read())
        return {row.split()[1].decode("ascii") for row in listed.splitlines()}

    def _run(self, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
        place = {"GIT_DIR": self.place.common_dir, "GIT_OBJECT_DIRECTORY": self.folder}
        result = git_program.in_temporary_folder(self.place.root, self.folder, arguments, stdin, place)
        if result.status != 0:
            raise git_program.failure(arguments, result)
        return result.out


def _reached(
    place: Repository, repository: pygit2.Repository, candidates: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield those of the objects that the names below idumb's refs lead to, with a path in the tree that has them.

    What a tree leads to that is no candidate existed before it, so it is not read. But a folder of the user can be a
    copy of a tree of names. This is packed too, with what names it, so that it stays when a newer one replaces it.
    """
    is_copy = functools.cache(functools.partial(_is_loose_and_ours, place, repository))
    remaining, done = {bytes.fromhex(name) for name in candidates}, set[bytes]()
    pending = [(name, item) for root in _roots(place, repository) for name, item in root]
    while pending:
        path, item = pending.pop()
        if item.oid not in remaining or item.mode == tree_objects.SUBMODULE:
            continue
        remaining.remove(item.oid)
        done.add(item.oid)
        yield item.oid.hex(), path
        if item.mode == tree_objects.FOLDER:
            rows = tree_objects.rows(repository, item.oid).items()
            remaining.update(below.oid for _, below in rows if below.oid not in done and is_copy(below))
            pending += [(f"{path}/{row}", below) for row, below in rows if below.oid in remaining]


def _is_loose_and_ours(place: Repository, repository: pygit2.Repository, item: tree_objects.Item) -> bool:
    path = replaced_trees.loose(os.path.join(place.common_dir, "objects"), item.oid.hex())
    return item.mode == tree_objects.FOLDER and os.path.exists(path) and kept_table.is_ours(repository, item.oid.hex())


def _roots(place: Repository, repository: pygit2.Repository) -> Iterator[list[tuple[str, tree_objects.Item]]]:
    """Yield the rows of the trees that a new name replaces: those that refs name, and the trees above closed groups."""
    for root in refs.own(place.common_dir, refs.ROOTS).values():
        rows = dict(kept_table.tree(repository, bytes.fromhex(root)))
        closed = rows.pop(kept_table.CLOSED, None)
        yield list(rows.items())
        for part in kept_table.tree(repository, closed.oid).values() if closed is not None else ():
            yield list(kept_table.tree(repository, part.oid).items())


def _is_small(path: str) -> bool:
    try:
        return os.stat(path).st_size <= _LARGE
    except OSError:
        return False


def _to_merge(folder: str, packs: Mapping[str, _Pack], new: int) -> list[str]:
    """Return the packs that a new one replaces: those of a killed command, and small ones if there are too many.

    Each remaining pack has twice as many objects as all smaller ones, so an object is seldom copied.
    """
    files = frozenset(os.listdir(folder))
    if any(file.startswith("multi-pack-index") for file in files):
        return []  # git's index of several packs may name ours
    free = [name for name in packs if not any(name + suffix in files for suffix in _OF_GIT)]
    merged = [name for name in free if not packs[name].clean]
    rest = sorted((name for name in free if packs[name].clean), key=lambda name: packs[name].objects)
    total, most = new + sum(packs[name].objects for name in merged), MOST - 1 - (len(packs) - len(free))
    if len(rest) > most:
        while rest and (len(rest) > most or packs[rest[0]].objects < 2 * total):
            total += packs[rest[0]].objects
            merged.append(rest.pop(0))
    return merged


def _remove(folder: str, name: str) -> None:
    """Remove a pack of ours, all of whose objects are in another one."""
    for suffix in reversed(_SUFFIXES):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name + suffix))


def _known(place: Repository, folder: str) -> dict[str, _Pack]:
    """Return the packs of idumb that exist, and remove what a killed command left of others."""
    packs = _noted(place)
    for name in [name for name in packs if not os.path.exists(os.path.join(folder, f"{name}.idx"))]:
        _remove(folder, name)  # a killed command moved or removed a part of it, or git has repacked it
        del packs[name]
    return packs


def _noted(place: Repository) -> dict[str, _Pack]:
    try:
        with open(_state(place, "packs.json"), "rb") as stream:
            rows = json.load(stream).items()
        return {name: _Pack(int(objects), bool(clean)) for name, (objects, clean) in rows if _NAME.fullmatch(name)}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # then these packs are git's: it repacks them some day


def _note(place: Repository, packs: Mapping[str, _Pack]) -> None:
    atomic_write.write(_state(place, "packs.json"), json.dumps(packs).encode("ascii"), mode=0o600)


@contextlib.contextmanager
def _alone(path: str) -> Iterator[bool]:
    """Yield whether no other process packs. The lock ends with the process."""
    with open(path, "ab", opener=_private) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
