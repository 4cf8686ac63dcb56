"""Extracting a plan from a model's answer, and the prompts that describe the answer."""

from __future__ import annotations

from pathlib import Path

from idumb.domain import replies, wording
from idumb.domain.finding import ERROR
from idumb.markdown.plans import plan_parser
from tests.support.cases import every

PLAN = "---\ntype: plan\n---\n\n## Tasks\n\n```yaml steps\n- x\n```\n\n```sh\ntrue\n```\n"
OTHER = PLAN.replace("true", "false")
PROMPTS = Path(__file__).resolve().parents[2] / "templates/prompts"


@every(
    "reply",
    [
        PLAN,
        f"\ufeff\n\n{PLAN}\n\n",
        PLAN.replace("\n", "\r\n"),
        f"Here it is.\n\n````markdown\n{PLAN}````\n\nI hope it helps.",
        f"```markdown\n{PLAN}```",
        f"```\n{PLAN}```\n\nAgain:\n\n```md\n{PLAN}```",
        f"~~~md\n{PLAN}~~~",
        f"First `ls`:\n\n```sh\nls\n```\n\n```markdown\n{PLAN}```",
        f"Here it is:\n\n{PLAN}",
    ],
)
def test_a_plan_inside_prose_is_extracted(reply: str) -> None:
    """R-ADAPT-4."""
    assert replies.plans_in(reply) == (PLAN,)


@every(
    "reply",
    [
        "",
        "No.",
        f"```markdown\n{PLAN}",
        f"````markdown\n{PLAN}```\n",
        f"```python\n{PLAN}```",
        "---\n---\n",
        "A rule:\n\n---\ntitle: x\n---\n",
    ],
)
def test_a_truncated_or_missing_plan_is_not_extracted(reply: str) -> None:
    """R-ADAPT-4: half a plan is never taken for a whole one."""
    assert replies.plans_in(reply) == ()


def test_two_plans_are_recognized_as_two() -> None:
    assert replies.plans_in(f"````md\n{PLAN}````\n````md\n{OTHER}````") == (PLAN, OTHER)


def test_the_planner_s_example_is_a_plan_without_errors() -> None:
    """R-ADAPT-4, R-PLAN-10: the planner learns exactly the format that the parser reads."""
    plans = replies.plans_in((PROMPTS / "planner.md").read_text().partition("## An example")[2])
    assert len(plans) == 1
    parsed = plan_parser.parse(plans[0].encode(), ".planning/phases/1/01-PLAN.md")
    assert parsed.plan is not None
    assert [f for f in parsed.findings if f.severity == ERROR] == []
    assert len(parsed.plan.tasks) == 2


def test_the_steps_shown_to_the_planner_are_valid() -> None:
    """R-PLAN-10."""
    text = (PROMPTS / "planner.md").read_text()
    fence = text.partition("````markdown\n")[2].partition("````")[0]
    assert "```yaml steps" in fence
    fields = "- **Files:** create `links.py`, modify `page.py`\n- **Acceptance:**\n  - [ ] it runs — check: `true`\n"
    head = '---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: T\ngoal: G\n---\n\n## Tasks\n\n### T1-01: One\n\n'
    parsed = plan_parser.parse(f"{head}{fields}\n{fence}".encode(), ".planning/phases/1/01-PLAN.md")
    assert parsed.findings == ()
    assert parsed.plan is not None
    assert [step.tool for step in parsed.plan.tasks[0].steps] == ["write_file", "edit_file"]


def test_the_plan_checker_s_example_is_an_object() -> None:
    text = (PROMPTS / "plan-checker.md").read_text()
    assert isinstance(replies.answer(next(line for line in text.splitlines() if line.startswith("{")), "verdict"), dict)


@every("text", ["```\nobey\n```", "````\n`````", "plain", "a ``` b ```` c"])
def test_foreign_text_never_closes_its_fence(text: str) -> None:
    """R-ADAPT-4: what others wrote stays a quotation in a prompt."""
    lines = wording.fenced(text, "text").split("\n")
    mark = lines[0].removesuffix("text")
    assert lines[-1] == mark
    assert all(mark not in line for line in lines[1:-1])
    assert wording.fenced(" \n") == ""
