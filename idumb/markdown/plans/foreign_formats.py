"""Recognize the plans of other tools: those that idumb reads as they are, and those that it only names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from idumb.domain.finding import Finding
from idumb.domain.plans.plan import GSD
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source

_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:[ \t]*([^#]*)")
_GSD = frozenset({"wave", "files_modified", "files-modified", "must_haves", "autonomous"})
_OLD_IDUMB = frozenset({"phase_name", "validation_score", "validated_by", "task_count", "estimated_hours"})
_BACKLOG = frozenset({"assignee", "labels", "created_date", "ordinal"})

# Tool, pattern of one line of its files, and pattern that another line must match (if any).
_LINES: tuple[tuple[str, str, str], ...] = (
    ("GSD", r"<task type=", ""),
    ("spec-kitty", r"## Work Package WP\d", ""),
    ("spec-kit", r"- \[[ xX]\] \**T\d{3,}\**\s", ""),
    ("OpenSpec", r"- \[[ xX]\] \d+\.\d+ ", r"## \d+\. "),
    ("GSD-2", r"- \[[ xX]\] \*\*T\d+: ", ""),
    ("BMAD", r"# Story \d+\.\d+", ""),
    ("Backlog.md", r"<!-- (?:AC|SECTION:\w+):BEGIN -->", ""),
    ("Task Master", r"\{", r'.*"tasks"\s*:\s*\['),
)


def tool(lines: Sequence[str]) -> tuple[str, int] | None:
    """Return the tool and the line (from 0) that identifies it; None for a possible idumb plan."""
    keys = _keys(lines)
    if {"title", "goal"} <= keys.keys():
        return None
    for name, matches in _BY_KEYS:
        if matches(frozenset(keys)):
            shown = [keys[key][0] for key in keys if key in _GSD | _OLD_IDUMB | _BACKLOG | {"work_package_id"}]
            return name, min(shown, default=0)
    for name, first_pattern, second_pattern in _LINES:
        line_number = next((n for n, line in enumerate(lines) if re.match(first_pattern, line)), None)
        if line_number is not None and (not second_pattern or any(re.match(second_pattern, line) for line in lines)):
            return name, line_number
    return None


_TASK_TAG = re.compile(r"[ \t]*<task(?:\s[^<>]*)?>")


def dialect(lines: Sequence[str]) -> str | None:
    """Return the dialect in which idumb reads a plan of another tool; None for its own format and all other files."""
    keys = _keys(lines)
    is_own = {"title", "goal"} <= keys.keys()
    return GSD if not is_own and _any(_TASK_TAG, lines) and "work_package_id" not in keys else None


def _any(pattern: re.Pattern[str], lines: Sequence[str]) -> bool:
    return any(map(pattern.match, lines))


def findings(source: Source) -> tuple[Finding, ...]:
    """Return the one finding that names the other tool; further errors would hide it."""
    recognized = tool(source.lines)
    if recognized is None:
        return ()
    name, line = recognized
    problems = Problems(source)
    problems.error(
        "plan.foreign-format",
        source.starts[line],
        belongs_to(name),
        found=source.lines[line].strip(),
        accepted="an idumb plan: type: plan, phase, plan, title, goal, and tasks",
        mend="rewrite it as `idumb help plan-format` shows, or let idumb plan-phase write a plan",
    )
    return problems.sorted()


def belongs_to(tool: str, file: str = "This file") -> str:
    return f"{file} is in the format of {tool}, which idumb does not read"


_BY_KEYS: tuple[tuple[str, Callable[[frozenset[str]], bool]], ...] = (
    ("spec-kitty", lambda keys: "work_package_id" in keys),
    ("GSD", lambda keys: len(keys & _GSD) >= 2),
    ("the original iDumb", lambda keys: bool(keys & _OLD_IDUMB)),
    ("Backlog.md", lambda keys: {"id", "title", "status"} <= keys and bool(keys & _BACKLOG)),
)


def _keys(lines: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return the keys of the frontmatter with their lines and the texts after them."""
    by_key: dict[str, tuple[int, str]] = {}
    if not lines or lines[0].rstrip() != "---":
        return by_key
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            break
        if key := _KEY.match(line):
            by_key.setdefault(key[1], (number, key[2].strip("\"' \t\r")))
    return by_key
