"""A dry run: the whole run in a throw-away copy of the work tree, and what it would have changed.

Plans, configuration and consent are the user's; snapshots, events, reports and results are the copy's and go with it.
Tasks whose effects a copy cannot hold, and those of a person, are not rehearsed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from idumb.app.attempt import questions, record
from idumb.app.contract import carried_tasks, contract_versions, environment_lock, legacy_claims
from idumb.app.core import next_actions, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Rehearsals, Services
from idumb.app.running import admission, run_lifecycle
from idumb.app.running.run_request import Request
from idumb.app.session import operation
from idumb.app.worktree import exposed_secrets, run_branch, task_base
from idumb.domain import errors, outcome, paths
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import IdumbError, Refusal
from idumb.domain.plans import step_plan
from idumb.domain.plans.plan import REVERSIBLE, Task
from idumb.domain.proof import ledger
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.domain.settings import COMMIT_TASK

Counts = Mapping[str, tuple[int | None, int | None]]

# Questions that a plan does not foresee: a run that comes to one stops.
_UNFORESEEN = frozenset({questions.DEVIATION, questions.FAILURE_KIND, exposed_secrets.SECRET})
_VERBS = {(False, True): "created", (True, False): "deleted", (True, True): "modified"}


@dataclass(frozen=True, slots=True)
class _Rehearsal:
    """How the rehearsal ended. `before` is the user's tree, `after` the copy's; `held` are tasks not rehearsed."""

    services: Services
    contract: Contract
    state: RunState
    result: Result
    before: str
    after: str
    held: Mapping[str, str]
    earlier: frozenset[str]


def rehearse(services: Services, request: Request, rehearsals: Rehearsals) -> Result:
    """Run a phase where nothing of the user's can be changed; the predicted diff and what made it.

    Consent is needed as for a run, for commands are run. The same refusals as `execute`.
    """
    with _suggesting_dry_runs(_STARTING):
        contract, known = _prepared(services, request)
    run = f"idumb {request.command} {step_plan.path_of(contract.phase) or contract.phase}"
    wanted = {path for task in contract.tasks.values() for path in ledger.named_paths(task.files)}
    claims = legacy_claims.claims(services, contract, known or RunState())
    with rehearsals.open(sorted(wanted)) as copy, _suggesting_dry_runs(_RESUMING, f"{run} --dry-run"):
        told = legacy_claims.told_of(copy, contract.phase, claims) if claims else {}
        return _answer(_run(copy, contract, known, request, sorted(wanted), told), services.settings.git.commit, run)


def _prepared(services: Services, request: Request) -> tuple[Contract, RunState | None]:
    """The contract and the user's newest run of its phase, where a run could begin or go on now."""
    contract = admission.admit(services, request)
    _require_idle(services)
    known = run_lookup.latest_run(services, contract.phase)
    known = contract_versions.foreseen(known, contract.hash) if known is not None else None
    unfinished = admission.unfinished_run(services, contract, force=request.force)
    if unfinished is None:
        admission.require_unverified(services, contract, force=request.force)
    elif unfinished.restoring is not None:
        raise Refusal(
            "rollback.unfinished",
            f"{unfinished.restoring['words']} was ended in the middle.",
            hint=f"idumb resume {contract.phase} finishes it first",
            details={"phase": contract.phase},
        )
    else:
        accepted = request.accept_changed
        environment_lock.require_same(services, unfinished, contract, mode=request.mode, accepted=accepted)
    return contract, known


def _require_idle(services: Services) -> None:
    """A tree in which a run is at work is no state to start from."""
    holder = services.owner.holder()
    if holder is not None:
        raise Refusal(
            "lock.held",
            f"Process {holder['pid']} ({holder['command']}) is at work in this work tree.",
            hint="wait for it to end, or stop it: idumb cancel",
            details={name: holder.get(name) for name in ("pid", "host", "since", "command", "standing")},
        )


_STARTING = re.compile(r"(?P<run>(?>\bidumb execute(?:-phase)? [\w./-]*\w(?: --force)?))(?! --dry-run)")
_RESUMING = re.compile(r"\bidumb resume (?>[\w./-]*\w)(?: --retry-failed)?")


@contextmanager
def _suggesting_dry_runs(commands: re.Pattern[str], instead: str = r"\g<run> --dry-run") -> Iterator[None]:
    """Who rehearses wants no run: each offered command that would start one becomes that of the next dry run.

    Before the copy is there, `idumb resume` stays what it is: it finishes what a dry run cannot start from.
    """

    def of(words: str | None) -> str | None:
        return words and commands.sub(instead, words)

    try:
        yield
    except IdumbError as problem:
        problem.hint = of(problem.hint)
        if choices := problem.details.get("choices"):
            problem.details["choices"] = [{**row, "command": of(row["command"])} for row in choices]
        raise


