"""What every command on a run shares: ownership, entry checks, the newest run, rows of a task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from idumb.app import (
    blocking,
    committing,
    exhausted,
    exposing,
    going_on,
    killed,
    left_clones,
    opened,
    overtaking,
    ports,
    publish,
    relock,
    schedule,
)
from idumb.app.bench import Bench, Pace
from idumb.app.journal import Journal, operation_id
from idumb.app.services import Services
from idumb.domain import gap, outcome, step_plan
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, InputError, Interrupted, Refusal
from idumb.domain.event import BESIDE
from idumb.domain.run import EXHAUSTED, RunState, replay
from idumb.domain.settings import COMMIT_BUILDER, COMMITTED

VERIFICATION = "verification"
"""The kind of the question whether a phase counts as verified."""


@dataclass(frozen=True, slots=True)
class Owned:
    """The right to write: an operation's id and a fencing token. `opened` are the journals that were asked for."""

    services: Services
    operation: str
    fence: int
    command: str
    opened: list[Journal] = field(default_factory=list)

    def journal(self, state: RunState) -> Journal:
        """A journal whose first entry is the operation itself. `state` may have been read before this owner wrote."""
        later = self.services.log.events(run=state.id, after=state.last_seq) if state.id else ()
        if any(event.kind not in BESIDE for event in later):
            raise Refusal(
                "run.moved-on",
                f"Another idumb went on with phase {state.phase} while this command started.",
                hint="idumb status shows where it is now",
            )
        journal = Journal(
            self.services.log, self.services.reporter, operation=self.operation, fence=self.fence, state=state
        )
        overtook = overtaking.told(self.services.owner.overtaken())
        started = {"command": self.command, "worktree": self.services.worktree, **overtook}
        journal.write(journal.event("operation.started", **started))
        self.opened.append(journal)
        relock.settle(self.services, journal)
        return journal

    def record(self) -> Journal:
        """Record the operation where it belongs to no run, so that the log knows every writing command."""
        return self.journal(RunState())

    def close(self, error: str | None) -> None:
        """Say how the operation ended; one that could not begin has no end."""
        for journal in self.opened:
            self._project(journal)
            journal.write(journal.event("operation.finished", command=self.command, error=error))

    def _project(self, journal: Journal) -> None:
        """progress.json and state.json tell of where the command leaves the run."""
        from idumb.app import loading, state_file

        state = journal.state
        if state.id and publish.is_behind(self.services, state):
            with suppress(IdumbError):  # a contract that cannot be read is told of where it is needed
                publish.write_progress(self.services, loading.contract_of(self.services, state), state)
        state_file.record(self.services, journal)


@contextmanager
def owned(services: Services, command: str, *, force: bool = False) -> Iterator[Owned]:
    """Hold the work tree for the length of one command. One that lost it ends quietly: its record is the new owner's.

    `force` takes the work tree from an owner that cannot be proven dead.
    """
    fence = services.owner.acquire(command, force=force)
    try:
        operation = operation_id(services.log, services.worktree, command, services.clock.now())
        holder = Owned(services, operation, fence, command)
        try:
            killed.clear(services)
            opened.refuse(services, command)
            yield holder
            holder.close(None)
        except IdumbError as problem:
            services.owner.guard()
            with suppress(IdumbError):  # the problem itself matters more than its record
                holder.close(problem.code)
            raise
    finally:
        services.owner.release()


def why_stopped(services: Services, interrupted: Interrupted) -> str:
    """`idumb cancel` leaves its name, then sends the same signal as anybody else."""
    by = services.owner.asked()
    return f"cancelled by {by}" if by else f"stopped by {interrupted.signal_name}"


def latest_run(services: Services, phase: str) -> RunState | None:
    run = services.runs.latest(phase)
    return None if run is None else replay(services.log.events(run=run))


def run_of(services: Services, run: str) -> RunState:
    return replay(services.log.events(run=run))


def end_processes(services: Services, state: RunState) -> None:
    """What builders and checks of a run left in the user's work tree, found again by the run's mark."""
    place = services.open_workspace("here", state.id)
    services.open_checks(place, state.id).end_processes()


