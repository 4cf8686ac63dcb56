"""Mistyped commands and options: the error names the nearest word that exists."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence

import click

from idumb.domain import errors, finding


class Mistyped(click.UsageError):
    """A word that does not exist. `nearest` is what the user probably meant, or None."""

    def __init__(self, message: str, nearest: str | None, ctx: click.Context | None) -> None:
        super().__init__(suggest(message, nearest), ctx)
        self.nearest = nearest


class Group(click.Group):
    """Commands under one name, as in `idumb dlq list`. `elsewhere`: words of other programs, with what to type here."""

    elsewhere: Mapping[str, str] = {}

    def sections(self) -> Mapping[str, Sequence[str]]:
        """Return the names of the commands, by the heading under which the help lists them."""
        return {"Commands": list(self.commands)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in self.sections().values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each command with the first paragraph of its help, whole: click would cut it at the width."""
        width = max(map(len, self.list_commands(ctx)))
        for title, names in self.sections().items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(n.ljust(width), (c.help or "").partition("\n\n")[0]) for n, c in commands if c])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if not args or args[0] in names or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        word, place = args[0], ctx.command_path.partition(" ")[2]
        message = f"No such command '{f'{place} {word}'.strip()}'."
        if word in self.elsewhere:
            named = itertools.takewhile(lambda each: not each.startswith("-"), args[1:])  # options differ
            hint = self.elsewhere[word].format(shlex.join(named) or ("W1" if place else "")).rstrip()
            raise errors.UsageError("usage", message, hint=hint)
        longer = (name for name in names if len(word) > 2 and name.startswith(word))
        raise Mistyped(message, next(longer, None) or finding.nearest(word, names), ctx)


def option(problem: click.NoSuchOption) -> Mistyped:
    """Return the error for an unknown option. Hidden options are not suggested."""
    ctx, word = problem.ctx, problem.option_name
    shown = [p for p in ctx.command.get_params(ctx) if isinstance(p, click.Option) and not p.hidden] if ctx else []
    # Without their dashes, which all have: `--reason` would otherwise resemble `--json`.
    names = {n.lstrip("-"): n for candidate in shown for n in (*candidate.opts, *candidate.secondary_opts)}
    return Mistyped(f"No such option {word!r}.", names.get(finding.nearest(word.lstrip("-"), names) or ""), ctx)


def suggest(message: str, nearest: str | None) -> str:
    return f"{message} Did you mean {nearest!r}?" if nearest else message
