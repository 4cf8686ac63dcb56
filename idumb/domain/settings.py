"""The configuration as data: what `.idumb/config.yaml` can set, and how roles are filled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict, replace

from idumb.domain import agent, canonical_json
from idumb.domain.permissions import SANDBOX_BWRAP, SANDBOX_OFF, SandboxSettings
from idumb.domain.plans.phase_ids import QUICK

COMMIT_TASK, COMMIT_NONE = COMMIT_POLICIES = ("task", "none")
KEEP, LEAVE_OUT, STOP = DEVIATION_POLICIES = ("keep", "leave-out", "stop")
"""Undeclared changes belong to the task, are not delivered with it, or stop it."""

DEFAULT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ")

ASK_TIMEOUT = 30 * 60
"""The default timeout, in seconds, of a question at a terminal."""

SNAPSHOT_LIMIT = 100
"""The default size, in MB, above which snapshots leave out an untracked file."""

IDLE_TIMEOUT = 3600
"""The idle timeout, in seconds, that neither a binding nor the configuration nor an adapter chooses."""


class Limits(Struct, frozen=True):
    """Ceilings of one process and, except for `processes`, of each process that it starts; None is no ceiling.

    Memory and file size in bytes, CPU time in seconds. `processes` counts all processes of the user.
    """

    memory: int | None = None
    cpu: int | None = None
    processes: int | None = None
    file_size: int | None = None
    open_files: int | None = None

    def chosen(self) -> dict[str, int]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class Ceiling(Struct, frozen=True):
    """The most that may be used; None is no ceiling. Money in US dollars, wall time in seconds."""

    attempts: int | None = None
    seconds: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None

    @property
    def words(self) -> str:
        """Such as `5 attempts, 600 s, $2.50`; "" without any."""
        attempts = "{} attempt" if self.attempts == 1 else "{} attempts"
        amounts = ((self.attempts, attempts), (self.seconds, "{} s"), (self.tokens, "{} tokens"))
        return ", ".join(
            words.format(most) for most, words in (*amounts, (self.cost_usd, "${:.2f}")) if most is not None
        )


class Binding(Struct, frozen=True):
    """A named way to fill a role. `prompt` is `stdin` or `file`; `timeout` in seconds overrides the task's.

    `idle_timeout` (seconds) and `limits` override those of the configuration; None for those. `model` is the requested
    model, None for the agent's own choice.
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


class RoleSettings(Struct, frozen=True):
    """How a role is filled: the name of a binding, and values that override the binding's.

    `prompt` is the name of a template without its extension; `timeout` in seconds.
    """

    binding: str | None = None
    model: str | None = None
    prompt: str | None = None
    timeout: int | None = None
    ceiling: Ceiling = Ceiling()


BRANCH_CURRENT, BRANCH_PHASE = BRANCHES = ("current", "phase")
MESSAGE, FROM_BUILDER = "{title}", "builder"
MESSAGE_FIELDS = ("title", "id", "phase")
_TRAILER = re.compile(r"[A-Za-z0-9-]+: *\S")
_FIELD = re.compile("|".join(f"{{{name}}}" for name in MESSAGE_FIELDS))
REPORTS_BRANCH, REPORTS_NONE = REPORTS = ("branch", "none")


class GitSettings(Struct, frozen=True):
    """`reports`: one of REPORTS, where they are kept. `message`: the template of commit messages, or FROM_BUILDER."""

    commit: str = COMMIT_TASK
    hooks: bool = True
    reports: str = REPORTS_BRANCH
    network: bool = False
    branch: str = BRANCH_CURRENT
    branch_name: str = "idumb/phase-{phase}"
    message: str = MESSAGE

    def commit_message(self, values: Mapping[str, str], trailers: Mapping[str, str], body: str = "") -> str:
        """Return a commit message in the user's template. `values` has MESSAGE_FIELDS; `body` follows the template.

        A value becomes one line, without characters that could control a terminal.
        """
        text, own = self._text_and_trailers()
        lines = {name: "".join(c if c.isprintable() else " " for c in value) for name, value in values.items()}
        text, own = (_FIELD.sub(lambda match: lines[match[0][1:-1]], part) for part in (text, own))
        last = own + "".join(f"{name}: {value}\n" for name, value in trailers.items())
        return "\n\n".join(filter(None, (text, body, last)))

    def _text_and_trailers(self) -> tuple[str, str]:
        """Return the template without trailers, and its trailers: git reads trailers only in the last paragraph."""
        text = (MESSAGE if self.message == FROM_BUILDER else self.message).strip("\n")
        start, gap, last = text.rpartition("\n\n")
        if gap and all(_TRAILER.match(line) for line in last.split("\n")):
            return start.rstrip("\n"), f"{last}\n"
        return text, ""


