"""Configuration as data: what `.idumb/config.yaml` may say, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from idumb.domain import canonical_json

COMMIT_TASK = "task"
COMMIT_BUILDER = "builder"
COMMIT_NONE = "none"
COMMIT_POLICIES = (COMMIT_TASK, COMMIT_BUILDER, COMMIT_NONE)
COMMITTED = frozenset({COMMIT_TASK, COMMIT_BUILDER})
"""Policies under which work that is done is on the user's branch, and idumb commits what nobody else does."""

ACCEPT = "accept"
HALT = "halt"
DEVIATION_POLICIES = (ACCEPT, HALT)

DEFAULT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ")


ASK_TIMEOUT = 30 * 60
"""Seconds that a question at a terminal waits for an answer where the configuration says nothing."""


IDLE_TIMEOUT = "run.idle_timeout"
NAMED = (IDLE_TIMEOUT,)
"""Settings of which it matters whether they are named."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of one process and, but for `processes`, of each that it starts; None is none.

    Memory and file size in bytes, CPU time in seconds. `processes` are all those of the user.
    """

    memory: int | None = None
    cpu: int | None = None
    processes: int | None = None
    file_size: int | None = None
    open_files: int | None = None

    def chosen(self) -> dict[str, int]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What may be used up at most; None is no ceiling. Money in US dollars, wall time in seconds."""

    attempts: int | None = None
    seconds: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """A named way to fill a role. `prompt` is `stdin` or `file`; `timeout` in seconds overrides the task's.

    `idle_timeout` (seconds) and `limits` stand for those of the whole configuration; None where it has none of its own.
    `model` is what the agent is asked to use, None for its own choice.
    """

    name: str
    adapter: str
    argv: tuple[str, ...] = ()
    prompt: str = "stdin"
    environment: tuple[str, ...] = ()
    timeout: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    idle_timeout: int | None = None
    limits: Limits | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """How a role is filled: the name of a binding, and what stands for the binding's own where it is said.

    `prompt` is the name of a template, without its ending; `timeout` in seconds.
    """

    binding: str | None = None
    model: str | None = None
    prompt: str | None = None
    timeout: int | None = None
    ceiling: Ceiling = Ceiling()


BRANCH_CURRENT = "current"
BRANCH_PHASE = "phase"
BRANCHES = (BRANCH_CURRENT, BRANCH_PHASE)


@dataclass(frozen=True, slots=True)
class GitSettings:
    commit: str = COMMIT_TASK
    hooks: bool = True
    commit_reports: bool = True
    network: bool = False
    branch: str = BRANCH_CURRENT
    branch_name: str = "idumb/phase-{phase}"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """`halt_after`: failed tasks in a row that stop a run. Times in seconds, output in bytes."""

    max_attempts: int = 3
    halt_after: int = 3
    on_deviation: str = HALT
    validator_timeout: int = 120
    check_timeout: int = 600
    output_limit: int = 8 * 1024 * 1024
    workspace: str = "here"
    idle_timeout: int = 3600
    check_idle_timeout: int | None = None


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What one gate or role has of its own; None where its level or its kind decides. `timeout` in seconds."""

    level: int | None = None
    timeout: int | None = None


_LATER = (
    "gates",
    "levels",
    "roles",
    "profile",
    "profiles",
    "ceilings",
    "prompts",
    "breaker",
    "retry",
)  # settings of which older hashes know nothing count only where they are given


_UNBOUND = ("ask", "named")  # what decides nothing about what runs or is written


@dataclass(frozen=True, slots=True)
class Settings:
    """`builder` and `validator` name bindings; None means that tasks bring their own steps and proofs.

    `gates` are by the name of a gate or role, `levels` are timeouts in seconds by the number of a level. `roles` are by
    role; `builder` and `validator` stand for the bindings of those two. `profile` names one of `profiles`, each of
    which gives roles their models. `ceilings` are of `task` and `run`. `prompts` are the texts of the user's own
    templates by name; they are files beside the configuration. `breaker` has `failures` and `time` (seconds) of the
    circuit breaker, `retry` has `calls` and `pause` (seconds) for what is only in the way of a call. `ask` has
    `timeout` (seconds): how long a question at a terminal waits. `named` are those of NAMED that the configuration
    names: with their default value, too, they stand for what an adapter would choose.
    """

    builder: str | None = None
    validator: str | None = None
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    git: GitSettings = GitSettings()
    run: RunSettings = RunSettings()
    protected: tuple[str, ...] = ()
    environment: tuple[str, ...] = DEFAULT_ENVIRONMENT
    limits: Limits = Limits()
    gates: Mapping[str, GateSettings] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    roles: Mapping[str, RoleSettings] = field(default_factory=dict)
    profile: str | None = None
    profiles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    breaker: Mapping[str, int] = field(default_factory=dict)
    retry: Mapping[str, int] = field(default_factory=dict)
    ask: Mapping[str, int] = field(default_factory=dict)
    named: frozenset[str] = frozenset()

    def idle_timeout(self, binding: str | None, usual: float | None) -> float:
        """Seconds of silence for a binding: its own, those of the run where they are named, else its adapter's usual.

        `usual` is None for adapters that have none of their own.
        """
        found = self.bindings.get(binding or "")
        own = found.idle_timeout if found is not None else None
        return float(own or (self.run.idle_timeout if usual is None or IDLE_TIMEOUT in self.named else usual))

    def deciding(self) -> dict[str, Any]:
        """Every setting that decides what runs or is written, as plain data."""
        return {name: value for name, value in asdict(self).items() if name not in _UNBOUND}

    def digest(self) -> str:
        """A hash of what `deciding` has. Consent is bound to that of the settings which govern a run (governing.py)."""
        return canonical_json.digest({name: v for name, v in self.deciding().items() if v or name not in _LATER})


@dataclass(frozen=True, slots=True)
class Policy:
    """`tools` None means that no policy file names any, so all are allowed.

    `sources` are the policy files that were read, as (path, SHA-256 of the bytes), the system-wide ones first.
    """

    tools: frozenset[str] | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    @property
    def digest(self) -> str | None:
        """What a contract is bound to; None without a policy file, so that hashes are the same as before there was one.

        It depends on the bytes of the files and on where they lie, because the place decides what they may say.
        """
        return canonical_json.digest([list(source) for source in self.sources]) if self.sources else None


NO_POLICY = Policy()


def narrow(policies: tuple[Policy, ...]) -> Policy:
    """All policies together: a tool must be allowed by each of them."""
    tools: frozenset[str] | None = None
    for policy in policies:
        if policy.tools is not None:
            tools = policy.tools if tools is None else tools & policy.tools
    return Policy(tools, tuple(source for policy in policies for source in policy.sources))
