"""Recognize the plans of other tools that idumb reads as they are.

A plan of idumb with a mistake is never read as another tool's: what is said in its own words decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from idumb.domain.plans.plan import FIRST_IDUMB, GSD, GUIDED, STRICT

_KEY = re.compile(r"[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:(?:[ \t]+([^#\n]*)|[ \t]*$)")
_GSD = frozenset({"wave", "files_modified", "must_haves", "autonomous"})
_OLD_IDUMB = frozenset({"phase_name", "validation_score", "validated_by", "task_count", "estimated_hours"})
_OTHER_TOOLS = frozenset({"assignee", "created_date"})
_OLD_LABEL = re.compile(r"\n[ \t]*(?:[-*][ \t]+)?\*\*Description\b", re.IGNORECASE)
_OLD_TASK = re.compile(r"\n##{1,3}[ \t]+(?:Task[ \t]+)?\[?T[\w.]*-\d+[a-z]?\b")
_NUMBERED_TASK = re.compile(
    r"\n##{1,3}[ \t]+Task[ \t]+[A-Z]*[\w.-]*?\d[\w.]*(?:[ \t]*[:.)—–-]|[ \t]*$)", re.IGNORECASE | re.MULTILINE
)
_TASK_TAG = re.compile(r"[ \t]*<task(?:\s[^<>]*)?>")


# Keys, fields and fences that no other tool has.
_OWN_KEYS = frozenset(
    {"success_criteria", "scope", "non_goals", "invariants", "assumptions", "setup", "builder", "validator", "limits"}
)
_OWN_FIELD = re.compile(
    r"\n[ \t]*[-*+][ \t]+(?:\*\*|__)?(?:kind|change|semantic class|rollback|invariants|preconditions|postconditions"
    r"|symbols|on[ _-]failure|on[ _-]timeout|handoff[ _-]to|owns)(?::|(?:\*\*|__):)"
    r"|\n```(?:yaml task|(?:yaml|json) steps)[ \t]*\n",
    re.IGNORECASE,
)


def is_ours(lines: Sequence[str], keys: Mapping[str, str] | None = None) -> bool:
    """Whether a file says anything that only a plan of idumb says, even if it lacks what such a plan needs."""
    keys = _keys(lines) if keys is None else keys
    if {"title", "goal"} <= keys.keys() or keys.get("mode") in (GUIDED, STRICT):
        return True
    if keys.get("type") == "plan" and not keys.keys() & _OLD_IDUMB:
        return True
    if len(keys.keys() & _GSD) >= 2:
        return False
    text = _joined(lines)
    return bool(keys.keys() & _OWN_KEYS or ("<task" not in text and _OWN_FIELD.search(text)))


def dialect(lines: Sequence[str]) -> str | None:
    """Return the dialect in which idumb reads a plan of another tool; None for its own format and all other files."""
    keys = _keys(lines)
    if keys.keys() & _OTHER_TOOLS or is_ours(lines, keys):
        return None
    if keys.keys() & _OLD_IDUMB:
        return FIRST_IDUMB
    if len(keys.keys() & _GSD) >= 2:
        return GSD
    return _by_body(lines, keys)


# What a plan begins with, and what may be one of its tasks, however it is written.
_LIKE_PLAN = re.compile(
    r"\n[^\w\n]*(?:type[\"']?[ \t]*:[ \t]*[\"']?plan\b|(?:task[^\w\n]*)?t\d[\w.]*-\d|id[\"']?[ \t]*:"
    r"|(?<=# )tasks[ \t]*$)|\n[ \t]*(?:`{3,}|~{3,})[ \t]*(?:yaml|json|yml)\W*(?:task|step)",
    re.IGNORECASE | re.MULTILINE,
)


def is_note(lines: Sequence[str]) -> bool:
    """Whether a file without frontmatter has text, and nothing that a plan could have."""
    if not any(map(str.strip, lines)) or lines[0].lstrip().startswith("---"):
        return False
    return dialect(lines) is None and _LIKE_PLAN.search(_joined(lines)) is None


def _by_body(lines: Sequence[str], keys: Mapping[str, str]) -> str | None:
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
    """Return the lines as a text in which each begins after a line break."""
    return "\n" + "\n".join(lines)


def _keys(lines: Sequence[str]) -> dict[str, str]:
    """Return the keys of the front matter with the texts after them, however they are spelled.

    Front matter that idumb would refuse, because it is indented or one line in braces, has keys too.
    """
    by_key: dict[str, str] = {}
    start = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if not lines or lines[start].strip() != "---":
        return by_key
    indentation = None
    for line in lines[start + 1 :]:
        text = line.strip()
        if text == "---":
            break
        indentation = len(line) - len(line.lstrip()) if indentation is None and text else indentation
        if len(line) - len(line.lstrip()) != indentation:
            continue
        for part in text.strip("{}").split(",") if text[:1] == "{" else [text]:
            if key := _KEY.match(part.strip()):
                words = (key[2] or "").strip("\"' \t\r")
                by_key.setdefault(key[1].casefold().replace("-", "_"), words.casefold())
    return by_key