class RunSettings(Struct, frozen=True):
    """`halt_after` is the number of consecutive failed tasks that stops a run. Times in seconds, output in bytes."""

    max_attempts: int = 3
    halt_after: int = 3
    on_deviation: str = STOP
    validator_timeout: int = 120
    check_timeout: int = 600
    idle_timeout: int | None = None
    check_idle_timeout: int | None = None


PRIVATE_HOME, USER_HOME = HOMES = ("private", "user")
OPEN_NETWORK, NO_NETWORK = NETWORKS = ("open", "none")
CONTROL_BESIDE, CONTROL_BEFORE, CONTROL_OFF = CONTROLS = ("beside", "before", "off")


class CheckSettings(Struct, frozen=True):
    """What checks see; each judges a tree in a working tree of its own.

    `home`: each check has a home of its own (`private`), or the user's. `control`: checks also run on the tree before
    the work, which shows whether they depend on it: as far as there is time `beside` the builder, always (`before`), or
    never (`off`). `network`: what checks can reach, all (`open`) or only themselves (`none`); None if it is not chosen,
    which is open.
    """

    home: str = PRIVATE_HOME
    control: str = CONTROL_BESIDE
    network: str | None = None


class CheckoutSettings(Struct, frozen=True):
    """What a working tree of idumb's has besides its tree.

    `provide` are ignored paths of the user's working tree that are copied, of at most `limit` GiB. `prepare` are
    commands that install what checks need. `cache` are globs of ignored outputs that stay between tasks.
    """

    provide: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    cache: tuple[str, ...] = ()
    limit: int = 5


class GateSettings(Struct, frozen=True):
    """The settings of one gate or role; None for the default of its level or kind. `timeout` in seconds.

    `threshold` is the lowest score, of 100, that the gate `design` accepts.
    `run` are the commands of a gate, `entry_point` is the name of the function that judges instead.
    """

    level: int | None = None
    timeout: int | None = None
    threshold: int | None = None
    run: tuple[str, ...] = ()
    entry_point: str | None = None


FINISHED, FAILED, DECISION = NOTICES = ("finished", "failed", "decision")
"""The kinds of notices: a run has ended, a run stopped, a run waits for a person."""


class Notify(Struct, frozen=True):
    """The user's own settings for notices: `on` lists the kinds to send, the other fields say how to send them."""

    on: tuple[str, ...] = NOTICES
    command: tuple[str, ...] = ()
    webhook: str = ""
    desktop: bool = False

    @property
    def ways(self) -> dict[str, Any]:
        return {"command": list(self.command), "webhook": self.webhook, "desktop": self.desktop}


ROLE_TIMEOUT = 30 * 60
"""The timeout in seconds of a role that works on no task, unless the role or its binding sets one."""

OUTSIDE = frozenset({agent.RESEARCHER, agent.PLANNER, agent.PLAN_CHECKER, agent.DEBUGGER})
"""Roles that no run calls: some work before there is a plan, and the debugger works on a stopped run."""


class ResolvedRole(Struct, frozen=True):
    """How a role is filled. `binding` is None if nothing fills it.

    `prompt` is the name of a template, `timeout` in seconds. `template` is the text that replaces the shipped template
    of that name, None for the shipped one.
    """

    role: str
    binding: str | None
    model: str | None
    prompt: str
    template: str | None
    timeout: int | None
    ceiling: Ceiling

    def as_dict(self) -> dict[str, Any]:
        """Return what a person sees and what consent covers."""
        return {name: value for name, value in asdict(self).items() if name != "ceiling"}


_UNBOUND = ("ask", "snapshot")  # these do not affect what runs or is written


