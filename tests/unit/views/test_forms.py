"""Forms: what their fields, rows and optional parts print."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from typing import Any

from idumb.views import answers, forms
from tests.support import schemas
from tests.support.cases import every

DATA: dict[str, Any] = {
    "id": "T1", "none": None, "zero": 0, "no": False, "at": "2026-01-02T03:04:05Z", "names": [*"abc"], "empty": [],
    "task": {"title": "A title"}, "counts": {"failed": 1, "done": 0},
    "rows": [{"id": "x", "why": "", "parts": ["p", "q"]}, {"id": "long", "why": "late", "parts": []}],
}  # fmt: skip


@every(
    "form, lines",
    [
        ("{id}: {task.title}", ["T1: A title"]),
        ("{none or id} {at} {no}", ["T1 2026-01-02 03:04:05 UTC no"]),
        ("a {none}\nelse b\nelse c", ["b"]),
        ("{id}[ of {none}][ at {zero}]", ["T1 at 0"]),
        ("{names} {names:2} {names:#name} {zero:#name}[ {zero:+name}]", ["a, b, c a, b and 1 more 3 names 0 names"]),
        ("{empty:#name}[, {empty:+name}][, {none:#name}]", ["0 names"]),
        ("{names:?some}\n{names:!none}\n{none:!none}", ["some", "none"]),
        ("{id}: {counts:counts}\n{none}: {id}", ["T1: 1 failed"]),
        ("rows* {id} | [{why}]\n* parts*   {} of {above.id}", ["x", "  p of x", "  q of x", "long  late"]),
        ("rows* {why:!}{id}\n*   more", ["x", "  more"]),
        (
            "names*2 - {}\ncounts* {name} {value}",
            ["- a", "- b", "  and 1 more; --json has them", "failed 1", "done 0"],
        ),
        ("names* {above.zero:?}{}\nelse names*   {above.zero:!}{}", ["  a", "  b", "  c"]),
    ],
)
def test_a_form_prints(form: str, lines: list[str]) -> None:
    assert forms.fill(form, DATA) == lines


def test_values_are_no_forms() -> None:
    assert forms.fill(
        "{a}[, {b}]\nrows* {a} | {b}", {"a": "{b} [x] | y", "b": "\\1", "rows": [{"a": "| {a}", "b": 1}]}
    ) == ["{b} [x] | y, \\1", "| {a}  1"]


def _properties(schema: Any) -> set[str]:
    below = schema if isinstance(schema, list) else schema.values() if isinstance(schema, dict) else ()
    own = schema.get("properties", {}) if isinstance(schema, dict) else ()
    return {*own, *(name for each in below for name in _properties(each))}


def test_the_forms_of_answers_name_only_what_answers_have() -> None:
    known = _properties([*schemas.every().values()]) | {"name", "value", "above", "tools", "address", "about"}
    for module in pkgutil.iter_modules(answers.__path__):
        texts = getattr(import_module(f"{answers.__name__}.{module.name}"), "FORMS", {})
        for name, form in texts.items():
            paths = re.findall(r"\{([\w. ]*)|^(?:\* |else )*([\w.]+)\*\d* ", form, re.MULTILINE)
            parts = {part for pair in paths for path in pair for part in re.split(r"\.| or ", path) if part}
            assert parts <= known, name
