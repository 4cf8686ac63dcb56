"""A programme makes the same kind of fault at many points and counts what came of it.

`make test` has one case for each kind of fault of most programmes, at points that the commit chooses; `make nightly` a
sample with a fixed seed, and `make torture` the whole. All go through `carry_out`.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.seed import commit_seed

LOST_CHECKPOINT = "lost checkpoints"
REPEATED_TASK = "completed tasks run again"
LOST_BYTES = "user bytes lost"
TRACEBACK = "tracebacks"
LEFT_PROCESS = "processes left"
SLOW = "answers over a second"
FOREIGN = "foreign code run"
OTHER = "other failures"
KINDS = (LOST_CHECKPOINT, REPEATED_TASK, LOST_BYTES, TRACEBACK, LEFT_PROCESS, SLOW, FOREIGN, OTHER)
ENDING = (LOST_CHECKPOINT, REPEATED_TASK, LOST_BYTES, LEFT_PROCESS)  # what `harness.wrong` looks for


Point = TypeVar("Point")


class CannotRun(Exception):
    """This machine lacks a requirement of the programme; the message names it."""


class Wrong(AssertionError):
    """A violated invariant; `kind` is one of KINDS."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Failure:
    """`kind` is one of KINDS; `case` says how to repeat it, `words` what happened."""

    kind: str
    case: str
    words: str


@dataclass(slots=True)
class Tally:
    """What the cases of a programme came to. `notes` counts whatever a reader wants to know, by name.

    `part` of `parts` says which cases are this tally's, where several processes divide them.
    """

    part: int = 0
    parts: int = 1
    cases: int = 0
    failures: list[Failure] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def fail(self, kind: str, case: str, words: str) -> None:
        assert kind in KINDS, kind
        self.failures.append(Failure(kind, case, words))

    def share(self, points: Sequence[Point]) -> Sequence[Point]:
        """The points of this part; the parts together have each point once."""
        return points[self.part :: self.parts]

    def note(self, name: str, count: int = 1) -> None:
        self.notes[name] += count

    @contextmanager
    def case(self, name: str, kind: str = OTHER) -> Iterator[None]:
        """Run one case. An AssertionError fails it with the kind of the error, or this `kind`; the next case runs."""
        self.cases += 1
        try:
            yield
        except AssertionError as wrong:
            own = wrong.kind if isinstance(wrong, Wrong) else kind
            self.fail(kind_of(str(wrong)) or own, name, str(wrong)[:2000])


def kind_of(words: str) -> str | None:
    """A failure whose message determines its kind."""
    if "Traceback" in words or "idumb has a defect" in words:
        return TRACEBACK
    return None


@dataclass(frozen=True, slots=True)
class Programme:
    """`run(size, seed, folder, tally)` makes about `size` cases in an empty folder; it may raise CannotRun.

    `push` is the size in `make test`, `sample` that in `make nightly`, `release` that of the whole; None means every
    point there is. A sample takes the kinds of fault in turn, so that the first `push` cases have one of each.
    `least` is what a sample must come to at least, by the name of a note: less would prove nothing.
    `measures` names the kinds of failure that its cases look for besides OTHER; the page shows no figure for the rest.
    `divides` says that `run` takes only its tally's share of the points, so that parts can run side by side.
    """

    id: str
    title: str
    sample: int
    release: int | None
    run: Callable[[int | None, int, Path, Tally], None]
    measures: tuple[str, ...] = ()
    divides: bool = False
    push: int = 0
    least: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """`skipped` is the reason why nothing ran; `seconds` are wall-clock time; `measures` are kinds of failure."""

    programme: str
    title: str
    seed: int
    cases: int
    seconds: float
    skipped: str
    failures: tuple[Failure, ...]
    notes: dict[str, int]
    measures: tuple[str, ...] = KINDS

    def count(self, kind: str) -> int:
        return sum(1 for failure in self.failures if failure.kind == kind)


def carry_out(
    programme: Programme,
    *,
    size: int | None,
    seed: int,
    folder: Path | None = None,
    jobs: int = 1,
    part: tuple[int, int] = (0, 1),
) -> Result:
    """Run a programme in a folder of its own, which goes afterwards unless a case failed.

    With `jobs` above one, a programme that divides runs in so many processes, and their tallies are added up.
    `part` is one part, from 0, of so many: the others are run at other times.
    """
    tally, skipped, begun = Tally(*part), "", time.monotonic()
    place = folder or Path(tempfile.mkdtemp(prefix=f"idumb-{programme.id}-"))
    try:
        if jobs > 1 and programme.divides:
            tally = _in_parts(programme, size, seed, place, jobs)
        else:
            programme.run(size, seed, place, tally)
    except CannotRun as reason:
        skipped = str(reason)
    if folder is None and not tally.failures:
        shutil.rmtree(place, ignore_errors=True)
    return Result(
        programme.id,
        programme.title,
        seed,
        tally.cases,
        round(time.monotonic() - begun, 1),
        skipped,
        tuple(tally.failures),
        dict(tally.notes),
        (*programme.measures, OTHER),
    )


def on_a_push(programme: Programme) -> Result:
    """Run one case for each kind of fault, at points that the commit chooses."""
    return _passed(programme, programme.push, commit_seed())


def at_night(programme: Programme) -> Result:
    """Run the sample."""
    result = _passed(programme, programme.sample, seed=1)
    counted = {"cases": result.cases, **result.notes}
    few = {name: counted.get(name, 0) for name, least in programme.least.items() if counted.get(name, 0) < least}
    assert not few, f"too few: {few}"
    return result


def _passed(programme: Programme, size: int, seed: int) -> Result:
    """The result of a test; how long an answer takes is counted and judged at release size."""
    result = carry_out(programme, size=size, seed=seed)
    if result.skipped:
        pytest.skip(result.skipped)
    assert [failure for failure in result.failures if failure.kind != SLOW] == [], report(result)
    assert result.cases >= size
    return result


def _in_parts(programme: Programme, size: int | None, seed: int, place: Path, jobs: int) -> Tally:
    whole = Tally()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for part in pool.map(partial(_one_part, programme, size, seed, place, jobs), range(jobs)):
            whole.cases += part.cases
            whole.failures += part.failures
            whole.notes += part.notes
    return whole


def _one_part(programme: Programme, size: int | None, seed: int, place: Path, parts: int, part: int) -> Tally:
    tally, folder = Tally(part, parts), place / str(part)
    folder.mkdir(parents=True)
    programme.run(size, seed, folder, tally)
    return tally


def report(result: Result) -> str:
    """Return a few lines for a person: what ran, and every failure."""
    if result.skipped:
        return f"{result.programme} {result.title}: SKIPPED: {result.skipped}"
    counted = ", ".join(f"{result.count(kind)} {kind}" for kind in KINDS if kind in result.measures)
    noted = "".join(f"\n  {name}: {count}" for name, count in sorted(result.notes.items()))
    failed = "".join(f"\n  FAILED {f.kind}: {f.case}: {f.words}" for f in result.failures)
    return (
        f"{result.programme} {result.title}: {result.cases} cases, seed {result.seed},"
        f" {result.seconds} s: {counted}{noted}{failed}"
    )
