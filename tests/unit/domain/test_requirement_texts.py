"""The texts of requirements, for the prompts of agents (R-RUN-4)."""

from __future__ import annotations

from idumb.domain.intake import declarations
from idumb.domain.plans.plan import Plan
from tests.support.cases import every

PLAN = Plan(
    "01-PLAN.md", "0" * 64, "1", "01", "Links", "Links last", requirements={"R-1": "as the plan says", "R-2": ""}
)


@every(
    "line",
    [
        "- R-2: as the document says",
        "| R-2 | as the document says |",
        "### R-2 as the document says",
        "- [ ] **R-2**: as the document says",
        "R-2 — as the document says",
    ],
)
def test_a_text_comes_from_the_plan_or_from_the_line_that_begins_with_the_id(line: str) -> None:
    document = f"# Requirements\n\nR-2x no\nR-21: no\nsee R-2\n{line}\n- R-2: later\n"
    described = declarations.requirement_texts(PLAN, ("R-1", "R-2", "R-9"), document)
    assert described == ("R-1: as the plan says", "R-2: as the document says", "R-9")
