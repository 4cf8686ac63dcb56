"""A field's value before it is understood: the text on the line and the bullets below, from Markdown or from YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from idumb.markdown.syntax import yaml_nodes
from idumb.markdown.syntax.inline import Text, joined
from idumb.markdown.syntax.nodes import Block, Fence, Item, Items, Paragraph
from idumb.markdown.syntax.source import Source


@dataclass(slots=True)
class Bullet:
    """A nested bullet: its text, what hangs below it, and what a field cannot hold (`others`)."""

    text: Text
    start: int
    children: list[Bullet] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)
    others: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Value:
    """The value of one field. `label_at` is where the field begins, `[start, end)` is the value in the source."""

    name: str
    label: str
    label_at: int
    inline: Text
    bullets: list[Bullet]
    start: int
    end: int
    fences: list[Fence] = field(default_factory=list)
    others: list[Block] = field(default_factory=list)
    node: yaml_nodes.Node | None = None

    def texts(self) -> Iterator[Text]:
        """Every text of the value: the one on the line, or one a bullet."""
        if self.inline.s:
            yield self.inline
        for bullet in self.bullets:
            yield bullet.text

    @property
    def is_none(self) -> bool:
        """`none`, `[]` or `-`, alone, says that there is nothing."""
        if self.bullets:
            return len(self.bullets) == 1 and not self.inline.s and _says_none(self.bullets[0])
        return self.inline.s.casefold() in {"none", "[]", "-"} or _empty_list(self.node)


def _says_none(bullet: Bullet) -> bool:
    return bullet.text.s.casefold() in {"none", "[]"} and not bullet.children


def _empty_list(node: yaml_nodes.Node | None) -> bool:
    return isinstance(node, yaml_nodes.Sequence) and not node.items


def content(blocks: list[Block], source: Source) -> tuple[list[Bullet], list[Fence], list[Block]]:
    """What hangs below a paragraph of an item: bullets, fences, and everything else."""
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
    """The paragraph an item begins with, as one line, and the blocks behind it."""
    if item.children and isinstance(item.children[0], Paragraph):
        return joined(item.children[0].pieces), item.children[1:]
    return Text("", [(0, item.start)]), item.children


def fence_text(fence: Fence, source: Source) -> str:
    """The lines inside a fence."""
    if fence.top:
        last = fence.end_line - (1 if fence.closed else 0)
        return "\n".join(source.lines[fence.line + 1 : last])
    return "\n".join(text for _, text in fence.pieces)


def yaml_text(node: yaml_nodes.Scalar, *, literal: bool = False) -> Text:
    """A scalar as a text; its characters are taken to stand one behind the other in the source."""
    at = node.start if node.plain else node.start + 1
    value = node.value.strip()
    return Text(value, [(0, at)], literal=literal)


def yaml_bullet(node: yaml_nodes.Scalar) -> Bullet:
    return Bullet(yaml_text(node, literal=True), node.start)
