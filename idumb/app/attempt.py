"""One attempt at one task: the stages, in order, that lead from a snapshot to a checkpoint.

A stage takes the attempt as it stands and returns it with one thing more. As soon as an outcome is known the
remaining stages are passed over, but for those that freeze, account for and record what was done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from idumb.app import ports, proofs
from idumb.app.journal import Journal
from idumb.app.services import Services, attempt_ref
from idumb.domain import agent, contract, envelope, ledger, outcome, paths, settings
from idumb.domain import evidence as evidence_words
from idumb.domain.decision import Answer, Decision
from idumb.domain.errors import Refusal
from idumb.domain.event import NewEvent
from idumb.domain.evidence import Evidence
from idumb.domain.plan import Plan, Task
from idumb.domain.run import call_id

OWN_FILES = (".idumb/**", ".planning/**")


@dataclass(slots=True)
class Pace:
    """When progress was last written, in monotonic seconds: projections of a long run are written now and then."""

    written: float = float("-inf")


@dataclass(frozen=True)
class Bench:
    """Where the attempts of one run are made: the ports, the journal, the workspace and what is locked in."""

    services: Services
    journal: Journal
    contract: contract.Contract
    workspace: ports.Workspace
    agents: ports.Agents
    checks: ports.Checks
    policy: str
    on_deviation: str | None
    max_attempts: int
    pace: Pace

    @cached_property
    def plans(self) -> Mapping[str, Plan]:
        return self.contract.plan_by_task()

    @property
    def work(self) -> ports.Trees:
        return self.workspace.trees

    @property
    def run(self) -> str:
        return self.journal.state.id

    def protected(self, plan: Plan) -> tuple[str, ...]:
        return (*plan.scope.protected, *self.services.settings.protected)


@dataclass(frozen=True, slots=True)
class Attempt:
    """`base` is the task base; `outcome` None means that nothing has gone wrong yet. Times are monotonic seconds."""

    task: Task
    plan: Plan
    number: int
    base: str
    feedback: str
    started: float
    accepted_paths: tuple[str, ...] = ()
    snapshot: ports.Snapshot | None = None
    head: ports.Head | None = None
    result: agent.AgentResult | None = None
    candidate: str | None = None
    changes: tuple[ledger.Change, ...] = ()
    ledger: ledger.Ledger = ledger.Ledger(())
    evidence: tuple[Evidence, ...] = ()
    questions: tuple[Decision, ...] = ()
    answers: tuple[Answer, ...] = ()
    residue: tuple[str, ...] = ()
    commands_ran: bool = False
    verdict: str | None = None
    outcome: str | None = None
    reason: str = ""
    deviation: bool = False
    commit_refused: str | None = None

    @property
    def literal_paths(self) -> tuple[str, ...]:
        return tuple(p for p in ledger.written_paths(self.task.files) if not paths.has_wildcard(p))

    def ended(self, result: str, reason: str) -> Attempt:
        return dataclasses.replace(self, outcome=result, reason=reason)


Stage = Callable[[Bench, Attempt], Attempt]


def make(bench: Bench, attempt: Attempt) -> Attempt:
    """Lead one attempt through all stages."""
    for stage in STAGES:
        if attempt.outcome is None:
            bench.services.interrupts.check()
        if attempt.outcome is None or stage in ALWAYS:
            attempt = stage(bench, attempt)
    return attempt


def check_lock(bench: Bench, attempt: Attempt) -> Attempt:
    """The owner is still this process, and HEAD is where this run left it."""
    services = bench.services
    if not services.owner.check(bench.journal.fence):
        raise Refusal("lock.lost", "Another process took this work tree over.", hint="idumb status shows who holds it")
    return dataclasses.replace(attempt, head=services.history.head())


def take_snapshot(bench: Bench, attempt: Attempt) -> Attempt:
    """The whole tree is durable and read back before anything else; then the attempt is announced."""
    services, task = bench.services, attempt.task
    ref = attempt_ref(services, bench.run, task.id, attempt.number, "base")
    snapshot = services.trees.snapshot(ref, f"before {task.id}, attempt {attempt.number}", attempt.literal_paths)
    fresh = bench.workspace.kind == "here"
    present = snapshot.tree if fresh else bench.work.scan(attempt.literal_paths)
    base = _task_base(bench, attempt, present)
    attempt = dataclasses.replace(attempt, snapshot=snapshot, base=base)
    binding = _binding_name(bench, attempt)
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
            envelope=_envelope(bench, attempt, binding),
        )
    )
    return attempt


def _task_base(bench: Bench, attempt: Attempt, present: str) -> str:
    """The tree before attempt 1; later, the present with what earlier attempts left taken out of it."""
    if not attempt.base:
        return present
    if bench.workspace.kind != "here":
        return attempt.base
    known = bench.journal.state.tasks[attempt.task.id]
    attributed = tuple(dict.fromkeys((*known.touched, *known.deviations)))
    return bench.work.overlay(present, attempt.base, attributed) if attributed else present


def check_preconditions(bench: Bench, attempt: Attempt) -> Attempt:
    """Preconditions hold, and tests that must fail before the work do fail."""
    found = proofs.before(bench.checks, attempt.task, bench.services.settings, attempt.base, attempt.number == 1)
    attempt = dataclasses.replace(attempt, evidence=found, commands_ran=bool(found))
    failed = [e for e in found if not e.passed]
    if failed:
        return attempt.ended(outcome.REFUSED, f"{failed[0].subject}: {failed[0].text} ({failed[0].result})")
    return attempt


def build(bench: Bench, attempt: Attempt) -> Attempt:
    """The builder works; whatever it says is a claim."""
    builder = bench.agents.get(_binding_name(bench, attempt))
    request = _request(bench, attempt, agent.BUILDER, builder)
    if builder.name == "human":
        question = proofs.work_question(attempt.task)
        request = dataclasses.replace(request, question=question, answer=_known_answer(bench, question))
        attempt = dataclasses.replace(attempt, questions=(question,))
    with bench.services.interrupts.armed():
        result = builder.run(request)
    attempt = dataclasses.replace(attempt, result=result)
    if result.answer is not None:
        # "It is done" proves nothing of a task that has criteria of its own; a person's judgement does.
        answered = proofs.of_answers(attempt.questions, (result.answer,), attempt.base) if attempt.task.is_human else ()
        attempt = dataclasses.replace(attempt, answers=(result.answer,), evidence=(*attempt.evidence, *answered))
    if result.outcome == outcome.COMPLETED:
        return attempt
    return attempt.ended(result.outcome, result.message or f"the builder ended with {result.outcome}")


def end_processes(bench: Bench, attempt: Attempt) -> Attempt:
    """Nothing that the builder started may live when the candidate is frozen."""
    if attempt.result is not None:
        bench.checks.end_processes()
    return attempt


def freeze_candidate(bench: Bench, attempt: Attempt) -> Attempt:
    if attempt.snapshot is None:
        return attempt
    return dataclasses.replace(attempt, candidate=bench.work.scan(attempt.literal_paths), commands_ran=False)


def compare_ledger(bench: Bench, attempt: Attempt) -> Attempt:
    """Declared files against actual ones, from trees, against the task base."""
    if attempt.candidate is None or attempt.snapshot is None:
        return attempt
    changes = _task_changes(bench, attempt, attempt.candidate)
    protected = bench.protected(attempt.plan)
    found = ledger.compare(attempt.task.files, changes, protected, attempt.accepted_paths)
    attempt = dataclasses.replace(attempt, changes=changes, ledger=found)
    strays = found.paths(ledger.UNDECLARED)
    if strays and _accepts(bench, attempt, strays):
        accepted = (*attempt.accepted_paths, *strays)
        found = ledger.compare(attempt.task.files, changes, protected, accepted)
        attempt = dataclasses.replace(attempt, ledger=found, accepted_paths=accepted)
    strays = found.paths(ledger.UNDECLARED, ledger.PROTECTED)
    if strays:
        words = f"changed outside its declared files: {', '.join(strays[:5])}"
        attempt = dataclasses.replace(attempt, deviation=True)
        return attempt.ended(outcome.FAILED, f"{attempt.reason}; {words}" if attempt.reason else words)
    return attempt


def _task_changes(bench: Bench, attempt: Attempt, candidate: str) -> tuple[ledger.Change, ...]:
    """What changed since the task base; idumb's own files are held against this attempt's snapshot instead,
    because idumb itself writes them between attempts."""
    since_base = bench.work.changes(attempt.base, candidate)
    theirs = tuple(c for c in since_base if not paths.matches_any(c.path, OWN_FILES))
    if bench.workspace.kind != "here" or attempt.snapshot is None or attempt.snapshot.tree == attempt.base:
        return since_base
    own = bench.work.changes(attempt.snapshot.tree, candidate)
    return (*theirs, *(c for c in own if paths.matches_any(c.path, OWN_FILES)))


def _accepts(bench: Bench, attempt: Attempt, strays: tuple[str, ...]) -> bool:
    """Whether undeclared changes are taken into the task: by flag, or by a person at the terminal."""
    if bench.on_deviation is not None:
        return bench.on_deviation == settings.ACCEPT
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
        found.extend(gate.judge(task, attempt.plan, attempt.changes, counts))
    judged, asked = _validator(bench, attempt, tuple(found))
    found.extend(judged)
    attempt = dataclasses.replace(
        attempt, evidence=(*attempt.evidence, *found), commands_ran=attempt.commands_ran or ran or asked
    )
    return _ask_criteria(bench, attempt)


def _validator(bench: Bench, attempt: Attempt, found: tuple[Evidence, ...]) -> tuple[tuple[Evidence, ...], bool]:
    name = contract.validator_of(attempt.plan, attempt.task, bench.services.settings)
    if name is None:
        return (), False
    validator = bench.agents.get(name)
    request = _request(bench, attempt, agent.VALIDATOR, validator, found)
    with bench.services.interrupts.armed():
        result = validator.run(request)
    bench.checks.end_processes()
    return (proofs.of_validator(name, result, attempt.candidate),), True


def _ask_criteria(bench: Bench, attempt: Attempt) -> Attempt:
    """Criteria that only a person can prove become questions, once everything else holds."""
    if any(
        not e.passed and e.result not in (evidence_words.OPINION, evidence_words.UNPROVEN) for e in attempt.evidence
    ):
        return attempt
    asked, answers = [], []
    for question in proofs.questions(attempt.task, attempt.number, attempt.changes):
        answer = _known_answer(bench, question) or bench.services.asker.ask(question)
        asked.append(question)
        if answer is not None:
            answers.append(answer)
    judged = proofs.of_answers(asked, answers, attempt.candidate)
    return dataclasses.replace(
        attempt,
        questions=(*attempt.questions, *asked),
        answers=(*attempt.answers, *answers),
        evidence=(*attempt.evidence, *judged),
    )


def _known_answer(bench: Bench, question: Decision) -> Answer | None:
    known = bench.journal.state.answers.get(question.id)
    return Answer(question.id, known["choice"], known["by"], known.get("guidance", "")) if known else None


def scan_residue(bench: Bench, attempt: Attempt) -> Attempt:
    """Checks may leave files behind; a candidate path they changed fails the task."""
    if not attempt.commands_ran or attempt.candidate is None:
        return attempt
    after = bench.work.changes(attempt.candidate, bench.work.scan(attempt.literal_paths))
    spoiled = [c.path for c in after if c.old is not None]
    residue = tuple(c.path for c in after if c.old is None)
    attempt = dataclasses.replace(attempt, residue=residue)
    if spoiled:
        return attempt.ended(outcome.FAILED, f"a check changed what it should judge: {', '.join(spoiled[:5])}")
    return attempt


def reach_verdict(bench: Bench, attempt: Attempt) -> Attempt:
    verdict, why = proofs.verdict(attempt.ledger, attempt.evidence)
    ended = {outcome.PASS: outcome.COMPLETED, evidence_words.WAITING: outcome.WAITING}.get(verdict, outcome.FAILED)
    return dataclasses.replace(attempt, verdict=verdict, outcome=ended, reason=why)


def record_checkpoint(bench: Bench, attempt: Attempt) -> Attempt:
    """Intent, objects, hidden ref, branch, one transaction; then the attempt is history."""
    if attempt.candidate is None or attempt.snapshot is None:
        return attempt
    if attempt.outcome == outcome.WAITING:
        bench.journal.write(*_finished_events(bench, attempt), *_question_events(bench, attempt))
        return attempt
    if attempt.outcome == outcome.COMPLETED and bench.policy == settings.COMMIT_TASK and not attempt.task.is_human:
        return commit_and_record(bench, attempt)
    tree, conflicts = _deliver(bench, attempt)
    if conflicts:
        attempt = attempt.ended(outcome.REFUSED, _conflict_words(conflicts))
    kept = _keep_candidate(bench, attempt, tree)
    bench.journal.write(
        *_finished_events(bench, attempt),
        *_question_events(bench, attempt),
        *completion_events(bench, attempt, kept, None),
    )
    return attempt


def commit_and_record(bench: Bench, attempt: Attempt) -> Attempt:
    """The way of a completed task whose commit goes on the user's branch."""
    message = commit_message(bench, attempt)
    head = bench.services.history.head()
    bench.journal.write(
        *_finished_events(bench, attempt),
        *_question_events(bench, attempt),
        bench.journal.event(
            "checkpoint.intended",
            attempt.task.id,
            attempt.number,
            paths=list(attempt.ledger.changed),
            message=message,
            head=head.commit,
            tree=attempt.candidate,
            base=attempt.base,
        ),
    )
    tree, conflicts = _deliver(bench, attempt)
    if conflicts:
        return dataclasses.replace(attempt, commit_refused=_conflict_words(conflicts))
    kept = _keep_candidate(bench, attempt, tree)
    return finish_commit(bench, attempt, kept, head.commit, message)


