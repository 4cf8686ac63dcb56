"""Edits by span change only their span."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idumb.domain.errors import InputError
from idumb.domain.plans.plan import Plan, Span
from idumb.markdown.plans import plan_parser
from idumb.markdown.syntax import writeback
from tests.format import golden

SHAPE = golden.data("common-shape")


def plan_of(data: bytes) -> tuple[Plan, str]:
    parsed = plan_parser.parse(data, "case.md")
    assert parsed.plan, parsed.findings
    return parsed.plan, parsed.text


def replaced(text: str, spans: Mapping[str, Span], name: str, value: str) -> str:
    return writeback.edit(text, [(spans[name], writeback.with_line_ends(value, text))])


def test_a_plan_is_written_back_byte_for_byte() -> None:
    """R-PLAN-1."""
    read = {name: golden.parsed(name) for name in golden.NAMES}
    texts = {n: p.text for n, p in read.items() if not any(f.code == "plan.not-utf-8" for f in p.findings)}
    assert [name for name, text in texts.items() if writeback.edit(text, []).encode() != golden.data(name)] == []
    assert len(texts) > 350


def test_every_span_is_on_its_line_and_inside_its_task() -> None:
    spans = [
        (f"{name}, {task.id}, {field}", golden.parsed(name).text, task.span, span)
        for name, plan in golden.plans().items()
        for task in plan.tasks
        for field, span in task.spans.items()
    ]
    assert [place for place, _, task, span in spans if not (task and task.start <= span.start <= span.end)] == []
    assert [place for place, text, _, span in spans if text.count("\n", 0, span.start) + 1 != span.line] == []
    assert len(spans) > 300


def test_replacing_one_field_keeps_every_other_byte() -> None:
    """R-PLAN-1."""
    data = SHAPE
    plan, text = plan_of(data)
    changed = replaced(text, plan.tasks[0].spans, "estimate", "2h")
    assert changed.encode() == data.replace(b"**Estimate:** 30m", b"**Estimate:** 2h")
    assert plan_of(changed.encode())[0].tasks[0].estimate == 7200


def test_a_nested_value_is_replaced_as_a_whole() -> None:
    plan, text = plan_of(SHAPE)
    changed = replaced(text, plan.tasks[0].spans, "files", "- read `a.py`\n  - delete `b.py`")
    claims = plan_of(changed.encode())[0].tasks[0].files
    assert [(c.verb, c.path) for c in claims or ()] == [("read", "a.py"), ("delete", "b.py")]


def test_new_text_gets_the_line_endings_of_the_plan() -> None:
    plan, text = plan_of(SHAPE.replace(b"\n", b"\r\n"))
    changed = replaced(text, plan.tasks[0].spans, "files", "- read `a.py`\n  - read `b.py`")
    assert changed.count("\n") == changed.count("\r\n")
    assert plan_of(changed.encode())[0].tasks[0].files


def test_a_byte_order_mark_is_kept() -> None:
    data = b"\xef\xbb\xbf" + SHAPE
    plan, text = plan_of(data)
    changed = replaced(text, plan.spans, "title", "New")
    assert changed.encode() == data.replace(b"title: T\n", b"title: New\n")


def test_text_is_inserted_after_a_span() -> None:
    plan, text = plan_of(SHAPE)
    span = plan.tasks[0].span
    assert span
    changed = writeback.insert_after(text, span, "\n- **Priority:** high")
    assert plan_of(changed.encode())[0].tasks[0].priority == "high"


def test_overlapping_or_out_of_range_edits_are_refused() -> None:
    with pytest.raises(InputError, match="overlap"):
        writeback.edit("abcdef", [(Span(0, 3, 1), "x"), (Span(2, 4, 1), "y")])
    with pytest.raises(InputError, match="inside"):
        writeback.edit("abc", [(Span(2, 9, 1), "x")])


@st.composite
def texts_with_edits(draw: st.DrawFn) -> tuple[str, list[tuple[Span, str]]]:
    text = draw(st.text(max_size=60))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return text, [(Span(a, b, 1), draw(st.text(max_size=5))) for a, b in pairs]


@given(texts_with_edits())
def test_text_between_edits_is_unchanged(example: tuple[str, list[tuple[Span, str]]]) -> None:
    text, edits = example
    changed = writeback.edit(text, edits)
    position = at = 0
    for span, new in edits:
        kept = text[position : span.start]
        assert changed[at : at + len(kept)] == kept
        at += len(kept)
        assert changed[at : at + len(new)] == new
        at += len(new)
        position = span.end
    assert changed[at:] == text[position:]
