"""Next actions for a stopped run, each with its consequence and command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from idumb.domain import paths
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.run import PAUSED, RunState


def go_on(phase: str) -> Choice:
    return Choice(
        "go-on",
        "continue with the plan as it is",
        "finished tasks stay finished; the next task starts",
        f"idumb resume {phase}",
    )


def replan(phase: str, *, strict: bool = False) -> Choice:
    """A strict run takes over a changed plan only after it is approved."""
    approve = f"idumb approve {phase}; " * strict
    return Choice(
        "replan",
        "change the plan first",
        "edit its tasks, review the difference, and amend the run; finished tasks that did not change are kept",
        f"idumb check-plan {phase} --diff; {approve}idumb amend {phase} --from-file",
    )


def start_fresh(phase: str) -> Choice:
    return Choice(
        "start-fresh",
        "roll back all of its work and start again",
        "a new commit restores the files from before the run; nothing is lost, and idumb undo restores the work",
        f"idumb rollback {phase} --to start",
    )


def for_paused(state: RunState) -> tuple[Choice, ...]:
    phase = state.phase
    return (replan(phase, strict=state.mode == STRICT), go_on(phase), start_fresh(phase))


def for_undeclared_changes(
    phase: str, task: str, changed: Sequence[str], *, amend: bool, keep: bool
) -> tuple[Choice, ...]:
    """Choices after a program changed files that its task does not declare. All of its work was kept, none delivered.

    `amend`: the plan can declare them. `keep`: they may be delivered.
    """
    resume = f"idumb resume {phase}"
    flags = " ".join(f"--accept-deviation {task} {shlex.quote(path)}" for path in changed)
    declares = "the plan declares them, the contract is locked again, and the task is retried"
    proven = "they are proven and delivered with it; the plan does not change"
    rest = "the rest is proven again without them, then delivered"
    retried = "the builder does the task again, and learns why"
    left_out = not any(map(paths.is_outside, changed))
    offers = (
        (Choice("look", "see what the task changed", "nothing is written or run", f"idumb show {task} --diff"), True),
        (Choice("amend", "they belong to the task", declares, f"idumb amend {phase} {flags}"), amend),
        (Choice("keep", "they belong to the task, this once", proven, f"{resume} --on-deviation keep"), keep),
        (Choice("leave-out", "go on without them", rest, f"{resume} --on-deviation leave-out"), left_out),
        (Choice("retry", "they are wrong", retried, f"{resume} --retry-failed"), True),
    )
    return tuple(choice for choice, possible in offers if possible)


def for_failed(phase: str, task: str, *, in_editor: bool) -> tuple[Choice, ...]:
    """Choices after a task failed and used up its attempts."""
    again = f"idumb start {task} --retry" if in_editor else f"idumb resume {phase} --retry-failed"
    return (
        Choice("look", "see what it changed", "nothing is written or run", f"idumb show {task} --diff"),
        Choice("retry", "retry it", "a new attempt gets the reasons of the last failure", again),
        Choice(
            "take",
            "correct it yourself",
            "its files are put into your working tree, and idumb submit judges them",
            f"idumb take {task}",
        ),
        Choice(
            "accept",
            "accept its work as it is",
            "the task counts as done because you accept it, and its files are committed",
            f"idumb accept {task} --why REASON",
        ),
        Choice("skip", "skip it", "tasks that depend on it stay blocked", f"idumb skip {task} --why REASON"),
        start_fresh(phase),
    )


def for_verified(phase: str, forced: str | None) -> tuple[Choice, ...]:
    """Choices to run a verified phase again. `forced` does so without a rollback, if that can succeed."""
    return (
        _LEAVE,
        Choice(
            "roll-back",
            "roll back its work first",
            "a new commit restores the files from before the run; idumb undo restores the work",
            f"idumb rollback {phase} --to start",
        ),
        *_force(forced),
    )


def for_verified_elsewhere(report: str, forced: str | None) -> tuple[Choice, ...]:
    """The same if only a committed report says that the phase is verified: no run here could be rolled back."""
    look = Choice(
        "look",
        "see who verified it",
        "nothing is written or run; to roll back the work, revert its commits with git",
        f"git log -- {shlex.quote(report)}",
    )
    return (_LEAVE, look, *_force(forced))


_LEAVE = Choice("leave", "leave it as it is", "nothing changes", "idumb next")


def _force(command: str | None) -> tuple[Choice, ...]:
    words = ("force", "run it again on top of its work", "a new run of every task; the commits of the last run stay")
    return () if command is None else (Choice(*words, command),)


def stopped_by(by: str, why: str) -> str:
    """The recorded reason of a stop that a person asked for."""
    return f"stopped by {by}: {why}" if why else f"stopped by {by}"


def details(question: Decision, **more: Any) -> dict[str, Any]:
    """The details of a refusal that puts a question to the user."""
    return offer(question.what, question.why, question.evidence, question.choices, **more)


def offer(blocked: str, why: str, evidence: Iterable[str], choices: Sequence[Choice], **more: Any) -> dict[str, Any]:
    """The details of a refusal that offers choices."""
    return {"what": blocked, "why": why, "evidence": list(evidence), "choices": rows(choices), **more}


def rows(choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Choices as `error.details.choices` and `data.choices` show them: id, text, consequence, command."""
    return [choice.row() for choice in choices]


def command(state: RunState) -> str:
    """The command that continues a run; an attempt that is open in an editor is submitted first."""
    task = state.opened
    return f"idumb resume {state.phase}" if task is None else f"idumb submit {task.id}"


def require_not_paused(state: RunState | None) -> None:
    """Refusal `run.paused`: only `resume` continues a paused run."""
    if state is None or state.state != PAUSED:
        return
    raise Refusal(
        "run.paused",
        f"Run {state.number} of phase {state.phase} is {state.reason or PAUSED}.",
        hint=f"idumb resume {state.phase}",
        details={"choices": rows(for_paused(state))},
    )
