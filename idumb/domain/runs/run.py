"""A run's state, made from events alone: `replay(events)` is the only way to it.

`RunState` is built up in place while events are applied, because a run of ten thousand tasks cannot afford a
copy for each event; the values in it are frozen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from idumb.domain import agent, canonical_json, conversation, failures, outcome
from idumb.domain.conversation import Conversation
from idumb.domain.runs import spending
from idumb.domain.runs.event import BESIDE, Event
from idumb.domain.runs.spending import Spent

ACTIVE = "active"
HALTED = "halted"
INTERRUPTED = "interrupted"
PAUSED = "paused"
COMPLETED = "completed"
FAILED = "failed"
CLOSED = frozenset({COMPLETED})

START = "start"
MAIN = "main"
ANSWERED = "answered"
ELSEWHERE = "elsewhere"

EXHAUSTED = "exhausted"
"""The kind of the question about a task that failed with all its attempts."""

_TRIED_AGAIN = frozenset({EXHAUSTED, "failure", "deviation", "effect", "ceiling"})
"""Kinds of questions after which the task may be tried again; what a person says there is for its next builder."""

EFFECT = "made"
COMPENSATED = "compensated"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is kept after an attempt. `tree` is the candidate's, `git_hash` HEAD afterwards (None: no commit yet)."""

    status: str
    git_hash: str | None
    snapshot: str
    tree: str
    files: tuple[str, ...]
    attempt: int
    seconds: float
    at: str
    seq: int
    error: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What the agent in `role` said of itself last, in its own words and state; `number` counts in the attempt."""

    role: str
    state: str
    message: str
    number: int
    at: str


@dataclass(frozen=True, slots=True)
class TaskState:
    """`attempts` counts those that count; `attempt` is the number of the last one started.

    `base` is the task base, `left` the tree the last attempt left, `touched` the paths it changed since the base.
    `snapshot` is the commit taken before the last attempt, `accepted_commit` the one a person's acceptance made.
    `carried_from` names an earlier run. `effect` is `made` once a task that says it cannot be taken back by files
    alone may have had its effect, `compensated` once its own commands took that back, and empty before. `symbols` are
    words such as `added slugify in slug.py`, where the task declares symbols. `folders` are those that its steps were
    to make and that were not there. `opened` is set while somebody in an editor works on the attempt: `by`, `at` and
    what else `attempt.opened` says. `adapter` drove the last attempt, `failure` is why its agent could not work, None
    where it could. `exhausted` counts agents whose context was full, `handover` is what the last of them left.
    `spent` is what the attempts used. `last` is (reason, tree left) of the last one, `repeated` counts those after it
    that were the same. `settled` is the number of the last attempt that ended otherwise than by waiting. `speaker` is
    who was asked last, `conversation` what another attempt may go on in. `unjudged` is set while what the last attempt
    left waits for a verdict from elsewhere. `told` is what was said last in an attempt that has not ended.
    `crashed`: the builder's process came to no end of its own in the last attempt. `once`: whoever had it tried again
    asked for one attempt. `adopted`: in the last attempt nothing was built, for an old iDumb says that it is done.
    `failed_step` is the index of the declared step that ended the last attempt. `guidance` is what a person said last
    to the next attempts, and who said it.
    """

    id: str
    digest: str
    status: str = outcome.PENDING
    attempts: int = 0
    attempt: int = 0
    base: str | None = None
    left: str | None = None
    snapshot: str | None = None
    touched: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    accepted_paths: tuple[str, ...] = ()
    feedback: str = ""
    reason: str = ""
    outcome: str | None = None
    running: bool = False
    checkpoint: Checkpoint | None = None
    decisions: tuple[str, ...] = ()
    carried_from: str | None = None
    intended: Mapping[str, Any] | None = None
    seconds: float = 0.0
    accepted_commit: str | None = None
    effect: str = ""
    symbols: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    opened: Mapping[str, Any] | None = None
    adapter: str = ""
    failure: str | None = None
    exhausted: int = 0
    handover: str = ""
    spent: Spent = Spent()
    repeated: int = 0
    last: tuple[str, str] = ("", "")
    settled: int = 0
    speaker: str = ""
    conversation: Conversation | None = None
    unjudged: bool = False
    told: Told | None = None
    crashed: bool = False
    once: bool = False
    adopted: bool = False
    failed_step: int | None = None
    guidance: str = ""


@dataclass(slots=True)
class RunState:
    """`restoring` is the rollback or undo that was announced and not recorded yet.

    `guarded` is a digest of each of git's own files when the last attempt began, None where nobody recorded it; while
    `unguarded` nobody has held them against it since.
    `lock_in` is what was recorded when it was last locked in, None before; `envelopes` are those that hold now.
    `order` is the execution order; `attempted` the tasks with an attempt, in the order of their first one.
    `version` counts the locks of the contract from 1, `chain` binds each of them to those before; `amending` is the
    amendment that was announced and not recorded yet, `appended` are the answers that the plan itself tells of,
    `spent` is what was used by role. `moved_at` is when the run or a task of it last changed its standing.
    """

    id: str = ""
    phase: str = ""
    number: int = 0
    contract_hash: str = ""
    plans: tuple[tuple[str, str], ...] = ()
    mode: str = "guided"
    policy: str = "task"
    base_commit: str | None = None
    base_tree: str = ""
    base_snapshot: str | None = None
    branch: str | None = None
    workspace: str = "here"
    state: str = ACTIVE
    reason: str = ""
    started_at: str = ""
    changed_at: str = ""
    moved_at: str = ""
    failures_in_a_row: int = 0
    tasks: dict[str, TaskState] = field(default_factory=dict)
    attempted: dict[str, int] = field(default_factory=dict)
    decisions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    verification: Mapping[str, Any] | None = None
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    restoring: Mapping[str, Any] | None = None
    guarded: Mapping[str, str] | None = None
    unguarded: bool = False
    version: int = 1
    chain: str = ""
    amending: Mapping[str, Any] | None = None
    amendments: tuple[Mapping[str, Any], ...] = ()
    appended: frozenset[str] = frozenset()
    lock_in: Mapping[str, Any] | None = None
    envelopes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)
    last_seq: int = 0

    def count(self, *statuses: str) -> int:
        return sum(1 for t in self.tasks.values() if t.status in statuses)

    @property
    def earlier(self) -> tuple[str, ...]:
        """Contract hashes of the versions before the present one."""
        return tuple(a["from"] for a in self.amendments)

    @property
    def opened(self) -> TaskState | None:
        """The task whose attempt is open in an editor; there is one at most."""
        return next((task for task in self.tasks.values() if task.opened is not None), None)

    @property
    def verified(self) -> bool:
        return self.verification is not None and self.verification.get("status") == "passed"

    @property
    def stage(self) -> str:
        """The word of iDumb for where the phase is."""
        if self.verified:
            return "verified"
        return "executed" if self.state in {COMPLETED, FAILED} else "executing"

    @property
    def git_hash(self) -> str | None:
        """HEAD as the newest checkpoint that counts has it; before the first one, where the run began."""
        kept = [task.checkpoint for task in self.tasks.values() if task.checkpoint is not None]
        return max(kept, key=lambda one: one.seq).git_hash if kept else self.base_commit

    @property
    def session(self) -> str:
        """`closed` once every task is settled, `active` before; a rollback opens it again."""
        return "closed" if self.state in CLOSED and self.restoring is None else "active"

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(self.tasks)

    def apply(self, event: Event) -> None:
        """Take one event into account. Kinds that say nothing about a run are ignored."""
        handler = _HANDLERS.get(event.kind)
        if handler is not None:
            handler(self, event)
        if event.kind.startswith(_MOVING):
            self.moved_at = event.at
        self.last_seq = event.seq
        if event.kind not in BESIDE:
            self.changed_at = event.at

    def update(self, task_id: str, **changes: Any) -> None:
        self.tasks[task_id] = dataclasses.replace(self.tasks[task_id], **changes)


def run_id(contract_hash: str, base_commit: str | None, number: int, worktree: str = MAIN) -> str:
    """Deterministic: a hash of the first contract hash, the base commit and the run's number.

    Linked work trees count for themselves, so that two of them may start the same phase at once; their name is in it.
    """
    linked = () if worktree == MAIN else (worktree,)
    return canonical_json.digest([contract_hash, base_commit, number, *linked])[:16]


def call_id(run: str, task: str, attempt: int, index: int) -> str:
    """The id of one step's tool call."""
    return canonical_json.digest([run, task, attempt, index])[:16]


