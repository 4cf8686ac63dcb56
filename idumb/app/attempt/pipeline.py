"""One attempt at one task: the stages, in order, that lead from a snapshot to a checkpoint.

A stage takes the attempt as it stands and returns it with one thing more. As soon as an outcome is known the
remaining stages are passed over, but for those that freeze, account for and record what was done.
"""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Callable, Iterable, Sequence

from idumb.app.attempt import (
    adoption,
    agent_client,
    agent_request,
    budget,
    builder_commits,
    determinism,
    drift_check,
    newly_ignored,
    proofs,
    recording,
    step_results,
    symbol_diff,
    undeclared_changes,
    validator_verdict,
)
from idumb.app.contract import contract_lock, environment_lock, plan_answers
from idumb.app.core import projection_paths
from idumb.app.core.run_context import Attempt, Bench
from idumb.app.core.services import attempt_ref, kept_at
from idumb.app.ports.agents import capabilities
from idumb.app.worktree import exposed_secrets, nested_repositories, preconditions, task_base
from idumb.domain import agent, contract, listing, outcome, paths, settings
from idumb.domain.decision import Answer, Decision
from idumb.domain.errors import Refusal
from idumb.domain.failures import Told
from idumb.domain.plans.plan import REVERSIBLE
from idumb.domain.proof import evidence as evidence_words
from idumb.domain.proof import ledger, levels
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs import legacy

Stage = Callable[[Bench, Attempt], Attempt]


def make(bench: Bench, attempt: Attempt, stages: Sequence[Stage] | None = None) -> Attempt:
    """Lead one attempt through all stages, or through those that are its turn now."""
    for stage in STAGES if stages is None else stages:
        bench.services.owner.guard()
        if attempt.outcome is None:
            bench.services.interrupts.check()
        if attempt.outcome is None or stage in ALWAYS:
            attempt = stage(bench, attempt)
    return attempt


def check_lock(bench: Bench, attempt: Attempt) -> Attempt:
    """The owner is still this process, HEAD is on the branch of this run, and what was locked in still holds."""
    services = bench.services
    if not services.owner.check(bench.journal.fence):
        raise Refusal(
            "lock.lost",
            "This process owns the work tree no longer: another one took it over, or its lock file was removed.",
            hint="idumb doctor shows who holds it, and whether anything has to be mended",
        )
    preconditions.require_branch(services, bench.journal.state)
    contract_lock.require(bench, attempt.task)
    environment_lock.require(bench, attempt)
    return dataclasses.replace(attempt, standing=attempt.standing or services.history.state())


def take_snapshot(bench: Bench, attempt: Attempt) -> Attempt:
    """The whole tree is durable and read back before anything else; then the attempt is announced."""
    services, task = bench.services, attempt.task
    ref = attempt_ref(services, bench.run, task.id, attempt.number, "base")
    snapshot = services.trees.snapshot(ref, f"before {task.id}, attempt {attempt.number}", attempt.literal_paths)
    fresh = bench.workspace.kind == "here"
    present = snapshot.tree if fresh else bench.work.scan(attempt.literal_paths)
    base = task_base.task_base(bench, attempt, present)
    if fresh and base != snapshot.tree:
        # Made of two trees, so no snapshot names it, and a rollback needs it when git has collected what none names.
        made = attempt_ref(services, bench.run, task.id, attempt.number, "task-base")
        services.trees.keep(made, base, f"what {task.id} starts from", snapshot.commit)
    attempt = dataclasses.replace(attempt, snapshot=snapshot, base=base, caches=bench.work.caches())
    # Where nothing is built there is nobody whose envelope another attempt could be held against.
    binding = "" if attempt.adopted else agent_request.binding_name(bench, attempt)
    told = {"adopted": True} if attempt.adopted else environment_lock.of_attempt(bench, attempt, binding)
    bench.journal.write(
        bench.journal.event(
            "attempt.started",
            task.id,
            attempt.number,
            base=base,
            snapshot=snapshot.commit,
            ref=snapshot.ref,
            present=present,
            builder=binding,
            **budget.told(services.settings, bench.journal.state, task.id),
            **told,
            **_known_before(bench, attempt, binding),
        )
    )
    # Idumb's own refs are looked at now, when those of this attempt are made; the user's before.
    seen = dataclasses.replace(attempt.standing or services.history.state(), kept=services.history.expected_refs())
    return dataclasses.replace(attempt, told={**told, "present": present}, standing=seen)


