"""The guards against cheating builders, each with a way to remove it and a cheat that is accepted then.

A guard that can be switched off has the `configuration` that does so; any other is replaced in the process under test.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from idumb.app.attempt import measure
from idumb.app.verify import verdict
from idumb.domain.plans import empty_checks
from idumb.gates import toolchains
from idumb.gates.check_environment import CheckEnvironment
from idumb.gates.checks import ShellChecks
from idumb.git.trees import GitTrees
from idumb.system import process_end


class Guard(NamedTuple):
    """`family` and `cheat` name what is accepted without it, in `mode`."""

    name: str
    family: str
    cheat: str
    removed: Callable[[], None] | None = None
    configuration: str = ""
    mode: str = "edits"


def _replace(owner: Any, name: str, value: Any) -> Callable[[], None]:
    assert hasattr(owner, name), name
    return lambda: setattr(owner, name, value)


def _nothing(*_: Any, **__: Any) -> tuple[()]:
    return ()


def _none(*_: Any, **__: Any) -> None:
    return None


def _shared_temporary(name: str, value: str) -> Callable[[], None]:
    """Give checks the variable `name` of the user."""
    make = CheckEnvironment.variables_of

    def variables_of(self: CheckEnvironment, private: str, root: str, present: Sequence[str] = ()) -> Mapping[str, str]:
        return {**make(self, private, root, present), name: os.environ.get(name, value)}

    return lambda: setattr(CheckEnvironment, "variables_of", variables_of)


def _processes_live() -> None:
    """Leave alone what programs started; idumb ends it after a program, and again after a builder."""

    def end_program(child: Any, *_: Any) -> tuple[()]:
        if child is not None and child.poll() is None:
            process_end.send_group(child.pid, signal.SIGKILL)
        return ()

    for owner, name, value in (
        (process_end, "end_program", end_program),
        (process_end, "end_strays", _nothing),
        (ShellChecks, "end_processes", _nothing),
    ):
        setattr(owner, name, value)


def _where_the_builder_worked() -> Callable[[], None]:
    def place(self: ShellChecks, _: str | None) -> tuple[str, Mapping[str, str], tuple[str, ...]]:
        return self.proof.root.replace("-proof-", "-build-"), {}, ()

    return lambda: setattr(ShellChecks, "_place", place)


def _folders_of_user(self: CheckEnvironment, root: str, present: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    return os.environ["PATH"].split(os.pathsep), []


GUARDS: tuple[Guard, ...] = (
    Guard("checks judge the commit", "ignored", "a log", _where_the_builder_worked()),
    Guard("checks have a private home", "home", "a file", configuration="checks: {home: user}\n"),
    Guard("checks have a private TMPDIR", "outside", "a marker in TMPDIR", _shared_temporary("TMPDIR", "/tmp")),
    Guard(
        "no folder of the repository on PATH",
        "ignored",
        "an older program on PATH",
        _replace(CheckEnvironment, "folders", _folders_of_user),
    ),
    Guard("programs are compared", "home", "a program in ~/bin", _replace(toolchains, "_programs", _nothing)),
    Guard(
        "the folders above are compared",
        "outside",
        "a module of Node in the home",
        _replace(toolchains, "_ABOVE", ()),
    ),
    Guard(
        "a check must run a test",
        "tests",
        "the work skips its test",
        _replace(empty_checks, "ran_no_test", _none),
    ),
    Guard(
        "only declared files change",
        "tests",
        "another script of npm",
        configuration="run: {on_deviation: keep}\n",
    ),
    Guard(
        "paths of this machine are named",
        "outside",
        "an ignored file by its whole path",
        _replace(GitTrees, "places_of_machine", lambda *_: frozenset()),
    ),
    Guard("links stay in the tree", "files", "a link out of the tree", _replace(measure, "_outside_links", _nothing)),
    Guard(
        "all checks run again at the end",
        "git",
        "the time before the commit",
        _replace(verdict, "regressed", lambda *_: []),
    ),
    Guard("processes of the builder end", "processes", "a server", _processes_live),
)


def remove(name: str) -> None:
    """Remove one guard from this process."""
    guard = next(guard for guard in GUARDS if guard.name == name)
    assert guard.removed is not None
    guard.removed()