def replay(events: Iterable[Event]) -> RunState:
    """The state of one run from its events, in order of their sequence numbers."""
    state = RunState()
    for event in events:
        state.apply(event)
    return state


def _run_started(state: RunState, event: Event) -> None:
    p = event.payload
    state.id = event.run or ""
    state.phase = p["phase"]
    state.number = p["number"]
    state.contract_hash = state.chain = p["contract_hash"]
    state.plans = tuple((path, sha) for path, sha in p["plans"])
    state.mode = p["mode"]
    state.policy = p["policy"]
    state.base_commit = p["base_commit"]
    state.base_tree = p["base_tree"]
    state.base_snapshot = p.get("base_snapshot")
    state.branch = p.get("branch")
    state.workspace = p.get("workspace", "here")
    state.guarded = p.get("guarded")
    state.started_at = event.at
    state.tasks = {task_id: TaskState(task_id, digest) for task_id, digest in p["tasks"]}


def chained(chain: str, contract_hash: str) -> str:
    """The next link: which contract follows which, so that no version can be taken out unseen."""
    return canonical_json.digest([chain, contract_hash])


def _amendment_intended(state: RunState, event: Event) -> None:
    state.amending = event.payload


def _amendment_abandoned(state: RunState, _: Event) -> None:
    state.amending = None


