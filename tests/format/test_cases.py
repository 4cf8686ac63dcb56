"""The conformance suite of the plan format: every case is a plan and exactly what must come of it.

A `.json` beside the `.md` holds either `plan` (every value that is not the default) with the warnings, or the
findings alone, each as severity, code and line, in order. `docs/plan-format.md` is the text they were decided from.
`dialects/` has plans of other tools that are read as they are; `sources/` has folders of tools whose plans are
imported, each with the plan that is written.
"""

from __future__ import annotations

from pathlib import Path

from idumb.domain.finding import Finding, errors
from idumb.markdown.plans import plan_parser
from tests.format import golden
from tests.support import example_files
from tests.support.cases import every

OF_NO_FIELD = {"plan", "fence", "comment"}
NOTHING_FOUND = {
    "command.empty", "criterion.no-text", "field.empty", "field.not-text", "field.unexpected-content",
    "plan.criteria-twice", "plan.empty-value", "plan.frontmatter-too-large", "plan.line-too-long", "plan.missing-key",
    "plan.no-frontmatter", "plan.no-tasks", "plan.not-utf-8", "plan.nul", "plan.too-deep", "step.missing-argument",
    "step.missing-key", "steps.empty", "steps.not-a-list", "task.no-acceptance", "task.no-id", "task.no-title",
    "task.not-a-mapping",
}  # fmt: skip


@every("name", golden.NAMES)
def test_case_gives_the_result_of_the_reference(name: str) -> None:
    """R-PLAN-2, R-PLAN-3, R-PLAN-4, R-PLAN-5, R-PLAN-7, R-GATE-2."""
    example_files.compare_json(golden.CASES / f"{name}.json", golden.outcome(golden.parsed(name)))


@every("place", sorted(golden.DIALECTS.glob("*.md")))
def test_a_plan_in_another_dialect_gives_the_result_of_the_reference(place: Path) -> None:
    """R-PLAN-2, R-RUN-3, R-LOCK-7: also with errors, and at its path. `own-…` are no plans of another tool."""
    path = example_files.read_json(place.with_suffix(".json"))["path"]
    parsed = plan_parser.parse(place.read_bytes(), path)
    plan = {"plan": golden.as_json(parsed.plan or parsed.draft)}
    found = {"path": path, "dialect": parsed.dialect} | plan | golden.outcome(parsed) | plan
    example_files.compare_json(place.with_suffix(".json"), found)


@every("name", golden.SOURCE_NAMES)
def test_a_source_is_recognized_and_becomes_a_readable_plan(name: str) -> None:
    """R-PLAN-9: the plan beside it; what was not understood is listed with its line."""
    plan = golden.source(name)
    unread = [f"{path}:{line}: {text}" for path, line, text in plan.unread]
    found = {"source": golden.source_path(name), "kind": plan.kind, "unread": unread}
    example_files.compare_json(golden.SOURCES / f"{name}.json", found)
    example_files.compare(golden.SOURCES / f"{name}.md", written := golden.written(plan))
    parsed = plan_parser.parse(written.encode(), ".planning/phases/7/01-PLAN.md")
    assert errors(parsed.findings) == ()
    assert parsed.plan
    assert [task.extra["x-source-id"] for task in parsed.plan.tasks] == [task.id for task in plan.tasks]


def test_there_are_enough_cases_and_each_has_its_expectation() -> None:
    assert {path.stem for path in golden.CASES.glob("*.json")} == set(golden.NAMES)
    assert len([name for name in golden.NAMES if golden.parsed(name).plan]) > 150
    assert len([name for name in golden.NAMES if golden.parsed(name).findings]) > 200


def test_every_finding_is_actionable() -> None:
    """R-PLAN-5: the finding, its place and its fix."""
    found = [(name, finding) for name in golden.NAMES for finding in golden.parsed(name).findings]
    lines = {name: golden.data(name).decode("utf-8", "replace").count("\n") + 1 for name in golden.NAMES}
    assert [f"{name}: {one} lacks {part}" for name, one in found for part in missing(one, lines[name])] == []
    assert len({finding.code for _, finding in found}) > 90


def missing(finding: Finding, lines: int) -> list[str]:
    parts = {
        "line": 1 <= finding.line <= lines,
        "column": finding.column >= 1,
        "message": finding.message,
        "accepted": finding.accepted or finding.severity == "warning",
        "field": finding.field or finding.code.split(".")[0] in OF_NO_FIELD,
        "found": finding.found or finding.code in NOTHING_FOUND,
        "fix": finding.fix,
    }
    return [name for name, given in parts.items() if not given]
