"""The tools of steps, with a row for each argument."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from idumb.markdown.syntax.record import COUNT, DURATION, EXACT, BadValue, Key, choice, list_of, scalar, whole
from idumb.markdown.syntax.source import Place
from idumb.markdown.syntax.tree import Node

_ANY = scalar("a text", lambda text: text)
_FILLED = scalar("a text that is not empty", lambda text: text or None)
_NAME = EXACT.must
_MODE = choice("644", "755")._replace(accepted='"644" or "755"')
_WORDS = list_of(_ANY, least=1)


def _base64(text: str) -> str | None:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return text


def _argv(node: Node, place: Place) -> tuple[str, ...]:
    argv: tuple[str, ...] = _WORDS.read(node, place)
    if argv[:1] == ("",):
        raise BadValue(node)
    return argv


ARGV = Key("a list of texts, of which the first is not empty", _argv)
TOOLS: Mapping[str, Mapping[str, Key]] = {
    "write_file": {"path": _NAME, "content": _ANY, "content_base64": scalar("base64 text", _base64), "mode": _MODE},
    "edit_file": {"path": _NAME, "find": _FILLED.must, "replace": _ANY.must, "count": COUNT},
    "apply_patch": {"patch": _FILLED.must},
    "delete_file": {"path": _NAME},
    "move_file": {"from": _NAME, "to": _NAME},
    "make_directory": {"path": _NAME},
    "run": {"command": EXACT, "argv": ARGV, "timeout": DURATION, "expect_exit": whole(0, 255)},
}
ONE_OF = {"write_file": ("content", "content_base64"), "run": ("command", "argv")}
"""Of each pair of arguments, a step has exactly one."""
