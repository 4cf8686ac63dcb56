"""Results of server and agent faults with real agents: `python -m tests.agents.faults` prints the table."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.adapters.agents import recorder
from tests.agents import installed
from tests.agents.inside import ADDRESS
from tests.support import project as projects
from tests.support.ended import running
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

AGENTS = ("claude", "codex")
PAGE = installed.ROOT / "tests" / "agents" / "faults.md"
FAULTS: Mapping[str, tuple[str, ...]] = {
    "server closed": (),
    "401": ("answers: [{fault: unauthorized}]",),
    "429": ("answers: [{fault: rate-limited}]",),
    "500": ("answers: [{fault: server-error}]",),
    "prompt too long": ("answers: [{fault: context}]",),
    "truncated stream": ("answers: [{fault: truncated, say: an answer that is cut in the middle}]",),
    "garbage": ("answers: [{fault: garbage}]",),
    "silence": ("answers: [{fault: silent, seconds: 120}]",),
    "slow drip": ("answers: [{fault: drip, seconds: 300, say: an answer that comes in drops}]",),
    "it does nothing and says it is done": ("answers: [{say: All done and tested.}]",),
    "agent killed": ("{tools: true, answers: [{run: 'kill -9 $PPID'}, {say: done}]}",),
    "agent that forks and stays": (
        "{tools: true, answers: [{run: 'setsid sleep 307 >/dev/null 2>&1 & echo x > a.txt'}, {say: done}]}",
    ),
}
"""What is scripted; nothing means that nobody listens."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Of the one attempt, and of the command; `leftovers` are processes that it left running."""

    outcome: str
    kind: str
    code: int
    message: str
    leftovers: list[int]


def ending(project: Project, name: str, fault: str) -> Ending:
    """Run one task with an agent that meets a fault."""
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", fields="- **Timeout:** 40s\n")])
    installed.configure(
        project,
        name,
        options={"shell": True},
        idle_timeout="15s",
        more={"retry": {"calls": 1}, "run": {"halt_after": 1}},
    )
    command = ("execute-phase", "1", "--approve", project.approval(), "--max-attempts", "1", "--json")
    ended = installed.alone(project, name, FAULTS[fault], *command)
    finished = project.events("1", "--kind", "attempt.finished")
    assert finished, ended.out + ended.err
    built = finished[-1]["payload"]["builder"]
    error = ended.answer["error"]
    words = built["message"] or (error["message"] if error else "done")
    words = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8901", words)
    return Ending(built["outcome"], built["failure"] or "-", ended.code, words, _leftovers())


def _leftovers() -> list[int]:
    return [pid for pid, line, _ in running() if line.split(b"\0")[:2] == [b"sleep", b"307"]]


def documented() -> dict[tuple[str, str], tuple[str, str, int]]:
    """(agent, fault) to outcome, kind and exit code, as the page has it."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[1] in AGENTS and cells[4].isdigit():
            rows[cells[1], cells[0]] = (cells[2], cells[3], int(cells[4]))
    return rows


def row(fault: str, name: str, ended: Ending) -> str:
    words = ended.message.replace("|", "\\|")
    words = words if len(words) <= 160 else words[:157] + "..."
    return f"| {fault} | `{name}` | {ended.outcome} | {ended.kind} | {ended.code} | {words} |"


if __name__ == "__main__":
    os.environ |= recorder.variables("codex", ADDRESS)
    for given in FAULTS:
        for agent in AGENTS:
            with tempfile.TemporaryDirectory() as place:
                project = projects.create(GitSandbox.create(Path(place) / "repo"))
                sys.stdout.write(row(given, agent, ending(project, agent, given)) + "\n")
                sys.stdout.flush()
