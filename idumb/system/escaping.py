r"""Escapes untrusted text. For a terminal or a model, active, hiding or reordering characters show as `\x1b`, ..."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def show(text: str) -> str:
    r"""Escape text of one or more lines; `\r\n` becomes a plain line break."""
    if text.isascii() and text.isprintable():
        return text
    return _HARMFUL.sub(_escaped, text.replace("\r\n", "\n"))


def show_line(text: str) -> str:
    r"""Escape text for a single line: line breaks and tabs are shown as `\n` and `\t`."""
    return show(text).replace("\n", "\\n").replace("\t", "\\t")


def show_command(text: str) -> str:
    """Escape a command whose odd words are in single quotes; bash reads it as it was."""
    lines = text.replace("\n", r"'$'\n''").replace("\t", r"'$'\t''")
    return _HARMFUL.sub(lambda match: f"'$'{_escaped(match)}''", lines)


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def git_configuration(settings: Mapping[str, str]) -> bytes:
    """Return a file of git's configuration with settings such as `user.name` and `remote.origin.url`."""
    lines = list[str]()
    for name, value in settings.items():
        section, _, rest = name.partition(".")
        subsection, _, key = rest.rpartition(".")
        quoted = subsection.replace("\\", "\\\\").replace('"', '\\"')
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        lines += [f'[{section} "{quoted}"]' if subsection else f"[{section}]", f'\t{key} = "{escaped}"']
    return "\n".join((*lines, "")).encode("utf-8", "surrogateescape")
