"""mistune as the slow oracle: both must see the same headings, fences and top-level lists, on the same lines.

Left out on purpose: documents with HTML comments, which plans read in their own way (a comment ends no list); a
byte-order mark, which mistune takes for text; items of bare YAML lists, which are lists to mistune; documents that
a plan may not have (a fence that is never closed, nesting without end).
"""

from __future__ import annotations

import re

import mistune

from idumb.markdown.syntax import blocks
from idumb.markdown.syntax.nodes import Fence, Heading, Items, YamlItem
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source
from tests.format import golden

_FRONTMATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)

Seen = list[tuple[str, str, int]]


class _Placed(mistune.BlockParser):
    """Notes for every top-level block the line on which it begins."""

    def parse_method(self, m: re.Match[str], state: mistune.BlockState) -> int | None:
        before = len(state.tokens)
        end = super().parse_method(m, state)
        if state.parent is None:
            line = state.src.count("\n", 0, m.start())
            for token in state.tokens[before:]:
                token.setdefault("line", line)
        return end


def mistune_sees(text: str) -> Seen:
    state = mistune.BlockState()
    state.process(text if text.endswith("\n") else text + "\n")
    _Placed().parse(state)
    seen: Seen = []
    for token in state.tokens:
        kind = token["type"]
        if kind == "heading" and token.get("style") != "setext":
            seen.append(("heading", str(token["attrs"]["level"]), token["line"]))
        elif kind == "block_code" and token.get("style") == "fenced":
            seen.append(("fence", str(token.get("attrs", {}).get("info", "")).strip(), token["line"]))
        elif kind == "list":
            seen.append(("list", f"{token['bullet']} {len(token['children'])}", token["line"]))
    return seen


def idumb_sees(text: str) -> Seen:
    source = Source(text, "x")
    seen: Seen = []
    for block in blocks.scan(source, 0, Problems(source)):
        if isinstance(block, Heading) and source.lines[block.line].lstrip(" ").startswith("#"):
            seen.append(("heading", str(block.level), block.line))
        elif isinstance(block, Fence):
            seen.append(("fence", block.info, block.line))
        elif isinstance(block, Items):
            seen.append(("list", f"{block.marker} {len(block.children)}", block.line))
    return seen


def comparable(data: bytes) -> str | None:
    """The text that both may be asked about, or None."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    text = _FRONTMATTER.sub("", text)
    if "<!--" in text:
        return None
    source = Source(text, "x")
    problems = Problems(source)
    scanned = blocks.scan(source, 0, problems)
    return None if problems.findings or any(isinstance(b, YamlItem) for b in scanned) else text


def test_idumb_and_mistune_agree_on_every_case() -> None:
    texts = {name: text for name in golden.NAMES if (text := comparable(golden.data(name))) is not None}
    assert [name for name, text in texts.items() if idumb_sees(text) != mistune_sees(text)] == []
    assert len(texts) > 350