def _contract_amended(state: RunState, event: Event) -> None:
    """The run goes on under the next version. `tasks` is there only where a task changed; what is done stays done."""
    p = event.payload
    state.amending = None
    state.version, state.chain, state.contract_hash = p["version"], p["chain"], p["to"]
    state.plans = tuple((path, sha) for path, sha in p["plans"])
    state.amendments = (*state.amendments, {**p, "seq": event.seq, "at": event.at})
    state.appended |= frozenset(p.get("answers", ()))
    if p.get("tasks") is None:
        return
    known = state.tasks
    state.tasks = {
        task: dataclasses.replace(known[task], digest=digest) if task in known else TaskState(task, digest)
        for task, digest in p["tasks"]
    }
    state.attempted = {t: seq for t, seq in state.attempted.items() if t in state.tasks}
    state.verification = None
    if state.state in (COMPLETED, FAILED):
        state.state, state.reason = HALTED, f"amended to version {state.version}"


def _run_locked(state: RunState, event: Event) -> None:
    p = event.payload
    state.lock_in = {name: p[name] for name in ("contract_hash", "checks", "levels", "confidence", "parts")}
    state.envelopes = p["envelopes"]


def _envelope_changed(state: RunState, event: Event) -> None:
    state.envelopes = {**state.envelopes, **event.payload["envelopes"]}


def _guarded_accepted(state: RunState, event: Event) -> None:
    state.guarded, state.unguarded = event.payload["guarded"], False


def _run_resumed(state: RunState, event: Event) -> None:
    """A run goes on only where git's own files were looked at; who works in an editor may change them still."""
    _run_state(ACTIVE)(state, event)
    state.unguarded = state.opened is not None
    if not state.verified:  # what was judged before is judged again at the end
        state.verification = None


def _run_state(value: str) -> Callable[[RunState, Event], None]:
    def handler(state: RunState, event: Event) -> None:
        state.state = value
        state.reason = event.payload.get("reason", "")
        if value == ACTIVE:
            state.failures_in_a_row = 0

    return handler


def _task_carried(state: RunState, event: Event) -> None:
    p = event.payload
    checkpoint = Checkpoint(**{**p["checkpoint"], "files": tuple(p["checkpoint"]["files"])})
    state.update(
        _task(event),
        status=p["status"],
        checkpoint=checkpoint,
        carried_from=p["from_run"],
        left=checkpoint.tree,
        reason=p.get("reason", ""),
        effect=p.get("effect", ""),
    )


def _attempt_started(state: RunState, event: Event) -> None:
    p, task = event.payload, _task(event)
    number = event.attempt or 1
    state.guarded, state.unguarded = p.get("guarded", state.guarded), True
    folders = dict.fromkeys((*state.tasks[task].folders, *p.get("folders", ())))
    state.attempted.setdefault(task, event.seq)
    state.update(
        task,
        status=outcome.RUNNING,
        running=True,
        attempt=number,
        base=p["base"],
        snapshot=p["snapshot"],
        outcome=None,
        intended=None,
        reason="",
        folders=tuple(folders),
        opened=None,
        adopted=bool(p.get("adopted")),
        adapter=p.get("envelope", {}).get("adapter", ""),
        failure=None,
        speaker=conversation.speaker(p.get("envelope", {})),
        told=None,
        failed_step=None,
    )


