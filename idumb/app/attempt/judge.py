"""Judges the work from bytes: frozen files, ledger, gates, checks, validator, people, verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from idumb.app.attempt import build, measure, steps, task_checks, validator
from idumb.app.core import questions
from idumb.app.core.attempt import JUDGED, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.worktree import preconditions, task_base
from idumb.domain import agent, contract, failures, outcome, wording
from idumb.domain import paths as path_rules
from idumb.domain.action import Decision
from idumb.domain.errors import Refusal
from idumb.domain.failures import FailureMessage
from idumb.domain.plans.plan import CHANGED, HUMAN, STEPS, Task
from idumb.domain.proof import evidence, gate, gate_table, ledger
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs
from idumb.domain.proof.ledger import Entry

_MOST_READ = 1024 * 1024
"""Bytes of a changed file that may name paths of this machine; larger ones are data."""
_MOST_SAID = 300
_MAY_BE_COMMITTED = frozenset({outcome.PASS, evidence.WAITING})


def end_processes(context: RunContext, attempt: Attempt) -> Attempt:
    """End whatever the builder started, so that nothing writes while the files are frozen.

    Name what changed of the files that decide what git runs, before git is asked anything. Keep the messages of commits
    that the builder made.
    """
    if attempt.result is not None and not context.workspace.in_place:
        context.checks.end_processes()
        preconditions.check_guarded_files(context, attempt)
        said = map(context.services.redactor.redact_output, context.workspace.messages(attempt.before.head.commit))
        return replace(attempt, messages=tuple(said))
    return attempt


def run_checks(context: RunContext, attempt: Attempt) -> Attempt:
    """Prove the work by checks, gates and the validator."""
    head = context.services.history.head().commit
    proven = _tree_to_prove(context, attempt, head)
    attempt, checked = _prove_tree(context, replace(attempt, proven=proven, judged_on=head))
    if attempt.outcome is not None:
        return attempt
    proofs = [*checked, *gate_evidence(context, attempt, checked)]
    stopped = _gate_error(context, attempt, proofs) or _broken_head(context, attempt, checked)
    if stopped is not None:
        return _stopped(replace(attempt, evidence=(*attempt.evidence, *proofs)), stopped)
    if any(c.proof == STEPS for c in attempt.task.acceptance):
        proofs += steps.evidence_of(context, attempt)
    if attempt.task.flow is not None:
        attempt, given = steps.outputs_of(context, attempt, attempt.task.flow, proofs)
        proofs += given
    proofs += change_evidence(attempt.task, attempt.ledger, attempt.candidate)
    # No agent and no person is asked about work that already failed by its files.
    if attempt.validator is not None and attempt.validator != HUMAN and attempt.ledger.holds:
        attempt, opinion = _ask_validator(context, attempt, proofs, attempt.validator)
        proofs.append(opinion)
    return _require_strict_evidence(context, replace(attempt, evidence=(*attempt.evidence, *proofs)))


def _prove_tree(context: RunContext, attempt: Attempt) -> tuple[Attempt, Sequence[Evidence]]:
    """Run the checks on the tree to prove; return the attempt and their evidence.

    The attempt has ended if no check could run, or if a check proves nothing about the work.
    """
    attempt = task_checks.run_controls(context, attempt)
    try:
        return attempt, _checked(context, attempt, attempt.proven or attempt.candidate)
    except Refusal as refusal:
        if refusal.code != NOT_PREPARED:
            raise
        again = f"idumb execute-phase {context.contract.phase}"
        unprepared = FailureMessage(failures.NOT_PREPARED, refusal.message, str(refusal.hint), again)
        return replace(attempt, failure=unprepared).ended(outcome.ERRORED, unprepared.message), ()


def _checked(context: RunContext, attempt: Attempt, tree: str) -> Sequence[Evidence]:
    """Run the checks of an attempt on a tree; their evidence says what makes it weaker, and what broke an invariant."""
    checked = _with_places_of_machine(context, attempt, [*task_checks.check_after(context, attempt, tree)])
    checked = task_checks.explain(
        context.services, context.checks, context.state, checked, attempt.task.id, attempt.base
    )
    return task_checks.with_controls(attempt, checked)


NOT_PREPARED = "checkout.prepare"
"""The code of a refusal: no check could run, because a command that installs what they need failed."""


def _with_places_of_machine(context: RunContext, attempt: Attempt, checked: Sequence[Evidence]) -> Sequence[Evidence]:
    """Return evidence that is weaker if the work newly names paths of this machine: no clone elsewhere has them."""
    work, reasons = context.work, list[str]()

    def places(entry: Entry | None) -> frozenset[str]:
        data = measure.bytes_of(work, entry, _MOST_READ) or b""
        if b"/" not in data:
            return frozenset()
        return work.places_of_machine(data) | context.services.trees.places_of_machine(data)

    for change in attempt.changes:
        named = places(change.new)
        named -= places(change.old) if named else named
        if named:
            reasons.append(f"{change.path} names {wording.listed(sorted(named))}, which only this machine has")
    return [replace(e, weaker=(*e.weaker, *reasons)) if e.passed and e.command else e for e in checked]


def _tree_to_prove(context: RunContext, attempt: Attempt, head: str | None) -> str | None:
    """Return the tree that the checks judge; None if there are none.

    That is HEAD with the work on it, and the finished tasks that nobody committed yet (`git.commit: none`, tasks of
    people). Other uncommitted changes of the user are not in it.
    """
    if not (gate_table.run_commands(context.services.settings) or contract.is_checked(attempt.plan, attempt.task)):
        return None
    paths = (*context.state.uncommitted(), *attempt.committed)
    return context.work.committed(head, attempt.candidate, paths)


def _require_strict_evidence(context: RunContext, attempt: Attempt) -> Attempt:
    """Fail an attempt in strict mode if a check changed the commit, or if what decides its programs changed."""
    if not context.strict:
        return attempt
    rewriting = next((e for e in attempt.evidence if e.passed and e.changed), None)
    if rewriting is not None:
        words = f"{rewriting.subject} changed {wording.listed(rewriting.changed)}, which the commit holds"
        return attempt.ended(outcome.FAILED, f"{words}; in strict mode, a check must leave it as it is")
    changed = tuple(dict.fromkeys(path for e in attempt.evidence for path in e.changed_programs))
    if not changed:
        return attempt
    words = f"{wording.listed(changed)} changed during the run; in strict mode, checks need the programs and settings"
    return attempt.ended(outcome.FAILED, f"{words} that the run started with")


def gate_evidence(context: RunContext, attempt: Attempt, checked: Sequence[Evidence]) -> Iterator[Evidence]:
    """Yield what the gates say about the change. A gate of level 0 that holds says nothing."""
    work, settings = context.work, context.services.settings
    inputs = Inputs(
        attempt.task,
        attempt.plan,
        attempt.changes,
        lambda entry, limit: measure.bytes_of(work, entry, limit),
        lambda: work.line_counts(attempt.base, attempt.candidate),
        tuple(checked),
        settings.gates,
        lambda path: work.entry(attempt.candidate, path),
        seconds=lambda name: gate_table.time_to_judge(settings, name),
        strict=context.strict,
    )
    if gate_table.run_commands(settings) and attempt.ledger.holds:
        inputs = _with_commands(context, attempt, inputs)
    with context.services.interrupts.armed():
        results = tuple(context.services.gates.judge(inputs))
    for name, judged in results:
        if judged.violations or judged.proofs or judged.result or name in settings.gates:
            level = gate_table.of_change(settings, name, strict=context.strict)
            asks = name == gate_table.NON_GOALS and gate_table.asks_about_non_goals(settings, strict=context.strict)
            for proof in gate.evidence_of(name, judged, level):
                if asks and proof.result == evidence.FAILED:
                    yield replace(proof, result=evidence.UNPROVEN)
                    continue
                if level > gate_table.INFORMATIONAL or not (proof.passed and proof.subject.startswith(evidence.GATE)):
                    yield proof


def _with_commands(context: RunContext, attempt: Attempt, inputs: Inputs) -> Inputs:
    """Return the inputs of the gates with the settings that name gates, and with what runs their commands as checks."""
    services, checks, work = context.services, context.checks, context.work
    usual = services.settings.run.check_timeout
    asked = {name: replace(own, timeout=own.timeout or usual) for name, own in services.settings.gates.items()}
    base = task_base.tree_before(context, attempt)

    def run(gate: str, command: str, *, before: bool) -> Evidence:
        tree = base if before else attempt.proven or attempt.candidate
        return checks.alone(f"{evidence.GATE}{gate}", command, tree=tree, timeout=float(asked[gate].timeout or usual))

    return replace(inputs, asked=asked, before=lambda path: work.entry(base, path), run=run)


def _gate_error(context: RunContext, attempt: Attempt, proofs: Sequence[Evidence]) -> FailureMessage | None:
    """Return why the run stops if gates could not judge, and nothing else fails: no other attempt can change that."""
    broken = [e for e in proofs if e.level > gate_table.INFORMATIONAL and e.result in evidence.BROKEN]
    without_command = (e for e in broken if e.subject.startswith(evidence.GATE) and e.command is None)
    by_gates = [e for e in without_command if e.result != evidence.FAILED]
    if not by_gates or len(by_gates) < len(broken) or not attempt.ledger.holds:
        return None
    words = wording.listed(e.words.rstrip(".") for e in by_gates)
    correct, again = "Correct what it names in .idumb/config.yaml", f"idumb execute-phase {context.contract.phase}"
    return FailureMessage(failures.GATE_ERROR, words, correct, again)


def change_evidence(task: Task, compared: ledger.Ledger, tree: str | None) -> tuple[Evidence, ...]:
    """Return evidence for criteria that ask only for some change: any declared change proves them."""
    criteria = [c for c in task.acceptance if c.proof == CHANGED]
    if not criteria:
        return ()
    changed = [line.path for line in compared.lines if line.actual is not None and line.status == ledger.DECLARED]
    result, words = (
        (evidence.PASSED, wording.listed(changed, 20)) if changed else (evidence.FAILED, "no declared file changed")
    )
    return tuple(Evidence(c.id, c.text, result, output=words, tree=tree) for c in criteria)


def _ask_validator(
    context: RunContext, attempt: Attempt, proofs: Sequence[Evidence], name: str
) -> tuple[Attempt, Evidence]:
    """Return the attempt with the validator's answer, and the evidence that it gave."""
    opinion, result = validator.judge(context, attempt, proofs, name)
    all_proofs = (*proofs, opinion)
    broken = [e.subject for e in all_proofs if e.level > gate_table.INFORMATIONAL and e.result in evidence.BROKEN]
    alone = broken == [f"validator {name}"]  # it could not judge, and nothing else fails the attempt
    failure = build.agent_failure(context, name, result) if alone else attempt.failure
    return replace(attempt, verdict_of_validator=result, failure=failure), opinion