def _run(
    copy: Services,
    contract: Contract,
    known: RunState | None,
    request: Request,
    also: Sequence[str],
    told: Mapping[str, Any],
) -> _Rehearsal:
    """`told` is what an old iDumb says of the tasks, as far as the run would heed it."""
    with operation.owned(copy, request.command) as owned:
        journal = owned.journal(RunState())
        if told:
            journal.write(journal.event(legacy_claims.EVENT, **told))
        before = copy.trees.scan(also)
        if known is not None and known.branch == copy.history.head().branch:
            task_base.put_back_unfinished(copy, contract, known)
        run_branch.begin(copy, contract, request.branch)
        run_lifecycle.start_run(copy, journal, contract, request)
        earlier = _carry_over(journal, contract, None if request.force else known)
        held = _skip_unrehearsable(journal, contract, earlier)
        result = run_lifecycle.run_to_end(copy, journal, contract, _within(request, held))
        after = copy.trees.scan(also)
    return _Rehearsal(copy, contract, journal.state, result, before, after, held, earlier)


def _within(request: Request, held: Mapping[str, str]) -> Request:
    """A phase with tasks that were left out cannot be judged as a whole."""
    return dataclasses.replace(request, verify=request.verify and not held)


def _carry_over(journal: Journal, contract: Contract, known: RunState | None) -> frozenset[str]:
    """What the user's newest run has done or left out already; its tasks."""
    if known is None:
        return frozenset()
    events = carried_tasks.events(journal, contract, known)
    done = {e.task for e in events}
    skipped = [
        t
        for t, task in known.tasks.items()
        if task.status == outcome.SKIPPED and known.contract.hash == contract.hash and t not in done
    ]
    events += [journal.event("task.skipped", t, reason=known.tasks[t].reason) for t in skipped]
    journal.write(*events)
    return frozenset(t for t in (*done, *skipped) if t is not None)


def _skip_unrehearsable(journal: Journal, contract: Contract, earlier: frozenset[str]) -> dict[str, str]:
    """Leave out what cannot be rehearsed; task to the reason."""
    reasons = {t: _unrehearsable(contract.tasks[t]) for t in contract.order if t not in earlier}
    held = {t: why for t, why in reasons.items() if why}
    journal.write(*(journal.event("task.skipped", t, reason=f"not rehearsed: {why}") for t, why in held.items()))
    return held


def _unrehearsable(task: Task) -> str:
    if task.is_human:
        return "a person does it"
    if task.rollback.kind != REVERSIBLE:
        return f"its effects are not in files alone ({task.rollback.kind})"
    return ""


def _answer(ended: _Rehearsal, policy: str, run: str) -> Result:
    told = dict(ended.result.data)
    word = told["outcome"]
    shown = _predicted(ended, policy)
    again = f"{run} --dry-run"
    phase = ended.contract.phase
    data: dict[str, Any] = {
        "run": None,
        "phase": phase,
        "outcome": word,
        "reason": told["reason"],
        "contract_hash": ended.contract.hash,
        "verification": told["verification"],
        "dry_run": shown,
        "next": [run],
    }
    record = told["verification"]
    # What a person still has to say is no failure of the run.
    verified = record is None or record["status"] in ("passed", "waiting") or record["decision"] is not None
    asked = [one for one in told["decisions"] if one["kind"] in _UNFORESEEN]
    if (word == "waiting" and not asked) or (word == "complete" and verified):
        return Result(data, errors.EXIT_DONE, ended.result.warnings)
    failure = ended.result.failure
    words = failure[1] if failure else told["reason"]
    # Its questions are gone with the copy.
    details = {**{k: v for k, v in ended.result.details.items() if k != "decisions"}, "run": None}
    if asked:
        what, why, evidence = (asked[0][name] for name in ("what", "why", "evidence"))
        question = {"what": what, "why": why, "evidence": evidence, "choices": _ways(phase, again, asked[0]["kind"])}
        words = f"A run would stop here and ask: {what}."
        stops = ("dry-run.waiting", words, f"Correct the plan, then {again}")
        return Result(data, errors.EXIT_WAITING, ended.result.warnings, stops, {**details, **question})
    data["next"] = [f"idumb check-plan {phase}"]
    return Result(
        data,
        errors.EXIT_FAILED,
        ended.result.warnings,
        ("dry-run.failed", f"A run would fail here. {words}", f"Correct the plan, then {again}"),
        {**details, "choices": _ways(phase, again)},
    )


