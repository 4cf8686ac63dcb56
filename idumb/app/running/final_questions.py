"""Questions about failed tasks, asked at the terminal after everything else ran."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.engine import exhausted_tasks
from idumb.app.running import decisions, resume
from idumb.app.running.run_request import Request
from idumb.app.session import next_steps
from idumb.domain.decision import Choice, Decision
from idumb.domain.runs.run import EXHAUSTED


def ask_and_resume(services: Services, request: Request, result: Result) -> Result:
    """Ask about each failed task and resume; return the last result. Unanswered questions keep waiting."""
    phase, choices, last = str(result.data.get("phase")), set[str](), result
    seen: set[str] = set()
    while services.asker.interactive and (question := _next(services, phase, seen)) is not None:
        seen.add(question.id)
        answer = services.asker.ask(question)
        if answer is not None:
            decision = decisions.Request(question.id, answer.choice, answer.by, answer.guidance)
            last = decisions.decide(services, decision)
            choices.add(answer.choice)
    if exhausted_tasks.ROLL_BACK in choices:  # resuming would repeat the work that was just rolled back
        rest = {"decisions": [], "next": list(last.data["next"])}
        return dataclasses.replace(result, data={**result.data, **rest}, warnings=(*result.warnings, *last.warnings))
    if not choices:
        return result
    again = dataclasses.replace(request, phase=phase, force=False, branch=None)
    return ask_and_resume(services, again, resume.resume(services, again))


def _next(services: Services, phase: str, seen: Collection[str]) -> Decision | None:
    """Return the first question about a failed task that was not asked yet; an answer may settle several."""
    state = run_lookup.latest_run(services, phase)
    rows = next_steps.pending(state) if state is not None else []
    row = next((d for d in rows if d["kind"] == EXHAUSTED and d["id"] not in seen), None)
    if row is None:
        return None
    fields = {**row, "evidence": tuple(row["evidence"]), "choices": tuple(Choice(**one) for one in row["choices"])}
    return Decision(**fields)
