"""Foreign text can neither act on a terminal nor hide in it."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from idumb.system import escaping
from tests.support.cases import every

ATTACKS = {
    "colour": ("\x1b[31mred", "\\x1b[31mred"),
    "clipboard": ("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
    "carriage return": ("good\rbad", "good\\x0dbad"),
    "backspace": ("a\bb", "a\\x08b"),
    "delete": ("a\x7fb", "a\\x7fb"),
    "C1 introducer": ("\x9b31m", "\\x9b31m"),
    "right-to-left override": ("a\u202egnp.exe", "a\\u202egnp.exe"),
    "isolate": ("\u2066x\u2069", "\\u2066x\\u2069"),
    "zero width": ("a\u200bb\u2060c\ufeffd", "a\\u200bb\\u2060c\\ufeffd"),
    "tags": ("\U000e0069\U000e0067", "\\U000e0069\\U000e0067"),
    "variation selectors": ("x\U000e0101\ufe01", "x\\U000e0101\\ufe01"),
    "lone surrogate": ("\udcff", "\\udcff"),
    "line separator": ("a\u2028b", "a\\u2028b"),
    "windows line endings": ("a\r\nb\r\n", "a\nb\n"),
    "filler": ("\u3164\uffa0", "\\u3164\\uffa0"),
}


@every("name", ATTACKS)
def test_characters_that_act_or_hide_are_shown(name: str) -> None:
    text, shown = ATTACKS[name]
    assert escaping.show(text) == shown


@every("text", ["", "plain", "two\nlines\tand a tab", "Füße, 日本語, עברית, emoji 🙂 ⚠️", "\\x1b"])
def test_visible_text_is_unchanged(text: str) -> None:
    assert escaping.show(text) == text


def test_one_line_stays_one_line() -> None:
    assert escaping.show_line("a\nb\tc\r\nd\x1b") == "a\\nb\\tc\\nd\\x1b"


def test_a_git_configuration_has_the_same_bytes_as_ever() -> None:
    settings = {"user.name": 'A "B" \\C\tD', 'filter.a "b".clean': "x\ny"}
    lines = ["[user]", '\tname = "A \\"B\\" \\\\C\\tD"', '[filter "a \\"b\\""]', '\tclean = "x\\ny"', ""]
    assert escaping.git_configuration(settings) == "\n".join(lines).encode()  # else a known checkout is made again
    assert escaping.git_configuration({}) == b""


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_no_acting_or_hiding_character_is_left(text: str) -> None:
    shown = escaping.show(text)
    categories = {unicodedata.category(c) for c in shown if c not in "\n\t"}
    assert categories.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    assert all(unicodedata.bidirectional(c) not in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
               for c in shown)  # fmt: skip
    assert escaping.show(shown) == shown
    shown.encode("utf-8")