def ask_people(context: RunContext, attempt: Attempt) -> Attempt:
    """Add the questions about criteria that only a person can prove, after everything else holds.

    Their answer must never be lost to something that idumb could have found out first.
    """
    if not attempt.ledger.holds or any(
        e.level > gate_table.INFORMATIONAL and not e.passed and e.result not in (evidence.OPINION, evidence.UNPROVEN)
        for e in attempt.evidence
    ):
        return attempt
    attempt = _ask(context, attempt, _questions(attempt))
    if attempt.exposed and evidence.verdict(attempt.ledger, attempt.evidence)[0] in _MAY_BE_COMMITTED:
        attempt = _ask(context, attempt, [questions.secret(attempt.task, attempt.number, attempt.exposed)])
    return attempt


def _ask(context: RunContext, attempt: Attempt, decisions: Sequence[Decision]) -> Attempt:
    answers = [*filter(None, (context.journal.answer(question.id) for question in decisions))]
    return replace(
        attempt,
        questions=(*attempt.questions, *decisions),
        answers=(*attempt.answers, *answers),
        evidence=(*attempt.evidence, *questions.evidence_of_answers(decisions, answers, attempt.candidate)),
    )


def _questions(attempt: Attempt) -> tuple[Decision, ...]:
    """Return a question for each criterion that a person proves, and one for the task if a person validates it.

    Before them, a guided plan asks about a changed non-goal.
    """
    task, number, changes = attempt.task, attempt.number, attempt.changes
    asked = validator.question(attempt) if attempt.verdict_of_validator is not None else None
    if asked is None and attempt.validator == HUMAN:
        asked = questions.validator(task, number, changes)
    changed = questions.non_goals(task, number, attempt.evidence)
    return (*changed, *questions.criteria(task, number, changes), *(() if asked is None else (asked,)))


