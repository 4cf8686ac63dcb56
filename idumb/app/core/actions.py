"""The one place that knows what can be done next about a phase, a stopped run, a failed or a blocked task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.app.core import schedule
from idumb.app.core.questions import EXHAUSTED
from idumb.app.core.services import Services
from idumb.domain import failures, outcome, wording
from idumb.domain.action import HISTORY, REASON, Action, Choice, Decision
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans import phase_ids
from idumb.domain.plans.plan import IRREVERSIBLE, STRICT
from idumb.domain.proof import verification
from idumb.domain.runs.run import COMPLETED, DROPPED, PAUSED, RunState

UNPLANNED, INVALID, READY, CHANGED, ELSEWHERE = "not planned", "invalid", "ready", "changed", "recorded"
"""The states of a phase without a run of its present contract; with a run, its state is that of the run."""

NEXT = Action("next")
DECISIONS = Action("decisions")


class Situation(Struct, frozen=True, kw_only=True):
    """What the next steps of a phase depend on.

    - `standing`: one of the states above, or of its run. `run`: that of the present contract.
    - `statuses`: of all tasks. `first`: the task that a command was about.
    - `opened`: the task that is open in an editor. `uncommitted`: one whose work passed and git refused the commit.
    - `in_editor`: the tasks that are built in an editor.
    - `restoring`: how an interrupted rollback or undo is finished.
    - `back`: what leads back to the run's branch; None there.
    - `rewritten`: the branch lost commits of the run, so that a person is asked first.
    - `asked`: the subjects of the questions that wait for a person. `plans`: whether an agent can write a plan.
    - `why`: why the run stopped, or why the plan cannot be used.
    """

    phase: str
    standing: str
    contract: Contract | None = None
    run: RunState | None = None
    statuses: Mapping[str, str] = field(default_factory=dict)
    first: str | None = None
    opened: str | None = None
    uncommitted: str | None = None
    in_editor: frozenset[str] = frozenset()
    restoring: Action | None = None
    back: Action | None = None
    rewritten: bool = False
    asked: tuple[str, ...] = ()
    plans: bool = False
    why: str = ""

    @property
    def ready(self) -> tuple[str, ...]:
        return tuple(task for task, status in self.statuses.items() if status in (outcome.READY, outcome.RUNNING))

    @property
    def failed(self) -> tuple[str, ...]:
        """The failed tasks; first the one that the command was about."""
        tasks = (task for task, status in self.statuses.items() if status == outcome.FAILED)
        return tuple(sorted(tasks, key=lambda task: task != self.first))


def give_up(task: str) -> Action:
    return Action.of("give-up", task, "--why", REASON)


def undo_drop(run: RunState) -> Action:
    """Return what takes up the work again that a person dropped."""
    return Action.of("undo", "--yes", "--operation", [*run.operations][-1])


def available(now: Situation) -> tuple[Action, ...]:
    """Return what a user can do now, the most likely first; each can succeed. Empty if nothing is left to do."""
    if now.opened is not None:
        steps: Iterable[Action] = (Action.of("submit", now.opened, consequence=now.why), give_up(now.opened))
    elif now.restoring is not None:
        steps = (now.restoring,)
    elif now.run is None:
        steps = _before_a_run(now)
    elif now.back is not None and now.run.state != COMPLETED:
        steps = (now.back, *(Action.of("show", task, "--debug") for task in now.failed[:1]))
    elif now.run.state == DROPPED:
        steps = (undo_drop(now.run),)
    else:
        steps = _of_completed(now, now.run) if now.run.state == COMPLETED else _of_run(now, now.run)
    unique: dict[str, Action] = {}
    for step in steps:
        unique.setdefault(str(step), step)
    return tuple(unique.values())


def _before_a_run(now: Situation) -> Iterator[Action]:
    if now.standing == INVALID:
        yield Action.of("check-plan", now.phase, consequence=now.why)
        return
    yield from _answer(now)
    if now.standing == UNPLANNED:
        template = () if now.plans else ("--template",)
        yield Action.of("plan-phase", now.phase, *template, consequence=now.why)
        return
    first = now.ready[0] if now.ready else ""
    words = f"{now.why}{', at' * bool(first)}" if now.standing == CHANGED else f"starts{' with' * bool(first)}"
    words = f"{words} {first}".rstrip()
    if first in now.in_editor:
        yield Action.of("start", first, consequence=f"phase {now.phase} {words}, which is built in the editor")
        return
    yield Action.of("execute-phase", now.phase, consequence=now.why if now.standing == ELSEWHERE else f"it {words}")


def _of_completed(now: Situation, run: RunState) -> Iterator[Action]:
    """Every task is done."""
    yield from _answer(now)
    words = "every task is done, but the phase is not verified"
    if not run.verified:
        if run.verification is not None and verification.gaps_of(run.verification):
            yield Action.of("verify-work", now.phase, "--gaps", consequence=words)
        yield Action.of("verify-work", now.phase, consequence=words)
        return
    yield NEXT
    yield from _ways_back(now)


def _of_run(now: Situation, run: RunState) -> Iterator[Action]:
    """A task is left to do, or a question to answer. Questions about failed tasks do not keep others from running."""
    if now.rewritten:
        if HISTORY in now.asked:
            yield from _answer(now)
        yield Action.of("resume", now.phase, consequence=now.why)
        return
    goes_on = bool(now.ready) or run.state == PAUSED
    again = [_again(now, task) for task in now.failed[:1]]
    if not goes_on:
        yield from (action for action in again if action.tool is not None)
    if not goes_on or any(subject != EXHAUSTED for subject in now.asked):
        yield from _answer(now)
    yield from _go_on(now, run)
    yield from again
    for task in now.failed[:1]:
        yield Action.of("show", task, "--debug")
        yield Action.of("show", task)
        yield Action.of("take", task, consequence="correct it yourself; idumb submit judges your files")
        yield Action.of("accept", task, "--why", REASON)
        yield Action.of("skip", task, "--why", REASON)
    yield from _answer(now)
    if goes_on and not now.failed:
        return
    yield from _unblock(now)
    if any(status in outcome.DONE for status in now.statuses.values()):
        yield Action.of("verify-work", now.phase, consequence="what is done so far is judged; the phase stays partial")
    yield from _ways_back(now)


def _again(now: Situation, task: str) -> Action:
    words = f"{len(now.failed)} failed"
    if task in now.in_editor:
        return Action.of("start", task, "--retry", consequence=words)
    return Action.of("resume", now.phase, "--retry-failed", consequence=words)


def _answer(now: Situation) -> Iterator[Action]:
    if now.asked:
        yield replace(DECISIONS, consequence=f"phase {now.phase} needs an answer")


def _go_on(now: Situation, run: RunState) -> Iterator[Action]:
    """Continue with tasks that can run, or that wait for something other than an answer."""
    if now.uncommitted is not None:
        yield Action.of("submit", now.uncommitted, consequence="its work passed, but git refused the commit")
    elif run.state != PAUSED and now.ready and now.ready[0] in now.in_editor:
        yield Action.of("start", now.ready[0], consequence="it is next, and is built in the editor")
    elif now.ready or run.state == PAUSED or outcome.WAITING in now.statuses.values() or _nothing_waits(now):
        failure = run.tasks[now.first].attempt.failure if now.first in run.tasks else None
        words = now.why or "its run is not finished"
        if now.failed and now.asked:
            words = "other tasks can run; failed tasks need an answer (idumb decisions)"
        yield Action.of(failures.kind(failure).again, now.phase, consequence=words)


def _nothing_waits(now: Situation) -> bool:
    return not now.failed and not is_stuck(now.statuses)


def _unblock(now: Situation) -> Iterator[Action]:
    """What unblocks tasks, if nothing else can run."""
    if now.contract is None or now.ready:
        return
    groups = blocked_groups(now.contract, now.run, now.statuses)
    for group in groups:
        yield from (replace(way, consequence=blocked_summary(groups)) for way in group["actions"])
    if is_stuck(now.statuses):
        yield Action.of("skip", groups[0]["tasks"][0], "--why", REASON)


def _ways_back(now: Situation) -> Iterator[Action]:
    """The rollback of the whole phase; nothing if a completed task is irreversible, because it is refused."""
    if now.contract is None or now.run is None or not now.run.attempted:
        return
    done = (now.contract.tasks[task] for task, status in now.statuses.items() if status in outcome.DONE)
    if not any(task.rollback.kind == IRREVERSIBLE and not task.is_human for task in done):
        yield Action.of("rollback", now.phase, "--to", "start")


# Tasks that wait for others

_DONE_TO = {outcome.FAILED: "failed", outcome.SKIPPED: "was skipped"}


def why_blocked(contract: Contract, state: RunState | None, statuses: Mapping[str, str], task: str) -> str:
    """`waits for T1-01 (skipped: no time)`, with the tasks in between."""
    words = []
    for needed in schedule.blockers(contract, statuses, task):
        task_state = state.tasks.get(needed) if state is not None else None
        reason = task_state.reason if task_state is not None and statuses[needed] in _DONE_TO else ""
        words.append(f"{needed} ({statuses[needed]}{f': {reason}' if reason else ''})")
    return f"waits for {wording.listed(words)}" if words else "the plan has errors"


def unblocking(contract: Contract, state: RunState | None, statuses: Mapping[str, str], task: str) -> list[Action]:
    """Return what unblocks a task and can succeed now; [] if the task is not blocked."""
    if statuses[task] != outcome.BLOCKED:
        return []
    return _unblocking(contract, state, statuses, task, schedule.root_causes(contract, statuses, (task,))[task])


def _unblocking(
    contract: Contract, state: RunState | None, statuses: Mapping[str, str], task: str, causes: Sequence[str]
) -> list[Action]:
    retries = any(statuses[cause] == outcome.FAILED for cause in causes)
    retry = [Action.of("resume", contract.phase, "--retry-failed")] if retries else []
    accept = [Action.of("accept", cause, "--why", REASON) for cause in causes]
    return [*retry, *accept, *_drop_dependency(contract, state, statuses, task)]


def _drop_dependency(
    contract: Contract, state: RunState | None, statuses: Mapping[str, str], task: str
) -> list[Action]:
    """The amendment that drops the dependency.

    A strict plan is approved as a whole, so only its author changes it. Plans of workflows are never amended.
    """
    plan = contract.plan_of[task]
    if state is None or state.mode == STRICT or plan.dialect == phase_ids.STEP_PLAN or plan.workflow:
        return []
    droppable = [d for d in schedule.blockers(contract, statuses, task) if d in contract.tasks[task].depends_on]
    if not droppable:
        return []
    flags = [word for needed in droppable for word in ("--drop-dependency", task, needed)]
    return [Action.of("amend", contract.phase, *flags)]


def blocked_groups(contract: Contract, state: RunState | None, statuses: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each failed or skipped task that blocks others: `by`, `status`, `reason`, `tasks`, `actions`."""
    groups: dict[str, dict[str, Any]] = {}
    blocked = [task for task in contract.order if statuses[task] == outcome.BLOCKED]
    for task, causes in schedule.root_causes(contract, statuses, blocked).items():
        ways = _unblocking(contract, state, statuses, task, causes)
        for cause in causes:
            task_state = state.tasks.get(cause) if state is not None else None
            reason = task_state.reason if task_state is not None else ""
            new = {"by": cause, "status": statuses[cause], "reason": reason, "tasks": [], "actions": {}}
            group = groups.setdefault(cause, new)
            group["tasks"].append(task)
            about = (way for way in ways if cause in way.arguments or "--retry-failed" in way.arguments)
            group["actions"].update(dict.fromkeys(about))
    return [{**group, "actions": list(group["actions"])} for group in groups.values()]


