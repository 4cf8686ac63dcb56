"""T8: a sample of states and actions, and proof that the harness detects faults."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.git import discover, git_dir, scanner
from idumb.git.trees import GitTrees
from tests.states import matrix, planted
from tests.states.matrix import KINDS, PROGRAMME, Bench, Case
from tests.states.state import copied, template
from tests.states.states import ALL
from tests.support.gitrepo import GitSandbox


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("states"))


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


def test_every_state_is_in_one_kind_and_in_the_sample() -> None:
    rows = [row for kind in KINDS.values() for row in kind]
    assert sorted(rows) == sorted({row for state in ALL.values() for row in state.rows})
    assert {f"F{number}" for number in range(1, 26)} - {*rows} == {"F24"}, "F24 is in test_concurrent_changes.py"
    assert {state.name for state, _ in SAMPLE.values()} == set(ALL)


@pytest.mark.nightly
def test_the_harness_detects_a_planted_fault(tmp_path: Path) -> None:
    consent = template(tmp_path / "fresh")
    scene = copied(tmp_path / "fresh", tmp_path / "case")
    with pytest.raises(AssertionError, match=r"files|index|status"):
        matrix.carry_out(Case(ALL["staged and edited again"], scene, consent, "add all"), "run")


def rounds(repo: GitSandbox, many: int) -> int:
    """Return how many of so many edits of equal size and restored modification time a scan misses."""
    trees = GitTrees(discover.find(str(repo.root)))
    place, seen = repo.write("a", "000"), set()
    for number in range(many):
        place.write_bytes(b"%03d" % number)
        os.utime(place, (1_700_000_000, 1_700_000_000))
        seen.add(trees.scan())
    return many - len(seen)


@pytest.mark.parametrize(("many", "missed"), [(20, 15), pytest.param(100, 90, marks=pytest.mark.nightly)])
def test_every_edit_of_equal_size_and_time_is_detected(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch, many: int, missed: int
) -> None:
    """R-GIT-1, F57: a scanner that trusts size and time of modification misses nearly all."""
    assert rounds(sandbox, many) == 0
    monkeypatch.setattr(git_dir, "raw_files", git_dir.raw_files)
    monkeypatch.setattr(scanner.Scanner, "_drop_young", scanner.Scanner._drop_young)
    planted.put("times only")
    assert rounds(sandbox, many) > missed
