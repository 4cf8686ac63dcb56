"""Refs: the names of what idumb keeps, below `refs/idumb/`, and the user's branch. All are moved by compare-and-swap.

A ref to a tree keeps everything in the tree, and `git log --all` does not show it. But git reads every ref when it
lists them. So refs are packed now and then, and the names of a finished run become the rows of one tree:

    refs/idumb/worktrees/KEY/runs/RUN/T1-01/1/base    while the run lives
    refs/idumb/worktrees/KEY/done/RUN                 afterwards; its row `T1-01:1:base` is that tree (no ref has a `:`)

Commits cannot be kept by a tree, so they keep their refs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping

import pygit2
from pygit2.enums import ObjectType

from idumb.domain import errors
from idumb.domain.action import Action
from idumb.domain.proof.ledger import Entry
from idumb.git import discover, disk, git_program, open_repository, status, tree_objects
from idumb.git.discover import OWN_REFS, Worktree
from idumb.git.open_repository import CheckedRepository
from idumb.git.tree_objects import FOLDER, Rows
from idumb.system import clock

_WORKTREE = rf"(?P<worktree>{OWN_REFS}worktrees/[^/]+)"
_OF_RUN = re.compile(rf"{_WORKTREE}/runs/(?P<run>[^/]+)/(?P<name>.*)")
_OF_DONE = re.compile(rf"{_WORKTREE}/done/(?P<run>[^/]+)")
_MANY = 250
"""So many loose refs are worth packing."""
_WAITS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between two tries to move a ref that git has locked."""
_COMMITS = 2000


def current(repository: pygit2.Repository, ref: str) -> str | None:
    """Return what a ref names, or None. Refusal `git.ref-moved` if its file is damaged."""
    try:
        present = repository.references.get(ref)
    except (pygit2.GitError, ValueError) as problem:
        raise errors.Refusal(
            "git.ref-moved", f"{ref} cannot be read: {problem}", hint=Action.of("doctor", "--fix")
        ) from problem
    return None if present is None else str(present.target)


def move(repository: CheckedRepository, ref: str, oid: str, reason: str = "") -> None:
    """Create a ref of ours, or move it from its present value, as `swap` does. `reason` is for the reflog."""
    _require_own(ref)
    swap(repository, ref, current(repository, ref), oid, reason)
    repository.moved_refs += 1
    if repository.moved_refs % _MANY == 0:
        git_program.write(repository.worktree.root, ["pack-refs", "--all"])  # a failure costs only time


def swap(repository: CheckedRepository, ref: str, old: str | None, new: str, reason: str) -> None:
    """Create `ref` (`old` is None), or move it from `old`, durably, and read it back. `HEAD` is one that is detached.

    Waits while git has it locked, as `git pack-refs` does. Refusal `git.ref-moved` if it has another value, or git
    refuses.
    """
    worktree = repository.worktree
    path = os.path.join(worktree.git_dir if ref == "HEAD" else worktree.common_dir, ref)
    folder = above = os.path.dirname(path)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    if folder in disk.failed:  # libgit2 would force it to disk again
        raise disk.failed_before(folder)
    # Check ownership after the old value was read: a takeover between check and write changes that value.
    worktree.guard()
    for wait in (*_WAITS, None):
        _require_value(repository, ref, old, new)
        try:
            if old is None:
                message = f"idumb: {reason}"
                repository.create_reference_direct(ref, pygit2.Oid(hex=new), force=False, message=message)
            elif old != new:
                repository.references[ref].set_target(new, f"idumb: {reason}")  # unless it was moved since it was read
            break
        except (pygit2.GitError, KeyError, ValueError, OSError) as problem:
            if "failed to fsync directory" in str(problem):
                disk.failed.add(folder)
            # Whether git has the ref locked, or had it locked a moment ago.
            is_locked = "failed to lock" in str(problem) or os.path.lexists(f"{path}.lock")
            if isinstance(problem, OSError) and not is_locked:
                raise
            if wait is None or not is_locked:
                _require_value(repository, ref, old, new)
                hint = "idumb doctor tells whether the lock is left over" if is_locked else "idumb status"
                raise _not_moved(ref, new, str(problem), hint) from problem
            clock.SystemClock().pause(wait)
    _require_value(repository, ref, new, new)
    # With its new folders. `git pack-refs` may have packed it meanwhile, or before, and removed them.
    disk.force_below(above, [path])


def _require_value(repository: pygit2.Repository, ref: str, value: str | None, new: str) -> None:
    present = current(repository, ref)
    if present != value:
        raise _not_moved(ref, new, f"it is at {present} but expected {value}")


def _require_own(ref: str) -> None:
    if not ref.startswith(OWN_REFS):
        message = f"idumb writes and deletes below {OWN_REFS} only, not {ref}"
        raise ValueError(message)


def _not_moved(ref: str, new: str, why: str, hint: str = "idumb status") -> errors.Refusal:
    return errors.Refusal("git.ref-moved", f"{ref} could not be moved to {new[:12]}: {why}", hint=hint)


