"""Read simple field values: durations, names, choices, commands, lists of ids and paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from idumb.domain.finding import nearest
from idumb.markdown.syntax import inline
from idumb.markdown.syntax.field_values import Bullet, Value, fence_text
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.nodes import Fence
from idumb.markdown.syntax.problems import Problems

_DURATION = re.compile(r"(?=\d)(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,7})s)?")
_NAME = re.compile(r"[\w.:/@+-]+")
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


def single(value: Value, problems: Problems, accepted: str) -> Text | None:
    """Return the single text of a field without surrounding backticks and quotes."""
    texts = list(value.texts())
    if len(texts) == 1 and not any(b.children or b.fences or b.others for b in value.bullets):
        return Text(inline.unquote(texts[0].s), texts[0].marks)
    problems.error(
        "field.one-value",
        value.label_at,
        f"{value.label} takes one value",
        field=value.label,
        found=", ".join(t.s for t in texts),
        accepted=accepted,
        mend="keep one of them",
    )
    return None


def duration(value: Value, problems: Problems) -> int | None:
    text = single(value, problems, DURATIONS)
    if text is None:
        return None
    found = seconds(text.s)
    if found is None:
        problems.error(
            "field.bad-duration",
            text.at(0),
            f"`{text.s}` is not a duration",
            field=value.label,
            found=text.s,
            accepted=DURATIONS,
            mend="write hours, minutes and seconds as whole numbers, such as 1h30m",
        )
    return found


def choice(value: Value, choices: tuple[str, ...], problems: Problems) -> str | None:
    text = single(value, problems, ", ".join(choices))
    return None if text is None else chosen(text, value.label, choices, problems)


def chosen(text: Text, label: str, choices: tuple[str, ...], problems: Problems) -> str | None:
    if text.s in choices:
        return text.s
    near = nearest(text.s, choices)
    problems.error(
        "field.bad-choice",
        text.at(0),
        f"`{text.s}` is not a valid value of {label}",
        field=label,
        found=text.s,
        accepted=", ".join(choices),
        mend=f"write {near}" if near else f"write one of {', '.join(choices)}",
    )
    return None


def name(value: Value, problems: Problems) -> str | None:
    """Return the name of a role binding; None for `none`, which leaves the choice to the plan."""
    if value.is_none:
        return None
    text = single(value, problems, "a name")
    if text is None:
        return None
    if _NAME.fullmatch(text.s):
        return text.s
    problems.error(
        "field.bad-name",
        text.at(0),
        f"`{text.s}` is not a name: a name cannot contain spaces or commas",
        field=value.label,
        found=text.s,
        accepted="one name",
        mend="write the name of one role binding",
    )
    return None


def listed(value: Value, problems: Problems) -> Iterator[Text]:
    """Yield the comma-separated items of a field as written, with quotes and backticks."""
    for text in value.texts():
        yield from split(text, value.label, problems)
    below(value, problems)


def below(value: Value, problems: Problems) -> None:
    """Report content below the bullets of a simple list."""
    for bullet in value.bullets:
        for stray in [c.start for c in bullet.children] + [f.start for f in bullet.fences]:
            _unexpected(value.label, stray, problems)


def _unexpected(label: str, at: int, problems: Problems) -> None:
    problems.error(
        "field.unexpected-content",
        at,
        f"{label} cannot hold this content",
        field=label,
        accepted="one value per bullet",
        mend="move it into the description of the task",
    )


def split(text: Text, label: str, problems: Problems) -> Iterator[Text]:
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
            problems.error(
                "field.empty-item",
                text.at(min(start, max(len(text.s) - 1, 0))),
                f"{label} has an empty item between commas",
                field=label,
                found=text.s,
                accepted="items between commas",
                mend="remove the comma, or write the missing item",
            )


def names(value: Value, problems: Problems) -> list[tuple[str, int]]:
    """Return ids, paths or names, each with its offset, without surrounding backticks and quotes."""
    if value.is_none:
        return []
    return [(inline.unquote(t.s), t.at(0)) for t in listed(value, problems)]


def paths(value: Value, problems: Problems) -> tuple[str, ...]:
    """Return paths, globs or symbols."""
    found = []
    for text in [] if value.is_none else listed(value, problems):
        one = inline.unquote(text.s)
        if re.search(r"\s", one) and one == text.s and not text.literal:
            _blank_in_path(text, value.label, problems)
        else:
            found.append(one)
    return tuple(found)


def _blank_in_path(text: Text, label: str, problems: Problems) -> None:
    problems.error(
        "field.bare-blank",
        text.at(0),
        f"`{text.s}` contains a space",
        field=label,
        found=text.s,
        accepted="paths separated by commas; paths with spaces in backticks",
        mend=f"for one path, write `{text.s}` in backticks; for several, separate them with commas",
    )


def commands(value: Value, problems: Problems) -> tuple[str, ...]:
    """Return commands: in backticks, one per bullet or separated by commas, or in `sh` fences."""
    if value.is_none:
        return ()
    found = list(_commands_of(value.inline, value.fences, value.label, problems)) if _has_inline(value) else []
    for bullet in value.bullets:
        found += command_bullet(bullet, value.label, problems)
    return tuple(found)


def _has_inline(value: Value) -> bool:
    return bool(value.inline.s or value.fences)


def command_bullet(bullet: Bullet, label: str, problems: Problems) -> Iterator[str]:
    for child in bullet.children:
        _unexpected(label, child.start, problems)
    yield from _commands_of(bullet.text, bullet.fences, label, problems)


def _commands_of(text: Text, fences: list[Fence], label: str, problems: Problems) -> Iterator[str]:
    if text.literal:
        yield inline.code(text.s) or text.s
    elif text.s:
        for item in split(text, label, problems):
            command = one_command(item, label, problems)
            if command is not None:
                yield command
    for fence in fences:
        command = fenced(fence, label, problems)
        if command is not None:
            yield command


def one_command(text: Text, label: str, problems: Problems) -> str | None:
    """Return the command of a code span; report a command without backticks."""
    command = inline.code(text.s)
    if command is not None and command.strip():
        return command
    bare_command(text, label, problems, empty=command is not None)
    return None


def bare_command(text: Text, label: str, problems: Problems, *, empty: bool = False) -> None:
    problems.error(
        "command.empty" if empty else "command.bare",
        text.at(0),
        "The command is empty" if empty else f"`{text.s}` is not one command in backticks",
        field=label,
        found=text.s,
        accepted=COMMANDS,
        mend="put the whole command in backticks; if it contains backticks, use double ones",
    )


def fenced(fence: Fence, label: str, problems: Problems) -> str | None:
    """Return the command of several lines in a `sh` fence."""
    command = fence_text(fence, problems.source)
    if fence.info == "sh" and command.strip():
        return command
    problems.error(
        "command.fence",
        fence.start,
        "A command of several lines must be in a fence `sh`" if fence.info != "sh" else "The command is empty",
        field=label,
        found=fence.mark + fence.info,
        accepted="```sh",
        mend="write sh after the opening backticks, and the command inside the fence",
    )
    return None


def unknown_ids(
    found: Iterable[tuple[str, int]], declared: Iterable[str], problems: Problems, *, code: str, label: str, what: str
) -> None:
    """Report each undeclared id with the nearest declared one."""
    ids = set(declared)
    for one, at in found:
        if one in ids:
            continue
        near = nearest(one, ids) if len(problems.findings) < _MANY else None
        problems.error(
            code,
            at,
            f"The {what} `{one}` is not declared in the frontmatter",
            field=label,
            found=one,
            accepted=", ".join(sorted(ids)) or "none declared",
            mend=f"did you mean `{near}`?" if near else f"declare it under {label.lower()} in the frontmatter",
        )