def finish_commit(bench: Bench, attempt: Attempt, kept: ports.Snapshot, head: str | None, message: str) -> Attempt:
    """Commit the task's own paths and record the checkpoint; used by recovery too."""
    made = bench.services.history.commit(
        attempt.ledger.changed, message, expected_head=head, hooks=bench.services.settings.git.hooks, allow_empty=True
    )
    if made.commit is None:
        return dataclasses.replace(attempt, commit_refused=made.words)
    bench.journal.write(*completion_events(bench, attempt, kept, made.commit))
    return attempt


def completion_events(bench: Bench, attempt: Attempt, kept: ports.Snapshot, commit: str | None) -> tuple[NewEvent, ...]:
    return (_checkpoint_event(bench, attempt, kept, commit), *_completed_event(bench, attempt))


def _deliver(bench: Bench, attempt: Attempt) -> tuple[str, tuple[ports.Conflict, ...]]:
    candidate = attempt.candidate or attempt.base
    if attempt.outcome != outcome.COMPLETED or bench.workspace.kind == "here":
        return candidate, ()
    return bench.workspace.deliver(attempt.base, candidate, attempt.ledger.changed)


def _conflict_words(conflicts: tuple[ports.Conflict, ...]) -> str:
    return "; ".join(f"{c.path}: {c.why}" for c in conflicts)


