"""The readers of values: each turns a `Node` into the value of a field, and reports what it cannot read.

Markdown and YAML have one reader: a pair of a YAML map is read as the bullet `key: value`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from idumb.domain import whole_numbers
from idumb.domain.plans.plan import FILE_VERBS, FileClaim, SymbolClaim
from idumb.markdown.syntax import inline
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Place
from idumb.markdown.syntax.tree import LIST, MAP, TEXT, Node
from idumb.markdown.syntax.value_types import Reader, seconds

if TYPE_CHECKING:
    from idumb.markdown.syntax.blocks import Block

_SEQUENCE = re.compile(rf"\d{{2,{whole_numbers.MOST_DIGITS}}}[a-z]?", re.ASCII)
_NAME = re.compile(r"[\w.:/@+-]+")


# One value


def _single(node: Node, place: Place) -> Text | None:
    """Return the only text of a value, without backticks and quotes around it."""
    texts = list(node.texts())
    if len(texts) == 1 and not any(item.items for item in node.items):
        return Text(inline.unquote(texts[0].value), texts[0].marks)
    place.report("field.one-value", place.at, ", ".join(text.value for text in texts))
    return None


def _one(accepted: str, convert: Callable[[str], Any], near: tuple[str, ...] = ()) -> Reader:
    def read(node: Node, place: Place) -> Any:
        text = _single(node, place)
        value = None if text is None else convert(text.value)
        if text is not None and value is None:
            place.report("field.bad-value", text.at(0), text.value, near, accepted=accepted)
        return value

    return read


def choice(*choices: str) -> Reader:
    return _one(f"one of {', '.join(choices)}", lambda text: text if text in choices else None, choices)


duration = _one("a time such as 1h30m, 45m or 90s", seconds)
_name = _one(
    "the name of a role binding, without spaces or commas", lambda text: text if _NAME.fullmatch(text) else None
)
_yes = choice("yes", "no")


def name(node: Node, place: Place) -> str | None:
    """Read the name of a role binding; None for `none`, which leaves the choice to the plan."""
    return None if node.is_none else _name(node, place)


def names(node: Node, place: Place) -> tuple[str, ...]:
    return tuple(inline.unquote(text.value) for text in listed(node, place))


def yes(node: Node, place: Place) -> bool:
    """Read `yes` or `no`; YAML also allows `true` and `false`."""
    if node.plain and node.value in {"true", "false"}:
        return node.value == "true"
    return bool(_yes(node, place) == "yes")


def free_text(node: Node, _: Place) -> str:
    """Return free text with wrapped lines joined and nested bullets kept."""
    if node.is_none:
        return ""
    return "\n".join(_outline(node.items)) if node.items else node.value


def _outline(items: list[Node], depth: int = 0) -> Iterator[str]:
    for item in items:
        yield "  " * depth + "- " + item.value
        yield from _outline(item.items, depth + 1)


# Lists


def split(text: Text, place: Place) -> Iterator[Text]:
    """Yield the items of a comma list or flow list; a literal text is one item."""
    if text.literal:
        yield text
        return
    if text.value.startswith("[") and text.value.endswith("]"):
        text = text.part(1, len(text.value) - 1)
    for start, end in inline.split_commas(text.value):
        if start < end:
            yield text.part(start, end)
        else:
            place.report("field.empty-item", text.at(min(start, max(len(text.value) - 1, 0))), text.value)


def below(node: Node, place: Place) -> None:
    """Report content below the items of a simple list."""
    for item in node.items:
        for inner in item.items:
            place.report("field.unexpected-content", inner.start)


def only_bullets(node: Node, place: Place, *, fences: bool, deep: bool = False) -> bool:
    """Whether only bullets are below a value, and with `fences` what may hold commands; report anything else."""
    odd = node.others(fences=fences, deep=deep)
    if odd:
        place.report("field.unexpected-content", min(odd))
    return not odd


def listed(node: Node, place: Place) -> Iterator[Text]:
    """Yield the comma-separated items of a value as written."""
    if node.is_none:
        return
    for text in node.texts():
        yield from split(text, place)
    below(node, place)


def unsplit(node: Node, place: Place) -> Iterator[Text]:
    """Yield the text on the line and of each item."""
    if not node.is_none:
        yield from node.texts()
        below(node, place)


def paths(node: Node, place: Place) -> tuple[str, ...]:
    """Read paths, globs or symbols."""
    items = []
    for text in listed(node, place):
        path = inline.unquote(text.value)
        if re.search(r"\s", path) and path == text.value and not text.literal:
            place.report("field.bare-blank", text.at(0), text.value)
        else:
            items.append(path)
    return tuple(items)


def declared(kind: str) -> Reader:
    """Return a reader of ids that the frontmatter declares."""

    def read(node: Node, place: Place) -> tuple[str, ...]:
        known = place.declared.get(kind, ())
        ids = [(inline.unquote(text.value), text.at(0)) for text in listed(node, place)]
        for id, at in ids:
            if id not in known:
                place.report(f"task.unknown-{kind}", at, id, known)
        return tuple(id for id, _ in ids)

    return read


def dependencies(node: Node, place: Place) -> tuple[str, ...]:
    """Read ids of tasks in the phase."""
    ids = [(inline.unquote(text.value), text.at(0)) for text in listed(node, place)]
    wrong = {id for id, _ in ids if place.phase is not None and not is_task_id(id, place.phase)}
    for id, at in ids:
        if id in wrong:
            place.report("task.bad-dependency", at, id, phase=place.phase, accepted=f"T{place.phase}-01, …, or none")
    return tuple(id for id, _ in ids if id not in wrong)


def is_task_id(text: str, phase: str) -> bool:
    """Whether `text` is a task id of the phase, with the phase spelled as in the frontmatter."""
    prefix = f"T{phase}-"
    return text.startswith(prefix) and _SEQUENCE.fullmatch(text, len(prefix)) is not None


# Commands


def commands(node: Node, place: Place) -> tuple[str, ...]:
    """Read commands: in backticks, one per bullet or separated by commas, or in `sh` fences."""
    if node.is_none:
        return ()
    below(node, place)
    return tuple(command for each in (node, *node.items) for command in _commands(each.text, each.fences, place))


def _commands(text: Text, fences: list[Block], place: Place) -> Iterator[str]:
    if text.literal and text.value:
        yield inline.code(text.value) or text.value
    elif text.value:
        yield from filter(None, (command(item, place) for item in split(text, place)))
    yield from filter(None, (fenced(fence, place) for fence in fences))


def command(text: Text, place: Place) -> str | None:
    """Return the command of a code span; report a command without backticks."""
    code = inline.code(text.value)
    if code is not None and code.strip():
        return code
    place.report("command.empty" if code is not None or not text.value else "command.bare", text.at(0), text.value)
    return None


def fenced(fence: Block, place: Place) -> str | None:
    """Return the command of several lines in a `sh` fence."""
    text = fence.content(place.source)
    if fence.info == "sh" and text.strip():
        return text
    place.report("command.fence", fence.start, fence.mark + fence.info)
    return None


# Claims


class Word(Struct, frozen=True):
    """A word of a value; `bare` means that it is not in backticks or quotes."""

    text: str
    at: int
    bare: bool


def words(text: Text) -> list[Word]:
    """Return code spans, quoted parts and bare words, in order."""
    quotes, spans = inline.Quotes(text.value), {span[0]: span for span in inline.code_spans(text.value)}
    found: list[Word] = []
    at = 0
    while at < len(text.value):
        begin = at
        if text.value[at].isspace():
            at += 1
        elif at in spans:
            at = spans[at][1]
            found.append(Word(inline.span_content(text.value, spans[begin]), text.at(begin), bare=False))
        elif text.value[at] in "\"'" and (end := quotes.end(text.value[at], at)) != -1:
            at = end
            found.append(Word(text.value[begin + 1 : end - 1], text.at(begin), bare=False))
        else:
            ends = (i for i in range(begin, len(text.value)) if text.value[i].isspace() or i in spans)
            at = next(ends, len(text.value))
            found.append(Word(text.value[begin:at], text.at(begin), bare=True))
    return found


class _Claims:
    """Reads verbs with what they apply to. A verb applies until the next one or the end of its value."""

    def __init__(self, place: Place, verbs: tuple[str, ...]) -> None:
        self.place, self.verbs = place, verbs
        self.claims: list[tuple[str, str, str | None]] = []

    def read(self, node: Node) -> list[tuple[str, str, str | None]]:
        if node.is_none:
            return []
        if node.value:
            self._text(node.text, None)
        for item in node.items:
            verb = item.value.removesuffix(":")
            if node.kind == MAP:
                self._pair(item)
            elif not item.items:
                self._text(item.text, None)
            elif verb not in self.verbs:
                self.place.report("field.unexpected-content", item.start, verb)
            else:
                for inner in item.items:
                    for stray in inner.items:
                        self.place.report("field.unexpected-content", stray.start)
                    self._text(inner.text, verb)
        return self.claims

    def _pair(self, item: Node) -> None:
        verb, _, value = item.value.partition(":")
        if verb not in self.verbs:
            self.place.report("field.no-verb", item.start, verb, self.verbs)
        elif item.kind == TEXT and value.strip():
            self._text(Text(value.strip(), [(0, item.start + len(verb) + 2)]), verb)
        elif item.kind == LIST and all(inner.kind == TEXT and inner.value for inner in item.items):
            for inner in item.items:
                self._text(inner.text, verb)
        else:
            self.place.report("field.not-text", item.start, verb, accepted="a map of verbs to lists of paths")

    def _text(self, text: Text, verb: str | None) -> None:
        if text.literal and verb and verb != "move":
            self.claims.append((verb, inline.unquote(text.value), None))
            return
        for item in split(text, self.place):
            verb = self._item(item, verb)

    def _item(self, item: Text, verb: str | None) -> str | None:
        """Read one item of the comma list. Return the verb that applies to the next item."""
        parts = words(item)
        at = bare = 0
        while at < len(parts):
            word = parts[at]
            if word.bare and word.text.removesuffix(":") in self.verbs:
                verb, bare = word.text.removesuffix(":"), 0
                at += 1
                if at == len(parts):
                    self.place.report("field.empty-item", word.at, item.value)
                continue
            bare += word.bare
            if verb is None:
                self.place.report("field.no-verb", word.at, word.text, self.verbs)
                return verb
            if word.bare and (";" in word.text or bare > 1):
                self.place.report("field.semicolon" if ";" in word.text else "field.bare-blank", word.at, item.value)
                return verb
            if verb != "move":
                self.claims.append((verb, word.text, None))
                at += 1
                continue
            to = parts[at + 1 : at + 3]
            if len(to) < 2 or to[0].text != "to" or not to[0].bare:
                self.place.report("files.move", word.at, item.value)
                return verb
            self.claims.append((verb, word.text, to[1].text))
            at, bare = at + 3, 0
        return verb


def files(node: Node, place: Place) -> tuple[FileClaim, ...]:
    """Read `create`, `modify`, `delete` or `read` with paths, and `move A to B`."""
    return tuple(FileClaim(*claim) for claim in _Claims(place, FILE_VERBS).read(node))


def symbols(node: Node, place: Place) -> tuple[SymbolClaim, ...]:
    """Read `add` or `remove` with names."""
    return tuple(SymbolClaim(verb, name) for verb, name, _ in _Claims(place, ("add", "remove")).read(node))
