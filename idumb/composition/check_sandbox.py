"""Limits where a check writes: in the proof checkout, in its private folders, and in the caches of its tools."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from idumb.domain.runs import sandbox
from idumb.domain.runs.sandbox import Fence, is_below
from idumb.domain.settings import NO_NETWORK, USER_HOME, CheckSettings
from idumb.system.files import links
from idumb.system.processes import landlock, no_network

if TYPE_CHECKING:
    from idumb.composition.container import Container


class CheckSandbox:
    """The sandbox of a run's checks: no check may write what is the user's or git's.

    `caches` are folders of toolchains, which checks may fill; some may not exist. Checks of a project in a subfolder
    may write in the whole tree that they judge, as at the top.
    """

    def __init__(self, services: Container, settings: CheckSettings, caches: Sequence[str]) -> None:
        user, chosen = services.user_repository, services.settings
        self._below = f"/{services.folder}" if services.folder else ""
        self._sandboxes, self._settings = services.sandboxes, settings
        self._chosen = chosen.sandbox if chosen.sandboxed else None
        self._user = os.path.realpath(user.root)
        guarded = map(os.path.realpath, (*services.guarded(user), f"{user.root}/.git"))
        self._guarded = tuple(dict.fromkeys(path for path in guarded if os.path.exists(path)))
        named = () if self._chosen is None else map(os.path.expanduser, self._chosen.write)
        self._more = (*caches, *filter(os.path.isabs, named))

    def limited(self, root: str, variables: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
        """Return the arguments before those of a check in `root`, which limit it, and the level in words."""
        launcher, limits = tuple[str, ...](), tuple[str, ...]()
        words = list[str]()
        alone = self._settings.network == NO_NETWORK
        if alone:
            launcher = no_network.command()
        if self._chosen is not None:
            fence = self._fence(root, variables)
            level, why = sandbox.choose(self._chosen.level, fence, self._sandboxes.support())
            limits = self._sandboxes.launcher(level, fence)
            words.append(f"{level}: {why}" if why else level)
        if alone:
            # Otherwise root could join the network of another process; a sandbox prevents that too.
            limits = limits or (landlock.without_capabilities() if os.geteuid() == 0 else ())
            words.append("no network")
        return (*launcher, *limits), ", ".join(words)

    def _fence(self, root: str, variables: Mapping[str, str]) -> Fence:
        private = os.path.dirname(variables["TMPDIR"])
        written = (self._user, *map(os.path.realpath, self._more))
        # Omit links in what builders and earlier checks wrote: they must not decide where this one writes.
        places = (links.real_path(path, written) for path in self._more)
        more = [place for place in places if place is not None and self._may(place)]
        extra = [place for place in more if not any(is_below(place, path) for path in self._guarded)]
        if self._settings.home == USER_HOME:
            extra.append(os.path.realpath(variables["HOME"]))
        return Fence(
            tuple(dict.fromkeys((*map(os.path.realpath, (root.removesuffix(self._below), private)), *extra))),
            self._guarded,
            (self._user,),
        )

    def _may(self, place: str) -> bool:
        """Return whether a place may be writable: it exists, and nothing of the user's repository is below."""
        return os.path.isdir(place) and not any(is_below(path, place) for path in (*self._guarded, self._user))
