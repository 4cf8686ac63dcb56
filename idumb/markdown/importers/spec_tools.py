"""Tools for specifications: spec-kit, OpenSpec and spec-kitty, each with a `tasks.md`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from idumb.domain import canonical_json
from idumb.domain.plans.source_tasks import ORDER, Need, SourcePlan, SourceTask, claims
from idumb.markdown.importers import signs
from idumb.markdown.importers.signs import References, bare_id
from idumb.markdown.importers.source_file import Format, Near, SourceFile
from idumb.markdown.syntax import outline
from idumb.markdown.syntax.outline import Entry

# spec-kit: `specs/001-feature/tasks.md`, a checklist in phases, with ids and `[P]` for what can run in parallel

_KIT_ID = r"T-?\d{3,}(?:[._]?[0-9A-Za-z]+|-(?!T?\d{3})[0-9A-Za-z]+)*"
_KIT_REFERENCES = References(_KIT_ID)
_KIT_TASK = re.compile(
    rf"[*_~`(\[]*(?P<id>{_KIT_ID})(?![\w])[*_~`)\]]*[.:]?[*_]*(?:[ \t]+(?:[-—–:][ \t]+)?|$)"
    r"(?P<marks>(?:\[[^\]]{1,12}\]\s*)*)[*_]*\s*(?P<title>.*)"
)
_PARALLEL = re.compile(r"\[\s*[pP]\s*\]")
_ORDER = "Depends on: order, phases and [P]"


def _is_spec_kit(file: SourceFile) -> bool:
    return "Work Package WP" not in file.text and any(map(_named, file.outline.items))


def _named(item: Entry) -> bool:
    return item.mark is not None and _KIT_TASK.match(item.text) is not None


def _spec_kit(file: SourceFile, _near: Near) -> SourcePlan:
    """Read the tasks. A phase waits for the phase before it; in a phase, tasks with `[P]` wait for the same tasks.

    Phases are the sections of the highest level below the title that divides the tasks, whatever they are called.
    """
    file.references = _KIT_REFERENCES
    items = {item.line: item for item in file.outline.items if _named(item)}
    levels = (*range(2, 7), 1)  # the first one is that of titles
    level = next((level for level in levels if len({_phase(each, level) for each in items.values()}) > 1), 0)
    tasks: list[SourceTask] = []
    waits: tuple[int, ...] = ()  # what the next task waits for
    group: list[int] = []  # tasks that run in parallel
    before: int | None = None
    places = {line: place for place, line in enumerate(items)}
    for place, item in enumerate(items.values()):
        match = _KIT_TASK.match(item.text)
        assert match is not None  # noqa: S101 - `items` are those that match
        parallel = _PARALLEL.search(item.text) is not None
        if _phase(item, level) != before or not parallel:
            waits, group = (tuple(group) or waits), []
        before = _phase(item, level)
        group.append(place)
        about = f"{item.place} {match['marks'].strip()}".strip()
        above = [places[each.line] for each in item.above if each.line in places][:1]  # which it is a part of
        after = (*waits, *above)
        tasks.append(file.task(item, match["id"], match["title"].strip(), about, after, _ORDER, items.keys()))
        if not parallel:
            waits, group = (place,), []
    title = file.outline.title.removeprefix("Tasks: ") or file.path
    return SourcePlan(SPEC_KIT.kind, file.path, title, title, tuple(tasks))


def _phase(item: Entry, level: int) -> int:
    """Return the line of the section that an item is in."""
    return max((heading.line for heading in item.path if heading.level <= level), default=0)


SPEC_KIT = Format("spec-kit", str.casefold, _is_spec_kit, _spec_kit)


# OpenSpec: `openspec/changes/NAME/tasks.md`, numbered groups of boxes such as `- [ ] 1.2 Text`

_OPEN_ID = r"\d+(?:\.\d+[a-z]?)+(?:-\d+(?!\.\d))?"
_OPEN_REFERENCES = References(_OPEN_ID, named=False)
_GROUP = re.compile(r"\d+\. ")
_OPEN_TASK = re.compile(rf"[*_`\[]*({_OPEN_ID}|\d+(?=[.)][*_]*\s))(?!\w)[*_`\]]*[.):]?[*_`]*\s+(\S.*)", re.IGNORECASE)
_CHANGE = re.compile(r"openspec/changes/(?:archive/(?:\d{4}-\d\d-\d\d-)?)?([^/]+)/")


def _is_openspec(file: SourceFile) -> bool:
    if not (_CHANGE.search(file.path) or any(_GROUP.match(heading.text) for heading in file.outline.headings)):
        return False
    return any(item.mark is not None and _OPEN_TASK.match(item.text) for item in file.outline.items)


def _openspec(file: SourceFile, near: Near) -> SourcePlan:
    """Read the boxes in order: each task waits for the one before it. A box without a number is named by its words.

    A box without a number inside another one is text. OpenSpec counts boxes in code fences too, so these are listed.
    """
    file.references, file.sees_fences = _OPEN_REFERENCES, True
    boxes = (item for item in file.outline.items if item.mark is not None)
    items = {item.line: item for item in boxes if item.around is None or _OPEN_TASK.match(item.text)}
    tasks: list[SourceTask] = []
    for place, item in enumerate(items.values()):
        match = _OPEN_TASK.match(item.text)
        id, title = (match[1], match[2]) if match is not None else (signs.id_of_words(item.text), item.text)
        about = item.path[-1].text if item.path else ""
        after = (place - 1,) if place else ()
        tasks.append(file.task(item, id, title, about, after, ORDER, items.keys()))
    change = _CHANGE.search(file.path)
    title = change[1].replace("-", " ") if change else file.path
    why = next((_why(proposal.text) for proposal in near("proposal.md")), "")
    return SourcePlan(OPENSPEC.kind, file.path, title, why or title, tuple(tasks))


def _why(proposal: str) -> str:
    """Return the first paragraph under `## Why`."""
    section = re.search(r"^## Why[ \t]*\n+(.+?)(?:\n[ \t]*\n|\n#|\Z)", proposal, re.MULTILINE | re.DOTALL)
    return section[1] if section else ""


OPENSPEC = Format("openspec", str.casefold, _is_openspec, _openspec)


# spec-kitty: `kitty-specs/001-feature/tasks.md` with work packages, each described in `tasks/WP01-name.md`

_KITTY_REFERENCES = References(r"WP\d+[a-z]?")
_PACKAGE = re.compile(
    r"[*_]*(?:(?:Work Package )?(WP\d+[a-z]?)|Work Package (\d+))[*_]*(?:[ \t]*[:—–]|[ \t]+-)[ \t]*"
    r"(.+?)(?:[ \t]*\((?:Priority|P\d).*\))?[*_]*$",
    re.IGNORECASE,
)
_NEEDS = re.compile(r"[\W_]*(?:dependenc(?:y|ies)|depends on)[*_]*(:?)", re.IGNORECASE)
_DONE = ("done", "approved")
_LANES = {*_DONE, "", "planned", "claimed", "in_progress", "doing", "for_review", "in_review", "pending", "todo"}
_EVENTS = "status.events.jsonl"


def _is_spec_kitty(file: SourceFile) -> bool:
    headings = (heading.text for heading in file.outline.headings)
    return _is_prompt(file) or any(_PACKAGE.match(text) and "WP" in text.upper() for text in headings)


def _is_prompt(file: SourceFile) -> bool:
    return bool(file.front.text("work_package_id"))


def _spec_kitty(file: SourceFile, near: Near) -> SourcePlan:
    """Read the packages of `tasks.md`, with what their own files say; packages that have only a file come last."""
    file.references = _KITTY_REFERENCES
    lanes = _lanes([*near(_EVENTS), *near(f"../{_EVENTS}")])
    prompts = [_package(each, lanes) for each in ([file] if _is_prompt(file) else near("tasks/**WP*.md"))]
    own = {bare_id(task.id): (task, lane) for task, lane in filter(None, prompts)}
    tasks = []
    for heading in () if _is_prompt(file) else file.outline.headings:
        match = _PACKAGE.match(heading.text)
        if match is not None and not any(_PACKAGE.match(above.text) for above in heading.path):
            id = match[1] or f"WP{int(match[2]):02d}"
            task, lane = own.pop(bare_id(id), (None, lanes.get(bare_id(id), "")))
            tasks.append(_section(file, heading, id, match[3].strip("* "), task, lane))
    tasks += [task for task, _ in own.values()]
    title = tasks[0].title if _is_prompt(file) else file.outline.title or file.path
    return SourcePlan(SPEC_KITTY.kind, file.path, title, title, tuple(tasks))


def _section(file: SourceFile, heading: Entry, id: str, title: str, own: SourceTask | None, lane: str) -> SourceTask:
    """Return the package of a section, with what its `own` file says.

    It is done by its lane. Only a package without a lane and a file of its own, which would name the lane, is done by
    all its boxes.
    """
    file.take(heading)
    if own is None and lane not in _LANES:
        file.note(heading.line, f"the lane {lane} of {id}")
    for n in outline.span(heading):
        if all(bare_id(found[0]) == bare_id(id) for found in _KITTY_REFERENCES.id.finditer(file.outline.lines[n - 1])):
            file.use(n, signs.MENTION)
    boxes = [item for item in file.outline.items if heading.line < item.line < heading.end and item.mark is not None]
    about, needs = file.outline.text(heading.line + 1, heading.end), _stated(file, heading)
    found = signs.paths_in(about)
    files = own.files if own is not None else claims(found)
    done = lane in _DONE if lane or own is not None else bool(boxes) and all(box.done for box in boxes)
    task = SourceTask(id, title, about, files=files, done=done, needs=needs, path=file.path, line=heading.line)
    if own is None:
        guessed = ("Depends on: what the text names as dependencies",) if needs else ()
        return replace(task, inferred=(*guessed, *signs.inferred(found)))
    return replace(task, description=f"{about}\n\n{own.description}".strip(), needs=(*own.needs, *needs))


def _stated(file: SourceFile, heading: Entry) -> tuple[Need, ...]:
    """Return the dependencies that a section states: under a heading for them, or behind a label."""
    inner = (each for each in file.outline.headings if heading.line < each.line < heading.end)
    under = {n for each in inner if _NEEDS.match(each.text) for n in range(each.line + 1, each.end)}
    needs: list[Need] = []
    for n in sorted({*outline.span(heading)} - file.outline.fenced - file.outline.hidden):
        line, label = file.outline.lines[n - 1], _NEEDS.match(file.outline.lines[n - 1])
        if n in under or (label and label[1]):
            found, used = _KITTY_REFERENCES.statement(line[label.end() :] if label and label[1] else line)
            file.use(n, *used)
            needs += [Need(text, file.path, n) for text in found]
    return tuple(dict.fromkeys(needs))


def _package(file: SourceFile, lanes: Mapping[str, str]) -> tuple[SourceTask, str] | None:
    """Return the work package of a prompt file, and its lane, or ""; None for another file."""
    if not _is_prompt(file):
        return None
    front, file.references, file.lists_unread = file.front, _KITTY_REFERENCES, True
    id, line = front.text("work_package_id"), front.line(front.value("dependencies"))
    needs: list[Need] = []
    for text in front.texts("dependencies"):
        found, used = _KITTY_REFERENCES.statement(text)
        needs += [Need(each, file.path, line) for each in found]
        if signs.MENTION not in used:
            file.note(line, f"dependencies: {text}")
    for name in ("dependencies", "lane", "status", "subtasks"):
        file.use_value(front.value(name))
    folder = file.path.rpartition("/tasks/")[2].partition("/")[0]  # such as `done`, where older versions keep the lane
    said = (lanes.get(bare_id(id)), front.text("lane"), front.text("status"), folder if folder in _LANES else "")
    lane = next(filter(None, said), "").casefold()
    if lane not in _LANES:
        file.note(front.line(front.value("lane") or front.value("status")), f"the lane {lane} of {id}")
    file.carry(range(front.last + 1, len(file.outline.lines) + 1))
    for item in file.outline.items:
        file.use(item.line, signs.TASK, signs.MENTION)
    about = file.outline.text(front.last + 1, len(file.outline.lines) + 1)
    files, at = claims(front.texts("owned_files")), front.line(front.value("work_package_id"))
    title, done = front.text("title") or id, lane in _DONE
    return SourceTask(id, title, about, files=files, done=done, needs=tuple(needs), path=file.path, line=at), lane


def _lanes(files: list[SourceFile]) -> dict[str, str]:
    """Return the latest lane of each package in the event log, which is stronger than what the files say.

    git merges logs line by line, so spec-kitty orders events by their time too.
    """
    events = []
    for file in files:
        for number, line in enumerate(file.text.split("\n"), 1):
            try:
                event = canonical_json.decode(line or "{}")
            except ValueError:
                file.note(number, f"no event: {line[:60]}")
                continue
            if isinstance(event, dict) and {"wp_id", "to_lane"} <= event.keys():
                events.append({name: str(value) for name, value in event.items()})
    events.sort(key=lambda event: (event.get("at", ""), event.get("event_id", "")))
    return {bare_id(event["wp_id"]): event["to_lane"].casefold() for event in events}


SPEC_KITTY = Format("spec-kitty", bare_id, _is_spec_kitty, _spec_kitty)
