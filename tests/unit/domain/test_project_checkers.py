"""What type checkers and linters print, and what of that is new (R-GATE-3). The outputs are those of real programs."""

from __future__ import annotations

from pathlib import Path

from idumb.domain.proof import project_checkers
from idumb.domain.proof.project_checkers import Finding
from tests.support import example_files
from tests.support.cases import every

OUTPUTS = Path(__file__).parent / "checkers"


def output(name: str) -> str:
    return (OUTPUTS / f"{name}.txt").read_bytes().decode()


MYPY = output("mypy")


@every("name", sorted(path.stem for path in OUTPUTS.glob("*.txt")))
def test_the_errors_of_a_checker_are_read(name: str) -> None:
    """Beside each output is what is found in it: path, line, words, and whether it is an error."""
    example_files.compare_json(OUTPUTS / f"{name}.json", project_checkers.findings(output(name)))


def test_lines_may_shift_and_what_occurs_more_often_is_new() -> None:
    before = project_checkers.findings(MYPY)
    shifted = project_checkers.findings(MYPY.replace("m.py:6", "m.py:60").replace("on line 1", "on line 9"))
    assert project_checkers.new_findings(before, shifted, {}) == []
    again = Finding("m.py", 70, before[0].words)
    assert project_checkers.new_findings(before, [*shifted, again], {}) == [again]
    assert project_checkers.new_findings(before, [before[1]], {}) == []


def test_a_file_that_moved_keeps_its_errors() -> None:
    before = project_checkers.findings(MYPY)
    moved = [each._replace(path="n.py") for each in before]
    assert project_checkers.new_findings(before, moved, {"n.py": "m.py"}) == []
    assert project_checkers.new_findings(before, moved, {}) == moved


def test_a_checker_says_if_an_error_stopped_it() -> None:
    assert project_checkers.stopped("n.py:1: error: x  [syntax]\nFound 1 error (errors prevented further checking)\n")
    stopping = [path.stem for path in OUTPUTS.glob("*.txt") if project_checkers.stopped(output(path.stem))]
    assert sorted(stopping) == ["cargo-check-short", "go-vet-types"]
