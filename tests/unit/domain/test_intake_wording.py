"""Checks of the words of a plan: placeholders, vague and conditional text, sizes of tasks."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from idumb.domain import wording
from idumb.domain.plans.plan import (
    GUIDED,
    STRICT,
    Criterion,
    FileClaim,
)
from idumb.markdown.plans import plan_parser
from tests.support import example_files
from tests.support.cases import every
from tests.support.growth import assert_linear
from tests.support.intake import codes, findings_of, plan, task

WORDING = Path(__file__).parents[2] / "format" / "cases" / "wording"


@every("place", sorted(WORDING.glob("*.md")))
def test_no_text_of_a_strict_plan_may_be_ambiguous(place: Path) -> None:
    """R-LOCK-7: nor say nothing to a person who judges; beside each plan are its findings in both modes."""
    read = plan_parser.parse(place.read_bytes(), place.name).plan
    assert read is not None
    found = [(mode, each) for mode in (GUIDED, STRICT) for each in findings_of(read, mode=mode)]
    lines = [
        f"{mode}: {each.severity} {each.code} {each.line} {each.field}: {wording.one_line(each.found)}\n"
        for mode, each in found
        if each.code.startswith(("text.", "criterion."))
    ]
    example_files.compare(place.with_suffix(".txt"), "".join(lines))


def test_a_long_text_is_searched_in_linear_time() -> None:
    for repeated in ("`", "`a", "``a`b", "'", "'a "):
        assert_linear(lambda text: codes(plan(task(description=text))), lambda n, of=repeated: of * n)  # type: ignore[misc]


@every("seconds, files, criteria, field", [
    (7200, 8, 7, None), (7201, 1, 1, "estimate"), (None, 9, 1, "files"), (None, 1, 8, "acceptance"),
])  # fmt: skip
def test_a_task_that_does_too_much_is_reported(seconds: int | None, files: int, criteria: int, field: str) -> None:
    """R-PLAN-10."""
    claims = tuple(FileClaim("create", f"{number}.txt") for number in range(files))
    acceptance = tuple(Criterion(f"AC-{number}", f"It is {number}", "check", "make test") for number in range(criteria))
    large = task(estimate=seconds, files=claims, acceptance=acceptance)
    assert [(f.code, f.field) for f in findings_of(plan(large))] == ([("task.large", field)] if field else [])
    assert codes(plan(replace(large, kind="human-verify"))) == set()
