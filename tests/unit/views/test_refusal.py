"""The text of a refusal fits on a screen, and ends with a command."""

from __future__ import annotations

from typing import Any

from idumb.domain.action import Action
from idumb.views import answer
from tests.support.cases import every

LOOK = {
    "id": "look",
    "text": "see what changed",
    "consequence": "nothing is written " * 9,
    "command": "idumb show T1-01",
}
KEEP = {"id": "keep", "text": "leave it", "consequence": "nothing happens", "command": None}


def many(count: int) -> list[dict[str, Any]]:
    return [{**LOOK, "id": f"c{number}", "command": f"idumb show T1-{number:02}"} for number in range(count)]


@every("count", [0, 1, 5])
def test_a_refusal_fits_on_a_screen_and_ends_with_a_command(count: int) -> None:
    details = {
        "evidence": [f"line {number} " * 20 for number in range(30)],
        "choices": [KEEP, *many(count), LOOK, KEEP],
    }
    text = answer.failure("x.y", "words " * 40, "Look first", details=details, width=80)
    lines = text.splitlines()
    assert len(lines) <= 24
    assert "more (--json has all)" in text
    assert lines[-1] == "      idumb show T1-01"


def test_each_command_is_printed_once() -> None:
    retry = Action.of("resume", "1", "--retry-failed")
    details = {"choices": [{**LOOK, "command": retry}]}
    text = answer.failure(
        "x.y", "It failed.", retry, details=details, following=[retry, Action("undo"), Action("undo")]
    )
    assert text.count("idumb resume 1 --retry-failed") == 1
    assert text.splitlines()[-1] == "  next: idumb undo"


def test_words_wrap_at_the_width_of_the_terminal_and_commands_stay_whole() -> None:
    command = Action.of("accept", "T1-01", "--why", "a reason that is longer than the terminal")
    text = answer.failure("x.y", "word " * 30, None, details={"choices": [{**LOOK, "command": command}]}, width=30)
    assert [line for line in text.splitlines() if len(line) > 30] == [f"      {command}"]
    assert answer.failure("x.y", "word " * 30, None).splitlines()[0].endswith("[x.y]"), "no terminal, no wrapping"
