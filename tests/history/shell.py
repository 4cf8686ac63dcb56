"""Names and commands as a shell and a Markdown line can hold them, whatever bytes they are made of."""

from __future__ import annotations

import os
import re
import shlex


def is_plain(name: str) -> bool:
    """Whether a line of Markdown can hold the name: UTF-8, and no control characters."""
    return not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", name) and name == name.strip()


def word(path: str) -> str:
    """One shell word; bytes that are not UTF-8 as octal escapes of printf."""
    safe = f"./{path}" if path.startswith("-") else path
    if not re.search("[\ud800-\udfff]", safe):
        return shlex.quote(safe)
    # A command substitution eats newlines at the end.
    body = safe.rstrip("\n")
    spelled = "".join(chr(b) if chr(b).isascii() and chr(b).isalnum() else f"\\{b:03o}" for b in os.fsencode(body))
    return f"\"$(printf '{spelled}')\"" + (shlex.quote(safe[len(body) :]) if body != safe else "")


def code(text: str) -> str:
    """A code span that holds any text of one line."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    blank = " " if text.startswith("`") or text.endswith("`") or (text[0] == text[-1] == " ") else ""
    return f"{ticks}{blank}{text}{blank}{ticks}"