def _keep_candidate(bench: Bench, attempt: Attempt, tree: str) -> ports.Snapshot:
    ref = attempt_ref(bench.services, bench.run, attempt.task.id, attempt.number, "checkpoint")
    parent = attempt.snapshot.commit if attempt.snapshot else None
    return bench.services.trees.keep(ref, tree, f"after {attempt.task.id}, attempt {attempt.number}", parent)


def _finished_events(bench: Bench, attempt: Attempt) -> list[NewEvent]:
    event = bench.journal.event
    task, number, result = attempt.task.id, attempt.number, attempt.result
    # What was made in a clone and not delivered never reached the user's tree.
    here = bench.workspace.kind == "here" or attempt.outcome == outcome.COMPLETED
    left = attempt.candidate if bench.workspace.kind == "here" or not attempt.snapshot else attempt.snapshot.tree
    events = [
        event(
            "step.finished",
            task,
            number,
            call=call_id(bench.run, task, number, step.index),
            index=step.index,
            tool=step.tool,
            intent=step.intent,
            arguments=dict(step.arguments),
            ok=step.ok,
            response=step.response,
            plan_hash=attempt.plan.sha256,
            seconds=round(step.seconds, 6),
        )
        for step in (result.steps if result else ())
    ]
    events += [event("evidence.recorded", task, number, **evidence_payload(e)) for e in attempt.evidence]
    events.append(
        event(
            "attempt.finished",
            task,
            number,
            outcome=attempt.outcome,
            verdict=attempt.verdict,
            reason=attempt.reason,
            left=left,
            touched=list(attempt.ledger.changed) if here else [],
            deviations=list(attempt.ledger.paths(ledger.UNDECLARED, ledger.PROTECTED)) if here else [],
            accepted_paths=list(attempt.accepted_paths),
            ledger=attempt.ledger.as_list(),
            residue=list(attempt.residue),
            feedback=proofs.feedback(attempt.reason, attempt.ledger, attempt.evidence),
            seconds=round(bench.services.clock.monotonic() - attempt.started, 3),
            builder=_result_payload(result),
        )
    )
    return events


