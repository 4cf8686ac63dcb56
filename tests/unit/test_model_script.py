"""The script of a scripted model: its rules, and the places of mistakes (R-ADAPT-2)."""

from __future__ import annotations

import pytest

from idumb.domain import model_script
from idumb.domain.errors import InputError
from idumb.domain.model_script import Answer, Call, ChosenAnswer
from idumb.markdown.model_script import load
from tests.support.cases import every
from tests.support.fake_model import scripted


def test_every_key_of_a_rule_is_read() -> None:
    rule = """when: [one, two]
times: 2
tools: false
answers:
  - say: hello
    write: [{path: a, content: ""}, {path: b, content: x}]
    edit: {path: a, old: "1", new: 2}
    read: a
    run: make
    tool: {name: ask, arguments: {n: 1, deep: {yes: true}}}
    tokens: {in: 5, out: 6}
  - {fault: drip, seconds: 1.5, data: {verdict: PASS}}"""
    [parsed] = scripted(rule).rules
    assert (parsed.title, parsed.when, parsed.times, parsed.tools) == ("Rule 1", ("one", "two"), 2, False)
    first, second = parsed.answers
    assert first.calls == (
        Call("write", {"path": "a", "content": ""}),
        Call("write", {"path": "b", "content": "x"}),
        Call("edit", {"path": "a", "old": "1", "new": "2"}),
        Call("read", {"path": "a"}),
        Call("run", {"command": "make"}),
        Call("tool", {"name": "ask", "arguments": {"n": 1, "deep": {"yes": True}}}),
    )
    assert (first.say, first.tokens_in, first.tokens_out) == ("hello", 5, 6)
    assert second == Answer(fault="drip", seconds=1.5, data={"verdict": "PASS"})


@every(
    "rule, line, says",
    [
        ("answers: []", 4, "at least one answer"),
        ("answer: [{say: x}]", 4, "no `answers`"),
        ("answers:\n- {fault: closd}", 5, "Did you mean `closed`"),
        ("answers:\n- {write: {path: a}}", 5, "`content`"),
        ("answers:\n- {seconds: 601}", 5, "from 0 to 600"),
        ("times: many\nanswers: [{say: x}]", 4, "a whole number"),
        ("", 3, "empty"),
        ("- x", 4, "keys with values"),
    ],
)
def test_a_mistake_is_reported_with_its_line(rule: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as caught:
        scripted(rule)
    assert caught.value.message.startswith(f"script.md:{line}: ")
    assert says in f"{caught.value.message} {caught.value.hint}"


def test_a_script_without_rules_and_a_missing_one_are_refused() -> None:
    with pytest.raises(InputError, match="no rule"):
        scripted()
    with pytest.raises(InputError, match="cannot be read"):
        load("none.md")


def test_the_first_matching_rule_decides() -> None:
    script = scripted("{when: hello, times: 1, answers: [{say: once}]}", "{when: hello, answers: [{say: a}, {say: b}]}")

    def choose(prompt: str, answered: int, used: int = 0) -> ChosenAnswer:
        return model_script.choose(script, model_script.ModelRequest(prompt, answered), {0: used})

    assert choose("hello you", 0).answer.say == "once"
    assert choose("hello you", 0, used=1).answer.say == "a"
    assert choose("hello you", 1, used=1).answer.say == "b"
    assert choose("hello you", 2, used=1) == ChosenAnswer(1, 2, model_script.OVER)
    assert choose("bye", 0) == ChosenAnswer(None, 0, model_script.UNSCRIPTED)


def test_an_auxiliary_request_is_recognized_by_its_lack_of_tools() -> None:
    script = scripted("{tools: true, answers: [{say: work}]}", "{tools: false, answers: [{say: title}]}")
    answers = [
        model_script.choose(script, model_script.ModelRequest("x", tools=tools), {}).answer.say
        for tools in (True, False)
    ]
    assert answers == ["work", "title"]
