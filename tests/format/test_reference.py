"""The reference page keeps up with the parser."""

from __future__ import annotations

import re
from pathlib import Path

from idumb.markdown.plans import fields, plan_parser, step_tools

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "plan-format.md").read_text(encoding="utf-8")


def test_every_label_and_tool_is_on_the_page() -> None:
    for label in fields.LABELS:
        assert label in PAGE
    for tool, arguments in step_tools.TOOLS.items():
        for word in (tool, *arguments):
            assert f"`{word}`" in PAGE


def test_the_example_on_the_page_is_a_plan() -> None:
    example = re.search(r"^````markdown\n(.*?)^````$", PAGE, re.MULTILINE | re.DOTALL)
    assert example
    parsed = plan_parser.parse(example[1].encode(), "page.md")
    assert parsed.findings == ()
    assert parsed.plan
    assert [t.id for t in parsed.plan.tasks] == ["T1-01", "T1-02"]
    assert len(parsed.plan.tasks[1].steps) == 1
