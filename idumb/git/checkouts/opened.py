"""What one command opens beside the user's working tree: checkouts, and the copy of a dry run. Or what a kill left.

The copy is a temporary repository with the present working tree: nothing that runs in it reaches the user's files. It
is beside the checkouts, and stores its own objects, so none is added to the user's.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator

from idumb.app.ports import Head
from idumb.git import discover, git_program, guarded_files, open_repository, path_state
from idumb.git.checkouts import places, user_git
from idumb.git.checkouts.checkout import BUILD, MARK, Additions, Checkout
from idumb.git.checkouts.places import Pair
from idumb.git.checkouts.user_git import VisibleGit
from idumb.git.discover import Worktree
from idumb.git.own_folder import EXCLUDE, RAW
from idumb.git.trees import GitTrees
from idumb.system import atomic_write, private_folders

_COPY, _ATTRIBUTES = "work", "info/attributes"


class Checkouts:
    """Those of a repository. `trees` returns the user's trees, `additions` what each checkout has besides a tree."""

    def __init__(
        self, worktree: Worktree, trees: Callable[[], GitTrees], additions: Callable[[], Additions] = Additions
    ) -> None:
        self._worktree = worktree
        self._trees = trees
        self._additions = additions
        self._pair: Pair | None = None
        self._opened: dict[str, Checkout] = {}

    def open(self, use: str, *, plain: bool = False) -> Checkout:
        """Return the checkout for this use; all of a command are of one pair. Refusal `checkout.busy`.

        It is `plain` if nothing of the user's git settings, and no cache, takes part.
        """
        if use not in self._opened:
            if self._pair is None and self.left():
                self.keep_left()
            self._pair = self._pair or places.take(self._worktree)
            additions = self._additions()
            if plain:
                additions = additions._replace(plain=True, is_cached=lambda _: False)
            self._opened[use] = Checkout(self._trees(), self._pair, use, additions)
        return self._opened[use]

    def require_place(self) -> None:
        """Refusal `checkout.unusable` if there is no place for checkouts."""
        places.prepare(self._worktree)

    def place(self) -> str:
        """Return the folder of the checkouts."""
        return places.folder_of(self._worktree)

    def left(self) -> dict[str, str]:
        """Return the checkouts in which an attempt worked when its command was killed, some perhaps in use.

        Each has the name to keep its files under.
        """
        marks = {path: os.path.join(own, MARK) for path, own in places.own_folders(self._worktree).items()}
        names = {path: os.fsdecode(guarded_files.content(mark)) for path, mark in marks.items()}
        return {path: name for path, name in names.items() if name}

    def keep_left(self) -> dict[str, str]:
        """Keep the files of attempts whose commands were killed; return those that were not kept yet."""
        left = self.left()
        for pair in places.free(self._worktree):
            with contextlib.closing(pair):
                folder, _ = pair.opened(BUILD)
                if folder.path in left:
                    Checkout(self._trees(), pair, BUILD, Additions())
        still = self.left()
        return {path: name for path, name in left.items() if path not in still}

    def close(self) -> None:
        """Let other commands use them."""
        if self._pair is not None:
            self._pair.close()
        self._pair, self._opened = None, {}


@contextlib.contextmanager
def copy_of(user: Worktree, head: Head, also: Iterable[str] = ()) -> Iterator[Worktree]:
    """Make a copy with this HEAD and all files that are not ignored; `also` are ignored files to include."""
    places.clear_copies(user)
    top = os.path.join(places.prepare(user), places.COPIES)
    folder, lock = private_folders.lock_folder(top)
    try:
        yield _copied(user, head, folder, also)
    finally:
        private_folders.unlock_folder(folder, lock)
        for empty in (top, *places.own_above(user)):
            private_folders.remove_empty(empty)


def _copied(user: Worktree, head: Head, folder: str, also: Iterable[str]) -> Worktree:
    root, settings = os.path.join(os.path.realpath(folder), _COPY), user_git.read(user)
    private_folders.make(root)
    git = VisibleGit(open_repository.repository(user), settings)
    git.show(root, head.commit, settings.files.get(EXCLUDE, b""))
    with path_state.opened(root) as opened:
        git.write(opened)
    copy = discover.at(root)
    copy.name = places.REHEARSAL
    # A scan's objects go to the copy.
    scanned = Worktree(user.root, user.git_dir, copy.common_dir, places.REHEARSAL)
    tree = GitTrees(scanned, copy).scan(also)
    attributes = os.path.join(copy.git_dir, _ATTRIBUTES)
    atomic_write.write(attributes, RAW, durable=False)
    git_program.change(root, ["read-tree", "--reset", "-u", tree])
    atomic_write.write(attributes, settings.files.get(_ATTRIBUTES, b""), durable=False)
    git_program.change(root, ["read-tree", head.commit or "--empty"])
    return copy
