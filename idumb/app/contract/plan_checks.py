"""The findings of `check-plan`, including those about files and programs that exist now."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from idumb.app.contract import loading
from idumb.app.contract.loading import Loaded
from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import WARNING, Finding
from idumb.domain.intake import check_commands, declarations, self_check, writes
from idumb.domain.intake.rule import Case, StartState
from idumb.domain.intake.self_check import Answer
from idumb.domain.plans.plan import Plan
from idumb.domain.runs.run import CLOSED, RunState


def findings(
    services: Services, loaded: Loaded, mode: str | None = None, present: StartState | None = None
) -> list[Finding]:
    """Every finding of format, graph and checks, including those about `present` files and programs.

    They are looked at if the caller has not done so.
    """
    if present is None and loaded.contract is not None:
        present = _present(services, loaded.contract)
    return loading.all_findings(services, loaded, mode, present)


def startable_contract(services: Services, loaded: Loaded) -> Contract:
    """Return the contract if `check-plan` finds no error; it may be approved and run only then. Else InputError."""
    present = None if loaded.contract is None else _present(services, loaded.contract)
    return loading.valid_contract(services, loaded, present)


def case(services: Services, loaded: Loaded, contract: Contract, mode: str | None = None) -> Case:
    """The input of the checks, which also answers the self-check."""
    context = (loaded.links, loaded.repositories, _present(services, contract))
    return Case(contract, services.settings, services.policy, mode, *context)


def warnings(services: Services, contract: Contract) -> tuple[Finding, ...]:
    """The warnings of `check-plan` for a contract, in the order of the plans."""
    all_findings = findings(services, _loaded(services, contract))
    return tuple(sorted((f for f in all_findings if f.severity == WARNING), key=lambda f: (f.path, f.line, f.column)))


def open_questions(services: Services, contract: Contract) -> tuple[Answer, ...]:
    """The questions that an approval of this contract must answer."""
    loaded = _loaded(services, contract)
    judged = case(services, loaded, contract)
    return self_check.open_questions(judged, findings(services, loaded, present=judged.present))


def unmet_claims(services: Services, contract: Contract, state: RunState) -> tuple[writes.UnmetClaim, ...]:
    """Claims of tasks that cannot hold, given the files that completed tasks of the run produced.

    Claims that the present files contradict are excluded: the user may have moved something.
    """
    present = _present(services, contract)
    done = (task_state for id, task_state in state.tasks.items() if id in present.done)
    produced = services.named_files.existing(path for task_state in done for path in task_state.work.touched)
    claims = writes.unmet_claims(contract, replace(present, base=present.base | produced))
    return tuple(claim for claim in claims if claim.exists == (claim.path in present.on_disk))


def _loaded(services: Services, contract: Contract) -> Loaded:
    """The present plans of a contract; without findings of the format if they are not written yet."""
    try:
        loaded = loading.load_phase(services, contract.phase)
    except InputError:
        loaded = None
    if loaded is not None and loaded.contract is not None and loaded.contract.hash == contract.hash:
        return loaded
    return loading.with_links(services, Loaded(contract.phase, contract.folder, contract, ()))


def _present(services: Services, contract: Contract) -> StartState:
    """Which of the things that the contract names exist. Reads only."""
    written = writes.literal_writes(contract)
    on_disk = services.named_files.existing(written | check_commands.searched_files(contract))
    state = run_lookup.latest_run(services, contract.phase)
    return StartState(
        requirements=_requirements(services),
        base=_base(services, state, written, on_disk),
        on_disk=on_disk,
        no_programs=_no_programs(services, contract),
        done=_done(contract, state),
    )


def served(services: Services, plan: Plan, ids: Iterable[str]) -> tuple[str, ...]:
    """Return requirements with their texts, which the plan has or REQUIREMENTS.md."""
    return declarations.requirement_texts(plan, ids, _requirements(services))


def _requirements(services: Services) -> str:
    try:
        return services.files.read(REQUIREMENTS) or ""
    except OSError:  # behind a link, or unreadable
        return ""


def _base(services: Services, state: RunState | None, names: frozenset[str], on_disk: frozenset[str]) -> frozenset[str]:
    """The written paths in the tree that the unfinished run began from; without such a run, the present ones."""
    if state is None or state.state in CLOSED or not state.base.tree:
        return on_disk
    try:
        return frozenset(path for path in names if services.trees.entry(state.base.tree, path) is not None)
    except Refusal:  # the tree is lost
        return on_disk


def _no_programs(services: Services, contract: Contract) -> frozenset[str]:
    """Programs of checks that cannot start now, except ignored files, which a command of the plan may build."""
    programs = check_commands.named_programs(contract)
    missing = programs - services.named_files.startable(programs)
    local = [name for name in missing if "/" in name and not name.startswith("/")]
    ignored = services.history.ignored(local) if local else frozenset()
    return missing - frozenset(ignored)


def _done(contract: Contract, state: RunState | None) -> frozenset[str]:
    """The tasks that the newest run completed and that did not change since."""
    tasks = state.tasks if state is not None else {}
    return frozenset(
        id
        for id, task in contract.tasks.items()
        if id in tasks and tasks[id].status in outcome.DONE and tasks[id].digest == contracts.task_digest(task)
    )


REQUIREMENTS = ".planning/REQUIREMENTS.md"
