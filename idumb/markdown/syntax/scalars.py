"""Read simple field values: durations, names, choices, commands, lists of ids and paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from idumb import lazy_pattern
from idumb.domain.finding import nearest
from idumb.markdown.syntax import inline
from idumb.markdown.syntax.field_values import Bullet, Value, fence_text
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.nodes import Fence
from idumb.markdown.syntax.problems import Field

_DURATION = lazy_pattern.compile(r"(?=\d)(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,7})s)?")
_NAME = lazy_pattern.compile(r"[\w.:/@+-]+")
_MANY = 100  # findings, after which no nearest name is searched, because searching is slow
DURATIONS = "1h30m, 45m or 90s"
COMMANDS = "commands in backticks"


@lru_cache(maxsize=256)
def seconds(text: str) -> int | None:
    """Return a duration such as `1h30m` in seconds, or None."""
    m = _DURATION.fullmatch(text)
    if not m:
        return None
    return int(m[1] or 0) * 3600 + int(m[2] or 0) * 60 + int(m[3] or 0) or None


def single(value: Value, accepted: str) -> Text | None:
    """Return the single text of a field without surrounding backticks and quotes."""
    texts = list(value.texts())
    if len(texts) == 1 and not any(b.children or b.fences or b.others for b in value.bullets):
        return Text(inline.unquote(texts[0].s), texts[0].marks)
    message = f"{value.label} takes one value"
    value.error("field.one-value", value.label_at, message, ", ".join(t.s for t in texts), accepted, "keep one of them")
    return None


def duration(value: Value) -> int | None:
    text = single(value, DURATIONS)
    if text is None:
        return None
    length = seconds(text.s)
    if length is None:
        message = f"`{text.s}` is not a duration"
        fix = "write hours, minutes and seconds as whole numbers, such as 1h30m"
        value.error("field.bad-duration", text.at(0), message, text.s, DURATIONS, fix)
    return length


def choice(value: Value, choices: tuple[str, ...]) -> str | None:
    text = single(value, ", ".join(choices))
    return None if text is None else chosen(text, value, choices)


def chosen(text: Text, field: Field, choices: tuple[str, ...]) -> str | None:
    if text.s in choices:
        return text.s
    near = nearest(text.s, choices)
    message = f"`{text.s}` is not a valid value of {field.label}"
    fix = f"write {near}" if near else f"write one of {', '.join(choices)}"
    field.error("field.bad-choice", text.at(0), message, text.s, ", ".join(choices), fix)
    return None


def name(value: Value) -> str | None:
    """Return the name of a role binding; None for `none`, which leaves the choice to the plan."""
    if value.is_none:
        return None
    text = single(value, "a name")
    if text is None:
        return None
    if _NAME.fullmatch(text.s):
        return text.s
    message = f"`{text.s}` is not a name: a name cannot contain spaces or commas"
    value.error("field.bad-name", text.at(0), message, text.s, "one name", "write the name of one role binding")
    return None


def listed(value: Value) -> Iterator[Text]:
    """Yield the comma-separated items of a field as written, with quotes and backticks."""
    for text in value.texts():
        yield from split(text, value)
    below(value)


def below(value: Value) -> None:
    """Report content below the bullets of a simple list."""
    for bullet in value.bullets:
        for stray in [c.start for c in bullet.children] + [f.start for f in bullet.fences]:
            _unexpected(value, stray)


def _unexpected(field: Field, at: int) -> None:
    message = f"{field.label} cannot hold this content"
    fix = "move it into the description of the task"
    field.error("field.unexpected-content", at, message, accepted="one value per bullet", fix=fix)


def split(text: Text, field: Field) -> Iterator[Text]:
    """Yield the items of a comma list or flow list; a literal text is one item."""
    if text.literal:
        yield text
        return
    if text.s.startswith("[") and text.s.endswith("]"):
        text = text.part(1, len(text.s) - 1)
        if not text.s:
            return
    for start, end in inline.split_commas(text.s):
        if start < end:
            yield text.part(start, end)
        else:
            message = f"{field.label} has an empty item between commas"
            fix = "remove the comma, or write the missing item"
            accepted = "items between commas"
            field.error(
                "field.empty-item", text.at(min(start, max(len(text.s) - 1, 0))), message, text.s, accepted, fix
            )


def names(value: Value) -> list[tuple[str, int]]:
    """Return ids, paths or names, each with its offset, without surrounding backticks and quotes."""
    if value.is_none:
        return []
    return [(inline.unquote(t.s), t.at(0)) for t in listed(value)]


def paths(value: Value) -> tuple[str, ...]:
    """Return paths, globs or symbols."""
    items = []
    for text in [] if value.is_none else listed(value):
        path = inline.unquote(text.s)
        if re.search(r"\s", path) and path == text.s and not text.literal:
            _blank_in_path(text, value)
        else:
            items.append(path)
    return tuple(items)


def _blank_in_path(text: Text, field: Field) -> None:
    message = f"`{text.s}` contains a space"
    fix = f"for one path, write `{text.s}` in backticks; for several, separate them with commas"
    accepted = "paths separated by commas; paths with spaces in backticks"
    field.error("field.bare-blank", text.at(0), message, text.s, accepted, fix)


def commands(value: Value) -> tuple[str, ...]:
    """Return commands: in backticks, one per bullet or separated by commas, or in `sh` fences."""
    if value.is_none:
        return ()
    texts = list(_commands_of(value.inline, value.fences, value)) if value.inline.s or value.fences else []
    for bullet in value.bullets:
        texts += command_bullet(bullet, value)
    return tuple(texts)


def command_bullet(bullet: Bullet, field: Field) -> Iterator[str]:
    for child in bullet.children:
        _unexpected(field, child.start)
    yield from _commands_of(bullet.text, bullet.fences, field)


def _commands_of(text: Text, fences: list[Fence], field: Field) -> Iterator[str]:
    if text.literal:
        yield inline.code(text.s) or text.s
    elif text.s:
        for item in split(text, field):
            command = one_command(item, field)
            if command is not None:
                yield command
    for fence in fences:
        command = fenced(fence, field)
        if command is not None:
            yield command


def one_command(text: Text, field: Field) -> str | None:
    """Return the command of a code span; report a command without backticks."""
    command = inline.code(text.s)
    if command is not None and command.strip():
        return command
    bare_command(text, field, empty=command is not None)
    return None


def bare_command(text: Text, field: Field, *, empty: bool = False) -> None:
    message = "The command is empty" if empty else f"`{text.s}` is not one command in backticks"
    fix = "put the whole command in backticks; if it contains backticks, use double ones"
    field.error("command.empty" if empty else "command.bare", text.at(0), message, text.s, COMMANDS, fix)


def fenced(fence: Fence, field: Field) -> str | None:
    """Return the command of several lines in a `sh` fence."""
    command = fence_text(fence, field.problems.source)
    if fence.info == "sh" and command.strip():
        return command
    message = "A command of several lines must be in a fence `sh`" if fence.info != "sh" else "The command is empty"
    fix = "write sh after the opening backticks, and the command inside the fence"
    field.error("command.fence", fence.start, message, fence.mark + fence.info, "```sh", fix)
    return None


def declared_ids(value: Value, declared: Iterable[str], kind: str) -> tuple[str, ...]:
    """Return the ids of a field, and report each undeclared one with the nearest declared one."""
    ids, declared_set = names(value), set(declared)
    for id, at in ids:
        if id in declared_set:
            continue
        near = nearest(id, declared_set) if len(value.problems.findings) < _MANY else None
        message = f"The {kind} `{id}` is not declared in the frontmatter"
        fix = f"did you mean `{near}`?" if near else f"declare it under {kind}s in the frontmatter"
        accepted = ", ".join(sorted(declared_set)) or "none declared"
        Field(f"{kind.capitalize()}s", value.problems).error(f"task.unknown-{kind}", at, message, id, accepted, fix)
    return tuple(id for id, _ in ids)
