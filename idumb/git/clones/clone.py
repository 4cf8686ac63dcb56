"""The workspace `clone`: a private copy of a commit, whose objects and snapshots are in the user's repository.

The copy has its own git folder, so nothing that runs in it can reach the user's refs, index or hooks. Results enter the
user's working tree path by path, by compare-and-swap.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable

import pygit2

from idumb.domain import errors
from idumb.git import discover, git_program, open_repository, shadow_folder, status
from idumb.git.clones import clone_places
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.trees import GitTrees
from idumb.system import host_identity
from idumb.system.files import private_folders

_READY = "idumb-ready"
_COPIED = ("shallow", os.path.join("info", "exclude"), os.path.join("info", "attributes"))
BRANCH = "idumb"
WORKTREE = "rehearsal"
"""The folder name of a dry run's working tree."""
TAKEN = ".taken"
"""The suffix of the folder beside a clone in which a builder's git folder is examined."""


class Clone:
    """`user` are the trees of the project in the user's working tree. An existing folder is reused.

    `top` is the real path of the copy, and the root of `trees` the project's folder in it.
    """

    in_place = False

    def __init__(self, repository: Repository, user: GitTrees, run: str, commit: str | None) -> None:
        self._user = user
        self._repository = repository
        self._folder = os.path.join(clone_places.prepare(place_of(repository), repository.common_dir), run)
        if not _is_ready(self._folder):
            tree = None if commit is None else _as_checked_out(repository, user, commit)
            _make(repository, self._folder, commit, tree)
        self.top = os.path.realpath(self._folder)
        folder = user.paths.folder
        self.trees = GitTrees(discover.at(self.top), repository, repository, user.limit, folder=folder)
        self.make_folder()
        self.keep()

    def make_folder(self) -> None:
        """Make the project's folder, which the commit may not have."""
        os.makedirs(self.trees.root, exist_ok=True)

    def show(self, tree: str, head: str | None) -> None:
        """Make the files those of `tree`, on top of the commit `head`. Ignored files stay."""
        if head is not None and tree == tree_objects.tree_of(self._user.repository, head):
            tree = _as_checked_out(self._repository, self._user, head)
        present = self.trees.scan()
        if any(self.trees.repositories()):
            _make(self._repository, self._folder, head, tree)
            self.trees.forget()
        else:
            changed = [change.path for change in self.trees.changes(present, tree)]
            self.trees.restore(tree, tree, changed, force=True)
            put_head(self._folder, head)
        self.make_folder()

    def begin(self, ref: str, reason: str) -> None:
        with open(self._mark, "w", encoding="utf-8") as stream:
            stream.write(f"{ref}\n{reason}")

    def keep(self) -> None:
        try:
            with open(self._mark, encoding="utf-8") as stream:
                ref, _, reason = stream.read().partition("\n")
        except FileNotFoundError:
            return
        # An agent can leave anything in its git folder, so git runs with a folder of idumb's own.
        private_folders.remove_tree(os.path.join(self._folder, ".git"))
        make_git_folder(self._repository, self._folder, open_repository.head_of(self._user.repository))
        self.trees.snapshot(ref, reason)
        self.end()

    def end(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._mark)

    @property
    def _mark(self) -> str:
        return f"{self._folder}.begun"

    def close(self) -> None:
        """Remove the copy; its snapshots stay. After a takeover, the copy belongs to the new owner."""
        self.keep()
        self._repository.guard()
        shadow_folder.discard(self._folder, self._repository)
        remove(self._folder)
        clone_places.tidy(place_of(self._repository))


def place_of(repository: Repository) -> str:
    """Return the folder of a repository's clones. Those of a dry run are beside it and are removed with it."""
    if repository.worktree_id == WORKTREE:
        return os.path.join(os.path.dirname(repository.root), "clones")
    return clone_places.clones_folder(repository.root, repository.common_dir)


def _as_checked_out(repository: Repository, user: GitTrees, commit: str) -> str:
    """Return the commit's tree, with filtered files (line endings, LFS) as they are in the user's working tree.

    Otherwise a builder would see other bytes than the user, and each of its results would be a conflict.
    """
    tree = tree_objects.tree_of(user.repository, commit)
    present = user.scan()
    differ = [
        change.path for change in tree_objects.changes(user.repository, tree, present) if change.old and change.new
    ]
    if not differ:
        return tree
    edited = frozenset(status.changed(repository, differ))
    converted = [path for path in differ if path not in edited]
    return tree_objects.overlay(user.repository, user.writer.tree, tree, [(present, converted)])


