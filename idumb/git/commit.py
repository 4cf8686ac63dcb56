"""Make one commit of exactly the given paths with the git program: the user's filters, hooks and signing apply.

`git commit --only` builds the commit from HEAD and the paths under the index lock, and leaves every other index entry
unchanged. Tested with files that become folders and the reverse, odd names, a dirty index and an empty repository.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pygit2

from idumb.app.ports.repository import CommitAttempt
from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, index_file, open_repository
from idumb.git.discover import Repository
from idumb.git.objects import durable_files, tree_objects
from idumb.git.refs import refs
from idumb.system.files import file_systems

_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


class _Index(NamedTuple):
    """The index file's bytes before and after we added to it; None if there was no file."""

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
    """Commit the paths. If git refuses, return git's words and leave the index as it was."""
    wanted = _committable(place.root, paths)
    if isinstance(wanted, str):
        return CommitAttempt(None, wanted)
    indexed = entries(place.root, repository, wanted)
    chosen = [path for path in wanted if path in indexed or _exists(place.root, path) or _in_head(repository, path)]
    if not chosen and not allow_empty:
        return CommitAttempt(None, "nothing to commit: git knows none of the paths, and none of them exists")
    new = [path for path in chosen if path not in indexed and _exists(place.root, path)]
    place.guard()
    index = _announce(place, repository, new)
    if isinstance(index, str):
        return CommitAttempt(None, index)
    arguments = _arguments(chosen, message, allow_empty=allow_empty)
    # Outside the `try`: after a takeover, the index belongs to the new owner, who may have announced the same files.
    place.guard()
    before = None if repository.head_is_unborn else str(repository.head.target)
    try:
        result = git_program.write(place.root, arguments, _joined(chosen), hooks=hooks)
    except BaseException:
        _take_back(place, index)
        raise
    if result.status != 0 and not (_was_made(repository, message, before) and _settle(place, repository, chosen)):
        _take_back(place, index)
        words = result.words or _wordless(result.status, hooks=hooks)
        # git does not always report a full disk.
        return CommitAttempt(None, words + file_systems.nearly_full(place.common_dir))
    if hooks:
        _follow_hooks(place, repository, chosen)
    sync(place, branch)
    return CommitAttempt(str(repository.head.target), result.words)


def _wordless(status: int, *, hooks: bool) -> str:
    """Return git's reason for the refusal. A silent refusal comes from a hook."""
    who = "; a hook such as pre-commit refuses it without a word" if hooks else ""
    return f"git commit ended with status {status}{who}"


def _arguments(paths: Sequence[str], message: str, *, allow_empty: bool) -> list[str]:
    empty = ["--allow-empty"] if allow_empty else []
    given = _FROM_STDIN if paths else ()
    return ["commit", "--quiet", "--only", "--cleanup=verbatim", *empty, f"--message={message}", *given]


def _was_made(repository: pygit2.Repository, message: str, before: str | None) -> bool:
    """Return whether git failed after it had made the commit: it moves the branch first and writes the index last.

    The message alone does not tell: the commit `before` may have the same one.
    """
    if repository.head_is_unborn:
        return False
    one = repository.head.peel(pygit2.Commit)
    parents = [str(oid) for oid in one.parent_ids]
    return parents == ([] if before is None else [before]) and bool(one.message.strip() == message.strip())


def settle(place: Repository, repository: pygit2.Repository, made: str, paths: Sequence[str]) -> bool:
    """If git was killed between branch and index, give the index the entries of the commit `made` for these paths.

    Only while that commit is HEAD, and only for entries that are as they were before: others are the user's.
    """
    if repository.head_is_unborn or str(repository.head.target) != made:
        return True
    one = repository[made].peel(pygit2.Commit)
    before = str(one.parents[0].tree_id) if one.parents else tree_objects.EMPTY_TREE
    return follow(place, repository, before, str(one.tree_id), paths)


def follow(place: Repository, repository: pygit2.Repository, before: str, after: str, paths: Sequence[str]) -> bool:
    """Give the index the entries of HEAD (tree `after`) for these paths, where it still has those of `before`.

    Return whether git could.
    """
    present = entries(place.root, repository, paths)
    stale = []
    for path in paths:
        old, new = (tree_objects.entry(repository, tree, path) for tree in (before, after))
        have = present.get(path)
        announced = old is None and have is not None and have.oid == index_file.EMPTY
        if have != new and (have == old or announced):
            stale.append(path)
    return _settle(place, repository, stale) if stale else True


