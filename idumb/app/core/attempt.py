"""An attempt at a task: one record, from its announcement to its checkpoint.

Stages only replace fields of it. It is saved whole wherever it may continue in another process: open in an editor,
waiting for an answer, or about to be committed. It loads as an equal value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Self

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import FieldInfo, fields, replace

from idumb.app.ports import Head, RepositoryState, Snapshot
from idumb.domain.action import Answer, Decision
from idumb.domain.agent import AgentResult
from idumb.domain.failures import FailureMessage
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.proof import ledger
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.ledger import Change, Ledger
from idumb.domain.settings import Ceiling

STAGES = ("begun", "announced", "built", "measured", "judged", "intended", "recorded")
BEGUN, ANNOUNCED, BUILT, MEASURED, JUDGED, INTENDED, RECORDED = STAGES
MOST_REPLY = 64 * 1024
"""Characters of an agent's reply that are saved: its end, where its answer is. The transcript has all of it."""


class Attempt(Struct, frozen=True, kw_only=True):
    """An attempt at a stage of STAGES. What later stages find is empty until then.

    An `outcome` other than None means that the attempt has ended: the stages that would continue it are skipped.

    - `base`: the tree that the work is compared with; before the snapshot, that of the attempt before, or "".
    - `started`: monotonic seconds of this process, less what the attempt took in earlier processes.
    - `builder`, `validator`: bindings; the validator is None if there is none. `ref`: the prefix of its refs.
      `in_place`: a person builds it in the user's own working tree; programs have a checkout.
    - `allowance`: what is left of its ceilings.
    - `from_user`: files whose uncommitted version the user chose for the base. They are committed with the task.
    - `awaits_verdict`: the work is done, only the verdict is pending. `handover`: the summary of an attempt whose
      context was exhausted.

    From the announcement on:

    - `snapshot`: of the user's tree. `before`: the state of the repository; HEAD and guarded files alone once it is
      saved. `announced`: what `attempt.started` recorded of its envelope.

    Once it is built:

    - `result`: what the builder answered; None if nobody was asked. `failure`: why an agent could not work.
      `messages`: of the commits that it made in its checkout, the oldest first.
    - `controls`: the result of checks before the work, by command.

    Once it is measured:

    - `candidate`: the tree of the frozen files; `changes` and `ledger`: how it differs from the base.
    - `tool_files`: what tools left, which is in no ledger. `deviates`: it changed undeclared files;
      `excusable`: nothing else is wrong, so that a person may accept them.
    - `exposed`: known secrets that it would commit. `unlike`: deterministic mode refuses it.
    - `proven`: the tree that checks judged, None if there were none.
    - `judged_on`: HEAD when the checks ran.
    - `verdict_of_validator`: what the validator answered.
    - `outputs`: what the step of a workflow gave out.

    Once it is judged:

    - `verdict`: None if it failed before a verdict was reached. `message`: of its commit; "" without one.
    - `by_hooks`: further paths that hooks of the user changed in its commit; `before_hooks`: the candidate before, ""
      if they changed nothing.
    - `logged`: the evidence that the log has; None before it has any of the attempt's end.
    - `commit_refused`: why its work could not be committed or delivered. `conflicts`: because the user has other bytes
      there. `left_to_user`: paths of which his version counts, so that they are not written.
    """

    task: Task
    plan: Plan
    number: int
    stage: str = BEGUN
    base: str
    feedback: str
    started: float
    builder: str
    validator: str | None
    ref: str
    in_place: bool = False
    accepted_paths: tuple[str, ...] = ()
    from_user: tuple[str, ...] = ()
    allowance: Ceiling = Ceiling()
    handover: str = ""
    awaits_verdict: bool = False
    outcome: str | None = None
    reason: str = ""

    snapshot: Snapshot = Snapshot("", "", "")
    before: RepositoryState = RepositoryState(Head(None, None), {})
    announced: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()

    result: AgentResult | None = None
    failure: FailureMessage | None = None
    messages: tuple[str, ...] = ()
    questions: tuple[Decision, ...] = ()
    answers: tuple[Answer, ...] = ()
    controls: Mapping[str, str] = field(default_factory=dict)

    candidate: str = ""
    changes: tuple[Change, ...] = ()
    ledger: Ledger = Ledger(())
    tool_files: tuple[str, ...] = ()
    deviates: bool = False
    excusable: bool = False
    exposed: tuple[str, ...] = ()
    unlike: bool = False
    proven: str | None = None
    judged_on: str | None = None
    verdict_of_validator: AgentResult | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)

    verdict: str | None = None
    message: str = ""
    by_hooks: tuple[str, ...] = ()
    before_hooks: str = ""
    commit_refused: str | None = None
    conflicts: tuple[str, ...] = ()
    left_to_user: tuple[str, ...] = ()
    logged: tuple[Evidence, ...] | None = None

    @property
    def written(self) -> tuple[str, ...]:
        """The paths and globs that the task may write."""
        return ledger.written_paths(self.task.files)

    @property
    def literal_paths(self) -> tuple[str, ...]:
        """Those among them that name a single file."""
        return ledger.named_paths(self.task.files)

    @property
    def changed(self) -> tuple[str, ...]:
        """The paths that it changed, with those that hooks changed in its commit."""
        return (*self.ledger.changed, *self.by_hooks)

    @property
    def to_deliver(self) -> tuple[str, ...]:
        """The paths that are written into the user's working tree."""
        return tuple(path for path in self.changed if path not in self.left_to_user)

    @property
    def committed(self) -> tuple[str, ...]:
        """The paths in which its commit may differ from HEAD."""
        return tuple(dict.fromkeys((*self.changed, *self.from_user)))

    def reached(self, stage: str) -> bool:
        return STAGES.index(self.stage) >= STAGES.index(stage)

    def ended(self, result: str, reason: str) -> Self:
        return replace(self, outcome=result, reason=reason)

    def reopened(self, **found: Any) -> Self:
        """Return the attempt without its end, to be judged again."""
        return replace(self, outcome=None, reason="", verdict=None, **found)

    def at(self, stage: str, **found: Any) -> Self:
        """Return the attempt at its next stage, with what this one found."""
        return replace(self, stage=stage, **found)

    def saved(self, now: float) -> dict[str, Any]:
        """Return the record as JSON, without what is empty, for `loaded`. `now` is in monotonic seconds."""
        row = {each.name: value for each in _saved() if (value := getattr(self, each.name)) != each.default}
        row["before"] = RepositoryState(self.before.head, self.before.guarded)
        for name in ("result", "verdict_of_validator"):
            answer = getattr(self, name)
            if answer is not None:
                row[name] = replace(answer, reply=answer.reply[-MOST_REPLY:])
        del row["started"]
        plain: dict[str, Any] = to_builtins(row)
        return {**plain, "seconds": round(now - self.started, 3)}


def loaded(row: Mapping[str, Any], task: Task, plan: Plan, now: float) -> Attempt:
    """Return the attempt that was saved, with the task and plan of its contract. `now` is in monotonic seconds."""
    values = {each.name: convert(row[each.name], each.type) for each in _saved() if each.name in row}
    attempt = Attempt(task=task, plan=plan, started=now - row["seconds"], **values)
    return replace(attempt, logged=attempt.evidence) if attempt.reached(JUDGED) else attempt


@cache
def _saved() -> tuple[FieldInfo, ...]:
    """Return the fields without those that the contract has, and what the events beside the record say."""
    return tuple(each for each in fields(Attempt) if each.name not in ("task", "plan", "logged"))
