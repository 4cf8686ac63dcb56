"""Everything that an approval binds: commands, agents, files, policy and base commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.domain import agent
from idumb.domain import contract as contracts
from idumb.domain.consent import approval as approvals
from idumb.domain.consent.approval import Approval, Part
from idumb.domain.contract import Contract
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import COMPLETED
from idumb.domain.settings import Settings

OWN_REPORTS = (".idumb/brain/**", "**/*-SUMMARY.md", "**/*-VERIFICATION.md")
"""Files that idumb itself writes during a run."""


def parts(
    services: Services, contract: Contract, *, base: str | None = None, files: Iterable[str] | None = None
) -> dict[str, Part]:
    """Everything that decides what runs, as it is now. `base` is set only for an approval that binds the base commit.

    `files` are the files that an approval binds; None selects the present ones.
    """
    return approvals.bound(
        contract,
        services.settings,
        commands=(*all_commands(contract), *configured_commands(services.settings)),
        adapters=adapters(services, contract),
        files=_present(services, contract) if files is None else services.files.digests(files),
        policy=_policy(services),
        base=base,
    )


def _present(services: Services, contract: Contract) -> Mapping[str, str]:
    """SHA-256 of the files that commands and arguments name and that no task declares as its output."""
    written = [p for task in contract.tasks.values() for p in ledger.written_paths(task.files)]
    bindings = services.settings.bindings
    argv = [bindings[name].argv for name in agents(services.settings, contract)]
    commands = (*all_commands(contract), *configured_commands(services.settings))
    return named_files(services, argv, commands=commands, written=written)


def named_files(
    services: Services, arguments: Iterable[Sequence[str]], *, commands: Sequence[str] = (), written: Sequence[str] = ()
) -> dict[str, str]:
    """SHA-256 of the files in the repository that arguments and commands name, except `written` (paths, globs).

    Files that git ignores are excluded: most of them are outputs of these commands.
    """
    names = approvals.named_files(commands, [*OWN_REPORTS, *written], services.root, arguments)
    digests = services.files.digests(names)
    ignored = services.history.ignored(digests)
    return {path: digest for path, digest in digests.items() if path not in ignored}


def bound_files(approval: Approval) -> tuple[str, ...]:
    """The files that an approval binds."""
    return tuple(approval.bound["files"].value) if "files" in approval.bound else ()


def _policy(services: Services) -> dict[str, Any]:
    policy = services.policy
    return {"tools": None if policy.tools is None else sorted(policy.tools), "sources": dict(policy.sources)}


def adapters(services: Services, contract: Contract) -> dict[str, tuple[str, ...]]:
    """Return the resolved argument list of each binding. Refuses if a program cannot be started."""
    resolved = {}
    for name in agents(services.settings, contract):
        try:
            resolved[name] = tuple(services.adapters.get(name).describe())
        except AdapterError as problem:
            raise cannot_start(name, problem) from problem
    return resolved


def cannot_start(name: str, problem: AdapterError) -> Refusal:
    """Return the refusal of a binding that cannot be used."""
    prefix = "" if problem.message.startswith(f"The binding {name} ") else f"The binding {name}: "
    return Refusal(problem.code, f"{prefix}{problem.message}", hint=problem.hint)


def agents(settings: Settings, contract: Contract) -> tuple[str, ...]:
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


def task_commands(task: Task) -> tuple[str, ...]:
    """Every command of a task, in the order in which they may run."""
    of_steps = [
        str(s.arguments.get("command") or " ".join(map(str, s.arguments.get("argv", ()))))
        for s in task.steps
        if s.tool == "run"
    ]
    conditions = [c.subject for c in (*task.preconditions, *task.postconditions) if c.kind == "command"]
    criteria = [c.command for c in task.acceptance if c.command]
    return tuple(dict.fromkeys([*conditions, *of_steps, *criteria, *task.verify, *(t.command for t in task.tests)]))


def prepare_commands(settings: Settings) -> tuple[str, ...]:
    """Return the commands that install what checks need."""
    return settings.checkout.prepare if settings.checkout is not None else ()


def gate_commands(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return the commands that each gate of the configuration may run."""
    if not settings.gates:
        return {}
    from idumb.domain.proof import project_checkers  # most configurations name no gate

    named = {name: own.run or project_checkers.commands(name) for name, own in settings.gates.items()}
    return {name: commands for name, commands in named.items() if commands}


def usual_gate_commands(settings: Settings) -> frozenset[str]:
    """Return the commands that gates may run because the configuration names none for them."""
    named = gate_commands(settings).items()
    return frozenset(command for name, commands in named if not settings.gates[name].run for command in commands)


def configured_commands(settings: Settings) -> tuple[str, ...]:
    """Return every command that the configuration adds to those of a contract."""
    return (*prepare_commands(settings), *(c for commands in gate_commands(settings).values() for c in commands))


def all_commands(contract: Contract) -> tuple[str, ...]:
    """Every command of a contract, once: set-up, tasks, rollback, invariants and success criteria."""
    commands: list[str] = []
    for plan in contract.plans:
        commands += [needed.check for needed in plan.setup if needed.check]
        for task in plan.tasks:
            commands += [*task_commands(task), *task.rollback.commands]
        commands += [invariant.check for invariant in plan.invariants]
        commands += [c.command for c in plan.success_criteria if c.command]
    return tuple(dict.fromkeys(commands))


def present_base(services: Services, phase: str) -> str | None:
    """The commit that the phase's unfinished run began from, or HEAD's commit."""
    state = run_lookup.latest_run(services, phase)
    if state is not None and state.state != COMPLETED:
        return state.base.commit
    return services.history.head().commit
