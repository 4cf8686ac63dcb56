"""T13: opening a repository runs nothing, and neither do read-only commands and commands without consent.

Every payload is planted in a copy of a repository with an unfinished run, as if it had been unpacked. The commands run;
then no marker may exist, and no byte of the repository outside idumb's own folder may differ. At last the payload is
fired on purpose: a payload that cannot fire proves nothing.
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from idumb.system import escaping
from tests.crash.programme import FOREIGN, OTHER, TRACEBACK, Programme, Tally
from tests.hostile import payloads, unpacked
from tests.hostile.fuzzing import everything
from tests.hostile.payloads import Payload, Scene
from tests.support import project as projects
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import Entry, GitSandbox
from tests.support.project import making, shell, task

Thing = TypeVar("Thing")

PROGRAM = (sys.executable, "-P", "-m", "idumb")
SECONDS = 30
MEMORY = 2 * 1024**3
READING: Mapping[str, tuple[str, ...]] = {
    "status": ("status",),
    "next": ("next",),
    "check-plan": ("check-plan", "1"),
    "check-plan --diff": ("check-plan", "1", "--diff"),
    "graph": ("graph", "1", "--format", "mermaid"),
    "roadmap": ("roadmap",),
    "show": ("show", "T1-01"),
    "show --envelope": ("show", "T1-01", "--envelope"),
    "show --diff": ("show", "T1-01", "--diff"),
    "show --usage": ("show", "1", "--usage"),
    "decisions": ("decisions",),
    "show --debug": ("show", "T1-01", "--debug"),
    "debug": ("debug", "inspect", "1"),
    "debug validate": ("debug", "validate", "1"),
    "handoff": ("handoff", "list"),
    "dlq": ("dlq", "list"),
    "log": ("log", "1"),
    "doctor": ("doctor",),
    "audit": ("audit", "verify"),
    "backup": ("backup", "none.backup", "--verify"),
    "report": ("report", "1"),
    "watch": ("watch", "1", "--once"),
    "metrics": ("metrics",),
    "config": ("config", "list", "--all"),
    "workflow": ("workflow", "check", "release"),
}
"""Commands that only look."""
WITHOUT_CONSENT: Mapping[str, tuple[str, ...]] = {
    "execute-phase": ("execute-phase", "1"),
    "execute": ("execute", "deploy.yaml"),
    "quick": ("quick", "Fix it", "--files", "a.txt"),
    "resume": ("resume", "1"),
    "verify-work": ("verify-work", "1"),
    "prove": ("prove", "1"),
    "plan research": ("plan", "research", "1"),
    "plan-phase": ("plan-phase", "1"),
    "approve": ("approve", "1"),
    "amend": ("amend", "1", "--widen", "T1-03", "modify x.txt"),
    "start": ("start", "T1-03"),
    "submit": ("submit", "T1-03"),
    "give-up": ("give-up", "T1-03", "--why", "no"),
    "take": ("take", "T1-03"),
    "rollback": ("rollback", "1", "--to", "start"),
    "undo": ("undo",),
    "deinit": ("deinit",),
}
"""Commands that would run or write, but that nobody's word was given for."""
WRITING = ("init", "stop", "drop", "accept", "skip", "decide", "archive", "install", "plan", "import")
"""Commands whose whole sense is to write; they run nothing of a plan."""
ELSEWHERE = ("fake-model", "help", "mcp", "schema")
"""Commands that look at no repository themselves."""
COMMANDS = {**READING, **WITHOUT_CONSENT}
ALL: tuple[Payload, ...] = (*payloads.GIT, *payloads.PROGRAMS, *unpacked.PAYLOADS)


class Template:
    """The repository into which payloads are planted: two tasks done, the third failed. Made once."""

    def __init__(self, folder: Path) -> None:
        project = projects.create(GitSandbox.create(folder / "template"))
        last = task("T1-03", check="test -e later", after="T1-02", steps=[shell("true")])
        project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"), last])
        assert project.execute("--max-attempts", "1").code == 1
        self._root = project.folder
        self._folder = folder
        self._number = 0

    def copy(self) -> Scene:
        """Another copy, without any consent."""
        self._number += 1
        place = self._folder / f"case-{self._number}"
        shutil.copytree(self._root, place / "repo", symlinks=True)
        return Scene(GitSandbox(place / "repo"), place / "marker")


def planted(template: Template, payload: Payload) -> Scene:
    scene = template.copy()
    payload.plant(scene)
    return scene


