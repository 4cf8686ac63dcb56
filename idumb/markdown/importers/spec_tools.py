"""Tools for specifications: spec-kit, OpenSpec and spec-kitty, each with a `tasks.md`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from idumb.domain import canonical_json
from idumb.domain.plans.source_tasks import ORDER, Need, SourcePlan, SourceTask, claims
from idumb.markdown.importers import signs
from idumb.markdown.importers.signs import References, bare_id
from idumb.markdown.importers.source_file import Format, Front, Near, SourceFile
from idumb.markdown.syntax import outline
from idumb.markdown.syntax.outline import Entry
from idumb.markdown.syntax.tree import is_list

# spec-kit: `specs/001-feature/tasks.md`, a checklist in phases, with ids and `[P]` for what can run in parallel

_KIT_ID = r"T-?\d{3,}(?:[._]?[0-9A-Za-z]+|-(?!T?\d{3})[0-9A-Za-z]+)*"
_KIT_REFERENCES = References(_KIT_ID)
_KIT_TASK = re.compile(
    rf"[*_~`(\[]*(?P<id>{_KIT_ID})(?![\w])[*_~`)\]]*(?:[.:]?[*_]*[ \t]+|[\uff1a\u3001][*_]*[ \t]*|$)(?:[-—–:][ \t]+)?"
    r"(?P<marks>(?:[*_]*[\[\uff3b][^\]\uff3d]{1,12}[\]\uff3d](?!\()[*_]*\s*)*)[*_]*\s*(?P<title>.*)"
)
_PARALLEL = re.compile(r"[\[\uff3b(\uff08]\s*[pP]\s*[\]\uff3d)\uff09]")
_ORDER = "Depends on: order, phases and [P]"


def _is_spec_kit(file: SourceFile) -> bool:
    return any(map(_named, file.outline.items))


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
        tasks.append(file.task(item, match["id"], _closed(match["title"].strip()), about, after, _ORDER, items.keys()))
        if not parallel:
            waits, group = (place,), []
    title = file.outline.title.removeprefix("Tasks: ") or file.path
    return SourcePlan(SPEC_KIT.kind, file.path, title, title, tuple(tasks))


def _closed(title: str) -> str:
    """Return a title without marks at its end that began before its id."""
    return title[:-2] if title[-2:] in ("**", "~~") and title.count(title[-2:]) % 2 else title


def _phase(item: Entry, level: int) -> int:
    """Return the line of the section that an item is in."""
    return max((heading.line for heading in item.path if heading.level <= level), default=0)


SPEC_KIT = Format("spec-kit", str.casefold, _is_spec_kit, _spec_kit)


# OpenSpec: `openspec/changes/NAME/tasks.md`, numbered groups of boxes such as `- [ ] 1.2 Text`

_OPEN_ID = r"\d+(?:\.\d+[a-z]?)+(?:-\d+(?!\.\d))?"
_OPEN_REFERENCES = References(_OPEN_ID, named=False)
_GROUP = re.compile(r"\d+\. ")
_OPEN_TASK = re.compile(
    rf"[*_`\[]*({_OPEN_ID}|\d+(?=[.)][*_]*\s))(?!\w)[*_`\]]*(?:[.):]?[*_`]*\s+|[\uff1a\u3001][*_`]*\s*)(?:[-—–]\s+)?(\S.*)",
    re.IGNORECASE,
)
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
        tasks.append(file.task(item, id, _closed(title), about, after, ORDER, items.keys()))
    change = _CHANGE.search(file.path)
    title = change[1].replace("-", " ") if change else file.path
    for own in near(".openspec.yaml"):
        own.lists_unread = True
    why = next((_why(proposal.text) for proposal in near("proposal.md")), "")
    return SourcePlan(OPENSPEC.kind, file.path, title, why or title, tuple(tasks))


def _why(proposal: str) -> str:
    """Return the first paragraph under `## Why`."""
    section = re.search(r"^## Why[ \t]*\n+(.+?)(?:\n[ \t]*\n|\n#|\Z)", proposal, re.MULTILINE | re.DOTALL)
    return section[1] if section else ""


OPENSPEC = Format("openspec", str.casefold, _is_openspec, _openspec)


# spec-kitty: `kitty-specs/001-feature/tasks.md` with work packages, each described in `tasks/WP01-name.md`, and newer
# ones in `wps.yaml` too

_KITTY_REFERENCES = References(r"WP\d+[a-z]?")
_PACKAGE = re.compile(
    r"[*_]*(?:(?:Work Package )?(WP\d+[a-z]?)|Work Package (\d+))[*_]*"
    r"(?!\w|[–—-]WP\d|[ \t]*(?:→|->|[/,&+]|and|to)[ \t]*WP\d)"
    r"(?:[ \t]*[:—–]|[ \t]+-)?[ \t]*(.*?)(?:[ \t]*\((?:Priority|P\d).*\))?[*_]*$",
    re.IGNORECASE,
)
_NEEDS = re.compile(r"(?:^|[|·])[\W_]*(?:dependenc(?:y|ies)[*_]*(:?)|(depends on)[*_]*:?)", re.IGNORECASE)
_DONE = ("done", "approved")
_OPEN = ("genesis", "planned", "claimed", "in_progress", "doing", "for_review", "in_review", "pending", "todo")
_LANES = {*_DONE, *_OPEN, ""}
_OWN_FILE = re.compile(r"tasks/(?:.+/)?WP\d[^/]*\Z", re.IGNORECASE)
_EVENTS = "status.events.jsonl"
_ELSEWHERE = re.compile(r'"(?:coordination_branch|lane)"\s*:\s*"[^"]+"')


def _is_spec_kitty(file: SourceFile) -> bool:
    headings = (heading.text for heading in file.outline.headings)
    packages = any(_PACKAGE.match(text) and "WP" in text.upper() for text in headings)
    return packages or _is_prompt(file) or file.front.has("work_packages")


def _is_prompt(file: SourceFile) -> bool:
    return bool(file.front.text("work_package_id"))


def _spec_kitty(file: SourceFile, near: Near) -> SourcePlan:
    """Read the packages of `tasks.md`, with what other files say of them; packages that only those have come last."""
    file.references, alone = _KITTY_REFERENCES, _is_prompt(file)
    events = _events([*near(_EVENTS), *near(f"../{_EVENTS}")])
    lanes = {id: event["to_lane"].casefold() for id, event, _, _ in events if "to_lane" in event}
    for other in () if lanes else (*near("meta.json"), *near("status.json")):
        for said in _ELSEWHERE.finditer(other.text):
            other.note(other.source.line_number(said.start()), f"lanes that no event here tells: {said[0]}")
    own = _described([file] if alone else [*near("tasks/**.md"), *near("wps.yaml")], lanes)
    tasks = []
    for heading in () if alone else file.outline.headings:
        match = _PACKAGE.match(heading.text)
        if match is not None and not any(_PACKAGE.match(above.text) for above in heading.path):
            id = match[1] or f"WP{int(match[2]):02d}"
            task, lane = own.pop(bare_id(id), None), lanes.get(bare_id(id), "")
            tasks.append(_section(file, heading, id, match[3].strip("* ") or id, task, lane))
    tasks += own.values()
    known = {bare_id(task.id) for task in tasks}
    last = {id: line for id, event, _, line in events if "to_lane" in event}
    for id, event, log, line in events:
        lane = lanes.get(id, "")
        if "to_lane" not in event and lane not in _DONE and id in known:
            log.note(line, f"parts of {event['wp_id']}")
        elif line == last.get(id) and (lane not in _LANES if id in known else not alone):
            log.note(line, f"the lane {lane} of {event['wp_id']}")
    path = re.sub(r"wps\.yaml\Z", "tasks.md", file.path)  # which spec-kitty makes of it later
    title = tasks[0].title if alone else file.outline.title or path
    return SourcePlan(SPEC_KITTY.kind, path, title, title, tuple(tasks))


def _described(files: list[SourceFile], lanes: dict[str, str]) -> dict[str, SourceTask]:
    """Return the packages of prompt files and of the manifest; lanes that no event tells are added to `lanes`."""
    own: dict[str, SourceTask] = {}
    for file in files:
        for package in _packages(file, lanes):
            if not package.id:
                file.note(package.line, "a package without an id")
                continue
            first = own.setdefault(id := bare_id(package.id), package)
            if first is not package and (_is_prompt(file) or first.path == file.path):
                file.note(package.line, f"another package {package.id}")
            needs, claimed = tuple(dict.fromkeys((*first.needs, *package.needs))), first.files or package.files
            own[id] = replace(first, needs=needs, files=claimed)
    return own


def _section(file: SourceFile, heading: Entry, id: str, title: str, own: SourceTask | None, lane: str) -> SourceTask:
    """Return the package of a section, with what its `own` file says.

    It is done by its lane. Only a package without a lane and a file of its own, which would name the lane, is done by
    all its boxes.
    """
    file.take(heading)
    _use_own(file, outline.span(heading), id)
    boxes = [item for item in file.outline.items if heading.line < item.line < heading.end and item.mark is not None]
    about, needs = file.outline.text(heading.line + 1, heading.end), _stated(file, heading)
    found = tuple(path for path in signs.paths_in(about) if not _OWN_FILE.search(path))
    files, ticked = own.files if own is not None else claims(found), bool(boxes) and all(box.done for box in boxes)
    done = lane in _DONE if lane or own is not None else ticked
    if ticked and not (done or lane):
        file.note(heading.line, f"all boxes of {id}, which are ticked; no lane says that it is done")
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
        line, label = file.outline.lines[n - 1], _NEEDS.search(file.outline.lines[n - 1])
        if n in under or (label and (label[1] or label[2])):
            found, used = _KITTY_REFERENCES.statement(line[label.end() :] if label else line)
            before = line[: label.start()] if label else ""
            file.use(n, *used.difference(signs.signs_in(before, _KITTY_REFERENCES, headings=False)))
            needs += [Need(text, file.path, n) for text in found]
    return tuple(dict.fromkeys(needs))


def _packages(file: SourceFile, lanes: dict[str, str]) -> Iterator[SourceTask]:
    """Yield the package of a prompt file, or those of the manifest; none of another file."""
    rows, front = file.front.value("work_packages"), file.front
    if is_list(rows):
        file.lists_unread = True
        yield from (_package(file, replace(front, node=row), "", lanes) for row in rows.items)
    elif _is_prompt(file):
        file.references, file.lists_unread = _KITTY_REFERENCES, True
        lines = range(front.last + 1, len(file.outline.lines) + 1)
        file.carry(lines)
        _use_own(file, lines, front.text("work_package_id"))
        for item in file.outline.items:
            file.use(item.line, signs.TASK, signs.MENTION)
        yield _package(file, front, file.outline.text(lines.start, lines.stop), lanes)
    elif file.path.endswith("wps.yaml") or _OWN_FILE.search(file.path):
        file.note(1, "no work package can be read")


def _package(file: SourceFile, front: Front, about: str, lanes: dict[str, str]) -> SourceTask:
    """Return the package of the front matter of a prompt file, or of a row of the manifest."""
    id, title, line = front.text("work_package_id") or front.text("id"), front.text("title"), front.line(front.node)
    at, needs = front.line(front.value("dependencies")), list[Need]()
    for said in front.texts("dependencies"):
        found, used = _KITTY_REFERENCES.statement(said)
        needs += [Need(each, file.path, at) for each in found]
        if signs.MENTION not in used:
            file.note(at, f"dependencies: {said}")
    for name in ("dependencies", "lane", "status", "subtasks"):
        file.use_value(front.value(name))
    folder = file.path.rpartition("/tasks/")[2].partition("/")[0]  # such as `done`, where older versions keep the lane
    own = (front.text("lane") or front.text("status") or (folder if folder in _LANES else "")).casefold()
    lane = lanes.setdefault(bare_id(id), own)
    if lane not in _LANES and lane == own:
        file.note(front.line(front.value("lane") or front.value("status")), f"the lane {lane} of {id}")
    files, done = claims(front.texts("owned_files")), lane in _DONE
    return SourceTask(id, title or id, about, files=files, done=done, needs=tuple(needs), path=file.path, line=line)


def _use_own(file: SourceFile, lines: Iterable[int], id: str) -> None:
    """Note lines of a package that name it, and no other one."""
    for n in lines:
        if {bare_id(found[0]) for found in _KITTY_REFERENCES.id.finditer(file.outline.lines[n - 1])} == {bare_id(id)}:
            file.use(n, signs.MENTION, signs.TASK)


def _events(logs: list[SourceFile]) -> list[tuple[str, dict[str, str], SourceFile, int]]:
    """Return the package, the event, its log and its line, the latest last: a lane there is stronger than in files.

    git merges logs line by line, so spec-kitty orders events by their time too. At one time, what a reviewer sent back
    comes last.
    """
    events = []
    for file in logs:
        for number, line in enumerate(file.text.split("\n"), 1):
            try:
                event = canonical_json.decode(line or "{}")
            except ValueError:
                file.note(number, f"no event: {line[:60]}")
                continue
            if isinstance(event, dict) and "wp_id" in event and ("to_lane" in event or "subtasks" in line):
                said = {name: str(value) for name, value in event.items()}
                is_back = said.get("to_lane") == "in_progress" and said.get("from_lane") in ("in_review", "for_review")
                order = said.get("at", ""), is_back, said.get("event_id", "")
                events.append((order, (bare_id(said["wp_id"]), said, file, number)))
    return [event for _, event in sorted(events, key=lambda row: row[0])]


SPEC_KITTY = Format("spec-kitty", bare_id, _is_spec_kitty, _spec_kitty)
