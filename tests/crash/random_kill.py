"""T2: kill -9 at random moments and at durable calls; up to five in a row."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.crash import kill_points
from tests.crash.kill_points import Case, Scene
from tests.crash.programme import ENDING, Programme, Tally
from tests.crash.shapes import PAIR, SHAPES

MOST = 5
SMALL = 200
LEAST = {"killed while recovering": 5}


def cases(scene: Scene, chance: random.Random, count: int) -> Iterator[Case]:
    """Every second one is killed again while it recovers; half of the kills come from outside."""
    steps = [number for number, names in enumerate(scene.points) if names]
    for number in range(count):
        step = steps[number % len(steps)]
        kills = 1 + number % 2
        while 1 < kills < MOST and chance.random() < 0.5:
            kills += 1
        yield Case(step, tuple(_kill(scene, chance, step) for _ in range(kills)))


def _kill(scene: Scene, chance: random.Random, step: int) -> int | float:
    if chance.random() < 0.5:
        return chance.uniform(0.0, scene.seconds[step])
    return chance.randrange(len(scene.points[step]))


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    count = size or PROGRAMME.sample
    chance = random.Random(seed)
    # A sample is for speed, so most of it is of the smallest plan.
    chosen = (PAIR,) if count <= SMALL else (PAIR, *SHAPES)
    for number, shape in enumerate(chosen):
        scene = Scene(shape, folder / f"shape-{number}")
        scene.prepare(fine=True)
        for case in cases(scene, chance, count // len(chosen)):
            name = f"{shape.name}: step {case.step} killed at {case.kills}"
            tally.note("kills", len(case.kills))
            tally.note("killed while recovering", len(case.kills) > 1)
            with tally.case(name):
                for kind, words in kill_points.survive(
                    scene, case, fine=True, twice=tally.cases % kill_points.TWICE == 0
                ):
                    tally.fail(kind, name, words)
        shutil.rmtree(scene.folder)


PROGRAMME = Programme("T2", "kill -9 at random moments, also while recovering", 14, 2000, run, ENDING, least=LEAST)
