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

from idumb.domain import errors
from idumb.domain.action import Action
from idumb.domain.proof.ledger import Entry
from idumb.git import discover, disk, git_program, status, tree_objects
from idumb.git.discover import PREFIX, Repository
from idumb.git.objects import TREE, Damaged, Objects
from idumb.git.tree_objects import FOLDER, Rows

_WORKTREE = rf"(?P<worktree>{PREFIX}worktrees/[^/]+)"
_OF_RUN = re.compile(rf"{_WORKTREE}/runs/(?P<run>[^/]+)/(?P<name>.*)")
_OF_DONE = re.compile(rf"{_WORKTREE}/done/(?P<run>[^/]+)")
_MANY = 250
"""So many loose refs are worth packing."""
# New refs of this process since it last packed, by shared git folder.
_loose: dict[str, int] = {}
_PATIENT = ("-c", "core.filesRefLockTimeout=2500", "-c", "core.packedRefsTimeout=2500")
"""Milliseconds for which git waits for a lock, as of `git pack-refs`."""
_COMMITS = 2000
_ID = re.compile("[0-9a-f]{40}")
_NOTHING = "0" * 40


def current(place: Repository, ref: str) -> str | None:
    """Return what a ref names, or None. Refusal `git.ref-moved` if its file is damaged."""
    present = discover.target(place, ref)
    if present is None or _ID.fullmatch(present) or present.startswith("ref: "):
        return present
    raise errors.Refusal("git.ref-moved", f"{ref} cannot be read: it is {present!r}", hint=Action.of("doctor", "--fix"))


def move(place: Repository, ref: str, oid: str, reason: str = "") -> None:
    """Create a ref of ours, or move it from its present value, as `swap` does. `reason` is for the reflog."""
    _require_own(ref)
    swap(place, ref, current(place, ref), oid, reason)


def swap(place: Repository, ref: str, old: str | None, new: str, reason: str) -> None:
    """Create `ref` (`old` is None), or move it from `old`, durably, and read it back. `HEAD` is one that is detached.

    Refusal `git.ref-moved` if it has another value, or git refuses.
    """
    path = os.path.join(place.git_dir if ref == "HEAD" else place.common_dir, ref)
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    # Check ownership after the old value was read: a takeover between check and write changes that value.
    place.guard()
    _require_value(place, ref, old, new)
    command = [*_PATIENT, "update-ref", "--no-deref", "-m", f"idumb: {reason}", ref, new, old or _NOTHING]
    result = git_program.write(place.root, command)
    if result.status != 0:
        _require_value(place, ref, old, new)
        is_locked = os.path.lexists(f"{path}.lock")
        hint = "idumb doctor tells whether the lock is left over" if is_locked else "idumb status"
        raise _not_moved(ref, new, result.words.partition("\n")[0], hint)
    _require_value(place, ref, new, new)
    # With its new folders. `git pack-refs` may have packed it meanwhile, or before, and removed them.
    disk.force_below(above, [path])


def _require_value(place: Repository, ref: str, value: str | None, new: str) -> None:
    present = current(place, ref)
    if present != value:
        raise _not_moved(ref, new, f"it is at {present} but expected {value}")


def _require_own(ref: str) -> None:
    if not ref.startswith(PREFIX):
        message = f"idumb writes and deletes below {PREFIX} only, not {ref}"
        raise ValueError(message)


def _not_moved(ref: str, new: str, why: str, hint: str = "idumb status") -> errors.Refusal:
    return errors.Refusal("git.ref-moved", f"{ref} could not be moved to {new[:12]}: {why}", hint=hint)


def delete_all(place: Repository, expected: Mapping[str, str]) -> None:
    """Delete all of these refs of ours or none. Refusal `git.ref-moved` if one of them has changed."""
    for ref in expected:
        _require_own(ref)
    place.guard()
    lines = b"".join(b"delete %s\0%s\0" % (os.fsencode(ref), oid.encode()) for ref, oid in expected.items())
    result = git_program.write(place.root, ["update-ref", "-z", "--stdin"], lines)
    if result.status != 0:
        raise errors.Refusal("git.ref-moved", f"git deletes no refs: {result.words}", hint="git for-each-ref")
    disk.force([os.path.join(place.common_dir, "refs"), place.common_dir])


def find(objects: Objects, name: str) -> str | None:
    """Return the object of a name, or None."""
    oid, of_run = current(objects.place, name), _OF_RUN.fullmatch(name)
    if oid is None and of_run is not None:
        done = current(objects.place, f"{of_run['worktree']}/done/{of_run['run']}")
        item = _rows(objects, done).get(of_run["name"].replace("/", ":"))
        return None if item is None else item.oid
    return oid


