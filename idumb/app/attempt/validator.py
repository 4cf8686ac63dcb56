"""Asks the validator of a task. Its FAIL fails the attempt; its PASS proves something only with evidence.

A PASS without evidence is neutral: the task's other proofs decide. An answer that cannot be used is requested once
more, except in strict mode. What only the validator could prove then becomes a question to a person, and no attempt of
the builder is used up.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.attempt import agent_client, build
from idumb.app.core import questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Trees
from idumb.domain import agent, contract, outcome, paths, replies, wording
from idumb.domain.action import Decision
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.plans.plan import OPINION, UNPROVEN
from idumb.domain.proof import evidence, gate_table, judgement
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Citation, ValidatorEvidence
from idumb.domain.runs import spending


class Answered(Struct, frozen=True):
    """A validator's answer and its evidence; `malformed` says why it cannot be used, "" if it can."""

    result: AgentResult
    shown: tuple[ValidatorEvidence, ...] = ()
    malformed: str = ""


def judge(context: RunContext, attempt: Attempt, proofs: Sequence[Evidence], name: str) -> tuple[Evidence, AgentResult]:
    """Ask the validator `name`; return its verdict as evidence, and its answer."""
    able = agent.capabilities(context.agents.get(name))
    request = build.make_request(context, attempt, agent.VALIDATOR, able, tuple(proofs))
    request = replace(request, workspace=_place(context, attempt))
    judged = _ask(context, attempt, name, request)
    if judged.malformed and not context.strict:
        judged = _asked_again(context, attempt, name, request, judged)
    level = gate_table.rule(context.services.settings, agent.VALIDATOR).level

    def is_of_task(item: ValidatorEvidence) -> bool:  # or of a task without criteria
        return not attempt.task.acceptance or bool(judgement.proven_criteria(attempt.task, (item.criterion,)))

    verdict = evidence_of(
        name,
        judged.result,
        attempt.candidate,
        shown=tuple(filter(is_of_task, judged.shown)),
        malformed=judged.malformed,
    )
    return replace(verdict, level=level), judged.result


def _place(context: RunContext, attempt: Attempt) -> str:
    """Return the folder that the validator sees: where checks run, with what they judged. Its changes are removed."""
    paths, proof = (*context.state.uncommitted(), *attempt.committed), context.services.open_proof()
    tree = attempt.proven or context.work.committed(attempt.judged_on, attempt.candidate, paths)
    proof.renew()
    proof.show(tree, attempt.judged_on)
    return proof.root


def evidence_of(
    name: str,
    result: AgentResult,
    tree: str | None,
    *,
    shown: tuple[ValidatorEvidence, ...] = (),
    malformed: str = "",
) -> Evidence:
    """Return a validator's verdict as evidence. A PASS without evidence is only an opinion.

    `malformed` says why the answer cannot be used.
    """
    subject = f"validator {name}"
    words = {
        outcome.COMPLETED: evidence.PASSED if shown else evidence.OPINION,
        outcome.TIMED_OUT: evidence.TIMED_OUT,
        outcome.ERRORED: evidence.ERRORED,
        outcome.WAITING: evidence.WAITING,
    }.get(result.outcome, evidence.FAILED)
    cited = wording.listed(e.words for e in shown) or ("PASS without evidence" if words == evidence.OPINION else "")
    text = f"its answer cannot be used: {malformed}" if malformed else "; ".join(filter(None, (cited, result.message)))
    return Evidence(
        subject,
        text or subject,
        evidence.UNPROVEN if malformed else words,
        exit_code=result.exit_code,
        output=result.output,
        output_sha256=result.output_sha256,
        truncated=result.truncated,
        tree=tree,
        seconds=result.seconds,
        cause=result.cause,
        shown=shown,
    )


def _ask(context: RunContext, attempt: Attempt, name: str, request: AgentRequest) -> Answered:
    # The builder that just worked may have read an earlier question about the same bytes, and answered it.
    builder = agent.capabilities_of(context.state.tasks[attempt.task.id].attempt.adapter)
    anew = not attempt.awaits_verdict and builder.calls_model
    call = agent_client.Call(context.agents.get(name), name, request, anew=anew)
    result = agent_client.ask(context.services, context.journal, call)
    context.checks.end_processes()
    return _read(context, attempt, result, request.workspace)


