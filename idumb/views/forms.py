"""Fill forms: texts that look as their reader sees them, with fields for the values of an answer.

- `{name}` is a value, `{name.part}` one inside it, `{name or other}` the first that is there. In a row, `{}` is all of
  it, `{above.name}` a value of what has the row.
- `{name:format}` is a value in a format: one of `_FORMATS`; a number, the most characters of a text or entries of a
  list; `#noun`, how many, also none; `+noun`, how many, if any; `?words`, these words if the value is true, `!words`
  if not.
- A line with a field that has no value is omitted. So is a part in `[ ]`. `else` begins a line for that case.
- `name* ` begins a line that is printed for each row of a list; ` | ` parts its columns. An object's rows have `name`
  and `value`. If its first column is omitted, the row is. `name*9 ` prints 9 rows at most.
- `* ` begins a further line of each row, `* name* ` one for each row inside it, `* * ` a further line of those.

    Phase {phase}[ {title}]: {tasks:#task}      |  Phase 1: 2 tasks
    tasks*   {id} | {status}[: {reason}]        |    T1     failed: no disk
    * files*     {}                             |      a.txt
    else   Nothing is planned.                  |    T1-02  ready

are a form and its lines for `{"phase": "1", "title": "", "tasks": [{"id": "T1", "status": "failed", "reason":
"no disk", "files": ["a.txt"]}, {"id": "T1-02", "status": "ready"}]}`.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from idumb.domain import wording
from idumb.views import phrases

_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "": phrases.on_one_line,
    "block": lambda text: text.rstrip("\n"),
    "changed": lambda row: phrases.line_counts(row["added"], row["removed"]),
    "counts": lambda counts: ", ".join(f"{number} {name}" for name, number in counts.items() if number),
    "duration": phrases.duration,
    "findings": lambda rows: "\n".join(phrases.findings(rows)),
    "indented": lambda text: "\n".join(f"  {line}" for line in phrases.lines_of(text)),
    "named": phrases.named,
    "outline": lambda row: "\n".join(phrases.outline(row)),
    "percent": lambda share: f"{share:.0%}",
    "quoted": lambda text: phrases.quoted(text, sys.maxsize, "      | "),
    "reported": lambda usage: phrases.usage(usage).removesuffix(phrases.UNKNOWN),
    "ruled": lambda text: "\n".join(phrases.ruled(text)),
    "short": phrases.short,
    "spent": phrases.used,
    "spoken": lambda text: str(text).replace("_", " "),
    "tail": lambda text: phrases.quoted(text, 20, "    | "),
    "words": " ".join,
}
_NOTHING: tuple[Any, ...] = (None, "", (), [], {})
_ROWS = re.compile(r"([\w.]+)\*(\d*) (.*)", re.DOTALL)
_OPTIONAL = re.compile(r"\[(.*?)\]")
_FIELD = re.compile(r"\{([\w. ]*):?([^}]*)\}")


def fill(form: str, data: Mapping[str, Any]) -> list[str]:
    """Return the lines of a form with the values of the data."""
    lines: list[str] = []
    printed = True
    for part in re.split(r"\n(?!\* )", form.removeprefix("\n").removesuffix("\n")):
        if not (printed and part.startswith("else ")):
            new = _part(part.removeprefix("else "), data)
            printed = bool(new)
            lines += new
    return lines


def _part(form: str, data: Mapping[str, Any]) -> list[str]:
    rows = _ROWS.match(form)
    if rows is None:
        return _line(form, data)
    name, most, of_row = rows.groups()
    return _rows(data, name, of_row, int(most or sys.maxsize))


def _rows(data: Mapping[str, Any], path: str, form: str, most: int) -> list[str]:
    values = _inside(data, path)
    if isinstance(values, Mapping):
        values = [{"name": name, "value": value} for name, value in values.items()]
    first, *more = form.split("\n* ")
    rows = [{"": row, "above": data, **(row if isinstance(row, Mapping) else {})} for row in values or ()]
    filled = [([_line(cell, row) for cell in first.split(" | ")], row) for row in rows[:most]]
    kept = [([*map("".join, cells)], row) for cells, row in filled if cells[0]]
    heads = phrases.columns([cells for cells, _ in kept], "", phrases.WIDEST)
    below = [fill("\n".join(more), row) if more else [] for _, row in kept]
    lines = [line for head, rest in zip(heads, below, strict=True) for line in (head, *rest)]
    return [*lines, f"  and {len(rows) - most} more; --json has them"] if len(rows) > most else lines


def _line(form: str, data: Mapping[str, Any]) -> list[str]:
    """Return the line with its values, or nothing if one is missing."""
    line = ""
    for number, (words, fields) in enumerate(_parsed(form)):
        values = [_text(name, format, data) for name, format in fields]
        if None not in values:
            line += words % tuple(values)
        elif number % 2 == 0:  # not in brackets
            return []
    return [line]


@functools.cache
def _parsed(form: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the parts of a line, every second one of which is in brackets: its words, with %s for each field."""
    parts = _OPTIONAL.split(form)
    return [(_FIELD.sub("%s", part.replace("%", "%%")), _FIELD.findall(part)) for part in parts]


def _text(names: str, format: str, data: Mapping[str, Any]) -> str | None:
    values = [_inside(data, name) for name in names.split(" or ")]
    value = next((found for found in values if found not in _NOTHING), values[-1])
    kind, words = format[:1], format[1:]
    if kind in {"?", "!"}:
        return words if bool(value) == (kind == "?") else None
    if kind in {"#", "+"} and value is not None:
        number = value if isinstance(value, int) else len(value)
        return phrases.counted(number, words) if number or kind == "#" else None
    if value in _NOTHING:
        return None
    if format.isdigit():
        is_list = isinstance(value, list | tuple)
        return wording.listed(value, int(format)) if is_list else phrases.clip(str(value), int(format))
    return _FORMATS[format](value) or None


def _inside(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data.get(name) if isinstance(data, Mapping) else None
    return data
