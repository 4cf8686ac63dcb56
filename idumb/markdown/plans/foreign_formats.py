"""Recognize the plans of other tools: those that idumb reads as they are, and those that it only names.

A plan of idumb with a mistake is never read as another tool's: what is said in its own words decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from idumb import lazy_pattern
from idumb.domain.finding import Finding
from idumb.domain.plans.plan import FIRST_IDUMB, GSD, GUIDED, STRICT
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source

_KEY = lazy_pattern.compile(r"[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:(?:[ \t]+([^#\n]*)|[ \t]*$)")
_GSD = frozenset({"wave", "files_modified", "must_haves", "autonomous"})
_OLD_IDUMB = frozenset({"phase_name", "validation_score", "validated_by", "task_count", "estimated_hours"})
_BACKLOG = frozenset({"assignee", "labels", "created_date", "ordinal"})


# Tool, a text that its files have, pattern of one line, and pattern that another line must match (if any).
_LINES: tuple[tuple[str, str, re.Pattern[str], re.Pattern[str] | None], ...] = (
    ("spec-kitty", "## Work Package WP", lazy_pattern.compile(r"\n## Work Package WP\d"), None),
    ("spec-kit", "- [", lazy_pattern.compile(r"\n- \[[ xX]\] \**T\d{3,}\**\s"), None),
    ("OpenSpec", "- [", lazy_pattern.compile(r"\n- \[[ xX]\] \d+\.\d+ "), lazy_pattern.compile(r"\n## \d+\. ")),
    ("BMAD", "# Story ", lazy_pattern.compile(r"\n# Story \d+\.\d+"), None),
    ("Backlog.md", ":BEGIN -->", lazy_pattern.compile(r"\n<!-- (?:AC|SECTION:\w+):BEGIN -->"), None),
    ("Task Master", '"tasks"', lazy_pattern.compile(r"\n\{"), lazy_pattern.compile(r'"tasks"\s*:\s*\[')),
)


def tool(lines: Sequence[str]) -> tuple[str, int] | None:
    """Return the tool and the line (from 0) that identifies it; None for a possible idumb plan."""
    keys = _keys(lines)
    if _is_ours(lines, keys):
        return None
    shown = [keys[key][0] for key in keys if key in _BACKLOG | {"work_package_id"}]
    if shown and ("work_package_id" in keys or {"id", "title", "status"} <= keys.keys()):
        return ("spec-kitty" if "work_package_id" in keys else "Backlog.md"), min(shown)
    text = _joined(lines)
    for name, part, first_pattern, second_pattern in _LINES:
        match = first_pattern.search(text) if part in text else None
        if match is not None and (second_pattern is None or second_pattern.search(text)):
            return name, text.count("\n", 0, match.start())
    return None


_OTHER_TOOLS = frozenset({"work_package_id", "assignee", "created_date"})
_OLD_LABEL = lazy_pattern.compile(r"\n[ \t]*(?:[-*][ \t]+)?\*\*Description\b", re.IGNORECASE)
_OLD_TASK = lazy_pattern.compile(r"\n##{1,3}[ \t]+(?:Task[ \t]+)?\[?T[\w.]*-\d+[a-z]?\b")
_NUMBERED_TASK = lazy_pattern.compile(
    r"\n##{1,3}[ \t]+Task[ \t]+[A-Z]*[\w.-]*?\d[\w.]*(?:[ \t]*[:.)—–-]|[ \t]*$)", re.IGNORECASE | re.MULTILINE
)
_TASK_TAG = lazy_pattern.compile(r"[ \t]*<task(?:\s[^<>]*)?>")


# Keys, fields and fences that no other tool has.
_OWN_KEYS = frozenset(
    {"success_criteria", "scope", "non_goals", "invariants", "assumptions", "setup", "builder", "validator", "limits"}
)
_OWN_FIELD = lazy_pattern.compile(
    r"\n[ \t]*[-*+][ \t]+(?:\*\*|__)?(?:kind|change|semantic class|rollback|invariants|preconditions|postconditions"
    r"|symbols|on[ _-]failure|on[ _-]timeout|handoff[ _-]to|owns)(?::|(?:\*\*|__):)"
    r"|\n```(?:yaml task|(?:yaml|json) steps)[ \t]*\n",
    re.IGNORECASE,
)


def _is_ours(lines: Sequence[str], keys: Mapping[str, tuple[int, str]]) -> bool:
    """Whether a file says anything that only a plan of idumb says, even if it lacks what such a plan needs."""
    if {"title", "goal"} <= keys.keys() or keys.get("mode", (0, ""))[1] in (GUIDED, STRICT):
        return True
    if keys.get("type", (0, ""))[1] == "plan" and not keys.keys() & _OLD_IDUMB:
        return True
    if len(keys.keys() & _GSD) >= 2:
        return False
    text = _joined(lines)
    return bool(keys.keys() & _OWN_KEYS or ("<task" not in text and _OWN_FIELD.search(text)))


def dialect(lines: Sequence[str]) -> str | None:
    """Return the dialect in which idumb reads a plan of another tool; None for its own format and all other files."""
    keys = _keys(lines)
    if keys.keys() & _OTHER_TOOLS or _is_ours(lines, keys):
        return None
    if keys.keys() & _OLD_IDUMB:
        return FIRST_IDUMB
    if len(keys.keys() & _GSD) >= 2:
        return GSD
    return _by_body(lines, keys)


# What a plan begins with, and what may be one of its tasks, however it is written.
_LIKE_PLAN = lazy_pattern.compile(
    r"\n[^\w\n]*(?:type[\"']?[ \t]*:[ \t]*[\"']?plan\b|(?:task[^\w\n]*)?t\d[\w.]*-\d|id[\"']?[ \t]*:"
    r"|(?<=# )tasks[ \t]*$)|\n[ \t]*(?:`{3,}|~{3,})[ \t]*(?:yaml|json|yml)\W*(?:task|step)",
    re.IGNORECASE | re.MULTILINE,
)


def is_note(lines: Sequence[str]) -> bool:
    """Whether a file without frontmatter has text, and nothing that a plan of any tool could have."""
    if not any(map(str.strip, lines)) or lines[0].lstrip().startswith("---"):
        return False
    return dialect(lines) is None and tool(lines) is None and _LIKE_PLAN.search(_joined(lines)) is None


def _by_body(lines: Sequence[str], keys: Mapping[str, tuple[int, str]]) -> str | None:
    """Return the dialect that the tasks show, or the type of the plan."""
    text = _joined(lines)
    tagged = (line for line in lines if "<task" in line) if "<task" in text else ()
    tag = next(filter(None, map(_TASK_TAG.match, tagged)), None)
    if tag is not None:
        return FIRST_IDUMB if not keys and " id=" in tag[0] else GSD
    if _OLD_TASK.search(text):  # its ids are those of idumb's own plans
        return None if keys or not _OLD_LABEL.search(text) else FIRST_IDUMB
    is_gsd = {"phase", "plan"} <= keys.keys() if keys else _NUMBERED_TASK.search(text) is not None
    return GSD if is_gsd else None


def _joined(lines: Sequence[str]) -> str:
    """Return the lines as a text for the patterns of `_line`."""
    return "\n" + "\n".join(lines)


def findings(source: Source, name: str, line: int) -> tuple[Finding, ...]:
    """Return the one finding that names the other tool at its line; further errors would hide it."""
    problems = Problems(source)
    problems.report("plan.foreign-format", source.starts[line], source.lines[line].strip(), tool=name)
    return problems.sorted()


def _keys(lines: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return the keys of the front matter with their lines and the texts after them, however they are spelled.

    Front matter that idumb would refuse, because it is indented or one line in braces, has keys too.
    """
    by_key: dict[str, tuple[int, str]] = {}
    start = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if not lines or lines[start].strip() != "---":
        return by_key
    indentation = None
    for number, line in enumerate(lines[start + 1 :], start + 1):
        text = line.strip()
        if text == "---":
            break
        indentation = len(line) - len(line.lstrip()) if indentation is None and text else indentation
        if len(line) - len(line.lstrip()) != indentation:
            continue
        for part in text.strip("{}").split(",") if text[:1] == "{" else [text]:
            if key := _KEY.match(part.strip()):
                words = (key[2] or "").strip("\"' \t\r")
                by_key.setdefault(key[1].casefold().replace("-", "_"), (number, words.casefold()))
    return by_key
