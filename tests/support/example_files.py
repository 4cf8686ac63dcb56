"""Files that say what must come of something. With TESTS_WRITE=1 the tests write them anew, for `git diff`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "TESTS_WRITE"


def compare(place: Path, text: str) -> None:
    """Assert that the file has this text, byte for byte."""
    if os.environ.get(VARIABLE):
        place.write_bytes(text.encode())
    assert text == place.read_bytes().decode()


def compare_json(place: Path, value: Any) -> None:
    """Assert that the file has this value, in whatever form it is written."""
    ascii_text = json.dumps(value)
    value = json.loads(ascii_text)
    if os.environ.get(VARIABLE) and not (place.exists() and read_json(place) == value):
        text = json.dumps(value, indent=1, ensure_ascii="\\ud" in ascii_text)  # halves of characters are no UTF-8
        place.write_text(f"{text}\n", encoding="utf-8")
    assert value == read_json(place)


def read_json(place: Path) -> Any:
    return json.loads(place.read_text(encoding="utf-8"))
