"""Mistyped commands, options and choices: the error names the nearest word that exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from idumb.cli import options

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


def subcommand(group: options.Group, arguments: Sequence[str], ctx: click.Context) -> click.UsageError:
    """Return the error for an unknown command of a group."""
    import shlex

    from idumb.domain import errors

    word, name = arguments[0], str(group.name)
    if word in group.elsewhere:
        shown = group.elsewhere[word].format(shlex.quote(next(iter(arguments[1:]), "W1")))
        words = f"No such command '{name} {word}'. A run of a workflow is a phase, such as W1."
        raise errors.UsageError("usage", words, hint=shown)
    nearest, message = nearest_of(word, group.commands), f"No such command '{name} {word}'."
    if nearest is None:
        return Mistyped(f"{message} {name} takes {', '.join(group.commands)}.", word, None, ctx)
    return Mistyped(suggest(message, f"{name} {nearest}"), word, nearest, ctx)


def command(
    arguments: Sequence[str], names: Sequence[str], elsewhere: Mapping[str, str], ctx: click.Context
) -> click.UsageError:
    """Return the error for an unknown command. The beginning of a name is nearer than any other likeness."""
    import itertools
    import shlex

    from idumb.domain import errors

    word = arguments[0]
    if word in elsewhere:
        named = itertools.takewhile(lambda each: not each.startswith("-"), arguments[1:])  # options differ
        hint = " ".join(["idumb", elsewhere[word], *map(shlex.quote, named)])
        raise errors.UsageError("usage", f"No such command {word!r}.", hint=hint)
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
