"""T1: kill -9 before and after every durable write, then continue as a user does; seven shapes of plans.

T2: kill -9 at random moments and at durable calls; up to five in a row.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash import disk, harness
from tests.crash.harness import ARM, KILLED, Ending
from tests.crash.programme import ENDING, LOST_BYTES, OTHER, Programme, Tally
from tests.crash.shapes import EXECUTE, PAIR, SHAPES, START, Shape, Step
from tests.support import warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project
from tests.support.warm import Started

ENDED = {"start": ("attempt.open",), "submit": ("task.already-done",)}  # refused, because it was already done
SMALL = 8  # such a sample is of one shape
MOST, QUICK = 5, 200  # of T2: kills in a row, and the largest sample of the smallest plan alone
TWICE = 3  # every nth case is resumed once more, to see that nothing remains to do
# Each resume rewrites the reports of a failed run, and they contain its time.
UNCHANGED = ("operation.", "run.", "reports.committed")


@dataclass(slots=True)
class Scene:
    """A shape, the project before each step, the names of each step's points, and the final state.

    `given` goes to each command; its keys are those of `killing.arm`.
    """

    shape: Shape
    folder: Path
    given: dict[str, Any] = field(default_factory=dict)
    consent: str = ""
    consents: dict[tuple[bytes, ...], str] = field(default_factory=dict)  # by the files that a consent is about
    before: list[Path] = field(default_factory=list)
    points: list[tuple[str, ...]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    ending: Ending | None = None
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1 << 30)))

    def prepare(self, *, fine: bool = False) -> None:
        place = self.folder / "0"
        project = self.shape.build(place)
        asks = self.shape.asks
        asked = project.json(*asks).error["details"]["consent_hash"] if asks else project.approval(self.shape.phase)
        self.consent = str(asked)
        for number, step in enumerate(self.shape.steps):
            self.before.append(project.folder)
            project = self.copy(number)
            count = self.folder / f"points-{number}"
            begun = time.monotonic()
            answer = self.say(project, step, {"count": str(count), "fine": fine})
            self.seconds.append(time.monotonic() - begun)
            assert answer is None or answer.code == step.code, (self.shape.name, step, answer)
            self.points.append(tuple(count.read_text(encoding="utf-8").splitlines()) if count.exists() else ())
        self.ending = harness.ending(project)

    @property
    def end(self) -> Ending:
        assert self.ending is not None, "it is not prepared"
        return self.ending

    def copy(self, step: int) -> Project:
        place = self.folder / f"copy-{next(self.numbers)}"
        shutil.copytree(self.before[step], place, symlinks=True)
        return Project(GitSandbox(place), place)

    def say(
        self, project: Project, step: Step, given: dict[str, Any] | None = None, *, hook: str = ARM
    ) -> Answer | None:
        """Return the command's answer; None for an act of the user's and for a question that is no longer open.

        `given` arms the kill (see `killing`); its key `seconds` ends the command from outside after that time.
        """
        if step.act is not None:
            step.act(project)
            return None
        running = self.start(project, step, given, hook=hook)
        if running is not None and given is not None and "seconds" in given:
            threading.Event().wait(given["seconds"])
            disk.kill(running.pid)
        return None if running is None else running.wait()

    def start(
        self, project: Project, step: Step, given: dict[str, Any] | None = None, *, hook: str = ARM
    ) -> Started | None:
        argv = [self._word(project, word) for word in step.argv]
        if None in argv:
            return None
        words = [word for word in argv if word is not None]
        armed = {**self.given, **(given or {})}
        return warm.start(project.folder, *words, "--json", hook=hook if armed or hook != ARM else "", given=armed)

    def _word(self, project: Project, word: str) -> str | None:
        if word == "{consent}":
            return self._consent(project)
        if not word.startswith("@"):
            return word
        decisions = warm.run(project.folder, "decisions", "--json").data["decisions"]
        return next((str(row["id"]) for row in decisions if row["task"] == word[1:]), None)

    def _consent(self, project: Project) -> str:
        """Return the consent to the plan as it is now: answers change it, and a copied repository brings none."""
        bound = (*sorted(project.folder.glob(".planning/*/*/*-PLAN.md")), project.folder / ".idumb/config.yaml")
        contract = tuple(place.read_bytes() for place in bound)
        if contract not in self.consents:
            checked = warm.run(project.folder, "check-plan", self.shape.phase, "--json").data
            self.consents[contract] = str(checked.get("consent_hash", self.consent))
        return self.consents[contract]

    def go_on(
        self, project: Project, step: Step, given: dict[str, Any] | None = None, *, hook: str = ARM
    ) -> Answer | None:
        """Do what a user does after a killed step: resume, or run the same command again."""
        if step.argv[:1] in (("start",), ("submit",)):
            return self._drive_on(project, step, given)
        resume = self.shape.resume
        if step.argv not in (EXECUTE, START, resume):
            return self.say(project, step, given)
        answer = self.say(project, Step(resume), given, hook=hook)
        if answer is not None and answer.code == 4 and answer.error["code"] == "run.none":
            return self.say(project, Step(EXECUTE) if step.argv == resume else step, given, hook=hook)
        return answer

    def _drive_on(self, project: Project, step: Step, given: dict[str, Any] | None) -> Answer | None:
        """Continue, unless nothing remains to do: the step was killed at its very end, or its phase is completed."""
        answer = self.say(project, step, given)
        if answer is None or answer.code != 4 or answer.error["code"] not in ENDED[step.argv[0]]:
            return answer
        next_command = warm.run(project.folder, "status", "--json").data["phases"][0]["next"]
        return None if next_command or step.argv[0] == "start" else self.say(project, Step(self.shape.resume))


@dataclass(frozen=True, slots=True)
class Case:
    """One step, killed as often as there are `kills`; each continuation can be killed again.

    A kill is the number of a point, how its name begins, or the seconds after which it comes from outside. Numbers of
    fine points differ a little from run to run: git's folders of objects depend on the time.
    """

    step: int
    kills: tuple[int | float | str, ...]


def survive(
    scene: Scene, case: Case, *, plant: str = "", fine: bool = False, twice: bool = True
) -> Iterator[tuple[str, str]]:
    """Kill one step, continue to the end, and return all violations; `twice` resumes once more."""
    project = scene.copy(case.step)
    step = scene.shape.steps[case.step]
    kept: list[dict[str, Any]] = []
    for number, kill in enumerate(case.kills):
        given = {"seconds": kill} if isinstance(kill, float) else {"at": kill, "fine": fine}
        killed = scene.go_on(project, step, given) if number else scene.say(project, step, given)
        if killed is not None and killed.code not in {KILLED, step.code}:
            yield OTHER, f"killed, it answers {killed}"
        yield from harness.lost(project, kept)
        kept = harness.acknowledged(project)
    yield from _answered(scene.go_on(project, step, {"plant": plant} if plant else None), step)
    for later in scene.shape.steps[case.step + 1 :]:
        yield from _answered(scene.say(project, later), later)
    yield from harness.wrong(project, scene.end, kept)
    if twice:
        yield from _moves_on(scene, project)
    shutil.rmtree(project.folder)


def _answered(answer: Answer | None, step: Step) -> Iterator[tuple[str, str]]:
    if answer is not None and answer.code != step.code:
        yield OTHER, f"{' '.join(step.argv)} afterwards: {answer}"


def _moves_on(scene: Scene, project: Project) -> Iterator[tuple[str, str]]:
    """I7: recovery completes in one pass; running `resume` again changes nothing."""
    before, event_count = project.repo.ledger(), len(harness.events(project))
    scene.say(project, Step(scene.shape.resume))
    after, new = project.repo.ledger(), [e.kind for e in harness.events(project)[event_count:]]
    if more := [kind for kind in new if not kind.startswith(UNCHANGED)]:
        yield OTHER, f"a second resume does more: {more}"
    if changed := [p for p in before.changed_paths(after) if p.split("/")[0] not in (".idumb", ".planning")]:
        yield LOST_BYTES, f"a second resume changes {changed}"


def sample(scene: Scene, chance: random.Random, count: int | None, met: set[str]) -> list[Case]:
    """Return all points, or a sample: calls that are not `met` yet, other kinds of points, then random ones."""
    every = [Case(step, (at,)) for step, names in enumerate(scene.points) for at in range(len(names))]
    if count is None or count >= len(every):
        return every
    kinds: dict[str, list[Case]] = {}
    for case in every:
        kinds.setdefault(_kind(_name(scene, case)), []).append(case)
    groups = list(kinds.values())
    chance.shuffle(groups)
    known = set(met)
    new: list[Case] = []
    others: list[Case] = []
    for case in (chance.choice(group) for group in groups):
        (others if (call := _call(scene, case)) in known else new).append(case)
        known.add(call)
    chosen = [*new, *others][:count]
    met.update(_call(scene, case) for case in chosen)
    rest = [case for case in every if case not in chosen]
    return chosen + chance.sample(rest, count - len(chosen))


def _name(scene: Scene, case: Case) -> str:
    return scene.points[case.step][int(case.kills[0])]


def _call(scene: Scene, case: Case) -> str:
    return _name(scene, case).split()[1]


def _kind(name: str) -> str:
    """Return a point's name without the parts that differ from task to task."""
    return name if "append" in name else " ".join(name.split()[:2])


