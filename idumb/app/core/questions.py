"""The table of questions: what each asks, what the choices mean, and what follows each for the task.

Asked at a terminal or answered later: the question is put into the log first, then the answer, and the next move comes
from the choice that was recorded. Nothing is read out of an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from idumb.domain import outcome, paths, wording
from idumb.domain.action import (
    CONFLICT,
    EFFECT,
    FAIL,
    FINISH,
    HISTORY,
    JUDGE,
    JUDGEMENT,
    LIMIT,
    PHASE,
    REFUSE,
    RESET,
    SECRET,
    SKIP,
    START,
    STOPPED,
    UNDECLARED,
    WAIT,
    WORK,
    Answer,
    Choice,
    Decision,
    end_of,
)
from idumb.domain.plans.plan import HUMAN, REVERSIBLE, Task
from idumb.domain.proof import evidence, gate_table, ledger
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.run import EFFECT as MAY_HAVE_HAPPENED
from idumb.domain.runs.run import RunState, TaskState
from idumb.domain.settings import KEEP, LEAVE_OUT, STOP

YES, NO, RETRY, AGAIN, RAISE = "yes", "no", "retry", "again", "raise"
COMMIT, MINE, TASKS, RETURN, FRESH = "commit", "mine", "task", "return", "fresh"
ACCEPT, ROLL_BACK = "accept", "roll-back"
BASE, DELIVERY, MOVED = "base", "delivery", "moved"
"""The subjects of a conflict: before the work, once it is done, and with a branch that moves again and again."""
FAILURE, PRECONDITION, EXHAUSTED = "failure", "precondition", "exhausted"
"""The subjects of the question about a task that stopped."""
DECIDES = "decision"
"""The subject of work that is a choice of the plan."""
NOT_DELIVERED = "A task may change only what it declares, so nothing of its work was delivered."
WITHOUT_SECRET = "take the value out of the file and read it from the variable"
UNANSWERED = "nobody answered in time, so the answer is no"


class Row(NamedTuple):
    """A question of the table. The texts have the names of facts in braces; `mark` is the middle of its id.

    None as subject is the mark.
    """

    kind: str
    mark: str
    what: str
    why: str
    choices: tuple[Choice, ...]
    subject: str | None = None


_DECIDE = "idumb decide {decision} "
_BY_PLAN = "The plan says that a person "
_SKIP = Choice(SKIP, "skip it", "tasks that depend on it stay blocked", move=SKIP)
_LEAVE_FAILED = Choice(FAIL, "leave it failed", "what depends on it is blocked; independent tasks continue", move=FAIL)
_SET = "idumb config set "
_ALWAYS = f"{_SET}run.on_deviation "
_KEEP = Choice(KEEP, "they belong to the task, this once", "they are proven and delivered with it", None, JUDGE)
_LEAVE_OUT = Choice(LEAVE_OUT, "go on without them", "the rest is proven without them, then delivered", None, JUDGE)
_STOP = Choice(STOP, "leave it failed", "nothing is delivered, and what depends on the task is blocked", move=FAIL)


def _judged(yes: str, means: str, no: str, otherwise: str) -> tuple[Choice, Choice]:
    return Choice(YES, yes, means, move=JUDGE), Choice(NO, no, otherwise, move=REFUSE)


_FAILS = "the task fails and what depends on it is blocked"
_HOLDS = "it holds", "the criterion counts as proven by you", "it does not hold"
_NEXT = "the attempt fails; the feedback for the next one says to omit the value"

# fmt: off
TABLE: Mapping[str, Row] = {
    "do": Row(WORK, "work", "{task}: {title}", "{why}", (
        Choice("done", "it is done", "idumb runs the task's checks", move=JUDGE),
        Choice("not-done", "it cannot be done", _FAILS, move=REFUSE),
    )),
    "look": Row(WORK, "work", "{task}: {title}", "{why}",
                _judged("it is as it should be", "the task is complete", "it is not", _FAILS)),
    "choose": Row(WORK, "work", "{task}: {title}", "{why}", (), DECIDES),
    "criterion": Row(JUDGEMENT, "{subject}", "{task} {subject}: {text}", _BY_PLAN + "judges this criterion.",
                     _judged(*_HOLDS, "the attempt fails")),
    "validator": Row(JUDGEMENT, "validator", "{task}: {title}", "{why}",
                     _judged("it is good", "the task counts as validated by you", "it is not", "the attempt fails")),
    "non-goal": Row(
        JUDGEMENT, "non-goal", "{task} changed {paths}, which the plan excludes",
        "A non-goal of the plan says that this stays as it is.",
        _judged("it may change, this once", "the change is part of the task", "it must stay", "the attempt fails"),
        f"{evidence.GATE}{gate_table.NON_GOALS}",
    ),
    "success criterion": Row(JUDGEMENT, "{subject}", "Phase {phase}, {criterion}: {text}",
                             "The plan asks a person to judge this success criterion.",
                             _judged(*_HOLDS, "the phase is not verified")),
    SECRET: Row(
        SECRET, evidence.SECRET, "{task} would commit a known secret: {lines}",
        "The file in HEAD is without the value. Once it is committed, everyone with the repository can read it.",
        _judged("commit it", "the value is committed with the task", "do not", _NEXT),
    ),
    "undeclared": Row(
        UNDECLARED, "deviation", "{task} changed files it does not declare: {paths}", NOT_DELIVERED,
        (replace(_KEEP, remember=_ALWAYS + KEEP), replace(_LEAVE_OUT, remember=_ALWAYS + LEAVE_OUT), _STOP), "",
    ),
    "whose": Row(
        UNDECLARED, "deviation", "Since {task} was started, files changed that it does not declare: {paths}",
        "In strict mode, a person says whose they are.", (
            replace(_LEAVE_OUT, text="these are mine", consequence="they stay as they are, uncommitted"),
            replace(_KEEP, text="part of the task", consequence="they are proven and committed with it"),
        ), "",
    ),
    BASE: Row(
        CONFLICT, BASE, "{task} declares files with uncommitted changes of yours: {paths}",
        "Its commit would contain them, and nothing was built yet.", (
            Choice(COMMIT, "you commit them first", "the task waits, and starts from your commit", move=WAIT),
            Choice(MINE, "it starts from your version", "your changes are committed with the task", move=START),
            replace(_STOP, consequence="nothing is built, and what depends on the task is blocked"),
        ),
    ),
    DELIVERY: Row(
        CONFLICT, DELIVERY, "{task} is done, and you changed {paths} since it began",
        "idumb overwrites nothing of yours.", (
            Choice(MINE, "your version counts", "the task gets your version of them, and is proven again", move=FINISH),
            Choice(TASKS, "the task's version counts", "yours is kept in a snapshot", move=FINISH),
            Choice(STOP, "neither, for now", "nothing is delivered before you moved yours away", move=WAIT),
        ),
    ),
    MOVED: Row(
        CONFLICT, MOVED, "{task} is done, and the branch moved {count} times while it was committed",
        "Each time, its checks ran again on top of the new commit.", (
            Choice(AGAIN, "try it again", "its checks run on the branch as it is then", move=FINISH),
            Choice(STOP, "not now", "nothing is delivered before the next resume", move=WAIT),
        ),
    ),
    FAILURE: Row(
        STOPPED, FAILURE, "{task} {title} failed", "The plan leaves this decision to a person (`On failure: ask`).", (
            Choice(RETRY, "retry it", "the next attempt gets the feedback of this one", move=RESET),
            _SKIP, _LEAVE_FAILED,
        ),
    ),
    PRECONDITION: Row(
        STOPPED, PRECONDITION, "{task} {title} cannot start: a precondition does not hold",
        "Work on a wrong basis is wrong work, so nothing was built.", (
            Choice(RETRY, "make it true, then check it again", "the task runs if they hold then", move=RESET),
            _SKIP, _LEAVE_FAILED,
        ),
    ),
    EXHAUSTED: Row(
        STOPPED, EXHAUSTED, "{task} {title} failed after {count}",
        "{who} does not retry it by itself. Tasks that depend on it are blocked; independent tasks continue.", (
            Choice(RETRY, "retry it, with guidance for its builder", "it gets new attempts, with the text of --guidance"
                   " in their prompts; idumb resume runs them", f"{_DECIDE}{RETRY} --guidance TEXT"),
            Choice(ACCEPT, "accept its work as it is", "it counts as done because you accept it, its work is committed,"
                   " and tasks that depend on it can run", f"{_DECIDE}{ACCEPT} --guidance REASON"),
            replace(_SKIP, command=f"{_DECIDE}{SKIP} --guidance REASON", move=""),
            Choice(ROLL_BACK, "roll back to before it", "a new commit restores its files, and those of later tasks;"
                   " idumb undo restores the work", f"{_DECIDE}{ROLL_BACK}"),
        ),
    ),
    EFFECT: Row(
        EFFECT, "again", "{task} {title} may have had its effect already",
        "An attempt started, and its effect {how}. idumb cannot tell whether it happened.",
        (Choice(AGAIN, "run it again", "the task starts again", move=RESET), _SKIP), "",
    ),
    LIMIT: Row(
        LIMIT, "ceiling.{subject}", "{task} {title} would pass the ceiling of the {subject}",
        "{Words}; the configuration allows no more.", (
            Choice(RAISE, "raise it", "the same amount may be used once more", None, RESET, f"{_SET}{{setting}}"),
            Choice(STOP, "stop here", "no agent is asked; the task has failed", move=FAIL),
        ), "{subject}",
    ),
    HISTORY: Row(
        HISTORY, HISTORY, "{words}",
        "What was done is not done any more, and what depends on it would be built without it.", (
            Choice(AGAIN, "run it again", "the run continues, and builds it anew", move=RESET),
            Choice(RETURN, "return to the checkpoint", "its commits are on the branch again, and the run continues"),
            Choice(FRESH, "start fresh", "a new commit restores the files from before the run, which starts again"),
        ),
    ),
    PHASE: Row(PHASE, "", "Phase {phase}: does it count as verified?", "{reason}.", (
        Choice(YES, "yes", "the phase is verified, and the report names you"),
        Choice(NO, "no", "the phase stays partial; idumb verify-work {phase} judges it again"),
    )),
}
# fmt: on


def about(
    name: str, task: Task, number: int | str, shown: Iterable[str], *, without: Iterable[str] = (), **facts: Any
) -> Decision:
    """Return a question of the table about a task. Choices `without` are not offered."""
    row = TABLE[name]
    facts = {"task": task.id, "title": task.title, **facts}
    id = f"{task.id}.{row.mark.format(**facts)}.{number}"
    return replace(from_table(name, id, shown, decision=id, without=without, **facts), task=task.id)


def from_table(name: str, id: str, shown: Iterable[str], *, without: Iterable[str] = (), **facts: Any) -> Decision:
    """Return a question of the table with this id."""
    row = TABLE[name]
    choices = tuple(
        replace(
            c,
            consequence=c.consequence.format(**facts),
            command=c.command and str(c.command).format(**facts),
            remember=c.remember.format(**facts),
        )
        for c in row.choices
        if c.id not in without
    )
    texts = [t.format(**facts) for t in (row.what, row.why, row.mark if row.subject is None else row.subject)]
    return Decision(id, row.kind, texts[0], texts[1], tuple(shown), choices, subject=texts[2])


def asked_before(run: RunState, question: Decision) -> Decision:
    """Return a question about files with the id of the last answer, or question, about all of them; else a new id."""
    earlier = [id for id in run.decisions if id == question.id or id.startswith(f"{question.id}.")]
    new = f"{question.id}.{len(earlier) + 1}" if earlier else question.id
    rows = (run.decisions[id] for id in (*earlier, *(id for id in run.answers if id in earlier)))
    return replace(question, id=last_about(rows, question.evidence) or new)


def last_about(rows: Iterable[Mapping[str, Any]], files: Sequence[str]) -> str | None:
    """Return the id of the last of these recorded questions that is about all of the files; None if there is none."""
    ids = [str(row["id"]) for row in rows if set(files) <= set(row["evidence"])]
    return ids[-1] if ids else None


# The work of a person


def work(task: Task, attempt: int, feedback: str = "") -> Decision:
    """Return the question that asks a person to do the task, with the paths of the task and what will judge them.

    An answer serves one attempt.
    """
    name = "look" if task.kind == "human-verify" else "choose" if task.kind == "decision" and task.options else "do"
    criteria = (line for c in task.acceptance for line in (c.text, *c.instructions))
    written = wording.listed(ledger.written_paths(task.files), 20)
    commands = (*(c.command for c in task.acceptance if c.command), *task.verify, *(t.command for t in task.tests))
    judged = (f"  runs   {command}" for command in dict.fromkeys(commands))
    shown = (*criteria, *[f"  writes {written}"] * bool(written), *judged, *feedback.splitlines()[:20])
    question = about(name, task, attempt, shown, why=task.description or "The plan leaves this task to a person.")
    if name != "choose":
        return question
    return replace(
        question, choices=tuple(Choice(o.id, o.text, f"the record says {o.id}", move=JUDGE) for o in task.options)
    )


def chosen(state: RunState, question: str) -> Choice:
    """Return the choice that a person made, with its move, as the question offered it."""
    wanted = state.answers[question]["choice"]
    return next(Choice(**choice) for choice in state.decisions[question]["choices"] if choice["id"] == wanted)


_THEN = {"fail": "this step fails", "skip": "this step is omitted", "retry": "you are asked again"}


def with_time_limit(question: Decision, task: Task, now: str) -> Decision:
    """Return the question of a workflow's step with the time until which it waits; unchanged if it has none."""
    if task.flow is None or task.timeout is None:
        return question
    until = end_of(now, task.timeout)
    line = f"without an answer until {until[:19].replace('T', ' ')} UTC, {_THEN[task.on_timeout or 'fail']}"
    return replace(question, until=until, evidence=(*question.evidence, line))


