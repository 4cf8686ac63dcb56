"""The commands of the group Look: show phases, tasks, events and evidence, and prove them."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import click

from idumb.app.core.services import Result
from idumb.cli import arguments, options, output
from idumb.system import atomic_write


def _view() -> Result:
    """Return the view that `status`, `next` and `roadmap` print: the cached one while it is valid, else a new one."""
    from idumb.composition import before_services

    cached = before_services.saved_status(os.getcwd())
    if cached is not None:
        return Result(cached)
    with options.services(initialised=False) as services:
        return Result(before_services.refreshed_status(services))


@options.command("status", view="status.status")
def status_command() -> Result:
    """Show the state of every phase."""
    return _view()


@options.command("show", view="show.show")
@options.task
@options.view("plan", "Print the plan as the run had it, also if no file has it.")
@options.view("diff", "Print what the task changed since its first attempt started.")
@options.view("transcript", "Print what its agents did in the newest attempt, in short lines.")
@options.view("envelope", "Print everything that its newest attempt ran under.")
@click.option("--attempt", type=click.IntRange(1), help="With --transcript or --envelope: another attempt.")
@options.view("usage", "Print the time, tokens and money that agents used. TASK can be a phase.")
@options.view("debug", "Collect the facts about its failures, with possible fixes.")
@options.negative("--facts-only", "asks", "With --debug: do not ask the debugger.")
@options.approve("With --debug: consent to this debugger.")
def show_command(task: str, view: str | None, attempt: int | None, **flags: Any) -> Result:
    """Show a task with its attempts, evidence and checkpoint.

    With --plan, TASK can also be the hash in the trailer Idumb-Plan of a commit. With --usage, the numbers come from
    the agents; what an agent did not report is shown as unknown. With --debug, shows every attempt with its checks,
    changes and envelope, and commands that are worth trying; a debugger, if one is bound, is asked for a diagnosis.
    """
    if attempt is not None and view not in ("envelope", "transcript"):
        raise click.UsageError("--attempt needs --transcript or --envelope.")
    if view != "debug" and (flags["approve"] or not flags["asks"]):
        raise click.UsageError("--facts-only and --approve need --debug.")
    from idumb.app.reading import metrics, show

    with options.services(writes=view == "debug") as services:
        if view == "debug":
            from idumb.app.reading import failed_task

            return failed_task.debug(services, task, **flags)
        if view == "envelope":
            return show.envelope(services, task, attempt)
        if view == "transcript":
            return show.transcript(services, task, attempt)
        views = {None: show.show, "plan": show.plan, "diff": show.diff, "usage": metrics.usage}
        return views[view](services, task)


@options.command("report")
@options.phase
@click.option("--write", is_flag=True, help="Write the files: summary, verification and checkpoints.")
@click.option("--html", metavar="FILE", help="Write one HTML page about the run, which loads nothing else.")
@click.option("--open", "opens", is_flag=True, help="With --html: open the page in a browser.")
def report_command(phase: str, *, write: bool, html: str | None, opens: bool) -> Result:
    """Print the reports of a phase, or write them as files.

    Shows what the event log says now about the newest run.

    --html makes a page for a reviewer: what was asked and done, who decided, what is unproven, and each task with its
    evidence, attempts and changes.
    """
    if opens and html is None:
        raise click.UsageError("--open needs --html FILE.")
    if write and html is not None:
        raise click.UsageError("Use either --write or --html.")
    if html is not None:
        return _page(phase, html, opens=opens)
    from idumb.app.reading import report_page

    with options.services(writes=write) as services:
        return report_page.report(services, phase, write=write)


def _page(phase: str, path: str, *, opens: bool) -> Result:
    if not _is_page(path):
        arguments.require_free(path)
    from idumb.app.reading import report_page
    from idumb.views import page

    with options.services() as services:
        found = report_page.page(services, phase)
        atomic_write.write(path, page.render(found, output.shown).encode("utf-8", "replace"), durable=False)
    if opens:
        click.launch(path)
    return Result({"phase": found.state.phase, "run": found.state.id, "reports": [], "written": [path]})


def _is_page(path: str) -> bool:
    """Return whether a file is a page of idumb, which the next one replaces."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return b'<meta name="generator" content="idumb">' in stream.read(4096)


@options.command("next", view="status.upcoming")
@click.argument("phase", required=False, shell_complete=arguments.phases)
def next_command(phase: str | None) -> Result:
    """Show what comes next, and what the other tasks wait for.

    With a phase, prints the builder's brief for its next task, including the prompt and the feedback on the previous
    attempt.
    """
    if phase is None:
        return _view()
    from idumb.app.reading import next_task

    with options.services() as services:
        return next_task.view(services, phase)


@options.command("roadmap", view="status.roadmap")
@click.option("--add", "title", metavar="TITLE", help="Add a phase at the end, or after the one that --after names.")
@click.option("--after", metavar="PHASE", help="With --add: the phase before it. After 6, the new one is 06.1.")
@click.option("--goal", default="", metavar="TEXT", help="The goal of the new phase: what is true when it is done.")
def roadmap_command(title: str | None, after: str | None, goal: str) -> Result:
    """List the phases with their state, or add one."""
    if title is None:
        if goal or after:
            raise click.UsageError("--goal and --after need --add TITLE.")
        return _view()
    from idumb.app.planning import phase_context
    from idumb.composition import before_services

    with options.services(writes=True) as services:
        added = phase_context.add_phase(services, title, goal, after)
        shown = before_services.refreshed_status(services)
    return Result({**shown, "added": added})


