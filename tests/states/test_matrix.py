"""T8: a sample of states and actions, and proof that the harness detects faults."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.git import discover, shadow, shadow_folder
from idumb.git.trees import GitTrees
from tests.states import matrix, planted
from tests.states.matrix import ACTIONS, KINDS, LATE, PROGRAMME, Bench, Case
from tests.states.state import ALL, State, copied, template
from tests.support.gitrepo import GitSandbox
from tests.support.warm import Warm


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("states")
    with Warm(folder / "answers") as warm:
        yield Bench(folder, warm)


@pytest.mark.parametrize("kind", KINDS)
def test_no_repository_state_loses_a_byte(bench: Bench, tmp_path: Path, kind: str) -> None:
    """R-GIT-1, R-GIT-6, R-GIT-7, F1 to F25: one state of each kind with one action; which, the commit chooses."""
    bench.carry_out(*matrix.one_of(kind), tmp_path / "case")


SAMPLE = {f"{state.name} x {action}": (state, action) for state, action in matrix.pairs(PROGRAMME.sample, 1)}


@pytest.mark.nightly
@pytest.mark.parametrize("case", SAMPLE)
def test_no_state_with_one_of_the_actions_loses_a_byte(bench: Bench, tmp_path: Path, case: str) -> None:
    """Each state; the full product is `make torture`."""
    bench.carry_out(*SAMPLE[case], tmp_path / "case")


def test_each_row_of_the_states_is_in_one_kind() -> None:
    rows = [row for kind in KINDS.values() for row in kind]
    assert sorted(rows) == sorted({row for state in ALL.values() for row in state.rows})


@pytest.mark.parametrize("chosen_by", [1, 2, 3])
def test_every_state_is_in_the_sample_and_every_action_in_several_cases(chosen_by: int) -> None:
    chosen = matrix.pairs(PROGRAMME.sample, chosen_by)
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


@pytest.mark.nightly
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
    monkeypatch.setattr(shadow_folder, "SETTINGS", shadow_folder.SETTINGS)
    monkeypatch.setattr(shadow.Shadow, "_drop_young", shadow.Shadow._drop_young)
    planted.put("times only")
    assert rounds(sandbox) > 90
