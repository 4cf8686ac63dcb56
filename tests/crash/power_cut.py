"""T3: the power fails while a command runs, on ext4 and XFS in image files; then `resume` completes the work.

The power is cut either by the command itself, before or after one of its durable calls, or from outside at a random
moment. The events that the log had acknowledged before are recorded on another file system.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash import disk, harness
from tests.crash.disk import Disk
from tests.crash.harness import Ending
from tests.crash.programme import ENDING, LOST_BYTES, LOST_CHECKPOINT, OTHER, TRACEBACK, Programme, Tally
from tests.crash.shapes import SHAPES
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project
from tests.support.warm import Started

EXECUTE, RESUME, ROLLBACK, UNDO = "execute-phase", "resume", "rollback", "undo"
COMMANDS = (EXECUTE, RESUME, ROLLBACK, UNDO)
ROLL_TO = "T1-02"


@dataclass(frozen=True, slots=True)
class Known:
    """An undisturbed command: the names of its points, its duration and its final state."""

    points: tuple[str, ...]
    seconds: float
    ending: Ending


class Scene:
    """The project on one disk, with an image of the disk before each command whose power is cut."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.disk = Disk(kind, folder)
        self.host = folder / f"host-{kind}"
        self.host.mkdir()
        self.state = self.host / "state"
        self.consent = ""
        self.known: dict[str, Known] = {}

    @property
    def project(self) -> Project:
        place = self.disk.place / "repo"
        return Project(GitSandbox(place), place)

    def prepare(self, commands: Sequence[str] = COMMANDS) -> None:
        """Create the project, and an image of the disk before each command."""
        self.disk.make()
        self.state.mkdir()
        self.consent = SHAPES[0].build(self.disk.place / "repo").approval()
        self.save(EXECUTE)
        self._undisturbed(EXECUTE, keep=ROLLBACK)
        if ROLLBACK in commands or UNDO in commands:
            self._undisturbed(ROLLBACK, keep=UNDO)
        if UNDO in commands:
            self._undisturbed(UNDO)
        if RESUME in commands:
            self._killed()
            self._undisturbed(RESUME)

    def _killed(self) -> None:
        """Create a run that was killed between two attempts of its second task."""
        self.load(EXECUTE)
        given = {"at": "after SqliteEventLog.append step.finished", "occurrence": 3, "fine": True}
        assert self.command(EXECUTE, given).code == harness.KILLED
        self.save(RESUME)

    def _undisturbed(self, command: str, *, keep: str | None = None) -> None:
        self.load(command)
        count = self.host / f"points-{command}"
        begun = time.monotonic()
        answer = self.command(command, {"count": str(count), "fine": True})
        seconds = time.monotonic() - begun
        assert answer.code == 0, (command, answer)
        points = tuple(count.read_text(encoding="utf-8").splitlines())
        self.known[command] = Known(points, seconds, harness.ending(self.project))
        if keep is not None:
            self.save(keep)

    def save(self, name: str) -> None:
        """Keep disk and state directory as they are now, under a name."""
        self.disk.save(name)
        shutil.copytree(self.state, self.host / f"state-{name}")

    def load(self, name: str, *, state_on_disk: bool = False) -> None:
        self.disk.load(name)
        self.state = self.disk.place / "state" if state_on_disk else self.host / "state"
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.copytree(self.host / f"state-{name}", self.state)
        subprocess.run(["sync", "--file-system", str(self.disk.place)], check=True)

    def argv(self, command: str) -> tuple[str, ...]:
        if command in (EXECUTE, RESUME):
            return (command, "1", "--approve", self.consent, "--json")
        return (
            ("rollback", "1", "--to", ROLL_TO, "--yes", "--json")
            if command == ROLLBACK
            else (*harness.undoing(self.project), "--json")
        )

    def start(self, command: str, given: dict[str, Any] | None = None) -> Started:
        environment = {"XDG_STATE_HOME": str(self.state)}
        hook = harness.ARM if given is not None else ""
        return warm.start(self.project.folder, *self.argv(command), environment=environment, hook=hook, given=given)

    def command(self, command: str, given: dict[str, Any] | None = None) -> Answer:
        return self.start(command, given).wait()


@dataclass(frozen=True, slots=True)
class Case:
    """`at` is the point at which the command cuts its own power; None: from outside, after `share` of its time."""

    number: int
    kind: str
    command: str
    at: int | None
    share: float
    state_on_disk: bool

    def __str__(self) -> str:
        when = f"at point {self.at}" if self.at is not None else f"after {self.share:.3f} of its time"
        return f"case {self.number}: {self.command} on {self.kind}, power cut {when}"


