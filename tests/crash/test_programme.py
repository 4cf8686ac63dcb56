"""The frame of all fault programmes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import programme as programmes
from tests.crash.programme import CannotRun, Programme, Tally
from tests.support import project as projects
from tests.support import warm
from tests.support.gitrepo import GitSandbox
from tests.support.seed import VARIABLE


def test_a_command_in_a_warm_process_answers_like_a_new_process(tmp_path: Path) -> None:
    repo = GitSandbox.create(tmp_path / "repo")
    project = projects.create(repo, files={"a.txt": "one\n"})
    for arguments in (["status", "--json"], ["check-plan", "7"], ["--version"], ["nonsense"]):
        alone = project.idumb(*arguments)
        assert warm.run(repo.root, *arguments) == alone


def test_a_failing_case_is_counted_and_the_next_one_runs(tmp_path: Path) -> None:
    def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
        for number in range(size or 0):
            with tally.case(f"case {number} of seed {seed}", programmes.LOST_BYTES):
                (folder / str(number)).touch()
                assert number != 1, "one byte is gone"

    result = programmes.carry_out(Programme("T0", "nothing", 3, None, run), size=3, seed=5, folder=tmp_path)
    assert result.cases == 3
    assert result.count(programmes.LOST_BYTES) == 1
    assert "case 1 of seed 5: one byte is gone" in programmes.report(result)


def divided(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
    for number in tally.share(range(size or 0)):
        with tally.case(f"case {number}"):
            tally.note(f"number {number}")
            assert number != 3
    tally.note("parts")


@pytest.mark.nightly
def test_the_parts_of_a_programme_run_each_case_exactly_once(tmp_path: Path) -> None:
    programme = Programme("T0", "nothing", 7, None, divided, divides=True)
    result = programmes.carry_out(programme, size=7, seed=1, folder=tmp_path, jobs=3)
    assert result.cases == 7
    assert result.notes == {**{f"number {number}": 1 for number in range(7)}, "parts": 3}
    assert [failure.case for failure in result.failures] == ["case 3"]


def test_the_commit_chooses_the_points_of_a_push_and_a_night_must_meet_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
        taken.append((size, seed))
        tally.fail(programmes.SLOW, "case", "of no consequence here")
        tally.cases += size or 0

    monkeypatch.setenv(VARIABLE, "5")
    programme = Programme("T0", "nothing", 3, None, run, push=2, least={"cases": 3})
    programmes.on_a_push(programme)
    programmes.at_night(programme)
    assert taken == [(2, 5), (3, 1)]
    with pytest.raises(AssertionError, match="too few"):
        programmes.at_night(replace(programme, least={"cases": 4}))


def test_a_programme_that_cannot_run_here_says_why(tmp_path: Path) -> None:
    def run(size: int | None, seed: int, folder: Path, tally: Tally) -> None:
        raise CannotRun("no loop devices")

    result = programmes.carry_out(Programme("T0", "nothing", 3, None, run), size=3, seed=5, folder=tmp_path)
    assert "SKIPPED: no loop devices" in programmes.report(result)
