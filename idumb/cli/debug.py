"""`idumb debug N`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from idumb.cli import options, output


@click.command("debug")
@click.argument("phase")
@click.option("--task", metavar="ID", help="Of this task, whether it failed or not; without it of all that failed.")
@click.option("--out", metavar="FILE", help="Write the words for people to a new file too.")
@click.option("--facts-only", is_flag=True, help="Do not ask the debugger.")
@options.approve("Consent to exactly this agent: the debugger.")
@options.as_json
@options.debug
def command(
    phase: str, task: str | None, out: str | None, facts_only: bool, approve: tuple[str, ...], as_json: bool
) -> int:
    """Gather what is known of a phase's failed tasks, and what can be done.

    Shows every attempt with its checks and outputs, what each one changed, in what its envelope differs, and what
    changed since the last good checkpoint, with the commands that are worth trying. Where an agent fills the role of
    the debugger, it is asked for a diagnosis; a plan that it offers is kept as a file if the run could go on under it,
    and nothing is amended before you say so.
    """
    from idumb.app.failures import debug

    request = debug.Request(phase, task, asks=not facts_only, approve=approve)
    with options.services(as_json=as_json, writes=True) as services:
        result = debug.debug(services, request)
    if out is not None:
        _write(out, result.data)
    return output.finish("debug", result, as_json=as_json)


def _write(path: str, data: Mapping[str, Any]) -> None:
    """A file that was not there before."""
    from idumb.domain.errors import Refusal
    from idumb.views.answers import debug as answer_debug

    try:
        with open(path, "x", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(output.redacted(answer_debug.debug(data)))
    except FileExistsError as there:
        hint = "Name another file, or move that one away"
        raise Refusal("debug.file-exists", f"{path} is there already, and is not written over.", hint=hint) from there
