"""The environment of a check: a private home and TMPDIR, the user's PATH and toolchains, and nothing of the repository.

`compute` is pure. `CheckEnvironment` makes the private folders, one set for each check, and removes them.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from idumb.app.ports.checks import HOME
from idumb.domain import canonical_json
from idumb.domain.settings import PRIVATE_HOME, USER_HOME
from idumb.gates import entry_points, toolchains
from idumb.lazy_dataclass import dataclass
from idumb.system.files import atomic_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from idumb.gates.python_bytecode import Bytecode
    from idumb.system.files.private_folders import TemporaryFolder

_NAME = "idumb"
"""Of the folder in TMPDIR that has the private folders of checks."""
_IN_PLACE = "it judges the files of the working tree, not the commit (checks: here)"
_HOME = "HOME is the user's (checks.home: user)"
_NO_CONTROL = "nothing shows whether it passed before the work (checks.control: off)"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What decides the environment of a run's checks.

    - `environment`: the user's, as far as `allowed` and the toolchains name it. `home` is absolute.
    - `inside`: absolute folders of the repository: its working tree first, then its git folder; empty if checks may see
      them.
    - `in_place`: checks judge the files of the working tree. `controlled`: they also run before the work.
    - `provided`: paths below the working tree that the proving tree has too.
    - `above`: the folders above the proving tree.
    """

    environment: Mapping[str, str]
    allowed: Sequence[str]
    home: str
    inside: Sequence[str]
    provided: Sequence[str] = ()
    home_of_checks: str = PRIVATE_HOME
    in_place: bool = False
    controlled: bool = True
    above: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Computed:
    """The environment of a run's checks, without the paths that differ for each check.

    - `kept`: variable to the location of a tool's data. `links`: path in the private home to its target.
    - `search_path`: the folders of PATH; one of the repository begins with _REPOSITORY.
    - `provided`: paths of the repository that the tree of a check has too. `home`: whose home a check gets.
    """

    variables: Mapping[str, str]
    kept: Mapping[str, str]
    links: Mapping[str, str]
    search_path: tuple[str, ...]
    provided: tuple[str, ...]
    home: str

    @property
    def locations(self) -> tuple[str, ...]:
        """Return the locations that the evidence names."""
        return (
            *(f"{variable}={path}" for variable, path in self.kept.items()),
            *(f"~/{name} -> {path}" for name, path in self.links.items()),
        )

    def folders(self, root: str, lent: Sequence[str] = ()) -> tuple[list[str], list[str]]:
        """Return the folders of PATH for a check in `root`, and those that it does not get, as below the repository.

        A folder of the repository is replaced by that of the check's own tree if it is provided or `lent`.
        """
        kept: list[str] = []
        omitted: list[str] = []
        for folder in self.search_path:
            if not folder.startswith(_REPOSITORY):
                kept.append(folder)
                continue
            inner = folder.removeprefix(_REPOSITORY)
            if any(_is_below(inner, path.strip("/")) for path in (*self.provided, *lent)):
                kept.append(f"{root}/{inner}")
            else:
                omitted.append(inner)
        return kept, omitted

    def variables_of(self, private: str, root: str, lent: Sequence[str] = ()) -> dict[str, str]:
        """Return the variables of one check in `root`, whose own folders are in `private`."""
        own = {"TMPDIR": f"{private}/t", "PYTHONPYCACHEPREFIX": f"{private}/p"}
        if self.home == PRIVATE_HOME:
            own["HOME"] = f"{private}/h"
        path = os.pathsep.join(self.folders(root, lent)[0])
        others = {name: own["TMPDIR"] for name in ("TMP", "TEMP") if name in self.variables}
        return {**self.variables, **self.kept, **self._trust(root), "PATH": path, **own, **others}

    def _trust(self, root: str) -> dict[str, str]:
        """Return the variable by which mise trusts the files in `root`, if mise is in use."""
        if "MISE_DATA_DIR" not in self.kept:
            return {}
        own = self.variables.get(toolchains.TRUSTED, "")
        return {toolchains.TRUSTED: f"{own}:{root}" if own else root}


_REPOSITORY = "\0/"
"""Stands for the user's working tree in `Computed.search_path`."""


def compute(
    inputs: Inputs,
    *,
    exists: Callable[[str], bool] = os.path.exists,
    real: Callable[[str], str] = os.path.realpath,
    read: Callable[[str], str] = lambda _: "",
) -> Computed:
    """Return the environment of a run's checks. It reads the disk only through its arguments."""
    # In a repository around the home, only the git folder is left out: tools are where they are.
    around = {*inputs.inside, *map(real, inputs.inside)}
    roots = tuple(root for root in around if not _is_below(inputs.home, root))

    def outside(path: str) -> bool:
        return not any(_is_below(path, root) or _is_below(real(path), root) for root in roots)

    variables = {name: inputs.environment[name] for name in inputs.allowed if name in inputs.environment}
    search_path = _search_path(variables.get("PATH", os.defpath), inputs, outside)
    kept: dict[str, str] = {}
    links: dict[str, str] = {}
    if inputs.home_of_checks == USER_HOME:
        exists = lambda _: False  # noqa: E731 - tools find their defaults themselves
    for variable, name, path in toolchains.locations(
        inputs.environment, inputs.home, outside=outside, exists=exists, read=read
    ):
        if name:
            links[name] = path
        elif variable not in variables:
            kept[variable] = path
    # A project that passes a location on purpose decides; the evidence names it all the same.
    kept |= {name: variables[name] for name in toolchains.VARIABLES if variables.get(name)}
    return Computed(variables, kept, links, search_path, tuple(inputs.provided), inputs.home_of_checks)


