"""The lines that several answers share. Plain text, one foreign text a line, nothing that moves a cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.domain import wording
from idumb.views import markup, quantities

Data = Mapping[str, Any]
_WIDTH = 160
MOST_EVIDENCE = 12
_DETAILS = (("found", "found"), ("accepted", "accepted"), ("fix", "mend"))  # what people read, and the JSON key


def finding(found: Data) -> list[str]:
    """`path:line: severity: message [code]`, then what was found, what is accepted, and the mend."""
    place = f"{markup.one_line(found['path'])}:{found['line']}"
    lines = [f"{place}: {found['severity']}: {markup.one_line(found['message'])} [{found['code']}]"]
    details = [(label, str(found[key])) for label, key in _DETAILS if found.get(key)]
    return lines + [f"    {label + ':':<9} {markup.clip(markup.one_line(text), _WIDTH)}" for label, text in details]


def untracked(data: Data) -> list[str]:
    """Plans and settings that a clone would not have, and the command that puts them into git."""
    found = data.get("untracked")
    if not found:
        return []
    paths = wording.listed(map(markup.one_line, found["paths"]))
    return [
        f"Not in git: {paths}. A clone would have the reports but not these files.",
        f"  {markup.one_line(found['command'])}",
    ]


def columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Cells padded to the widest of their column, but for the last one."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [indent + "  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def commands(data: Data) -> list[str]:
    """The lines that name what can be done next; the first is the likeliest."""
    known = [markup.one_line(command) for command in data.get("next", ())]
    return [f"Next: {known[0]}", *(f"  or: {command}" for command in known[1:])] if known else []


def choices(rows: Sequence[Data]) -> list[str]:
    """What a person can decide: each choice with its consequence and the command that takes it."""
    lines = []
    for row in rows:
        words = f"{row['text']}; {row['consequence']}"
        lines.append(f"  {markup.one_line(row['id'])}: {markup.one_line(words)}")
        lines += [f"      {markup.one_line(row['command'])}"] if row.get("command") else []
    return ["  choices:", *(f"  {line}" for line in lines)] if lines else []


def counts(numbers: Mapping[str, int], most: Sequence[str]) -> str:
    """`2 completed, 1 failed`, in the order of `most`; statuses that are not named there follow."""
    order = [*most, *(status for status in numbers if status not in most)]
    return ", ".join(f"{numbers[s]} {s}" for s in order if numbers.get(s) and s != "total")


def tasks(number: int) -> str:
    return quantities.counted(number, "task")