def delete_all(worktree: Worktree, expected: Mapping[str, str]) -> None:
    """Delete all of these refs of ours or none. Refusal `git.ref-moved` if one of them has changed."""
    for ref in expected:
        _require_own(ref)
    worktree.guard()
    lines = b"".join(b"delete %s\0%s\0" % (os.fsencode(ref), oid.encode()) for ref, oid in expected.items())
    result = git_program.write(worktree.root, ["update-ref", "-z", "--stdin"], lines)
    if result.status != 0:
        raise errors.Refusal("git.ref-moved", f"git deletes no refs: {result.words}", hint="git for-each-ref")
    disk.force([os.path.join(worktree.common_dir, "refs"), worktree.common_dir])


def find(repository: pygit2.Repository, name: str) -> str | None:
    """Return the object of a name, or None."""
    oid, of_run = current(repository, name), _OF_RUN.fullmatch(name)
    if oid is None and of_run is not None:
        done = current(repository, f"{of_run['worktree']}/done/{of_run['run']}")
        item = _rows(repository, done).get(of_run["name"].replace("/", ":"))
        return None if item is None else item.oid
    return oid


def below(repository: CheckedRepository, prefix: str) -> dict[str, str]:
    """Return the names that start with a prefix of idumb's, with their objects."""
    folded: dict[str, str] = {}
    present = discover.refs_in(repository.worktree, OWN_REFS)
    for ref, of_done in [(ref, match) for ref in present if (match := _OF_DONE.fullmatch(ref))]:
        run, done = f"{of_done['worktree']}/runs/{of_done['run']}/", present.pop(ref)
        if run.startswith(prefix) or prefix.startswith(run):
            folded |= {run + row.replace(":", "/"): item.oid for row, item in _rows(repository, done).items()}
    return {name: oid for name, oid in {**folded, **present}.items() if name.startswith(prefix)}


def keep(repository: CheckedRepository, name: str, oid: str) -> None:
    """Give an existing object a name. Refusal `git.ref-moved` if it is missing, or a tree with missing parts.

    `git gc` fails in a repository in which a ref reaches a missing object.
    """
    whole = ["rev-list", "--objects", "--no-walk", "--quiet", "--missing=allow-promisor", oid]
    if git_program.read(repository.worktree.root, whole).status:  # libgit2 would answer from its memory
        words = f"{name} could not be kept: object {oid} does not exist, or not all of it"
        raise errors.Refusal("git.ref-moved", words, hint=Action("doctor"))
    move(repository, name, oid, "keep")


def fold(repository: CheckedRepository, run: str) -> None:
    """Move the names of a finished run into one tree. `run` is their prefix. If it is killed, repeat it.

    The tree gets its name before the others are deleted.
    """
    trees = {ref: oid for ref, oid in discover.refs_in(repository.worktree, run).items() if _is_tree(repository, oid)}
    if not trees:
        return
    done = _done(run)
    rows = dict(_rows(repository, current(repository, done)))
    rows |= {ref[len(run) :].replace("/", ":"): Entry(FOLDER, oid) for ref, oid in trees.items()}
    move(repository, done, tree_objects.write(repository, rows), "a finished run")
    delete_all(repository.worktree, trees)


def free(repository: CheckedRepository, run: str, is_kept: Callable[[str], bool]) -> None:
    """Drop the names of a finished run, except trees whose name below `run` is kept. If it is killed, repeat it.

    Refusal `git.ref-moved` if another process moved one meanwhile.
    """
    fold(repository, run)
    done, dropped = _done(run), dict(discover.refs_in(repository.worktree, run))
    tree = current(repository, done)
    rows = _rows(repository, tree)
    kept = {row: item for row, item in rows.items() if is_kept(row.replace(":", "/"))}
    if tree is not None and not kept:
        dropped[done] = tree
    elif kept.keys() != rows.keys():
        move(repository, done, tree_objects.write(repository, kept), "freed")
    if dropped:
        delete_all(repository.worktree, dropped)


def _done(run: str) -> str:
    """Return the ref of a finished run; `run` is the prefix of its names while it lives."""
    worktree, _, name = run.rstrip("/").rpartition("/runs/")
    return f"{worktree}/done/{name}"


def _is_tree(repository: pygit2.Repository, oid: str) -> bool:
    """Return whether a tree exists."""
    try:
        return repository.odb.read_header(pygit2.Oid(hex=oid))[0] == ObjectType.TREE
    except (KeyError, ValueError, pygit2.GitError):
        return False  # `doctor` reports it


def _rows(repository: pygit2.Repository, tree: str | None) -> Rows:
    """Return the rows of a finished run, none without a tree. Refusal `git.object-missing` if it cannot be read."""
    try:
        return {} if tree is None else tree_objects.rows(repository, tree)
    except (KeyError, ValueError, pygit2.GitError) as problem:
        words = f"tree {tree} with the names of a finished run is missing or damaged: {problem}"
        raise errors.Refusal("git.object-missing", words, hint=Action.of("doctor", "--fix")) from problem