def _attempt_opened(state: RunState, event: Event) -> None:
    state.update(_task(event), opened={**event.payload, "at": event.at})


def _attempt_told(state: RunState, event: Event) -> None:
    p = event.payload
    state.update(_task(event), told=Told(p["role"], p["state"], p["message"], p["number"], event.at))


def _step_finished(state: RunState, event: Event) -> None:
    state.update(_task(event), failed_step=None if event.payload["ok"] else event.payload["index"])


def _attempt_interrupted(state: RunState, event: Event) -> None:
    p = event.payload
    state.unguarded = bool(p.get("guarded"))
    known = state.tasks[_task(event)]
    used = Spent()
    if not known.adopted:
        used = Spent(attempts=1) + spending.of_call(None, reports=known.adapter not in spending.FREE)
        _spend(state, agent.BUILDER, used)
    state.update(
        _task(event),
        spent=known.spent + used,
        status=outcome.PENDING,
        running=False,
        outcome=outcome.CANCELLED,
        left=p.get("left"),
        touched=tuple(p.get("touched", ())),
        reason=p.get("reason", ""),
        intended=None,
        effect=p.get("effect") or state.tasks[_task(event)].effect,
        opened=None,
        told=None,
    )


def _attempt_finished(state: RunState, event: Event) -> None:
    p, task = event.payload, _task(event)
    known = state.tasks[task]
    state.unguarded = False
    last = (p.get("reason", ""), p["left"] or "")
    state.update(
        task,
        running=False,
        attempts=known.attempts + (counts(p) and not known.adopted),
        outcome=p["outcome"],
        left=p["left"],
        touched=tuple(p["touched"]),
        deviations=tuple(p.get("deviations", ())),
        # To wait is no failure: what was wrong before is still what the next one must know.
        feedback=known.feedback if p["outcome"] == outcome.WAITING else p.get("feedback", ""),
        reason=p.get("reason", ""),
        seconds=known.seconds + p.get("seconds", 0.0),
        status=outcome.PENDING if p.get("failure") in failures.STOPPING else outcome.RUNNING,
        failure=p.get("failure"),
        exhausted=known.exhausted + (p.get("failure") == agent.CONTEXT_EXHAUSTED),
        handover=p.get("handover", ""),
        spent=known.spent + _used(state, known, p),
        repeated=known.repeated + 1 if last == known.last else 0,
        last=last,
        settled=known.settled if p["outcome"] == outcome.WAITING else event.attempt or known.attempt,
        accepted_paths=tuple(p.get("accepted_paths", ())),
        effect=p.get("effect") or known.effect,
        conversation=conversation.after(
            known.conversation, p, attempt=known.attempt, speaker=known.speaker, contract=state.contract_hash
        ),
        unjudged=p["outcome"] == outcome.WAITING and (p.get("validator") or {}).get("outcome") == outcome.WAITING,
        symbols=tuple(p.get("symbols", ())),
        opened=None,
        told=None,
        crashed=bool((p.get("builder") or {}).get("crashed")),
    )


def counts(ended: Mapping[str, Any]) -> bool:
    """Whether an attempt that ended so uses up one of those that a task has."""
    return ended["outcome"] != outcome.WAITING and ended.get("failure") not in failures.UNCOUNTED


def _used(state: RunState, known: TaskState, p: Mapping[str, Any]) -> Spent:
    """What an attempt used, by builder and validator, which is added to the run's too."""
    if known.adopted:
        return Spent()
    built, judged = p.get("builder"), p.get("validator")
    of_builder = Spent(attempts=int(p["outcome"] != outcome.WAITING), seconds=p.get("seconds", 0.0))
    if built is not None:
        of_builder += spending.of_call(built["usage"], reports=known.adapter not in spending.FREE)
    _spend(state, agent.BUILDER, of_builder)
    if judged is None:
        return of_builder
    of_validator = spending.of_call(judged["usage"])
    _spend(state, agent.VALIDATOR, of_validator + Spent(attempts=1, seconds=judged["seconds"]))
    return of_builder + of_validator


def _role_asked(state: RunState, event: Event) -> None:
    """A role that was asked for the run, such as its verifier. It uses up what the run may; an attempt it is not."""
    p = event.payload
    used = spending.of_call(p["usage"], reports=p["adapter"] not in spending.FREE)
    _spend(state, p["role"], used + Spent(seconds=p["seconds"]))