def prove_on_head(context: RunContext, attempt: Attempt) -> Attempt:
    """Run the checks again if HEAD has moved since they ran: then another tree would be committed."""
    head = context.services.history.head().commit
    if head == attempt.judged_on or preconditions.why_not_deliver(context):
        return attempt
    tree = _tree_to_prove(context, attempt, head)
    attempt = prove_again(context, replace(attempt, judged_on=head, proven=tree), tree or attempt.candidate)
    broken = _broken_head(context, attempt, attempt.evidence)
    return attempt if broken is None else _stopped(attempt, broken)


def _stopped(attempt: Attempt, why: FailureMessage) -> Attempt:
    ended = outcome.FAILED if why.kind == failures.BROKEN_HEAD else outcome.ERRORED
    return replace(attempt, failure=why).ended(ended, why.message)


def _broken_head(context: RunContext, attempt: Attempt, checked: Sequence[Evidence]) -> FailureMessage | None:
    """Return why an attempt does not count, and tell the user: on his new commit, checks fail without the work too.

    On the commit that the attempt began on, they hold. A strict run stops if his commit changed a path of the plan.
    """
    services, begun = context.services, attempt.before.head.commit
    if begun == attempt.judged_on:
        return None
    if theirs := _committed_by_user(context, attempt):
        words, again = f"you committed what the plan declares: {wording.listed(theirs)}", context.contract.phase
        return FailureMessage(failures.PATH_COMMITTED, words, "Look at your commit", f"idumb resume {again}")
    failed = [e for e in checked if e.command and e.result in evidence.BROKEN]
    if not failed:
        return None
    paths = (*context.state.uncommitted(), *attempt.committed)
    alone = task_base.tree_before(context, attempt)
    earlier = context.work.committed(begun, attempt.candidate, paths)
    for tree, results in ((alone, evidence.BROKEN), (earlier, {evidence.PASSED})):
        for e in failed:
            if context.checks.alone(e.subject, e.command or "", tree=tree).result not in results:
                return None
    subjects = wording.listed(e.subject for e in failed)
    words = f"{subjects} failed on your commit {(attempt.judged_on or '')[:7]}, there without {attempt.task.id} too"
    services.reporter.note(f"{words}: the attempt does not count")
    return FailureMessage(
        failures.BROKEN_HEAD, words, f"Correct what {subjects} found", f"idumb resume {attempt.plan.phase}"
    )


