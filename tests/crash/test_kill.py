"""kill -9 of the executor at every point at which something becomes durable, then `resume`.

`make test` takes a sample that is the same every time, `make torture` all points.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.crash import harness
from tests.crash.harness import KILLED, Bytes
from tests.support.project import Project

# Where a lost or a repeated step would show most; the sample adds others.
EDGES = (
    "before SqliteEventLog.append run.started",
    "before SqliteEventLog.append attempt.started",
    "before SqliteEventLog.append step.finished",
    "after SqliteEventLog.append evidence.recorded attempt.finished checkpoint.recorded",
    "after SqliteEventLog.append step.finished",
    "before GitHistory.commit sub/a.txt",
    "after GitHistory.commit old.txt",
    "after SqliteEventLog.append verification.recorded",
)
SAMPLE = (0.45, 0.93)


@dataclass(frozen=True, slots=True)
class Scene:
    """`make` gives a fresh copy of the project, `names` are the points of an undisturbed run."""

    make: Callable[[], Project]
    consent: str
    names: tuple[str, ...]
    undisturbed: Bytes

    def first(self, name: str) -> int:
        return next(n for n, known in enumerate(self.names) if known.startswith(name))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    tmp_path = tmp_path_factory.mktemp("killed")
    place, consent = harness.template(tmp_path / "template")
    numbers = iter(range(1_000_000))

    def make() -> Project:
        return harness.copy(place, tmp_path / f"copy-{next(numbers)}")

    whole = make()
    names = harness.points(whole, consent, tmp_path)
    undisturbed = harness.present(whole)
    harness.check(whole, undisturbed)
    return Scene(make, consent, tuple(names), undisturbed)


def survives(scene: Scene, point: int, *, again: int | None = None) -> None:
    """Kill the run at `point`, and the resume at `again`; the next resume must bring everything to its end."""
    project = scene.make()
    answer = harness.run(project, "execute-phase", "1", "--approve", scene.consent, at=point)
    assert answer.code == KILLED, (scene.names[point], answer)
    if again is not None:
        harness.go_on(project, scene.consent, at=again)
    answer = harness.go_on(project, scene.consent)
    assert answer.code == 0, (point, again, scene.names[point], answer)
    try:
        harness.check(project, scene.undisturbed)
    except AssertionError as problem:
        problem.add_note(f"killed {scene.names[point]} (point {point}), resume killed at {again}")
        raise


@pytest.mark.slow
@pytest.mark.parametrize("edge", EDGES)
def test_a_run_killed_at_an_edge_is_resumed_to_the_same_end(scene: Scene, edge: str) -> None:
    """R-RUN-2, R-GIT-2, R-LOG-1, R-LOG-3: the same tree, every task committed once, no byte of the user's lost."""
    survives(scene, scene.first(edge))


@pytest.mark.slow
@pytest.mark.parametrize("chance", SAMPLE)
def test_a_run_killed_anywhere_is_resumed_to_the_same_end(scene: Scene, chance: float) -> None:
    """The same at points between the edges."""
    survives(scene, int(chance * len(scene.names)))


@pytest.mark.slow
@pytest.mark.parametrize(("edge", "again"), [(EDGES[2], 1), (EDGES[2], 6), (EDGES[5], 3), (EDGES[6], 2)])
def test_a_resume_that_is_killed_too_is_resumed_to_the_same_end(scene: Scene, edge: str, again: int) -> None:
    """R-GIT-2: recovery is itself safe to kill."""
    survives(scene, scene.first(edge), again=again)


@pytest.mark.slow
def test_the_harness_finds_a_commit_that_recovery_ignores(scene: Scene) -> None:
    """A harness that never failed proves nothing: with this fault the task is committed twice."""
    project = scene.make()
    point = scene.first("after GitHistory.commit sub/a.txt")
    assert harness.run(project, "execute-phase", "1", "--approve", scene.consent, at=point).code == KILLED
    harness.go_on(project, scene.consent, plant="commits are not looked for")
    with pytest.raises(AssertionError, match="T1-01"):
        harness.check(project, scene.undisturbed)


@pytest.mark.slow
def test_the_harness_finds_a_restart_that_puts_nothing_back(scene: Scene) -> None:
    """The same for work that is done twice on top of itself."""
    project = scene.make()
    point = (
        len(scene.names)
        - 1
        - list(scene.names)[::-1].index(
            "before SqliteEventLog.append step.finished evidence.recorded attempt.finished checkpoint.intended"
        )
    )
    assert harness.run(project, "execute-phase", "1", "--approve", scene.consent, at=point).code == KILLED
    harness.go_on(project, scene.consent, plant="nothing is put back")
    with pytest.raises(AssertionError):
        harness.check(project, scene.undisturbed)


@pytest.mark.torture
def test_every_point_of_a_run(scene: Scene) -> None:
    for point in range(len(scene.names)):
        survives(scene, point)


@pytest.mark.torture
def test_every_point_of_a_run_and_some_of_its_resume(scene: Scene) -> None:
    chance = random.Random(4)
    for point in range(len(scene.names)):
        survives(scene, point, again=chance.randrange(20))
