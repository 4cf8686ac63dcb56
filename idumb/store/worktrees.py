"""The working trees of a repository that used idumb, and the right to write in all of them at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from idumb.domain.errors import Refusal
from idumb.store import owner_card, ownership
from idumb.system.files import user_folders


def names(folder: str) -> list[str]:
    """`folder` is `<common dir>/idumb`."""
    place = os.path.join(folder, "worktrees")
    return sorted(os.listdir(place)) if os.path.isdir(place) else []


def cards(folder: str) -> Iterator[tuple[str, owner_card.Card]]:
    """Return (path, card) of every owner that left one, dead or alive."""
    for name in names(folder):
        path = os.path.join(folder, "worktrees", name, "owner.json")
        card = owner_card.read(path)
        if card:
            yield path, card


@contextlib.contextmanager
def held(folder: str, also: str | None = None) -> Iterator[None]:
    """Take all locks; Refusal `lock.held` if one has an owner. `also` may have no folder yet."""
    if also is not None:
        user_folders.make_private(os.path.join(folder, "worktrees", also))
    with contextlib.ExitStack() as stack:
        for name in names(folder):
            stack.callback(_taken(os.path.join(folder, "worktrees", name)).release)
        yield


def _taken(folder: str) -> ownership.OwnerLock:
    """The lock says nothing about an owner on another machine, so its card counts too."""
    card = owner_card.read(os.path.join(folder, "owner.json"))
    alive = bool(card) and owner_card.standing(card) != owner_card.DEAD
    lock = None if alive else ownership.take(os.path.join(folder, "owner.lock"))
    if lock is None:
        raise Refusal(
            "lock.held",
            f"work tree {os.path.basename(folder)} is in use by process {card.get('pid', '?')} on"
            f" {card.get('host', '?')}, since {card.get('since', '?')}: {card.get('command', '?')}",
            hint="wait for it to end, or stop it: idumb cancel",
            details=card,
        )
    return lock