def _known_before(bench: Bench, attempt: Attempt, binding: str) -> dict[str, object]:
    """What only a look before the work tells: folders that are to be made, and git's own files where they changed."""
    known: dict[str, object] = {}
    if bench.workspace.kind != bench.journal.state.workspace:
        known["workspace"] = bench.workspace.kind
    if bench.workspace.kind == "here" and binding == agent.STEPS:
        made = (str(s.arguments["path"]) for s in attempt.task.steps if s.tool == "make_directory")
        known["folders"] = list(bench.work.missing_folders(p for p in made if not paths.problem(p.rstrip("/"))))
    guarded = dict(attempt.standing.guarded) if attempt.standing else {}
    if guarded != bench.journal.state.guarded:
        known["guarded"] = guarded
    return {name: value for name, value in known.items() if value}


def check_preconditions(bench: Bench, attempt: Attempt) -> Attempt:
    """Preconditions hold, and tests that must fail before the work do fail, wherever the work starts at the base."""
    if attempt.built:  # they held when it was
        return attempt
    begun = legacy.is_to_be_built(bench.journal.state, attempt.task.id)
    first = bool(attempt.task.tests) and not begun and bench.work.scan(attempt.literal_paths) == attempt.base
    with bench.services.interrupts.armed():
        found = proofs.before(bench.checks, attempt.task, bench.services.settings, attempt.base, first=first)
    attempt = dataclasses.replace(attempt, evidence=found)
    failed = [e for e in found if not e.passed]
    if failed:
        attempt = attempt.ended(outcome.REFUSED, f"{failed[0].subject}: {failed[0].text} ({failed[0].result})")
    return _take_residue_into_base(bench, attempt) if found else attempt


def _take_residue_into_base(bench: Bench, attempt: Attempt) -> Attempt:
    """Files that checks before the work left behind are no work of the builder."""
    if attempt.snapshot is None:
        return attempt
    bench.checks.end_processes()
    after = bench.work.scan(attempt.literal_paths)
    before = attempt.snapshot.tree if bench.workspace.kind == "here" else attempt.base
    new = tuple(c.path for c in bench.work.changes(before, after) if c.old is None)
    attempt = dataclasses.replace(attempt, caches=bench.work.caches())
    if not new:
        return attempt
    return dataclasses.replace(attempt, residue=new, base=bench.work.overlay(attempt.base, after, new))


def build(bench: Bench, attempt: Attempt) -> Attempt:
    """The builder works; whatever it says is a claim. Nobody is asked where only a verdict was waited for."""
    if attempt.built:
        return dataclasses.replace(attempt, result=agent_request.waited(bench, attempt))
    builder = bench.agents.get(agent_request.binding_name(bench, attempt))
    request = agent_request.request(bench, attempt, agent.BUILDER, builder)
    if capabilities(builder).asks_person:
        question = proofs.work_question(attempt.task)
        request = dataclasses.replace(request, question=question, answer=_given_answer(bench, attempt, question))
        attempt = dataclasses.replace(attempt, questions=(question,))
    name = agent_request.binding_name(bench, attempt)
    result = agent_client.call(
        bench.services, bench.journal, agent_client.Call(builder, name, request, _of_builder(bench, attempt))
    )
    if request.session is not None and not result.resumed:
        bench.services.reporter.note(f"{name} did not go on in its conversation about {attempt.task.id}: it began anew")
    attempt = dataclasses.replace(attempt, result=result, failure=agent_request.failed(bench, name, result))
    if result.answer is not None:
        # "It is done" proves nothing of a task that has criteria of its own; a person's judgement does.
        answered = proofs.of_answers(attempt.questions, (result.answer,), attempt.base) if attempt.task.is_human else ()
        attempt = dataclasses.replace(attempt, answers=(result.answer,), evidence=(*attempt.evidence, *answered))
    if attempt.failure is not None:
        ended = outcome.FAILED if result.outcome == outcome.COMPLETED else result.outcome
        return attempt.ended(ended, attempt.failure.message)
    if result.outcome == outcome.COMPLETED:
        return attempt
    return attempt.ended(result.outcome, result.message or f"the builder ended with {result.outcome}")


