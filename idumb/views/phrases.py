"""Lines that several answers share, then words for amounts. Their texts are escaped before: see `answer.render`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Data = Mapping[str, Any]
Lines = Sequence[str] | str
"""The text of an answer: lines, which the next commands follow, or the whole text."""
UNKNOWN = "unknown"
_WIDTH = 160
WIDEST = 60  # a longer cell of a column moves only its own line
_RULE = "-" * 72
_CONFLICTS = 6  # files whose commands are shown


def findings(rows: Iterable[Data]) -> list[str]:
    """Return of each `path:line: severity: message [code]`, then what was found, what is accepted, and the fix."""
    lines: list[str] = []
    for row in rows:
        lines.append(f"{row['path']}:{row['line']}: {row['severity']}: {row['message']} [{row['code']}]")
        details = (name for name in ("found", "accepted", "fix") if row.get(name))
        lines += [f"    {name + ':':<9} {clip(str(row[name]), _WIDTH)}" for name in details]
    return lines


BLOCKED = "blocked* Blocked by {by} ({status}[: {reason}]): {tasks}"
QUESTIONS = """
decisions* {id:?}
* {id}: {what}
*   why: {why}
* evidence*   - {}
* choices*   [{command}][{command:!}idumb decide {above.id} {id}]
* *       {text}: {consequence}
""".strip()
UNCOMMITTED = """
Not committed: {untracked.paths:5}. A clone would lack these files[{untracked.reports:?, although it has the reports}].
  {untracked.command}
