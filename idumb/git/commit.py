"""One commit of exactly the given paths, made by the git program: the user's filters, hooks and signing apply.

`git commit --only` builds the commit from HEAD and the paths under the index lock, and leaves every other
index entry as it was. Tried with swaps of file and folder, odd names, a dirty index and no commits yet.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pygit2

from idumb.app.ports import CommitAttempt
from idumb.git import comparing, durable, opened, program, refs
from idumb.git.discover import Repository

_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


class _Index(NamedTuple):
    """The index file's bytes before we added to it, and after; None where there was no file."""

    before: bytes | None
    after: bytes | None


def make(
    place: Repository,
    repository: pygit2.Repository,
    paths: Sequence[str],
    message: str,
    *,
    hooks: bool,
    allow_empty: bool,
    branch: str | None,
) -> CommitAttempt:
    """The commit, or git's words; then the index is as it was."""
    wanted = _committable(place.root, paths)
    if isinstance(wanted, str):
        return CommitAttempt(None, wanted)
    indexed = _in_index(place.root, repository, wanted)
    chosen = [path for path in wanted if path in indexed or _exists(place.root, path) or _in_head(repository, path)]
    if not chosen and not allow_empty:
        return CommitAttempt(None, "nothing to commit: git knows none of the paths, and none of them exists")
    new = [path for path in chosen if path not in indexed and _exists(place.root, path)]
    index = _announce(place, new)
    if isinstance(index, str):
        return CommitAttempt(None, index)
    arguments = _arguments(chosen, message, allow_empty=allow_empty)
    try:
        result = program.write(place.root, arguments, _joined(chosen), hooks=hooks)
    except BaseException:
        _take_back(place, index)
        raise
    if result.status != 0:
        _take_back(place, index)
        return CommitAttempt(None, result.words or f"git commit ended with status {result.status}")
    _sync(place, branch)
    return CommitAttempt(str(repository.head.target), result.words)


def _arguments(paths: Sequence[str], message: str, *, allow_empty: bool) -> list[str]:
    empty = ["--allow-empty"] if allow_empty else []
    given = _FROM_STDIN if paths else ()
    return ["commit", "--quiet", "--only", "--cleanup=verbatim", *empty, f"--message={message}", *given]


def _committable(root: str, paths: Sequence[str]) -> list[str] | str:
    """Without paths that are folders now: a folder's name would mean everything in it."""
    wanted = sorted(set(paths))
    folders = {path for path in wanted if _is_folder(os.path.join(root, path))}
    present = [path for path in wanted if path not in folders and _exists(root, path)]
    for folder in folders:
        if not any(path.startswith(folder + "/") for path in present):
            return f"{folder} is a folder now, and none of its files is to be committed"
    return [path for path in wanted if path not in folders]


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _joined(paths: Iterable[str]) -> bytes:
    # Not by GIT_LITERAL_PATHSPECS, which the user's hooks would inherit.
    return b"".join(b":(top,literal)" + os.fsencode(path) + b"\0" for path in paths)


def _announce(place: Repository, new: Sequence[str]) -> _Index | str:
    """Tell the index of new files, without their bytes; git's words when that fails."""
    before = _read_index(place)
    if not new:
        return _Index(before, before)
    result = program.write(place.root, ["add", "--intent-to-add", "--force", *_FROM_STDIN], _joined(new))
    return _Index(before, _read_index(place)) if result.status == 0 else result.words


def _in_index(root: str, repository: pygit2.Repository, paths: Sequence[str]) -> frozenset[str]:
    """Those of the paths that the index knows. Libgit2 starts no process, but reads no split index."""
    try:
        index = opened.index(repository)
        return frozenset(path for path in paths if path in index)
    except (pygit2.GitError, OSError, UnicodeError):
        listed = program.output(root, ["ls-files", "-z"])
        return frozenset(os.fsdecode(path) for path in listed.split(b"\0") if path)


def _in_head(repository: pygit2.Repository, path: str) -> bool:
    if repository.head_is_unborn:
        return False
    return comparing.entry(repository, str(repository.head.peel(pygit2.Tree).id), path) is not None


def _exists(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path))


def _read_index(place: Repository) -> bytes | None:
    try:
        with open(os.path.join(place.git_dir, "index"), "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None


def _take_back(place: Repository, index: _Index) -> None:
    """Put the index back under git's own lock, unless somebody else wrote it since."""
    if index.before == index.after:
        return
    path = os.path.join(place.git_dir, "index")
    try:
        descriptor = os.open(path + ".lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "wb") as stream:
        if _read_index(place) != index.after:
            os.unlink(path + ".lock")
            return
        stream.write(index.before or b"")
        stream.flush()
        os.fsync(descriptor)
    if index.before is None:
        os.unlink(path)
        os.unlink(path + ".lock")
    else:
        os.rename(path + ".lock", path)


def _sync(place: Repository, branch: str | None) -> None:
    """Git forces files, not the folders that name them; a branch without its folder is lost in a power cut."""
    durable.force([place.git_dir])
    if branch is not None:
        refs.sync(place, branch)
