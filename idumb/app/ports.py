"""The ports: protocols for what has a second behaviour, in tests or in another room; and types that rooms share.

Paths are `str`, relative to the workspace root with `/`; bytes that are not UTF-8 are surrogate escapes.
Object ids are hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from msgspec import Struct, field

if TYPE_CHECKING:
    from idumb.domain.action import Answer, Decision
    from idumb.domain.agent import AgentRequest, AgentResult, Claim
    from idumb.domain.finding import Finding
    from idumb.domain.permissions import Fence, Support
    from idumb.domain.plans.plan import Plan, Task
    from idumb.domain.proof.evidence import Evidence
    from idumb.domain.runs.event import Event

# Agents: they do the work of a task and answer with a claim.


class Agent(Protocol):
    """An agent adapter. `continues`: a retry after failed validation may continue from the attempt's own work.

    An attribute `capabilities` may declare more. An adapter of a third party may omit it: `agent.capabilities`.
    """

    name: str
    version: str
    continues: bool

    def run(self, request: AgentRequest) -> AgentResult: ...

    def describe(self) -> Sequence[str]:
        """The resolved argument list that `run` will start, for consent; () if it starts no program."""


Hear: TypeAlias = "Callable[[Claim], None]"


class ReportingAgent(Agent, Protocol):
    """An agent that reports its progress while it works."""

    def run(self, request: AgentRequest, hear: Hear | None = None) -> AgentResult:
        """Call `hear` with each progress report, in this thread. `hear` raises nothing, and no signal interrupts it."""


class DeferredAgent(Agent, Protocol):
    """An agent that may answer after this command has ended."""

    def question(self, request: AgentRequest) -> str:
        """Return a name for the request. It stays the same until the request is answered."""

    def ticket(self) -> str:
        """Return a new, unpredictable ticket. The log keeps it, and every request with the same question carries it."""


class Agents(Protocol):
    def get(self, binding: str) -> Agent:
        """The adapter of a configured binding, or of `steps` or `human`."""


class PromptRequest(Struct, frozen=True):
    """The input of a prompt. For a validator, `evidence` is that of the attempt.

    `template` is the text of the user's template; None selects the shipped one, by `name` or role. `handover` is the
    summary of an agent whose context was exhausted. `decided` are the answers of this run that apply to every task.
    `values` are the inputs of a workflow's step, and the answer it asks for, in words. `requirements` are those that
    the task serves, with their texts.
    """

    role: str
    task: Task
    plan: Plan
    protected: tuple[str, ...]
    feedback: str
    attempt: int
    evidence: tuple[Evidence, ...] = ()
    diff: str = ""
    template: str | None = None
    name: str = ""
    handover: str = ""
    decided: tuple[str, ...] = ()
    values: str = ""
    requirements: tuple[str, ...] = ()


# Plans and definitions of workflows, as they were read from files.


class ParsedPlan(Struct, frozen=True):
    """`plan` is None if a finding is an error. `text` is the decoded file, for edits by span.

    `draft` is the readable part of a plan with errors, for checks only; None if there is none. `dialect` is the format
    in which it was read, or the name of the tool whose format idumb does not read as a plan.
    """

    plan: Plan | None
    findings: tuple[Finding, ...]
    text: str = ""
    draft: Plan | None = None
    dialect: str = "plan"


class DefinitionFile(Struct, frozen=True):
    """A file with the definition of a workflow. `origin` is `repository`, `user` or `program`.

    `path` is from the repository's root, or absolute if the file is outside. `problem` says why it cannot be read.
    """

    name: str
    origin: str
    path: str
    data: bytes
    problem: str = ""


class RunStart(NamedTuple):
    """How a run started: `worktree` identifies project and working tree, `seq` is the number of its first event."""

    run: str
    phase: str
    worktree: str
    seq: int


# What a process works with: its clock, sandboxes, and its user.


class Clock(Protocol):
    def now(self) -> str:
        """UTC, ISO 8601 with microseconds and `Z`."""

    def monotonic(self) -> float:
        """Seconds, only for durations."""

    def pause(self, seconds: float) -> None:
        """Wait for this time or until an interruption."""


class Sandboxes(Protocol):
    """What limits where programs write."""

    def support(self) -> Support:
        """What this machine supports; it is tried once."""

    def launcher(self, level: str, fence: Fence) -> tuple[str, ...]:
        """Arguments before those of a program, which then writes only where `fence` allows it; () for no sandbox."""


class StopRequest(Struct, frozen=True):
    """Who asks an owner to stop, and why: now, or after its current task."""

    by: str
    why: str
    after_task: bool


class Asker(Protocol):
    """Asks the user at the terminal."""

    @property
    def interactive(self) -> bool:
        """Whether a user can be asked. False after a question was not answered in time."""

    def ask(self, decision: Decision) -> Answer | None:
        """The answer; None if nobody can be asked or nothing was decided."""


class Reporter(Protocol):
    """Shows progress and never fails the run. Receives each event after it is durable."""

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        """Start with the tasks of the run in execution order, and their statuses."""

    def event(self, event: Event) -> None: ...

    def note(self, text: str) -> None: ...


# The user's repository as data.


class Head(Struct, frozen=True):
    """`commit` is None before the first commit; `branch` is None if HEAD is detached."""

    commit: str | None
    branch: str | None


class RepositoryState(Struct, frozen=True):
    """HEAD, and a digest of each file that decides what git runs (`guarded`).

    `configuration` has the settings of each file of git's configuration; it is never recorded.
    """

    head: Head
    guarded: Mapping[str, str]
    configuration: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)


class Snapshot(Struct, frozen=True):
    """A kept tree with the name `ref` and the id `commit`; `tree` is the tree of the working tree's files alone."""

    commit: str
    tree: str
    ref: str


class Conflict(Struct, frozen=True):
    """A path that idumb does not write, because its present bytes are not the expected ones."""

    path: str
    why: str


class CommitAttempt(Struct, frozen=True):
    """`commit` is None if git, a hook or the signer refused; `words` is their message.

    `tree` is that of the commit, or of what a hook has left that refused the work (`by_hook`). `unrun` are hooks in the
    tree that this run wrote: then no hook ran.
    """

    commit: str | None
    words: str = ""
    tree: str = ""
    by_hook: bool = False
    unrun: tuple[str, ...] = ()
