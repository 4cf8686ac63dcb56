"""The checkouts that commands use: each command locks one pair of a repository, and opens its checkouts on demand."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from idumb.domain import errors
from idumb.git.checkouts import places
from idumb.git.checkouts.checkout import BUILD, MARK, Additions, Checkout
from idumb.git.checkouts.places import Pair
from idumb.git.discover import Worktree
from idumb.git.trees import GitTrees
from idumb.system import private_folders

MOST = 4
"""Pairs of checkouts of one repository."""


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
            self._pair = self._pair or take(self._worktree)
            additions = self._additions()
            if plain:
                additions = additions._replace(plain=True, is_cached=lambda _: False)
            self._opened[use] = Checkout(self._trees(), self._pair, use, additions)
        return self._opened[use]

    def require_place(self) -> str:
        """Return the folder of the checkouts, made if missing. Refusal `checkout.unusable` if there can be none."""
        return places.prepare(self._worktree)

    def place(self) -> str:
        """Return where it is, or would be."""
        return places.folder_of(self._worktree)

    def left(self) -> dict[str, str]:
        """Return the checkouts in which an attempt worked when its command was killed, some perhaps in use.

        Each has the name to keep its files under.
        """
        existing = places.existing(self._worktree).items()
        names = {path: places.read(os.path.join(git_dir, MARK)) for path, git_dir in existing}
        return {path: name for path, name in names.items() if name}

    def keep_left(self) -> dict[str, str]:
        """Keep the files of attempts whose commands were killed; return those that were not kept yet."""
        left = self.left()
        for pair in free(self._worktree):
            with contextlib.closing(pair):
                if pair.folder(BUILD).path in left:
                    Checkout(self._trees(), pair, BUILD, Additions())
        still = self.left()
        return {path: name for path, name in left.items() if path not in still}

    def close(self) -> None:
        """Let other commands use them."""
        if self._pair is not None:
            self._pair.close()
        self._pair, self._opened = None, {}


def take(user: Worktree) -> Pair:
    """Lock a free pair. Refusal `checkout.busy` if other commands use all, `checkout.unusable` without a place."""
    holders = list[str]()
    for pair in free(user, holders.append):
        places.note_use(user, pair.place)
        return pair
    raise errors.Refusal(
        "checkout.busy",
        f"All {MOST} pairs of checkouts of this repository are in use, by the processes {', '.join(holders)}.",
        hint="Wait until one of them has ended, or stop it; idumb status names the runs",
        details={"processes": holders},
    )


def free(user: Worktree, held: Callable[[str], None] = lambda _: None) -> Iterator[Pair]:
    """Yield each pair that no command uses, locked; `held` is called with the process that uses one."""
    private_folders.make(places.state(user), root=user.common_dir)
    for number in range(1, MOST + 1):
        path = os.path.join(places.state(user), f"{number}.lock")
        lock = private_folders.take_lock(path)
        if lock is None:
            held(places.read(path))
            continue
        try:
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode("ascii"))
            place = places.prepare(user)
        except BaseException:
            os.close(lock)
            raise
        yield Pair(user, place, number, lock)
