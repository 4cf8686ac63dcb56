"""The conformance suite of the plan format: every case is a plan and exactly what must come of it.

A `.json` beside the `.md` holds either `plan` (every value that is not the default) with the warnings, or the
findings alone, each as severity, code and line, in order. `docs/plan-format.md` is the text they were decided from.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import asdict

from idumb.app.ports import ParsedPlan
from idumb.domain.finding import Finding
from idumb.domain.plans.plan import Plan
from tests.format import golden
from tests.support.cases import every

_LEFT_OUT = {"span", "spans", "sha256"}
OF_NO_FIELD = {"plan", "fence", "comment"}
NOTHING_FOUND = {
    "command.empty", "criterion.no-text", "field.empty", "field.not-text", "field.unexpected-content",
    "plan.criteria-twice", "plan.empty-value", "plan.frontmatter-too-large", "plan.line-too-long", "plan.missing-key",
    "plan.no-frontmatter", "plan.no-tasks", "plan.not-utf-8", "plan.nul", "plan.too-deep", "step.missing-argument",
    "step.missing-key", "steps.empty", "steps.not-a-list", "task.no-acceptance", "task.no-id", "task.no-title",
    "task.not-a-mapping",
}  # fmt: skip


def as_json(value: Any) -> Any:
    """A plan as JSON: every field that is not the default, without the places."""
    if isinstance(value, Struct):
        left_out = _LEFT_OUT | {"path"} if isinstance(value, Plan) else _LEFT_OUT
        given = {name: each for name, each in asdict(value).items() if name not in left_out}
        return {name: as_json(each) for name, each in given.items() if each not in ({}, _default(value, name))}
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    return {key: as_json(item) for key, item in value.items()} if isinstance(value, dict) else value


def _default(of: Struct, name: str) -> Any:
    defaults = of.__struct_defaults__
    return dict(zip(reversed(of.__struct_fields__), reversed(defaults), strict=False)).get(name, NODEFAULT)


def outcome(parsed: ParsedPlan) -> dict[str, Any]:
    findings = [f"{f.severity} {f.code} {f.line}" for f in parsed.findings]
    return {"findings": findings} if parsed.plan is None else {"plan": as_json(parsed.plan), "findings": findings}


@every("name", golden.NAMES)
def test_case_gives_the_result_of_the_reference(name: str) -> None:
    """R-PLAN-2, R-PLAN-3, R-PLAN-4, R-PLAN-5, R-PLAN-7, R-GATE-2."""
    parsed = golden.parsed(name)
    assert outcome(parsed) == json.loads((golden.CASES / f"{name}.json").read_text(encoding="utf-8"))


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
