"""The environment of a check: a private home and TMPDIR, the user's PATH and toolchains, and nothing of the repository.

`CheckEnvironment` makes the private folders, one set for each check, and removes them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from idumb.domain import canonical_json
from idumb.domain.paths import is_below
from idumb.domain.settings import PRIVATE_HOME, USER_HOME
from idumb.gates import toolchains
from idumb.system import escaping, private_folders

_NAME = "idumb"
"""Of the folder in TMPDIR that has the private folders of checks."""
_HOME = "HOME is the user's (checks.home: user)"
_NO_CONTROL = "nothing shows whether it passed before the work (checks.control: off)"


class Inputs(Struct, frozen=True):
    """What decides the environment of a run's checks.

    - `environment`: the user's, as far as `allowed` and the toolchains name it. `home` is absolute.
    - `inside`: absolute folders of the repository: its working tree first, then its git folder.
    - `controlled`: checks also run before the work.
    - `above`: the folders above the working tree of checks.
    - `since`: when the first builder may have begun, in nanoseconds.
    """

    environment: Mapping[str, str]
    allowed: Sequence[str]
    home: str
    inside: Sequence[str]
    home_of_checks: str = PRIVATE_HOME
    controlled: bool = True
    above: Sequence[str] = ()
    since: int = 0


def _search_path(path: str, inputs: Inputs, outside: Callable[[str], bool]) -> list[tuple[str, str | None]]:
    """Return each folder of PATH, and its path in the repository if it is there."""
    folders: list[tuple[str, str | None]] = []
    for folder in dict.fromkeys(path.split(os.pathsep)):
        if folder.startswith("/"):
            inner = next((folder[len(root) + 1 :] for root in inputs.inside if is_below(folder, root)), folder)
            folders.append((folder, None if outside(folder) else inner))
    return folders


GIT_SETTINGS = ("user.name", "user.email", "init.defaultbranch")
"""What a private home takes from the user's git configuration: tests may commit, and these settings start nothing."""


