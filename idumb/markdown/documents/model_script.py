"""Read the script of a fake model: its rules are the `yaml model` fences."""

from __future__ import annotations

from typing import Any

from idumb.domain import model_script as script
from idumb.domain.errors import InputError
from idumb.domain.finding import did_you_mean
from idumb.domain.model_script import Answer, Call, Rule, Script
from idumb.markdown.plans import plan_parser, steps
from idumb.markdown.settings.setting_values import DID_YOU_MEAN, WrongValue, anything, boolean, count, rejected, shown
from idumb.markdown.syntax import blocks, tree
from idumb.markdown.syntax.nodes import Fence, Heading
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text

FENCE = "yaml model"
_RULE = ("when", "after", "times", "tools", "answers")
_ANSWER = ("say", *script.ACTIONS, "data", "fault", "seconds", "tokens")
_TOKENS = ("in", "out")


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
    _, source, problems = plan_parser.decoded(data, path)
    rules = [] if problems.findings else _rules(blocks.scan(source, 0, problems), problems)
    if not rules and not problems.findings:
        problems.error(
            "script.empty", 0, "The script has no rules", accepted=f"a `{FENCE}` fence", fix="idumb help fake-model"
        )
    if problems.any_error:
        raise rejected("script.invalid", problems.sorted(), "idumb help fake-model shows a script")
    return Script(tuple(rules))


def _rules(scanned: list[Any], problems: Problems) -> list[Rule]:
    rules = []
    title = ""
    for block in scanned:
        if isinstance(block, Heading):
            title = block.text
        elif isinstance(block, Fence) and block.info.strip() == FENCE:
            node = _node(block, problems)
            if node is not None:
                rules.append(_rule(node, title, problems))
    return [rule for rule in rules if rule is not None]


def _node(fence: Fence, problems: Problems) -> Node | None:
    body, place = steps.body_of(fence, problems.source)
    node = tree.read(body, place, problems, "model")
    if node is None and not problems.any_error:
        problems.error("script.bad-value", fence.start, "The rule is empty", accepted="answers", fix="add `answers`")
    return node


def _rule(node: Node, title: str, problems: Problems) -> Rule | None:
    try:
        return _read_rule(node, title)
    except WrongValue as wrong:
        message = f"{wrong.found!r} is not {wrong.accepted}"
        problems.error("script.bad-value", wrong.at, message, found=wrong.found, accepted=wrong.accepted, fix=wrong.fix)
        return None


def _read_rule(node: Node, title: str) -> Rule:
    values = _keys(node, _RULE)
    answers = values.get("answers")
    if not is_list(answers) or not answers.items:
        raise WrongValue(node.start, shown(answers or node), "`answers`, a list with at least one answer")
    return Rule(
        title,
        tuple(_answer(item) for item in answers.items),
        _texts(values["when"]) if "when" in values else (),
        count(values["after"]) if "after" in values else None,
        count(values["times"]) if "times" in values else None,
        boolean(values["tools"]) if "tools" in values else None,
    )


def _answer(node: Node) -> Answer:
    values = _keys(node, _ANSWER)
    tokens = _keys(values["tokens"], _TOKENS) if "tokens" in values else {}
    return Answer(
        _text(values["say"]) if "say" in values else "",
        tuple(call for action in script.ACTIONS if action in values for call in _calls(action, values[action])),
        anything(values["data"]) if "data" in values else None,
        _fault(values["fault"]) if "fault" in values else None,
        _seconds(values["seconds"]) if "seconds" in values else 0.0,
        *(count(tokens[name]) if name in tokens else None for name in _TOKENS),
    )


def _calls(action: str, node: Node) -> list[Call]:
    return [_call(action, item) for item in (node.items if is_list(node) else [node])]


def _call(action: str, node: Node) -> Call:
    names = script.ACTIONS[action]
    if is_text(node) and len(names) == 1:
        return Call(action, {names[0]: _text(node)})
    nodes = _keys(node, names)
    for name in names:
        if name not in nodes:
            keys = " and ".join(f"`{key}`" for key in names)
            raise WrongValue(node.start, shown(node), f"a mapping with {keys} for `{action}`")
    values = {name: anything(value) if name == "arguments" else _text(value) for name, value in nodes.items()}
    if not isinstance(values.get("arguments", {}), dict):
        raise WrongValue(nodes["arguments"].start, shown(nodes["arguments"]), "a mapping of argument names to values")
    return Call(action, values)


def _keys(node: Node, accepted: tuple[str, ...]) -> dict[str, Node]:
    if not is_map(node):
        raise WrongValue(node.start, shown(node), f"keys with values: {', '.join(accepted)}")
    for key, _ in node.pairs:
        if key.value not in accepted:
            fix = did_you_mean(key.value, accepted, "Remove the key.", DID_YOU_MEAN)
            raise WrongValue(key.start, key.value, f"one of the keys {', '.join(accepted)}", fix)
    return {key.value: value for key, value in node.pairs}


def _texts(node: Node) -> tuple[str, ...]:
    return tuple(map(_text, node.items)) if is_list(node) else (_text(node),)


def _text(node: Node) -> str:
    if not is_text(node):
        raise WrongValue(node.start, shown(node), "a text")
    return node.value


def _fault(node: Node) -> str:
    text = _text(node)
    if text not in script.FAULTS:
        fix = did_you_mean(text, script.FAULTS, "", DID_YOU_MEAN)
        raise WrongValue(node.start, text, "one of " + ", ".join(script.FAULTS), fix)
    return text


def _seconds(node: Node) -> float:
    value = anything(node)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= script.LONGEST_SECONDS:
        raise WrongValue(node.start, shown(node), f"seconds from 0 to {script.LONGEST_SECONDS:g}")
    return float(value)