def advance(
    repository: CheckedRepository,
    branch: str | None,
    commit: str,
    expected: str | None,
    message: str,
    own: Collection[str] = (),
) -> str:
    """Move the branch to a commit on top of `expected`, by compare-and-swap; None is a detached HEAD.

    First the index gets the entries of the paths that the commit changed, where it still has those from before: what
    else the user staged for them stays, except of `own`, of which the commit has his files as they are. The other way
    round, his next commit would undo the work if idumb were killed between the two. Return git's words if it refuses;
    the index is then as HEAD has it.
    Repeating the call is safe.
    """
    worktree = repository.worktree
    if open_repository.head_of(repository) == commit:
        disk.force_below(*((worktree.git_dir, ["HEAD"]) if branch is None else (worktree.common_dir, [branch])))
        return ""
    before, after = (tree_objects.tree_of(repository, commit_id) for commit_id in (expected, commit))
    try:
        followed = status.follow(repository, before, after, own)
    except errors.Refusal as refusal:
        return str(refusal)
    # Before the branch: git does not force it, and its rename must not precede its bytes.
    disk.force(path for path in (status.path_of(worktree), worktree.git_dir) if os.path.exists(path))
    try:
        swap(repository, branch or "HEAD", expected, commit, message)
    except errors.Refusal as refusal:
        present = tree_objects.tree_of(repository, open_repository.head_of(repository))
        status.set_to(repository, present, followed)
        return str(refusal)
    return ""


def begin(repository: CheckedRepository, name: str, commit: str | None) -> None:
    """Create a branch at `commit` and put HEAD on it. Index and files stay. If it was killed, repeat it.

    Refusal `git.branch-name`, `git.branch-exists` or `git.failed`.
    """
    ref, worktree = f"refs/heads/{name}", repository.worktree
    if git_program.read(worktree.root, ["check-ref-format", "--branch", name]).status != 0:
        raise errors.Refusal(
            "git.branch-name", f"{name!r} is not a valid branch name.", hint="Correct git.branch_name or --branch"
        )
    if commit is not None:
        present = repository.references.get(ref)
        if present is None:
            swap(repository, ref, None, commit, f"on to {name}")
        elif str(present.resolve().target) != commit or repository.branches.local[name].is_checked_out():
            words = f"Branch {name} already exists, and it is not where HEAD is."
            hint = f"git switch {name}, or choose another name: --branch NAME"
            raise errors.Refusal("git.branch-exists", words, hint=hint)
    worktree.guard()
    git_program.change(worktree.root, ["symbolic-ref", "-m", f"idumb: on to {name}", "HEAD", ref])
    disk.force([os.path.join(worktree.git_dir, "HEAD"), worktree.git_dir])


def of_user(worktree: Worktree) -> dict[str, str]:
    """Return the user's refs: name to a commit or tag id, or to the name of another ref. Raises OSError."""
    return {name: oid for name, oid in discover.refs_in(worktree, "refs/").items() if not name.startswith(OWN_REFS)}


def bytes_on_disk(worktree: Worktree) -> int | None:
    """Return the size on disk of what only our refs reach; None if git fails, as if objects are missing.

    With trees alone, git does not leave out what the user's commits have, so their newest trees are named.
    """
    users = [f"--exclude={OWN_REFS}*", "--all"]
    trees = git_program.read(worktree.root, ["log", *users, f"--max-count={_COMMITS}", "--format=^%T"])
    arguments = ["rev-list", "--objects", "--disk-usage", "--stdin", f"--glob={OWN_REFS}*", "--not", *users]
    size = git_program.read(worktree.root, arguments, trees.out)
    return int(size.out) if size.status == 0 else None


class GitKeptRefs:
    """All refs under `refs/idumb/` of a repository, whose working trees share them.

    Works without libgit2, so that idumb can also be removed from repositories that it does not open.
    """

    def __init__(self, worktree: Worktree) -> None:
        self._worktree = worktree

    def list(self) -> Mapping[str, str]:
        return discover.refs_in(self._worktree, OWN_REFS)

    def bundle(self, path: str) -> int:
        """Write every ref with its objects into a file that git can read, forced to disk. Return the number of refs."""
        result = git_program.write(self._worktree.root, ["bundle", "create", "--quiet", path, f"--glob={OWN_REFS}*"])
        if result.status != 0:
            raise errors.Refusal(
                "backup.incomplete",
                f"git could not bundle the refs, so nothing was removed: {result.words}",
                hint="idumb doctor lists the broken refs; --no-backup continues without a backup",
            )
        os.chmod(path, 0o600)
        git_program.output(self._worktree.root, ["bundle", "verify", path])
        disk.force([path, os.path.dirname(path)])
        return len(self.list())

    def delete(self, expected: Mapping[str, str]) -> None:
        """Delete all or none, each only if it has its expected value."""
        delete_all(self._worktree, expected)