# What a person judges


def criteria(task: Task, attempt: int, changes: Sequence[ledger.Change]) -> tuple[Decision, ...]:
    """Return a question for each criterion that a person proves. Tasks for people are one question."""
    if task.is_human:
        return ()
    return tuple(
        about("criterion", task, attempt, (*c.instructions, *_changed(changes)), subject=c.id, text=c.text)
        for c in task.acceptance
        if c.proof == HUMAN
    )


def non_goals(task: Task, attempt: int, proofs: Iterable[Evidence]) -> Iterator[Decision]:
    """Yield the question whether a task may change what a non-goal excludes, if its gate says that it does."""
    subject = f"{evidence.GATE}{gate_table.NON_GOALS}"
    for proof in proofs:
        if (proof.subject, proof.result) == (subject, evidence.UNPROVEN):
            lines = proof.output.splitlines()
            named = wording.listed(dict.fromkeys(line.partition(":")[0] for line in lines), 5)
            yield about("non-goal", task, attempt, lines, paths=named)


def validator(task: Task, attempt: int, changes: Sequence[ledger.Change], why: str = "", reply: str = "") -> Decision:
    """Return the question whether a task is good, asked if a person validates it or no validator could.

    `why` explains it, `reply` is the validator's answer.
    """
    shown = (*((reply,) if reply else ()), *(c.text for c in task.acceptance), *_changed(changes))
    return about("validator", task, attempt, shown, why=why or f"{_BY_PLAN}validates this task.")


