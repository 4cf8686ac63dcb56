"""The files of another tool: a file or folder with its neighbours, the parts of a file, and what a reader used."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from idumb.domain.plans.source_tasks import Need, SourcePlan, SourceTask, Unread, claims
from idumb.markdown.importers import signs
from idumb.markdown.importers.signs import References
from idumb.markdown.syntax import outline, tree
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.outline import Entry, Outline
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map

_TASKS = re.compile(r"^</?tasks>[ \t]*$", re.MULTILINE)  # GSD 2 writes them around boxes, which HTML would hide


class SourceFile:
    """A text with its path. Readers say by line which signs they used, and `unread` lists the others.

    `references` is how ids look in the format, `headings` whether a numbered heading may be a task, `candidates` lines
    of what else may be one, `sees_fences` whether the tool reads code fences. `lists_unread`: the file is a part of the
    source; others were opened for what they add to it.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self.references: References | None = None
        self.candidates: set[int] = set()
        self.headings = self.sees_fences = self.lists_unread = False
        self.used: defaultdict[int, set[str]] = defaultdict(set)
        self.notes: list[Unread] = []

    @cached_property
    def front(self) -> Front:
        """Its front matter; a file of YAML is nothing else."""
        return front_matter(self.text, _WHOLE if self.path.endswith((".yml", ".yaml")) else _HEAD)

    @cached_property
    def source(self) -> Source:
        return Source(self.text, self.path)

    @cached_property
    def outline(self) -> Outline:
        text = _TASKS.sub(lambda tag: " " * len(tag[0]), self.text)
        return outline.read(Source(text, self.path), self.front.last)

    def note(self, line: int, text: str) -> None:
        self.notes.append((self.path, line, text))

    def use(self, line: int, *used: str) -> None:
        self.used[line].update(used)

    def use_value(self, node: Node | None) -> None:
        """Note that a value of the front matter was read, with the line of its key."""
        if node is not None:
            self.use_key(self.front.line(node))

    def use_key(self, line: int) -> None:
        """Do the same for a value that begins in a line; its key may be in the line above."""
        above = self.outline.lines[line - 2].rstrip() if line > 1 else ""
        for each in (line, line - 1) if above.endswith(":") else (line,):
            self.use(each, *signs.ALL)

    def take(self, entry: Entry, without: Collection[int] = ()) -> None:
        """Note that an entry is a task, and that its other lines are kept as its text."""
        lines = [line for line in outline.span(entry) if line not in without]
        self.carry(lines)
        said = signs.signs_in(signs.DONE.sub(" ", entry.text), None, headings=False)  # beside a mark of done
        self.use(entry.line, signs.TASK, *({signs.STATUS}.difference(said) if entry.done else ()))
        for above in entry.path if not entry.done else ():
            row = (self.path, above.line, f"open tasks under {above.text}")
            self.notes += [row] if signs.SHELVED.match(above.text) and row not in self.notes else []
        if entry.mark not in (None, " ") and not entry.done:  # `[-]` or `[~]` mean something else to each tool
            self.used[entry.line].discard(signs.BOX)
        if not entry.done:  # a mark in its words may say something else than its box
            self.used[entry.line] -= {signs.MARK}.intersection(signs.signs_in(entry.text, None, headings=False))
        for inner in outline.every(entry.inner) if entry.done else ():
            if inner.mark == " " and inner.line in lines:  # nobody does it if idumb does not run the task
                self.used[inner.line] -= {signs.BOX, signs.MARK}

    def carry(self, lines: Collection[int]) -> None:
        """Note that lines are kept as text of a task. A box in it is only kept if it is that of an item."""
        for line in lines:
            item = self.outline.by_line.get(line)
            self.use(line, signs.MARK, *([signs.BOX] if item is not None and item.mark is not None else []))

    def needs(self, lines: Collection[int], own: str, at: int) -> tuple[Need, ...]:
        """Return the dependencies that lines of a task state, and note what was read. Its `own` id is in line `at`."""
        needs: list[Need] = []
        if self.references is None:
            return ()
        for line in sorted({*lines} - self.outline.hidden - self.outline.fenced):
            found, used = self.references.phrases(self.outline.lines[line - 1], own if line == at else "")
            needs += [Need(text, self.path, line) for text in found]
            self.use(line, *used)
        return tuple(needs)

    def task(
        self, item: Entry, id: str, title: str, about: str, after: tuple[int, ...], order: str,
        chosen: Collection[int] = (),
    ) -> SourceTask:  # fmt: skip
        """Return an item as a task. Items in it on lines that are `chosen` are tasks of their own, the others text."""
        others = {n for inner in outline.every(item.inner) if inner.line in chosen for n in outline.span(inner)}
        self.take(item, others)
        lines = {*outline.span(item)} - others
        needs = self.needs(lines, id, item.line)
        files = signs.paths_in(title)
        below = self.outline.text(item.line + 1, item.end, item.column, others)
        return SourceTask(
            id, title or id, "\n\n".join(filter(None, (about, below))), files=claims(files), done=item.done,
            needs=needs, after=after, inferred=(*([order] if after else []), *signs.inferred(files)), path=self.path,
            line=item.line,
        )  # fmt: skip

    def unread(self) -> list[Unread]:
        """Return what no reader used, in order."""
        if not self.lists_unread:
            return self.notes
        lines = self.outline.lines
        broken = ((self.path, f.line, f"{f.message}: {lines[f.line - 1].strip()}") for f in self.outline.broken)
        rows = [*self.notes, *broken]
        for line, found in self.matched():
            left = [sign for sign in found if sign not in self.used.get(line, ())]
            if left:
                text = signs.row(lines[line - 1], left, used=bool(self.used.get(line)))
                rows.append((self.path, line, text))
        return sorted(rows, key=lambda row: row[1])

    def matched(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of each line that has signs, with its signs."""
        skipped = set[int]() if self.sees_fences else self.outline.hidden | self.outline.fenced
        tasks = self.candidates | {item.line for item in self.outline.items if item.is_boxless}
        for number, line in enumerate(self.outline.lines, 1):
            if number <= self.front.last:
                after = "".join(self.outline.lines[number : number + 1]).lstrip()
                is_list = line.rstrip().endswith(":") and after.startswith("- ")
                found = list(signs.in_front_matter(f"{line} {after}" if is_list else line))
            elif number in skipped:
                continue
            else:
                found = list(signs.signs_in(line, self.references, headings=self.headings))
                found += [signs.TASK] if number in tasks and signs.TASK not in found else []
            if found:
                yield number, found


Near = Callable[[str], list[SourceFile]]
"""Returns the files beside a source whose names fit a pattern, in order."""


class Format(NamedTuple):
    """How `idumb import` reads the files of one tool. `key` is equal for ids that the tool equates."""

    kind: str
    key: Callable[[str], str]
    matches: Callable[[SourceFile], bool]
    read: Callable[[SourceFile, Near], SourcePlan]


# The files of a source


class Sources:
    """The file or folder at `path`: `files` are its texts by name, "" for the file itself; `opened` are those read."""

    def __init__(self, path: str, files: Mapping[str, str]) -> None:
        self.path, self.files = path, files
        self.folder = posixpath.dirname(path) if "" in files else path
        self.opened: dict[str, SourceFile] = {}

    def open(self, name: str) -> SourceFile:
        if name not in self.opened:
            path = posixpath.normpath(posixpath.join(self.folder, name)) if name else self.path
            self.opened[name] = SourceFile(path, self.files[name])
        return self.opened[name]

    def near(self, folder: str) -> Near:
        """Return a function that opens the files beside one in a folder."""
        return lambda pattern: [self.open(n) for n in sorted(self.files) if fnmatch.fnmatchcase(n, folder + pattern)]


# Front matter; these tools do not write YAML strictly

_HEAD = re.compile(r"---[ \t]*\n(?:[ \t]*\n)*((?>(?:(?!---[ \t]*(?:\n|\Z)).*\n)*))---[ \t]*(?:\n|\Z)")
_WHOLE = re.compile(r"(?:---[ \t]*\n)?((?s:.*))")
# Values that YAML does not take without quotes, and that people and models write so.
_AT = re.compile(r"(?m)^(\s*(?:-\s+|[\w-]+:\s+))([@`%&*!]\S.*)$")
_UNQUOTED = re.compile(
    r"(?m)^([ \t]*(?:-[ \t]+)?[\w-]+:[ \t]+)((?:[`%&*!]|[^\s'\"\[{|>#][^\n]*?:[ \t])[^\n]*?)(?=[ \t]*$)"
)


class Front(Struct, frozen=True):
    """`last` is the line of its end, 0 without one; `node` is None if it cannot be read."""

    last: int = 0
    node: Node | None = None
    source: Source = Source("", "")

    def value(self, name: str) -> Node | None:
        return tree.find(self.node, name)

    def text(self, name: str) -> str:
        return text(self.node, name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a value as texts: a list, or one text."""
        return texts(self.value(name))

    def has(self, *names: str) -> bool:
        return all(self.value(name) is not None for name in names)

    def line(self, node: Node | None) -> int:
        return self.source.line_number(node.start) if node is not None else 1


def text(node: Node | None, name: str) -> str:
    return tree.said(tree.find(node, name))


def texts(node: Node | None) -> tuple[str, ...]:
    return tuple(filter(None, map(tree.said, node.items if is_list(node) else [node])))


def ids(node: Node | None) -> Iterator[str]:
    """Yield the ids of a list; people also write them with commas between them."""
    return (id for each in texts(node) for id in map(str.strip, each.split(",")) if id)


def front_matter(text: str, head: re.Pattern[str]) -> Front:
    """Return the front matter of a text without a byte-order mark; `head` finds it."""
    match = head.match(text)
    if match is None:
        return Front()
    last = text.count("\n", 0, match.end(1)) + 1
    before = text[: match.start(1)]
    for yaml in (match[1], _UNQUOTED.sub(_quoted, _AT.sub(_quoted, match[1]))):  # Backlog.md writes `- @name`
        source = Source(before + yaml, "")
        node = tree.read(Text(yaml, [(0, len(before))]), source, "front matter")
        if is_map(node) and not any(f.code == "yaml.unreadable" for f in source.findings):
            return Front(last, node if _is_whole(node) else None, source)
    return Front(last)


def _is_whole(node: Node) -> bool:
    """Whether no text is half of a character, which escapes of YAML can name and no file can hold."""
    return not any("\ud800" <= char <= "\udbff" for char in node.value) and all(map(_is_whole, node.items))


def _quoted(line: re.Match[str]) -> str:
    return f"{line[1]}'" + line[2].replace("'", "''") + "'"