@options.command("log")
@click.argument("phase", required=False, shell_complete=arguments.phases)
@click.option("--workflow", metavar="NAME", help="The newest run of this workflow.")
@click.option("--run", help="Only events of this run.")
@click.option("--task", help="Only events of this task.")
@click.option("--kind", help="Only this kind (attempt.started) or alias (step_started); idumb help events lists them.")
@click.option("--since", metavar="TIME", callback=arguments.moment, help="Only from this time on (ISO 8601, UTC).")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 10**9), default=100, show_default=True, help="How many of the newest."
)
@click.option("--follow", is_flag=True, help="Print events as they come, until the run ends.")
def log_command(phase: str | None, workflow: str | None, *, follow: bool, **filters: Any) -> Result | None:
    """Show the events of a run.

    Shows the newest run of the phase or workflow, or the run that --run names.
    """
    if follow and options.flag("as_json"):
        raise click.UsageError("--follow prints lines as they come; --json prints one object.")
    from idumb.app.upkeep import event_log

    event_log.selections_of(filters["kind"])  # a usage error for an unknown one
    with options.services(initialised=False) as services:
        if workflow is not None and phase is None:
            from idumb.app import workflows

            phase = workflows.status(services, workflow).data["runs"][-1]["phase"]
        if not follow:
            return event_log.list_events(services, phase=phase, **filters)
        from idumb.cli import watching

        watching.follow_log(services, phase, **filters)
        return None


audit_command = options.Group("audit", help="Verify the event log, or what a run left behind.")


@options.command("verify", "app.upkeep.event_log.audit", group=audit_command, opens=options.ANYWHERE)
def verify_command() -> None:
    """Verify the event log.

    Reports up to which event the chain of hashes is intact, and up to which event your state directory confirms it. To
    detect events that were cut off after that one, compare the head with one that you kept elsewhere.
    """


@options.command("workspace", "app.verify.audit.compare", group=audit_command, opens=options.READS)
@options.phase
def workspace_command() -> None:
    """Report whether a phase's files are as its newest run left them.

    Looks at files, plans, git's own files and the event log.
    """


@options.command("bundle", group=audit_command)
@options.phase
@click.option("--file", metavar="FILE", help="Write it to this new file.")
@click.option(
    "--sign",
    "key",
    metavar="KEY",
    callback=options.people_only_option,
    help="With --file: sign it with this SSH key, into FILE.sig.",
)
def bundle_command(phase: str, file: str | None, key: str | None) -> Result:
    """Print the record of a run as one object.

    It has run, plans, steps, responses as digests, evidence and the head of the event log. With --file and --sign it
    proves to others, with sha256sum and ssh-keygen alone, what you vouch for.
    """
    if key is not None and file is None:
        raise click.UsageError("--sign needs --file FILE.")
    from idumb.app.verify import audit

    with options.services() as services:
        made = audit.bundle(services, phase)
        if file is None or made.failure is not None:
            return made
        answer, written = audit.signed_files(services, made, file, key)
    for path in written:
        arguments.require_free(path)
    for path, data in written.items():
        atomic_write.create(path, data, mode=0o644)
    return answer


@options.command("prove")
@click.argument("phase", required=False, shell_complete=arguments.phases)
@click.argument("task", required=False, shell_complete=arguments.tasks)
@click.option("--commit", metavar="COMMIT", help="Prove this commit, which is checked out, and compare with no record.")
@click.option("--summary", metavar="FILE", help="Append the result to this file, as Markdown.")
@options.approve("Agree to run the commands of this contract, with --commit.")
def prove_command(
    phase: str | None, task: str | None, commit: str | None, summary: str | None, approve: tuple[str, ...]
) -> Result:
    """Rerun the evidence in a fresh clone of the commit.

    Runs the checks of every completed task and of the phase at the newest commit of the run, with the files of a fresh
    clone and a private home, and compares each result with the recorded one. With TASK, runs the checks of this task at
    its own commit. What a person or a model said cannot be rerun.

    With --commit HEAD, or if this working tree has no run of the phase (a colleague's clone, a CI job), runs the checks
    of the committed plan on HEAD instead, and needs no record. PHASE is then that of the newest task.

    It runs only commands that you consented to, and it changes nothing. The exit code is 1 if a check now fails, if no
    commit has the work of a task, or if no check can be rerun.
    """
    if phase is None and commit is None:
        raise click.UsageError("Name a PHASE, or --commit HEAD.")
    from idumb.app.verify import prove
    from idumb.views import answer

    with options.services(writes=True) as services, contextlib.ExitStack() as stack:
        file = None
        if summary is not None:  # before the work, so that a wrong name costs nothing
            file = stack.enter_context(open(summary, "a", encoding="utf-8", errors="backslashreplace"))
        phase = phase and arguments.phase_id(phase, services.root)
        result = prove.prove(services, phase, task, commit=commit or "", approved=approve)
        if file is not None:
            file.write(output.redacted(answer.render("look.summary", result.data)))
    return result
