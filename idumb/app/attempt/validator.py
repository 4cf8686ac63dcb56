"""Asks the validator of a task. Its FAIL fails the attempt; its PASS proves something only with evidence.

A PASS without evidence is neutral: the task's other proofs decide. An answer that cannot be used is requested once
more, except in strict mode. What only the validator could prove then becomes a question to a person, and no attempt of
the builder is used up.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from idumb.app.attempt import agent_client, build, questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.ports.repository import Snapshot, Trees
from idumb.app.worktree import tree_guard
from idumb.domain import agent, contract, outcome, paths, reply, wording
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.decision import Decision
from idumb.domain.plans.plan import OPINION, STRICT, UNPROVEN
from idumb.domain.proof import evidence, levels, validation
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Citation
from idumb.domain.proof.validation import ValidatorEvidence
from idumb.domain.runs import spending
from idumb.lazy_dataclass import dataclass

HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Answered:
    """A validator's answer and its evidence; `malformed` says why it cannot be used, "" if it can."""

    result: AgentResult
    shown: tuple[ValidatorEvidence, ...] = ()
    malformed: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from the validator's answer; empty if the task has none to ask.

    `judged_from` is the snapshot of the user's tree before it was asked.
    """

    evidence: tuple[Evidence, ...] = ()
    result: AgentResult | None = None
    judged_from: Snapshot | None = None


def judge(context: RunContext, attempt: Attempt, proofs: Sequence[Evidence]) -> Verdict:
    """Ask the validator, if the task has one."""
    name = attempt.validator
    if name is None or name == HUMAN:
        return Verdict()
    saved = _saved(context, attempt, name, attempt.snapshot, "first")
    request = build.make_request(
        context, attempt, agent.VALIDATOR, agent.capabilities(context.agents.get(name)), tuple(proofs)
    )
    judged = _ask(context, attempt, name, request, saved)
    if judged.malformed and STRICT not in (attempt.plan.mode, context.journal.state.mode):
        judged = _asked_again(context, attempt, name, request, judged, saved)
    level = levels.rule(context.services.settings, agent.VALIDATOR).level
    verdict = evidence_of(
        name,
        judged.result,
        attempt.candidate,
        waits=context.workspace.kind == "here",  # a clone is gone when the command ends
        shown=_proving(attempt, judged.shown),
        malformed=judged.malformed,
    )
    return Verdict((dataclasses.replace(verdict, level=level),), judged.result, saved)


def _subject(name: str) -> str:
    return f"validator {name}"


def evidence_of(
    name: str,
    result: AgentResult,
    tree: str | None,
    *,
    waits: bool,
    shown: tuple[ValidatorEvidence, ...] = (),
    malformed: str = "",
) -> Evidence:
    """Return a validator's verdict as evidence. A PASS without evidence is only an opinion.

    `waits` is whether the work stays in place until the verdict comes. `malformed` says why the answer cannot be used.
    """
    subject = _subject(name)
    words = {
        outcome.COMPLETED: evidence.PASSED if shown else evidence.OPINION,
        outcome.TIMED_OUT: evidence.TIMED_OUT,
        outcome.ERRORED: evidence.ERRORED,
        outcome.WAITING: evidence.WAITING if waits else evidence.TIMED_OUT,
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


def _saved(context: RunContext, attempt: Attempt, name: str, last: Snapshot | None, call: str) -> Snapshot | None:
    """Return a snapshot of the user's tree before a call; the last one if nothing changed since.

    None if the validator starts no program.
    """
    services, task, number = context.services, attempt.task.id, attempt.number
    if last is None or not tree_guard.starts_a_program(context.agents.get(name)):
        return None
    if services.trees.scan(attempt.literal_paths) == last.tree:
        return last
    ref = f"{attempt.ref}/validator/{context.journal.operation}-{call}"
    taken = services.trees.snapshot(ref, f"before the validator of {task}, attempt {number}", attempt.literal_paths)
    about = {"role": agent.VALIDATOR, "binding": name, "ref": taken.ref, "snapshot": taken.commit}
    context.journal.write(context.journal.event("snapshot.taken", task, number, **about))
    return taken


def changed_meanwhile(context: RunContext, attempt: Attempt, present: str) -> frozenset[str]:
    """Report paths of the user's tree that changed while the validator judged; return them if the work is there.

    `present` is the present tree of the work.
    """
    if attempt.validated_from is None:
        return frozenset()
    here = context.workspace.kind == "here"
    own = present if here else context.services.trees.scan(attempt.literal_paths)
    report = tree_guard.files(context.services, attempt.validated_from, own)
    if not report.words:
        return frozenset()
    back = f" Earlier state: {wording.listed(report.back, between='; ')}." if report.back else ""
    context.services.reporter.note(
        f"While the validator {attempt.validator} judged {attempt.task.id}, {'; '.join(report.words)}."
        f" It may have been you.{back}"
    )
    return frozenset(str(row["path"]) for row in report.rows) if here else frozenset()


def _ask(context: RunContext, attempt: Attempt, name: str, request: AgentRequest, saved: Snapshot | None) -> Answered:
    # The builder that just worked may have read an earlier question about the same bytes, and answered it.
    builder = agent.capabilities_of(context.journal.state.tasks[attempt.task.id].attempt.adapter)
    anew = not attempt.awaits_verdict and builder.calls_model
    here = context.workspace.kind == "here"
    before = saved.tree if saved is not None and here else context.work.scan(attempt.literal_paths)
    again = functools.partial(build.changed_since, context, attempt, before)
    call = agent_client.Call(context.agents.get(name), name, request, again, anew=anew)
    result = agent_client.ask(context.services, context.journal, call)
    context.checks.end_processes()
    return _read(context, attempt, result)


def _asked_again(
    context: RunContext, attempt: Attempt, name: str, request: AgentRequest, first: Answered, saved: Snapshot | None
) -> Answered:
    """Ask once more, with what was wrong with the first answer. Both calls count as usage."""
    journal, why = context.journal, first.malformed
    call_fields = {"role": agent.VALIDATOR, "binding": name, "model": request.model, "failure": agent.MALFORMED}
    journal.write(
        journal.event("call.retried", attempt.task.id, attempt.number, **call_fields, message=why, call=1, pause=0)
    )
    again = f"It cannot be used: {why}. Answer once more, in the form that is asked for above."
    correction = f"## Your last answer\n\n{again}"
    request = dataclasses.replace(request, prompt=f"{request.prompt.rstrip()}\n\n{correction}\n", feedback=why)
    second = _ask(context, attempt, name, request, _saved(context, attempt, name, saved, "second"))
    result = dataclasses.replace(
        second.result,
        usage=spending.add_usage(first.result.usage, second.result.usage),
        seconds=first.result.seconds + second.result.seconds,
    )
    return dataclasses.replace(second, result=result)


def _read(context: RunContext, attempt: Attempt, result: AgentResult) -> Answered:
    if result.failure == agent.MALFORMED:
        return Answered(result, malformed=result.message or "no verdict can be read in it")
    answer = reply.answer(result.reply, "verdict") if result.outcome == outcome.COMPLETED else ""
    if isinstance(answer, str) or answer["verdict"] != outcome.PASS:
        return Answered(result)
    shown = validation.read(answer)
    if isinstance(shown, str):
        return Answered(result, malformed=shown)
    shown = tuple(_within(context, item) for item in shown)
    places = (item.place for item in shown if item.place is not None)
    unresolved = [p for p in places if not resolves(context.work, p, attempt.candidate)]
    citations = wording.listed(dict.fromkeys(f"{p.file}:{p.line}" for p in unresolved))
    return (
        Answered(result, malformed=f"it cites {citations}, which the judged files do not have")
        if unresolved
        else Answered(result, shown)
    )


def _within(context: RunContext, shown: ValidatorEvidence) -> ValidatorEvidence:
    """Return a citation with a relative path: some agents cite absolute ones."""
    if shown.place is None:
        return shown
    file = shown.place.file.removeprefix(f"{context.work.root.rstrip('/')}/")
    return dataclasses.replace(shown, place=Citation(file, shown.place.line))


def _proving(attempt: Attempt, shown: tuple[ValidatorEvidence, ...]) -> tuple[ValidatorEvidence, ...]:
    """Return what is shown for criteria of the task, or all of it if the task has none."""
    task = attempt.task
    return tuple(item for item in shown if not task.acceptance or validation.proven_criteria(task, (item,)))


def question(attempt: Attempt) -> Decision | None:
    """Return the question to a person if only the validator could prove the task, and did not."""
    name = attempt.validator or ""
    subject = _subject(name)
    judgement = next((e for e in attempt.evidence if e.subject == subject and e.level > levels.INFORMATIONAL), None)
    if judgement is None:
        return None
    why = _why_unproven(attempt, judgement, name)
    return (
        questions.validator_question(attempt.task, attempt.number, attempt.changes, why, judgement.text)
        if why
        else None
    )


def _why_unproven(attempt: Attempt, opinion: Evidence, name: str) -> str:
    if opinion.result == evidence.UNPROVEN:
        return f"The validator {name} gave an answer that cannot be used."
    others = [e for e in attempt.evidence if e is not opinion]
    if evidence.proves(others) or questions.criterion_questions(attempt.task, attempt.number, ()):
        return ""
    if opinion.result == evidence.OPINION:
        return f"The validator {name} says PASS and shows no evidence, and nothing else proves this task."
    shown = validation.proven_criteria(attempt.task, opinion.shown)
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