def _make(repository: Repository, folder: str, commit: str | None, tree: str | None) -> None:
    repository.guard()
    clone_places.prepare(place_of(repository), repository.common_dir)
    remove(folder)
    private_folders.make(folder)
    if commit is not None and tree is not None:
        write_out(open_repository.repository(repository), bytes.fromhex(tree), folder)
    make_git_folder(repository, folder, commit)
    with open(os.path.join(folder, ".git", _READY), "wb") as stream:
        stream.write(_boot())


def make_git_folder(repository: Repository, folder: str, commit: str | None) -> None:
    """Create a git folder in `folder` on top of the user's objects, with one branch at `commit`.

    It uses the formats that idumb reads, whatever the user prefers for new repositories.
    """
    arguments = ["init", "--quiet", "--template=", "--object-format=sha1", f"--initial-branch={BRANCH}", "."]
    # By a variable, because older versions of git do not know the option.
    git_program.change(folder, arguments, {"GIT_DEFAULT_REF_FORMAT": "files"})
    git_dir = os.path.join(folder, ".git")
    os.makedirs(os.path.join(git_dir, "info"), exist_ok=True)
    for name in _COPIED:
        if os.path.isfile(os.path.join(repository.common_dir, name)):
            shutil.copyfile(os.path.join(repository.common_dir, name), os.path.join(git_dir, name))
    borrow(folder, open_repository.lenders(repository))
    if commit is not None:
        put_head(folder, commit)


def borrow(folder: str, objects: Iterable[str]) -> None:
    """Let the repository in `folder` read from these object folders only."""
    with open(os.path.join(folder, ".git", "objects", "info", "alternates"), "wb") as stream:
        stream.write(open_repository.alternates(objects))


def put_head(folder: str, commit: str | None) -> None:
    """Set branch and index to a commit; the files stay as they are."""
    if commit is None:
        git_program.change(folder, ["update-ref", "-d", f"refs/heads/{BRANCH}"])
        git_program.change(folder, ["read-tree", "--empty"])
        return
    git_program.change(folder, ["update-ref", f"refs/heads/{BRANCH}", commit])
    git_program.change(folder, ["read-tree", commit])


def remove(folder: str) -> None:
    """Remove the marker first: a clone that is half removed when idumb is killed is no clone."""
    if not os.path.islink(folder):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, ".git", _READY))
    private_folders.remove_tree(folder)
    private_folders.remove_tree(folder + TAKEN)


def _is_ready(folder: str) -> bool:
    """Return whether it was created since boot: its files are never forced, so a power cut may have truncated them."""
    try:
        with open(os.path.join(folder, ".git", _READY), "rb") as stream:
            return stream.read() == _boot()
    except OSError:
        return False


def _boot() -> bytes:
    """Return the id of the boot; b"" if the system does not show it, and clones then survive a reboot."""
    return (host_identity.boot_id() or "").encode()


def write_out(repository: pygit2.Repository, tree: bytes, folder: str) -> None:
    """Write a tree's bytes into an empty folder: unfiltered, and not forced to disk, because git has them."""
    stack = [(tree, folder)]
    while stack:
        oid, here = stack.pop()
        for name, item in tree_objects.rows(repository, oid).items():
            path = os.path.join(here, name)
            if name.lower() == ".git" or name in {".", ".."}:
                raise errors.Refusal("git.unsafe-tree", f"a tree holds the name {name!r}", hint="git fsck")
            if item.mode == tree_objects.FOLDER:
                os.mkdir(path)
                stack.append((item.oid, path))
            elif item.mode == tree_objects.SUBMODULE:
                os.mkdir(path)
            else:
                _write_file(repository, item, path, os.path.relpath(path, folder))


def _write_file(repository: pygit2.Repository, item: tree_objects.Item, path: str, shown: str) -> None:
    try:
        data = repository.read(pygit2.Oid(item.oid))[1]
    except KeyError as problem:
        raise errors.Refusal(
            "git.object-missing",
            f"object {item.oid.hex()} of {shown} is not in this repository (a partial clone?)",
            hint="git fetch --refetch --no-filter fetches everything; in a sparse checkout, also run"
            " git sparse-checkout disable",
        ) from problem
    if item.mode == tree_objects.LINK:
        os.symlink(data, os.fsencode(path))
        return
    bits = 0o777 if item.mode == tree_objects.PROGRAM else 0o666
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, bits), "wb") as stream:
        stream.write(data)