def _search_path(path: str, inputs: Inputs, outside: Callable[[str], bool]) -> tuple[str, ...]:
    folders: list[str] = []
    for folder in dict.fromkeys(path.split(os.pathsep)):
        if folder.startswith("/"):
            inner = next((folder[len(root) + 1 :] for root in inputs.inside if _is_below(folder, root)), folder)
            folders.append(folder if outside(folder) else _REPOSITORY + inner)
    return tuple(folders)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def git_configuration(settings: Mapping[str, str]) -> str:
    """Return the text of a git configuration file with these settings. No setting of it can start a program."""
    lines = []
    for name, value in settings.items():
        section, _, key = name.rpartition(".")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines += [f"[{section}]", f'\t{key} = "{escaped}"']
    return "\n".join((*lines, ""))


GIT_SETTINGS = ("user.name", "user.email", "init.defaultbranch")
"""What a private home takes from the user's git configuration: tests may commit, and these settings start nothing."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under which conditions one check runs.

    - `locations`: the toolchains that it sees. `omitted`: the folders of PATH that it does not see.
    - `weaker`: why its result proves less, in words. `changed`: paths of entry points that changed during the run.
    - `launcher`: the arguments before those of a check that sees folders of the user at other places.
    """

    variables: Mapping[str, str]
    locations: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    weaker: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()