def blocked_summary(groups: list[dict[str, Any]]) -> str:
    """One line that says why nothing more can run."""
    return "; ".join(
        f"{wording.listed(group['tasks'])} {'stays' if len(group['tasks']) == 1 else 'stay'} blocked,"
        f" because {group['by']} {_DONE_TO[group['status']]}{f': {reason}' if (reason := group['reason']) else ''}"
        for group in groups
    )


def is_stuck(statuses: Mapping[str, str]) -> bool:
    """Whether every unfinished task is blocked, so that nothing can run until the user decides about skipped tasks."""
    held = {outcome.BLOCKED, *outcome.ENDED}
    return outcome.BLOCKED in statuses.values() and set(statuses.values()) <= held


def finishing(state: RunState) -> Action | None:
    """Return what finishes an interrupted rollback or undo."""
    intended = state.restoring
    if intended is None:
        return None
    words = f"finish it first: {intended['words']} was interrupted"
    if intended["command"] != "rollback":
        return Action.of("undo", consequence=words)
    return Action.of("rollback", state.phase, "--to", intended["said"]["to"], "--yes", consequence=words)


# Choices of refusals


def start_fresh(phase: str) -> Choice:
    return Choice(
        "start-fresh",
        "roll back all of its work and start again",
        "a new commit restores the files from before the run; nothing is lost, and idumb undo restores the work",
        Action.of("rollback", phase, "--to", "start"),
    )


