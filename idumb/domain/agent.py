"""What an agent adapter is asked, and what it answers. The answer is a claim; only bytes are believed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from idumb.domain import canonical_json
from idumb.domain import outcome as outcomes
from idumb.domain.decision import Answer, Decision
from idumb.domain.errors import AdapterError
from idumb.domain.plans.plan import Task

RESEARCHER = "researcher"
PLANNER = "planner"
PLAN_CHECKER = "plan-checker"
BUILDER = "builder"
VALIDATOR = "validator"
SKEPTIC = "skeptic"
VERIFIER = "verifier"
DEBUGGER = "debugger"
ROLES = (RESEARCHER, PLANNER, PLAN_CHECKER, BUILDER, VALIDATOR, SKEPTIC, VERIFIER, DEBUGGER)

STEPS = "steps"
HUMAN = "human"
EDITOR = "editor"
"""The builder that drives idumb itself, from the user's editor: no adapter starts it, `start` and `submit` do."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an adapter declares, so that no caller tests its name. The defaults fit an adapter that declares nothing.

    - `calls_model`: behind it is a model, which can be out of reach and costs something.
    - `reads_prompt`: it uses the request's prompt.
    - `asks_person`: it puts the request's question to a person.
    - `works_in_place`: people do the work, in the user's own working tree, and no two attempts need to be alike.
    - `deterministic`: the same task on the same tree leaves the same bytes, whatever an earlier attempt reported.
    - `resumable`: it continues the conversation that a request's `session` names.
    - `reports_progress`: it is a `ReportingAgent`.
    - `idle_timeout`: seconds of silence it is allowed if the configuration names none.
    """

    calls_model: bool = True
    reads_prompt: bool = True
    asks_person: bool = False
    works_in_place: bool = False
    deterministic: bool = False
    resumable: bool = False
    reports_progress: bool = False
    idle_timeout: int | None = None


BUILT_IN = {
    STEPS: Capabilities(calls_model=False, reads_prompt=False, deterministic=True),
    HUMAN: Capabilities(calls_model=False, reads_prompt=False, asks_person=True, works_in_place=True),
    EDITOR: Capabilities(calls_model=False, works_in_place=True),
}
"""Adapters that need no binding. Their names are reserved, so a recorded name tells their capabilities too."""


def capabilities_of(adapter: str) -> Capabilities:
    """Return the capabilities of an adapter that only a record names."""
    return BUILT_IN.get(adapter, Capabilities())


# Why an agent did not do its work, where that was not the work itself.
MISSING = "missing"
NOT_LOGGED_IN = "not-logged-in"
UNKNOWN_MODEL = "unknown-model"
DECLINED = "declined"
RATE_LIMITED = "rate-limited"
NETWORK = "network"
MALFORMED = "malformed"
STALL = "stall"
CONTEXT_EXHAUSTED = "context-exhausted"
OVER_BUDGET = "over-budget"
FAILURES = (
    MISSING,
    NOT_LOGGED_IN,
    UNKNOWN_MODEL,
    DECLINED,
    RATE_LIMITED,
    NETWORK,
    MALFORMED,
    STALL,
    CONTEXT_EXHAUSTED,
    OVER_BUDGET,
)
TRANSIENT = frozenset({RATE_LIMITED, NETWORK})
"""Failures that say nothing of the work: to ask the same again later can help."""

# What an agent may say of itself while it works.
WORKING = "working"
WAITS = "waiting"
BLOCKED = "blocked"
DONE = "done"
STATES = (WORKING, WAITS, BLOCKED, DONE, *FAILURES)


@dataclass(frozen=True, slots=True)
class Claim:
    """Where an agent says that it stands while it works: `state` is one of STATES. It proves nothing."""

    state: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """Ceilings for one attempt; None means no ceiling."""

    tokens: int | None = None
    cost_usd: float | None = None
    output_bytes: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """What the agent says it used; None is unknown and is shown as unknown."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One piece of work for one role.

    `task` is None for roles that work on more than one task; `about` then says on what, such as `phase-2`. `model` is
    the model that is wanted, None for the agent's own choice. `schema` is a JSON Schema that the reply is to follow,
    whose first required key tells the answer from other JSON, None for free text. `workspace` is an absolute path.
    `allowed_paths` are the paths and globs the task declares (without `read`). `question` is set where a person is to
    do the work, `answer` where that person has answered already. `deadline` is in seconds from the start of the call,
    None for no limit. `attempt` counts from 1.
    `feedback` is what the validator said of the attempt before, "" on the first. `idle_timeout` is how long (seconds)
    nothing may be printed and nothing done, `limits` are ceilings by name (`idumb.domain.settings.Limits`).
    `session` is the agent's own id of a conversation that it is to go on in, None for a new one.
    `settled` is the number of the last attempt that ended otherwise than by waiting, 0 where none did; `candidate` is
    the tree that a validator judges, without idumb's own files, "" for other roles.
    `ticket` is for agents that are elsewhere: it tells this question from one that could be foreseen, "" for others.
    `unsaved` are paths, folders with `/` at their end, that git ignores, so that no snapshot has what is there.
    `commits` is whether a builder is to commit its own work, in the git folder of its workspace.
    """

    role: str
    task: Task | None
    prompt: str
    workspace: str
    allowed_paths: tuple[str, ...]
    attempt: int = 1
    deadline: float | None = None
    budget: Budget = Budget()
    feedback: str = ""
    session: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    protected: tuple[str, ...] = ()
    run_id: str = ""
    question: Decision | None = None
    answer: Answer | None = None
    idle_timeout: float | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    about: str = ""
    model: str | None = None
    schema: Mapping[str, Any] | None = None
    settled: int = 0
    candidate: str = ""
    ticket: str = ""
    unsaved: tuple[str, ...] = ()
    commits: bool = False

    def is_unsaved(self, path: str) -> bool:
        """Whether no snapshot has what may be at a path: git ignores it, and the task is not to write it by name."""
        below = tuple(one for one in self.unsaved if one.endswith("/"))
        return (path in self.unsaved or path.startswith(below)) and path not in self.allowed_paths

    @property
    def subject(self) -> str:
        """What is worked on, in one word that may stand in a file name: the task's id, or `about`."""
        return self.task.id if self.task is not None else self.about


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The audit entry of one tool call: sanitised arguments (long values as digests) and the full response.

    `words` say how the call ended, such as `exit 3, expected 0`.
    """

    index: int
    tool: str
    intent: str
    arguments: Mapping[str, object]
    ok: bool
    response: str
    seconds: float = 0.0
    words: str = ""


@dataclass(frozen=True, slots=True)
class AgentResult:
    """`outcome` is one of `idumb.domain.outcome`; `transcript` names where the spooled output is kept.

    `exit_code` is None where there was no process. `output` holds head and tail of what was printed, bounded.
    `answer` is what a person said to the request's question. `cause` says why it did not end by itself: `resources`,
    `deadlock`, `model-stall` or `external`; None where it did. `failure` is one of FAILURES where something other than
    the work went wrong, and None otherwise. `reply` is the agent's last message in full, without secrets; it is what
    planners and other roles of text answer with. `handover` is what a next agent must know to go on where this one's
    context was exhausted. `model` is the model that the agent says it used. `session` is
    its own id of the conversation, `resumed` whether that is the one that the request named. `crashed`: its process
    came to no end of its own, so what it left is not what it meant to leave.
    """

    outcome: str
    message: str = ""
    claimed_files: tuple[str, ...] = ()
    session: str | None = None
    usage: Usage = Usage()
    transcript: str | None = None
    exit_code: int | None = None
    output: str = ""
    output_sha256: str | None = None
    truncated: bool = False
    steps: tuple[StepRecord, ...] = ()
    seconds: float = 0.0
    answer: Answer | None = None
    cause: str | None = None
    failure: str | None = None
    reply: str = ""
    handover: str = ""
    model: str | None = None
    resumed: bool = False
    crashed: bool = False


def unusable(problem: AdapterError) -> AgentResult:
    """The answer of an adapter that cannot ask anybody, with what mends it."""
    failure = NOT_LOGGED_IN if problem.code == "agent.no-key" else MISSING
    return AgentResult(outcomes.ERRORED, f"{problem.message} {problem.hint or ''}".strip(), failure=failure)


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


_WHO = ("adapter", "adapter_version", "program", "binding", "model")


_OVER = frozenset({CONTEXT_EXHAUSTED, DECLINED, MALFORMED})
"""Failures after which nobody goes on in the same conversation: it is full, was refused, or nobody can read it."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """`session` is the agent's own id of it, `attempt` the last one that was made in it.

    `speaker` is a digest of who the agent was, `contract` the hash of what was locked in then.
    """

    session: str
    attempt: int
    speaker: str
    contract: str


def session_id(session: object) -> str | None:
    """An id that may stand among a program's arguments; None for every other text, for agents choose it."""
    return session if isinstance(session, str) and _ID.fullmatch(session) else None


def speaker_digest(envelope: Mapping[str, Any]) -> str:
    """A digest of the agent as an envelope has it; another version, program or model is somebody else."""
    return canonical_json.digest([envelope.get(part) for part in _WHO])


def continue_conversation(
    known: Conversation | None, finished: Mapping[str, Any], *, attempt: int, speaker: str, contract: str
) -> Conversation | None:
    """What `attempt.finished` leaves to go on with; None where there is nothing, or nobody should."""
    built = finished.get("builder") or {}
    if built.get("failure") in _OVER:
        return None
    session = session_id(built.get("session"))
    if session is None and finished.get("resumed") and known is not None:
        session = known.session
    return None if session is None else Conversation(session, attempt, speaker, contract)
