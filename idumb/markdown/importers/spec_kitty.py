"""spec-kitty: `kitty-specs/001-feature/tasks.md` with work packages, each described in `tasks/WP01-name.md`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from idumb import lazy_pattern
from idumb.domain import canonical_json
from idumb.domain.plans.source_tasks import Need, SourcePlan, SourceTask
from idumb.markdown.importers import forms, words
from idumb.markdown.importers.references import References
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.syntax import outline
from idumb.markdown.syntax.outline import Entry

KIND = "spec-kitty"
_REFERENCES = References(r"WP\d+[a-z]?")
_PACKAGE = lazy_pattern.compile(
    r"[*_]*(?:(?:Work Package )?(WP\d+[a-z]?)|Work Package (\d+))[*_]*(?:[ \t]*[:—–]|[ \t]+-)[ \t]*"
    r"(.+?)(?:[ \t]*\((?:Priority|P\d).*\))?[*_]*$",
    re.IGNORECASE,
)
_HEADING = lazy_pattern.compile(rf"[*_]*{forms.NOUNS}", re.IGNORECASE)
_LABEL = lazy_pattern.compile(
    rf"[ \t]*(?:[-*+][ \t]+)?[*_]{{0,2}}(?:{forms.NOUNS}|depends[ ]on)[*_]{{0,2}}[ \t]*[:\uff1a][*_]{{0,2}}"
    r"(.+?)(?:[ ]·[ ].*)?$",
    re.IGNORECASE,
)
_LANES = {
    **dict.fromkeys(("done", "approved"), True),
    **dict.fromkeys(
        ("", "planned", "claimed", "in_progress", "doing", "for_review", "in_review", "pending", "todo"), False
    ),
}
"""The lanes, and whether a package in one is done."""
_EVENTS = "status.events.jsonl"


def key(id: str) -> str:
    """Return an id without the zeros that fill it up."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", id.casefold())


def matches(file: SourceFile) -> bool:
    headings = (heading.text for heading in file.outline.headings)
    return _is_prompt(file) or any(_PACKAGE.match(text) and "WP" in text.upper() for text in headings)


def _is_prompt(file: SourceFile) -> bool:
    return bool(file.front.text("work_package_id"))


def read(file: SourceFile, near: Near) -> SourcePlan:
    """Read the packages of `tasks.md`, with what their own files say; packages that have only a file come last."""
    file.references = _REFERENCES
    lanes = _lanes([*near(_EVENTS), *near(f"../{_EVENTS}")])
    found = [file] if _is_prompt(file) else filter(_is_prompt, near("tasks/*WP*.md"))
    prompts = {key(prompt.front.text("work_package_id")): _package(prompt, lanes) for prompt in found}
    tasks = []
    for heading in () if _is_prompt(file) else file.outline.headings:
        match = _PACKAGE.match(heading.text)
        if match is not None and not any(_PACKAGE.match(above.text) for above in heading.path):
            id = match[1] or f"WP{int(match[2]):02d}"
            own, done = prompts.pop(key(id), (None, None))
            done = _LANES.get(lanes[key(id)], False) if key(id) in lanes else done
            tasks.append(_section(file, heading, id, match[3].strip("* "), own, done=done))
    tasks += [prompt for prompt, _ in prompts.values()]
    title = tasks[0].title if _is_prompt(file) else file.outline.title or file.path
    return SourcePlan(KIND, file.path, title, title, tuple(tasks))


def _section(
    file: SourceFile, heading: Entry, id: str, title: str, own: SourceTask | None, *, done: bool | None
) -> SourceTask:
    """Return the package of a section. Its `own` file is stronger, and so is what that file says about being `done`."""
    lines = [(n, file.outline.lines[n - 1]) for n in outline.span(heading)]
    file.take(heading)
    for n, line in lines:
        if all(key(found[0]) == key(id) for found in _REFERENCES.ids.id.finditer(line)):
            file.use(n, forms.MENTION)
    items = [item for item in file.outline.items if heading.line < item.line < heading.end and item.mark is not None]
    about = file.outline.text(heading.line + 1, heading.end)
    stated = _stated(file, heading, id)
    files = own.files if own is not None else words.paths_in(about)
    guessed = (*(["Depends on: what the text names as dependencies"] if stated else []), *words.guessed(files))
    return SourceTask(
        id, title, "\n\n".join(filter(None, (about, own.description if own else ""))),
        (bool(items) and all(item.done for item in items)) if done is None else done,
        (*(own.needs if own is not None else ()), *stated), files=files, inferred=() if own is not None else guessed,
        path=file.path, line=heading.line,
    )  # fmt: skip


def _stated(file: SourceFile, heading: Entry, id: str) -> tuple[Need, ...]:
    """Return the dependencies that a section states: under a heading for them, or behind a label."""
    under = {
        n
        for section in file.outline.headings
        if heading.line < section.line < heading.end and _HEADING.match(section.text)
        for n in range(section.line + 1, section.end)
    }
    needs: list[Need] = []
    for n in outline.span(heading):
        line = file.outline.lines[n - 1]
        label = _LABEL.match(line) if n not in file.outline.fenced | file.outline.hidden else None
        text = label[1] if label is not None else line if n in under else ""
        found = _REFERENCES.statement(text) if text.strip() else None
        if found is not None:
            file.use(n, forms.NEED, forms.MENTION, forms.TASK)
            needs += [Need(text, file.path, n) for text in found if key(text) != key(id)]
    return tuple(dict.fromkeys(needs))


def _package(file: SourceFile, lanes: Mapping[str, str]) -> tuple[SourceTask, bool | None]:
    """Return the work package of a prompt file, and whether it is done; None if neither file nor events say it."""
    front, file.references, file.is_swept = file.front, _REFERENCES, True
    id, line = front.text("work_package_id"), front.line(front.value("dependencies"))
    needs: list[Need] = []
    for text in front.texts("dependencies"):
        found = _REFERENCES.statement(text)
        needs += [Need(each, file.path, line) for each in found or ()]
        if found is None:
            file.note(line, f"dependencies: {text}")
    for name in ("dependencies", "lane", "status", "subtasks"):
        file.use_value(front.value(name))
    folder = file.path.rpartition("/")[0].rpartition("/")[
        2
    ]  # such as `tasks/done/`, where older versions keep the lane
    said = (front.text("lane"), front.text("status"), folder if folder in _LANES else "")
    lane = (lanes.get(key(id)) or next(filter(None, said), "")).casefold()
    if lane not in _LANES:
        file.note(front.line(front.value("lane") or front.value("status")), f"the lane {lane} of {id}")
    file.carry(range(front.last + 1, len(file.outline.lines) + 1))
    for item in file.outline.items:
        file.use(item.line, forms.TASK, forms.MENTION)
    line = front.line(front.value("work_package_id"))
    about, done = file.outline.text(front.last + 1, len(file.outline.lines) + 1), _LANES.get(lane, False)
    return SourceTask(
        id, front.text("title") or id, about, done, tuple(needs), files=front.texts("owned_files"),
        path=file.path, line=line,
    ), done if lane else None  # fmt: skip


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