class Conditions(Struct, frozen=True):
    """Under which conditions one check runs.

    - `locations`: the toolchains that it sees.
    - `weaker`: why its result proves less, in words. `changed`: paths that decide which program it runs, and that
      changed since the run began.
    """

    variables: Mapping[str, str]
    locations: tuple[str, ...] = ()
    weaker: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class CheckEnvironment:
    """Gives each check of a run an environment of its own. `git_settings` returns the settings of the user's git.

    `variables` and `kept`, from variable to the location of a tool's data, are those of every check; the paths that
    differ for each one are added by `variables_of`. `exists` and `real` look at the disk.
    """

    def __init__(
        self,
        inputs: Inputs,
        git_settings: Callable[[], Mapping[str, str]] = dict,
        *,
        exists: Callable[[str], bool] = os.path.exists,
        real: Callable[[str], str] = os.path.realpath,
    ) -> None:
        self._inputs = inputs
        self._git_settings = git_settings
        self._session: private_folders.TemporaryFolder | None = None
        self._number = 0
        self._weaker = (
            *((_HOME,) if inputs.home_of_checks == USER_HOME else ()),
            *(() if inputs.controlled else (_NO_CONTROL,)),
        )
        # In a repository around the home, only the git folder is left out: tools are where they are.
        around = {*inputs.inside, *map(real, inputs.inside)}
        roots = tuple(root for root in around if not is_below(inputs.home, root))

        def outside(path: str) -> bool:
            return not any(is_below(path, root) or is_below(real(path), root) for root in roots)

        self.variables = {name: inputs.environment[name] for name in inputs.allowed if name in inputs.environment}
        self._search_path = _search_path(self.variables.get("PATH", os.defpath), inputs, outside)
        if not self.has_own_home:
            exists = lambda _: False  # noqa: E731 - tools find their defaults themselves
        found = toolchains.locations(inputs.environment, inputs.home, outside=outside, exists=exists)
        # A project that passes a location on purpose decides; the evidence names it all the same.
        self.kept = dict(found) | {
            name: self.variables[name] for name in toolchains.VARIABLES if self.variables.get(name)
        }

    @property
    def has_own_home(self) -> bool:
        return self._inputs.home_of_checks == PRIVATE_HOME

    @property
    def digest(self) -> str:
        """Return a hash of what its checks see, except for the paths that differ for each check."""
        return canonical_json.digest([self.variables, self.kept, self._search_path, self._inputs.home_of_checks])

    @property
    def locations(self) -> tuple[str, ...]:
        """Return the locations that the evidence names."""
        return tuple(f"{variable}={path}" for variable, path in self.kept.items())

    @property
    def caches(self) -> tuple[str, ...]:
        """Return the folders where toolchains keep what they downloaded or compiled; some may not exist."""
        return tuple(toolchains.caches(self.kept))

    def folders(self, root: str, present: Sequence[str] = ()) -> list[str]:
        """Return the folders of PATH for a check in `root`.

        A folder of the repository is replaced by that of the check's own tree if it is in a path of `present`.
        """
        names = [path.strip("/") for path in present]
        own = {inner for _, inner in self._search_path if inner and any(is_below(inner, name) for name in names)}
        rows = ((folder, inner) for folder, inner in self._search_path if inner is None or inner in own)
        return [folder if inner is None else f"{root}/{inner}" for folder, inner in rows]

    def variables_of(self, private: str, root: str, present: Sequence[str] = ()) -> dict[str, str]:
        """Return the variables of one check in `root`, whose own folders are in `private`."""
        # Python then compiles the tree again in each check, and writes nothing beside the user's packages.
        own = {"TMPDIR": f"{private}/t", "PYTHONDONTWRITEBYTECODE": "1"}
        if self.has_own_home:
            own["HOME"] = f"{private}/h"
        if "MISE_DATA_DIR" in self.kept:  # mise is in use, and trusts the files in `root` by this variable
            trusted = self.variables.get(toolchains.TRUSTED, "")
            own[toolchains.TRUSTED] = f"{trusted}:{root}" if trusted else root
        path = os.pathsep.join(self.folders(root, present))
        own |= {name: own["TMPDIR"] for name in ("TMP", "TEMP") if name in self.variables}
        return {**self.variables, **self.kept, "PATH": path, **own}

    @contextlib.contextmanager
    def opened(self, command: str, root: str, present: Sequence[str] = ()) -> Iterator[Conditions]:
        """Make the environment of one check that runs in `root`; remove its folders afterwards. Raises OSError.

        `present` are paths that git ignores and that are in `root` all the same.
        """
        private, changed = self._new_folder(), self._changed(command)
        try:
            self._make(private)
            yield Conditions(
                self.variables_of(private, root, present),
                self.locations,
                (*self._weaker, *(f"{self._short(path)} changed during the run" for path in changed)),
                changed,
            )
        finally:
            private_folders.remove_tree(private)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _changed(self, command: str) -> tuple[str, ...]:
        if not self._inputs.since:
            return ()
        files = toolchains.configuration(self.kept)
        base = self.kept.get("PYTHONUSERBASE", "")
        return toolchains.changed(command, self.folders(""), files, self._inputs.above, self._inputs.since, base)

    def _new_folder(self) -> str:
        """Return the path of the private folders of the next check."""
        if self._session is None:
            self._session = private_folders.TemporaryFolder(_NAME, tuple(self._inputs.inside))
        self._number += 1
        return f"{self._session.path}/{self._number}"

    def _make(self, private: str) -> None:
        os.mkdir(private, 0o700)
        for name in "ht":
            os.mkdir(f"{private}/{name}", 0o700)
        if self.has_own_home:
            with open(f"{private}/h/.gitconfig", "wb") as stream:
                stream.write(escaping.git_configuration(self._user_git))

    @cached_property
    def _user_git(self) -> Mapping[str, str]:
        settings = self._git_settings()
        return {name: settings[name] for name in GIT_SETTINGS if name in settings}

    def _short(self, path: str) -> str:
        """Return a path without the user's name, because reports are committed."""
        home = f"{self._inputs.home}/"
        return f"~/{path.removeprefix(home)}" if path.startswith(home) else path