def _question_events(bench: Bench, attempt: Attempt) -> list[NewEvent]:
    event, task, number = bench.journal.event, attempt.task.id, attempt.number
    known = bench.journal.state
    events = [
        event("decision.asked", task, number, **dataclasses.asdict(question))
        for question in attempt.questions
        if question.id not in known.decisions
    ]
    events += [
        event("decision.answered", task, number, **dataclasses.asdict(answer))
        for answer in attempt.answers
        if answer.decision not in known.answers
    ]
    if attempt.outcome == outcome.WAITING:
        answered = {answer.decision for answer in attempt.answers}
        waiting = [q.id for q in attempt.questions if q.id not in answered]
        events.append(event("task.waiting", task, number, decisions=waiting, reason=attempt.reason))
    return events


def _checkpoint_event(bench: Bench, attempt: Attempt, kept: ports.Snapshot, commit: str | None) -> NewEvent:
    head = commit if commit is not None else bench.services.history.head().commit
    return bench.journal.event(
        "checkpoint.recorded",
        attempt.task.id,
        attempt.number,
        status="completed" if attempt.outcome == outcome.COMPLETED else "failed",
        git_hash=head,
        commit=commit,
        snapshot=kept.commit,
        ref=kept.ref,
        tree=kept.tree,
        files=list(attempt.ledger.changed),
        seconds=round(bench.services.clock.monotonic() - attempt.started, 3),
        error=None if attempt.outcome == outcome.COMPLETED else attempt.reason,
        verdict=attempt.verdict,
    )