def _ways(phase: str, again: str, kind: str = "") -> list[dict[str, Any]]:
    """What can be done about a dry run that did not reach its end. Nothing of it is left, so nothing is resumed."""
    correct = Choice(
        "correct", "correct the plan", "nothing was recorded, so only the plan changes", f"idumb check-plan {phase}"
    )
    accept = Choice(
        "accept",
        "the files belong to the task, this once",
        "the dry run takes them into the task and goes on",
        f"{again} --on-deviation accept",
    )
    return next_actions.rows((correct, *((accept,) if kind == questions.DEVIATION else ())))


def _predicted(ended: _Rehearsal, policy: str) -> dict[str, Any]:
    """What data.dry_run shows: the diff of the user's tree, each task's part, commands, commits, what was left out."""
    trees, events = ended.services.trees, list(ended.services.log.events(run=ended.state.id))
    changes = [c for c in trees.changes(ended.before, ended.after) if not paths.matches_any(c.path, paths.OWN_FILES)]
    counts = trees.line_counts(ended.before, ended.after)
    changed = [c.path for c in changes]
    touched = {p for t in ended.state.attempted for p in ended.state.tasks[t].work.touched}
    return {
        "tasks": [_task(ended, task) for task in ended.contract.order],
        "files": [_file(c, counts) for c in changes],
        "diff": trees.diff(ended.before, ended.after, changed) if changed else "",
        "left_behind": [p for p in changed if p not in touched],
        "commands": [*_commands(ended, events)],
        "would_commit": _commits(ended) if policy == COMMIT_TASK else [],
        "not_rehearsed": [{"task": t, "why": why} for t, why in ended.held.items()],
    }


def _file(change: ledger.Change, counts: Counts) -> dict[str, Any]:
    added, removed = counts.get(change.path, (None, None))
    verb = _VERBS[(change.old is not None, change.new is not None)]
    return {"path": change.path, "change": verb, "added": added, "removed": removed}


def _task(ended: _Rehearsal, task: str) -> dict[str, Any]:
    state = ended.state.tasks[task]
    status = schedule.statuses(ended.contract, ended.state)[task]
    base, left, trees = state.work.base, state.work.left, ended.services.trees
    changes: Sequence[ledger.Change] = ()
    counts: Counts = {}
    if task in ended.state.attempted and base is not None and left is not None:
        changes = [c for c in trees.changes(base, left) if c.path in state.work.touched]
        counts = trees.line_counts(base, left)
    why = ended.held.get(task) or state.reason
    if status == outcome.BLOCKED:
        why = "needs " + ", ".join(
            schedule.blockers(ended.contract, schedule.statuses(ended.contract, ended.state), task)
        )
    return {
        "id": task,
        "title": ended.contract.tasks[task].title,
        "status": "done already" if task in ended.earlier else status,
        "rehearsed": task in ended.state.attempted,
        "why": why,
        "files": [_file(c, counts) for c in changes],
    }


def _commands(ended: _Rehearsal, events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """Every program that was started in the copy: builders, steps and checks, in order."""
    known = ended.services.settings.bindings
    for event in events:
        p, task = event.payload, event.task
        if event.kind == "attempt.started" and p["builder"] in known:
            yield {"task": task, "by": "builder", "command": " ".join(known[p["builder"]].argv), "result": "started"}
        elif event.kind == "step.finished" and p["tool"] == "run":
            words = p["arguments"].get("command") or " ".join(map(str, p["arguments"].get("argv", ())))
            yield {"task": task, "by": "step", "command": str(words), "result": "passed" if p["ok"] else "failed"}
        elif event.kind == "evidence.recorded" and p.get("command"):
            yield {"task": task, "by": "check", "command": p["command"], "result": p["result"]}


def _commits(ended: _Rehearsal) -> list[dict[str, Any]]:
    """The commits that a run would make of its tasks, in order."""
    made = [
        t
        for t in ended.state.attempted
        if ended.state.tasks[t].status == outcome.COMPLETED and not ended.contract.tasks[t].is_human
    ]
    return [
        {
            "task": t,
            "subject": record.subject(ended.contract.tasks[t]),
            "files": list(ended.state.tasks[t].work.touched),
        }
        for t in made
    ]
