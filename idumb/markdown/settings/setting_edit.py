"""Changes one setting in the text of a file of settings. Every other byte stays."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain.errors import InputError
from idumb.markdown.settings import setting_values
from idumb.markdown.settings.configuration import MAX_BYTES
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.source import CONFIG
from idumb.markdown.syntax.tree import Node


def with_setting(data: bytes, shown: str, keys: Sequence[str], value: str) -> bytes:
    """Return the file with this value, as YAML writes it, at a path of keys. `shown` is its name in messages.

    Raises InputError `config.invalid` if the file is no YAML, or `config.not-editable` if a value is in the way that
    only an editor can change.
    """
    root, source = setting_values.parsed(data, shown, MAX_BYTES, CONFIG)
    if source.any_error:
        raise setting_values.rejected("config.invalid", source.sorted(), f"Fix {shown}")
    text = source.text
    node, depth = root, 0
    while node is not None and node.kind == tree.MAP and depth < len(keys):
        _, below = tree.find(node, keys[depth])
        if below is None:
            break
        node, depth = below, depth + 1
    if node is None:
        return _encoded(_appended(text, _block(keys, value, "")))
    if depth == len(keys) or (node.is_null and depth > 0):
        return _encoded(_replaced(text, node, keys[depth:], value, shown))
    if node.kind != tree.MAP:
        raise _not_editable(shown, source.place(node.start)[0])
    if text[node.start : node.start + 1] == "{":
        rest = ", " if node.items else ""
        return _encoded(f"{text[: node.start + 1]}{_flow(keys[depth:], value)}{rest}{text[node.start + 1 :]}")
    if depth == 0:
        return _encoded(_appended(text, _block(keys, value, "")))
    first = node.items[0].start
    indent = text[source.starts[source.line_of(first)] : first]
    block = _block(keys[depth:], value, indent)
    return _encoded(text[:first] + block.removeprefix(indent).replace("\n", _end(text)) + indent + text[first:])


def _replaced(text: str, node: Node, keys: Sequence[str], value: str, shown: str) -> str:
    """Return the text with another value of a key that is there."""
    is_block = node.kind != tree.TEXT and text[node.start : node.start + 1] not in ("{", "[")
    if is_block or "\n" in text[node.start : node.end]:
        raise _not_editable(shown, text.count("\n", 0, node.start) + 1)
    written = f"{{{_flow(keys, value)}}}" if keys else value
    gap = " " if text[node.start - 1 : node.start] == ":" else ""
    return text[: node.start] + gap + written + text[node.end :]


def _flow(keys: Sequence[str], value: str) -> str:
    for key in reversed(keys[1:]):
        value = f"{{{key}: {value}}}"
    return f"{keys[0]}: {value}"


def _block(keys: Sequence[str], value: str, indent: str) -> str:
    lines = [f"{indent}{'  ' * depth}{key}:" for depth, key in enumerate(keys)]
    return "\n".join([*lines[:-1], f"{lines[-1]} {value}", ""])


def _appended(text: str, rows: str) -> str:
    gap = _end(text) if text.lstrip("\ufeff") and not text.endswith("\n") else ""
    return text + gap + rows.replace("\n", _end(text))


def _end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8")


def _not_editable(shown: str, line: int) -> InputError:
    words = f"{shown}:{line}: the present value has several lines, so it was not changed"
    return InputError("config.not-editable", words, hint=f"Change {shown} in an editor")
