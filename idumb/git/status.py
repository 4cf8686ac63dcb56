"""What git says of paths in a working tree and its index, and how index entries are set.

git is not started in submodules and nested repositories, because their configuration may name programs; libgit2 reads
them and writes nothing there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import pygit2
from pygit2.enums import RepositoryOpenFlag

from idumb.domain import errors
from idumb.domain import paths as path_rules
from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, guarded_files, open_repository, tree_objects
from idumb.git.discover import Worktree
from idumb.git.open_repository import CheckedRepository
from idumb.git.tree_objects import SUBMODULE
from idumb.system import clock, private_folders

_ON_A_LINE = 200
_PAUSE, _PATIENCE = 0.1, 30.0  # seconds between two looks at a lock, and of waiting for it
_ANNOUNCED = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # the blob id of an intent-to-add entry
_CONFLICT = Entry(0, "")  # of an unmerged path


def changed(worktree: Worktree, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths with uncommitted changes that one of `paths` covers, sorted."""
    if not paths:
        return ()
    # Our globs differ from git's: match them here, on the status of all paths.
    literal = len(paths) <= _ON_A_LINE and not any(map(path_rules.has_wildcard, paths))
    arguments = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", git_program.NO_SUBMODULES]
    rows = git_program.output(worktree.root, [*arguments, *(["--", *paths] if literal else [])]).split(b"\0")
    return tuple(sorted(filter(path_rules.cover(paths), {os.fsdecode(row[3:]) for row in rows if row})))


def ignored(worktree: Worktree, paths: Iterable[str]) -> frozenset[str]:
    """Return the paths that git ignores, and in which it tracks nothing."""
    return frozenset(os.fsdecode(path[2:]) for path in _checked(worktree.root, paths) if path)


def omitted(worktree: Worktree, missing: Sequence[str]) -> frozenset[str]:
    """Return those of these missing files that the user's sparse checkout omits: for git, they are as in the index."""
    if not missing or not os.path.exists(os.path.join(worktree.git_dir, "info", "sparse-checkout")):
        return frozenset()
    rows = git_program.output(worktree.root, ["ls-files", "-t", "-z"]).split(b"\0")
    return frozenset(os.fsdecode(row[2:]) for row in rows if row.startswith(b"S ")).intersection(missing)


def deciding(root: str, paths: Iterable[str], rules: Worktree) -> dict[str, tuple[str, str]]:
    """Return each path that a rule covers, with the rule's file, relative within the working tree, and its text.

    Rules in the git folder and in settings are those of the working tree `rules`. For a checkout, that is the user's:
    an agent can change the checkout's own `.git`.
    """
    rows = _checked(root, paths, "--no-index", "--verbose", rules=rules)  # file, line, pattern and path, in turn
    found = zip(rows[::4], rows[2::4], rows[3::4], strict=False)
    return {os.fsdecode(path[2:]): (os.fsdecode(file), os.fsdecode(rule)) for file, rule, path in found}


def _checked(root: str, paths: Iterable[str], *options: str, rules: Worktree | None = None) -> list[bytes]:
    names = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    if not names:
        return []
    arguments = ["check-ignore", *options, "-z", "--stdin"]
    extra = git_program.PATTERNS  # `./` keeps a leading `:` from being magic
    if rules is not None and rules.root != root:
        extra = {**extra, "GIT_DIR": rules.git_dir, "GIT_COMMON_DIR": rules.common_dir, "GIT_WORK_TREE": root}
    result = git_program.read(root, arguments, names, extra)
    if result.status not in {0, 1}:
        raise git_program.failure(arguments, result)
    return result.out.split(b"\0")


