"""The raw value of a field, from Markdown or YAML: the text on its line and the bullets below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax import yaml_nodes
from idumb.markdown.syntax.inline import Text, joined
from idumb.markdown.syntax.nodes import Block, Fence, Item, Items, Paragraph
from idumb.markdown.syntax.problems import Field
from idumb.markdown.syntax.source import Source


@dataclass(slots=True)
class Bullet:
    """A nested bullet with its children; `others` are blocks that no field accepts."""

    text: Text
    start: int
    children: list[Bullet] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)
    others: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Value(Field):
    """The value of one field. `label_at` is the start of the field, `[start, end)` the range of the value."""

    name: str
    label_at: int
    inline: Text
    bullets: list[Bullet]
    start: int
    end: int
    fences: list[Fence] = field(default_factory=list)
    others: list[Block] = field(default_factory=list)
    node: yaml_nodes.Node | None = None

    def texts(self) -> Iterator[Text]:
        """Yield the text on the line, then the text of each bullet."""
        if self.inline.s:
            yield self.inline
        for bullet in self.bullets:
            yield bullet.text

    @property
    def is_none(self) -> bool:
        """Whether the value is `none`, `[]` or `-`."""
        if self.bullets:
            only = self.bullets[0]
            says_none = only.text.s.casefold() in {"none", "[]"} and not only.children
            return len(self.bullets) == 1 and not self.inline.s and says_none
        empty_list = isinstance(self.node, yaml_nodes.Sequence) and not self.node.items
        return self.inline.s.casefold() in {"none", "[]", "-"} or empty_list


def content(blocks: list[Block], source: Source) -> tuple[list[Bullet], list[Fence], list[Block]]:
    """Split the blocks below an item's first paragraph into bullets, fences and others."""
    bullets: list[Bullet] = []
    fences: list[Fence] = []
    others: list[Block] = []
    for block in blocks:
        if isinstance(block, Items) and block.marker in "-+*":
            bullets += [from_item(item, source) for item in block.children]
        elif isinstance(block, Fence):
            fences.append(block)
        else:
            others.append(block)
    return bullets, fences, others


def from_item(item: Item, source: Source) -> Bullet:
    text, rest = first_text(item)
    bullets, fences, others = content(rest, source)
    return Bullet(text, item.start, bullets, fences, others)


def first_text(item: Item) -> tuple[Text, list[Block]]:
    """Return the first paragraph of an item as one line, and the blocks after it."""
    if item.children and isinstance(item.children[0], Paragraph):
        return joined(item.children[0].pieces), item.children[1:]
    return Text("", [(0, item.start)]), item.children


def fence_text(fence: Fence, source: Source) -> str:
    """Return the lines inside a fence."""
    if fence.top:
        last = fence.end_line - (1 if fence.closed else 0)
        return "\n".join(source.lines[fence.line + 1 : last])
    return "\n".join(text for _, text in fence.pieces)


def yaml_text(node: yaml_nodes.Scalar, *, literal: bool = False) -> Text:
    """Return a scalar as a text; offsets assume that its characters are contiguous in the source."""
    at = node.start if node.plain else node.start + 1
    value = node.value.strip()
    return Text(value, [(0, at)], literal=literal)


def yaml_bullet(node: yaml_nodes.Scalar) -> Bullet:
    return Bullet(yaml_text(node, literal=True), node.start)
