"""The commands of `checkout.prepare`, which install what checks need: what decides their result, and their failure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from idumb.domain.errors import Refusal
from idumb.domain.plans import shell
from idumb.domain.proof.evidence import Evidence
from idumb.gates import toolchains

_OWN = frozenset({"HOME", "TMPDIR", "TMP", "TEMP", "PYTHONPYCACHEPREFIX"})
"""Variables that differ for each command."""
_MOST_OUTPUT = 2000


def prepare_identity(commands: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what decides the result besides the files of the tree: the commands, and the toolchain that they use."""
    import shutil  # it loads all compressors

    words = {word for command in commands for word in (*shell.read(command).programs, *command.split())}
    names = {word for word in words if "/" not in word}  # an argument may name a program: uv venv --python python3.12
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
    how += f" (it may need {result.may_need})" if result.may_need else ""
    raise Refusal(
        "checkout.prepare",
        f"No check could run, because `{result.command}` (checkout.prepare) failed: {how}\n{output}".rstrip(),
        hint="Correct checkout.prepare in .idumb/config.yaml, or the files that it reads; if it needs your HOME, set "
        "checks.home to user",
        details={"command": result.command, "output": output},
    )


def _facts(path: str) -> list[object]:
    try:
        status = os.stat(path)
    except OSError:
        return [path]
    return [os.path.realpath(path), status.st_size, status.st_mtime_ns]
