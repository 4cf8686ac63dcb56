"""Limits where a check writes: in the proving tree, in its private folders, and where its tools keep their data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from idumb.app.ports.checks import Borrowed
from idumb.app.ports.host import Sandboxes
from idumb.domain.runs import sandbox
from idumb.domain.runs.sandbox import Fence, is_below
from idumb.domain.settings import NO_NETWORK, USER_HOME, CheckSettings, SandboxSettings
from idumb.system.processes import no_network, private_layers


class CheckSandbox:
    """The sandbox of a run's checks. `guarded` are the git folders of the user, `user` is their working tree.

    `tools` are the places where toolchains keep their data: checks fill caches there.
    """

    def __init__(
        self,
        sandboxes: Sandboxes,
        chosen: SandboxSettings | None,
        settings: CheckSettings,
        user: str,
        guarded: Iterable[str],
        tools: Sequence[str],
    ) -> None:
        self._sandboxes = sandboxes
        self._chosen = chosen
        self._settings = settings
        self._user = os.path.realpath(user)
        self._guarded = tuple(dict.fromkeys(map(os.path.realpath, guarded)))
        self._tools = tuple(tools)

    def limited(self, borrowed: Borrowed, root: str, variables: Mapping[str, str]) -> tuple[Borrowed, str]:
        """Return what a check in `root` has, with a launcher that also limits it, and the level in words."""
        launcher, words = borrowed.launcher, []
        if self._settings.network == NO_NETWORK:
            launcher = (*no_network.command(), *launcher)
        if self._chosen is not None:
            fence = self._fence(borrowed, root, variables)
            level, why = sandbox.choose(self._chosen.level, fence, self._sandboxes.support())
            launcher = (*launcher, *self._sandboxes.launcher(level, fence))
            words.append(f"{level}: {why}" if why else level)
        if self._settings.network == NO_NETWORK:
            words.append("no network")
        return borrowed._replace(launcher=launcher), ", ".join(words)

    def _fence(self, borrowed: Borrowed, root: str, variables: Mapping[str, str]) -> Fence:
        private = os.path.dirname(variables["TMPDIR"])
        lent = (os.path.join(root, name) for name in borrowed.ways)
        more = (variables["HOME"],) if self._settings.home == USER_HOME else ()
        extra = (
            place
            for place in map(os.path.realpath, (*self._tools, *lent, *private_layers.places(borrowed.launcher)))
            if self._may(place)
        )
        return Fence(
            tuple(
                dict.fromkeys((os.path.realpath(root), os.path.realpath(private), *map(os.path.realpath, more), *extra))
            ),
            self._guarded,
            (self._user,),
        )

    def _may(self, place: str) -> bool:
        """Return whether a place may be writable: it exists, and nothing of the user's repository is below."""
        return os.path.isdir(place) and not any(is_below(path, place) for path in (*self._guarded, self._user))