def cases(size: int, chance: random.Random, scenes: dict[str, Scene], commands: Sequence[str]) -> Iterator[Case]:
    """Return every kind of file system with every command in turn, with random points and moments."""
    kinds = sorted(scenes)
    for number in range(size):
        kind = kinds[number % len(kinds)]
        command = commands[number // len(kinds) % len(commands)]
        if number >= 8:
            command = chance.choices(COMMANDS, (5, 2, 2, 1))[0]
        points = len(scenes[kind].known[command].points)
        at = chance.randrange(points) if chance.random() < 0.6 else None
        yield Case(number, kind, command, at, chance.uniform(0.02, 1.0), chance.random() < 0.5)


def cut_and_go_on(scene: Scene, case: Case, tally: Tally, plant: str = "") -> None:
    """Run one case and count its failures in the tally."""
    scene.load(case.command, state_on_disk=case.state_on_disk)
    acks = scene.host / f"acks-{case.number}"
    given = {"acks": str(acks), "fine": True, "plant": plant or None}
    if case.at is not None:
        answer = scene.command(case.command, {**given, "at": case.at, "cut": str(scene.disk.place)})
        if answer.code != harness.KILLED:  # projections depend on the time, so a run may have fewer points
            tally.note("cut right after the end")
            disk.cut(str(scene.disk.place))
    else:
        answer = _cut_from_outside(scene, case, given)
    tally.note(f"{case.command} on {case.kind}")
    if "Traceback" in answer.err:
        tally.note("ended with a traceback while its disk was gone")
    scene.disk.unmount()
    scene.disk.mount()
    kept = [json.loads(line) for line in acks.read_text(encoding="ascii").splitlines()] if acks.exists() else []
    acks.unlink(missing_ok=True)
    lost = list(_after_the_cut(scene.project, kept))
    for kind, words in lost or _go_on(scene, case, kept):
        tally.fail(kind, str(case), words)


def _cut_from_outside(scene: Scene, case: Case, given: dict[str, Any]) -> Answer:
    running = scene.start(case.command, given)
    threading.Event().wait(case.share * scene.known[case.command].seconds)
    disk.cut(str(scene.disk.place))
    disk.kill(running.pid)
    return running.wait()


def _after_the_cut(project: Project, kept: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Assert the state before any command reads it: acknowledged data exists, and its files are not empty."""
    gone = list(harness.lost(project, kept))
    yield from gone
    if gone:
        return
    checked = project.repo.try_git("fsck", "--full", "--no-dangling")
    if checked.returncode != 0:
        yield LOST_CHECKPOINT, f"git fsck: {checked.stderr.decode()}{checked.stdout.decode()}"
        return
    written = {path: row["tree"] for row in kept if row.get("status") == "completed" for path in row["files"]}
    trees = {tree: project.repo.tree(tree) for tree in set(written.values())}
    for path, tree in written.items():
        place = project.folder / path
        expected = trees[tree].get(path)
        size = int(project.repo.git("cat-file", "-s", expected[1])) if expected else 0
        if size and place.exists() and place.stat().st_size == 0:
            yield LOST_BYTES, f"{path} is empty, though its checkpoint was acknowledged"


def _go_on(scene: Scene, case: Case, kept: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Repeat the command like a user; then assert the same end as without the power cut."""
    log = harness.events(scene.project)
    # A recorded undo is complete, and running it again would revert it. A user sees this in `idumb log`.
    undone = case.command == UNDO and any(event.kind == "undo.completed" for event in log)
    argv = RESUME if case.command == EXECUTE or undone else case.command
    answer = harness.go_on(scene.command) if argv == RESUME else scene.command(argv)
    if answer.code != 0:
        yield OTHER, f"{argv} afterwards: {answer}"
        return
    ended = bool(log) and log[-1].kind == "operation.finished"
    yield from harness.wrong(scene.project, scene.known[case.command].ending, kept, ended=ended)


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    kinds = disk.require()
    for kind in disk.KINDS:
        if kind not in kinds:
            tally.note(f"{kind} left out: mkfs.{kind} is not here")
    chance, count = random.Random(seed), size or PROGRAMME.sample
    commands: Sequence[str] = COMMANDS
    if count < len(COMMANDS):
        kinds, commands = (chance.choice(kinds),), chance.sample(COMMANDS, count)
    scenes = {kind: Scene(kind, folder) for kind in kinds}
    try:
        for scene in scenes.values():
            scene.prepare(commands)
        for case in cases(count, chance, scenes, commands):
            with tally.case(str(case)):
                cut_and_go_on(scenes[case.kind], case, tally)
    finally:
        for scene in scenes.values():
            scene.disk.unmount()


PROGRAMME = Programme("T3", "power cut on ext4 and XFS", 10, 500, run, (*ENDING, TRACEBACK), push=1)