def _changed(changes: Sequence[ledger.Change]) -> tuple[str, ...]:
    return tuple(f"{c.kind} {c.path}" for c in changes[:20])


def evidence_of_answers(
    questions: Iterable[Decision], answers: Iterable[Answer], tree: str | None
) -> Iterator[Evidence]:
    """Yield people's answers as evidence; a question without an answer waits."""
    by_question = {answer.decision: answer for answer in answers}
    for question in questions:
        answer = by_question.get(question.id)
        if answer is None:
            yield Evidence(question.subject, question.what, evidence.WAITING, tree=tree)
            continue
        chosen = question.choice(answer.choice)
        refused = chosen is None or chosen.move == REFUSE
        output = f"{answer.by} answered {answer.choice}" + (f": {answer.guidance}" if answer.guidance else "")
        output += f"; {WITHOUT_SECRET}" if refused and question.kind == SECRET else ""
        if question.subject.startswith(evidence.GATE):
            output = "; ".join((output, *question.evidence))
        result = evidence.FAILED if refused else evidence.PASSED
        yield Evidence(question.subject, question.what, result, output=output, tree=tree)


def secret(task: Task, attempt: int, exposed: Sequence[str]) -> Decision:
    """Return the question before a known secret is committed. It names file, line and variable, never the value."""
    return about(SECRET, task, attempt, exposed, lines=wording.listed(exposed, 5, between="; "))


