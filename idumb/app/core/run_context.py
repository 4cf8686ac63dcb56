"""What the attempts of a run share, and the phases of one attempt: Prepared, Built, Measured, Judged, Recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, attempt_ref
from idumb.app.ports.agents import Agents
from idumb.app.ports.checks import Checks
from idumb.app.ports.repository import BuilderCommits, RepositoryState, Snapshot, Trees
from idumb.app.ports.workspace import Workspace
from idumb.domain import agent, contract, paths
from idumb.domain.agent import Conversation
from idumb.domain.decision import Answer, Decision
from idumb.domain.failures import FailureMessage
from idumb.domain.plans.plan import STRICT, Plan, Task
from idumb.domain.proof import ledger
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import Ceiling
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from idumb.gates.registry import StepGates
    from idumb.git.clones.builder_clone import BuilderClone

CONTROLS = "controls"
"""The note of an attempt whose checks also run before its work."""


@dataclass(slots=True)
class Pace:
    """When the documents of a long run are written next. Times are monotonic seconds.

    `due` is the next time, `begun` when the first task ended, `ended` how many did; `waiting` maps paths to texts.
    """

    due: float = float("-inf")
    begun: float | None = None
    ended: int = 0
    waiting: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Locked:
    """The last result of `run_lock`: fingerprints of the contract's `files`, the `environment` and the `approval`.

    The approval expires at `until` and binds `bound_files`. `reported` changes are not reported again.
    """

    files: str | None = None
    approval: str = ""
    until: str = ""
    bound_files: tuple[str, ...] = ()
    environment: str | None = None
    programs: tuple[str, ...] = ()
    reported: set[str] = field(default_factory=set)


@dataclasses.dataclass(frozen=True)  # noqa: TID251 - cached properties need no slots
class RunContext:
    """What all attempts of a run share: ports, journal, workspace, and what the run is locked to.

    `notes` is what a part of an attempt remembers until the next one, by its name. `commits` is set if builders commit
    themselves. `sandboxed`: no agent starts without a sandbox.
    """

    services: Services
    journal: Journal
    contract: contract.Contract
    workspace: Workspace
    agents: Agents
    checks: Checks
    gates: StepGates
    policy: str
    on_deviation: str | None
    max_attempts: int
    pace: Pace
    begun: set[str] = field(default_factory=set)
    deterministic: bool = False
    sandboxed: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    locked: Locked = field(default_factory=Locked)
    commits: BuilderClone | None = None

    @cached_property
    def plans(self) -> Mapping[str, Plan]:
        return self.contract.plan_by_task()

    @cached_property
    def strict(self) -> bool:
        return STRICT in (self.contract.mode, self.journal.state.mode)

    @cached_property
    def work(self) -> Trees:
        return self.workspace.trees

    @cached_property
    def run(self) -> str:
        return self.journal.state.id

    def attempt(self, task: Task, number: int, *, base: str, feedback: str, **fields: Any) -> Attempt:
        """Return an attempt at a task that starts now; `fields` are its optional ones. Every attempt is made here."""
        plan, settings = self.plans[task.id], self.services.settings
        values: dict[str, Any] = {"started": self.services.clock.monotonic(), **fields}
        return Attempt(
            task=task,
            plan=plan,
            number=number,
            base=base,
            feedback=feedback,
            builder=contract.builder_of(plan, task, settings) or "",
            validator=contract.validator_of(plan, task, settings),
            ref=attempt_ref(self.services, self.run, task.id, number),
            written=ledger.written_paths(task.files),
            literal_paths=ledger.named_paths(task.files),
            **values,
        )

    def protected(self, plan: Plan) -> tuple[str, ...]:
        """Return the globs that no task of a plan may write, with everything in nested repositories."""
        repositories = self.services.trees.repositories()
        nested = paths.below_rules(repositories) if repositories else ()
        return (*plan.scope.protected, *self.services.settings.protected, *nested)


_Phase = TypeVar("_Phase", bound="Attempt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt before it begins. Each phase below adds what its stages found; nothing in a phase is half filled.

    An `outcome` other than None means that the attempt has ended: the stages that would continue it are skipped.
    `base` is the tree that the work is compared with; before the snapshot, that of the attempt before, or "".
    `builder` and `validator` are bindings; the validator is None if there is none. `ref` is the prefix of its refs.
    `written` are the paths and globs that the task may write, `literal_paths` those that name a single file.
    `ceilings` are those that limit it, with what is used of them; `allowance` is what is left.
    `awaits_verdict`: the work is done, only the verdict is pending. `adopted`: nothing is built, because the task was
    done before idumb took over. `handover` is the summary of an attempt whose context was exhausted.
    `started` is in monotonic seconds.
    """

    task: Task
    plan: Plan
    number: int
    base: str
    feedback: str
    started: float
    builder: str
    validator: str | None
    ref: str
    written: tuple[str, ...]
    literal_paths: tuple[str, ...]
    accepted_paths: tuple[str, ...] = ()
    ceilings: Mapping[str, Any] = field(default_factory=dict)
    allowance: Ceiling = Ceiling()
    handover: str = ""
    conversation: Conversation | None = None
    awaits_verdict: bool = False
    adopted: bool = False
    outcome: str | None = None
    reason: str = ""

    def ended(self, result: str, reason: str) -> Self:
        return dataclasses.replace(self, outcome=result, reason=reason)

    def become(self, phase: type[_Phase], **added: object) -> _Phase:
        """Return this attempt in its next phase. TypeError if `added` lacks a field of that phase."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return phase(**{**values, **added})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Attempt):
    """An attempt that may begin to work: it is announced, and its snapshot is durable.

    `before` is the state of the repository when it began, `announced` what `attempt.started` recorded of its envelope.
    `residue` are files that checks left.
    """

    snapshot: Snapshot
    before: RepositoryState
    announced: Mapping[str, Any]
    evidence: tuple[Evidence, ...] = ()
    residue: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Built(Prepared):
    """An attempt whose builder answered; `result` is None if nobody was asked.

    `failure` says why an agent could not work. `commits` are the builder's own, where it commits itself.
    """

    result: agent.AgentResult | None
    failure: FailureMessage | None = None
    questions: tuple[Decision, ...] = ()
    answers: tuple[Answer, ...] = ()
    commits: BuilderCommits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Built):
    """An attempt whose files are frozen in the tree `candidate` and compared with its declared files.

    `tool_files` are what tools left, which is in no ledger. `deviation`: it changed undeclared files. `exposed` names
    known secrets that it would commit. `unlike`: deterministic mode refuses it. `verdict_of_validator` is what the
    validator answered, `validated_from` the snapshot of the user's tree before it was asked. `proven` is the
    tree that checks judged apart from the workspace, or None. `outputs` are what the step of a workflow gave out.
    """

    candidate: str
    changes: tuple[ledger.Change, ...]
    ledger: ledger.Ledger
    tool_files: tuple[str, ...] = ()
    deviation: bool = False
    exposed: tuple[str, ...] = ()
    unlike: bool = False
    verdict_of_validator: agent.AgentResult | None = None
    validated_from: Snapshot | None = None
    proven: str | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Measured):
    """An attempt with its outcome; `verdict` is None if it failed before a verdict was reached."""

    outcome: str
    verdict: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Judged):
    """An attempt that is in the log; `commit_refused` says why its work could not be committed or delivered."""

    commit_refused: str | None = None
