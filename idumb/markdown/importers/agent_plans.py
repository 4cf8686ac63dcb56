"""Plans that agents write: plain checklists and those of Claude Code, the todos of Cursor, the plans of GSD."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import asdict, replace

from idumb.app.ports import ParsedPlan
from idumb.domain.plans.plan import SOURCE_DONE, Task
from idumb.domain.plans.source_tasks import CHANGE, ORDER, SOURCE_ID, Need, SourcePlan, SourceTask, claims
from idumb.markdown import report_files
from idumb.markdown.importers import signs
from idumb.markdown.importers.source_file import Format, Near, SourceFile, ids, text
from idumb.markdown.plans import plan_parser
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.outline import Entry
from idumb.markdown.syntax.tree import Node, is_list

# Plain checklists and the plan files of Claude Code: boxes, or numbered steps under a heading

_STEP = re.compile(
    r"[*_]*(?:(?:(?:Step|Task|Phase)[ \t]+|(?=T\d))(?P<id>T?\d+(?:\.\d+)*)(?:[.):]|[ \t]*[—–-])"
    r"|(?P<bare>\d+(?:\.\d+)*)[.):])"
    r"[*_]*[ \t]+(?P<title>\S.*)",
    re.IGNORECASE,
)
_OWN_ID = re.compile(r"[*_`]*([A-Za-z]{1,5}-?\d+(?:[.-]\d+)*)[*_`]*[:.)—–][*_`]*[ \t]+(\S.*)")
_STEPS = re.compile(r"(?:implementation|steps|tasks|plan|todo|to do|changes)", re.IGNORECASE)


def _is_checklist(file: SourceFile) -> bool:
    return any(item.mark is not None for item in file.outline.items) or len(_steps(file)) > 1


def _checklist(file: SourceFile, near: Near) -> SourcePlan:
    """Read boxes that are in no other box as tasks; without boxes, numbered steps. Each waits for the one before it.

    GSD 2 writes a summary of each task that is done.
    """
    file.headings = True
    top = [item for item in file.outline.items if item.mark is not None and item.around is None]
    steps = _steps(file)
    lines = {entry.line for _, _, entry in steps} if not top else {each.line for item in top for each in item.path}
    numbered = {item.line for item in file.outline.items if item.number and item.parent is None}
    file.candidates = numbered if not top else {item.line for _, _, item in steps if not item.level}
    for part in (*file.outline.headings, *file.outline.items):
        if part.line in lines or (not top and any(heading.line in lines for heading in part.path)):
            file.use(part.line, signs.TASK)
    tasks: list[SourceTask] = []
    for place, (id, title, entry) in enumerate(_named(top) if top else steps):
        words, after = title if top else title.replace("**", "").strip("* "), (place - 1,) if place else ()
        task = file.task(entry, id, words, entry.place if top else "", after, ORDER)
        tasks.append(replace(task, done=task.done or _is_summed_up(near(f"tasks/{id}-SUMMARY.md"))))
    title = file.outline.title or file.path
    return SourcePlan(CHECKLIST.kind, file.path, title, title, tuple(tasks))


def _named(top: list[Entry]) -> Iterator[tuple[str, str, Entry]]:
    """Yield (id, title, entry). An id is the item's own, as in `**T01: Title**`, or made of its words.

    So an item that moves keeps its id. Those of equal words begin with their heading.
    """
    own, words = [_OWN_ID.match(item.text) for item in top], [signs.id_of_words(item.text) for item in top]
    times, repeated = Counter(match[1] for match in own if match), Counter(words)
    for item, match, name in zip(top, own, words, strict=True):
        if match is not None and times[match[1]] == 1:
            yield match[1], match[2].replace("**", "") if len(times) == len(top) else item.text, item
        else:
            above = f"{signs.id_of_words(item.path[-1].text)}-" if repeated[name] > 1 and item.path else ""
            yield f"{above}{name}", item.text, item


def _steps(file: SourceFile) -> list[tuple[str, str, Entry]]:
    """Return (number, title, entry) of numbered headings, or of the numbered items of sections for steps.

    Without a section whose heading says so, the only numbered list is the one.
    """
    found: list[tuple[str, str, Entry]] = []
    end = 0
    for heading in file.outline.headings:
        step = _STEP.match(heading.text) if 1 < heading.level < 5 and heading.line >= end else None
        if step is not None:
            found.append((step["id"] or step["bare"], step["title"], heading))
            end = heading.end
    items = [item for item in file.outline.items if item.number and item.parent is None and item.text]
    named = [item for item in items if item.path and _STEPS.search(item.path[-1].text)]
    chosen = named or (items if len({item.path[-1:] and item.path[-1].line for item in items}) == 1 else [])
    return found or [(item.number, item.text, item) for item in chosen]


CHECKLIST = Format("checklist", str, _is_checklist, _checklist)


# Cursor: `.cursor/plans/name.plan.md`, whose front matter lists `todos` with id, content and status

_STATES = {"completed": True, "done": True, **dict.fromkeys(("pending", "in-progress", "todo", ""), False)}


def _is_cursor(file: SourceFile) -> bool:
    return any(tree.find(todo, "content") is not None for todo in _todos(file))


def _todos(file: SourceFile) -> list[Node]:
    todos = file.front.value("todos")
    return todos.items if is_list(todos) else []


def _cursor(file: SourceFile, _near: Near) -> SourcePlan:
    """Read the list `todos`; a todo without dependencies waits for the one before it."""
    front, tasks = file.front, list[SourceTask]()
    for number, todo in enumerate(_todos(file), 1):
        title, needed = text(todo, "content"), tree.find(todo, "dependencies")
        status = text(todo, "status").casefold().replace("_", "-")
        if not title:
            file.note(front.line(todo), f"todo {number}, which has no content")
            continue
        for value in (tree.find(todo, "content"), tree.find(todo, "status"), needed):
            file.use_value(value)
        if status not in _STATES:
            file.note(front.line(tree.find(todo, "status")), f"the status {status} of todo {number}: {title}")
        needs = tuple(Need(each, file.path, front.line(needed)) for each in ids(needed))
        files = signs.paths_in(title)
        tasks.append(
            SourceTask(
                text(todo, "id") or str(number), title, files=claims(files), done=_STATES.get(status, False),
                needs=needs, after=(len(tasks) - 1,) if tasks and not needs else (),
                inferred=(*([] if needs else [ORDER]), *signs.inferred(files)), path=file.path, line=front.line(todo),
            )
        )  # fmt: skip
    title = front.text("name") or file.outline.title or file.path
    return SourcePlan(CURSOR.kind, file.path, title, front.text("overview") or title, tuple(tasks))


CURSOR = Format("cursor", str, _is_cursor, _cursor)


# GSD and the first iDumb: plans that idumb also reads as they are, written as a plan of its own

_OPEN = re.compile(r"^[ \t]*[-*+][ \t]+\[ \]")
_TICKED = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[[xX]\]")


def _is_gsd(file: SourceFile) -> bool:
    plan = _parsed(file).draft if plan_parser.dialect_of(file.text.split("\n")) is not None else None
    return plan is not None and bool(plan.tasks)


def _parsed(file: SourceFile) -> ParsedPlan:
    return plan_parser.parse(file.text.encode("utf-8", "surrogateescape"), file.path)


def _gsd(file: SourceFile, near: Near) -> SourcePlan:
    """Read the plan as it is read in place."""
    parsed = _parsed(file)
    plan = parsed.plan or parsed.draft
    for finding in parsed.findings:
        if finding.code not in ("task.ticked", "dialect.done"):
            file.note(finding.line, finding.message)
    if plan is None:
        return SourcePlan(GSD.kind, file.path, file.path, file.path, ())
    done = _is_finished(file, near)
    for task in plan.tasks:
        _use(file, task, is_open=not done and SOURCE_DONE not in task.extra)
    for criterion in plan.success_criteria:
        file.use(criterion.span.line, *signs.ALL)
    values = {"depends_on": plan.depends_on, "wave": (plan.wave or 0) > 1, "requirements": plan.requirements,
              "user_setup": plan.setup}  # fmt: skip
    file.headings = True
    starts = [task.span.line for task in plan.tasks]
    for heading in file.outline.headings:
        if bisect_right(starts, heading.line) < bisect_left(starts, heading.end):
            file.use(heading.line, signs.TASK)  # the tasks in it are read
    for name in values.keys() & plan.spans.keys():
        line = plan.spans[name].line
        file.use_key(line)
        if values[name]:  # an imported plan does not say it
            file.note(line, f"{name} of the plan")
    ids = {task.id: task.extra.get(SOURCE_ID) or task.id for task in plan.tasks}
    tasks = tuple(_task(task, file, ids, done=done) for task in plan.tasks)
    return SourcePlan(GSD.kind, file.path, plan.title, plan.goal, tasks, criteria=plan.success_criteria)


def _is_finished(file: SourceFile, near: Near) -> bool:
    """Whether a plan says that it is done, or GSD wrote a summary of it."""
    if file.front.text("status") and report_files.unfinished(file.text) is None:
        file.use_value(file.front.value("status"))
        return True
    name = re.sub(r"-?PLAN\.md$", "", file.path.rpartition("/")[2])
    return _is_summed_up(near(f"{name.replace('[', '[[]')}-SUMMARY.md") if name else near("SUMMARY.md"))


def _is_summed_up(summaries: Iterable[SourceFile]) -> bool:
    """Whether a summary of GSD says that the work is done. One that says something else is listed."""
    said = [(each, report_files.unfinished(each.text)) for each in summaries]
    for summary, found in said:
        if found is not None:
            summary.note(summary.source.line_number(found.start()), found[0])
    return any(found is None for _, found in said)


def _use(file: SourceFile, task: Task, *, is_open: bool) -> None:
    """Note that the lines of a task are its text; of an open one, marks and statuses beside its fields are not read."""
    whole = task.span
    read = {n for each in task.spans.values() for n in range(each.line, file.source.line_number(each.end) + 1)}
    for line in range(whole.line, whole.line + file.text.count("\n", whole.start, whole.end) + 1):
        file.use(line, *signs.ALL)
        text = file.outline.lines[line - 1]
        if is_open and (line == whole.line or (task.notation == "tag" and _TICKED.match(text))):
            said = signs.signs_in(_OPEN.sub("", text), None, headings=False)
            file.used[line] -= {signs.MARK, signs.STATUS}.intersection(said)
        elif is_open and line not in read:
            file.used[line].discard(signs.STATUS)


def _task(task: Task, file: SourceFile, ids: Mapping[str, str], *, done: bool) -> SourceTask:
    about = "\n\n".join(filter(None, (task.description, task.references)))
    own = {"id": ids[task.id], "description": about, "depends_on": (),
           "files": task.files or claims(signs.paths_in(task.title))}  # fmt: skip
    guessed = any(claim.verb == CHANGE for claim in task.files or ())
    return SourceTask(
        **{**asdict(task), **own}, done=done or SOURCE_DONE in task.extra,
        needs=tuple(Need(ids.get(id, id), file.path, task.span.line) for id in task.depends_on),
        inferred=("Files: create or modify, by what is there",) if guessed else (), path=file.path, line=task.span.line,
    )  # fmt: skip


GSD = Format("gsd", str.casefold, _is_gsd, _gsd)