def below(objects: Objects, prefix: str) -> dict[str, str]:
    """Return the names that start with a prefix of idumb's, with their objects."""
    folded: dict[str, str] = {}
    present = discover.listed(objects.place.common_dir, PREFIX)
    for ref, of_done in [(ref, match) for ref in present if (match := _OF_DONE.fullmatch(ref))]:
        run, done = f"{of_done['worktree']}/runs/{of_done['run']}/", present.pop(ref)
        if run.startswith(prefix) or prefix.startswith(run):
            folded |= {run + row.replace(":", "/"): item.oid for row, item in _rows(objects, done).items()}
    return {name: oid for name, oid in {**folded, **present}.items() if name.startswith(prefix)}


def put(place: Repository, name: str, oid: str, reason: str = "") -> None:
    """Give an object a name, durably. Refusal `git.ref-moved` if another process does so at the same time."""
    move(place, name, oid, reason)
    _loose[place.common_dir] = _loose.get(place.common_dir, 0) + 1
    if _loose[place.common_dir] >= _MANY:
        _loose[place.common_dir] = 0
        git_program.write(place.root, ["pack-refs", "--all"])  # a failure costs only time


def keep(place: Repository, name: str, oid: str) -> None:
    """Give an existing object a name. Refusal `git.ref-moved` if it is missing, or a tree with missing parts.

    `git gc` fails in a repository in which a ref reaches a missing object.
    """
    whole = ["rev-list", "--objects", "--no-walk", "--quiet", "--missing=allow-promisor", oid]
    if git_program.read(place.root, whole).status:
        words = f"{name} could not be kept: object {oid} does not exist, or not all of it"
        raise errors.Refusal("git.ref-moved", words, hint=Action("doctor"))
    put(place, name, oid, "keep")


def fold(objects: Objects, run: str) -> None:
    """Move the names of a finished run into one tree. `run` is their prefix. If it is killed, repeat it.

    The tree gets its name before the others are deleted.
    """
    place = objects.place
    trees = {ref: oid for ref, oid in discover.listed(place.common_dir, run).items() if _is_tree(objects, oid)}
    if not trees:
        return
    done = _done(run)
    rows = dict(_rows(objects, current(place, done)))
    rows |= {ref[len(run) :].replace("/", ":"): Entry(FOLDER, oid) for ref, oid in trees.items()}
    move(place, done, tree_objects.write(objects, rows), "a finished run")
    delete_all(place, trees)


def free(objects: Objects, run: str, is_kept: Callable[[str], bool]) -> None:
    """Drop the names of a finished run, except trees whose name below `run` is kept. If it is killed, repeat it.

    Refusal `git.ref-moved` if another process moved one meanwhile.
    """
    fold(objects, run)
    place = objects.place
    done, dropped = _done(run), dict(discover.listed(place.common_dir, run))
    tree = current(place, done)
    rows = _rows(objects, tree)
    kept = {row: item for row, item in rows.items() if is_kept(row.replace(":", "/"))}
    if tree is not None and not kept:
        dropped[done] = tree
    elif kept.keys() != rows.keys():
        move(place, done, tree_objects.write(objects, kept), "freed")
    if dropped:
        delete_all(place, dropped)


def _done(run: str) -> str:
    """Return the ref of a finished run; `run` is the prefix of its names while it lives."""
    worktree, _, name = run.rstrip("/").rpartition("/runs/")
    return f"{worktree}/done/{name}"


def _is_tree(objects: Objects, oid: str) -> bool:
    """Return whether a tree exists."""
    try:
        return objects.about(oid)[0] == TREE
    except Damaged:
        return False  # `doctor` reports it


def _rows(objects: Objects, tree: str | None) -> Rows:
    """Return the rows of a finished run, none without a tree. Refusal `git.object-missing` if it cannot be read."""
    try:
        return {} if tree is None else tree_objects.rows(objects, tree)
    except Damaged as problem:
        words = f"tree {tree} with the names of a finished run is missing or damaged: {problem}"
        raise errors.Refusal("git.object-missing", words, hint=Action.of("doctor", "--fix")) from problem


