"""The tools of steps, their arguments, and the values each kind of argument accepts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from idumb.domain import whole_numbers
from idumb.markdown.plans import values

# Argument -> kind; a kind that ends in `?` is optional. What depends on other arguments is checked in `_together`.
TOOLS: dict[str, dict[str, str]] = {
    "write_file": {"path": "name", "content": "text?", "content_base64": "base64?", "mode": "mode?"},
    "edit_file": {"path": "name", "find": "filled", "replace": "text", "count": "count?"},
    "apply_patch": {"patch": "filled"},
    "delete_file": {"path": "name"},
    "move_file": {"from": "name", "to": "name"},
    "make_directory": {"path": "name"},
    "run": {"command": "name?", "argv": "argv?", "timeout": "seconds?", "expect_exit": "exit?"},
}
ONE_OF = {"write_file": ("content", "content_base64"), "run": ("command", "argv")}


class Plain(str):
    """The source text of a plain YAML scalar, which may also be a number."""

    __slots__ = ()


def _text(value: Any) -> str | None:
    if isinstance(value, Plain):
        return str.__str__(value)
    return value if isinstance(value, str) else None


def _filled(value: Any) -> str | None:
    return _text(value) or None


def _name(value: Any) -> str | None:
    text = _text(value)
    return text if text and text.strip() and "\0" not in text else None


def _base64(value: Any) -> str | None:
    text = _text(value)
    try:
        base64.b64decode("".join((text or "*").split()), validate=True)
    except (binascii.Error, ValueError):
        return "" if text == "" else None
    return text


def _mode(value: Any) -> str | None:
    return _text(value) if value in {"644", "755"} else None


def _integer(value: Any) -> int | None:
    if isinstance(value, Plain):
        return whole_numbers.parse(value) if value.isascii() and value.isdecimal() else None
    number = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= whole_numbers.LARGEST
    return value if number else None


def _count(value: Any) -> int | None:
    return number if (number := _integer(value)) and number > 0 else None


def _seconds(value: Any) -> int | None:
    text = _text(value)
    return values.seconds(text, bare=isinstance(value, Plain)) if text else _count(value)


def _exit(value: Any) -> int | None:
    number = _integer(value)
    return number if number is not None and 0 <= number <= 255 else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, Plain):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def _argv(value: Any) -> list[str] | None:
    if not isinstance(value, list) or not value:
        return None
    texts = [_text(item) for item in value]
    return [t for t in texts if t is not None] if None not in texts and texts[0] else None


# The check of each kind of argument, and what it accepts.
KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "name": (_name, "a text that is not empty"),
    "filled": (_filled, "a text that is not empty"),
    "text": (_text, "a text"),
    "base64": (_base64, "base64 text"),
    "mode": (_mode, '"644" or "755"'),
    "count": (_count, "a whole number from 1"),
    "argv": (_argv, "a list of texts"),
    "seconds": (_seconds, "1h30m, 45m or 90s, or whole seconds"),
    "exit": (_exit, "a whole number from 0 to 255"),
    "boolean": (_boolean, "true or false"),
}
