"""The checkouts that one command uses, and those that killed commands left."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from idumb.git import guarded_files
from idumb.git.checkouts import places
from idumb.git.checkouts.checkout import BUILD, MARK, Additions, Checkout
from idumb.git.checkouts.places import Pair
from idumb.git.discover import Repository
from idumb.git.trees import GitTrees


class Checkouts:
    """Those of the repository `place`. `trees` returns its trees, `additions` what each checkout has besides a tree."""

    def __init__(
        self, place: Repository, trees: Callable[[], GitTrees], additions: Callable[[], Additions] = Additions
    ) -> None:
        self._place = place
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
            self._pair = self._pair or places.take(self._place)
            additions = self._additions()
            if plain:
                additions = additions._replace(plain=True, is_cached=lambda _: False)
            self._opened[use] = Checkout(self._place, self._trees(), self._pair, use, additions)
        return self._opened[use]

    def require_place(self) -> None:
        """Refusal `checkout.unusable` if there is no place for checkouts."""
        places.prepare(self._place)

    def place(self) -> str:
        """Return the folder of the checkouts."""
        return places.folder_of(self._place)

    def left(self) -> dict[str, str]:
        """Return the checkouts in which an attempt worked when its command was killed, some perhaps in use.

        Each has the name to keep its files under.
        """
        marks = {path: os.path.join(own, MARK) for path, own in places.own_folders(self._place).items()}
        names = {path: os.fsdecode(guarded_files.content(mark)) for path, mark in marks.items()}
        return {path: name for path, name in names.items() if name}

    def keep_left(self) -> dict[str, str]:
        """Keep the files of attempts whose commands were killed; return those that were not kept yet."""
        left = self.left()
        for pair in places.free(self._place):
            with contextlib.closing(pair):
                folder, _ = pair.opened(BUILD)
                if folder.path in left:
                    Checkout(self._place, self._trees(), pair, BUILD, Additions())
        still = self.left()
        return {path: name for path, name in left.items() if path not in still}

    def close(self) -> None:
        """Let other commands use them."""
        if self._pair is not None:
            self._pair.close()
        self._pair, self._opened = None, {}
