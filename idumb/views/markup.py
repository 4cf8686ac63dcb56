"""Write Markdown, YAML and XML around foreign text, which must not become markup or control sequences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from idumb.domain import wording
from idumb.system import escaping

_NOT_YAML = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARKUP = re.compile(r"[\\`*~\[\]<>&]|(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_BLOCK_START = re.compile(r"([#+=-]|\d+(?=[.)]))")
_PLAIN_YAML = re.compile(r"[a-z]+(-[a-z]+)*")
_PLAIN_LENGTH = 32
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

Scalar = str | int | float | bool | None


def visible(text: str) -> str:
    """Return the text with control and invisible characters as escapes."""
    return escaping.show(text)


def one_line(text: str) -> str:
    """Return the text on one line, without escaping markup."""
    return visible(" ".join(text.split()))


def hanging(text: str) -> str:
    """Return the text with its line breaks. The lines after the first, such as those of a command, are indented."""
    return visible(text).replace("\n", "\n        ")


def prose(text: str) -> str:
    """Return foreign prose as one line of Markdown, with all Markdown and HTML escaped."""
    escaped = _MARKUP.sub(lambda m: _ENTITIES.get(m[0]) or "\\" + m[0], one_line(text))
    start = _BLOCK_START.match(escaped)
    if start is None:
        return escaped
    at = start.end() if start[0].isdigit() else 0
    return escaped[:at] + "\\" + escaped[at:]


def code(text: str) -> str:
    """Return a code span with more backticks than any run inside it."""
    return wording.code(visible(text.replace("\n", "\\n").replace("\t", "\\t")) or " ")


def block(text: str, info: str = "") -> list[str]:
    """Return a fenced block that nothing inside can close."""
    fence = wording.fence(text, 3)
    return [f"{fence}{info}", *(visible(line) for line in text.rstrip("\n").split("\n")), fence]


def link(shown: str, target: str) -> str:
    """Return a link; `shown` is Markdown, `target` a relative path."""
    from urllib.parse import quote  # noqa: PLC0415 (costs start-up time)

    return f"[{shown}]({quote(target.encode('utf-8', 'surrogateescape'))})"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a GFM table of Markdown cells. Escapes pipes, also in code spans, as GFM requires."""
    lines = ["| " + " | ".join(headers) + " |", "|" + " --- |" * len(headers)]
    lines.extend("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return lines


def frontmatter(fields: Mapping[str, Scalar | Sequence[Scalar]]) -> list[str]:
    """Return YAML between `---` lines, in the given order; texts are quoted unless they are plain words."""
    lines = ["---"]
    for key, value in fields.items():
        if isinstance(value, str | int | float | None):
            lines.append(f"{key}: {yaml_scalar(value)}")
        elif not value:
            lines.append(f"{key}: []")
        else:
            lines.append(f"{key}:")
            lines.extend(f"  - {yaml_scalar(item)}" for item in value)
    lines.append("---")
    return lines


def yaml_scalar(value: Scalar) -> str:
    """Return a scalar of YAML's core schema; JSON strings are valid YAML except for a few characters."""
    if not isinstance(value, str):
        return json.dumps(value)
    if len(value) < _PLAIN_LENGTH and _PLAIN_YAML.fullmatch(value) and value not in _YAML_WORDS:
        return value
    quoted = json.dumps(_SURROGATE.sub(_escaped, value), ensure_ascii=False)
    return _NOT_YAML.sub(_escaped, quoted)


def json_text(value: object) -> str:
    """Return indented JSON ending with a newline; bytes that are not UTF-8 become escapes."""
    return _SURROGATE.sub(_escaped, json.dumps(value, ensure_ascii=False, indent=2)) + "\n"


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