def repositories(worktree: Worktree, places: Iterable[str]) -> tuple[str, ...]:
    """Return every submodule of the index, and each of the places and their parent folders that is a repository."""
    own = os.path.realpath(worktree.root)
    above = path_rules.folders_above(f"{path}/" for path in places)
    at = {folder: os.path.join(worktree.root, folder) for folder in above}
    # A link may lead back to the top.
    found = [name for name, at in at.items() if os.path.lexists(f"{at}/.git") and os.path.realpath(at) != own]
    if not found and not os.path.lexists(os.path.join(worktree.root, ".gitmodules")):
        return ()
    listed = b"\0" + git_program.read(worktree.root, ["ls-files", "-s", "-z"]).out  # other checks report a failure
    links = map(os.fsdecode, submodules(listed))
    # A folder with tracked files is no other repository.
    others = (name for name in found if b"\t%b/" % os.fsencode(name) not in listed)
    return tuple(sorted({*links, *others}))


def submodules(listed: bytes) -> dict[bytes, bytes]:
    """Return the submodules, path to commit, in the output of `git ls-files -s -z` after a first NUL."""
    return {path: oid for oid, path in re.findall(rb"\x00160000 ([0-9a-f]+) 0\t([^\0]*)", listed)}


def is_dirty(root: str, repository: str) -> bool:
    """Return whether anything in the repository differs from its HEAD; True if libgit2 cannot open it."""
    place = os.path.join(root, repository)
    try:
        return bool(pygit2.Repository(place, RepositoryOpenFlag.NO_SEARCH).status())
    except (pygit2.GitError, KeyError, ValueError, OSError):
        return os.path.isdir(place) and any(os.scandir(place))


def path_of(worktree: Worktree) -> str:
    return os.path.join(worktree.git_dir, "index")


def require_usable(worktree: Worktree) -> None:
    """Refuse a state in which nothing may run: of the repository, then of the index, such as unmerged entries."""
    open_repository.require_usable(worktree)
    if operation := open_repository.in_progress(worktree):
        raise operation
    lock = f"{path_of(worktree)}.lock"
    if os.path.lexists(lock):
        words = f"{lock} exists: another git command is running, or one was killed (git status)"
        raise errors.Refusal("git.index-locked", words, hint="git status; idumb doctor says who holds the lock")
    repository = open_repository.repository(worktree)
    tree = head_tree(repository)
    tree_objects.rows(repository, tree)  # git does not name a missing tree as clearly
    for path, entry in _differing(worktree, tree).items():
        if entry == _CONFLICT:
            words = f"{path} is unmerged in the index; resolve it first (git status lists all)"
            raise errors.Refusal("git.unmerged", words, hint="git status lists them; git add marks one as resolved")


def staged(repository: CheckedRepository) -> dict[str, Entry | None]:
    """Return the index entries that differ from HEAD; None for a path that only HEAD has. Conflicts are left out.

    An announced path (`git add --intent-to-add`) has no bytes to lose.
    """
    found = _differing(repository.worktree, head_tree(repository))
    return {path: entry for path, entry in found.items() if entry != _CONFLICT}


def head_tree(repository: pygit2.Repository) -> str:
    """Return the tree of HEAD's commit; the empty tree before the first commit."""
    return tree_objects.tree_of(repository, open_repository.head_of(repository))


def _differing(worktree: Worktree, tree: str) -> Mapping[str, Entry | None]:
    """Return the index entries that differ from a tree, as `staged` does, and conflicts."""
    return _asked(worktree.root, tree, guarded_files.stat_key(path_of(worktree)))


@functools.lru_cache(maxsize=4)
def _asked(root: str, tree: str, _index: tuple[int, ...] | None) -> Mapping[str, Entry | None]:
    """Ask git once for each state of the index."""
    arguments = ["diff-index", "--cached", "--raw", "--no-renames", "--abbrev=40", "-z", tree]
    rows = git_program.output(root, arguments).split(b"\0")
    found: dict[str, Entry | None] = {}
    for about, path in zip(rows[::2], rows[1::2], strict=False):
        _, mode, _, oid, kind = about.decode("ascii").split(" ")
        if kind == "U":
            found[os.fsdecode(path)] = _CONFLICT
        elif not (kind == "A" and oid == _ANNOUNCED):
            found[os.fsdecode(path)] = None if kind == "D" else Entry(int(mode, 8), oid)
    return found


