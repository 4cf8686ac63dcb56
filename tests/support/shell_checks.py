"""Checks of a run whose proof checkout is a plain folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.checks import ShellChecks
from idumb.gates.shell_command import Shell
from idumb.system import child_process


class Proving:
    """A working tree of checks that holds whatever is in `root`."""

    provided = prepared = cached = missing = tuple[str, ...]()

    def __init__(self, root: Path | str) -> None:
        self.root = str(root)

    def show(self, *_: object) -> Mapping[str, str]:
        return {}

    def prepare(self, identity: str, run: Callable[[], None]) -> None: ...

    def renew(self, *, control: bool = False) -> None: ...

    def restore(self) -> tuple[str, ...]:
        return ()


def shell_checks(
    root: Path | str, allowed: Sequence[str] = ("PATH", "HOME"), redact: Callable[[str], str] = str, **more: Any
) -> ShellChecks:
    given: dict[str, Any] = {
        "root": str(root),
        "allowed": allowed,
        "shell": Shell(redact),
        "run_id": "run-1",
        "proof": Proving(root),
    }
    if "private" not in more:
        environment = child_process.environment(allowed)
        given["private"] = CheckEnvironment(Inputs(environment, allowed, os.path.expanduser("~"), ()))
    return ShellChecks(**given | more)
