"""`idumb debug N`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from idumb.cli import options, output


@click.command("debug")
@click.argument("phase")
@click.option("--task", metavar="ID", help="Look at this task, failed or not; by default at every failed task.")
@click.option("--out", metavar="FILE", help="Also write the report to a new file.")
@click.option("--facts-only", is_flag=True, help="Do not ask the debugger.")
@options.approve("Consent to this debugger.")
@options.as_json
@options.debug
def command(
    phase: str, task: str | None, out: str | None, facts_only: bool, approve: tuple[str, ...], as_json: bool
) -> int:
    """Collect the facts about failed tasks, with possible fixes.

    Shows every attempt with its checks, their output, its changes and how its envelope differs, and what changed since
    the last good checkpoint. Lists the commands that are worth trying.

    If an agent is bound to the debugger role, it is asked for a diagnosis. A plan that it proposes is saved to a file
    if the run could continue under it; nothing is amended until you decide so.
    """
    from idumb.app.failures import debug

    request = debug.Request(phase, task, asks=not facts_only, approve=approve)
    with options.services(as_json=as_json, writes=True) as services:
        result = debug.debug(services, request)
    if out is not None:
        _write(out, result.data)
    return output.finish("debug", result, as_json=as_json)


def _write(path: str, data: Mapping[str, Any]) -> None:
    """Write the report to a new file."""
    from idumb.domain.errors import Refusal
    from idumb.views.answers import debug as answer_debug

    try:
        with open(path, "x", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(output.redacted(answer_debug.debug(data)))
    except FileExistsError:
        hint = "Choose another file, or move that one"
        raise Refusal("debug.file-exists", f"{path} already exists; it was not overwritten.", hint=hint) from None
