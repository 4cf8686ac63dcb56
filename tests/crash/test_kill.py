"""kill -9 of an executor in its own interpreter, at durable calls, then `resume`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.crash import harness
from tests.crash.harness import KILLED, Ending
from tests.support.project import Project

# Where a lost or a repeated step would show most; `test_kill_points.py` kills forked processes at all the others.
EDGES = (
    "before SqliteEventLog.append attempt.started",
    "after GitHistory.commit old.txt",
)


@dataclass(frozen=True, slots=True)
class Scene:
    """`make` gives a fresh copy of the project, `names` are the points of an undisturbed run."""

    make: Callable[[], Project]
    consent: str
    names: tuple[str, ...]
    undisturbed: Ending

    def first(self, name: str) -> int:
        return next(n for n, point in enumerate(self.names) if point.startswith(name))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    tmp_path = tmp_path_factory.mktemp("killed")
    place, consent = harness.template(tmp_path / "template")
    numbers = iter(range(1_000_000))

    def make() -> Project:
        return harness.copy(place, tmp_path / f"copy-{next(numbers)}")

    whole = make()
    names = harness.points(whole, consent, tmp_path)
    undisturbed = harness.ending(whole)
    harness.check(whole, undisturbed)
    return Scene(make, consent, tuple(names), undisturbed)


def survives(scene: Scene, point: int) -> None:
    """Kill the run at `point`; the next resume must complete everything."""
    project = scene.make()
    answer = harness.run(project, "execute-phase", "1", "--approve", scene.consent, at=point)
    assert answer.code == KILLED, (scene.names[point], answer)
    answer = harness.go_on(project, scene.consent)
    assert answer.code == 0, (point, scene.names[point], answer)
    try:
        harness.check(project, scene.undisturbed)
    except AssertionError as problem:
        problem.add_note(f"killed {scene.names[point]} (point {point})")
        raise


@pytest.mark.slow
@pytest.mark.parametrize("edge", EDGES)
def test_a_run_killed_at_an_edge_resumes_to_the_same_end(scene: Scene, edge: str) -> None:
    """R-RUN-2, R-GIT-2, R-LOG-1, R-LOG-3, R-LOG-6: the same tree, each task committed once, no byte lost."""
    survives(scene, scene.first(edge))