def scenes(folder: Path, shapes: Sequence[Shape] = SHAPES, *, fine: bool = False) -> Iterator[Scene]:
    for number, shape in enumerate(shapes):
        scene = Scene(shape, folder / f"shape-{number}")
        scene.prepare(fine=fine)
        yield scene


def carry_out(scene: Scene, case: Case, name: str, tally: Tally, *, fine: bool = False) -> None:
    tally.note(scene.shape.name)
    with tally.case(name):
        for kind, words in survive(scene, case, fine=fine, twice=tally.cases % TWICE == 0):
            tally.fail(kind, name, words)


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    chance = random.Random(seed)
    shapes = SHAPES if size is None or size > SMALL else (chance.choice(SHAPES),)
    count = None if size is None else -(-size // len(shapes))
    met: set[str] = set()
    for scene in scenes(folder, shapes):
        for case in sample(scene, chance, count, met):
            name = f"{scene.shape.name}: killed {_name(scene, case)} (point {case.step}.{case.kills[0]})"
            carry_out(scene, case, name, tally)
        tally.note("points", sum(len(names) for names in scene.points))
        shutil.rmtree(scene.folder)


PROGRAMME = Programme("T1", "kill before and after everything durable", 28, None, run, ENDING, push=3)


def random_cases(scene: Scene, chance: random.Random, count: int) -> Iterator[Case]:
    """Every second one is killed again while it recovers; half of the kills come from outside."""
    steps = [number for number, names in enumerate(scene.points) if names]

    def kill(step: int) -> int | float:
        if chance.random() < 0.5:
            return chance.uniform(0.0, scene.seconds[step])
        return chance.randrange(len(scene.points[step]))

    for number in range(count):
        step = steps[number % len(steps)]
        kills = 1 + number % 2
        while 1 < kills < MOST and chance.random() < 0.5:
            kills += 1
        yield Case(step, tuple(kill(step) for _ in range(kills)))


def run_at_random(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    """Most of a sample is of the smallest plan, for speed."""
    count, chance = size or RANDOM.sample, random.Random(seed)
    chosen = (PAIR,) if count <= QUICK else (PAIR, *SHAPES)
    for scene in scenes(folder, chosen, fine=True):
        for case in random_cases(scene, chance, count // len(chosen)):
            tally.note("kills", len(case.kills))
            tally.note("killed while recovering", len(case.kills) > 1)
            carry_out(scene, case, f"{scene.shape.name}: step {case.step} killed at {case.kills}", tally, fine=True)
        shutil.rmtree(scene.folder)


RANDOM = Programme(
    "T2",
    "kill -9 at random moments, also while recovering",
    sample=14,
    release=2000,
    run=run_at_random,
    measures=ENDING,
    least={"killed while recovering": 5},
)