def staged_tree(repository: CheckedRepository) -> str:
    """Return the tree that a commit of the index would have; "" if that is HEAD's, or the index or HEAD cannot be read.

    The index refers to the blobs, but once they are unstaged, nothing keeps them.
    """
    try:
        rows = staged(repository).items()
        is_kept = {path: row for path, row in rows if row is None or row.mode == SUBMODULE or row.oid in repository}
        return tree_objects.put(repository, head_tree(repository), is_kept) if is_kept else ""
    except errors.Refusal:
        return ""


def follow(repository: CheckedRepository, before: str, after: str, own: Collection[str] = ()) -> tuple[str, ...]:
    """Give the index the entries of the tree `after` where it still has those of `before`, and for the paths `own`.

    What the user staged below such a path, or in place of a folder above it, stays: git would drop it.
    Return the paths. Refusal `git.failed` if git could not.
    """
    changes = tree_objects.changes(repository, before, after)
    other = _differing(repository.worktree, before) if changes else {}
    staged = {path for path, entry in other.items() if entry is not None}
    below = path_rules.folders_above(staged)
    free = [c for c in changes if c.path not in below and staged.isdisjoint(path_rules.folders_above([c.path]))]
    stale = [c.path for c in free if c.path not in other or (c.path in own and other[c.path] != c.new)]
    set_to(repository, after, stale)
    return tuple(stale)


def set_to(repository: CheckedRepository, tree: str, paths: Sequence[str]) -> None:
    """Give the index the entries of a tree for these paths. A lock that another git holds is waited for.

    Refusal `git.failed` if git could not.
    """
    if not paths:
        return
    rows = []
    for path in sorted(paths):
        entry = tree_objects.entry(repository, tree, path)
        about = "0 " + "0" * 40 if entry is None else f"{entry.mode:o} {entry.oid}"
        rows.append(about.encode("ascii") + b"\t" + os.fsencode(path) + b"\0")
    worktree, arguments = repository.worktree, ["update-index", "-z", "--index-info"]
    time = clock.SystemClock()
    end = time.monotonic() + _PATIENCE
    while True:
        worktree.guard()
        result = git_program.write(worktree.root, arguments, b"".join(rows))
        if result.status == 0:
            return
        if b"index.lock" not in result.err or time.monotonic() >= end:
            raise git_program.failure(arguments, result)
        time.pause(_PAUSE)


@contextlib.contextmanager
def private(worktree: Worktree) -> Iterator[dict[str, str]]:
    """Give git an index of its own, which does not exist yet, by a variable."""
    private_folders.make(worktree.state_dir, root=worktree.common_dir)
    with tempfile.TemporaryDirectory(dir=worktree.state_dir, prefix="index-") as folder:
        yield {"GIT_INDEX_FILE": os.path.join(folder, "index")}


def cleaned(worktree: Worktree, root: str, tree: str, paths: Sequence[str]) -> dict[str, Entry]:
    """Return what git would store for these files below `root`, after filters and line endings; no missing file.

    git decides in a private index, so the user's index stays as it is.
    """
    with private(worktree) as index:
        variables = {"GIT_DIR": worktree.git_dir, "GIT_COMMON_DIR": worktree.common_dir, "GIT_WORK_TREE": root, **index}
        # With its old entry in the index, git keeps the line endings of a file that was committed with CRLF.
        git_program.change(root, ["read-tree", tree], extra=variables)
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
        git_program.change(root, arguments, names, variables)
        listed = ["ls-files", "--stage", "-z", "--", *(paths if len(paths) <= _ON_A_LINE else ())]
        rows = (row.partition(b"\t") for row in git_program.output(root, listed, extra=variables).split(b"\0") if row)
        found = {os.fsdecode(name): about.decode("ascii").split(" ") for about, _, name in rows}
    return {path: Entry(int(found[path][0], 8), found[path][1]) for path in paths if path in found}
