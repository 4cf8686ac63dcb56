"""Foreign text stays text in Markdown, YAML, JSON and XML."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from typing import Any

import mistune
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from idumb.views import markup, phrases

_MARKDOWN = mistune.create_markdown(escape=False, plugins=["table", "strikethrough", "url"])
_LINES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60)


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _rendered(markdown: str) -> _Seen:
    seen = _Seen()
    seen.feed(str(_MARKDOWN(markdown)))
    seen.close()
    return seen


def _yaml(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(io.StringIO(text))


@given(_LINES)
def test_prose_never_becomes_markup(text: str) -> None:
    seen = _rendered("- " + markup.prose(text))
    assert set(seen.tags) <= {"ul", "li", "a"}, text  # a bare address may become a link to itself
    assert "".join(seen.words).split() == markup.one_line(text).split()


@given(st.text(max_size=40))
def test_a_code_span_contains_exactly_its_text(text: str) -> None:
    shown = markup.visible(text.replace("\n", "\\n").replace("\t", "\\t"))
    seen = _rendered("x " + markup.code(text))
    assert seen.tags == ["p", "code"]
    assert seen.words[1:2] == [shown or " "] or not shown.strip()


@given(st.lists(_LINES, min_size=2, max_size=2))
def test_a_table_row_keeps_its_number_of_cells(cells: list[str]) -> None:
    lines = markup.table(("A", "B"), [(markup.prose(cells[0]), markup.code(cells[1]))])
    seen = _rendered("\n".join(lines))
    assert (seen.tags.count("th"), seen.tags.count("td")) == (2, 2)


@given(st.text(alphabet="`~ \nab", max_size=40))
def test_a_block_cannot_be_closed_from_inside(text: str) -> None:
    seen = _rendered("\n".join([*markup.block(text, "text"), "", "after"]))
    assert seen.tags == ["pre", "code", "p"]


@given(st.text(max_size=40))
def test_text_survives_a_yaml_round_trip(text: str) -> None:
    lines = markup.frontmatter({"one": text, "many": [text, "x"]})
    expected = markup._SURROGATE.sub(markup._escaped, text)
    assert _yaml("\n".join(lines[1:-1])) == {"one": expected, "many": [expected, "x"]}


def test_yaml_distinguishes_strings_from_values() -> None:
    fields: dict[str, markup.Scalar | list[markup.Scalar]]
    fields = {"a": "yes", "b": "null", "c": "1.0", "d": None, "e": True, "f": 3, "g": [], "h": "executed"}
    assert _yaml("\n".join(markup.frontmatter(fields)[1:-1])) == fields
    assert "h: executed" in markup.frontmatter(fields)


def test_bytes_that_are_not_utf8_can_be_written_to_a_file() -> None:
    path = b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    assert markup.code(path) == "`caf\\udce9.txt`"
    markup.json_text({"path": path}).encode()
    assert json.loads(markup.json_text({"path": path})) == {"path": path}


def test_amounts_have_readable_units() -> None:
    assert [phrases.duration(s) for s in (0, 0.84, 9.96, 45, 65.4, 3600, 7384)] == [
        "0.0s", "0.8s", "10s", "45s", "1m05s", "1h00m", "2h03m",
    ]  # fmt: skip
    assert phrases.counted(2, "dependency", "dependencies") == "2 dependencies"
