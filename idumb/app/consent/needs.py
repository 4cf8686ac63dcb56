"""What must be agreed to: the parts of a run, of the agents of roles, and what an approval binds besides.

Parts are computed before a question is asked, so that an answer covers what was shown. A contract's hash does not
identify programs, because PATH decides which file a name means; their paths are parts of their own. An agent can be
updated in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import to_builtins
from msgspec.structs import asdict

from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.app.ports import Agents
from idumb.domain import agent, canonical_json
from idumb.domain import contract as contracts
from idumb.domain import grant as grants
from idumb.domain.contract import Contract
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.grant import CONTRACT, Need, Part
from idumb.domain.plans import run_files as naming
from idumb.domain.plans.plan import IRREVERSIBLE, Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import CLOSED
from idumb.domain.settings import ResolvedRole, Settings

ROLES = "roles"
"""The place of consent to the agents of roles, so that it can be revoked like that of a phase."""

JUDGES = (agent.VERIFIER, agent.SKEPTIC)
OWN_REPORTS = (".idumb/brain/**", "**/*-SUMMARY.md", "**/*-VERIFICATION.md")
"""Files that idumb itself writes during a run."""

_OF_CHECKS = ("checkout", "checks", "environment", "sandbox")
_MISCONFIGURED = frozenset({"agent.bad-option", "agent.inside-repository", "agent.unknown-adapter"})


def of_run(services: Services, contract: Contract) -> Need:
    """Return what a run needs: its contract, each program that builds or validates, and the judges that can start."""
    return Need(contract.phase, {**of_work(services, contract), **_judges(services)})


def of_work(services: Services, contract: Contract) -> dict[str, Part]:
    return {CONTRACT: grants.part(contract.hash), **of_agents(services, contract), **of_checks(services)}


def of_checks(services: Services) -> dict[str, Part]:
    """Return what the configuration changes about how checks run; nothing if all of it is as usual.

    It is part of the contract, too. `prove` needs it alone: the contract that ran had an earlier configuration.
    """
    now, usual = services.settings.deciding(), Settings().deciding()
    chosen = {name: now[name] for name in _OF_CHECKS if now[name] != usual[name]}
    return {grants.CHECKS: grants.part(chosen)} if chosen else {}


def of_agents(services: Services, contract: Contract, agents: Agents | None = None) -> dict[str, Part]:
    """Return the program of each binding that starts one. `agents` are those of a run; None means the present ones."""
    parts = {}
    for name in bindings(services.settings, contract):
        try:
            argv = (agents or services.adapters).get(name).describe()
        except AdapterError:  # the run itself reports this
            continue
        if argv:
            parts[grants.AGENT + name] = grants.part({"program": argv[0], "arguments": list(argv[1:])})
    return parts


def _judges(services: Services) -> dict[str, Part]:
    parts = {}
    for role in bound_judges(services):
        try:
            parts[role] = of_role(services, role_with_binding(services, role))
        except Refusal:  # the verification reports it
            continue
    return parts


def bound_judges(services: Services) -> tuple[str, ...]:
    """Return which of verifier and skeptic have a binding."""
    return tuple(role for role in JUDGES if services.settings.role(role).binding is not None)


def of_roles(services: Services, roles: Iterable[str]) -> Need:
    """Return what these roles need; Refusal if one has no binding or its program cannot start."""
    fillings = [role_with_binding(services, role) for role in dict.fromkeys(roles)]
    return Need(ROLES, {filled.role: of_role(services, filled) for filled in fillings})


def role_with_binding(services: Services, role: str) -> ResolvedRole:
    filled = services.settings.role(role)
    if filled.binding is None:
        raise Refusal(
            "role.unbound",
            f"No agent is bound to the role {role}.",
            hint=f"Add `roles: {{{role}: {{binding: NAME}}}}` to .idumb/config.yaml; NAME is one of its bindings",
            details={"role": role},
        )
    return filled


def of_role(services: Services, filled: ResolvedRole) -> Part:
    """Return the part of one role: the path of its program, and a digest of everything else that decides what it does.

    Only digests, because a template may be long and an option may hold a secret.
    """
    settings = services.settings
    binding = settings.bindings.get(filled.binding or "")
    argv = role_argv(services, filled)
    deciding = {
        **filled.as_dict(),
        "arguments": list(argv[1:]),
        **named_files(services, [argv]),
        "binding": to_builtins(binding),
        "environment": list(settings.environment),
        "limits": asdict(settings.limits),
    }
    digests = {name: canonical_json.digest(value) for name, value in deciding.items()}
    return grants.part({"program": argv[0] if argv else None, **digests})


def role_argv(services: Services, filled: ResolvedRole) -> tuple[str, ...]:
    try:
        return tuple(services.adapters.get(filled.binding or "").describe())
    except AdapterError as problem:
        raise cannot_start(filled.binding or "", problem) from problem


def of_approval(
    services: Services, contract: Contract, *, base: str | None = None, files: Iterable[str] | None = None
) -> dict[str, Part]:
    """Return everything that an approval binds, as it is now. `base` is set only if it binds the base commit.

    `files` are the files that it binds; None selects the present ones.
    """
    policy = services.policy
    return of_work(services, contract) | grants.strict_parts(
        contract,
        services.settings,
        commands=_commands(services, contract),
        files=_present_files(services, contract) if files is None else services.named_files.digests(files),
        policy={"tools": None if policy.tools is None else sorted(policy.tools), "sources": dict(policy.sources)},
        base=base,
    )


def of_irreversible(contract: Contract, tasks: Iterable[str]) -> dict[str, Part]:
    """Return the parts of irreversible tasks. They end with the contract."""
    return {grants.IRREVERSIBLE + t: grants.part({"contract": contract.hash, "task": t}) for t in tasks}


def irreversible_tasks(contract: Contract) -> tuple[Task, ...]:
    """The irreversible tasks in execution order, except those that a person does."""
    tasks = (contract.tasks[t] for t in contract.order)
    return tuple(task for task in tasks if task.rollback.kind == IRREVERSIBLE and not task.is_human)


def _present_files(services: Services, contract: Contract) -> Mapping[str, str]:
    """SHA-256 of the files that commands and arguments name and that no task declares as its output."""
    written = [p for task in contract.tasks.values() for p in ledger.written_paths(task.files)]
    argv = [services.settings.bindings[name].argv for name in bindings(services.settings, contract)]
    return named_files(services, argv, commands=_commands(services, contract), written=written)


def named_files(
    services: Services, arguments: Iterable[Sequence[str]], *, commands: Sequence[str] = (), written: Sequence[str] = ()
) -> dict[str, str]:
    """SHA-256 of the files in the repository that arguments and commands name, except `written` (paths, globs).

    Files that git ignores are excluded: most of them are outputs of these commands.
    """
    names = naming.named_files(commands, [*OWN_REPORTS, *written], services.root, arguments)
    digests = services.named_files.digests(names)
    ignored = services.history.ignored(digests)
    return {path: digest for path, digest in digests.items() if path not in ignored}


def bindings(settings: Settings, contract: Contract) -> tuple[str, ...]:
    """The bindings that build or validate, in order of first use."""
    return tuple(models_by_agent(settings, contract))


def models_by_agent(settings: Settings, contract: Contract) -> dict[str, dict[str, str | None]]:
    """Return the roles of each binding (builder, validator), with the model that each role requests."""
    models: dict[str, dict[str, str | None]] = {}
    for plan in contract.plans:
        for task in plan.tasks:
            builder = contracts.builder_of(plan, task, settings)
            validator = contracts.validator_of(plan, task, settings)
            for role, name in ((agent.BUILDER, builder), (agent.VALIDATOR, validator)):
                if name is not None and name in settings.bindings and role not in models.get(name, ()):
                    models.setdefault(name, {})[role] = settings.role(role, name).model
    return models


def unusable(services: Services, contract: Contract, *, missing: bool = False) -> Iterator[tuple[str, AdapterError]]:
    """Yield the bindings that cannot start until the configuration changes, with the reason.

    With `missing`, also those whose program is not on this machine; consent to them counts, as another one has it.
    """
    for name in bindings(services.settings, contract):
        try:
            services.adapters.get(name).describe()
        except AdapterError as problem:
            if problem.code in _MISCONFIGURED or (missing and problem.code == "agent.not-found"):
                yield name, problem


def require_startable(services: Services, contract: Contract, agents: Agents) -> None:
    """Refuse if a program that builds or validates cannot be started."""
    for name in bindings(services.settings, contract):
        try:
            agents.get(name).describe()
        except AdapterError as problem:
            raise cannot_start(name, problem) from problem


def cannot_start(name: str, problem: AdapterError) -> Refusal:
    """Return the refusal of a binding that cannot be used."""
    prefix = "" if problem.message.startswith(f"The binding {name} ") else f"The binding {name}: "
    return Refusal(problem.code, f"{prefix}{problem.message}", hint=problem.hint)


def task_commands(task: Task) -> tuple[str, ...]:
    """Every command of a task, in the order in which they may run."""
    of_steps = [s.command for s in task.steps if s.tool == "run"]
    conditions = [c.subject for c in (*task.preconditions, *task.postconditions) if c.kind == "command"]
    criteria = [c.command for c in task.acceptance if c.command]
    return tuple(dict.fromkeys([*conditions, *of_steps, *criteria, *task.verify, *(t.command for t in task.tests)]))


def gate_commands(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return the commands that each gate of the configuration may run."""
    if not settings.gates:
        return {}
    from idumb.domain.proof import project_checkers  # most configurations name no gate

    named = {name: own.run or project_checkers.commands(name) for name, own in settings.gates.items()}
    return {name: commands for name, commands in named.items() if commands}


def _commands(services: Services, contract: Contract) -> tuple[str, ...]:
    """Every command of a contract, once: set-up, tasks, rollback, invariants, criteria; then the configured ones."""
    commands: list[str] = []
    for plan in contract.plans:
        commands += [needed.check for needed in plan.setup if needed.check]
        for task in plan.tasks:
            commands += [*task_commands(task), *task.rollback.commands]
        commands += [invariant.check for invariant in plan.invariants]
        commands += [c.command for c in plan.success_criteria if c.command]
    settings = services.settings
    of_gates = (c for named in gate_commands(settings).values() for c in named)
    return (*dict.fromkeys(commands), *settings.checkout.prepare, *of_gates)


def present_base(services: Services, phase: str) -> str | None:
    """The commit that the phase's unfinished run began from, or HEAD's commit."""
    state = run_lookup.latest_run(services, phase)
    if state is not None and state.state not in CLOSED:
        return state.base.commit
    return services.history.head().commit
