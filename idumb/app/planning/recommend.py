"""Recommend what would make the plans of a phase better, each with the edit; the bound researcher adds its opinion."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from idumb.app.consent import needs
from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.planning import phase_context, phase_research
from idumb.app.planning.phase_research import Tell
from idumb.app.roles import role_calls, role_consent
from idumb.app.roles.role_calls import RoleRequest
from idumb.app.worktree import preconditions
from idumb.domain import agent, outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.intake import recommendations
from idumb.domain.intake.recommendations import ADD_VALUE, Facts, Recommendation

COMMITS = 500
"""How many of the newest commits are read: the answer depends on them and not on time."""
_MOST_ADVICE = 20_000


def recommend(
    services: Services, phase: str, tell: Tell, *, task: str | None, asks: bool, approve: Collection[str]
) -> Result:
    """Return the recommendations for a phase, or for one task. Writes nothing.

    Without `asks`, no agent is called; `approve` is consent to the researcher.
    """
    contract = loading.require_contract(services, phase)
    if task is not None:
        run_lookup.require_task(contract.tasks, task, contract.phase)
    commits = services.history.recent_changes(COMMITS)
    rows = recommendations.recommend(Facts(contract, commits, lambda path: bool(services.files.existing([path]))))
    chosen = [each for each in rows if task in (None, each.edit.task)]
    has_run = services.log.latest_run(contract.phase) is not None
    data: dict[str, Any] = {
        "phase": contract.phase,
        "recommendations": [_row(contract, each, has_run=has_run) for each in chosen],
        "commits": len(commits),
        "advice": None,
        "next": [f"idumb plan-diff {contract.phase}"] if has_run and chosen else [f"idumb check-plan {contract.phase}"],
    }
    if asks and role_calls.binding_of(services, agent.RESEARCHER) is not None:
        preconditions.require_initialised(services)
        command = f"idumb recommend {contract.phase}" + (f" --task {task}" if task else "")
        role_consent.ensure(services, needs.of_roles(services, [agent.RESEARCHER]), approve=approve, command=command)
        tell(phase_research.ASKING)
        data["advice"] = _advice(services, contract, chosen)
    return Result(data)


def _row(contract: Contract, each: Recommendation, *, has_run: bool) -> dict[str, Any]:
    """Return a recommendation as data. A run has a locked plan, so the edit is an amendment where one exists."""
    edit: Mapping[str, Any] = asdict(each.edit)
    command = each.edit.text if each.edit.action == recommendations.RUN else None
    is_foreign = any(plan.is_foreign for plan in contract.plans if plan.path == each.edit.path)
    if has_run and each.edit.action == ADD_VALUE and not is_foreign:
        command = f"idumb amend {contract.phase} --widen {each.edit.task} '{each.edit.text.replace('`', '')}'"
    return {"code": each.code, "message": each.message, "why": list(each.why), "edit": edit, "command": command}


def _advice(services: Services, contract: Contract, rows: Sequence[Recommendation]) -> dict[str, Any]:
    """Return the opinion of the researcher about the plans, or why it gave none."""
    phase = contract.phase
    context = phase_context.gather(services, phase_context.locate(services, phase))
    sources = services.plans.plans(contract.folder)
    plans = [wording.fenced(data.decode("utf-8", "replace"), "markdown") for _, data in sources]
    known = "\n".join(f"- {each.message}" for each in rows)
    values = {
        **context.values(),
        "report": "",
        "discuss": "",
        "plan": wording.truncate("\n\n".join(plans)),
        "recommendations": wording.fenced(known, "text") or "Nothing.",
    }
    advice = {"binding": role_calls.binding_of(services, agent.RESEARCHER), "model": None, "text": "", "failure": ""}
    result = role_calls.ask(services, RoleRequest(agent.RESEARCHER, f"phase-{phase}", values))
    text = (result.reply or result.output).strip()
    if result.outcome != outcome.COMPLETED or not text:
        return {**advice, "model": result.model, "failure": result.message or result.failure or "its reply is empty"}
    return {**advice, "model": result.model, "text": wording.truncate(text, _MOST_ADVICE)}