def _follow_hooks(place: Repository, repository: pygit2.Repository, paths: Sequence[str]) -> None:
    """Refresh the index after a hook that reformats.

    It stages for the commit alone, and git leaves the old index entries.

    Only for files that equal the commit, so that nothing is lost that the user stages meanwhile.
    """
    stale = [*staged(place, repository, paths)]
    if stale:
        other = git_program.output(place.root, ["diff", "--no-ext-diff", "--name-only", "-z", "HEAD", "--", *stale])
        _settle(place, repository, [path for path in stale if os.fsencode(path) not in other.split(b"\0")])


def _settle(place: Repository, repository: pygit2.Repository, paths: Sequence[str]) -> bool:
    """Give the index HEAD's entries for these paths, which git did not reach. Return whether that worked."""
    tree = tree_objects.tree_of(repository, str(repository.head.target))
    rows = index_file.info({path: tree_objects.entry(repository, tree, path) for path in paths})
    return git_program.write(place.root, ["update-index", "-z", "--index-info"], rows).status == 0


def _committable(root: str, paths: Sequence[str]) -> list[str] | str:
    """Omit paths that are folders now: a folder's name would include everything in it."""
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


def _announce(place: Repository, repository: pygit2.Repository, new: Sequence[str]) -> _Index | str:
    """Add new files to the index without their bytes. Return git's words if that fails."""
    before = index_file.read(place)
    if not new:
        return _Index(before, before)
    # A task may create files outside a sparse checkout; older versions of git do not know the option.
    sparse = ["--sparse"] if _is_sparse(repository) else []
    result = git_program.write(place.root, ["add", "--intent-to-add", "--force", *sparse, *_FROM_STDIN], _joined(new))
    return _Index(before, index_file.read(place)) if result.status == 0 else result.words


def _is_sparse(repository: pygit2.Repository) -> bool:
    try:
        return repository.config.get_bool("core.sparseCheckout")
    except (KeyError, ValueError):
        return False


def staged(place: Repository, repository: pygit2.Repository, paths: Sequence[str]) -> dict[str, Entry | None]:
    """Return the index entries of these paths that differ from HEAD; None for a path that only HEAD has.

    An announced path (`git add --intent-to-add`) has no bytes to lose.
    """
    present = entries(place.root, repository, paths)
    tree = tree_objects.tree_of(repository, None if repository.head_is_unborn else str(repository.head.target))
    found: dict[str, Entry | None] = {}
    for path in paths:
        have = present.get(path)
        if have != tree_objects.entry(repository, tree, path) and (have is None or have.oid != index_file.EMPTY):
            found[path] = have
    return found


def entries(root: str, repository: pygit2.Repository, paths: Sequence[str]) -> dict[str, Entry]:
    """Return the index entries of these paths. libgit2 starts no process, but reads no split or sparse index."""
    try:
        index = open_repository.index(repository)
        return {path: Entry(int(index[path].mode), str(index[path].id)) for path in paths if path in index}
    except (pygit2.GitError, OSError, UnicodeError):
        listed = git_program.output(root, ["ls-files", "--stage", "-z"])
    wanted = set(paths)
    found: dict[str, Entry] = {}
    for row in filter(None, listed.split(b"\0")):
        about, _, name = row.partition(b"\t")
        path = os.fsdecode(name)
        if path in wanted:
            mode, oid, _ = about.split(b" ")
            found.setdefault(path, Entry(int(mode, 8), oid.decode("ascii")))
    return found


def _in_head(repository: pygit2.Repository, path: str) -> bool:
    if repository.head_is_unborn:
        return False
    return (
        tree_objects.entry(repository, tree_objects.tree_of(repository, str(repository.head.target)), path) is not None
    )


def _exists(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path))


def _take_back(place: Repository, index: _Index) -> None:
    """Restore the index, unless another program wrote it since."""
    if index.before != index.after:
        index_file.swap(place, index.after, index.before)


def sync(place: Repository, branch: str | None) -> None:
    """Force the folders of a branch to disk: git forces only the file, and a power cut would lose the branch.

    For a commit of given paths, git does not even force the index, whose rename must not precede its bytes.
    """
    index = os.path.join(place.git_dir, "index")
    durable_files.force([index] if os.path.exists(index) else [])
    durable_files.force([place.git_dir])
    if branch is not None:
        refs.sync(place, branch)