def advance(
    objects: Objects, branch: str | None, commit: str, expected: str | None, message: str, own: Collection[str] = ()
) -> str:
    """Move the branch to a commit on top of `expected`, by compare-and-swap; None is a detached HEAD.

    First the index gets the entries of the paths that the commit changed, where it still has those from before: what
    else the user staged for them stays, except of `own`, of which the commit has his files as they are. The other way
    round, his next commit would undo the work if idumb were killed between the two. Return git's words if it refuses;
    the index is then as HEAD has it.
    Repeating the call is safe.
    """
    place = objects.place
    if status.head_of(place) == commit:
        disk.force_below(*((place.git_dir, ["HEAD"]) if branch is None else (place.common_dir, [branch])))
        return ""
    before, after = (tree_objects.tree_of(objects, commit_id) for commit_id in (expected, commit))
    try:
        followed = status.follow(objects, before, after, own)
    except errors.Refusal as refusal:
        return str(refusal)
    # Before the branch: git does not force it, and its rename must not precede its bytes.
    disk.force(path for path in (status.path_of(place), place.git_dir) if os.path.exists(path))
    try:
        swap(place, branch or "HEAD", expected, commit, message)
    except errors.Refusal as refusal:
        status.set_to(objects, tree_objects.tree_of(objects, status.head_of(place)), followed)
        return str(refusal)
    return ""


def begin(place: Repository, name: str, commit: str | None) -> None:
    """Create a branch at `commit` and put HEAD on it. Index and files stay. If it was killed, repeat it.

    Refusal `git.branch-name`, `git.branch-exists` or `git.failed`.
    """
    if git_program.read(place.root, ["check-ref-format", "--branch", name]).status != 0:
        raise errors.Refusal(
            "git.branch-name", f"{name!r} is not a valid branch name.", hint="Correct git.branch_name or --branch"
        )
    ref = f"refs/heads/{name}"
    if commit is not None:
        _create(place, name, ref, commit)
    place.guard()
    git_program.change(place.root, ["symbolic-ref", "-m", f"idumb: on to {name}", "HEAD", ref])
    disk.force([os.path.join(place.git_dir, "HEAD"), place.git_dir])


def _create(place: Repository, name: str, ref: str, commit: str) -> None:
    present = git_program.output(place.root, ["for-each-ref", "--format=%(objectname) %(worktreepath)", ref]).decode()
    if present and present.rstrip("\n") != f"{commit} ":  # or it is checked out somewhere
        words = f"Branch {name} already exists, and it is not where HEAD is."
        raise errors.Refusal(
            "git.branch-exists", words, hint=f"git switch {name}, or choose another name: --branch NAME"
        )
    if not present:
        swap(place, ref, None, commit, f"on to {name}")


def of_user(common_dir: str) -> dict[str, str]:
    """Return the user's refs: name to a commit or tag id, or to the name of another ref. Raises OSError."""
    return {name: oid for name, oid in discover.listed(common_dir, "refs/").items() if not name.startswith(PREFIX)}


def bytes_on_disk(place: Repository) -> int | None:
    """Return the size on disk of what only our refs reach; None if git fails, as if objects are missing.

    With trees alone, git does not leave out what the user's commits have, so their newest trees are named.
    """
    users = [f"--exclude={PREFIX}*", "--all"]
    trees = git_program.read(place.root, ["log", *users, f"--max-count={_COMMITS}", "--format=^%T"])
    arguments = ["rev-list", "--objects", "--disk-usage", "--stdin", f"--glob={PREFIX}*", "--not", *users]
    size = git_program.read(place.root, arguments, trees.out)
    return int(size.out) if size.status == 0 else None


class GitKeptRefs:
    """All refs under `refs/idumb/` of a repository, whose working trees share them.

    It reads no object, so that idumb can also be removed from repositories that it does not open.
    """

    def __init__(self, place: Repository) -> None:
        self._place = place

    def list(self) -> Mapping[str, str]:
        return discover.listed(self._place.common_dir, PREFIX)

    def bundle(self, path: str) -> int:
        """Write every ref with its objects into a file that git can read, forced to disk. Return the number of refs."""
        result = git_program.write(self._place.root, ["bundle", "create", "--quiet", path, f"--glob={PREFIX}*"])
        if result.status != 0:
            raise errors.Refusal(
                "backup.incomplete",
                f"git could not bundle the refs, so nothing was removed: {result.words}",
                hint="idumb doctor lists the broken refs; --no-backup continues without a backup",
            )
        os.chmod(path, 0o600)
        git_program.output(self._place.root, ["bundle", "verify", path])
        disk.force([path, os.path.dirname(path)])
        return len(self.list())

    def delete(self, expected: Mapping[str, str]) -> None:
        """Delete all or none, each only if it has its expected value."""
        delete_all(self._place, expected)
