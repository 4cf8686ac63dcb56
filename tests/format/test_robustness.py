"""No file content makes the parser raise, and only the text of its lines counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from idumb.domain.plans.plan import Plan
from idumb.markdown.plans import plan_parser
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Source
from tests.format.golden import outcome
from tests.support.growth import assert_linear
from tests.support.seed import commit_seed, one_on_a_push

HEAD = """---
type: plan
phase: "1"
plan: "01"
title: T
goal: G
requirements: {REQ-1: One, REQ-2: Two}
---

## Tasks

"""
# fmt: off
LINES = st.sampled_from([
    "### T1-01: A", "### T1-02: B", "#### Group", "## Notes", "Some text.", "", "", "", "- **Estimate:** 30m",
    "- **Requirements:** REQ-1, REQ-2", "- **Depends on:** none", "- **Depends on:** T1-02, T1-03", "- **Files:**",
    "  - create `a.py`", "  - modify `b.py`, `c.py`", "- **Files:** read `d.py`", "- **Acceptance:**",
    "  - [ ] it is so — check: `make`", "  - [ ] a — b — human", "  - [ ] plain", "  - [ ] `x -- y` — verify",
    "  - [x] done", "  - [ ] AC-2: two — human", "- **Verify:** `make`", "- **Verify:** `a`, `b`", "- **Tests:**",
    "  - `pytest` — fails before, passes after: it works", "- **Priority:** high", "- [ ] T1-04 Box", "  wrapped",
    "- id: T1-05", "  title: Listed", "```yaml steps", "- {tool: run, intent: i, arguments: {command: x}}", "```",
    "<!-- c -->", "<!--", "-->", "> quote", "- bullet", "1. one", "\t- tab", "    code", "---", "<div>",
    "#### T1-06: Deeper", "- depends_on: T1-02", "- Acceptance:", "- Files: create `x`", "- estimate: 1h",
    "- Note well: x", "- **Builder:** codex", "- **Change:** breaking", "- Timeout: 2h", "- **Estimate:** ",
    "  - [ ]  two",
])
# fmt: on


@seed(commit_seed())  # each commit tries other plans
@settings(max_examples=100)
@given(st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n"])), max_size=25))
def test_the_ends_of_lines_change_neither_a_plan_nor_its_findings(lines: list[tuple[str, str]]) -> None:
    """R-PLAN-2: so the digests of its tasks stay, whatever an editor does to some of the lines."""
    mixed, plain = ("".join(line + end for line, end in lines), "".join(line + "\n" for line, _ in lines))
    assert outcome(plan_parser.parse((HEAD + mixed).encode(), "p")) == outcome(
        plan_parser.parse((HEAD + plain).encode(), "p")
    )


@settings(max_examples=200)
@given(st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=200))
def test_any_bytes_give_a_plan_or_findings(data: bytes) -> None:
    """R-PLAN-5."""
    head = HEAD.encode()
    for whole in (data, head + data, b"---\n" + data + b"\n---\n", head + b"```yaml task\n" + data + b"\n```\n"):
        parsed = plan_parser.parse(whole, "p")
        assert parsed.plan or parsed.findings


TASK = "### T1-01: A\n\n"
HOSTILE: dict[str, Callable[[int], str]] = {
    "backticks": lambda n: "`" * n + " " + "`` " * n,
    "brackets": lambda n: "[" * n,
    "rules": lambda n: ("- " * n + "\n") * 16,
    "nested lists": lambda n: "- " * n + "x",
    "nested quotes": lambda n: "> " * n,
    "opened comments": lambda n: "<!-- " * n,
    "nested YAML of tasks": lambda n: ("```yaml task\n" + "[" * 2000 + "\n```\n") * (n // 16),
    "nested JSON of steps": lambda n: "```json steps\n" + "[" * n + "\n```",
    "nested YAML of steps": lambda n: "```yaml steps\n- " + '{"a":' * n + "\n```",
    "dashes in a criterion": lambda n: f"{TASK}- Acceptance:\n  - [ ] " + "— " * n,
    "checks in a criterion": lambda n: f"{TASK}- Acceptance:\n  - [ ] " + "check " * n + " " * n + "(",
    "quotes in files": lambda n: f"{TASK}- Files: " + "'" * n,
    "half-quoted files": lambda n: f"{TASK}- Files: " + "'a " * n,
    "many files": lambda n: f"{TASK}- Files: " + "`a`, " * n,
    "half-quoted dependencies": lambda n: f"{TASK}- Depends on: " + "'a, " * n,
    "a long label": lambda n: f"{TASK}- " + "x" * n + ": y",
    "blanks in a label": lambda n: f"{TASK}- ** " + " " * n + "x",
    "tabs in a label": lambda n: f"{TASK}**A" + "\t" * n + "x",
    "number signs": lambda n: "### " + "#" * n,
    "stars": lambda n: "* " * n + "x",
    "lines of text": lambda n: TASK + "a\n" * n,
    "empty lines": lambda n: "### T1-01: A" + "\n" * n + "x",
    "blanks in a heading": lambda n: "# a" + " " * n + "b",
    "blanks in a test": lambda n: f"{TASK}- Tests: `x` — a" + " " * n + "b",
    "blanks between dashes": lambda n: "-" + " " * n + "-" + " " * n + "x",
    "comments in text": lambda n: "text\n" + "a `b` <!-- c -->\n" * n,
    "underlined headings": lambda n: "a <!-- b -->\n===\n\n" * n,
    "options": lambda n: f"{TASK}- Options:\n" + "".join(f"  - a{number}: b\n" for number in range(n)),
    "tasks with mistakes": lambda n: "".join(
        f"### T1-{number}: A\n\n- Requirements: REQ-X{number}\n- Stat{number}: x\n\n" for number in range(100, 100 + n)
    ),
    "brackets before fields": lambda n: "### T1-01: A\n" + "(" * n + "\n- Acceptance:\n  - [x] a — human",
    "stars before fields": lambda n: f"{TASK}(x" + "*" * n + "\n- Acceptance:\n  - [x] a — human",
    "tildes in HTML": lambda n: "<div>\n" + "~" * n + "`\n</div>",
}


@pytest.mark.parametrize("kind", one_on_a_push([*HOSTILE], "hostile text"))
def test_hostile_text_is_read_in_linear_time(kind: str) -> None:
    def read(text: bytes) -> None:
        assert plan_parser.parse(text, "p").findings

    # Several times: a line that is long enough to be measured is too long to be read.
    assert_linear(read, lambda n: (HEAD + f"{HOSTILE[kind](n)}\n\n" * 4).encode())


def test_parts_of_a_long_text_are_taken_in_linear_time() -> None:
    """Each step in a `json steps` fence is such a part."""

    def read(text: Text) -> None:
        for at in range(0, len(text.value), 2):
            assert text.range(at, at + 1).at(0) == at

    assert_linear(read, lambda n: Source("a\n" * n, "p").part(0, n))


def test_a_plan_larger_than_32_mib_is_refused_unread() -> None:
    parsed = plan_parser.parse(b"x" * (32 * 1024 * 1024 + 1), "p")
    assert [f.code for f in parsed.findings] == ["plan.too-large"]


def task(number: int) -> str:
    return f"### T1-{number:02d}: A\n\n- **Acceptance:**\n  - [ ] a — human\n\n"


def plan_with(count: int) -> Plan | None:
    return plan_parser.parse((HEAD + "".join(map(task, range(1, count + 1)))).encode(), "p").plan


def test_ten_thousand_tasks_are_read_and_one_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan_parser.MAX_TASKS == 10_000
    monkeypatch.setattr(plan_parser, "MAX_TASKS", 10)
    plan = plan_with(10)
    assert plan
    assert len(plan.tasks) == 10
    assert plan_with(11) is None


def test_a_message_quotes_a_readable_amount_of_a_plan() -> None:
    plan = HEAD + "### T1-01: A\n\n- **" + "unheard of " * 5000 + ":** x\n"
    findings = plan_parser.parse(plan.encode(), "p").findings
    assert findings
    assert all(len(f.message) <= 700 for f in findings)
