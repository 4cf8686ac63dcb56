"""Amendments are written in every notation, in the right place or not at all; every other byte of a plan stays."""

from __future__ import annotations

import difflib
import itertools

import pytest

from idumb.domain import amendment
from idumb.domain.amendment import Amendment
from idumb.domain.errors import InputError
from idumb.domain.plans.plan import FileClaim, Plan
from idumb.markdown.plans import amendment_writer, plan_parser
from tests.format import golden
from tests.support.cases import every
from tests.support.seed import one_on_a_push

HEAD = '---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: T\ngoal: G\n---\n\n## Tasks\n\n'
PROVEN = "- **Acceptance:**\n  - [ ] x — check: `true`\n"
TASK = f"### T1-90: Added\n\n- **Depends on:** none\n- **Files:** create `z.txt`\n{PROVEN}"

FENCE = "```yaml task\nid: T1-01\ntitle: A\ndepends_on: none\n"
FENCE_END = "acceptance:\n  - text: x\n    check: 'test -d .'\n```\n"

FORMS = {
    "inline": "### T1-01: A\n\n- **Depends on:** none\n- **Files:** create `a.py`, modify `b.py`\n- **Acceptance:**\n"
    "  - [ ] x — check: `true`\n",
    "bullets": "### T1-01: A\n\n- **Depends on:** none\n- **Files:**\n  - create `a.py`\n  - modify `b.py`\n"
    "- **Acceptance:**\n  - [ ] x — check: `true`\n",
    "none": "### T1-01: A\n\n- **Depends on:** none\n- **Files:** none\n- **Acceptance:**\n  - [ ] x — check: `true`\n",
    "not declared": "### T1-01: A\n\n- **Depends on:** none\n- **Acceptance:**\n  - [ ] x — check: `true`\n",
    "a box": "- [ ] T1-01 A\n  - **Depends on:** none\n  - **Files:** create `a.py`\n  - **Acceptance:**\n"
    "    - [ ] x — check: `true`\n",
    "YAML, a map": f"{FENCE}files: {{create: [a.py], modify: [b.py]}}\n{FENCE_END}",
    "YAML, lines of lists": f"{FENCE}files:\n  create: [a.py]\n  modify: [b.py]\n{FENCE_END}",
    "YAML, lines": f"{FENCE}files:\n  create:\n    - a.py\n    - a2.py\n  modify:\n    - b.py\n{FENCE_END}",
    "YAML, a text": f"{FENCE}files:\n  create: a.py\n{FENCE_END}",
    "a list of YAML": "- id: T1-01\n  title: A\n  depends_on: none\n  files:\n    create: [a.py]\n  acceptance:\n"
    "    - text: x\n      check: 'test -d .'\n",
}
NEEDS = {
    "inline": "- **Depends on:** T1-01, T1-02\n",
    "in code": "- **Depends on:** `T1-02`, `T1-01`\n",
    "alone": "- **Depends on:** T1-02\n",
    "bullets": "- **Depends on:**\n  - T1-01\n  - T1-02\n",
    "the first bullet": "- **Depends on:**\n  - T1-02\n  - T1-01\n",
}


def plan_of(data: bytes) -> Plan:
    parsed = plan_parser.parse(data, "case.md")
    assert parsed.plan, parsed.findings
    return parsed.plan


def changed_lines(before: bytes, after: bytes) -> list[str]:
    diff = difflib.unified_diff(before.decode().splitlines(), after.decode().splitlines(), n=0, lineterm="")
    return [line for line in diff if line[0] in "+-" and line[:3] not in ("+++", "---")]


@every("form, ends, verb", itertools.product(FORMS, ("\n", "\r\n"), ("create", "delete")))
def test_a_file_is_added_in_every_notation_of_files(form: str, ends: str, verb: str) -> None:
    """R-LOCK-8."""
    data = (HEAD + FORMS[form]).replace("\n", ends).encode()
    claim = FileClaim(verb, "src/new file.py")
    before = plan_of(data).tasks[0].files or ()
    amended = amendment_writer.amend(data, "case.md", [Amendment(amendment.WIDEN, "T1-01", claim=claim)])
    assert set(plan_of(amended).tasks[0].files or ()) == {*before, claim}
    begin, end = data.index(b"T1-01"), len(data) - data.index(b"cceptance:")
    assert (amended[:begin], amended[-end:]) == (data[:begin], data[-end:])
    assert amended.count(b"\r\n") == (amended.count(b"\n") if ends == "\r\n" else 0)


@every("form", NEEDS)
def test_a_dependency_is_removed_in_every_notation(form: str) -> None:
    """R-LOCK-8."""
    acceptance = "- **Acceptance:**\n  - [ ] x — check: `true`\n\n"
    others = "".join(f"### T1-0{n}: A\n\n- **Depends on:** none\n{acceptance}" for n in (1, 2))
    data = f"{HEAD}{others}### T1-03: C\n\n{NEEDS[form]}{acceptance}".encode()
    before = plan_of(data).tasks[2].depends_on
    amended = amendment_writer.amend(data, "case.md", [Amendment(amendment.DROP, "T1-03", "T1-02")])
    assert plan_of(amended).tasks[2].depends_on == tuple(d for d in before if d != "T1-02")
    assert len(changed_lines(data, amended)) <= 2


