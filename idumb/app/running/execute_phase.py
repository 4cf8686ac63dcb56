"""Execute a phase, or a step plan: admit it, take up its run, and run it to its end."""

from __future__ import annotations

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.running import admission, run_lifecycle
from idumb.app.running.run_request import Request
from idumb.app.session import operation
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans import phase_ids


def execute(services: Services, request: Request, quick: Contract | None = None) -> Result:
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
    phase = path if phase_ids.path_of(path) is not None else phase_ids.phase_of(path)
    if phase is not None:
        return phase
    if not path.endswith(phase_ids.SUFFIXES):
        raise InputError(
            "plan.no-step-plan",
            f"{path} is not a step plan: its name does not end in {' or '.join(phase_ids.SUFFIXES)}.",
            hint=f"idumb execute-phase {path} runs a phase; idumb help step-plans shows a step plan",
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