def _of_builder(bench: Bench, attempt: Attempt) -> Callable[[], str]:
    """Why a builder's call is not made once more: an effect outside the files is seen in no tree."""
    kind = attempt.task.rollback.kind
    if kind != REVERSIBLE:
        return lambda: f"not called again, because the task is {kind}"
    present = attempt.told["present"]
    before = bench.work.overlay(present, attempt.base, attempt.residue) if attempt.residue else present
    return functools.partial(agent_request.changed_since, bench, attempt, before)


def end_processes(bench: Bench, attempt: Attempt) -> Attempt:
    """Nothing that the builder started may live when the candidate is frozen."""
    if attempt.result is not None:
        bench.checks.end_processes()
    return attempt


def freeze_candidate(bench: Bench, attempt: Attempt) -> Attempt:
    if attempt.snapshot is None:
        return attempt
    candidate = bench.work.scan(attempt.literal_paths)
    attempt = dataclasses.replace(attempt, candidate=candidate, commands_ran=False)
    return newly_ignored.bring_to_light(bench, attempt, _task_changes(bench, attempt, candidate))


def compare_ledger(bench: Bench, attempt: Attempt) -> Attempt:
    """Declared files against actual ones, from trees, against the task base."""
    if attempt.candidate is None or attempt.snapshot is None:
        return attempt
    changes = _task_changes(bench, attempt, attempt.candidate)
    found = _held(bench, attempt, changes, attempt.accepted_paths)
    uncovered = {p for p in found.paths(ledger.UNDECLARED, ledger.PROTECTED) if bench.work.uncovered(p)}
    if uncovered:
        # A task that changes what git ignores did not make the files that come to light.
        changes = tuple(c for c in changes if c.path not in uncovered)
        found = _held(bench, attempt, changes, attempt.accepted_paths)
    found = symbol_diff.judge(bench, attempt.task, changes, found)
    attempt = dataclasses.replace(attempt, changes=changes, ledger=found)
    _tell_gone(bench, attempt)
    strays = found.paths(ledger.UNDECLARED)
    unnamed = exposed_secrets.words_of_names(bench, attempt, found.changed)
    if strays and not unnamed and _accepts(bench, attempt, strays):
        accepted = (*attempt.accepted_paths, *strays)
        found = symbol_diff.judge(bench, attempt.task, changes, _held(bench, attempt, changes, accepted))
        attempt = dataclasses.replace(attempt, ledger=found, accepted_paths=accepted)
    found = nested_repositories.judge(bench, attempt, found)
    attempt = dataclasses.replace(attempt, ledger=found)
    strays = found.paths(ledger.UNDECLARED, ledger.PROTECTED)
    words = [*filter(None, [unnamed]), *_leading_out(bench, changes)]
    if strays:
        words = [f"changed outside its declared files: {listing.listed(strays)}", *words]
        attempt = dataclasses.replace(attempt, deviation=True)
        _tell_where(bench, attempt, strays)
    if words:
        return attempt.ended(outcome.FAILED, "; ".join([attempt.reason, *words] if attempt.reason else words))
    return attempt


def _held(bench: Bench, attempt: Attempt, changes: Sequence[ledger.Change], accepted: Sequence[str]) -> ledger.Ledger:
    """What changed, held against what is declared."""
    found = ledger.compare(attempt.task.files, changes, bench.protected(attempt.plan), accepted)
    if not legacy.is_to_be_built(bench.journal.state, attempt.task.id):
        return found
    tree = attempt.candidate or attempt.base
    return ledger.begun(found, lambda path: bench.work.entry(tree, path) is not None)