# Files


class Deviations(NamedTuple):
    """Changed files that the task does not declare: those that a person may keep, and those that nobody can."""

    undeclared: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()

    @property
    def can_be_decided(self) -> bool:
        """Whether a person has a choice: a file outside the project can be neither kept nor left out."""
        return any(self) and not any(map(paths.is_outside, self.protected))


def about_deviations(task: Task, attempt: int, deviations: Deviations, *, in_editor: bool = False) -> Decision:
    """Return the question of what happens to changes outside the declared files.

    `in_editor`: they changed in the user's own tree while his editor built the task.
    """
    both, without = (*deviations.undeclared, *deviations.protected), (KEEP,) if deviations.protected else ()
    name = "whose" if in_editor else "undeclared"
    return about(name, task, attempt, both, without=without, paths=wording.listed(both))


def are_kept(state: RunState, task: str, undeclared: Sequence[str]) -> bool:
    """Return whether a person kept each of these files for the task."""
    return set(undeclared) <= {path for q in answered(state, UNDECLARED, KEEP, task) for path in q["evidence"]}


def files_from_user(state: RunState, task: str) -> tuple[str, ...]:
    """Return the files of which a task starts from the user's uncommitted version, because he said so."""
    chosen = answered(state, CONFLICT, MINE, task)
    return tuple(path for q in chosen if q["subject"] == BASE for path in q["evidence"])


