"""The commands of the group Decide: answer questions, approve, accept, skip and drop; handoffs and dead letters."""

from __future__ import annotations

from typing import Any

import click

from idumb.app.core.services import Result
from idumb.cli import arguments, options
from idumb.domain.action import Answer
from idumb.domain.runs import handoff
from idumb.system import user_folders


@options.command("decide", person=True, opens=options.WRITES)
@click.argument("decision")
@click.argument("choice")
@click.option("--guidance", default="", help="Instructions that go with the answer.")
def decide_command(services: options.Container, decision: str, choice: str, guidance: str) -> Result:
    """Answer a question that waits for you.

    `idumb resume` continues the run with the answer. For a task that used up its attempts, accept, skip and roll-back
    take effect at once; so do return and fresh if the branch lost work. --guidance is added to the prompts of the
    task's next attempts. The answer is appended to the plan, under `## Decisions`.
    """
    from idumb.app.running import decisions

    return decisions.decide(services, Answer(decision, choice, user_folders.user_name(), guidance))


@options.command("decisions", "app.running.decisions.waiting", opens=options.READS)
def decisions_command() -> None:
    """List the questions that wait for you."""


def _expiry(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return when an approval expires, as the log writes times."""
    from idumb.domain import grant
    from idumb.system import clock

    try:
        return None if value is None else grant.expires_at(value, clock.SystemClock().now())
    except ValueError as problem:
        raise click.BadParameter(f"{problem}.", ctx, param) from None


@options.command("approve", person=True)
@options.phase
@click.option("--hash", metavar="HASH", help="Approve the contract with this hash without asking (see check-plan).")
@click.option(
    "--expires",
    metavar="TIME",
    callback=_expiry,
    help="When the approval expires: 90m, 12h, 7d, 2w, or a date or time (UTC).",
)
@click.option("--pin-base", is_flag=True, help="Bind the approval to the current commit.")
@options.many("--accept-irreversible", "TASK", "Allow a task that cannot be undone.", "accept")
@options.many(
    "--answer",
    "QUESTION=yes",
    "Answer a self-check question that idumb cannot judge, or vouch for a requirement without a text. Separate several"
    " with commas.",
    "answers",
)
@click.option("--sign", metavar="KEY", help="Sign the approval with this SSH key (ssh-keygen).")
@click.option("--file", metavar="PATH", help="Write the signed approval to a new file, for another machine.")
@click.option("--revoke", is_flag=True, help="Revoke every approval of the phase.")
def approve_command(phase: str, revoke: bool, **flags: Any) -> Result:
    """Approve a phase for strict mode, or revoke its approvals.

    Shows everything that the approval binds, then asks. Without a terminal, --hash HASH approves; a strict plan also
    needs an --answer to each self-check question that idumb cannot judge. The approval is void as soon as one byte of
    it changes (idumb help approval). Runs nothing.
    """
    from idumb.app.review import approve

    if revoke and any(flags.values()):
        raise click.UsageError("--revoke allows no other option except --json.")
    if flags["file"] and not flags["sign"]:
        raise click.UsageError("--file needs --sign, because an approval in a file is valid only by its signature.")
    unclear = next((text for text in flags["answers"] if text.partition("=")[2] not in ("yes", "no")), None)
    if unclear is not None:
        raise click.UsageError(f"--answer takes QUESTION=yes or QUESTION=no, not {unclear!r}.")
    with options.services(writes=True) as services:
        phase = arguments.phase_id(phase, services.root)
        if revoke:
            return approve.revoke(services, phase, user_folders.user_name())
        return approve.approve(services, approve.Request(phase, user_folders.user_name(), **flags))


@options.command("accept", "app.running.task_overrides.accept", person=True, view="settled", opens=options.WRITES)
@options.task
@click.option("--why", required=True, metavar="REASON", help="The reason, which is recorded.")
def accept_command() -> None:
    """Accept a task as it is, with a reason.

    Commits what the task left, with the reason, so that tasks which depend on it can run. Changes to protected paths
    stay uncommitted and are listed. In a phase without a run, this begins the run: no program starts until you resume.
    """


@options.command("skip", person=True, view="settled", opens=options.WRITES)
@options.task
@click.option("--why", required=True, metavar="REASON", help="The reason, which is recorded.")
@options.yes
def skip_command(services: options.Container, task: str, why: str, yes: bool) -> Result:
    """Skip a task, with a reason.

    The tasks that depend on it stay blocked. They are listed first, and at a terminal you are asked to confirm. To let
    them run, accept the skipped task (`idumb accept`) or remove the dependency (`idumb amend --drop-dependency`).
    """
    from idumb.app.running import task_overrides

    tell = options.progress_writer()
    return task_overrides.skip(services, task, why, user_folders.user_name(), tell=None if yes else tell)


@options.command("drop", person=True, opens=options.WRITES)
@click.argument("target")
@click.option("--why", required=True, metavar="REASON", help="The reason, which is recorded.")
def drop_command(services: options.Container, target: str, why: str) -> Result:
    """Abandon a phase, a task or a quick task.

    A dropped task takes along what depends on it. What is done stays done, and no file changes. A dropped phase is not
    what comes next, and no command runs or judges it. idumb undo takes up again what was dropped.
    """
    from idumb.app.running import task_overrides

    return task_overrides.drop(services, arguments.phase_id(target, services.root), why, user_folders.user_name())


handoff_command = options.Group(
    "handoff",
    help="""List, show and update handoffs.

    A finished task hands its work to each receiver that the plan lists under "Handoff to". ID is the id of a handoff,
    the beginning of an id, or a task with a single handoff.
    """,
)


@options.command("list", "app.reading.handoffs.listing", group=handoff_command, opens=options.READS)
@click.option("--run", metavar="ID", help="Only this run.")
@click.option("--phase", metavar="N", help="Only this phase.")
@click.option("--status", type=click.Choice(handoff.STATUSES), help="Only this status.")
@click.option("--agent", metavar="NAME", help="Only this receiver.")
def list_handoffs_command() -> None:
    """List handoffs and count them by status, type, receiver and phase."""


@options.command("show", "app.reading.handoffs.show", group=handoff_command, opens=options.READS)
@click.argument("name", metavar="ID")
def show_handoff_command() -> None:
    """Show a handoff."""


@options.command(
    "update", "app.reading.handoffs.update", group=handoff_command, view="show_handoff", opens=options.WRITES
)
@click.argument("name", metavar="ID")
@click.argument("status", metavar="STATUS")
@click.option("--why", metavar="REASON", default="", help="The reason, which is recorded.")
def update_handoff_command() -> None:
    """Change the status of a handoff.

    STATUS is pending, in_progress, complete, blocked or failed.
    """


dlq_command = options.Group(
    "dlq",
    help="""List failed tasks and runs; retry one.

    A dead letter is a task or run that failed and has no attempt left. Its class is transient (a retry may succeed),
    permanent (the plan or the files must change) or system (the machine or its programs must be fixed). ID may be a
    task.
    """,
)


@options.command("list", "app.running.dead_letters.listing", group=dlq_command, opens=options.READS)
@click.option("--class", type=click.Choice(["transient", "permanent", "system"]), help="Only this class.")
@click.option("--phase", metavar="N", help="Only this phase.")
@click.option("--agent", metavar="NAME", help="Only tasks that this binding built.")
@click.option("--retryable", "can_retry", flag_value=True, default=None, help="Only those that can be retried here.")
def list_letters_command() -> None:
    """List dead letters."""


@options.command("show", "app.running.dead_letters.show", group=dlq_command, opens=options.READS)
@click.argument("name", metavar="ID")
def show_letter_command() -> None:
    """Show a dead letter."""


@options.command("retry", "app.running.dead_letters.retry", group=dlq_command, view="run.ended", opens=options.RUNS)
@click.argument("name", metavar="ID")
@options.approve("Consent to all that would run.")
def retry_command() -> None:
    """Make one more attempt of the task, under the same checks."""
