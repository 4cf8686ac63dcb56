"""Judges the work from bytes: frozen files, ledger, gates, checks, validator, people, verdict."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Mapping, Sequence

from idumb.app.attempt import (
    build,
    drift_check,
    proofs,
    questions,
    validator,
)
from idumb.app.core import projection_paths
from idumb.app.core.run_context import Attempt, Bench
from idumb.app.core.services import kept_at
from idumb.app.worktree import exposed_secrets, nested_repositories
from idumb.domain import agent, contract, outcome, paths, settings, wording
from idumb.domain.decision import Answer, Decision
from idumb.domain.failures import FailureMessage
from idumb.domain.paths import IGNORE_FILE
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence as evidence_words
from idumb.domain.proof import ledger, levels, symbols
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.ledger import LINK, Change, Entry, Ledger
from idumb.domain.runs import legacy


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
    return _include_hidden(bench, attempt, _task_changes(bench, attempt, candidate))


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
    found = _compare_symbols(bench, attempt.task, changes, found)
    attempt = dataclasses.replace(attempt, changes=changes, ledger=found)
    _tell_gone(bench, attempt)
    strays = found.paths(ledger.UNDECLARED)
    unnamed = exposed_secrets.words_of_names(bench, attempt, found.changed)
    if strays and not unnamed and _accepts(bench, attempt, strays):
        accepted = (*attempt.accepted_paths, *strays)
        found = _compare_symbols(bench, attempt.task, changes, _held(bench, attempt, changes, accepted))
        attempt = dataclasses.replace(attempt, ledger=found, accepted_paths=accepted)
    found = nested_repositories.judge(bench, attempt, found)
    attempt = dataclasses.replace(attempt, ledger=found)
    strays = found.paths(ledger.UNDECLARED, ledger.PROTECTED)
    words = [*filter(None, [unnamed]), *_leading_out(bench, changes)]
    if strays:
        words = [f"changed outside its declared files: {wording.listed(strays)}", *words]
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
    return ledger.allow_existing(found, lambda path: bench.work.entry(tree, path) is not None)


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
    if questions.strays_accepted(bench.journal.state, attempt.task.id, strays):
        return True
    if attempt.plan.mode == "strict" or not bench.services.asker.interactive:
        return bench.services.settings.run.on_deviation == settings.ACCEPT
    answer = bench.services.asker.ask(questions.deviation_question(attempt.task, strays))
    return answer is not None and answer.choice == settings.ACCEPT


def run_checks(bench: Bench, attempt: Attempt) -> Attempt:
    """idumb runs the proofs itself, on the frozen candidate."""
    services, task = bench.services, attempt.task
    found = list(
        proofs.check_after(bench.checks, task, attempt.plan, services.settings, attempt.candidate, services.interrupts)
    )
    ran = bool(found)
    counts = bench.work.line_counts(attempt.base, attempt.candidate or attempt.base) if task.limits else {}
    for gate in services.gates:
        level = levels.rule(services.settings, gate.name).level
        found.extend(_at(level, gate.judge(task, attempt.plan, attempt.changes, counts)))
    found.extend(proofs.step_evidence(bench, attempt))
    found.extend(proofs.change_evidence(task, attempt.ledger, attempt.candidate))
    # Nobody, agent or person, is asked about work that the files have failed already.
    verdict = validator.judge(bench, attempt, found) if attempt.ledger.holds else validator.Verdict()
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
) -> FailureMessage | None:
    """Why the validator could not judge, where nothing else stands against the attempt."""
    name = contract.validator_of(attempt.plan, attempt.task, bench.services.settings)
    if said is None or name is None:
        return attempt.failure
    broken = [e.subject for e in found if e.level > levels.INFORMATIONAL and e.result in proofs.BROKEN]
    return build.agent_failure(bench, name, said) if broken == [f"validator {name}"] else attempt.failure


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
        answer = questions.recorded_answer(bench, question) or bench.services.asker.ask(question)
        asked.append(question)
        if answer is not None:
            answers.append(answer)
    attempt = _with_answers(attempt, asked, answers)
    if attempt.exposed and proofs.verdict(attempt.ledger, attempt.evidence)[0] in _MAY_BE_COMMITTED:
        question = exposed_secrets.question(attempt)
        answer = questions.recorded_answer(bench, question) or bench.services.asker.ask(question)
        answers += [] if answer is None else [answer]
        attempt = _with_answers(attempt, [question], [] if answer is None else [answer])
    return _look_again(bench, attempt, "changed while a person was asked about it") if answers else attempt


_MAY_BE_COMMITTED = frozenset({outcome.PASS, evidence_words.WAITING})


def _with_answers(attempt: Attempt, asked: Sequence[Decision], answers: Sequence[Answer]) -> Attempt:
    return dataclasses.replace(
        attempt,
        questions=(*attempt.questions, *asked),
        answers=(*attempt.answers, *answers),
        evidence=(*attempt.evidence, *questions.evidence_of_answers(asked, answers, attempt.candidate)),
    )


def _questions(bench: Bench, attempt: Attempt) -> tuple[Decision, ...]:
    """Each criterion that a person proves, and the task as a whole where they are its validator or stand in for it."""
    by_criterion = questions.criterion_questions(attempt.task, attempt.number, attempt.changes)
    open_one = validator.question(bench, attempt)
    if open_one is not None:
        return (*by_criterion, open_one)
    if contract.validator_of(attempt.plan, attempt.task, bench.services.settings) != validator.HUMAN:
        return by_criterion
    return (*by_criterion, questions.validator_question(attempt.task, attempt.number, attempt.changes))


def scan_residue(bench: Bench, attempt: Attempt) -> Attempt:
    """Checks may leave files behind; a candidate path they changed fails the task."""
    if not attempt.commands_ran:
        return attempt
    present = bench.work.scan(attempt.literal_paths)
    by_validator = validator.changed_meanwhile(bench, attempt, present)
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
    words = [f"{spoiled_words}: {wording.listed(spoiled)}"] if spoiled else []
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


def _include_hidden(bench: Bench, attempt: Attempt, changes: Sequence[Change]) -> Attempt:
    """The candidate with what undeclared rules hide, so that all of it is held against what the task declares.

    Rules that the task declares may hide what they like, and a tool's cache hides itself: both are told.
    """
    known = _hidden(bench, changes)
    came = tuple(path for path in bench.work.caches() if path not in attempt.caches)
    attempt = dataclasses.replace(attempt, new_caches=came)
    _report_hidden(bench, attempt, known)
    declared = paths.cover(ledger.written_paths(attempt.task.files))
    strays = [path for path, rules in known.items() if not declared(rules)]
    if not strays:
        return attempt
    return dataclasses.replace(attempt, candidate=bench.work.scan((*attempt.literal_paths, *strays)))


def _hidden(bench: Bench, changes: Sequence[Change]) -> Mapping[str, str]:
    """Path that is ignored since the attempt to the file of rules that it made or changed; git is seldom asked."""
    rules = [c for c in changes if c.new is not None and c.path.rpartition("/")[2] == IGNORE_FILE]
    if not rules:
        return {}
    return bench.work.hidden_by((c.path for c in rules if c.old is None), (c.path for c in rules if c.old is not None))


def _report_hidden(bench: Bench, attempt: Attempt, known: Mapping[str, str]) -> None:
    note, task = bench.services.reporter.note, attempt.task.id
    if attempt.new_caches:
        note(f"While {task} ran, folders came that git ignores as caches: {wording.listed(attempt.new_caches)}")
    for rules in sorted(set(known.values())):
        note(f"Since {task} ran, git ignores because of {rules}: {wording.listed(_by(known, rules))}")


def _by(known: Mapping[str, str], rules: str) -> Iterable[str]:
    return (path for path, file in sorted(known.items()) if file == rules)


def _compare_symbols(bench: Bench, task: Task, changes: Iterable[Change], found: Ledger) -> Ledger:
    """The ledger with the task's symbols in it; without them where it declares none."""
    if task.symbols is None:
        return found
    read = [
        symbols.SymbolSet(c.path, _symbol_names(bench, c.path, c.old), _symbol_names(bench, c.path, c.new))
        for c in changes
    ]
    return dataclasses.replace(found, symbols=symbols.compare(task.symbols, read))


def _symbol_names(bench: Bench, path: str, entry: Entry | None) -> frozenset[str] | None:
    if entry is None:
        return frozenset()
    if entry.mode == LINK:
        return frozenset()
    return bench.services.symbols.defined(path, bench.work.read(entry.oid))
