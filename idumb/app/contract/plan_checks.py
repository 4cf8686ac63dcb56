"""What `check-plan` finds of a phase, with a look at what its run begins from; `loading` reads the plans alone."""

from __future__ import annotations

from dataclasses import replace

from idumb.app.contract import legacy_claims, loading
from idumb.app.contract.loading import Loaded
from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import outcome, paths
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import WARNING, Finding
from idumb.domain.intake import ground, registry, scope, self_check
from idumb.domain.intake.rule import Case, StartState
from idumb.domain.intake.self_check import Answer
from idumb.domain.runs.run import COMPLETED, RunState


def findings(services: Services, loaded: Loaded, mode: str | None = None) -> list[Finding]:
    """Every finding of format, graph and checks, those about files and programs that are there among them."""
    present = None if loaded.contract is None else _present(services, loaded.contract)
    return loading.judged(services, loaded, mode, present)


def case(services: Services, loaded: Loaded, contract: Contract, mode: str | None = None) -> Case:
    """What the checks look at, to answer the self-check by."""
    given = (loaded.links, loaded.repositories, _present(services, contract))
    return registry.case(contract, services.settings, services.policy, mode, *given)


def warnings(services: Services, contract: Contract) -> tuple[Finding, ...]:
    """The warnings that `check-plan` prints of a contract, in the order of the plans."""
    found = (one for one in findings(services, _loaded(services, contract)) if one.severity == WARNING)
    return tuple(sorted(found, key=lambda one: (one.path, one.line, one.column)))


def open_questions(services: Services, contract: Contract) -> tuple[Answer, ...]:
    """What an approval of this contract has to answer."""
    loaded = _loaded(services, contract)
    return self_check.open_questions(case(services, loaded, contract), findings(services, loaded))


def unmet(services: Services, contract: Contract, state: RunState) -> tuple[ground.UnmetClaim, ...]:
    """Claims of tasks that cannot hold, with what the completed tasks of the run are known to have left.

    Not those that the files on disk deny: a person may have moved something since.
    """
    present = _present(services, contract)
    done = (known for id, known in state.tasks.items() if id in present.done)
    left = services.files.there(path for known in done for path in known.work.touched)
    found = ground.unmet_claims(contract, replace(present, base=present.base | left))
    return tuple(one for one in found if one.there == (one.path in present.on_disk))


def _loaded(services: Services, contract: Contract) -> Loaded:
    """The plans of a contract as they are; without what the format says of them where they are not written yet."""
    try:
        loaded = loading.of(services, contract.phase)
    except InputError:
        loaded = None
    if loaded is not None and loaded.contract is not None and loaded.contract.hash == contract.hash:
        return loaded
    return loading.with_links(
        services, Loaded(contract.phase, contract.folder, contract, (), (), policy=services.policy)
    )


def _present(services: Services, contract: Contract) -> StartState:
    """What is there of all that the contract names. Reads, and writes nothing."""
    claimed = ground.claimed(contract)
    on_disk = services.files.there(claimed)
    state = run_lookup.latest_run(services, contract.phase)
    return StartState(
        requirements=_requirements(services),
        base=_base(services, state, claimed, on_disk),
        on_disk=on_disk,
        links=services.files.links(sorted(ground.written(contract))),
        protected=_protected(services, contract),
        no_programs=_no_programs(services, contract),
        done=_done(contract, state),
        claimed=legacy_claims.claims(services, contract, state or RunState()),
    )


def _requirements(services: Services) -> str:
    try:
        return services.reports.read(REQUIREMENTS) or ""
    except OSError:  # behind a link, or not to be read
        return ""


def _base(
    services: Services, state: RunState | None, claimed: frozenset[str], on_disk: frozenset[str]
) -> frozenset[str]:
    """The paths in the tree that an unfinished run began from; without such a run, those that are there now."""
    if state is None or state.state == COMPLETED or not state.base.tree:
        return on_disk
    try:
        found = (path for path in claimed if services.trees.entry(state.base.tree, path) is not None)
        return frozenset(found)
    except Refusal:  # the tree is gone
        return on_disk


def _protected(services: Services, contract: Contract) -> tuple[str, ...]:
    """Protected files that a glob of the contract may cover; none are looked for where it has no glob."""
    if not ground.globs(contract):
        return ()
    rules = ground.protecting(contract, services.settings)
    literal = services.files.there(rule for rule in rules if not paths.has_wildcard(rule))
    found = [path for path in rules if path in literal]
    for folder in dict.fromkeys(scope.fixed_folder(rule) for rule in rules if paths.has_wildcard(rule)):
        found += services.reports.files(folder) if folder else ()
    return tuple(found)


def _no_programs(services: Services, contract: Contract) -> frozenset[str]:
    """Programs of checks that cannot be started now; what git ignores, a command of the plan may well make."""
    named = ground.named_programs(contract)
    missing = named - services.files.startable(named)
    placed = [name for name in missing if "/" in name and not name.startswith("/")]
    ignored = services.history.ignored(placed) if placed else frozenset()
    return missing - frozenset(ignored)


def _done(contract: Contract, state: RunState | None) -> frozenset[str]:
    """The tasks that the newest run completed, as their text says now."""
    known = state.tasks if state is not None else {}
    return frozenset(
        id
        for id, task in contract.tasks.items()
        if id in known and known[id].status in outcome.DONE and known[id].digest == contracts.task_digest(task)
    )


REQUIREMENTS = ".planning/REQUIREMENTS.md"
