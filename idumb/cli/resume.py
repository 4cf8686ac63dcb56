"""`idumb resume N`."""

from __future__ import annotations

from typing import Any

import click

from idumb.cli import options, output


@click.command("resume")
@click.argument("phase")
@click.option("--retry-failed", is_flag=True, help="Try failed tasks again.")
@options.running
def command(phase: str, retry_failed: bool, **flags: Any) -> int:
    """Go on with a phase after an interruption, a failure or an answer.

    Completed tasks are not run again; the task that was cut short starts anew from its base.
    """
    from idumb.app import resume

    with options.services(as_json=flags["as_json"], events=flags["events"], progress=True) as services:
        request = options.request("resume", options.phase_named(phase, services.root), flags)
        result = resume.resume(services, request, retry_failed=retry_failed)
    return output.finish("resume", result, as_json=flags["as_json"], quiet=flags["events"])
