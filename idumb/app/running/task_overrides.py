"""Accept or skip a task by a person's decision, with a reason."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from idumb.app.attempt import handoff_writer, projections
from idumb.app.contract import changed_contract, loading
from idumb.app.core import blocked_tasks, next_actions, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services, attempt_ref
from idumb.app.session import failure_report, next_steps, operation
from idumb.app.worktree import exposed_secrets, preconditions, staged_changes
from idumb.domain import outcome, paths, wording
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import InputError, Refusal
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import Checkpoint, TaskState
from idumb.domain.settings import COMMITTED

_WORDS = {"task.accepted": "accept", "task.skipped": "skip"}


def accept(
    services: Services, task: str, why: str, who: str, *, then: Callable[[Journal], None] = lambda _: None
) -> Result:
    """A person says that a task is good as it is; what it changed is committed under their reason.

    `then` is done in the same operation.
    """
    return _override(services, task, why, who, "task.accepted", then=then)


def skip(
    services: Services,
    task: str,
    why: str,
    who: str,
    *,
    yes: bool = False,
    tell: Callable[[str], None] | None = None,
    then: Callable[[Journal], None] = lambda _: None,
) -> Result:
    """A person says that a task is not to be done. What depends on it stays blocked, which `tell` is told before."""

    def confirm(contract: Contract, task_id: str, reason: str) -> None:
        _confirm_skip(services, contract, task_id, reason, yes=yes, tell=tell)

    return _override(services, task, why, who, "task.skipped", confirm, then)


def _confirm_skip(
    services: Services, contract: Contract, task: str, why: str, *, yes: bool, tell: Callable[[str], None] | None
) -> None:
    """A person at the terminal says yes to what it leads to; else Refusal `skip.not-confirmed`, and nothing is done."""
    held = schedule.dependents(contract, task)
    if not held or yes:
        return
    question = _skip_question(contract, task, why, held)
    if not services.asker.interactive:
        if tell is not None:
            tell(f"{question.what}.")
        return
    answer = services.asker.ask(question)
    if answer is None or answer.choice != "skip":
        raise Refusal(
            "skip.not-confirmed",
            f"Nothing was done: {question.what}.",
            hint=question.choices[0].command,
            details={
                "what": question.what,
                "why": question.why,
                "evidence": list(question.evidence),
                "choices": next_actions.rows(question.choices),
                "tasks": list(held),
            },
        )


def _skip_question(contract: Contract, task: str, why: str, held: Sequence[str]) -> Decision:
    stay = "stays" if len(held) == 1 else "stay"
    drop = f"idumb amend {contract.phase} --drop-dependency {held[0]} {task}"
    return Decision(
        id=f"{task}.skip",
        kind="skip",
        task=task,
        what=f"{task} is to be left out, and {wording.listed(held)} {stay} blocked",
        why="What depends on a skipped task runs only once somebody accepts that task or drops the dependency.",
        evidence=tuple(f"{t} {contract.tasks[t].title} needs {task}" for t in held),
        choices=(
            Choice(
                "skip",
                "leave it out",
                f"{wording.listed(held)} {stay} blocked; idumb accept {task} --why REASON or {drop} lets them run",
                shlex.join(["idumb", "skip", task, "--why", why, "--yes"]),
            ),
            Choice("no", "leave everything", "nothing happens"),
        ),
    )


def _override(
    services: Services,
    task: str,
    why: str,
    who: str,
    kind: str,
    confirm: Callable[[Contract, str, str], None] = lambda *_: None,
    then: Callable[[Journal], None] = lambda _: None,
) -> Result:
    if not why.strip():
        raise InputError("task.no-reason", "A reason is needed.", hint=f"--why 'the reason' for {task}")
    contract, state, task_id = _find(services, task)
    preconditions.require_settled(state)
    known = state.tasks[task_id]
    taken_back = known.status == outcome.SKIPPED and kind == "task.accepted"
    if (known.status in outcome.DONE or known.status == outcome.SKIPPED) and not taken_back:
        raise Refusal(
            "task.already-done",
            f"{task_id} is {known.status} already.",
            hint=f"idumb show {task_id}",
            details={"task": task_id},
        )
    confirm(contract, task_id, why)
    if kind == "task.accepted":
        preconditions.require_guarded(services, state)
        preconditions.require_repository(services)
        preconditions.require_branch(services, state)
    with operation.owned(services, _WORDS[kind]) as owned:
        journal = owned.journal(state)
        said: dict[str, Any] = {"reason": why, "by": who, "commit": None}
        guarded = failure_report.protected(services, state, task_id) if kind == "task.accepted" else ()
        if kind == "task.accepted":
            said |= _take_work(services, journal, contract, task_id, why, guarded)
        handed = (
            handoff_writer.of_accepted(services, journal, contract, task_id, why) if kind == "task.accepted" else ()
        )
        journal.write(journal.event(kind, task_id, **said), *handed)
        then(journal)
        projections.ending(services, contract, journal.state)
    shown = schedule.statuses(contract, state)
    row = next_steps.task_row(state, contract, task_id, shown)
    left = list(state.tasks[task_id].work.touched)
    held = blocked_tasks.groups(contract, state, shown)
    after = [f"idumb resume {state.phase}"]
    if blocked_tasks.is_stuck(shown):  # another run would change nothing
        after = list(dict.fromkeys(way for one in held for way in one["actions"]))
    data = {"task": row, "commit": said["commit"], "left": left, "blocked": held, "next": after}
    kept = services.history.uncommitted(guarded)
    words = f"{wording.listed(kept)}: protected, so idumb leaves what {task_id} wrote there uncommitted; look at it"
    return Result(data, warnings=(words,) if kept else ())


def _take_work(
    services: Services, journal: Journal, contract: Contract, task: str, why: str, guarded: Sequence[str]
) -> dict[str, Any]:
    """What an accepted task left: the paths it touched, and declared ones that a person edited since.

    Protected paths are neither delivered nor committed: a person accepts the task, and no task may write those.
    """
    known = exposed_secrets.found_again(services, journal.state.tasks[task])
    if known.work.base is None:
        return {}
    commits = journal.state.policy in COMMITTED
    if journal.state.workspace == "clone" and known.checkpoint is not None and not known.work.touched:
        files = [path for path in known.checkpoint.files if path not in guarded]
        if commits:
            exposed_secrets.require_consent(services, journal, task, known.checkpoint.tree, files)
        _deliver(services, known, known.checkpoint, files)
    declared = services.history.uncommitted(ledger.written_paths(contract.tasks[task].files))
    mended = (p for p in declared if not paths.matches_any(p, paths.OWN_FILES))
    touched = tuple(dict.fromkeys((*known.work.touched, *mended)))
    own = tuple(path for path in touched if path not in guarded)
    if commits:
        exposed_secrets.require_consent(services, journal, task, services.trees.scan(own), own)
    commit = _commit(services, journal, contract, task, why, own)
    # Kept under a ref, for a rollback compares with it when git has long collected what nothing names.
    ref = attempt_ref(services, journal.state.id, task, known.attempt.number, "accepted")
    left = services.trees.keep(ref, services.trees.scan(touched), f"{task}, accepted")
    return {"commit": commit, "touched": list(touched), "left": left.tree}


def _deliver(services: Services, known: TaskState, kept: Checkpoint, files: Sequence[str]) -> None:
    """What a failed attempt made in a clone never reached the user's tree; accepted, it does."""
    conflicts = services.trees.restore(kept.tree, known.work.base or kept.tree, files)
    if conflicts:
        named = ", ".join(c.path for c in conflicts)
        raise Refusal(
            "task.changed-since",
            f"{known.id} was made in a clone, and these files changed here since: {named}",
            hint="Move your changes away, then say it again",
            details={
                "paths": [c.path for c in conflicts],
                "task": known.id,
                "choices": next_actions.rows(
                    (
                        Choice(
                            "move",
                            "move your changes away, then accept it again",
                            "the files of the clone are delivered",
                            f"idumb accept {known.id} --why REASON",
                        ),
                    )
                ),
            },
        )


