"""spec-kitty: `kitty-specs/001-feature/tasks.md` with work packages, each described in `tasks/WP01-name.md`."""

from __future__ import annotations

import re
from collections.abc import Callable

from idumb import lazy_pattern
from idumb.domain.plans.imported import SourcePlan, SourceTask
from idumb.markdown.importers import boxes, metadata

KIND = "spec-kitty"
_HEADING = lazy_pattern.compile(r"\n##{1,2} (?:Work Package )?WP\d{2,}")
_PACKAGE = lazy_pattern.compile(
    r"^(?:Work Package )?(WP\d{2,})[ \t]*(?::|—|–|-)[ \t]*(.+?)(?:[ \t]*\((?:Priority|P\d).*\))?$"
)
_SUBTASK = lazy_pattern.compile(r"\**(T\d{3,})\**:?\s*((?:\[[^\]]{1,12}\]\s*)*)(.*)")
_SECTION = lazy_pattern.compile(r"^#+ Dependenc.*?\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
_LABEL = lazy_pattern.compile(r"\*\*Dependenc(?:y|ies)(?::\*\*|\*\*:)([^\n(·]*)", re.IGNORECASE)
_NEEDED = lazy_pattern.compile(r"WP\d{2,}")


def matches(_path: str, text: str) -> bool:
    values, _ = metadata.read(text)
    if "work_package_id" in values:
        return True
    return "WP" in text and _HEADING.search("\n" + text) is not None


def package(text: str) -> SourceTask | None:
    """Return the work package of one prompt file; None if it is none."""
    values, body = metadata.read(text)
    id = str(values.get("work_package_id", ""))
    if not id:
        return None
    files = metadata.texts(values, "owned_files")
    return SourceTask(
        id, str(values.get("title") or id), body.strip("\n"), str(values.get("lane", "")) in ("done", "approved"),
        metadata.texts(values, "dependencies"), files,
    )  # fmt: skip


def read(path: str, text: str, sibling: Callable[[str], str | None]) -> SourcePlan:
    """Read the packages of `tasks.md`, with files and dependencies from their own files if they are there."""
    own = package(text)
    if own is not None:
        return SourcePlan(KIND, path, own.title, own.title, (own,))
    checklist = boxes.read(text)
    lines = text.split("\n")
    starts = [(m[1], m[2], line) for _, name, line in checklist.headings if (m := _PACKAGE.fullmatch(name.strip("* ")))]
    ends = [*(line - 1 for _, _, line in starts[1:]), len(lines)]
    tasks: list[SourceTask] = []
    for (id, title, start), end in zip(starts, ends, strict=False):
        prompt = package(sibling(f"tasks/{id}*.md") or "")
        about = "\n".join(lines[start:end]).strip("\n")
        subtasks = [box for box in checklist.boxes if start < box.line <= end]
        done = bool(subtasks) and all(box.done for box in subtasks)
        section = _SECTION.search(about) or _LABEL.search(about)
        stated = [need for need in _NEEDED.findall(section[1] if section else "") if need != id]
        needed = prompt.depends_on if prompt is not None else tuple(dict.fromkeys(stated))
        files = prompt.files if prompt is not None else boxes.paths_in(about)
        inferred = (
            ()
            if prompt is not None
            else ("Depends on: what the text names as dependencies", "Files: paths in the text")
        )
        tasks.append(SourceTask(id, title.strip("* "), about, done, needed, files, inferred=inferred))
    title = next((name for level, name, _ in checklist.headings if level == 1), path)
    return SourcePlan(KIND, path, title, title, tuple(tasks))
