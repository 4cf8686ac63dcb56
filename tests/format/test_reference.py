"""The reference page keeps up with the parser."""

from __future__ import annotations

import re
from pathlib import Path

from idumb.markdown.plans import fields, plan_parser, steps

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "plan-format.md").read_text(encoding="utf-8")


def test_the_table_of_fields_has_exactly_their_labels_and_aliases() -> None:
    rows = PAGE.partition("| label (aliases) |")[2].partition("\n\n")[0].split("\n")[2:]
    cells = [cell for row in rows for cell in re.findall(r"[^,(]+(?:\([^)]*\))?", row.split("|")[1])]
    labels = [tuple(re.split(r"\s*[(),]\s*", cell.strip().removesuffix(")"))) for cell in cells if cell.strip()]
    assert labels == [*(row.labels for row in fields.FIELDS.values()), ("`x-…`",)]


def test_every_tool_is_on_the_page() -> None:
    words = [word for tool, arguments in steps.TOOLS.items() for word in (tool, *arguments)]
    assert [word for word in words if f"`{word}`" not in PAGE] == []


def test_the_example_on_the_page_is_a_plan() -> None:
    example = re.search(r"^````markdown\n(.*?)^````$", PAGE, re.MULTILINE | re.DOTALL)
    assert example
    parsed = plan_parser.parse(example[1].encode(), "page.md")
    assert parsed.findings == ()
    assert parsed.plan
    assert [t.id for t in parsed.plan.tasks] == ["T1-01", "T1-02"]
    assert len(parsed.plan.tasks[1].steps) == 1
