"""Read claims: the files and symbols that a task declares, each after a verb."""

from __future__ import annotations

from collections.abc import Iterator

from idumb.domain.finding import nearest
from idumb.domain.plans.plan import FILE_VERBS, FileClaim, SymbolClaim
from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax import inline, scalars, yaml_nodes
from idumb.markdown.syntax.field_values import Bullet, Value, yaml_text
from idumb.markdown.syntax.inline import Text

SYMBOL_VERBS = ("add", "remove")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a value; `bare` means that it is not in backticks or quotes."""

    text: str
    at: int
    bare: bool


def words(text: Text) -> Iterator[Word]:
    """Yield code spans, quoted parts and bare words, in order."""
    quotes = inline.Quotes(text.s)
    spans = {start: (start, end, size) for start, end, size in inline.code_spans(text.s)}
    position = 0
    while position < len(text.s):
        if text.s[position].isspace():
            position += 1
            continue
        begin = position
        if begin in spans:
            position = spans[begin][1]
            yield Word(inline.span_content(text.s, spans[begin]), text.at(begin), bare=False)
        elif text.s[begin] in "\"'" and (end := quotes.end(text.s[begin], begin)) != -1:
            position = end
            yield Word(text.s[begin + 1 : end - 1], text.at(begin), bare=False)
        else:
            position = next((i for i in range(begin, len(text.s)) if text.s[i].isspace() or i in spans), len(text.s))
            yield Word(text.s[begin:position], text.at(begin), bare=True)


class _Claims:
    """Reads one value. A verb applies until the next verb or the end of the value."""

    def __init__(self, value: Value, verbs: tuple[str, ...]) -> None:
        self.value = value
        self.verbs = verbs
        self.claims: list[tuple[str, str, str | None]] = []

    def read(self) -> list[tuple[str, str, str | None]]:
        if isinstance(self.value.node, yaml_nodes.Mapping):
            self._mapping(self.value.node)
        if self.value.inline.s:
            self._text(self.value.inline, None)
        for bullet in self.value.bullets:
            self._bullet(bullet)
        return self.claims

    def _mapping(self, node: yaml_nodes.Mapping) -> None:
        for key, value in node.pairs:
            if key.value not in self.verbs:
                self._no_verb(key.value, key.start)
                continue
            entries = value.items if isinstance(value, yaml_nodes.Sequence) else [value]
            for entry in entries:
                if isinstance(entry, yaml_nodes.Scalar) and not entry.is_null:
                    self._text(yaml_text(entry, literal=entry is not value), key.value)
                else:
                    self._error("field.not-text", entry.start, f"{key.value} must be a list of texts", "")

    def _bullet(self, bullet: Bullet) -> None:
        verb = bullet.text.s.removesuffix(":")
        if not bullet.children and not bullet.fences:
            self._text(bullet.text, None)
        elif verb in self.verbs and not bullet.fences:
            for child in bullet.children:
                for stray in child.children:
                    self._error("field.unexpected-content", stray.start, "A path cannot have nested bullets", "")
                self._text(child.text, verb)
        else:
            message = "Only a bullet that holds just a verb can have nested bullets"
            self._error("field.unexpected-content", bullet.start, message, verb)

    def _text(self, text: Text, verb: str | None) -> None:
        if text.literal and verb and verb != "move":
            self.claims.append((verb, inline.unquote(text.s), None))
            return
        for item in scalars.split(text, self.value):
            verb = self._item(item, verb)

    def _item(self, item: Text, verb: str | None) -> str | None:
        """Read one item of the comma list. Return the verb that applies to the next item."""
        parts = list(words(item))
        at = bare = 0
        while at < len(parts):
            word = parts[at]
            if word.bare and word.text.removesuffix(":") in self.verbs:
                verb, bare = word.text.removesuffix(":"), 0
                at += 1
                if at == len(parts):
                    self._error("field.empty-item", word.at, f"`{verb}` has no path or name after it", item.s)
                continue
            bare += word.bare
            if verb is None:
                self._no_verb(word.text, word.at)
                return verb
            if word.bare and (";" in word.text or bare > 1):
                self._odd_word(item, word)
                return verb
            at = self._claim(verb, parts, at, item)
            bare = 0 if verb == "move" else bare
        return verb

    def _claim(self, verb: str, parts: list[Word], at: int, item: Text) -> int:
        if verb != "move":
            self.claims.append((verb, parts[at].text, None))
            return at + 1
        to = parts[at + 1 : at + 3]
        if len(to) < 2 or to[0].text != "to" or not to[0].bare:
            self._error("files.move", parts[at].at, "A move must be written `move A to B`", item.s)
            return len(parts)
        self.claims.append((verb, parts[at].text, to[1].text))
        return at + 3

    def _odd_word(self, item: Text, word: Word) -> None:
        if ";" in word.text:
            self._error("field.semicolon", word.at, "Separate items with commas, not with semicolons", item.s)
        else:
            self._error("field.bare-blank", word.at, "A path that contains a space must be in backticks", item.s)

    def _no_verb(self, word: str, at: int) -> None:
        near = nearest(word, self.verbs)
        message = f"`{word}` has no verb before it"
        accepted = f"did you mean {near}?" if near else "write a verb before it, such as " + self.verbs[0]
        self._error("field.no-verb", at, message, word, accepted)

    def _error(self, code: str, at: int, message: str, found: str, fix: str = "") -> None:
        accepted = ", ".join(self.verbs) + " and paths" if self.verbs is FILE_VERBS else "add or remove, and names"
        self.value.error(code, at, message, found, accepted, fix or "write " + accepted)


def files(value: Value) -> tuple[FileClaim, ...]:
    """Read `create`, `modify`, `delete` or `read` with paths, and `move A to B`."""
    if value.is_none:
        return ()
    return tuple(FileClaim(*claim) for claim in _Claims(value, FILE_VERBS).read())


def symbols(value: Value) -> tuple[SymbolClaim, ...]:
    """Read `add` or `remove` with names."""
    if value.is_none:
        return ()
    return tuple(SymbolClaim(verb, name) for verb, name, _ in _Claims(value, SYMBOL_VERBS).read())