class Settings(Struct, frozen=True):
    """The whole configuration.

    - `builder`, `validator`: names of bindings; None means that tasks bring their own steps and proofs. They override
      the bindings of these two roles.
    - `gates`: by name of a gate or role. `levels`: timeouts in seconds by level.
    - `roles`: by role. `profiles`: each gives roles their models; `profile` names the one in use.
    - `ceilings`: of `task` and `run`.
    - `prompts`: the user's own templates by name; they are files next to the configuration.
    - `breaker`: `failures` and `time` (seconds) of the circuit breaker. `retry`: `calls` and `pause` (seconds) after
      transient failures. `ask`: `timeout` (seconds) of a question at a terminal.
    - `snapshot`: an untracked file of more than `limit` MB is left out, and a finished run is freed after `keep` days.
    - `sandbox`: None if the configuration does not set it.
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
    snapshot: Mapping[str, int] = field(default_factory=dict)
    checks: CheckSettings = CheckSettings()
    checkout: CheckoutSettings = CheckoutSettings()
    sandbox: SandboxSettings | None = None

    @property
    def sandboxed(self) -> bool:
        return self.sandbox is not None and self.sandbox.level != SANDBOX_OFF

    @property
    def requires_sandbox(self) -> bool:
        """Whether no agent and no check may start without a sandbox."""
        return self.sandbox is not None and self.sandbox.level == SANDBOX_BWRAP

    def program_of(self, name: str) -> str:
        """Return the name of the program that a binding starts, or of its adapter; else the name itself."""
        binding = self.bindings.get(name, Binding(name, name))
        return binding.argv[0].rpartition("/")[2] if binding.argv else binding.adapter

    def role(self, role: str, binding: str | None = None) -> ResolvedRole:
        """Return how a role is filled; pass `binding` if a plan or task names its own."""
        own = self.roles.get(role, RoleSettings())
        usual = {agent.BUILDER: self.builder, agent.VALIDATOR: self.validator}.get(role)
        name = binding or own.binding or usual
        bound = self.bindings.get(name or "")
        of_profile = self.profiles.get(self.profile or "", {}).get(role)
        prompt = own.prompt or role
        return ResolvedRole(
            role=role,
            binding=name,
            model=own.model or of_profile or (bound.model if bound is not None else None),
            prompt=prompt,
            template=self.prompts.get(prompt),
            timeout=own.timeout or (bound.timeout if bound is not None else None),
            ceiling=own.ceiling,
        )

    def reports_of(self, phase: str) -> str:
        """Return where the reports of a new run of a phase are; only the log has those of quick plans."""
        return REPORTS_NONE if QUICK.number_of(phase) is not None else self.git.reports

    def commits_reports_of(self, phase: str) -> bool:
        """Return whether a new run of a phase commits its reports to the branch."""
        return self.reports_of(phase) == REPORTS_BRANCH and self.git.commit == COMMIT_TASK

    def of_runs(self, agents: Iterable[str | None]) -> Settings:
        """Return the settings that can affect a run. `agents` are the builders and validators of all its tasks.

        Omitted are:

        - how the roles OUTSIDE are filled, including their models in profiles. They have a consent of their own, which
          covers binding, model and template;
        - bindings that no task, setting or role of a run names. An amendment that names another binding makes another
          contract. A binding stays if one of its variables is also visible to checks, because its variables are treated
          as secrets;
        - templates that no role of a run uses.

        Everything else stays, whether the run uses it or not: too much only means that a person is asked once more.
        """
        filled = [self.role(role) for role in agent.ROLES if role not in OUTSIDE]
        needed = {*agents, self.builder, self.validator, *(each.binding for each in filled)}
        profiles = {name: _without_outside(models) for name, models in self.profiles.items()}
        kept = {name: models for name, models in profiles.items() if models}
        return replace(
            self,
            bindings={
                name: bound
                for name, bound in self.bindings.items()
                if name in needed or set(bound.environment) & set(self.environment)
            },
            roles=_without_outside(self.roles),
            profiles=kept,
            profile=None if self.profile in profiles and self.profile not in kept else self.profile,
            prompts={name: text for name, text in self.prompts.items() if name in {each.prompt for each in filled}},
        )

    def idle_timeout(self, binding: str | None, usual: float | None) -> float:
        """Return the idle timeout in seconds of a binding: its own, the configured one, or its adapter's default.

        `usual` is None for adapters without a default.
        """
        bound = self.bindings.get(binding or "")
        own = bound.idle_timeout if bound is not None else None
        return float(own or self.run.idle_timeout or usual or IDLE_TIMEOUT)

    def deciding(self) -> dict[str, Any]:
        """Every setting that decides what runs or is written, as plain data."""
        return {name: value for name, value in to_builtins(self).items() if name not in _UNBOUND}

    def digest(self) -> str:
        """Return a hash of `deciding`. Consent covers the hash of the settings that govern a run (roles.py)."""
        return canonical_json.digest(self.deciding())


T = TypeVar("T")


def _without_outside(by_role: Mapping[str, T]) -> dict[str, T]:
    return {role: value for role, value in by_role.items() if role not in OUTSIDE}