def _committed_by_user(context: RunContext, attempt: Attempt) -> tuple[str, ...]:
    """Return the declared paths that changed on the branch of a strict run since the attempt, or its last commit.

    While HEAD is elsewhere, nothing is known of the branch; the work is judged again when the user is back.
    """
    if not context.strict or attempt.in_place:
        return ()
    if preconditions.why_not_deliver(context):
        return ()
    history, begun = context.services.history, attempt.before.head.commit
    own = (commit for commit, named in history.trailers_since(begun) if named.get("Idumb-Run") == context.run)
    since = next(own, begun)
    covers = path_rules.cover([p for task in context.contract.tasks.values() for p in ledger.written_paths(task.files)])
    changes = context.work.changes(history.tree_of(since), history.tree_of(attempt.judged_on))
    return tuple(change.path for change in changes if covers(change.path))


def prove_again(context: RunContext, attempt: Attempt, tree: str) -> Attempt:
    """Run the checks again on another tree than before. Their results replace the earlier ones."""
    checked = _checked(context, attempt, tree)
    context.checks.end_processes()
    subjects = {e.subject for e in checked}
    kept = (e for e in attempt.evidence if e.subject not in subjects)
    return _require_strict_evidence(context, replace(attempt, evidence=(*kept, *checked)))


def reach_verdict(_: RunContext, attempt: Attempt) -> Attempt:
    """Give the attempt its outcome: that of its evidence, unless it has failed already."""
    if attempt.outcome is not None:
        return attempt.at(JUDGED)
    verdict, why = evidence.verdict(attempt.ledger, attempt.evidence)
    ended = {outcome.PASS: outcome.COMPLETED, evidence.WAITING: outcome.WAITING}.get(verdict, outcome.FAILED)
    pending = attempt.verdict_of_validator
    if ended == outcome.WAITING and pending is not None and pending.outcome == outcome.WAITING:
        why = pending.message
    elif ended == outcome.WAITING:
        answered = {answer.decision for answer in attempt.answers}
        why = next((f"{why}: {q.why}" for q in attempt.questions if q.id not in answered), why)
    elif ended == outcome.FAILED:
        why = attempt.failure.message if attempt.failure is not None else _words_of_idle(attempt) or why
    return attempt.at(JUDGED, verdict=verdict, outcome=ended, reason=why)


def _words_of_idle(attempt: Attempt) -> str:
    """Return what an agent said that changed nothing of what it had to change: it knows best what stops it."""
    missing, result = [line for line in attempt.ledger.lines if line.status == ledger.MISSING], attempt.result
    idle = missing and not attempt.changes and not any(line.rule for line in missing)
    if not idle or result is None or not agent.capabilities_of(attempt.builder).calls_model:
        return ""
    said = wording.one_line(result.reply or ("" if result.output.startswith("{") else result.output))
    last = said if len(said) <= _MOST_SAID else f"...{said[-_MOST_SAID:]}"
    denied = f" ({result.message})" if result.message else ""
    return f"it changed nothing{denied}" + (failures.AND_SAID + last if last else "") if denied or last else ""
