"""`idumb resume N`."""

from __future__ import annotations

from typing import Any

import click

from idumb.cli import options, output


@click.command("resume")
@click.argument("phase")
@click.option("--retry-failed", is_flag=True, help="Retry failed tasks.")
@click.option(
    "--guidance",
    default="",
    metavar="TEXT",
    callback=options.people_only_option,
    help="Instructions for the builder of the next attempts.",
)
@options.running
def command(phase: str, retry_failed: bool, guidance: str, **flags: Any) -> int:
    """Continue a phase after an interruption, failure or answer.

    Completed tasks are not run again. A task that was cut short starts over from its base. --guidance is added to the
    prompts of the retried tasks or, if no task is retried, of the next task.
    """
    from idumb.app.running import final_questions, resume

    with options.services(as_json=flags["as_json"], events=flags["events"], progress=True) as services:
        request = options.request("resume", options.phase_id(phase, services.root), flags)
        again = resume.Retry(failed=retry_failed, guidance=guidance.strip(), who=options.user_name())
        result = final_questions.ask_and_resume(services, request, resume.resume(services, request, again))
    return output.finish("resume", result, as_json=flags["as_json"], quiet=flags["events"])
