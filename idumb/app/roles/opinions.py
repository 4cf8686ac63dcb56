"""Asks verifier and skeptic about a phase. What they say is an opinion: shown beside the proofs, never one of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.attempt import validator
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.roles import role_calls
from idumb.app.roles.role_calls import RoleRequest
from idumb.app.session.operation import Owned
from idumb.domain import agent, outcome, reply, wording
from idumb.domain.agent import AgentResult
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError
from idumb.domain.proof import judgement
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Judgement, Opinion
from idumb.domain.runs.run import RunState

ROLES = (agent.VERIFIER, agent.SKEPTIC)
_OUTPUT = 1500


def bound_roles(services: Services) -> tuple[str, ...]:
    """Which of the two roles somebody fills."""
    return tuple(role for role in ROLES if role_calls.binding_of(services, role) is not None)


def ask(
    services: Services, journal: Journal, contract: Contract, found: Sequence[Evidence], tree: str
) -> tuple[Opinion, ...]:
    """The verifier first, then the skeptic, who is shown what the verifier said. Nothing of it stops the command."""
    owner = Owned(services, journal.operation, journal.fence, "verify-work")
    given: list[Opinion] = []
    for role in bound_roles(services):
        values = {**_values(services, contract, journal, found), "said": _said(given)}
        asked = RoleRequest(role, f"phase-{contract.phase}", values, judgement.SCHEMA)
        given.append(_opinion(services, asked, owner, journal.state, tree))
    return tuple(given)


def _opinion(services: Services, asked: RoleRequest, owner: Owned, run: RunState, tree: str) -> Opinion:
    empty = Opinion(asked.role, role_calls.binding_of(services, asked.role) or "")
    try:
        result = role_calls.ask(services, asked, owner, run=run)
    except IdumbError as problem:
        if problem.code == "lock.lost":
            raise
        return dataclasses.replace(empty, failure=f"{problem.message} [{problem.code}]")
    return _read(services, empty, result, tree)


def _read(services: Services, empty: Opinion, result: AgentResult, tree: str) -> Opinion:
    found = reply.answer(result.reply, "verdict")
    said = judgement.read(found) if result.outcome == outcome.COMPLETED and isinstance(found, dict) else None
    if said is None:
        why = found if isinstance(found, str) else "its answer is not of the form that was asked for"
        return dataclasses.replace(empty, failure=result.message or result.failure or why)
    verdict, judged = said
    return dataclasses.replace(
        empty, verdict=verdict, judgements=tuple(_with_resolved_citations(services, j, tree) for j in judged)
    )


def _with_resolved_citations(services: Services, judged: Judgement, tree: str) -> Judgement:
    places = tuple(
        dataclasses.replace(c, resolves=validator.resolves(services.trees, c, tree)) for c in judged.citations
    )
    return dataclasses.replace(judged, citations=places)


def _values(services: Services, contract: Contract, journal: Journal, found: Sequence[Evidence]) -> Mapping[str, str]:
    goals = "\n".join(f"- {_goal(contract, p.plan)}: {wording.one_line(p.goal)}" for p in contract.plans)
    criteria = "\n".join(f"- {e.subject}: {wording.one_line(e.text)}" for e in found)
    touched = sorted({path for task in journal.state.tasks.values() for path in task.work.touched})
    shown = [services.redaction.redact_output(_shown(e)) for e in found]
    return {
        "phase": contract.phase,
        "goal": goals,
        "criteria": wording.fenced(f"{goals}\n{criteria}", "text"),
        "evidence": wording.fenced(wording.truncate("\n".join(shown)), "text"),
        "files": wording.fenced(wording.truncate("\n".join(touched)), "text"),
    }


def _goal(contract: Contract, plan: str) -> str:
    return f"plan {plan} goal" if len(contract.plans) > 1 else "goal"


def _shown(found: Evidence) -> str:
    how = f" by `{found.command}`" if found.command else ""
    end = f"\n{found.output[-_OUTPUT:].rstrip()}" if found.output and not found.passed else ""
    return f"{found.subject}: {found.result}{how}{end}"


def _said(given: Sequence[Opinion]) -> str:
    """For the skeptic: what the verifier answered, as a quotation."""
    rows = [as_dict(one) for one in given if one.verdict is not None]
    return wording.fenced(wording.truncate(json.dumps(rows, indent=1)), "json") if rows else ""


def as_dict(opinion: Opinion) -> dict[str, Any]:
    """As the log and JSON have it."""
    return {
        "role": opinion.role,
        "binding": opinion.binding,
        "verdict": opinion.verdict,
        "failure": opinion.failure,
        "judgements": [
            {**dataclasses.asdict(one), "citations": [dataclasses.asdict(c) for c in one.citations]}
            for one in opinion.judgements
        ],
    }


def unanswered_roles(said: Sequence[Opinion]) -> tuple[str, ...]:
    """The same for the record, of what was just said."""
    return tuple(f"the {one.role} gave no opinion: {one.failure}" for one in said if one.verdict is None)


def missing_opinions(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """A warning for each role that was to give an opinion and gave none."""
    rows = record.get("judged_by", ()) if record is not None else ()
    return tuple(f"The {one['role']} gave no opinion: {one['failure']}" for one in rows if one["verdict"] is None)
