"""T4: the nth use of each kind of system call fails, in each command; then work continues without the fault."""

from __future__ import annotations

import contextlib
import errno
import os
import random
from pathlib import Path
from typing import NamedTuple

from idumb.git import disk
from tests.crash import scenes, shim
from tests.crash.programme import ENDING, TRACEBACK, Programme, Tally
from tests.crash.scenes import Scene, Stage, Trial, require
from tests.crash.shim import CLOSE, EXEC, FORK, FSYNC, LINK, MKDIR, OPEN, RENAME, SHORT, UNLINK, WRITE, Order, Shim
from tests.support.answer import Answer


class Error(NamedTuple):
    """The result of a call. With `for_good`, all later calls of its kind get the same result."""

    number: int
    for_good: bool = False

    @property
    def words(self) -> str:
        name = "short" if self.number == SHORT else errno.errorcode[self.number]
        return name + (" from then on" if self.for_good else "")


_FULL = (Error(errno.ENOSPC), Error(errno.EDQUOT))
_DEAD = (Error(errno.EIO), Error(errno.EIO, for_good=True))
_DENIED = (Error(errno.EACCES), Error(errno.EROFS, for_good=True))
ERRORS: dict[int, tuple[Error, ...]] = {
    OPEN: (*_DEAD, Error(errno.EMFILE), Error(errno.EINTR), *_FULL, *_DENIED),
    WRITE: (*_DEAD, Error(SHORT), *_FULL, Error(errno.EINTR), Error(errno.ENOSPC, for_good=True)),
    FSYNC: (*_DEAD, *_FULL),
    RENAME: (*_DEAD, *_FULL, *_DENIED),
    LINK: (*_DEAD, *_FULL, *_DENIED),
    UNLINK: (*_DEAD, *_DENIED),
    MKDIR: (*_DEAD, *_FULL, *_DENIED),
    CLOSE: (*_DEAD, *_FULL, Error(errno.EINTR)),
    FORK: (Error(errno.EAGAIN), Error(errno.ENOMEM, for_good=True)),
    EXEC: (Error(errno.EIO), Error(errno.EACCES), Error(errno.ENOMEM, for_good=True)),
}
WRITING = ("execute-phase", "resume", "rollback", "undo")
"""Scenes in which each kind of call is made; a small sample has one of them."""
INVISIBLE = ((WRITE, SHORT), (WRITE, errno.EINTR))


class Point(NamedTuple):
    """The nth call of a kind in a scene, and its result."""

    scene: str
    kind: int
    nth: int
    error: Error

    @property
    def words(self) -> str:
        return f"{self.scene}: {shim.NAMES[self.kind]} {self.nth} {self.error.words}"


Counts = dict[str, tuple[int, ...]]


def count(stage: Stage, faults: Shim, scene: Scene) -> tuple[int, ...]:
    """Return how often the undisturbed command makes each kind of call on paths of the case."""
    project = stage.prepared(scene)
    with faults.armed(project.folder.parent) as order:
        assert stage.run(project, *scene.argv).code == 0
    return tuple(order.counts)


def all_points(counts: Counts) -> list[Point]:
    """Return every call of every scene, each with the next error of its kind in turn."""
    return [
        Point(scene, kind, nth, errors[(nth - 1) % len(errors)])
        for scene, numbers in counts.items()
        for kind, errors in ERRORS.items()
        for nth in range(1, numbers[kind] + 1)
    ]


def sample(counts: Counts, size: int, choice: random.Random) -> list[Point]:
    """Return points with random numbers and errors; no kind of call is in two more than another, where it is made."""
    cells = []
    for kind in ERRORS:
        made = [scene for scene, numbers in counts.items() if numbers[kind]]
        choice.shuffle(made)
        cells += [(turn, choice.random(), scene, kind) for turn, scene in enumerate(made)]
    cells.sort()
    points = []
    for number in range(size):
        _, _, scene, kind = cells[number % len(cells)]
        points.append(Point(scene, kind, choice.randint(1, counts[scene][kind]), choice.choice(ERRORS[kind])))
    return points


def play(stage: Stage, faults: Shim, scene: Scene, point: Point, tally: Tally, *, hook: str = "") -> None:
    """Run one case. `hook` plants a fault in idumb to see it detected."""
    trial = Trial.begin(scene, stage.prepared(scene))
    case, error = trial.project.folder.parent, point.error
    with tally.case(point.words):
        with faults.armed(case, kind=point.kind, error=error.number, nth=point.nth, for_good=error.for_good) as order:
            answer = stage.run(trial.project, *scene.argv, hook=hook)
        where = os.fsdecode(order.where).replace(str(case.resolve()) + "/", "")
        tally.note(f"{shim.NAMES[point.kind]} failed" if order.fired else "never reached")
        saw = f"at {where}: {answer}"
        trial.judge_answer(answer, saw)
        judge_call(point, order, where, answer, saw)
        trial.judge_fault(answer, saw)
        # While nothing can be removed, git and libgit2 cannot remove their locks either.
        locks = point.kind == UNLINK
        if answer.code != 0:
            trial.finish(stage, saw, may_leave_locks=locks)
        trial.judge_end(saw, leftovers=not locks)
    trial.close()


def judge_call(point: Point, order: Order, where: str, answer: Answer, saw: str) -> None:
    """Assert the rules for single kinds of calls.

    A short write goes unnoticed. A failed fsync is reported and not repeated; but a temporary file may be written anew
    and forced.
    """
    if (point.kind, point.error.number) in INVISIBLE:
        require(answer.code == 0, f"not invisible {saw}")
    if point.kind == FSYNC and order.fired:
        reported = answer.code != 0 or answer.object["warnings"]
        # another file may use a temporary file's number by then
        temporary = where.endswith((".lock", ".tmp")) or "/tmp_obj_" in where
        renewed = temporary and order.renewed
        require(reported or renewed or _soft(where), f"a failed fsync was passed over {saw}")
        again = order.repeated and "/idumb/store.db" not in where and not _soft(where) and not temporary
        require(not again, f"a failed fsync was tried again {saw}")


_SOFT = ("/.git/idumb", "/worktrees/main")


def _soft(where: str) -> bool:
    """Return whether no claim depends on this fsync: copies, caches, and folders whose result SQLite ignores."""
    return where.startswith("home/") or where.endswith(_SOFT)


def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    faults = Shim(folder / "shim")
    with Stage(folder, preload=str(faults.library), environment=faults.environment) as stage:
        choice = random.Random(seed)
        small = size is not None and size <= len(ERRORS)
        scene_of = scenes.all_of(stage, [choice.choice(WRITING)] if small else scenes.NAMES)
        counts = {name: count(stage, faults, scene) for name, scene in scene_of.items()}
        for point in all_points(counts) if size is None else sample(counts, size, choice):
            # By the number of the call: parts that run at different times may count a few calls more or fewer.
            if point.nth % tally.parts == tally.part:
                play(stage, faults, scene_of[point.scene], point, tally)


PROGRAMME = Programme(
    "T4", "each system call failing at its nth use", 36, None, run, (*ENDING, TRACEBACK), divides=True, push=2
)


# A fault planted in idumb to see it detected: a hook that runs in the process of a case.


def pass_over_failed_fsyncs(_: object) -> None:
    """Ignore the error, so that unsynced data counts as stored."""
    force = disk._force

    def planted(path: str) -> None:
        with contextlib.suppress(OSError):
            force(path)

    disk._force = planted
