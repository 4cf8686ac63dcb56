"""The ways on from a run that stands still: each is a choice with its consequence and the command that takes it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from idumb.domain.decision import Choice
from idumb.domain.errors import Refusal
from idumb.domain.paths import IGNORE_FILE
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.run import PAUSED, RunState


def go_on(phase: str) -> Choice:
    return Choice(
        "go-on",
        "go on with the plan as it is",
        "finished tasks stay finished; the next one starts",
        f"idumb resume {phase}",
    )


def replan(phase: str, *, strict: bool = False) -> Choice:
    """What is strict takes a change over only once it is approved."""
    approve = f"idumb approve {phase}; " * strict
    return Choice(
        "replan",
        "change the plan first",
        "edit its tasks, look at the difference, and let the run take it over; done, unchanged tasks are kept",
        f"idumb plan-diff {phase}; {approve}idumb amend {phase} --from-file",
    )


def start_fresh(phase: str) -> Choice:
    return Choice(
        "start-fresh",
        "take all of its work back and start anew",
        "files are as before the run, in a new commit; nothing is lost, and idumb undo brings the work again",
        f"idumb rollback {phase} --to start",
    )


def of_paused(state: RunState) -> tuple[Choice, ...]:
    phase = state.phase
    return (replan(phase, strict=state.mode == STRICT), go_on(phase), start_fresh(phase))


@dataclass(frozen=True, slots=True)
class Strays:
    """Files that a task changed without declaring them, and what can be done about them in this state.

    `amend` is whether its plan can be widened by them, `accept` whether a flag takes them into the task. `in_editor`
    is set where its builder drives idumb itself, `look` is not where the plan cannot be read now. `back` are commands
    that put back files that no task may write.
    """

    phase: str
    task: str
    paths: Sequence[str]
    amend: bool = True
    accept: bool = True
    in_editor: bool = False
    look: bool = True
    back: Sequence[str] = ()


def of_deviation(found: Strays) -> tuple[Choice, ...]:
    """A task changed files that it does not declare, and the run halted with everything kept."""
    phase, task = found.phase, found.task
    again = f"idumb start {task} --retry" if found.in_editor else f"idumb resume {phase} --retry-failed"
    taken = f"{again}; idumb submit {task} --on-deviation accept"
    flags = " ".join(f"--accept-deviation {task} {shlex.quote(path)}" for path in found.paths)
    look = Choice("look", "see what the task changed", "nothing is written or run", f"idumb diff {task}")
    amend = Choice(
        "amend",
        "they belong to the task",
        "its files in the plan are widened, the contract is locked anew, and the task is tried again",
        f"idumb amend {phase} {flags}",
    )
    accept = Choice(
        "accept",
        "they belong to the task, this once",
        "the task is tried again and they are committed with it; the plan does not tell of them",
        taken if found.in_editor else f"idumb resume {phase} --on-deviation accept",
    )
    retry = Choice("retry", "they are mine, or wrong", settled(found.paths), again)
    if found.back:
        retry = Choice(
            "put-back",
            "no task may write them: put back what was there before it",
            "the task is tried again under what it declares; what is in them now stays in its checkpoint",
            "; ".join([*found.back, again]),
        )
    known = ((look, found.look), (amend, found.amend), (accept, found.accept), (retry, True))
    return tuple(choice for choice, can in known if can)


def of_failed(phase: str, task: str, *, in_editor: bool) -> tuple[Choice, ...]:
    """A task failed for good, and changed nothing but what it declares."""
    again = f"idumb start {task} --retry" if in_editor else f"idumb resume {phase} --retry-failed"
    return (
        Choice("look", "see what it changed", "nothing is written or run", f"idumb diff {task}"),
        Choice("retry", "try it again", "a new attempt is told what was wrong with the last one", again),
        Choice(
            "accept",
            "take its work as it is",
            "it counts as done by your word, and what it left is committed",
            f"idumb accept {task} --why REASON",
        ),
        Choice("skip", "leave it out", "what depends on it stays blocked", f"idumb skip {task} --why REASON"),
        start_fresh(phase),
    )


def settled(strays: Sequence[str]) -> str:
    """What has to become of undeclared changes that are not the task's before it is tried again.

    A tool's folder that ignores itself comes again with the next check, so git is to ignore it by a rule of the user.
    """
    folders = sorted({path.removesuffix(IGNORE_FILE) for path in strays if path.endswith(f"/{IGNORE_FILE}")})
    ways = "once you moved or committed them"
    if folders and all(path.startswith(tuple(folders)) for path in strays):
        named = ", ".join(f"`{folder}`" for folder in folders)
        ways = f"{ways}, or let git ignore a tool's output (add {named} to .gitignore and commit that)"
    return f"{ways}, the task is tried again under what it declares"


def of_verified(phase: str, *, on_top: bool) -> tuple[Choice, ...]:
    """A phase that is verified is to be run once more; `on_top` where that can succeed without taking it back first."""
    return (
        _LEAVE,
        Choice(
            "roll-back",
            "take its work back first",
            "files are as before the run, in a new commit; idumb undo brings the work again",
            f"idumb rollback {phase} --to start",
        ),
        *((_force(phase),) if on_top else ()),
    )


def of_verified_elsewhere(phase: str, report: str, *, on_top: bool) -> tuple[Choice, ...]:
    """The same where only a committed report says so: there is no run here that could be taken back."""
    look = Choice(
        "look",
        "see who verified it",
        "nothing is written or run; to take the work back, revert its commits with git",
        f"git log -- {shlex.quote(report)}",
    )
    return (_LEAVE, look, *((_force(phase),) if on_top else ()))


_LEAVE = Choice("leave", "leave it as it is", "nothing happens", "idumb next")


def _force(phase: str) -> Choice:
    return Choice(
        "force",
        "run it again on top of what is there",
        "a new run of every task; the work of the last one stays below it",
        f"idumb execute-phase {phase} --force",
    )


def said_by(by: str, why: str) -> str:
    """The reason of a pause that is kept: who, and why where they said so."""
    return f"paused by {by}: {why}" if why else f"paused by {by}"


def rows(choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Choices as `error.details.choices` and `data.choices` show them: id, text, consequence, command."""
    return [dataclasses.asdict(choice) for choice in choices]


def command(state: RunState) -> str:
    """What goes on with a run: while an attempt is open in an editor, who works on it submits it."""
    task = state.opened
    return f"idumb resume {state.phase}" if task is None else f"idumb submit {task.id}"


def require_not_paused(state: RunState | None) -> None:
    """A paused run goes on by `resume` alone, so that nobody does it unawares."""
    if state is None or state.state != PAUSED:
        return
    raise Refusal(
        "run.paused",
        f"Run {state.number} of phase {state.phase} is {state.reason or PAUSED}.",
        hint=f"idumb resume {state.phase} goes on; idumb pause {state.phase} shows the other ways",
        details={"choices": rows(of_paused(state))},
    )