@every(
    "form",
    [
        f"{FENCE}files:\n  create: [a.py]  # why\n  modify: [b.py]\n{FENCE_END}",
        f"### T1-01: A\n\n- **Depends on:** none\n- **Files:** create `a.py`, <!-- why --> modify `b.py`\n{PROVEN}",
    ],
)
def test_a_field_with_a_comment_is_not_written(form: str) -> None:
    """R-LOCK-8: the comment would be lost."""
    with pytest.raises(InputError) as refused:
        amendment_writer.amend(
            (HEAD + form).encode(), "case.md", [Amendment(amendment.WIDEN, "T1-01", claim=FileClaim("create", "c"))]
        )
    assert refused.value.code == "amend.cannot-write"


LINE = Amendment(amendment.DECIDE, "T1-01.AC-1.1", "## yes ```\n- [ ] T1-09 <b> --> \u202e x")


@pytest.mark.parametrize("first", one_on_a_push(range(3), "amended plans"))
def test_a_decision_changes_no_task_of_any_plan(first: int) -> None:
    """R-ASK-3, R-PLAN-1: each commit tries a third of the plans."""
    wrong = []
    for name, before in list(golden.plans().items())[first::3]:
        amended = amendment_writer.amend(golden.data(name), "case.md", [LINE])
        after = plan_parser.parse(amended, "case.md").plan
        if not amended.startswith(golden.data(name)) or not after or golden.digests(after) != golden.digests(before):
            wrong.append(name)
    assert wrong == []
    assert len(golden.plans()) > 150


@every("name", ["common-shape", "text-crlf", "text-no-final-newline", "yaml-task"])
def test_a_second_decision_is_in_the_same_section(name: str) -> None:
    once = amendment_writer.amend(golden.data(name), "case.md", [LINE])
    twice = amendment_writer.amend(once, "case.md", [LINE])
    assert twice.startswith(once)
    assert (once.count(amendment_writer.SECTION.encode()), twice.count(amendment_writer.SECTION.encode())) == (1, 1)


def test_a_decision_that_would_begin_a_comment_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        amendment_writer.amend(golden.data("common-shape"), "case.md", [Amendment(amendment.DECIDE, "x", "a <!-- b")])
    assert refused.value.code == "amend.cannot-write"


@pytest.mark.parametrize("first", one_on_a_push(range(3), "plans with another task"))
def test_an_added_task_follows_the_others(first: int) -> None:
    """R-LOCK-8: each commit tries a third of the plans."""
    wrong = []
    for name, before in list(golden.plans().items())[first::3]:
        task = TASK.replace("T1-90", f"T{before.phase}-90")
        amended = amendment_writer.amend(golden.data(name), "case.md", [Amendment(amendment.ADD, None, task)])
        after = plan_parser.parse(amended, "case.md").plan
        rows = list(golden.digests(after).items()) if after else []
        if rows[:-1] != list(golden.digests(before).items()) or not rows[-1][0].endswith("-90"):
            wrong.append(name)
    assert wrong == []


def test_an_unreadable_plan_is_not_written() -> None:
    with pytest.raises(InputError) as refused:
        amendment_writer.amend(b"no plan", "case.md", [Amendment(amendment.DECIDE, None, "x")])
    assert refused.value.code == "plan.invalid"


def test_a_very_long_answer_is_truncated_so_that_its_line_fits_into_a_plan() -> None:
    data = (HEAD + FORMS["inline"]).encode()
    amended = amendment_writer.amend(data, "case.md", [Amendment(amendment.DECIDE, "x", "*" * 200_000)])
    assert len(amended) < len(data) + 3 * amendment_writer.MOST


def test_a_plan_is_written_back_byte_for_byte() -> None:
    """R-PLAN-1."""
    read = {name: golden.parsed(name) for name in golden.NAMES}
    texts = {n: p.text for n, p in read.items() if not any(f.code == "plan.not-utf-8" for f in p.findings)}
    assert [name for name, text in texts.items() if text.encode() != golden.data(name)] == []
    assert len(texts) > 350


def test_every_span_is_on_its_line_and_inside_its_task() -> None:
    spans = [
        (f"{name}, {task.id}, {field}", golden.parsed(name).text, task.span, span)
        for name, plan in golden.plans().items()
        for task in plan.tasks
        for field, span in task.spans.items()
    ]
    assert [place for place, _, task, span in spans if not task.start <= span.start <= span.end] == []
    assert [place for place, text, _, span in spans if text.count("\n", 0, span.start) + 1 != span.line] == []
    assert len(spans) > 300


def test_a_byte_order_mark_is_kept() -> None:
    data = b"\xef\xbb\xbf" + golden.data("common-shape")
    title = plan_of(data).spans["title"]
    changed = amendment_writer.edited(data.decode(), title.start, title.end, "New")
    assert changed.encode() == data.replace(b"title: T\n", b"title: New\n")
