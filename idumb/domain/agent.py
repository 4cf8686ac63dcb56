"""The request to an agent and its result. A result is a claim: idumb proves it from bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from idumb.domain import outcome as outcomes
from idumb.domain.action import Answer, Decision
from idumb.domain.errors import AdapterError
from idumb.domain.plans.plan import Task

RESEARCHER, PLANNER, PLAN_CHECKER, BUILDER, VALIDATOR, SKEPTIC, VERIFIER, DEBUGGER = ROLES = (
    "researcher", "planner", "plan-checker", "builder", "validator", "skeptic", "verifier", "debugger",
)  # fmt: skip

STEPS = "steps"
HUMAN = "human"
EDITOR = "editor"
"""The builder that drives idumb from the user's editor. No adapter starts it; it calls `start` and `submit` itself."""
BY_PERSON = frozenset({HUMAN, EDITOR})
"""Adapters with which a person builds, or may build."""


class Capabilities(Struct, frozen=True):
    """What an adapter declares, so that no caller tests its name. The defaults fit an adapter that declares nothing.

    - `calls_model`: behind it is a model, which can be out of reach and costs something.
    - `reads_prompt`: it uses the request's prompt.
    - `asks_person`: it puts the request's question to a person.
    - `works_in_place`: people do the work, in the user's own working tree, and no two attempts need to be alike.
    - `deterministic`: the same task on the same tree leaves the same bytes, whatever an earlier attempt reported.
    - `reports_progress`: it is a `ReportingAgent`.
    - `idle_timeout`: seconds of silence it is allowed if the configuration names none.
    - `sandboxed`: what it writes is limited by the configured sandbox, or by idumb, which writes it.
    """

    calls_model: bool = True
    reads_prompt: bool = True
    asks_person: bool = False
    works_in_place: bool = False
    deterministic: bool = False
    reports_progress: bool = False
    idle_timeout: int | None = None
    sandboxed: bool = False


BUILT_IN = {
    STEPS: Capabilities(calls_model=False, reads_prompt=False, deterministic=True, sandboxed=True),
    HUMAN: Capabilities(calls_model=False, reads_prompt=False, asks_person=True, works_in_place=True),
    EDITOR: Capabilities(calls_model=False, works_in_place=True),
}
"""Adapters that need no binding. Their names are reserved, so a recorded name also identifies their capabilities."""


def capabilities(adapter: object) -> Capabilities:
    """Return what an adapter declares, or the defaults."""
    declared: Capabilities = getattr(adapter, "capabilities", Capabilities())
    return declared


def capabilities_of(adapter: str) -> Capabilities:
    """Return the capabilities of an adapter that only a record names."""
    return BUILT_IN.get(adapter, Capabilities())


class Readiness(Struct, frozen=True):
    """What an adapter knows of its agent before a request. `logged_in` is None if nobody can tell; `how` says how.

    `version` is that of the agent, "" if it has none.
    """

    version: str = ""
    logged_in: bool | None = None
    how: str = ""


# Why an agent could not do its work, for reasons outside the work.
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
    MISSING, NOT_LOGGED_IN, UNKNOWN_MODEL, DECLINED, RATE_LIMITED, NETWORK, MALFORMED, STALL, CONTEXT_EXHAUSTED,
    OVER_BUDGET,
)  # fmt: skip

# The states that an agent can report while it works.
WORKING = "working"
WAITS = "waiting"
BLOCKED = "blocked"
DONE = "done"
STATES = (WORKING, WAITS, BLOCKED, DONE, *FAILURES)


class Claim(Struct, frozen=True):
    """A progress report of a working agent; `state` is one of STATES. It proves nothing."""

    state: str
    message: str = ""


class Budget(Struct, frozen=True):
    """Ceilings for one attempt; None means no ceiling."""

    tokens: int | None = None
    cost_usd: float | None = None


