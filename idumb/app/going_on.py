"""The ways on from a run that stands still: each is a choice with its consequence and the command that takes it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from typing import Any

from idumb.domain import step_plan
from idumb.domain.decision import Choice
from idumb.domain.errors import Refusal
from idumb.domain.paths import IGNORE_FILE
from idumb.domain.plan import STRICT
from idumb.domain.run import PAUSED, RunState


def go_on(phase: str) -> Choice:
    return Choice(
        "go-on",
        "go on with the plan as it is",
        "finished tasks stay finished; the next one starts",
        f"idumb resume {phase}",
    )


def replan(phase: str) -> Choice:
    return Choice(
        "replan",
        "change the plan first",
        "edit its tasks, look at the difference, and let the run take it over; done, unchanged tasks are kept",
        f"idumb plan-diff {phase}; idumb amend {phase} --from-file",
    )


def start_fresh(phase: str) -> Choice:
    return Choice(
        "start-fresh",
        "take all of its work back and start anew",
        "files are as before the run, in a new commit; nothing is lost, and idumb undo brings the work again",
        f"idumb rollback {phase} --to start",
    )


def of_paused(phase: str) -> tuple[Choice, ...]:
    return (replan(phase), go_on(phase), start_fresh(phase))


def of_changed_contract(state: RunState, changed: Sequence[str], ref: str) -> tuple[Choice, ...]:
    """Plans (paths in `changed`; none: the configuration) are not as the run locked them, whose bytes `ref` keeps."""
    phase = state.phase
    locked = {path for path, _ in state.plans}
    back = "; ".join(f"git show {_kept(ref, path)} > {shlex.quote(path)}" for path in changed if path in locked)
    put_back = Choice("put-back", "put it back", "the run goes on as it was agreed; the change is gone", back or None)
    fresh = Choice(
        "start-fresh",
        "start a run of what is there now",
        "done, unchanged tasks are kept; it needs your consent anew",
        step_plan.run_command(phase),
    )
    if state.opened is not None:  # neither an amendment nor a new run begins while somebody works on a task
        task = state.opened.id
        given = "its work is kept in a snapshot and put back; the change can then be taken over"
        give_up = Choice("give-up", "end the open attempt first", given, f"idumb give-up {task} --why REASON")
        then = Choice("put-back", "put it back", "the attempt can be submitted as it was agreed", back or None)
        return (give_up, then)
    if not changed:
        return (put_back, fresh)
    look = Choice("look", "see what changed", "nothing is written or run", f"idumb plan-diff {phase}")
    approve = Choice(
        "approve",
        "approve the plan as it is now",
        "nothing is run; a strict run takes a change over only once it is approved",
        f"idumb approve {phase}",
    )
    return (
        look,
        *((approve,) if state.mode == STRICT else ()),
        Choice(
            "amend",
            "take the change as an amendment",
            "the difference is shown, all is checked again, and the run goes on under the next version",
            f"idumb amend {phase} --from-file",
        ),
        put_back,
        fresh,
    )


def hint_of_changed_plan(state: RunState) -> str:
    """The commands that show a changed plan and take it over, in the order in which they succeed."""
    phase = state.phase
    if state.opened is not None:
        task = state.opened.id
        return f"idumb give-up {task} --why REASON ends the attempt; or put the change back and idumb submit {task}"
    first = f"idumb approve {phase}, then " if state.mode == STRICT else ""
    return f"idumb plan-diff {phase} shows what; {first}idumb amend {phase} --from-file takes it over"


def of_deviation(
    phase: str, task: str, paths: Sequence[str], *, in_editor: bool = False, inner: bool = False
) -> tuple[Choice, ...]:
    """A task changed files that it does not declare, and the run halted with everything kept.

    `in_editor`: its builder drives idumb itself, so it is begun and submitted once more. `inner`: some are in another
    repository, so they can belong to no task.
    """
    again = f"idumb start {task} --retry"
    taken = f"{again}; idumb submit {task} --on-deviation accept"
    flags = " ".join(f"--accept-deviation {task} {shlex.quote(path)}" for path in paths)
    choices = (
        Choice("look", "see what the task changed", "nothing is written or run", f"idumb diff {task}"),
        Choice(
            "amend",
            "they belong to the task",
            "its files in the plan are widened, the contract is locked anew, and the task is tried again",
            f"idumb amend {phase} {flags}",
        ),
        Choice(
            "accept",
            "they belong to the task, this once",
            "the task is tried again and they are committed with it; the plan does not tell of them",
            taken if in_editor else f"idumb resume {phase} --on-deviation accept",
        ),
        Choice(
            "retry",
            "they are mine, or wrong",
            settled(paths),
            again if in_editor else f"idumb resume {phase} --retry-failed",
        ),
    )
    return tuple(one for one in choices if not inner or one.id not in {"amend", "accept"})


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


def _kept(ref: str, path: str) -> str:
    return shlex.quote(f"{ref}:{path.rsplit('/', 1)[-1]}")


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
        details={"choices": rows(of_paused(state.phase))},
    )