def answered(state: RunState, kind: str, choice: str | None, task: str | None) -> Iterator[Mapping[str, Any]]:
    """Yield the questions of a kind that were answered so, the earliest answer first. None is any choice or task."""
    for id, answer in state.answers.items():
        question = state.decisions.get(id)
        if question is None or question["kind"] != kind or choice not in (None, answer["choice"]):
            continue
        if task in (None, question["task"]):
            yield question


# A task that stopped


def effect_payload(task: Task) -> dict[str, str]:
    """Return the fields of an event about an attempt whose effects files alone cannot undo."""
    return {} if task.rollback.kind == REVERSIBLE or task.is_human else {"effect": MAY_HAVE_HAPPENED}


def exhausted(task: Task, task_state: TaskState, *, repeats: bool) -> Decision:
    """Return the question about a task that failed with all its attempts. It stays failed while other tasks run."""
    number = task_state.progress.attempts or task_state.attempt.number  # an exhausted context uses up none
    return about(
        EXHAUSTED,
        task,
        task_state.attempt.number,
        (task_state.context.feedback or task_state.reason).splitlines()[:20],
        count=f"{number} attempt{'s' * (number != 1)}",
        who="It failed twice in the same way, so idumb" if repeats else "idumb",
    )


def is_current(state: RunState, question: Mapping[str, Any]) -> bool:
    """Return whether the question is about the present failure of a task that used up its attempts."""
    task_state = state.tasks.get(str(question["task"]))
    if task_state is None or task_state.status != outcome.FAILED:
        return False
    return bool(question["id"] == f"{task_state.id}.{EXHAUSTED}.{task_state.attempt.number}")


# Ceilings


def times_raised(state: RunState, task: str | None, scope: str) -> int:
    """Return how often a person raised a ceiling, of one task or of the whole run."""
    return sum(question["subject"] == scope for question in answered(state, LIMIT, RAISE, task))
