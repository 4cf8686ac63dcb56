"""spec-kitty: `kitty-specs/001-feature/tasks.md` with work packages, each described in `tasks/WP01-name.md`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from idumb.domain import canonical_json
from idumb.domain.plans.source_tasks import Need, SourcePlan, SourceTask
from idumb.markdown.importers import backlog, forms, words
from idumb.markdown.importers.forms import References
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.syntax import outline
from idumb.markdown.syntax.outline import Entry

KIND = "spec-kitty"
key = backlog.key
_REFERENCES = References(r"WP\d+[a-z]?")
_PACKAGE = re.compile(
    r"[*_]*(?:(?:Work Package )?(WP\d+[a-z]?)|Work Package (\d+))[*_]*(?:[ \t]*[:—–]|[ \t]+-)[ \t]*"
    r"(.+?)(?:[ \t]*\((?:Priority|P\d).*\))?[*_]*$",
    re.IGNORECASE,
)
_NEEDS = re.compile(r"[\W_]*(?:dependenc(?:y|ies)|depends on)[*_]*(:?)", re.IGNORECASE)
_DONE = ("done", "approved")
_LANES = {*_DONE, "", "planned", "claimed", "in_progress", "doing", "for_review", "in_review", "pending", "todo"}
_EVENTS = "status.events.jsonl"


def matches(file: SourceFile) -> bool:
    headings = (heading.text for heading in file.outline.headings)
    return _is_prompt(file) or any(_PACKAGE.match(text) and "WP" in text.upper() for text in headings)


def _is_prompt(file: SourceFile) -> bool:
    return bool(file.front.text("work_package_id"))


def read(file: SourceFile, near: Near) -> SourcePlan:
    """Read the packages of `tasks.md`, with what their own files say; packages that have only a file come last."""
    file.references = _REFERENCES
    lanes = _lanes([*near(_EVENTS), *near(f"../{_EVENTS}")])
    prompts = [_package(each, lanes) for each in ([file] if _is_prompt(file) else near("tasks/**WP*.md"))]
    own = {key(task.id): (task, lane) for task, lane in filter(None, prompts)}
    tasks = []
    for heading in () if _is_prompt(file) else file.outline.headings:
        match = _PACKAGE.match(heading.text)
        if match is not None and not any(_PACKAGE.match(above.text) for above in heading.path):
            id = match[1] or f"WP{int(match[2]):02d}"
            task, lane = own.pop(key(id), (None, lanes.get(key(id), "")))
            tasks.append(_section(file, heading, id, match[3].strip("* "), task, lane))
    tasks += [task for task, _ in own.values()]
    title = tasks[0].title if _is_prompt(file) and tasks else file.outline.title or file.path
    return SourcePlan(KIND, file.path, title, title, tuple(tasks))


def _section(file: SourceFile, heading: Entry, id: str, title: str, own: SourceTask | None, lane: str) -> SourceTask:
    """Return the package of a section, with what its `own` file says.

    It is done by its lane. Only a package without a lane and a file of its own, which would name the lane, is done by
    all its boxes.
    """
    file.take(heading)
    for n in outline.span(heading):
        if all(key(found[0]) == key(id) for found in _REFERENCES.id.finditer(file.outline.lines[n - 1])):
            file.use(n, forms.MENTION)
    boxes = [item for item in file.outline.items if heading.line < item.line < heading.end and item.mark is not None]
    about, needs = file.outline.text(heading.line + 1, heading.end), _stated(file, heading, id)
    files = own.files if own is not None else words.paths_in(about)
    done = lane in _DONE if lane or own is not None else bool(boxes) and all(box.done for box in boxes)
    task = SourceTask(id, title, about, done, needs, files=files, path=file.path, line=heading.line)
    if own is None:
        guessed = ("Depends on: what the text names as dependencies",) if needs else ()
        return replace(task, inferred=(*guessed, *words.guessed(files)))
    return replace(task, description=f"{about}\n\n{own.description}".strip(), needs=(*own.needs, *needs))


def _stated(file: SourceFile, heading: Entry, id: str) -> tuple[Need, ...]:
    """Return the dependencies that a section states: under a heading for them, or behind a label."""
    inner = (each for each in file.outline.headings if heading.line < each.line < heading.end)
    under = {n for each in inner if _NEEDS.match(each.text) for n in range(each.line + 1, each.end)}
    needs: list[Need] = []
    for n in sorted({*outline.span(heading)} - file.outline.fenced - file.outline.hidden):
        line, label = file.outline.lines[n - 1], _NEEDS.match(file.outline.lines[n - 1])
        if n in under or (label and label[1]):
            found, used = _REFERENCES.statement(line[label.end() :] if label and label[1] else line)
            file.use(n, *used)
            needs += [Need(text, file.path, n) for text in found if key(text) != key(id)]
    return tuple(dict.fromkeys(needs))


def _package(file: SourceFile, lanes: Mapping[str, str]) -> tuple[SourceTask, str] | None:
    """Return the work package of a prompt file, and its lane, or ""; None for another file."""
    if not _is_prompt(file):
        return None
    front, file.references, file.is_swept = file.front, _REFERENCES, True
    id, line = front.text("work_package_id"), front.line(front.value("dependencies"))
    needs: list[Need] = []
    for text in front.texts("dependencies"):
        found, used = _REFERENCES.statement(text)
        needs += [Need(each, file.path, line) for each in found]
        if forms.MENTION not in used:
            file.note(line, f"dependencies: {text}")
    for name in ("dependencies", "lane", "status", "subtasks"):
        file.use_value(front.value(name))
    folder = file.path.split("/")[-2:][0]  # such as `tasks/done/`, where older versions keep the lane
    said = (lanes.get(key(id)), front.text("lane"), front.text("status"), folder if folder in _LANES else "")
    lane = next(filter(None, said), "").casefold()
    if lane not in _LANES:
        file.note(front.line(front.value("lane") or front.value("status")), f"the lane {lane} of {id}")
    file.carry(range(front.last + 1, len(file.outline.lines) + 1))
    for item in file.outline.items:
        file.use(item.line, forms.TASK, forms.MENTION)
    about, at = (
        file.outline.text(front.last + 1, len(file.outline.lines) + 1),
        front.line(front.value("work_package_id")),
    )
    files = front.texts("owned_files")
    title, done = front.text("title") or id, lane in _DONE
    return SourceTask(id, title, about, done, tuple(needs), files=files, path=file.path, line=at), lane


def _lanes(files: list[SourceFile]) -> dict[str, str]:
    """Return the last lane of each package in the event log, which is stronger than what the files say."""
    lanes: dict[str, str] = {}
    for file in files:
        for number, line in enumerate(file.text.split("\n"), 1):
            try:
                event = canonical_json.decode(line or "{}")
            except ValueError:
                file.note(number, f"no event: {line[:60]}")
                continue
            if isinstance(event, dict) and {"wp_id", "to_lane"} <= event.keys():
                lanes[key(str(event["wp_id"]))] = str(event["to_lane"])
    return lanes