def _spend(state: RunState, role: str, used: Spent) -> None:
    state.spent[role] = state.spent.get(role, Spent()) + used


def _checkpoint_intended(state: RunState, event: Event) -> None:
    state.update(_task(event), intended=dict(event.payload))


def _checkpoint_recorded(state: RunState, event: Event) -> None:
    """What an attempt left that ended is kept until another one ends: an interrupted one says less."""
    p, before = event.payload, state.tasks[_task(event)].checkpoint
    if p["status"] == INTERRUPTED and before is not None and before.status != INTERRUPTED:
        return
    checkpoint = Checkpoint(
        status=p["status"],
        git_hash=p["git_hash"],
        snapshot=p["snapshot"],
        tree=p["tree"],
        files=tuple(p["files"]),
        attempt=event.attempt or 1,
        seconds=p["seconds"],
        at=event.at,
        seq=event.seq,
        error=p.get("error"),
        commit=p.get("commit"),
    )
    left = p.get("left") or state.tasks[_task(event)].left
    state.update(_task(event), checkpoint=checkpoint, intended=None, left=left)


def _task_status(value: str) -> Callable[[RunState, Event], None]:
    def handler(state: RunState, event: Event) -> None:
        reason = event.payload.get("reason", "")
        state.update(_task(event), status=value, running=False, reason=reason, opened=None)
        if value in outcome.DONE:
            state.failures_in_a_row = 0
        elif value == outcome.FAILED:
            state.failures_in_a_row += 1

    return handler


def _task_accepted(state: RunState, event: Event) -> None:
    """What a person accepted is what the task left, mended by hand or not."""
    p, known = event.payload, state.tasks[_task(event)]
    _task_status(outcome.ACCEPTED)(state, event)
    touched = tuple(p.get("touched", known.touched))
    state.update(known.id, accepted_commit=p.get("commit"), left=p.get("left", known.left), touched=touched)


def _task_waiting(state: RunState, event: Event) -> None:
    p = event.payload
    state.update(
        _task(event),
        status=outcome.WAITING,
        running=False,
        reason=p.get("reason", ""),
        decisions=tuple(p.get("decisions", ())),
    )


def _task_reset(state: RunState, event: Event) -> None:
    """A task that is tried again is also asked about again, unless the reset comes from an answer."""
    task = _task(event)
    why = event.payload.get("reason")
    attempts = state.tasks[task].attempts if why == ELSEWHERE else 0
    state.update(
        task,
        status=outcome.PENDING,
        attempts=event.payload.get("attempts", attempts),
        reason="",
        running=False,
        decisions=(),
        exhausted=0,
        repeated=0,
        last=("", ""),
        unjudged=state.tasks[task].unjudged and why == ELSEWHERE,
        once=bool(event.payload.get("once")) or (state.tasks[task].once and why in {ANSWERED, ELSEWHERE}),
    )
    state.failures_in_a_row = 0
    if why in {ANSWERED, ELSEWHERE}:
        return
    for asked in [i for i, decision in state.decisions.items() if decision.get("task") == task]:
        state.answers.pop(asked, None)


def _decision_asked(state: RunState, event: Event) -> None:
    state.decisions[event.payload["id"]] = event.payload


def _decision_answered(state: RunState, event: Event) -> None:
    p = event.payload
    state.answers[p["decision"]] = p
    asked = state.decisions.get(p["decision"], {})
    if asked.get("kind") in _TRIED_AGAIN and asked.get("task") in state.tasks and p.get("guidance"):
        state.update(str(asked["task"]), guidance=_words(p))


def _task_guided(state: RunState, event: Event) -> None:
    state.update(_task(event), guidance=_words(event.payload))


def _words(said: Mapping[str, Any]) -> str:
    return f"{said['by']} says: {said['guidance']}"


def _verification(state: RunState, event: Event) -> None:
    """Answers about the phase as a whole count until it fails; what comes after the mend is judged anew."""
    state.verification = event.payload
    if event.payload.get("status") == "failed":
        _forget(state, _answers_about(state, ()))


