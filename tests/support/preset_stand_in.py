"""Stand-ins for command-line agents: each runs a shell script, then prints the recorded report of the real agent.

A script that exits, dies or never ends prints no report, like an agent that does so.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

PLACE = Path(__file__).parents[1] / "adapters" / "agents" / "recorded"
REPLY = "The greeting is written."
"""The last message of every recorded agent."""
REPORT = "=== what follows is the report\n"
"""Printed between the work and the report, so that a test can tell them apart."""


def recorded(name: str, scene: str = "success", says: str = REPLY) -> bytes:
    """Return the recorded standard output of the newest version, with another last message."""
    text = (_newest(name) / f"{scene}.out").read_text(encoding="utf-8")
    return text.replace(json.dumps(REPLY), json.dumps(says)).encode()


def _newest(name: str) -> Path:
    return max((PLACE / name).iterdir(), key=lambda place: [int(part) for part in place.name.split(".")])


def write_program(folder: Path, name: str, script: str, *, says: str = REPLY, scene: str = "success") -> Path:
    """An executable called `name` in a folder: the script, then the report."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{name}.out"
    report.write_bytes(recorded(name, scene, says))
    errors = _newest(name) / f"{scene}.err"
    says_so = f"printf '\\n%s' {shlex.quote(REPORT)}"
    tells = f"cat {shlex.quote(str(report))}; cat {shlex.quote(str(errors))} >&2"
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n{says_so}\n{tells}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def work(output: str) -> str:
    """Return the output before the report."""
    before, _, _ = output.partition(f"\n{REPORT}")
    return before


def session(name: str) -> str:
    """The id that the recorded agent gave its conversation."""
    keys: Sequence[str] = ("session_id", "sessionId", "sessionID", "thread_id")
    for line in recorded(name).splitlines():
        message = json.loads(line)
        ids = [message[key] for key in keys if isinstance(message.get(key), str)]
        if ids:
            return str(ids[0])
    raise AssertionError(name)