def ask(scene: Scene, payload: Payload, command: str) -> Answer:
    """One command in the repository, without a terminal."""
    argv = COMMANDS[command]
    if not payload.alone:
        limits = "tests.hostile.hostile_repositories:bounded"
        return warm.run(scene.root, *argv, hook=limits, given=SECONDS)
    done = subprocess.run(
        [*PROGRAM, *argv],
        cwd=scene.root,
        env={**os.environ, "PATH": payload.path + os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    out, err = (one.decode("utf-8", "surrogateescape") for one in (done.stdout, done.stderr))
    return Answer(done.returncode, out, err)


def bounded(seconds: int) -> None:
    """In the process of a command: a signal ends it if it waits forever, and its memory is limited."""
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def problems(
    scene: Scene, payload: Payload, commands: Sequence[str]
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Every forbidden effect of a command: (kind of failure, message)."""
    before = _ledger(scene)
    for command in commands:
        answer = ask(scene, payload, command)
        yield from _wrong(command, answer)
        if scene.marker.exists():
            scene.marker.unlink()
            yield FOREIGN, f"idumb {' '.join(COMMANDS[command])} ran what the repository brought"
        if answer.code == 0 and command in ("execute-phase", "execute", "resume", "verify-work", "prove"):
            yield FOREIGN, f"idumb {command} went on without consent: {answer.out}"
    after = _ledger(scene)
    # What a look at the work tree found may be kept for the next one: new objects, and the ref that names them.
    kept = ("/.git/objects/", "/refs/idumb/worktrees/main/")
    every = {path for path, _ in before.items() ^ after.items()}
    changed = sorted(path for path in every if not any(place in path for place in kept))
    if changed:
        yield OTHER, f"changed: {changed}"


def _wrong(command: str, answer: Answer) -> Iterator[tuple[str, str]]:
    for text in (answer.out, answer.err):
        if "Traceback" in text or "idumb has a defect" in text:
            yield TRACEBACK, f"{command}: {text[-1500:]}"
        if escaping.show(text) != text:
            yield OTHER, f"{command} shows characters that steer or hide"
    if answer.code not in range(6):
        yield OTHER, f"{command} ends with {answer.code}: {answer.err[-500:]}"


def _ledger(scene: Scene) -> dict[str, Entry]:
    """Return everything in the case's folder except idumb's own files beside git's."""
    own = str(scene.root / ".git" / "idumb")
    entries = everything(scene.root.parent)
    return {path: entry for path, entry in entries.items() if not f"{path}/".startswith(f"{own}/")}


def chosen(number: int, count: int) -> list[str]:
    """The commands of a sample: one that would run tasks, and the others in turn."""
    others = [command for command in COMMANDS if command != "execute-phase"]
    at = number * (count - 1) % len(others)
    return [*(others + others)[at : at + count - 1], "execute-phase"]


def in_turn(chance: random.Random) -> list[Payload]:
    """All payloads and harms, one of each kind and then the next."""
    harms: dict[str, list[Payload]] = {}
    for harm in unpacked.HARMS:
        harms.setdefault(" ".join(harm.name.split()[:2]), []).append(harm)
    kinds: list[Sequence[Payload]] = [payloads.GIT, payloads.PROGRAMS, unpacked.PAYLOADS]
    kinds += _shuffled(chance, harms.values())
    rounds = itertools.zip_longest(*(_shuffled(chance, kind) for kind in kinds))
    return [payload for one in rounds for payload in one if payload is not None]


def _shuffled(chance: random.Random, things: Iterable[Thing]) -> list[Thing]:
    return chance.sample(many := list(things), len(many))


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    """Each payload with all commands; with a size, that many payloads with a sample of them."""
    template = Template(folder)
    every: list[Payload] = [*ALL, *unpacked.HARMS] if size is None else in_turn(random.Random(seed))[:size]
    for number, payload in enumerate(every):
        commands = list(COMMANDS) if size is None else chosen(number + seed, 3 if payload.alone else 5)
        case(template, payload, commands, tally)


def case(template: Template, payload: Payload, commands: Sequence[str], tally: Tally) -> None:
    scene = planted(template, payload)
    tally.cases += 1
    tally.note("commands run", len(commands))
    for kind, words in problems(scene, payload, commands):
        tally.fail(kind, payload.name, words)
    if payload.fire is not None:
        payload.fire(scene)
        tally.note("payloads that went off when they were set off", scene.marker.exists())
        if not scene.marker.exists():
            tally.fail(OTHER, payload.name, "cannot go off here, so it proves nothing")


PROGRAMME = Programme(
    "T13", "hostile repositories", len(ALL) + len(unpacked.HARMS), None, run, (FOREIGN, TRACEBACK), push=3
)
