"""Execute a step plan: the same engine, entered by a file's path instead of a phase."""

from __future__ import annotations

import dataclasses

from idumb.app.core.result import Result
from idumb.app.core.services import Rehearsals, Services
from idumb.app.running import dry_run, execute_phase
from idumb.app.running.execute_phase import Request
from idumb.domain.errors import InputError
from idumb.domain.plans import step_plan

ACCEPTED = " or ".join(step_plan.SUFFIXES)


def execute(services: Services, request: Request) -> Result:
    """Start the plan's run or go on with its unfinished one. `request.phase` is the file's path from the root."""
    return execute_phase.execute(services, dataclasses.replace(request, phase=_id(request.phase)))


def rehearse(services: Services, request: Request, rehearsals: Rehearsals) -> Result:
    """The same run in a throw-away copy: what it would change, and nothing is kept."""
    return dry_run.rehearse(services, dataclasses.replace(request, phase=_id(request.phase)), rehearsals)


def _id(path: str) -> str:
    phase = path if step_plan.path_of(path) is not None else step_plan.phase_of(path)
    if phase is not None:
        return phase
    if not path.endswith(step_plan.SUFFIXES):
        raise InputError(
            "plan.no-step-plan",
            f"{path} is no step plan: its name does not end in {ACCEPTED}.",
            hint=f"idumb execute-phase {path} runs a phase; idumb help step-plans shows a step plan",
        )
    if path == ".." or path.startswith("../"):
        raise InputError(
            "plan.outside-repository",
            f"{path} lies outside the repository, so nothing can be said of its history.",
            hint="Copy it into the repository, and commit it there",
        )
    raise InputError(
        "plan.bad-name",
        f"A step plan cannot be at {path!r}: its folders and its name hold letters, digits, `.`, `_` and `-` only.",
        hint="Rename it",
    )