def _completed_event(bench: Bench, attempt: Attempt) -> list[NewEvent]:
    if attempt.outcome != outcome.COMPLETED:
        return []
    return [bench.journal.event("task.completed", attempt.task.id, attempt.number, reason=attempt.reason)]


def evidence_payload(found: Evidence) -> dict[str, Any]:
    payload = dataclasses.asdict(found)
    payload["argv"] = list(found.argv)
    payload["seconds"] = round(found.seconds, 3)
    return payload


def _result_payload(result: agent.AgentResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "outcome": result.outcome,
        "message": result.message,
        "exit_code": result.exit_code,
        "claimed_files": list(result.claimed_files),
        "session": result.session,
        "usage": dataclasses.asdict(result.usage),
        "transcript": result.transcript,
        "output": result.output,
        "output_sha256": result.output_sha256,
        "truncated": result.truncated,
        "seconds": round(result.seconds, 3),
    }


def commit_message(bench: Bench, attempt: Attempt) -> str:
    """Subject from the title; trailers tie the commit to run, task, attempt and the plan's bytes."""
    return (
        f"{attempt.task.title.splitlines()[0]}\n\n"
        f"Idumb-Run: {bench.run}\n"
        f"Idumb-Task: {attempt.task.id}\n"
        f"Idumb-Attempt: {attempt.number}\n"
        f"Idumb-Plan: {attempt.plan.sha256}\n"
    )


def _binding_name(bench: Bench, attempt: Attempt) -> str:
    name = contract.builder_of(attempt.plan, attempt.task, bench.services.settings)
    if name is None:  # `readiness` refuses such a plan before a run starts
        raise Refusal("task.no-builder", f"Nothing can build {attempt.task.id}.")
    return name


def _request(
    bench: Bench, attempt: Attempt, role: str, who: ports.Agent, found: tuple[Evidence, ...] = ()
) -> agent.AgentRequest:
    services, task = bench.services, attempt.task
    protected = bench.protected(attempt.plan)
    asked = ports.PromptRequest(role, task, attempt.plan, protected, attempt.feedback, attempt.number, found)
    limit = _deadline(bench, attempt) if role == agent.BUILDER else float(services.settings.run.validator_timeout)
    return agent.AgentRequest(
        role=role,
        task=task,
        prompt=services.documents.prompt(asked) if who.name != "steps" else "",
        workspace=bench.work.root,
        allowed_paths=ledger.written_paths(task.files),
        attempt=attempt.number,
        deadline=limit,
        budget=agent.Budget(output_bytes=services.settings.run.output_limit),
        feedback=attempt.feedback,
        protected=protected,
        run_id=bench.run,
    )


def _deadline(bench: Bench, attempt: Attempt) -> float | None:
    """The task's own timeout, or the binding's, or twice the estimate, one and a half times on a retry."""
    task = attempt.task
    if task.timeout is not None:
        return float(task.timeout)
    binding = bench.services.settings.bindings.get(_binding_name(bench, attempt))
    if binding is not None and binding.timeout is not None:
        return float(binding.timeout)
    if task.is_human:
        return None
    return float(task.estimate_seconds * (2 if attempt.number == 1 else 1.5))


def _envelope(bench: Bench, attempt: Attempt, binding: str) -> dict[str, Any]:
    services = bench.services
    builder = bench.agents.get(binding)
    known = envelope.Envelope(
        idumb=services.version,
        adapter=builder.name,
        adapter_version=builder.version,
        binding=binding,
        configuration=services.settings.digest(),
        contract=bench.contract.hash,
        tools=services.tools,
    )
    return {**known.as_dict(), "digest": known.digest}


STAGES: tuple[Stage, ...] = (
    check_lock,
    take_snapshot,
    check_preconditions,
    build,
    end_processes,
    freeze_candidate,
    compare_ledger,
    run_checks,
    scan_residue,
    reach_verdict,
    record_checkpoint,
)
ALWAYS: frozenset[Stage] = frozenset({end_processes, freeze_candidate, compare_ledger, record_checkpoint})
