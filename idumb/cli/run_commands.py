"""The commands of the groups Run and Undo: run phases and single tasks, stop and verify them, roll them back."""

from __future__ import annotations

import os
from typing import Any

import click

from idumb.app.core.services import Result
from idumb.cli import arguments, options
from idumb.system import user_folders


@options.command("execute-phase", view="ended")
@options.phase
@click.option("--force", is_flag=True, help="Run a verified phase again, from the start.")
@click.option("--branch", metavar="NAME", help="Create this branch at HEAD unless HEAD is on it, and run there.")
@click.option("--ask", is_flag=True, help="Print the prompt of the next task; run nothing.")
@options.dry_run
@options.running
def execute_phase_command(phase: str, ask: bool, **flags: Any) -> Result:
    """Run a phase, task by task, and verify it.

    Asks for consent at a terminal; otherwise --approve HASH gives it. An unfinished run of the same contract continues.

    With --dry-run, everything runs in a copy of the working tree that has no ignored files. Commands do run, so consent
    is needed, and it is not kept. Tasks for a person, and tasks with effects outside the files, are omitted and listed.

    --ask prints the prompt byte for byte as the builder would receive it, and the program that would be started.
    """
    if ask:
        clashing = flags["force"] or flags["dry_run"] or flags["branch"] or flags["approve"]
        if clashing or options.flag("events"):
            raise click.UsageError("--ask runs nothing; it allows only --json.")
        from idumb.app.reading import next_task

        with options.services() as services:
            return next_task.prepare(services, arguments.phase_id(phase, services.root))
    from idumb.app.core.run_context import RunRequest
    from idumb.app.running import dry_run, execute_phase, resume

    with options.services(progress=True) as services:
        request = RunRequest(arguments.phase_id(phase, services.root), **flags)
        if request.dry_run:
            return dry_run.rehearse(services, request)
        return resume.ask_and_resume(services, request, execute_phase.execute(services, request))


@options.command("resume", view="ended", opens=options.RUNS)
@options.phase
@click.option("--retry-failed", is_flag=True, help="Retry failed tasks.")
@click.option("--judge", is_flag=True, help="Judge the work of failed tasks again, without their builders.")
@click.option(
    "--guidance",
    default="",
    metavar="TEXT",
    callback=options.people_only_option,
    help="Instructions for the builder of the next attempts.",
)
@options.running
def resume_command(
    services: options.Container, phase: str, retry_failed: bool, judge: bool, guidance: str, **flags: Any
) -> Result:
    """Continue a phase after an interruption, failure or answer.

    Completed tasks are not run again. A task that was cut short starts over from its base. --guidance is added to the
    prompts of the retried tasks or, if no task is retried, of the next task. --judge is for work that failed because of
    something outside it, such as a service that a check needs; with --retry-failed, tasks without work are built.
    """
    from idumb.app.running import ended_run

    phase = arguments.phase_id(phase, services.root)
    if not (judge or guidance) and (nothing := ended_run.answer(services, phase, judged=flags["verify"])):
        return nothing
    from idumb.app.core.run_context import RunRequest
    from idumb.app.running import resume  # it loads the engine

    request = RunRequest(phase, command="resume", **flags)
    again = resume.Retry(retry_failed, judge=judge, guidance=guidance.strip(), who=user_folders.user_name())
    return resume.ask_and_resume(services, request, resume.resume(services, request, again))


@options.command("execute", view="ended", opens=options.RUNS)
@click.argument("file")
@click.option("--force", is_flag=True, help="Run a verified plan again, from the start.")
@click.option("--branch", metavar="NAME", help="Create this branch at HEAD unless HEAD is on it, and run there.")
@options.dry_run
@options.running
def execute_command(services: options.Container, file: str, **flags: Any) -> Result:
    """Run a step plan, a YAML or JSON file of tool calls.

    For a plan in Markdown, runs the phase whose folder holds it, as execute-phase does.

    A step plan is strict: approve it with `idumb approve FILE` first. An unfinished run of the same file continues.
    Other commands take the path of the file, from the repository's root, as its phase.
    """
    from idumb.app.core.run_context import RunRequest
    from idumb.app.running import dry_run, execute_phase

    path = arguments.step_plan_path(file, services.root)
    phase = arguments.phase_of_file(path) or execute_phase.phase_of_step_plan(path)
    request = RunRequest(phase, command="execute", **flags)
    return dry_run.rehearse(services, request) if request.dry_run else execute_phase.execute(services, request)


