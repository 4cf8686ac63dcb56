"""Data that nothing reads: fences, headings and lines that hold a task or its steps in a form that is not one.

Whoever leaves such a thing out runs a plan without one of its tasks and calls it done.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from idumb.markdown.plans import labels
from idumb.markdown.plans.step_tools import TOOLS

TASK = "yaml task"
STEPS = "yaml steps"

# First words of a fence whose content may have been meant as data, and whether any `id` in it makes it a task.
_LANGUAGES = {"yaml": True, "yml": True, **dict.fromkeys(("", "json", "task", "tasks", "step", "steps"), False)}
_KEY = re.compile(r"((?:-[ \t]+)*)[\"']?([A-Za-z_]\w*)[\"']?[ \t]*:(?:[ \t]+[\"']?([^\s\"']*)|$)")
_FLOW_ID = re.compile(r"[{,][ \t]*[\"']?id[\"']?[ \t]*:[ \t]*[\"']?([^\s\"',}]*)", re.IGNORECASE)
_FLOW_TOOL = re.compile(r"[{,][ \t]*[\"']?tool[\"']?[ \t]*:[ \t]*[\"']?(\w+)")

_CORE = frozenset({"depends_on", "files", "acceptance", "verify"})
OF_TASKS = _CORE | {"kind", "requirements", "tests", "preconditions", "postconditions", "rollback"}
_STEP = re.compile(r"[*_`\[(\s]*(?:step|item|part)[\s#:-]*\d", re.IGNORECASE)


def in_fence(info: str, lines: Iterable[str], prefix: str) -> str | None:
    """The data fence that a fence was meant to be, by its content: `yaml task`, `yaml steps`, or None.

    `prefix` begins the ids of the plan's tasks. An `example` is text, whatever it holds.
    """
    words = re.findall(r"\w+", info.casefold())
    language = words[0] if words else ""
    if language not in _LANGUAGES or any("example" in word for word in words):
        return None
    keys, column = [], -1
    for line in lines:
        text = line.lstrip(" \t")
        if not text or text.startswith("#"):
            continue
        if text[0] in "{[-" and (meant := _in_flow(text, prefix)):
            return meant
        found = _KEY.match(text)
        at = len(line) - len(text) + len(found[1]) if found else -1
        if found and column in {-1, at}:
            column = at
            keys.append((found[2], found[3] or ""))
    return _meant(keys, prefix, any_id=_LANGUAGES[language])


def _in_flow(text: str, prefix: str) -> str | None:
    if (tool := _FLOW_TOOL.search(text)) and tool[1] in TOOLS and "arguments" in text:
        return STEPS
    found = _FLOW_ID.search(text)
    return TASK if found and _like_id(found[1], prefix) else None


def _meant(keys: Collection[tuple[str, str]], prefix: str, *, any_id: bool) -> str | None:
    ids = [value for key, value in keys if key.casefold() == "id"]
    if any(_like_id(value, prefix) for value in ids) or (ids and any_id):
        return TASK
    tools = [value for key, value in keys if key == "tool"]
    return STEPS if any(value in TOOLS for value in tools) and any(k == "arguments" for k, _ in keys) else None


def _like_id(text: str, prefix: str) -> bool:
    return bool(re.match(r"t\d", text, re.IGNORECASE)) or (len(prefix) > 1 and text.startswith(prefix))


def like_section_of_task(heading: str, names: Collection[str], *, like_tasks: bool = False) -> bool:
    """Whether a section outside of the tasks is one by its heading and the fields right below it.

    `like_tasks`: the heading is of a level that tasks have.
    """
    if like_tasks and "acceptance" in names:
        return True
    if _STEP.match(heading):
        return not OF_TASKS.isdisjoint(names)
    core = _CORE.intersection(names)
    return len(core) >= 3 or ("acceptance" in core and len(core) >= 2)


def like_task(names: Collection[str]) -> bool:
    """Whether fields below a deeper heading of a task are more than one field of that task."""
    return "kind" in names or len(OF_TASKS.intersection(names)) >= 2


def like_yaml_task(lines: Iterable[str]) -> bool:
    """Whether lines of a paragraph are the keys of a YAML task that lost its first line."""
    keys = {m[1] for line in lines if (m := re.match(r"([a-z_]+):(?:[ \t]|$)", line))}
    return len(keys & _KEYS) >= 2 and not keys.isdisjoint({"title", "depends_on", "acceptance"})


_KEYS = frozenset({"id", "title", "description", "steps", *labels.FIELDS})
