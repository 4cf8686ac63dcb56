"""Files that say what must come of something. With TESTS_WRITE=1 the tests write them anew, for `git diff`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "TESTS_WRITE"
_WIDTH = 120


def compare(place: Path, text: str) -> None:
    """Assert that the file has this text, byte for byte."""
    if os.environ.get(VARIABLE):
        place.write_bytes(text.encode())
    assert text == place.read_bytes().decode()


def compare_json(place: Path, value: Any) -> None:
    """Assert that the file has this value, in whatever form it is written."""
    ascii_text = json.dumps(value)
    value = json.loads(ascii_text)
    if os.environ.get(VARIABLE):
        text = _laid_out(value, is_ascii="\\ud" in ascii_text)  # halves of characters are no UTF-8
        place.write_text(f"{text}\n", encoding="utf-8")
    assert value == read_json(place)


def _laid_out(value: Any, indent: str = "", *, is_ascii: bool) -> str:
    """JSON in which a list or an object that fits on a line is on one."""
    text = json.dumps(value, ensure_ascii=is_ascii)
    if len(indent) + len(text) < _WIDTH or not isinstance(value, dict | list):
        return text
    named = {f"{json.dumps(name)}: ": each for name, each in value.items()} if isinstance(value, dict) else None
    items = [("", each) for each in value] if named is None else [*named.items()]
    rows = ",\n".join(f"{indent} {name}{_laid_out(each, f'{indent} ', is_ascii=is_ascii)}" for name, each in items)
    return f"[\n{rows}\n{indent}]" if named is None else f"{{\n{rows}\n{indent}}}"


def read_json(place: Path) -> Any:
    return json.loads(place.read_text(encoding="utf-8"))