""".strip()
"""Forms of what several answers have: blocked tasks, open questions, and plans and settings that are not committed."""


def columns(rows: Sequence[Sequence[str]], indent: str = "  ", widest: int = sys.maxsize) -> list[str]:
    """Return rows as lines, padding each cell to its column, at most to the `widest`, except the last."""
    widths = [min(widest, max(map(len, column))) for column in zip(*rows, strict=True)]
    return [indent + "  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def outline(data: Data) -> list[str]:
    """Return what is known, a line for each name. Lists have dashes, texts of several lines a bar."""
    known = {name.replace("_", " ") + ":": each for name, each in data.items() if each not in (None, "", [], {})}
    width = max((len(name) for name, each in known.items() if not isinstance(each, list | dict)), default=0)
    lines: list[str] = []
    for name, each in known.items():
        if isinstance(each, dict):
            lines.append(f"  {name} {on_one_line(each)}")
        elif isinstance(each, list):
            lines += [f"  {name}", *(f"    - {on_one_line(item)}" for item in each)]
        elif "\n" in str(each):
            lines += [f"  {name}", *(f"    | {line}" for line in lines_of(str(each)))]
        else:
            lines.append(f"  {name:<{width}} {on_one_line(each)}")
    return lines


def on_one_line(item: Any) -> str:
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, list | tuple):
        return ", ".join(map(on_one_line, item))
    if not isinstance(item, dict):
        return moment(str(item))
    known = {name.replace("_", " "): each for name, each in item.items() if each not in (None, "", 0, [])}
    return ", ".join(f"{name} {on_one_line(each)}" for name, each in known.items())


def named(item: Any) -> str:
    """Return `git 2.39.5, git_lfs 3.4`. The names are those of programs, so they keep their underscores."""
    if not isinstance(item, Mapping):
        return on_one_line(item)
    return ", ".join(f"{name} {text}" for name, text in sorted(item.items()))


def commands(data: Data) -> list[str]:
    """Return the next commands, the likeliest first."""
    following = list(data.get("next", ()))
    return [f"Next: {following[0]}", *(f"  or: {command}" for command in following[1:])] if following else []


def resolving(files: Sequence[Data]) -> list[str]:
    """Return the commands that resolve the conflict of each file, each on a line of its own, to be pasted."""
    rows = [row[key] for row in files[:_CONFLICTS] for key in ("keep", "put_back") if row[key]]
    hidden = len(files) - _CONFLICTS
    more = [f"  and the commands for {hidden} more files (--json lists them)"] if hidden > 0 else []
    return [*(f"    {row}" for row in rows), *more]


def quoted(text: str | None, most: int, mark: str) -> str:
    """Return the last lines of an output after a mark, below a line that counts the omitted ones."""
    lines = (text or "").rstrip("\n").split("\n")
    omitted = [f"({counted(len(lines) - most, 'earlier line')} omitted)"] if len(lines) > most else []
    return "\n".join(f"{mark}{line}" for line in (*omitted, *lines[-most:])) if text and text.strip() else ""


def says_why(row: Data) -> bool:
    """Return whether the output of a check or a gate matters: it failed, or a gate could not decide."""
    from idumb.domain.proof.evidence import BROKEN, UNPROVEN

    is_open_gate = row["result"] == UNPROVEN and row["subject"].startswith("gate ")
    return is_open_gate or row["result"] in BROKEN


def evidence(row: Data) -> str:
    """Return `failed AC-1: pytest -q (exit 1)`, and what a passed check does not show."""
    code = f" (exit {row['exit_code']})" if row.get("exit_code") else ""
    only = " (level 0: only reported)" if row.get("level") == 0 else ""
    if row.get("control") == "passed" == row["result"]:
        only += " (passed before the work too, so it does not show it)"
    how = row.get("command") or row.get("text") or ""
    return f"{str(row['result']).replace('_', ' ')} {row['subject']}: {how}{code}{only}"


def lines_of(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


def ruled(text: str) -> list[str]:
    """Return a prompt between rules."""
    return [_RULE, *lines_of(text), _RULE]


def wrapped(line: str, width: int, deeper: int = 2) -> list[str]:
    """Return the line as lines no longer than the width; those after the first have a deeper indentation."""
    import textwrap

    indent = " " * (len(line) - len(line.lstrip()) + deeper)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def text_of(lines: Iterable[str]) -> str:
    """Return the whole text of an answer, to which nothing is added."""
    return "".join(f"{line}\n" for line in lines)


def verification(record: Data) -> str:
    reason = record["reason"]
    if record["status"] == "passed" and record.get("decision"):
        return f"Verification accepted: {reason}"
    if record["status"] == "passed" and record.get("open"):
        rest = [words for words in record["open"] if words not in record["reason"]]
        return f"Checks passed, not everything is verified: {'; '.join([reason, *rest])}"
    return f"Verification {record['status']}: {reason}"


def duration(seconds: float) -> str:
    """`<0.1s`, `0.8s`, `45s`, `1m05s`, `2h03m`."""
    if 0 < seconds < 0.05:
        return "<0.1s"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def short(object_id: str | None) -> str:
    """Return the first seven digits of a commit, or `none`."""
    return object_id[:7] if object_id else "none"


def clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def moment(at: str) -> str:
    """Return an ISO time as `2026-01-02 03:04:05 UTC`; any other text unchanged."""
    is_time = len(at) >= 20 and at[:4].isdigit() and at[10] == "T" and at.endswith("Z")
    return f"{at[:10]} {at[11:19]} UTC" if is_time else at


def line_counts(added: int | None, removed: int | None) -> str:
    """Return `+3 -1`, or `binary` without counts."""
    return "binary" if added is None or removed is None else f"+{added} -{removed}"


def usage(usage: Mapping[str, Any] | None) -> str:
    """`1200 tokens in, 300 out, $0.02`."""
    reported = usage or {}
    if all(reported.get(name) is None for name in ("tokens_in", "tokens_out", "cost_usd")):
        return UNKNOWN
    tokens = f"{count(reported.get('tokens_in'))} tokens in, {count(reported.get('tokens_out'))} out"
    return f"{tokens}, {money(reported.get('cost_usd'))}"


def sum_of(reported: float, unknown: int, words_of: str) -> str:
    """Return a sum with its unknown part: `1200 and 1 unknown call`, or `unknown` without any report."""
    if not unknown:
        return words_of
    return f"{words_of} and {counted(unknown, 'unknown call')}" if reported else UNKNOWN


def spent(row: Data) -> Mapping[str, str]:
    """Return the tokens and the cost of agents, with their unknown parts."""
    return {
        "tokens": sum_of(row["tokens"], row.get("unknown_tokens", 0), str(row["tokens"])),
        "cost": sum_of(row["cost_usd"], row.get("unknown_cost", 0), money(row["cost_usd"])),
    }


def used(row: Data) -> str:
    """Return `2 calls, 45s, tokens 30 and 1 unknown call, cost $0.10`, without what is nothing."""
    words = spent(row)
    parts = [counted(row["calls"], "call")] if row.get("calls") else []
    parts += [duration(row["seconds"])] if row["seconds"] else []
    parts += [f"tokens {words['tokens']}"] if row["tokens"] or row.get("unknown_tokens") else []
    return ", ".join([*parts, *([f"cost {words['cost']}"] if row["cost_usd"] or row.get("unknown_cost") else [])])


def count(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def money(value: float | None) -> str:
    """Return dollars; amounts below a cent have four decimals."""
    if value is None:
        return f"cost {UNKNOWN}"
    return f"${value:.2f}" if value >= 0.01 or not value else f"${value:.4f}"