def _commit(
    services: Services, journal: Journal, contract: Contract, task: str, why: str, touched: tuple[str, ...]
) -> str | None:
    """Commit what the accepted task left, if the run's policy commits and there is something."""
    if journal.state.policy not in COMMITTED or not touched:
        return None
    title = contract.tasks[task].title
    message = f"{title}\n\nAccepted: {why}\n\nIdumb-Run: {journal.state.id}\nIdumb-Task: {task}\nIdumb-Accepted: true\n"
    changed = services.history.uncommitted(touched)
    ref = attempt_ref(services, journal.state.id, task, journal.state.tasks[task].attempt.number, "accepted-staged")
    present = services.trees.scan(changed)
    staged = staged_changes.hold(services, ref, changed, (present,), f"what was staged when {task} was accepted")
    commit = preconditions.commit_or_fail(services, changed, message, f"git refused the commit of {task}")
    staged_changes.tell_replaced(services, ref, staged, task)
    return commit


def _find(services: Services, task: str) -> tuple[Contract, RunState, str]:
    """The contract and newest run of a task's phase, and the id as the plan spells it."""
    phase, task_id = run_lookup.find_task(task)
    preconditions.require_initialised(services)
    loaded = loading.of(services, phase)
    contract = loading.runnable(services, loaded)
    if task_id not in contract.tasks:
        raise InputError(
            "task.unknown",
            f"Phase {phase} has no task {task_id}.",
            hint=f"idumb graph {phase}",
            details={"phase": phase},
        )
    state = run_lookup.require_run(services, contract.phase)
    changed_contract.same_contract(services, contract, state)
    return contract, state, task_id