class Usage(Struct, frozen=True):
    """The usage that the agent reports; None means unknown."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


class AgentRequest(Struct, frozen=True):
    """One piece of work for one role.

    - `task`: None for roles that work on more than one task; `about` then names the subject, such as `phase-2`.
    - `model`: the requested model, None for the agent's own choice.
    - `schema`: a JSON Schema for the reply, whose first required key distinguishes the answer from other JSON; None for
      free text.
    - `workspace`: an absolute path.
    - `allowed_paths`: the paths and globs that the task declares, without `read`.
    - `question`: the question to ask if a person does the work; `answer` is set if that person has answered already.
    - `deadline`: seconds from the start of the call, None for no limit.
    - `attempt`: counts from 1. `feedback`: the validator's findings about the previous attempt, "" on the first.
    - `idle_timeout`: seconds without output or activity. `limits`: ceilings by name (`idumb.domain.settings.Limits`).
    - `settled`: the number of the last attempt that did not end by waiting, 0 if there is none.
    - `candidate`: the tree that a validator judges, without idumb's own files; "" for other roles.
    - `ticket`: for agents that answer later, a token that makes this question unpredictable; "" for others.
    - `ignored`: what git ignores in the workspace, which a model does not see; folders end with `/`.
    - `repository`: the absolute path of the user's project, for effects outside the checkout, such as a tag.
    - `values`: environment variables that lead into the checkout, and those of the step of a workflow.
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
    ignored: tuple[str, ...] = ()
    repository: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    def is_ignored(self, path: str) -> bool:
        """Whether git ignores `path` and the task does not declare it by name."""
        below = tuple(folder for folder in self.ignored if folder.endswith("/"))
        return (path in self.ignored or path.startswith(below)) and path not in self.allowed_paths

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that identify the task to its processes, and `values`."""
        named = {"TASK": self.subject, "ATTEMPT": str(self.attempt), "ROLE": self.role, "REPOSITORY": self.repository}
        return {**self.values, **{f"IDUMB_{name}": text for name, text in named.items() if text}}

    @property
    def subject(self) -> str:
        """The subject as one word that is safe in a file name: the task's id, or `about`."""
        return self.task.id if self.task is not None else self.about


class StepRecord(Struct, frozen=True):
    """The audit record of one tool call: redacted arguments (long values as digests) and the full response.

    `words` describes how the call ended, such as `exit 3, expected 0`.
    """

    index: int
    tool: str
    intent: str
    arguments: Mapping[str, object]
    ok: bool
    response: str
    seconds: float = 0.0
    words: str = ""


class AgentResult(Struct, frozen=True):
    """The result of one call.

    - `outcome`: one of `idumb.domain.outcome`. `transcript`: where the full output is stored.
    - `exit_code`: None if there was no process. `output`: head and tail of the output, bounded.
    - `answer`: a person's answer to the request's question.
    - `cause`: why the process was ended: `resources`, `deadlock`, `model-stall` or `external`; None if it ended by
      itself.
    - `failure`: one of FAILURES if something other than the work failed, else None.
    - `reply`: the agent's last message in full, redacted. Planners and other text roles answer with it.
    - `handover`: what the next agent needs to know to continue, if this one's context window was full.
    - `model`: the model that the agent reports. `session`: its id of the conversation.
    - `crashed`: its process was killed or crashed, so the files may be incomplete.
    - `sandbox`: the level in force, or why there was none; "" if none was configured.
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
    crashed: bool = False
    sandbox: str = ""


def unusable(problem: AdapterError) -> AgentResult:
    """Return the result of an adapter that could not call its agent, with the fix."""
    failure = NOT_LOGGED_IN if problem.code == "agent.no-key" else MISSING
    return AgentResult(outcomes.ERRORED, f"{problem.message} {problem.hint or ''}".strip(), failure=failure)


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


def session_id(session: object) -> str | None:
    """Return the id if it is safe as an argument of a program, else None. Agents choose these ids."""
    return session if isinstance(session, str) and _ID.fullmatch(session) else None


class RecordedAttempt(Struct, frozen=True):
    """One attempt of one task of a run.

    - `digest`: of the task at that time. `built`: the builder's result. `judged`: the validator's, None if there was
      none.
    - `trees`: the task base, and the tree that each attempt up to this one left; replay starts from any and ends with
      the last.
    - `paths`: all paths that these attempts changed.
    - `judged_tree`: the candidate that the validator judged, None if unknown.
    """

    digest: str
    built: AgentResult
    judged: AgentResult | None
    trees: tuple[str, ...]
    paths: tuple[str, ...]
    judged_tree: str | None = None