class CheckEnvironment:
    """Gives each check of a run an environment of its own. The state of the entry points is recorded when it is made.

    Make it before the first builder starts. `git_settings` returns the settings of the user's git. The file `record`
    keeps the recorded state for a later process that continues an attempt of the same run (`continued`).
    """

    def __init__(
        self,
        inputs: Inputs,
        git_settings: Callable[[], Mapping[str, str]] = dict,
        *,
        record: str | None = None,
        run: str = "",
        continued: bool = False,
    ) -> None:
        self._inputs = inputs
        self._computed = compute(inputs, read=_text)
        self._can_view: bool | None = None
        self._git_settings = git_settings
        self._inside = tuple(inputs.inside)
        self._home = inputs.home
        self._session: TemporaryFolder | None = None
        self._bytecode: Bytecode | None = None
        self._is_watched = True
        self._number = 0
        self._weaker = (
            *((_IN_PLACE,) if inputs.in_place else ()),
            *((_HOME,) if inputs.home_of_checks == USER_HOME else ()),
            *(() if inputs.controlled else (_NO_CONTROL,)),
        )
        top = self._inside[0] if self._inside else ""
        self._user_path = tuple(self._computed.folders(top)[0])
        environments = [f"{top}/{path.strip('/')}" for path in inputs.provided]
        self._entry_points = entry_points.EntryPoints(
            toolchains.configuration_files(inputs.environment, inputs.home, self._computed.kept),
            self._user_path,
            [self._computed.kept.get("PYTHONUSERBASE") or f"{inputs.home}/.local", *environments],
            inputs.above,
            environments,
        )
        self._record, self._run = record, run
        if continued and record is not None:
            self._restore(record)

    @property
    def digest(self) -> str:
        """Return a hash of what its checks see, except for the paths that differ for each check."""
        computed = self._computed
        seen = [dict(computed.variables), dict(computed.kept), dict(computed.links), computed.search_path]
        return canonical_json.digest([*seen, computed.provided, computed.home])

    @property
    def caches(self) -> tuple[str, ...]:
        """Return the folders where toolchains keep what they downloaded or compiled; some may not exist."""
        return tuple(toolchains.caches({**self._computed.kept, **self._computed.links}))

    def unwatched(self) -> CheckEnvironment:
        """Return the same environment with folders of its own, for another thread. It compares no entry points."""
        environment = copy.copy(self)
        environment._session, environment._bytecode = None, None  # noqa: SLF001 - its own class
        environment._is_watched = False  # noqa: SLF001 - its own class
        return environment

    def watch(self, commands: Iterable[str]) -> None:
        """Record which programs these commands start."""
        self._entry_points.record(commands, self._user_path)
        if self._record is not None:
            self._save(self._record)

    def _restore(self, record: str) -> None:
        """Use the state that an earlier process recorded; without one, that of now."""
        with contextlib.suppress(LookupError, TypeError, ValueError):
            content = json.loads(_text(record, 1 << 22))
            if content["run"] == self._run:
                self._entry_points.restore(content)

    def _save(self, record: str) -> None:
        with contextlib.suppress(OSError):  # without the file, a later process starts with what it finds
            content = {"run": self._run, **self._entry_points.as_dict()}
            atomic_write.write(record, json.dumps(content).encode("ascii"), durable=False, mode=0o600)

    @contextlib.contextmanager
    def opened(
        self, command: str, root: str, lent: Sequence[str] = (), views: Sequence[str] = ()
    ) -> Iterator[Conditions]:
        """Make the environment of one check that runs in `root`; remove its folders afterwards. Raises OSError.

        `lent` are paths of the user's working tree that it has, in addition to those that are provided. `views` name
        what it sees of the user's surroundings.
        """
        private = self._new_folder()
        if views:
            with self._opened_with(views, private, root, lent) as conditions:
                yield conditions
            return
        changed = self._entry_points.changed(command, self._user_path) if self._is_watched else ()
        from idumb.system.files import private_folders

        try:
            self._make(private, self._computed.home)
            self._lend_bytecode(f"{private}/p", root)
            yield Conditions(
                self._computed.variables_of(private, root, lent),
                self._computed.locations,
                tuple(self._computed.folders(root, lent)[1]),
                (*self._weaker, *(f"{self._short(path)} changed during the run" for path in changed)),
                changed,
            )
        finally:
            self._keep_bytecode(f"{private}/p")
            private_folders.remove_tree(private)

    @contextlib.contextmanager
    def _opened_with(self, views: Sequence[str], private: str, root: str, lent: Sequence[str]) -> Iterator[Conditions]:
        from idumb.gates import surroundings
        from idumb.system.files import private_folders

        computed, own = self._computed, {}
        if HOME in views:
            computed = compute(dataclasses.replace(self._inputs, home_of_checks=USER_HOME), read=_text)
            own = {HOME: f"{private}/h"}
        try:
            self._make(private, computed.home)
            os.mkdir(f"{private}/p", 0o700)
            user = self._inside[0] if self._inside else root
            with surroundings.opened(views, private, user, root, self._home) as launcher:
                yield Conditions({**computed.variables_of(private, root, lent), **own}, launcher=launcher)
        finally:
            private_folders.remove_tree(private)

    @property
    def has_own_home(self) -> bool:
        return self._computed.home == PRIVATE_HOME

    def can_view(self) -> bool:
        """Return whether a check can see folders of the user at other places, and cannot change them."""
        if self._can_view is None:
            from idumb.gates import surroundings

            self._can_view = surroundings.can_view(self._home, self._new_folder())
        return self._can_view

    def _new_folder(self) -> str:
        """Return the path of the private folders of the next check."""
        if self._session is None:
            from idumb.system.files import private_folders

            self._session = private_folders.TemporaryFolder(_NAME, self._inside)
        self._number += 1
        return f"{self._session.path}/{self._number}"

    def _lend_bytecode(self, prefix: str, root: str) -> None:
        """Make the folder for bytecode; it has what earlier checks compiled and no builder or check can have forged."""
        try:
            os.rename(self._bytecode_folder, prefix)
        except OSError:
            os.mkdir(prefix, 0o700)
            return
        from idumb.gates import python_bytecode
        from idumb.system.files import private_folders

        if self._bytecode is None:
            self._bytecode = python_bytecode.Bytecode(self._entry_points.started)
        try:
            self._bytecode.clean(prefix, root)
        except OSError:  # a check removed permissions, or put something else there
            private_folders.remove_tree(prefix)
            os.mkdir(prefix, 0o700)

    def _keep_bytecode(self, prefix: str) -> None:
        try:
            os.rmdir(prefix)  # most checks run no Python
        except OSError:
            with contextlib.suppress(OSError):
                os.rename(prefix, self._bytecode_folder)

    @property
    def _bytecode_folder(self) -> str:
        """Return the folder that keeps the bytecode between two checks."""
        return f"{self._session.path}/p" if self._session is not None else ""

    def variables_for(self, root: str) -> Mapping[str, str]:
        """Return the variables of a check in `root`; those of its private folders name none that exists."""
        return self._computed.variables_of("", root)

    @cached_property
    def _user_git(self) -> Mapping[str, str]:
        settings = self._git_settings()
        return {name: settings[name] for name in GIT_SETTINGS if name in settings}

    def _short(self, path: str) -> str:
        """Return a path without the user's name, because reports are committed."""
        home = f"{self._home}/"
        return f"~/{path.removeprefix(home)}" if path.startswith(home) else path

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _make(self, private: str, home: str) -> None:
        os.mkdir(private, 0o700)
        for name in "ht":
            os.mkdir(f"{private}/{name}", 0o700)
        if home != PRIVATE_HOME:
            return
        for name, target in self._computed.links.items():
            os.makedirs(os.path.dirname(f"{private}/h/{name}"), mode=0o700, exist_ok=True)
            os.symlink(target, f"{private}/h/{name}")
        with open(f"{private}/h/.gitconfig", "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(git_configuration(self._user_git))


def _text(path: str, most: int = 1 << 16) -> str:
    """Return the start of a regular file, "" without one."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return ""
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(most)
    except OSError:
        return ""