def _asked_again(context: RunContext, attempt: Attempt, name: str, request: AgentRequest, first: Answered) -> Answered:
    """Ask once more, with what was wrong with the first answer. Both calls count as usage."""
    journal, why = context.journal, first.malformed
    malformed = replace(first.result, failure=agent.MALFORMED, message=why)
    agent_client.record_retry(journal, name, request, malformed, 1, 0)
    again = f"It cannot be used: {why}. Answer once more, in the form that is asked for above."
    correction = f"## Your last answer\n\n{again}"
    request = replace(request, prompt=f"{request.prompt.rstrip()}\n\n{correction}\n", feedback=why)
    second = _ask(context, attempt, name, request)
    result = replace(
        second.result,
        usage=spending.add_usage(first.result.usage, second.result.usage),
        seconds=first.result.seconds + second.result.seconds,
    )
    return replace(second, result=result)


def _read(context: RunContext, attempt: Attempt, result: AgentResult, root: str) -> Answered:
    if result.failure == agent.MALFORMED:
        return Answered(result, malformed=result.message or "no verdict can be read in it")
    answer = replies.answer(result.reply, "verdict") if result.outcome == outcome.COMPLETED else ""
    if isinstance(answer, str) or answer["verdict"] != outcome.PASS:
        return Answered(result)
    shown = judgement.read_evidence(answer)
    if isinstance(shown, str):
        return Answered(result, malformed=shown)
    shown = tuple(_within(root, item) for item in shown)
    places = (item.place for item in shown if item.place is not None)
    unresolved = [p for p in places if not resolves(context.work, p, attempt.candidate)]
    citations = wording.listed(dict.fromkeys(f"{p.file}:{p.line}" for p in unresolved))
    return (
        Answered(result, malformed=f"it cites {citations}, which the judged files do not have")
        if unresolved
        else Answered(result, shown)
    )


def _within(root: str, shown: ValidatorEvidence) -> ValidatorEvidence:
    """Return a citation with a path relative to `root`: some agents cite absolute ones."""
    if shown.place is None:
        return shown
    file = shown.place.file.removeprefix(f"{root.rstrip('/')}/")
    return replace(shown, place=Citation(file, shown.place.line))


def question(attempt: Attempt) -> Decision | None:
    """Return the question to a person if only the validator could prove the task, and did not."""
    name = attempt.validator or ""
    own = (e for e in attempt.evidence if e.subject == f"validator {name}")
    verdict = next((e for e in own if e.level > gate_table.INFORMATIONAL), None)
    if verdict is None:
        return None
    why = _why_unproven(attempt, verdict, name)
    return questions.validator(attempt.task, attempt.number, attempt.changes, why, verdict.text) if why else None


def _why_unproven(attempt: Attempt, opinion: Evidence, name: str) -> str:
    if opinion.result == evidence.UNPROVEN:
        return f"The validator {name} gave an answer that cannot be used."
    others = [e for e in attempt.evidence if e is not opinion]
    if evidence.proves(others) or questions.criteria(attempt.task, attempt.number, ()):
        return ""
    if opinion.result == evidence.OPINION:
        return f"The validator {name} says PASS and shows no evidence, and nothing else proves this task."
    shown = judgement.proven_criteria(attempt.task, (item.criterion for item in opinion.shown))
    alone = (c for c, proof in contract.proofs(attempt.task).items() if proof in {OPINION, UNPROVEN})
    rest = [c for c in alone if c not in shown]
    return f"The validator {name} shows nothing for {wording.listed(rest)}, and nothing else proves it." if rest else ""


def resolves(trees: Trees, cited: Citation, tree: str) -> bool:
    """Return whether a tree has the cited file, with that many lines."""
    path = cited.file.removeprefix("./")
    if cited.line < 1 or paths.problem(path):
        return False
    entry = trees.entry(tree, path)
    if entry is None or trees.is_folder(tree, path):
        return False
    data = trees.read(entry.oid)
    return cited.line <= data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
