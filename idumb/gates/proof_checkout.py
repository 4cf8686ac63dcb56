"""What checks need of the working tree that shows a tree, of the sandbox around them, and of `checkout.prepare`.

The commands of `checkout.prepare` install what checks need.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from idumb.domain.errors import Refusal
from idumb.domain.proof.evidence import Evidence
from idumb.gates import toolchains

_OWN = frozenset({"HOME", "TMPDIR", "TMP", "TEMP", "PYTHONPYCACHEPREFIX"})
"""Variables that differ for each command."""
_MOST_OUTPUT = 2000


class ProofCheckout(Protocol):
    """A working tree of its own that holds exactly one tree.

    - `show` makes it hold a tree on top of a commit, and returns variables that a check needs.
    - `prepare` adds what `run` makes of the tree shown, unless it is there since an earlier time with this `identity`.
    - `renew`: the next `show` removes what earlier checks left, even if it shows the same tree. Until it is called
      again, nothing that a check of a `control` writes stays, not even in a cache.
    - `restore` puts back the files of the tree that a check changed, and returns their paths.
    - `provided`, `prepared`, `cached`: what it has besides the tree: the user's ignored paths, what `prepare` made, and
      what earlier checks left and the configuration keeps. `missing`: a sentence for each submodule without files.
    """

    @property
    def root(self) -> str: ...

    def show(self, tree: str, head: str | None) -> Mapping[str, str]: ...

    def prepare(self, identity: str, run: Callable[[], None]) -> None: ...

    def renew(self, *, control: bool = False) -> None: ...

    def restore(self) -> tuple[str, ...]: ...

    @property
    def provided(self) -> Sequence[str]: ...

    @property
    def prepared(self) -> Sequence[str]: ...

    @property
    def cached(self) -> Sequence[str]: ...

    @property
    def missing(self) -> Sequence[str]: ...


class Sandbox(Protocol):
    """Limits what a check writes and reaches."""

    def limited(self, root: str, variables: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
        """Return the arguments before those of a check in `root`, and the level in words."""


def prepare_identity(commands: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what decides the result besides the files of the tree: the commands, and the toolchain that they use."""
    import shutil  # it loads all compressors

    names = {word for command in commands for word in _words(command) if "/" not in word}
    programs = {name: shutil.which(name, path=environment.get("PATH", os.defpath)) for name in sorted(names)}
    facts = [
        list(commands),
        {name: value for name, value in sorted(environment.items()) if name not in _OWN},
        {name: _facts(path) for name, path in programs.items() if path is not None},
        [_facts(path) for path in toolchains.configuration(environment)],
    ]
    return json.dumps(facts)


def require_prepared(result: Evidence) -> None:
    """Refuse, with code `checkout.prepare`, if a command of `checkout.prepare` failed."""
    if result.passed:
        return
    output = result.output.strip()[-_MOST_OUTPUT:]
    how = f"exit {result.exit_code}" if result.exit_code is not None else result.result
    raise Refusal(
        "checkout.prepare",
        f"No check could run, because `{result.command}` (checkout.prepare) failed: {how}\n{output}".rstrip(),
        hint="Correct checkout.prepare in .idumb/config.yaml, or the files that it reads, then run the command again. "
        "If it needs your HOME, set checks.home to user",
        details={"command": result.command, "output": output},
    )


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _facts(path: str) -> list[object]:
    try:
        status = os.stat(path)
    except OSError:
        return [path]
    return [os.path.realpath(path), status.st_size, status.st_mtime_ns]
