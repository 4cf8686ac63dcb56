"""The state of one task of a run, built from events by `replay`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from idumb.domain import outcome
from idumb.domain.runs.spending import Spent
from idumb.lazy_dataclass import dataclass

EFFECT = "made"
COMPENSATED = "compensated"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What idumb keeps after an attempt: `tree` is the candidate's, `git_hash` is HEAD after it (None: no commit)."""

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
class AgentStatus:
    """The last status that the agent in `role` reported in its own words; `number` counts reports of the attempt."""

    role: str
    state: str
    message: str
    number: int
    at: str


@dataclass(frozen=True, slots=True)
class AttemptState:
    """The last attempt of a task, open or ended.

    - `number`: its number; 0 if the task was never attempted.
    - `outcome`: how it ended; None before.
    - `adapter`: the adapter of its builder. `failure`: why its agent could not work, None if it could.
    - `failed_step`: the index of the declared step that ended it.
    - `crashed`: the builder's process was killed or crashed.
    - `unjudged`: the work waits for an external verdict.
    - `deviates`: it changed undeclared files, or what was committed is not what was proven. `unlike`: a deterministic
      run refused it. `next_step`: what helps if its agent could not work.
    - `opened`: while an editor works on it, `by` whom and since when (`at`).
    - `agent_status`: what an agent last reported, until the attempt ends.
    """

    number: int = 0
    running: bool = False
    outcome: str | None = None
    adapter: str = ""
    failure: str | None = None
    failed_step: int | None = None
    crashed: bool = False
    unjudged: bool = False
    deviates: bool = False
    unlike: bool = False
    next_step: str = ""
    opened: Mapping[str, Any] | None = None
    agent_status: AgentStatus | None = None


@dataclass(frozen=True, slots=True)
class TaskWork:
    """What a task changed.

    - `base`: the tree that the task starts from. `left_tree`: the tree that its last attempt left.
    - `snapshots`: those of the user's tree before its attempts, the newest first.
    - `touched`: the paths changed since the base. `deviations`: those among them that the task does not declare.
    - `accepted_paths`: the deviations that a person accepted.
    - `symbols`: changes of symbols, such as `added slugify in slug.py`.
    """

    base: str | None = None
    left_tree: str | None = None
    snapshots: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    accepted_paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How often a task was attempted, and what that used.

    - `attempts`: attempts that count against the limit.
    - `settled`: the number of the last attempt that did not end by waiting.
    - `exhausted`: agents whose context window was full.
    - `failure`: (reason, tree left) of the last attempt. `repeated`: attempts after it that ended the same way.
    """

    attempts: int = 0
    settled: int = 0
    exhausted: int = 0
    failure: tuple[str, str] = ("", "")
    repeated: int = 0
    seconds: float = 0.0
    spent: Spent = Spent()


@dataclass(frozen=True, slots=True)
class NextContext:
    """What the builder of the next attempt receives.

    - `feedback`: what was wrong with the last attempt. `guidance`: the last guidance of a person, with their name.
    - `handover`: what the last agent with a full context window left for its successor.
    """

    feedback: str = ""
    guidance: str = ""
    handover: str = ""


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of one task.

    - `decisions`: ids of the questions that the task waits for.
    - `intended`: a checkpoint was announced and not recorded yet.
    - `accepted_commit`: the commit that a person's acceptance made.
    - `carried_from`: the earlier run whose result the task keeps.
    - `effect`: `made` if a task with effects outside its files may have had them, `compensated` if its own commands
      reverted them, else empty.
    - `once`: the person who retried it asked for a single attempt.
    - `outputs`: what the step of a workflow gave out. `omitted_by`: the task whose result omitted it, else "".
    """

    id: str
    digest: str
    status: str = outcome.PENDING
    reason: str = ""
    decisions: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    intended: bool = False
    accepted_commit: str | None = None
    carried_from: str | None = None
    effect: str = ""
    once: bool = False
    outputs: Mapping[str, Any] = field(default_factory=dict)
    omitted_by: str = ""
    attempt: AttemptState = AttemptState()
    work: TaskWork = TaskWork()
    progress: TaskProgress = TaskProgress()
    context: NextContext = NextContext()