def _leading_out(bench: Bench, changes: Iterable[ledger.Change]) -> list[str]:
    """A line for each link that the task made or changed and that leads to bytes which no commit has."""
    links = [c.path for c in changes if c.new is not None and c.new.mode == ledger.LINK]
    found = [(path, target) for path in links if (target := bench.work.leads_out(path)) is not None]
    way = "write the file itself, or make it a relative link that stays inside"
    return [f"{path} is a link that leads out of the work tree, to {target}: {way}" for path, target in found[:5]]


def _tell_where(bench: Bench, attempt: Attempt, strays: tuple[str, ...]) -> None:
    """What the builder wrote over or deleted may be the user's own: the command that shows the bytes of before."""
    if attempt.snapshot is None or bench.workspace.kind != "here":
        return
    nested_repositories.tell(bench, attempt.task, attempt.snapshot, attempt.ledger)
    held = {c.path for c in attempt.changes if c.old is not None and c.old.mode != ledger.SUBMODULE}
    for path in [path for path in strays if path in held][:5]:
        named = shlex.quote(kept_at(attempt.snapshot.ref, path))
        bench.services.reporter.note(f"{path} as it was before {attempt.task.id}: git show {named}")


def _tell_gone(bench: Bench, attempt: Attempt) -> None:
    gone = bench.services.trees.gone() if bench.workspace.kind == "here" else ()
    for path in [path for path in gone if not projection_paths.is_projection(path)][:5]:
        words = f"{path} went away while {attempt.task.id} ran; git ignores it, so no snapshot has it"
        bench.services.reporter.note(words)


def _task_changes(bench: Bench, attempt: Attempt, candidate: str) -> tuple[ledger.Change, ...]:
    """What changed since the task base.

    idumb's own files are held against this attempt's snapshot instead, because idumb writes them between attempts.
    """
    since_base = bench.work.changes(attempt.base, candidate)
    theirs = tuple(c for c in since_base if not paths.matches_any(c.path, paths.OWN_FILES))
    if bench.workspace.kind != "here" or attempt.snapshot is None or attempt.snapshot.tree == attempt.base:
        return since_base
    own = bench.work.changes(attempt.snapshot.tree, candidate)
    return (*theirs, *(c for c in own if paths.matches_any(c.path, paths.OWN_FILES)))


def _accepts(bench: Bench, attempt: Attempt, strays: tuple[str, ...]) -> bool:
    """Whether undeclared changes are taken into the task: by flag, or by a person at the terminal."""
    if bench.on_deviation is not None:
        return bench.on_deviation == settings.ACCEPT
    if undeclared_changes.accepted(bench.journal.state, attempt.task.id, strays):
        return True
    if attempt.plan.mode == "strict" or not bench.services.asker.interactive:
        return bench.services.settings.run.on_deviation == settings.ACCEPT
    answer = bench.services.asker.ask(proofs.deviation_question(attempt.task, strays))
    return answer is not None and answer.choice == settings.ACCEPT


def run_checks(bench: Bench, attempt: Attempt) -> Attempt:
    """idumb runs the proofs itself, on the frozen candidate."""
    services, task = bench.services, attempt.task
    found = list(
        proofs.after(bench.checks, task, attempt.plan, services.settings, attempt.candidate, services.interrupts)
    )
    ran = bool(found)
    counts = bench.work.line_counts(attempt.base, attempt.candidate or attempt.base) if task.limits else {}
    for gate in services.gates:
        level = levels.rule(services.settings, gate.name).level
        found.extend(_at(level, gate.judge(task, attempt.plan, attempt.changes, counts)))
    found.extend(step_results.judge(bench, attempt))
    found.extend(proofs.of_ledger(task, attempt.ledger, attempt.candidate))
    # Nobody, agent or person, is asked about work that the files have failed already.
    verdict = validator_verdict.judge(bench, attempt, found) if attempt.ledger.holds else validator_verdict.Verdict()
    said = verdict.said
    found.extend(verdict.evidence)
    return dataclasses.replace(
        attempt,
        evidence=(*attempt.evidence, *found),
        commands_ran=attempt.commands_ran or ran or said is not None,
        judged=said,
        judged_from=verdict.judged_from,
        failure=_only_unjudged(bench, attempt, found, said),
    )