@options.command("quick", view="ended")
@click.argument("task")
@options.many("--files", "PATH", "A file, folder or pattern that the task may change.")
@click.option("--check", metavar="COMMAND", help="The command that proves the work by exiting with 0.")
@click.option("--builder", metavar="BINDING", help="Who builds the task; by default the configured builder.")
@options.approve("Consent to all that would run.")
@options.events
def quick_command(task: str, files: tuple[str, ...], approve: tuple[str, ...], **given: Any) -> Result:
    """Run one task that you describe here.

    The task has every guarantee of a plan. You see the plan and agree to it; then it runs as phase Q1, Q2 and so on,
    which other commands accept. Your branch gets one commit, with TASK as its message; `idumb report Q1` prints the
    reports. Without a terminal, the answer names the hash for --approve.

    The task must modify each file in --files that exists, and create each one that does not. In a folder (`docs/`) or
    behind a wildcard, anything may change. You can also write what happens, as in a plan: --files 'create a.py, delete
    b.py'. Without --files any file may change, and you judge the list of changes. Without --check, idumb checks only
    which files changed.
    """
    from idumb.app.core.run_context import RunRequest
    from idumb.app.running import execute_phase, resume
    from idumb.domain.plans import new_task
    from idumb.domain.plans.new_task import QuickRequest

    invalid = next((path for path in files if _has_control_character(path)), None)
    if invalid is not None:
        raise click.UsageError(f"--files {invalid!r} has a control character; paths in plans cannot.")
    if not task.strip():
        raise click.UsageError("Describe the task.")

    with options.services(progress=True) as services:

        def exists(path: str) -> bool:
            return services.files.exists(path) or os.path.islink(os.path.join(services.root, path))

        named = new_task.named(files, exists, lambda path: arguments.declared_path(path, services.root))
        quick_request = QuickRequest(task, named if files else None, **given)
        request = RunRequest("", approve=approve, command="quick")
        result = execute_phase.run_quick(services, quick_request, request)
        return resume.ask_and_resume(services, request, result)


def _has_control_character(path: str) -> bool:
    """Return whether a plan, which consists of lines of text, could not name the path."""
    import unicodedata

    return any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in path)


@options.command("verify-work", "app.verify.verify_work.verify", view="look.verify_work", opens=options.RUNS)
@options.phase
@click.option("--gaps", is_flag=True, help="Write a plan with a task for each criterion that failed.")
@options.negative("--checks-only", "asks", "Do not ask verifier and skeptic; the report says so.")
@options.approve("Consent to these agents: verifier and skeptic.")
def verify_work_command() -> None:
    """Verify a phase against its success criteria.

    Runs the criteria, invariants and tests again on the current tree and writes the VERIFICATION report. Criteria that
    only the roadmap or the context file states are listed as unproven. If agents are bound to the verifier and skeptic
    roles, they are asked too; they cannot make a failed check pass.

    The result is `partial`, with exit code 1, in these cases:

    \b
    - a refutation cites a line that exists
    - nothing is proven, because every task was accepted or skipped
    - a success criterion of the plan has no proof, or only an opinion
    - the verifier or the skeptic gives no opinion

    Except after a refutation, a question waits in `idumb decisions`, and your yes verifies the phase.

    An unfinished phase is verified as far as it got: it is `partial` or failed, never passed. Tests of tasks that are
    not done are omitted, and nobody is asked about their criteria.
    """  # noqa: D301 - click keeps the lines of a list behind this character


@options.command("stop", person=True)
@click.option("--after-task", is_flag=True, help="Let the run finish its current task; do not wait for that.")
@click.option("--why", default="", metavar="REASON", help="The reason, which is recorded and shown.")
@click.option("--force", is_flag=True, help="Stop a command that does not respond, or one on another machine.")
def stop_command(after_task: bool, why: str, force: bool) -> Result:
    """Stop the command that runs in this working tree.

    Run it in another terminal. The run stops at the next safe point and records that; `idumb resume` continues it. With
    --force, a process on this machine that does not respond is killed, and one on another machine can no longer write.
    """
    if after_task and force:
        raise click.UsageError("Use either --after-task or --force.")
    from idumb.app.running import stop

    with options.services() as services:
        return stop.stop(services, after_task=after_task, force=force, why=why, by=user_folders.user_name())


@options.command("rollback", "app.history.rollback.rollback", person=True, view="rolled_back", opens=options.RUNS)
@options.phase
@click.option("--to", metavar="TASK", help="The task whose checkpoint to return to, or `start`.")
@options.many("--past", "TASK", "Roll back past this irreversible task, although its effects remain.")
@options.accept_git
@options.yes
def rollback_command() -> None:
    """Return to the checkpoint after a task, or to the start.

    Saves the current state, restores only the files that the rolled-back tasks changed, and adds a commit to the
    branch. `idumb undo` reverses it. The rollback commands of compensatable tasks run first.
    """


@options.command("undo", "app.history.undo.undo", person=True, view="rolled_back", opens=options.RUNS)
@click.option("--operation", metavar="ID", help="The operation to undo; by default the newest one.")
@options.accept_git
@options.yes
def undo_command() -> None:
    """Undo the newest rollback, undo or run.

    Shows the phase, the operation and the files that will change, then asks. --yes needs --operation: without a
    terminal, undo refuses and prints the whole command. Restores files exactly as they were before the operation. To
    redo, undo the undo.
    """
