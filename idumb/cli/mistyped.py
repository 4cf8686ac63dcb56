"""Mistyped commands, options and choices: the error names the nearest word that exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not a generic class before click 8.2


class Mistyped(click.UsageError):
    """A word that does not exist. `nearest` is what the user probably meant, or None."""

    def __init__(self, message: str, word: str, nearest: str | None, ctx: click.Context | None) -> None:
        super().__init__(message, ctx)
        self.word = word
        self.nearest = nearest


class Choice(_Choice):
    """An option that takes one of a few values."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(super().convert(value, param, ctx))
        except click.BadParameter as problem:
            nearest = nearest_of(str(value), self.choices)
            raise Mistyped(suggest(problem.format_message(), nearest), str(value), nearest, ctx) from None


class Action(Choice):
    """The word that follows a command's name, as in `idumb dlq list`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except Mistyped as problem:
            name = ctx.info_name if ctx else ""
            message = f"No such command '{name} {value}'."
            if problem.nearest:
                message = suggest(message, f"{name} {problem.nearest}")
            else:
                message = f"{message} {name} takes {', '.join(self.choices)}."
            raise Mistyped(message, problem.word, problem.nearest, ctx) from None


def command(word: str, names: Sequence[str], ctx: click.Context) -> Mistyped:
    """Return the error for an unknown command. The beginning of a name is nearer than any other likeness."""
    longer = [name for name in names if name.startswith(word)] if len(word) > 2 else []
    nearest = longer[0] if longer else nearest_of(word, names)
    return Mistyped(suggest(f"No such command {word!r}.", nearest), word, nearest, ctx)


def option(problem: click.NoSuchOption) -> Mistyped:
    """Return the error for an unknown option. Hidden options are not suggested."""
    ctx, word = problem.ctx, problem.option_name
    shown = [p for p in ctx.command.get_params(ctx) if isinstance(p, click.Option) and not p.hidden] if ctx else []
    # Without their dashes, which all have: `--reason` would otherwise resemble `--json`.
    names = {n.lstrip("-"): n for candidate in shown for n in (*candidate.opts, *candidate.secondary_opts)}
    nearest = names.get(nearest_of(word.lstrip("-"), names) or "")
    return Mistyped(suggest(f"No such option {word!r}.", nearest), word, nearest, ctx)


def nearest_of(word: str, names: Iterable[str]) -> str | None:
    from idumb.domain import finding

    return finding.nearest(word, names)


def suggest(message: str, nearest: str | None) -> str:
    return f"{message} Did you mean {nearest!r}?" if nearest else message


def corrected(arguments: Sequence[str], word: str, nearest: str) -> str:
    """Return the command line with the first `word` replaced, also in `--option=word` and `word=value`."""
    import shlex

    words = [*arguments]
    for i, argument in enumerate(words):
        name, equals, value = argument.partition("=")
        if argument == word:
            words[i] = nearest
        elif equals and word in {name, value}:
            words[i] = f"{nearest}={value}" if word == name else f"{name}={nearest}"
        else:
            continue
        break
    return shlex.join(["idumb", *words])
