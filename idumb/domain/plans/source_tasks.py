"""The tasks of another tool, and what they wait for: one rule for all formats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from idumb.domain import canonical_json, paths
from idumb.domain.plans import graph
from idumb.domain.plans.plan import UNPROVEN, Criterion, FileClaim, Task

SOURCE_ID = "x-source-id"
DONE = "marked as done in the source; idumb did not witness it"
ORDER = "Depends on: order of the list"
"""What is inferred if a source states no dependencies: each task waits for the one before it."""
CHANGE = "change"
"""The verb of a file of which a source does not say what is done to it."""
RANGE = "\0"
"""Between the two ends of a range of ids."""
_MARK = re.compile(r"^([ \t]*[-*+][ \t]+)(?:\[[^\[\]]\]|\(done\))[ \t]*", re.MULTILINE)
_NUMBER = re.compile(r"\d+")
Unread = tuple[str, int, str]
"""What was not understood: path, line and text."""


class Need(Struct, frozen=True):
    """A dependency as it is written: an id, or a range of them."""

    text: str
    path: str
    line: int


class SourceTask(Task, frozen=True, kw_only=True):
    """One task of another tool, with the ids of that tool. `inferred` names what idumb guessed, with the reason.

    `needs` are dependencies that the source states, `after` the places of the tasks that its order puts before this
    one, `parent` the id of the task that it is a part of, `parts` the ids of its own. `depends_on` are the ids that
    follow.
    """

    done: bool = False
    needs: tuple[Need, ...] = ()
    after: tuple[int, ...] = ()
    parent: str = ""
    parts: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()
    path: str = ""
    line: int = 1

    def digest(self) -> str:
        """Return a digest of what the import takes from the source, except its mark of progress and its place."""
        about = _MARK.sub(r"\1", self.description)
        stated = [need.text for need in self.needs]
        files = [claim.path for claim in self.files or ()]
        said = [*(each.text for each in self.acceptance), *(each.text for each in self.options)]
        content = [self.title, about, stated, files, said, list(self.verify)]
        return canonical_json.digest({"task": content})[:16]


def unproven(texts: Iterable[str]) -> tuple[Criterion, ...]:
    """Return the criteria of a source that says nothing of their proof."""
    return tuple(Criterion("", text, UNPROVEN) for text in texts)


def claims(paths: Iterable[str]) -> tuple[FileClaim, ...]:
    """Return the claims of files of which a source does not say what is done to them."""
    return tuple(FileClaim(CHANGE, path) for path in paths)


class SourcePlan(Struct, frozen=True):
    """The plan of another tool at `path`. `unread` lists what was not understood.

    `tag` is the one that was read, if the file has several lists of tasks. `criteria` are those of the whole plan.
    `key` is equal for ids that the tool equates.
    """

    kind: str
    path: str
    title: str
    goal: str
    tasks: tuple[SourceTask, ...]
    unread: tuple[Unread, ...] = ()
    tag: str = ""
    criteria: tuple[Criterion, ...] = ()
    key: Callable[[str], str] = str


def resolved(plan: SourcePlan, key: Callable[[str], str]) -> SourcePlan:
    """Return the plan with distinct ids and with what each task waits for; `key` is equal for ids that a tool equates.

    A task waits for what it states, for its parts, for what the task that it is a part of waits for, and for what comes
    before it. The last three are left out where the statements say the opposite. What names no task is listed.
    """
    tasks, unread = _distinct(plan.tasks, key)
    waits = _Graph(tasks, key)
    for task in tasks:
        related = [("parent", task.parent)] * bool(task.parent) + [("part", part) for part in task.parts]
        missing = (f"the {what} {id} of {task.id}" for what, id in related if key(id) not in waits.known)
        unread += [(task.path, task.line, f"{words}, no task of this source") for words in missing]
    tasks = [_with_files(task, unread) for task in tasks]
    for place, need in ((place, need) for place, task in enumerate(tasks) for need in task.needs):
        found = waits.places(need)
        if found in ([], [place]):
            why = "" if found else ", no task of this source"
            text = f"the dependency of {tasks[place].id} on {need.text}{why}".replace(RANGE, " to ")
            unread.append((need.path, need.line, text))
        for other in found:
            waits.add(place, other)
    for place, other in waits.inferred():
        waits.add(place, other, inferred=True)
    after = [tuple(dict.fromkeys(tasks[other].id for other in row)) for row in waits.rows.values()]
    named = tuple(replace(task, depends_on=ids) for task, ids in zip(tasks, after, strict=True))
    return replace(plan, tasks=named, unread=(*plan.unread, *unread), key=key)


def _with_files(task: SourceTask, unread: list[Unread]) -> SourceTask:
    """Return the task with the files that a plan can name; the others are listed."""
    rows = [(claim, paths.problem(claim.path)) for claim in task.files or ()]
    unread += [(task.path, task.line, f"the file {c.path} of {task.id}, which {why}") for c, why in rows if why]
    return replace(task, files=tuple(claim for claim, why in rows if not why))


def _distinct(tasks: Sequence[SourceTask], key: Callable[[str], str]) -> tuple[list[SourceTask], list[Unread]]:
    """Return tasks whose ids differ: of several with one id, the later ones get a number and are listed."""
    counts: Counter[str] = Counter()
    rows: list[SourceTask] = []
    for task in tasks:
        counts[key(task.id)] += 1
        number = counts[key(task.id)]
        rows.append(task if number == 1 else replace(task, id=f"{task.id}~{number}"))
    pairs = ((old.id, new) for old, new in zip(tasks, rows, strict=True) if old.id != new.id)
    return rows, [(new.path, new.line, f"the id {id} of another task; here it is {new.id}") for id, new in pairs]


class _Graph:
    """The tasks that each task waits for, by place; `forward` if a task waits for a later one."""

    def __init__(self, tasks: Sequence[SourceTask], key: Callable[[str], str]) -> None:
        self.tasks, self.key = tasks, key
        self.rows: dict[int, list[int]] = {place: [] for place in range(len(tasks))}
        self.known = {key(task.id): place for place, task in enumerate(tasks)}
        self.forward = False

    def add(self, place: int, other: int, *, inferred: bool = False) -> None:
        closes = inferred and (self.forward or other > place) and place in graph.needed_by(self.rows, other)
        if other == place or closes:
            return
        self.rows[place].append(other)
        self.forward |= other > place

    def places(self, need: Need) -> list[int]:
        first, _, last = need.text.partition(RANGE)
        whole = self.known.get(self.key(first))
        return self._range(first, last) if last else [] if whole is None else [whole]

    def _range(self, first: str, last: str) -> list[int]:
        """Return the tasks between two ids, whose numbers tell; the second may leave out what both begin with."""
        if last[:1].isdigit():
            cut = re.sub(r"\d.*", "", first) + last
            padded = first[: max(len(first) - len(last), 0)] + last
            last = cut if self.key(cut) in self.known else padded
        if self.key(first) not in self.known or self.key(last) not in self.known:
            return []
        (low, high), same = sorted((_numbers(first), _numbers(last))), re.sub(r"\d.*", "", self.key(first))
        rows = ((place, task.id) for place, task in enumerate(self.tasks) if self.key(task.id).startswith(same))
        return [place for place, id in rows if low <= (numbers := _numbers(id)) <= high or numbers[: len(high)] == high]

    def inferred(self) -> Iterator[tuple[int, int]]:
        """Yield what follows from parts and from the order; parents are in no order, so statements are in place."""
        stated = {place: list(row) for place, row in self.rows.items()}
        owners = {self.key(part): place for place, task in enumerate(self.tasks) for part in task.parts}
        parents = [
            self.known.get(self.key(task.parent)) if task.parent else owners.get(self.key(task.id))
            for task in self.tasks
        ]
        for place, parent in enumerate(parents):
            above, seen = parent, {place}
            while above is not None and above not in seen:
                yield from ((place, other) for other in stated[above])
                seen.add(above)
                above = parents[above]
            if parent is not None:
                yield parent, place
        yield from ((place, other) for place, task in enumerate(self.tasks) for other in task.after)


def _numbers(id: str) -> tuple[int, ...]:
    return tuple(int(part[:18]) for part in _NUMBER.findall(id))
