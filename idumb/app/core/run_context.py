"""What attempts are made on and of: the bench of a run, and the attempt as it stands between two stages."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.ports.agents import Agents
from idumb.app.ports.checks import Checks
from idumb.app.ports.repository import BuilderCommits, RepositoryState, Snapshot, Trees
from idumb.app.ports.workspace import CommittingClone, Workspace
from idumb.domain import agent, contract, paths
from idumb.domain.agent import Conversation
from idumb.domain.decision import Answer, Decision
from idumb.domain.failures import FailureMessage
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.proof import ledger
from idumb.domain.proof.evidence import Evidence


@dataclass(slots=True)
class Pace:
    """Projections of a long run are written now and then. Times are monotonic seconds.

    `due` is when they may be written again, `begun` when the first task ended, `ended` how many did; `waiting` are
    texts of documents by path.
    """

    due: float = float("-inf")
    begun: float | None = None
    ended: int = 0
    waiting: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """Where the attempts of one run are made: the ports, the journal, the workspace and what is locked in.

    `watched` is what `enveloping` remembers between attempts. `commits` is there where builders commit themselves.
    """

    services: Services
    journal: Journal
    contract: contract.Contract
    workspace: Workspace
    agents: Agents
    checks: Checks
    policy: str
    on_deviation: str | None
    max_attempts: int
    pace: Pace
    begun: set[str] = field(default_factory=set)
    deterministic: bool = False
    watched: dict[str, Any] = field(default_factory=dict)
    commits: CommittingClone | None = None

    @cached_property
    def plans(self) -> Mapping[str, Plan]:
        return self.contract.plan_by_task()

    @cached_property
    def locked(self) -> dict[str, Any]:
        """What the last look at the lock found: `app/lock.py`."""
        return {}

    @property
    def work(self) -> Trees:
        return self.workspace.trees

    @property
    def run(self) -> str:
        return self.journal.state.id

    def protected(self, plan: Plan) -> tuple[str, ...]:
        """Globs of what no task of a plan may write; all that is in another repository is among it."""
        others = paths.below_rules(self.services.trees.repositories())
        return (*plan.scope.protected, *self.services.settings.protected, *others)


@dataclass(frozen=True, slots=True)
class Attempt:
    """`base` is the task base; `outcome` None means that nothing has gone wrong yet. Times are monotonic seconds.

    `told` is what `attempt.started` says of its envelope; `unlike` an attempt that deterministic mode refuses.
    `judged` is what the validator said, `judged_from` the snapshot of the user's tree from before it was asked.
    `failure` is set where an agent could not work, rather than worked wrongly.
    `handover` is what the attempt before left for this one, because the context of its agent was exhausted.
    `caches` are folders of tools that git ignored before the work, `new_caches` those that came with it.
    `offered` is what the builder committed, where that is its own task.
    `conversation` is the one that the builder goes on in, None where it begins a new one. Of an attempt that is
    `built` the work is there, and only its verdict was waited for; in one that is `adopted` nothing is built, for an
    old iDumb says that it is done. `exposed` are known secrets that it would commit.
    """

    task: Task
    plan: Plan
    number: int
    base: str
    feedback: str
    started: float
    accepted_paths: tuple[str, ...] = ()
    snapshot: Snapshot | None = None
    standing: RepositoryState | None = None
    told: Mapping[str, Any] = field(default_factory=dict)
    result: agent.AgentResult | None = None
    judged: agent.AgentResult | None = None
    judged_from: Snapshot | None = None
    candidate: str | None = None
    changes: tuple[ledger.Change, ...] = ()
    ledger: ledger.Ledger = ledger.Ledger(())
    evidence: tuple[Evidence, ...] = ()
    questions: tuple[Decision, ...] = ()
    answers: tuple[Answer, ...] = ()
    residue: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    new_caches: tuple[str, ...] = ()
    commands_ran: bool = False
    verdict: str | None = None
    outcome: str | None = None
    reason: str = ""
    deviation: bool = False
    unlike: bool = False
    failure: FailureMessage | None = None
    handover: str = ""
    conversation: Conversation | None = None
    built: bool = False
    offered: BuilderCommits | None = None
    commit_refused: str | None = None
    adopted: bool = False
    exposed: tuple[str, ...] = ()

    @property
    def literal_paths(self) -> tuple[str, ...]:
        return ledger.named_paths(self.task.files)

    def ended(self, result: str, reason: str) -> Attempt:
        return dataclasses.replace(self, outcome=result, reason=reason)
