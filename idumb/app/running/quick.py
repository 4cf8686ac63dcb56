"""One task in a person's words: its plan is made, agreed to, written, and run like every other."""

from __future__ import annotations

import dataclasses
from contextlib import suppress

from idumb.app.contract import loading
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.review import ask_consent
from idumb.app.running import execute_phase
from idumb.app.running.run_request import Request
from idumb.app.worktree import preconditions
from idumb.domain import finding
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, InputError, Refusal
from idumb.domain.plans import quick_plan
from idumb.domain.plans.quick_plan import QuickRequest

UNPROVEN = "No --check was given: it is proven that something changed, and only in the declared files"
_OTHERWISE = "Say it otherwise: idumb quick --help"
_MENDS = {"task.no-builder": "Add --builder human to do it yourself, or name an agent: idumb help agents"}
"""Where the mend of a finding speaks of the plan's text, which nobody wrote: what mends it on the command line."""


def run(services: Services, wanted: QuickRequest, request: Request, *, again: str) -> Result:
    """Make the plan and run it. Nothing is written before a person agreed to it.

    `again` is the command line as it was typed, for the hint that adds `--approve HASH`. The phase of `request` does
    not count. Refusal `quick.no-files` where nobody can be shown what was changed.
    """
    preconditions.require_initialised(services)
    if wanted.files is None and not services.asker.interactive:
        raise Refusal(
            "quick.no-files",
            "Without a terminal nobody can look at what was changed, so the files must be named.",
            hint=f"{again} --files PATH",
            details={"again": f"{again} --files PATH"},
        )
    preconditions.require_repository(services)
    phase, folder, text = _plan(services, wanted)
    path = f"{folder}/{quick_plan.PLAN}"
    contract = _contract(services, phase, folder, path, text)
    try:
        ask_consent.ensure(
            services, contract, approve=request.approve, mode=request.mode, again=again, judged=request.verify
        )
    except Refusal as refusal:
        refusal.details = {**refusal.details, "plan": path, "text": text}
        if refusal.code == "consent.other-contract":
            refusal.hint = f"{again} --approve {contract.hash}"
        raise
    services.reports.write_source(path, text)
    try:
        services.plans.phase_folder(phase)  # refuses where another command took the same number meanwhile
        done = execute_phase.execute(services, dataclasses.replace(request, phase=phase), contract)
    except IdumbError:
        if services.runs.latest(phase) is None:  # nothing of it began, so nothing of it stays
            with suppress(OSError):
                services.reports.remove(path)
        raise
    if wanted.check or wanted.files is None or done.failure is not None:
        return done
    return dataclasses.replace(done, warnings=(*done.warnings, UNPROVEN))


def _plan(services: Services, wanted: QuickRequest) -> tuple[str, str, str]:
    """The next free phase, its folder, and the plan's text."""
    known = (*(phase for phase, _ in services.plans.phases()), *services.runs.phases())
    number = max((n for phase in known if (n := quick_plan.number_of(phase)) is not None), default=0) + 1
    phase = quick_plan.phase(number)
    return phase, quick_plan.folder(number, wanted.words), services.plans.quick_text(phase, wanted)


def _contract(services: Services, phase: str, folder: str, path: str, text: str) -> Contract:
    loaded = loading.of_sources(services, phase, folder, [(path, text.encode("utf-8", "surrogateescape"))])
    try:
        return loading.runnable(services, loading.with_links(services, loaded))
    except InputError as problem:
        wrong = next(iter(finding.errors(problem.findings)), None)
        mend = _MENDS.get(wrong.code, wrong.mend) if wrong is not None else ""
        problem.hint = f"Nothing was written. {mend or _OTHERWISE}"
        raise
