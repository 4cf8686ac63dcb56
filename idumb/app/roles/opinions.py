"""Ask verifier and skeptic about a phase. Their answers are opinions: shown beside the proofs, never counted as one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.attempt import validator
from idumb.app.consent import needs
from idumb.app.contract import plan_checks
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.roles import role_calls
from idumb.app.roles.role_calls import RoleRequest
from idumb.domain import outcome, replies, wording
from idumb.domain.agent import AgentResult
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError
from idumb.domain.proof import judgement
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Judgement, Opinion

_OUTPUT = 1500


def ask(
    services: Services,
    journal: Journal,
    contract: Contract,
    gathered: Sequence[Evidence],
    tree: str,
) -> tuple[Opinion, ...]:
    """Ask the verifier, then the skeptic, who also gets the verifier's answer. Failures become part of the opinion."""
    opinions: list[Opinion] = []
    for role in needs.bound_judges(services):
        values = {**_values(services, contract, journal, gathered), "said": _quotation(opinions)}
        request = RoleRequest(role, f"phase-{contract.phase}", values, judgement.SCHEMA)
        opinions.append(_opinion(services, request, journal, tree))
    return tuple(opinions)


def _opinion(services: Services, request: RoleRequest, journal: Journal, tree: str) -> Opinion:
    empty = Opinion(request.role, role_calls.binding_of(services, request.role) or "")
    try:
        result = role_calls.ask(services, request, journal)
    except IdumbError as problem:
        if problem.code == "lock.lost":
            raise
        return dataclasses.replace(empty, failure=f"{problem.message} [{problem.code}]")
    return _read(services, empty, result, tree)


def _read(services: Services, empty: Opinion, result: AgentResult, tree: str) -> Opinion:
    answer = replies.answer(result.reply, "verdict")
    judged_answer = (
        judgement.read_opinion(answer) if result.outcome == outcome.COMPLETED and isinstance(answer, dict) else None
    )
    if judged_answer is None:
        why = answer if isinstance(answer, str) else "its answer does not have the requested form"
        return dataclasses.replace(empty, failure=result.message or result.failure or why)
    verdict, judged = judged_answer
    return dataclasses.replace(
        empty, verdict=verdict, judgements=tuple(_with_resolved_citations(services, j, tree) for j in judged)
    )


def _with_resolved_citations(services: Services, judged: Judgement, tree: str) -> Judgement:
    places = tuple(
        dataclasses.replace(c, resolves=validator.resolves(services.trees, c, tree)) for c in judged.citations
    )
    return dataclasses.replace(judged, citations=places)


def _values(
    services: Services, contract: Contract, journal: Journal, gathered: Sequence[Evidence]
) -> Mapping[str, str]:
    several = len(contract.plans) > 1
    goals = "\n".join(f"- {f'plan {p.plan} ' * several}goal: {wording.one_line(p.goal)}" for p in contract.plans)
    served = [text for p in contract.plans for text in plan_checks.served(services, p, p.requirements)]
    criteria = [*(f"requirement {text}" for text in served), *(f"{e.subject}: {e.text}" for e in gathered)]
    listed = "\n".join(f"- {wording.one_line(text)}" for text in criteria)
    touched = sorted({path for task in journal.state.tasks.values() for path in task.work.touched})
    evidence_lines = [services.redaction.redact_output(_shown(e)) for e in gathered]
    return {
        "phase": contract.phase,
        "criteria": wording.fenced(f"{goals}\n{listed}", "text"),
        "evidence": wording.fenced(wording.truncate("\n".join(evidence_lines)), "text"),
        "files": wording.fenced(wording.truncate("\n".join(touched)), "text"),
    }


def _shown(each: Evidence) -> str:
    how = f" by `{each.command}`" if each.command else ""
    end = f"\n{each.output[-_OUTPUT:].rstrip()}" if each.output and not each.passed else ""
    return f"{each.subject}: {each.result}{how}{end}"


def _quotation(opinions: Sequence[Opinion]) -> str:
    """Return the verifier's answer as a quotation, for the skeptic."""
    rows = [as_dict(opinion) for opinion in opinions if opinion.verdict is not None]
    return wording.fenced(wording.truncate(json.dumps(rows, indent=1)), "json") if rows else ""


def as_dict(opinion: Opinion) -> dict[str, Any]:
    """Return an opinion as the log and JSON have it."""
    return {
        "role": opinion.role,
        "binding": opinion.binding,
        "verdict": opinion.verdict,
        "failure": opinion.failure,
        "judgements": [
            {**dataclasses.asdict(item), "citations": [dataclasses.asdict(c) for c in item.citations]}
            for item in opinion.judgements
        ],
    }


def unanswered_roles(opinions: Sequence[Opinion]) -> tuple[str, ...]:
    """Return a reason for each role that gave no opinion."""
    return tuple(
        f"the {opinion.role} gave no opinion: {opinion.failure}" for opinion in opinions if opinion.verdict is None
    )


def missing_opinions(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return a warning for each role of a record that gave no opinion."""
    rows = record.get("judged_by", ()) if record is not None else ()
    return tuple(f"The {row['role']} gave no opinion: {row['failure']}" for row in rows if row["verdict"] is None)
