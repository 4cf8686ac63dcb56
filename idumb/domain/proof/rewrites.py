"""Files of the commit that a check changed: whether the check still proves something. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from idumb.domain.plans import commands, run_files

_SNAPSHOT = re.compile(r"(?:^|/)__snapshots__/|\.(?:snap|ambr)$")
"""What test programs record of a result, and complete by themselves."""


def judged(command: str, changed: Iterable[str]) -> tuple[str, ...]:
    """Return those of the paths that decide the result of the command: tests, and files that it names or runs."""
    files = run_files.of_command(command)
    script = commands.read(command)
    named = {w.text.removeprefix("./") for part in script.commands for w in (*part.words, *part.targets)}
    named.update(files.programs, files.tests)
    return tuple(path for path in changed if path in named or (run_files.is_test(path) and not _SNAPSHOT.search(path)))