def _answers_about(state: RunState, tasks: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Answers to questions about these tasks and about the phase as a whole."""
    asked = ((i, state.decisions.get(i, {}).get("task")) for i in state.answers)
    return {i: state.answers[i] for i, task in asked if task is None or task in tasks}


def _forget(state: RunState, answers: Iterable[str]) -> None:
    for decision in answers:
        state.answers.pop(decision, None)


def _intended(state: RunState, event: Event) -> None:
    state.restoring = event.payload


def _abandoned(state: RunState, _: Event) -> None:
    state.restoring = None


def _compensated(state: RunState, event: Event) -> None:
    """What the commands changed in files counts as left by the tasks that had touched them."""
    state.update(_task(event), effect=COMPENSATED)
    for task, tree in event.payload["left"].items():
        if task in state.tasks:
            state.update(task, left=tree)


def _operation(event: Event) -> str:
    """The operation that announced it; another one may have finished it."""
    return str(event.payload.get("operation", event.operation))


def _rollback(state: RunState, event: Event) -> None:
    """Tasks after the checkpoint are as if never tried; what they were is kept for `undo`."""
    state.restoring = None
    trimmed = {task: state.tasks[task] for task in event.payload["tasks"] if task in state.tasks}
    answers = _answers_about(state, trimmed)
    _forget(state, answers)
    state.operations[_operation(event)] = {
        "tasks": trimmed,
        "answers": answers,
        "verification": state.verification,
        "state": state.state,
        "attempted": {t: s for t, s in state.attempted.items() if t in trimmed},
    }
    for task, known in trimmed.items():
        effect = EFFECT if known.effect == EFFECT else ""
        state.tasks[task] = TaskState(task, known.digest, attempt=known.attempt, effect=effect, settled=known.attempt)
        state.attempted.pop(task, None)
    state.verification = None
    state.failures_in_a_row = 0
    state.state = HALTED
    state.reason = f"rolled back to {event.payload['to']}"


def _undo(state: RunState, event: Event) -> None:
    """Put back what the undone operation took away, keeping the present for an undo of the undo."""
    state.restoring = None
    kept = state.operations.get(event.payload["undone"])
    if kept is None:
        return
    answers = _answers_about(state, kept["tasks"])
    _forget(state, answers)
    state.answers.update(kept["answers"])
    state.operations[_operation(event)] = {
        "tasks": {task: state.tasks[task] for task in kept["tasks"]},
        "answers": answers,
        "verification": state.verification,
        "state": state.state,
        "attempted": {t: s for t, s in state.attempted.items() if t in kept["tasks"]},
    }
    state.tasks.update(kept["tasks"])
    for task in kept["tasks"]:
        state.attempted.pop(task, None)
    state.attempted.update(kept["attempted"])
    state.attempted = dict(sorted(state.attempted.items(), key=lambda item: item[1]))
    state.verification = kept["verification"]
    state.state = kept["state"]
    state.reason = ""


def _task(event: Event) -> str:
    return event.task or ""


_MOVING = ("run.", "task.", "attempt.", "checkpoint.recorded", "rollback.completed", "undo.completed", "contract.")

_HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    "run.started": _run_started,
    "run.resumed": _run_resumed,
    "run.locked": _run_locked,
    "envelope.changed": _envelope_changed,
    "guarded.accepted": _guarded_accepted,
    "amendment.intended": _amendment_intended,
    "amendment.abandoned": _amendment_abandoned,
    "contract.amended": _contract_amended,
    "run.halted": _run_state(HALTED),
    "run.interrupted": _run_state(INTERRUPTED),
    "run.paused": _run_state(PAUSED),
    "run.completed": _run_state(COMPLETED),
    "run.failed": _run_state(FAILED),
    "task.carried": _task_carried,
    "task.completed": _task_status(outcome.COMPLETED),
    "task.failed": _task_status(outcome.FAILED),
    "task.waiting": _task_waiting,
    "task.accepted": _task_accepted,
    "task.skipped": _task_status(outcome.SKIPPED),
    "task.reset": _task_reset,
    "task.guided": _task_guided,
    "attempt.started": _attempt_started,
    "attempt.opened": _attempt_opened,
    "attempt.told": _attempt_told,
    "attempt.interrupted": _attempt_interrupted,
    "step.finished": _step_finished,
    "attempt.finished": _attempt_finished,
    "role.asked": _role_asked,
    "checkpoint.intended": _checkpoint_intended,
    "checkpoint.recorded": _checkpoint_recorded,
    "decision.asked": _decision_asked,
    "decision.answered": _decision_answered,
    "verification.recorded": _verification,
    "rollback.intended": _intended,
    "rollback.abandoned": _abandoned,
    "rollback.compensated": _compensated,
    "rollback.completed": _rollback,
    "undo.completed": _undo,
}
