"""`idumb execute-phase N`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from idumb.cli import options, output


@click.command("execute-phase")
@click.argument("phase")
@click.option("--force", is_flag=True, help="Run a verified phase again, from the start.")
@click.option("--branch", metavar="NAME", help="Create this branch at HEAD and run there.")
@click.option("--ask", is_flag=True, help="Print the prompt of the next task; run nothing.")
@click.option("--all", "all_tasks", is_flag=True, help="With --ask: the prompts of all tasks that are not done.")
@click.option("--out", type=click.Path(), metavar="FOLDER", help="With --ask: write each prompt to a new file there.")
@options.dry_run
@options.running
def command(
    phase: str,
    force: bool,
    branch: str | None,
    ask: bool,
    all_tasks: bool,
    out: str | None,
    dry_run: bool,
    **flags: Any,
) -> int:
    """Run a phase, task by task, and verify it.

    Asks for consent at a terminal; otherwise --approve HASH gives it. An unfinished run of the same contract continues.

    With --dry-run, everything runs in a copy of the working tree that has no ignored files. Commands do run, so consent
    is needed, and it is not kept. Tasks for a person, and tasks with effects outside the files, are omitted and listed.

    With --ask, nothing is run, recorded or consented to. It prints the prompt of the next task, byte for byte as its
    builder would receive it, and the program that would be started.
    """
    if ask:
        return _print_prompts(phase, all_tasks, out, clashing=force or dry_run or bool(branch), flags=flags)
    if all_tasks or out:
        raise click.UsageError("--all and --out are options of --ask.")
    from idumb.app.running import dry_run as rehearsing
    from idumb.app.running import execute_phase

    request = options.request("execute-phase", phase, flags, force=force, branch=branch, rehearsal=dry_run)
    with options.services(as_json=flags["as_json"], events=flags["events"], progress=True) as services:
        if dry_run:
            from idumb.composition.rehearsal import Rehearsals

            result = rehearsing.rehearse(services, request, Rehearsals(services))
        else:
            from idumb.app.running import final_questions

            result = final_questions.ask_and_resume(services, request, execute_phase.execute(services, request))
    return output.finish("execute-phase", result, as_json=flags["as_json"], quiet=flags["events"])


def _print_prompts(phase: str, all_tasks: bool, out: str | None, *, clashing: bool, flags: Mapping[str, Any]) -> int:
    if clashing or flags["approve"] or flags["events"]:
        raise click.UsageError("--ask runs nothing; it allows only --all, --out and --json.")
    from idumb.app.editor import ask_mode

    with options.services(as_json=flags["as_json"]) as services:
        result = ask_mode.prepare(services, phase, everything=all_tasks)
        if out is not None:
            written = _write_prompts(result.data["prepared"], out)
            result = dataclasses.replace(result, data={**result.data, "written": written})
    return output.finish("execute-phase", result, as_json=flags["as_json"])


def _write_prompts(prepared: Sequence[Mapping[str, Any]], out: str) -> list[str]:
    """Write each prompt to a new file and return the files."""
    from idumb.domain.errors import Refusal
    from idumb.system.files import atomic_write

    prompts = {os.path.join(out, f"{task['id']}.md"): task["prompt"] for task in prepared if task["prompt"]}
    existing = next((path for path in prompts if os.path.lexists(path)), None)
    if existing is not None:
        raise Refusal("ask.exists", f"{existing} already exists; nothing was written.", hint="Choose another folder")
    os.makedirs(out, exist_ok=True)
    for path, text in prompts.items():
        atomic_write.create(path, text.encode("utf-8", "surrogateescape"), mode=0o644)
    return list(prompts)