def _only_unjudged(
    bench: Bench, attempt: Attempt, found: Iterable[Evidence], said: agent.AgentResult | None
) -> Told | None:
    """Why the validator could not judge, where nothing else stands against the attempt."""
    name = contract.validator_of(attempt.plan, attempt.task, bench.services.settings)
    if said is None or name is None:
        return attempt.failure
    broken = [e.subject for e in found if e.level > levels.INFORMATIONAL and e.result in proofs.BROKEN]
    return agent_request.failed(bench, name, said) if broken == [f"validator {name}"] else attempt.failure


def _at(level: int, found: Iterable[Evidence]) -> tuple[Evidence, ...]:
    return tuple(dataclasses.replace(e, level=level) for e in found)


def ask_people(bench: Bench, attempt: Attempt) -> Attempt:
    """Criteria that only a person can prove become questions, once everything else holds, the files first of all.

    An answer must never be lost to what idumb could have found out before it asked.
    """
    if not attempt.ledger.holds or any(
        e.level > levels.INFORMATIONAL
        and not e.passed
        and e.result not in (evidence_words.OPINION, evidence_words.UNPROVEN)
        for e in attempt.evidence
    ):
        return attempt
    asked, answers = [], []
    for question in _questions(bench, attempt):
        answer = _known_answer(bench, question) or bench.services.asker.ask(question)
        asked.append(question)
        if answer is not None:
            answers.append(answer)
    attempt = _with_answers(attempt, asked, answers)
    if attempt.exposed and proofs.verdict(attempt.ledger, attempt.evidence)[0] in _MAY_BE_COMMITTED:
        question = exposed_secrets.question(attempt)
        answer = _known_answer(bench, question) or bench.services.asker.ask(question)
        answers += [] if answer is None else [answer]
        attempt = _with_answers(attempt, [question], [] if answer is None else [answer])
    return _look_again(bench, attempt, "changed while a person was asked about it") if answers else attempt


_MAY_BE_COMMITTED = frozenset({outcome.PASS, evidence_words.WAITING})


def _with_answers(attempt: Attempt, asked: Sequence[Decision], answers: Sequence[Answer]) -> Attempt:
    return dataclasses.replace(
        attempt,
        questions=(*attempt.questions, *asked),
        answers=(*attempt.answers, *answers),
        evidence=(*attempt.evidence, *proofs.of_answers(asked, answers, attempt.candidate)),
    )


def _questions(bench: Bench, attempt: Attempt) -> tuple[Decision, ...]:
    """Each criterion that a person proves, and the task as a whole where they are its validator or stand in for it."""
    by_criterion = proofs.questions(attempt.task, attempt.number, attempt.changes)
    open_one = validator_verdict.question(bench, attempt)
    if open_one is not None:
        return (*by_criterion, open_one)
    if contract.validator_of(attempt.plan, attempt.task, bench.services.settings) != validator_verdict.HUMAN:
        return by_criterion
    return (*by_criterion, proofs.validator_question(attempt.task, attempt.number, attempt.changes))


def _known_answer(bench: Bench, question: Decision) -> Answer | None:
    known = bench.journal.state.answers.get(question.id)
    return Answer(question.id, known["choice"], known["by"], known.get("guidance", "")) if known else None


def _given_answer(bench: Bench, attempt: Attempt, question: Decision) -> Answer | None:
    """What was said to this question, or what a person asked to be said to it each time."""
    return _known_answer(bench, question) or plan_answers.remembered_answer(bench.services, question, attempt.task)


