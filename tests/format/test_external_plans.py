"""Plans of other authors, if available: the reference's result for each. The plans are not kept here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from idumb.markdown.plans import plan_parser

HANDED = Path(__file__).resolve().parents[3] / "shared" / "format-cases"
DECIDED: dict[str, Any] = json.loads((Path(__file__).parent / "handed_cases.json").read_text(encoding="utf-8"))


@pytest.mark.skipif(not HANDED.is_dir(), reason=f"no plans at {HANDED}")
@pytest.mark.parametrize("name", DECIDED)
def test_an_external_plan_gives_the_expected_result(name: str) -> None:
    """R-PLAN-5. Counts are those of criteria, declared paths and steps, by task."""
    parsed = plan_parser.parse((HANDED / f"{name}.md").read_bytes(), name)
    summary: dict[str, Any] = {"findings": [f"{f.severity} {f.code} {f.line}" for f in parsed.findings]}
    if parsed.plan:
        tasks = parsed.plan.tasks
        summary["tasks"] = {t.id: [len(t.acceptance), len(t.files or ()), len(t.steps)] for t in tasks}
    assert summary == DECIDED[name]
