"""Read the script of a fake model: its rules are the `yaml model` fences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.domain import model_script as script
from idumb.domain.errors import InputError
from idumb.domain.model_script import Answer, Call, Rule, Script
from idumb.markdown.configuration import rejected
from idumb.markdown.syntax import blocks, tree, value_types
from idumb.markdown.syntax.blocks import Block
from idumb.markdown.syntax.source import SCRIPT, Place, Source, decoded
from idumb.markdown.syntax.tree import Node, is_list, is_text
from idumb.markdown.syntax.value_types import ANY, BOOLEAN, COUNT, DATA, ValueType, choice, list_of, scalar, section

FENCE = "yaml model"


def load(path: str) -> Script:
    """Return the script in a file. Raises InputError if it is unreadable or invalid."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as problem:
        raise InputError(
            "script.unreadable",
            f"The script {path} cannot be read: {problem.strerror or problem}",
            hint=f"ls -l {path}",
        ) from None
    return read(data, path)


def read(data: bytes, path: str) -> Script:
    """Return a script from the bytes of its file. Raises InputError with all findings."""
    source = decoded(data, path)
    rules = _rules(blocks.scan(source, 0), source)
    if not rules and not source.findings:
        source.report("script.empty", 0, field="script")
    if source.any_error:
        raise rejected("script.invalid", source.sorted(), "idumb help fake-model shows a script")
    return Script(tuple(rules))


def _rules(scanned: list[Block], source: Source) -> list[Rule]:
    rules = []
    title = ""
    for block in scanned:
        if block.kind == blocks.HEADING:
            title = block.text
        elif block.kind == blocks.FENCE and block.info.strip() == FENCE:
            rules.append(_rule(block, title, source))
    return [rule for rule in rules if rule is not None]


def _rule(fence: Block, title: str, source: Source) -> Rule | None:
    node = tree.read(fence.body(source), source, "model")
    if node is None and not source.any_error:
        source.report("script.empty-rule", fence.start, field="model")
    place = Place("", source, kind=SCRIPT, key="model")
    rule = section(lambda answers, **given: Rule(title, answers or (), **given), _KEYS)
    return None if node is None else value_types.read_value(rule, node, place)


def _calls(action: str) -> ValueType:
    """Return the type of the calls of an action: one, or a list of them."""
    names = script.ACTIONS[action]
    one = section(lambda **values: Call(action, values), {name: _VALUES.get(name, ANY).must for name in names})

    def read(node: Node, place: Place) -> list[Call]:
        called = []
        for item in node.items if is_list(node) else [node]:
            if is_text(item) and len(names) == 1:
                called.append(Call(action, {names[0]: ANY.read(item, place)}))
            elif (call := value_types.read_value(one, item, place)) is not None:
                called.append(call)
        return called

    return ValueType(one.accepted, read)


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= script.LONGEST_SECONDS else None


def _answer(tokens: Mapping[str, int] = {}, **given: Any) -> Answer:
    calls = tuple(call for action in script.ACTIONS for call in given.pop(action, ()))
    return Answer(calls=calls, tokens_in=tokens.get("in"), tokens_out=tokens.get("out"), **given)


_VALUES = {"arguments": DATA}
_ANSWER = section(
    _answer,
    {
        "say": ANY, **{action: _calls(action) for action in script.ACTIONS},
        "data": ValueType("a value", value_types.anything),
        "fault": choice(*script.FAULTS), "tokens": section(dict, {"in": COUNT, "out": COUNT}),
        "seconds": scalar(f"seconds from 0 to {script.LONGEST_SECONDS:g}", _seconds, plain=True),
    },
)  # fmt: skip
_KEYS: Mapping[str, ValueType] = {
    "when": list_of(ANY, single=True), "times": COUNT, "tools": BOOLEAN,
    "answers": list_of(_ANSWER, "a list with at least one answer", least=1).must,
}  # fmt: skip
