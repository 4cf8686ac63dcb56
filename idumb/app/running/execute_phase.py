"""Start or continue the run of a phase, a step plan, or a quick task, whose plan is written here."""

from __future__ import annotations

from msgspec.structs import replace

from idumb.app.contract import loading
from idumb.app.core import actions
from idumb.app.core.run_context import RunRequest
from idumb.app.core.services import Result, Services, same_command
from idumb.app.review import ask_consent
from idumb.app.running import admission, run_lifecycle
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import finding
from idumb.domain.action import Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans import new_task, phase_ids
from idumb.domain.plans.new_task import QuickRequest
from idumb.domain.plans.phase_ids import QUICK

_UNPROVEN = "Without --check, idumb proved only that declared files changed, and no others"
_REPHRASE = "Change the command: idumb quick --help"
_FIXES = {"task.no-builder": "Add --builder human to do it yourself, or name an agent: idumb help agents"}
"""Finding code to a fix on the command line, for findings whose own fix edits a plan that you did not write."""


def execute(services: Services, request: RunRequest, quick: Contract | None = None) -> Result:
    """Start the phase's run, or continue its unfinished run of the same contract.

    `quick` is the contract of a new phase that the caller has written and asked consent for. Refusal
    `quick.number-taken` if the phase has a run, because another command took its number meanwhile.
    """
    contract = quick or admission.admit(services, request)
    with operation.owned(services, request.command) as owned:
        if quick and services.log.latest_run(contract.phase) is not None:
            raise Refusal(
                "quick.number-taken",
                f"Another command took the number {contract.phase} while this one started. Nothing ran.",
                hint="Run the command again",
            )
        journal = run_lifecycle.take_up(services, owned, contract, request)
        return run_lifecycle.run_to_end(services, journal, contract, request)


def phase_of_step_plan(path: str) -> str:
    """Return the phase that the step plan at `path`, relative to the root, runs as. InputError where there is none."""
    phase = path if phase_ids.step_plan_path(path) is not None else phase_ids.step_plan_phase(path)
    if phase is not None:
        return phase
    if not path.endswith(phase_ids.STEP_PLAN_SUFFIXES):
        run = Choice("phase", "run a phase", "it shows what will run, and asks", Action.of("execute-phase", path))
        is_phase = path[:1].isdigit() and "/" not in path
        raise InputError(
            "plan.no-step-plan",
            f"{path} is not a step plan: its name does not end in {' or '.join(phase_ids.STEP_PLAN_SUFFIXES)}.",
            hint=Action.of("help", "step-plans"),
            details={"choices": actions.choice_rows((run,) * is_phase)},
        )
    if path == ".." or path.startswith("../"):
        raise InputError(
            "plan.outside-repository",
            f"{path} is outside the repository, so idumb cannot read its history.",
            hint="Copy it into the repository, and commit it there",
        )
    raise InputError(
        "plan.bad-name",
        f"A step plan cannot be at {path!r}: its folders and its name hold letters, digits, `.`, `_` and `-` only.",
        hint="Rename it",
    )


def run_quick(services: Services, quick_request: QuickRequest, request: RunRequest) -> Result:
    """Write the plan and run it, once you agreed to it.

    The phase of `request` is ignored.
    Refusal `quick.no-files` without declared files and without a terminal at which you could review the changes.
    """
    if quick_request.files is None and not services.asker.interactive:
        raise Refusal(
            "quick.no-files",
            "Without a terminal you cannot review the changes, so name the files.",
            hint=same_command(services, "--files", "PATH"),
        )
    preconditions.require_repository(services)
    number = QUICK.next_number((*(phase for phase, _ in services.plans.phases()), *services.log.phases()))
    phase, folder = QUICK.phase(number), new_task.quick_folder(number, quick_request.words)
    text = new_task.quick_text(phase, quick_request)
    path = f"{folder}/{new_task.QUICK_PLAN}"
    sources = [(path, text.encode("utf-8", "surrogateescape"))]
    loaded = loading.with_links(services, loading.load_sources(services, phase, folder, sources))
    try:
        contract = loading.valid_contract(services, loaded)
    except InputError as problem:
        first_error = next(iter(finding.errors(problem.findings)), None)
        fix = _FIXES.get(first_error.code, first_error.fix) if first_error is not None else ""
        problem.step = f"Nothing was written. {fix or _REPHRASE}"
        raise
    try:
        ask_consent.ensure(services, contract, request)
    except Refusal as refusal:
        refusal.details = {**refusal.details, "plan": path, "text": text}
        if refusal.code == "consent.other-hash":
            refusal.step = same_command(services, "--approve", refusal.details["expected"])
        raise
    request = replace(request, phase=phase)
    services.plans.hold(phase, folder, sources)
    result = execute(services, request, contract)
    if quick_request.check or quick_request.files is None or result.failure is not None:
        return result
    return replace(result, warnings=(*result.warnings, _UNPROVEN))
