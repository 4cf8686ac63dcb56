"""Questions at the terminal: shown whole, answered clearly or not at all."""

from __future__ import annotations

import io
import os
import pty
from argparse import Namespace
from collections.abc import Iterator
from typing import TextIO

import pytest
from msgspec.structs import replace

from idumb.domain.action import JUDGE, WORK, Answer, Choice, Decision
from idumb.views.terminal import ask

QUESTION = Decision(
    "consent.1", "consent", "Run phase 1?", "It runs commands.", ("T1-01 Slugs", "  runs   pytest \x1b[2J"),
    (Choice("run", "run it", "consent is recorded"), Choice("no", "leave it", "nothing happens")),
)  # fmt: skip


def _ask(typed: str) -> tuple[str | None, str]:
    shown = io.StringIO()
    answer = ask.Terminal(io.StringIO(typed), shown, "pat").ask(QUESTION)
    return answer.choice if answer else None, shown.getvalue()


def test_only_a_clear_choice_is_an_answer() -> None:
    """R-ASK-1: an explicit answer is needed; the default is none."""
    cases: list[tuple[str, str | None]] = [
        ("run\n", "run"), ("1\n", "run"), ("2\n", "no"), ("N\n", "no"), ("maybe\nrun\n", "run"), ("\n", None),
        ("", None), ("x\nx\nx\nrun\n", None), ("3\n0\n²\n", None),
    ]  # fmt: skip
    assert not [(typed, choice) for typed, choice in cases if _ask(typed)[0] != choice]


def test_a_prompt_shows_the_accepted_answers_and_that_the_default_is_no() -> None:
    """R-ASK-1."""
    assert _ask("maybe\n\n")[1].endswith(
        "Your choice (1, run or yes; 2 or no; empty: no): That is not a choice. Type 1, run or yes; 2 or no.\n"
        "Your choice (1, run or yes; 2 or no; empty: no): No.\n"
    )


def test_yes_selects_none_of_the_options_of_a_plan() -> None:
    options = Decision("d", WORK, "?", "", (), (Choice("later", "", "", move=JUDGE), Choice("no", "", "", move=JUDGE)))
    assert ask.chosen(options, "y") is None


def test_a_question_shows_its_reason_the_evidence_and_each_consequence() -> None:
    """R-ASK-1."""
    shown = _ask("1\n")[1]
    for words in (
        "Run phase 1?",
        "It runs commands.",
        "    runs   pytest \\x1b[2J",
        "[1] run  run it: consent is recorded",
        "[2] no   leave it: nothing happens",
    ):
        assert words in shown  # fmt: skip
    assert "\x1b" not in shown


def test_a_command_keeps_its_line_breaks_and_words_wrap_at_the_width_of_the_terminal() -> None:
    """R-ASK-1."""
    command = "  runs   for f in *; do\n    printf '%s  %s' \"$f\" \\n\ndone " + "x" * 40
    asked = replace(QUESTION, why="why " * 20, evidence=(command, "word " * 12))
    lines = ask.question(asked, 40).splitlines()
    at = lines.index("    runs   for f in *; do")
    assert lines[at + 1 : at + 3] == ["            printf '%s  %s' \"$f\" \\n", f"        done {'x' * 40}"]
    assert [line for line in lines if len(line) > 40] == [lines[at + 2]]


def test_an_ambiguous_prefix_is_not_a_choice() -> None:
    ambiguous = Decision(
        "d", "decision", "?", "", (), (Choice("alpha", "", ""), Choice("alps", "", ""), Choice("al", "", ""))
    )
    assert ask.chosen(ambiguous, "alp") is None
    assert ask.chosen(ambiguous, "alph") == "alpha"
    assert ask.chosen(ambiguous, "al") == "al"


def test_a_closed_terminal_decides_nothing() -> None:
    closed = io.StringIO()
    closed.close()
    assert ask.Terminal(closed, io.StringIO(), "pat").ask(QUESTION) is None
    assert ask.Terminal(io.StringIO("run\n"), closed, "pat").ask(QUESTION) is None


class _Answering(io.StringIO):
    """A screen with a user who types `no` when the prompt appears."""

    def __init__(self, keyboard: int) -> None:
        super().__init__()
        self._keyboard = keyboard

    def write(self, text: str) -> int:
        if text.startswith("Your choice"):
            os.write(self._keyboard, b"no\n")
        return super().write(text)


def test_a_question_discards_earlier_input() -> None:
    """R-ASK-1: keys pressed while a task ran must not consent to anything."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "r", encoding="utf-8") as read:
        os.write(master, b"run\n")
        answer = ask.Terminal(read, _Answering(master), "pat").ask(QUESTION)
    os.close(master)
    assert answer == Answer(QUESTION.id, "no", "pat")


def test_the_display_pauses_during_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    display = Namespace(pause=lambda: seen.append("pause"), resume=lambda: seen.append("resume"))
    monkeypatch.setattr(ask, "displays", [display])
    _ask("run\n")
    assert seen == ["pause", "resume"]


@pytest.fixture
def keyboard() -> Iterator[tuple[int, TextIO]]:
    """The two ends of a terminal without a user."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "r", encoding="utf-8") as read:
        yield master, read
    os.close(master)


def _soon() -> float:
    return 0.01


def test_a_question_that_times_out_has_no_answer(keyboard: tuple[int, TextIO]) -> None:
    """R-ASK-3: no answer in time means no, and the message says so."""
    shown = io.StringIO()
    assert ask.Terminal(keyboard[1], shown, "pat", timeout=_soon).ask(QUESTION) is None
    assert shown.getvalue().endswith("empty: no): \nNo answer within <0.1s: no.\n")


def test_after_a_timeout_no_further_question_is_asked(keyboard: tuple[int, TextIO]) -> None:
    """R-ASK-3: a second question would block the working tree for as long again."""
    master, read = keyboard
    shown = io.StringIO()
    terminal = ask.Terminal(read, shown, "pat", timeout=_soon)
    standing = [terminal.interactive]
    terminal.ask(QUESTION)
    assert [*standing, terminal.interactive] == [True, False]
    before = shown.getvalue()
    os.write(master, b"run\n")
    assert terminal.ask(QUESTION) is None
    assert terminal.words("Who?", "") is None
    assert shown.getvalue() == before


def test_a_question_with_an_end_waits_no_longer_than_that(keyboard: tuple[int, TextIO]) -> None:
    shown = io.StringIO()
    question = replace(QUESTION, kind="decision", until="2026-01-02T03:04:05.000000Z")
    assert ask.Terminal(keyboard[1], shown, "pat", timeout=lambda: 3600.0).ask(question) is None
    assert shown.getvalue().endswith("No answer within 0.0s: no.\n")