def require_run(services: Services, phase: str) -> RunState:
    state = latest_run(services, phase)
    if state is None:
        services.plans.phase_folder(phase)  # where there is no such phase, that is what is told
        raise Refusal(
            "run.none",
            f"Phase {phase} has not been run in this work tree.",
            hint=f"idumb execute-phase {phase}",
            details={"run": step_plan.run_command(phase)},
        )
    return state


def same_contract(services: Services, contract: Contract, state: RunState) -> None:
    """Refusal `run.contract-changed`, with every way on as a command."""
    if contract.hash == state.contract_hash or relock.adopts(state, contract.hash):
        return
    was = dict(state.plans)
    changed = [p.path for p in contract.plans if was.get(p.path) != p.sha256]
    changed += [path for path in was if path not in {p.path for p in contract.plans}]
    what = ", ".join(changed) if changed else "the configuration"
    why = f"{what} changed since run {state.number} of phase {state.phase} was locked"
    from idumb.app import changed_contract  # it needs the plans read once more, and only this refusal needs it

    choices = changed_contract.choices(services, state, changed)
    raise Refusal(
        "run.contract-changed",
        f"{why}; it goes on only as it was agreed.",
        hint=changed_contract.hint(state, choices),
        details={
            "what": f"Go on with run {state.number} of phase {state.phase}",
            "why": why,
            "evidence": [f"locked contract {state.contract_hash}", f"present contract {contract.hash}", *changed],
            "choices": going_on.rows(choices),
            "changed": changed,
            "was": state.contract_hash,
            "is": contract.hash,
        },
    )


def bench(
    services: Services,
    journal: Journal,
    contract: Contract,
    *,
    on_deviation: str | None = None,
    max_attempts: int | None = None,
    workspace: str | None = None,
    deterministic: bool = False,
) -> Bench:
    policy = journal.state.policy
    kind = workspace or committing.workspace_of(policy, journal.state.workspace)
    place = _workspace(services, journal.state, kind)
    commits = services.open_commits(place) if policy == COMMIT_BUILDER and kind == committing.CLONE else None
    return Bench(
        services,
        journal,
        contract,
        place,
        services.open_agents(place, journal.state.id),
        services.open_checks(place, journal.state.id),
        policy,
        on_deviation,
        max_attempts or services.settings.run.max_attempts,
        Pace(),
        deterministic=deterministic,
        commits=commits,
    )


def _workspace(services: Services, state: RunState, kind: str) -> ports.Workspace:
    """`here`, or a fresh clone, which has what the run did so far."""
    if state.attempted and committing.CLONE in (kind, state.workspace):
        left_clones.put_away(services, state)
    place = services.open_workspace(kind, state.id)
    if place.kind == "here":
        return place
    if state.policy not in COMMITTED:  # else it is in HEAD
        done = [t.checkpoint for t in state.tasks.values() if t.checkpoint is not None and t.status in outcome.DONE]
        for kept in sorted(done, key=lambda checkpoint: checkpoint.seq):
            place.trees.restore(kept.tree, kept.tree, kept.files, force=True)
    return place


def find_task(task: str) -> tuple[str, str]:
    """(phase, id) of a task id, whatever its case: the phase is in the id. A step's id is taken as it is spelled."""
    steps = step_plan.phase_of_task(task)
    if steps is not None:
        return steps, task
    match = re.fullmatch(r"[Tt]([Qq]?)([0-9][0-9A-Za-z.]*)-([0-9]{2,}[a-z]?)", task)
    if match is None:
        raise InputError("task.bad-id", f"{task!r} is no task id.", hint="Task ids look like T1-01; see idumb status")
    phase = match[1].upper() + match[2]
    return phase, f"T{phase}-{match[3]}"


def task_row(state: RunState, contract: Contract, task: str, shown: Mapping[str, str]) -> dict[str, Any]:
    known = state.tasks.get(task)
    row: dict[str, Any] = {"id": task, "title": contract.tasks[task].title, "status": shown[task]}
    if known is None:
        return row
    row |= {
        "attempts": known.attempts,
        "attempt": known.attempt,
        "reason": known.reason,
        "seconds": round(known.seconds, 3),
    }
    if known.checkpoint is not None:
        row |= {
            "commit": known.checkpoint.commit,
            "git_hash": known.checkpoint.git_hash,
            "snapshot": known.checkpoint.snapshot,
            "files": list(known.checkpoint.files),
            "checkpoint": publish.checkpoint_path(state.phase, task),
        }
    if shown[task] == outcome.BLOCKED:
        row["blocked_by"] = list(schedule.blockers(contract, shown, task))
        row["reason"] = blocking.why(contract, state, shown, task)
        row["actions"] = blocking.actions(contract, state, shown, task)
    return row


