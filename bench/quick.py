"""Goal 9: the cost of `idumb quick` without its builder, from the start of the program to its end."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from collections.abc import Iterator

from bench import material, measure
from bench.material import Place
from bench.measure import Effort, Figure
from bench.starting import CLICK, LIBRARIES, idumb

_CONFIG = "builder: b\nbindings:\n  b: {adapter: command, argv: [sh, -c, 'echo x >> %s']}\n"


def quick(effort: Effort) -> Iterator[Figure]:
    yield from _small(effort)
    yield from _large(effort)


def _place(folder: str, files: int) -> Place:
    place = material.project(folder, files, 1, material.noop, "task")
    place.write(".idumb/config.yaml", _CONFIG % place.files[0])
    place.settle()
    return place


def _quick(place: Place, number: int) -> float:
    """Return the seconds that one takes once it is agreed to."""
    words = ("quick", f"Append line {number}", "--files", place.files[0])
    refused = json.loads(place.idumb(*words, "--json", expected=4))
    approve = ("--approve", refused["error"]["details"]["consent_hash"])
    agreed = measure.program((*idumb(), *words, *approve), place.root, place.env)
    start, before = time.perf_counter(), measure.processor_time()
    agreed()
    return measure.Took(time.perf_counter() - start, measure.processor_time() - before)


def _small(effort: Effort) -> Iterator[Figure]:
    place = _place(f"{effort.folder}/quick", 100)
    numbers = itertools.count()

    def ours() -> float:
        return _quick(place, next(numbers))

    builder = measure.program(("sh", "-c", f"echo x >> {effort.folder}/built"), place.root, place.env)
    cases = {
        "ours": ours,
        "builder": builder,
        "click": measure.program(CLICK, place.root, place.env),
        "libraries": measure.program(LIBRARIES, place.root, place.env),
    }
    times = measure.turns(cases, effort.starts)
    beside = statistics.median(a - b for a, b in zip(times["ours"], times["builder"], strict=True))
    yield Figure(9, "idumb quick, 100 files", "click hello", measure.ratio(times, "ours", "click"), None, effort.starts)
    yield Figure(9, "idumb quick, 100 files: beside its builder", "", beside * 1e3, 250, effort.starts, "ms")
    alone = measure.median(times, "libraries") * 1e3
    yield Figure(9, "idumb quick: a program that only loads its libraries", "", alone, None, effort.starts, "ms")


def _large(effort: Effort) -> Iterator[Figure]:
    """The first makes the checkouts, the second finds them."""
    numbers = itertools.count()
    places = [_place(f"{effort.folder}/quick2000-{number}", 2000) for number in range(effort.rounds)]
    waiting, begun = iter(places), list[Place]()

    def first() -> float:
        begun.append(next(waiting))
        return _quick(begun[-1], next(numbers))

    cases = {
        "first": first,
        "second": lambda: _quick(begun[-1], next(numbers)),
        "click": measure.program(CLICK, places[0].root, places[0].env),
    }
    times = measure.turns(cases, effort.rounds, warm=0)
    for name, goal in (("first", 4000), ("second", 800)):
        label = f"the {name} idumb quick, 2,000 files"
        yield Figure(9, label, "click hello", measure.ratio(times, name, "click"), None, effort.rounds)
        yield Figure(9, label, "", measure.median(times, name) * 1e3, goal, effort.rounds, "ms")
        used = statistics.median(measure.cpu(times)[name]) * 1e3
        yield Figure(9, f"{label}: CPU time", "", used, None, effort.rounds, "ms")
