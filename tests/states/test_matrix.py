"""T8: a sample of states and actions, and proof that the harness detects faults."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.git import discover
from idumb.git.objects import object_writer
from idumb.git.scan import scanner
from idumb.git.trees import GitTrees
from tests.crash import programme
from tests.states import matrix, planted
from tests.states.matrix import ACTIONS, LATE, PROGRAMME, Case
from tests.states.state import ALL, State, copied, template
from tests.support.gitrepo import GitSandbox
from tests.support.warm import Warm


@pytest.mark.timeout(600)
def test_no_repository_state_loses_a_byte(tmp_path: Path) -> None:
    """R-GIT-1, R-GIT-6, R-GIT-7, F1 to F25: each state with one of the actions; the full product is `make torture`."""
    result = programme.carry_out(PROGRAMME, size=PROGRAMME.sample, seed=1, folder=tmp_path)
    assert result.failures == (), programme.report(result)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_state_is_in_the_sample_and_every_action_in_several_cases(seed: int) -> None:
    chosen = matrix.pairs(PROGRAMME.sample, seed)
    assert len(ALL) >= 80
    assert {state.name for state, _ in chosen} == set(ALL)
    assert min(Counter(action for _, action in chosen)[action] for action in (*ACTIONS, LATE)) >= 2


def test_the_full_product_has_every_action_in_every_row() -> None:
    every = {(row, action) for state, action in matrix.pairs(None, 1) for row in state.rows if state.ends == "runs"}
    rows = {row for state in ALL.values() if state.ends == "runs" for row in state.rows}
    assert {(row, action) for row in rows for action in ACTIONS} <= every
    rows = {row for state in ALL.values() for row in state.rows}
    assert {f"F{number}" for number in range(1, 26)} - rows == {"F24"}, "F24 is in test_concurrent_changes.py"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, Warm, str]]:
    consent = template(tmp_path / "fresh")
    with Warm(tmp_path / "answers") as warm:
        yield tmp_path, warm, consent


PLANTED = [
    ("add all", "staged and edited again", "run"),
    ("add all", "untracked files beside those of a task", "run"),
    ("no compare and swap", "edits in a file that a task edits", "late"),
]


@pytest.mark.parametrize(("fault", "state", "action"), PLANTED)
def test_the_harness_detects_a_planted_fault(
    place: tuple[Path, Warm, str], fault: str, state: str, action: str
) -> None:
    folder, warm, consent = place
    scene = copied(folder / "fresh", folder / "case")
    if action == "late":
        plain = Case(warm, State("plain", (), lambda _: None), scene, consent)
        assert plain.execute(scene.repo).code == 0
    with pytest.raises(AssertionError, match=r"files|index|status"):
        matrix.carry_out(Case(warm, ALL[state], scene, consent, fault), action)


def rounds(repo: GitSandbox) -> int:
    """Return how many of 100 edits of equal size and restored modification time a scan misses."""
    trees = GitTrees(discover.find(str(repo.root)))
    place, seen = repo.write("a", "000"), set()
    for number in range(100):
        place.write_bytes(b"%03d" % number)
        os.utime(place, (1_700_000_000, 1_700_000_000))
        seen.add(trees.scan())
    return 100 - len(seen)


def test_every_edit_of_equal_size_and_time_is_detected(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-GIT-1, F57: a hundred rounds; a scanner that trusts size and time of modification misses nearly all."""
    assert rounds(sandbox) == 0
    monkeypatch.setattr(object_writer, "put_path", object_writer.put_path)
    monkeypatch.setitem(vars(scanner), "os", os)
    planted.put("times only")
    assert rounds(sandbox) > 90
