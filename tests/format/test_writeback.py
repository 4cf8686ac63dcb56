"""The text of a plan is all of its bytes, and the spans of its fields are where they are written."""

from __future__ import annotations

from idumb.domain.plans.plan import Plan
from idumb.markdown.plans import amendment_writer, plan_parser
from tests.format import golden

SHAPE = golden.data("common-shape")


def plan_of(data: bytes) -> tuple[Plan, str]:
    parsed = plan_parser.parse(data, "case.md")
    assert parsed.plan, parsed.findings
    return parsed.plan, parsed.text


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
    assert [place for place, _, task, span in spans if not (task and task.start <= span.start <= span.end)] == []
    assert [place for place, text, _, span in spans if text.count("\n", 0, span.start) + 1 != span.line] == []
    assert len(spans) > 300


def test_a_byte_order_mark_is_kept() -> None:
    data = b"\xef\xbb\xbf" + SHAPE
    plan, text = plan_of(data)
    title = plan.spans["title"]
    changed = amendment_writer.edited(text, title.start, title.end, "New")
    assert changed.encode() == data.replace(b"title: T\n", b"title: New\n")