def for_paused(state: RunState) -> tuple[Choice, ...]:
    phase, means = state.phase, "finished tasks stay finished; the next task starts"
    edit = "edit its tasks, review the difference, and amend the run; finished tasks that did not change are kept"
    # A strict run takes over a changed plan only after it is approved.
    approve = [Action.of("approve", phase)] if state.mode == STRICT else []
    steps = (Action.of("check-plan", phase, "--diff"), *approve, Action.of("amend", phase, "--from-file"))
    go_on = Choice("go-on", "continue with the plan as it is", means, Action.of("resume", phase))
    return (Choice("replan", "change the plan first", edit, "; ".join(map(str, steps))), go_on, start_fresh(phase))


def stopped_by(by: str, why: str) -> str:
    """The recorded reason of a stop that a person asked for."""
    return f"stopped by {by}: {why}" if why else f"stopped by {by}"


def offer_of(question: Decision, **more: Any) -> dict[str, Any]:
    """The details of a refusal that puts a question to the user."""
    return offer(question.what, question.why, question.evidence, question.choices, **more)


def offer(blocked: str, why: str, evidence: Iterable[str], choices: Sequence[Choice], **more: Any) -> dict[str, Any]:
    """The details of a refusal that offers choices."""
    return {"what": blocked, "why": why, "evidence": list(evidence), "choices": choice_rows(choices), **more}


def require_yes(services: Services, question: Decision, refusal: Refusal) -> None:
    """Ask to confirm; refuse without a yes. If a terminal has just `asked`, the text does not repeat the question."""
    if not question.agreed(services.asker.ask(question)):
        refusal.step, refusal.details["asked"] = question.choices[0].command, services.asker.interactive
        raise refusal


def choice_rows(choices: Sequence[Choice]) -> list[dict[str, Any]]:
    """Choices as `error.details.choices` and `data.choices` show them: id, text, consequence, command."""
    return [choice.row() for choice in choices]


def continuing(state: RunState) -> Action:
    """The command that continues a run; an attempt that is open in an editor is submitted first."""
    task = state.opened
    return Action.of("resume", state.phase) if task is None else Action.of("submit", task.id)


def require_not_paused(state: RunState | None) -> None:
    """Refusal `run.paused`: only `resume` continues a paused run."""
    if state is None or state.state != PAUSED:
        return
    raise Refusal(
        "run.paused",
        f"Run {state.number} of phase {state.phase} is {state.reason or PAUSED}.",
        hint=Action.of("resume", state.phase),
        details={"choices": choice_rows(for_paused(state))},
    )
