"""`idumb resume N`."""

from __future__ import annotations

from typing import Any

import click

from idumb.cli import options, output


@click.command("resume")
@click.argument("phase")
@click.option("--retry-failed", is_flag=True, help="Try failed tasks again.")
@click.option(
    "--guidance",
    default="",
    metavar="TEXT",
    callback=options.persons_option,
    help="Words for the builder of the next attempts.",
)
@options.running
def command(phase: str, retry_failed: bool, guidance: str, **flags: Any) -> int:
    """Go on with a phase after an interruption, a failure or an answer.

    Completed tasks are not run again; a task that was cut short starts again from its base. The words of --guidance are
    in the prompts of the tasks that are tried again, or of the next task where none is.
    """
    from idumb.app.running import final_questions, resume

    with options.services(as_json=flags["as_json"], events=flags["events"], progress=True) as services:
        request = options.request("resume", options.phase_named(phase, services.root), flags)
        again = resume.Again(failed=retry_failed, guidance=guidance.strip(), who=options.who())
        result = final_questions.asked(services, request, resume.resume(services, request, again))
    return output.finish("resume", result, as_json=flags["as_json"], quiet=flags["events"])