def scan_residue(bench: Bench, attempt: Attempt) -> Attempt:
    """Checks may leave files behind; a candidate path they changed fails the task."""
    if not attempt.commands_ran:
        return attempt
    present = bench.work.scan(attempt.literal_paths)
    by_validator = validator_verdict.changed_meanwhile(bench, attempt, present)
    words = "a check changed what it should judge"
    spoiled = _spoiled(bench, attempt, present) if by_validator else ()
    if spoiled and by_validator.issuperset(spoiled):
        name = contract.validator_of(attempt.plan, attempt.task, bench.services.settings)
        words = f"changed while the validator {name} judged it"
    return _look_again(bench, attempt, words, present)


def _spoiled(bench: Bench, attempt: Attempt, present: str) -> tuple[str, ...]:
    """Paths of the candidate that are not as it has them."""
    return tuple(c.path for c in bench.work.changes(attempt.candidate or present, present) if c.old is not None)


def _look_again(bench: Bench, attempt: Attempt, spoiled_words: str, present: str | None = None) -> Attempt:
    """The files are still those of the candidate, and new ones are residue; else the attempt fails in these words."""
    if attempt.candidate is None:
        return attempt
    after = bench.work.changes(attempt.candidate, present or bench.work.scan(attempt.literal_paths))
    spoiled = [c.path for c in after if c.old is not None]
    residue = [c.path for c in after if c.old is None]
    attempt = dataclasses.replace(attempt, residue=tuple(dict.fromkeys((*attempt.residue, *residue))))
    words = [f"{spoiled_words}: {listing.listed(spoiled)}"] if spoiled else []
    words += filter(None, [exposed_secrets.words_of_names(bench, attempt, residue)])
    return attempt.ended(outcome.FAILED, "; ".join(words)) if words else attempt


def check_standing(bench: Bench, attempt: Attempt) -> Attempt:
    """Nothing of the attempt is recorded, let alone committed, in a repository that was tampered with meanwhile."""
    drift_check.require(bench, attempt)
    return attempt


def reach_verdict(_: Bench, attempt: Attempt) -> Attempt:
    verdict, why = proofs.verdict(attempt.ledger, attempt.evidence)
    ended = {outcome.PASS: outcome.COMPLETED, evidence_words.WAITING: outcome.WAITING}.get(verdict, outcome.FAILED)
    if ended == outcome.WAITING and attempt.judged is not None and attempt.judged.outcome == outcome.WAITING:
        why = attempt.judged.message
    elif ended == outcome.WAITING:
        given = {answer.decision for answer in attempt.answers}
        why = next((f"{why}: {q.why}" for q in attempt.questions if q.id not in given), why)
    return dataclasses.replace(attempt, verdict=verdict, outcome=ended, reason=why)


BEFORE: tuple[Stage, ...] = (check_lock, take_snapshot, check_preconditions)
"""What comes before the work; where the builder drives idumb itself, `start` ends here."""

AFTER: tuple[Stage, ...] = (
    end_processes,
    check_standing,  # before git is asked anything by a configuration that may have been tampered with
    builder_commits.take,
    freeze_candidate,
    compare_ledger,
    builder_commits.judge,
    exposed_secrets.judge,
    determinism.compare,
    run_checks,
    scan_residue,
    ask_people,
    check_standing,
    reach_verdict,
    recording.record_checkpoint,
)
"""What judges the work, from bytes; `submit` begins here."""

STAGES: tuple[Stage, ...] = (*BEFORE, build, *AFTER)
ADOPTING: tuple[Stage, ...] = (
    check_lock,
    take_snapshot,
    freeze_candidate,
    adoption.judge,
    scan_residue,
    check_standing,
    adoption.reach_verdict,
    recording.record_checkpoint,
)
"""What judges work that is there already: neither a builder nor a validator is called."""
ALWAYS: frozenset[Stage] = frozenset(
    {
        end_processes,
        builder_commits.take,
        freeze_candidate,
        compare_ledger,
        builder_commits.judge,
        check_standing,
        recording.record_checkpoint,
    }
)