def pending(state: RunState) -> list[dict[str, Any]]:
    """Questions that wait for a person: of tasks that wait, failed for good or are to be accepted, and of the phase."""
    waiting = {d for t in state.tasks.values() if t.status == outcome.WAITING for d in t.decisions}
    settled = {t.id for t in state.tasks.values() if t.status in outcome.DONE or t.status == outcome.SKIPPED}
    waiting |= {i for i, d in state.decisions.items() if exposing.ACCEPTED in i and d.get("task") not in settled}
    unanswered = {i: d for i, d in state.decisions.items() if i not in state.answers}
    return [dict(d) for i, d in unanswered.items() if i in waiting or _waits_by_itself(state, d)]


def _waits_by_itself(state: RunState, question: Mapping[str, Any]) -> bool:
    """Whether a question waits though no task does: one about the phase, or about a task that failed for good."""
    if question.get("task") is None:
        return not _over(state, question)
    return question.get("kind") == EXHAUSTED and exhausted.stands(state, question)


def _over(state: RunState, question: Mapping[str, Any]) -> bool:
    """A question about a verification waits only while no later one stands in its place."""
    if question.get("kind") != VERIFICATION:
        return False
    return state.verification is None or state.verification.get("decision") != question["id"]


def _asks_for_a_word(verification: Mapping[str, Any]) -> bool:
    return verification["status"] == "partial" and verification.get("decision") is not None


def _past_skipped(contract: Contract, state: RunState, shown: Mapping[str, str]) -> list[str]:
    """What to do about tasks that are left out while others need them; empty where something can still run."""
    if not blocking.is_stuck(shown):
        return []
    held = blocking.groups(contract, state, shown)
    return [*(way for one in held for way in one["actions"]), f"idumb skip {held[0]['tasks'][0]} --why REASON"]


def next_commands(
    contract: Contract,
    state: RunState,
    shown: Mapping[str, str],
    ending: str,
    verification: Mapping[str, Any] | None,
    *,
    asked: bool = True,
    first: str | None = None,
) -> list[str]:
    """What a user can do now, the most likely first. `asked` tells whether a question waits for a person.

    `first` is the task that ended the run.
    """
    phase = contract.phase
    if schedule.settled(shown):
        if verification is not None and verification["status"] == "waiting":
            return ["idumb decisions", f"idumb verify-work {phase}"]
        if verification is not None and _asks_for_a_word(verification):
            gaps = [f"idumb verify-work {phase} --gaps"] if gap.of_record(verification) else []
            return ["idumb decisions", f"idumb verify-work {phase}", *gaps]
        if verification is not None and verification["status"] == "partial":
            return [f"idumb verify-work {phase} --gaps", f"idumb verify-work {phase}"]
        if verification is None or verification["status"] != "passed":
            return [f"idumb verify-work {phase}"]
        return ["idumb next", f"idumb rollback {phase} --to start", "idumb undo"]
    if ending == "waiting":
        return [*(["idumb decisions"] if asked else []), f"idumb resume {phase}", f"idumb rollback {phase} --to start"]
    failed = sorted((t for t, s in shown.items() if s == outcome.FAILED), key=lambda t: t != first)
    judged = [f"idumb verify-work {phase}"] if any(s in outcome.DONE for s in shown.values()) else []
    if not failed:
        return [*(_past_skipped(contract, state, shown) or [f"idumb resume {phase}"]), *judged]
    return [
        f"idumb debug {phase} --task {failed[0]}",
        *(["idumb decisions"] if asked else []),
        f"idumb show {failed[0]}",
        f"idumb resume {phase} --retry-failed",
        f"idumb accept {failed[0]} --why REASON",
        f"idumb skip {failed[0]} --why REASON",
        *judged,
        f"idumb rollback {phase} --to start",
    ]
