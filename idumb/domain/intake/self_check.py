"""The judgement of a whole plan before it runs: ten questions, answered from the findings, and one score.

The score is the confidence in the plan; each of its parts gives its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from idumb.domain import catalog
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract, builder_of, validator_of
from idumb.domain.finding import SILENT, WARNING, Finding
from idumb.domain.intake import declarations, registry
from idumb.domain.intake.rule import Case
from idumb.domain.plans.plan import CHECK, COMPENSATABLE, IRREVERSIBLE, STEPS, VERIFY, Task

YES, NO, NOT_JUDGED = "yes", "no", "not judged"
SHOWN = 20


class Answer(Struct, frozen=True):
    """`evidence` contains ids of tasks and requirements, or words; only the first ones are listed."""

    id: str
    question: str
    answer: str
    evidence: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "evidence": list(self.evidence)}


class Question(Struct, frozen=True):
    """`codes` are the findings that make the answer no. `basis` returns the evidence for a yes; none is not judged."""

    id: str
    question: str
    codes: tuple[str, ...]
    basis: Callable[[Case], Iterable[str]]


def answers(case: Case, findings: Iterable[Finding]) -> tuple[Answer, ...]:
    """Answer each question from the findings of this case.

    In strict mode, every finding behind a no is an error, so a no refuses the plan.
    """
    by_code: dict[str, list[Finding]] = {}
    for finding in (*findings, *_silent(case)):
        by_code.setdefault(finding.code, []).append(finding)
    return tuple(_answer(question, case, by_code) for question in QUESTIONS)


def open_questions(case: Case, findings: Iterable[Finding]) -> tuple[Answer, ...]:
    """Return what a person must answer: the questions that are not judged, and requirements that nothing states."""
    unjudged = (answer for answer in answers(case, findings) if answer.answer == NOT_JUDGED)
    unstated = (
        Answer(id, f"Is {id} a requirement, although .planning/REQUIREMENTS.md does not list it?", NOT_JUDGED)
        for id in dict.fromkeys(hit.found for _, _, hit in declarations.unlisted_requirements(case))
    )
    return (*unjudged, *unstated)


def _silent(case: Case) -> Iterator[Finding]:
    """Yield the first findings of checks that are silent in this mode."""
    for codes in registry.CHECKS:
        if any(catalog.ROWS[code].question and case.severity(code) == SILENT for code in codes.split()):
            yield from islice((f for f in registry.findings_of(case, codes) if f.severity == SILENT), SHOWN)


def _answer(question: Question, case: Case, by_code: dict[str, list[Finding]]) -> Answer:
    against = [finding for code in question.codes for finding in by_code.get(code, ())]
    if against:
        words = dict.fromkeys(f"{finding.place} {finding.code}" for finding in against)
        return Answer(question.id, question.question, NO, tuple(islice(words, SHOWN)))
    basis = tuple(islice(question.basis(case), SHOWN))
    return Answer(question.id, question.question, YES if basis else NOT_JUDGED, basis)


def _rollback(case: Case) -> Iterator[str]:
    """Yield how tasks are rolled back: by snapshot, unless a task declares otherwise."""
    kinds = {COMPENSATABLE: "by its own commands", IRREVERSIBLE: "only if a person accepted it"}
    special = (f"{t.id} {kinds[t.rollback.kind]}" for _, t in case.pairs if t.rollback.kind in kinds)
    return chain(islice(special, SHOWN - 1), ["every other task by snapshot"])


def _non_goals(case: Case) -> Iterable[str]:
    declared = any("non_goals" in plan.spans for plan in case.contract.plans)
    ids = [goal.id for plan in case.contract.plans for goal in plan.non_goals]
    return ids or (["declared: none"] if declared else [])


def _invariants(case: Case) -> Iterable[str]:
    ids = [invariant.id for plan in case.contract.plans for invariant in plan.invariants]
    return (ids or ["declared: none"]) if any(task.interfaces for _, task in case.pairs) else []


def _agents(case: Case) -> Iterable[str]:
    """Return the builders and validators: they fit together if every name resolves."""
    used = ((builder_of(p, t, case.settings), validator_of(p, t, case.settings)) for p, t in case.pairs)
    return dict.fromkeys(name for names in used for name in names if name is not None)


_TABLE: Mapping[str, tuple[str, Callable[[Case], Iterable[str]]]] = {
    "executable": ("Is every step of the plan executable?", lambda case: case.contract.order),
    "requirements": (
        "Does every requirement have a task, every task a requirement, and an artifact or a check?",
        lambda case: [id for plan in case.contract.plans for id in plan.requirements],
    ),
    # The changes of steps are declared, while those of agents are only known afterwards.
    "scope": ("Do all steps stay inside what is declared?", lambda case: [t.id for _, t in case.pairs if t.steps]),
    "rollback": ("Does every task say how it is rolled back?", _rollback),
    "interfaces": (
        "Is every public name fully specified?",
        lambda case: [interface.name for _, task in case.pairs for interface in task.interfaces],
    ),
    "non-goals": ("Does the plan declare its non-goals?", _non_goals),
    "invariants": ("Do invariants protect the public interfaces?", _invariants),
    "change-classes": (
        "Does every change of behaviour have a change class?",
        lambda case: [f"{task.id} {task.change}" for _, task in case.pairs if task.change],
    ),
    "agents": ("Do all agents fit together?", _agents),
    # No check of a plan can judge a design that is not built yet.
    "design": ("Is the quality of the design acceptable?", lambda _: ()),
}
QUESTIONS = tuple(
    Question(id, question, tuple(code for code in registry.CODES if catalog.ROWS[code].question == id), basis)
    for id, (question, basis) in _TABLE.items()
)


class Part(Struct, frozen=True):
    """`value` is between 0 and 1, or None if there is nothing to judge; `weight` is how much it counts."""

    name: str
    value: float | None
    weight: int
    why: str

    def as_dict(self) -> dict[str, Any]:
        value = None if self.value is None else round(self.value, 3)
        return {"name": self.name, "value": value, "weight": self.weight, "why": self.why}


class Confidence(Struct, frozen=True):
    """`score` is the weighted mean of the parts that could be judged, with two decimals."""

    score: float
    parts: tuple[Part, ...]


def assess(contract: Contract, findings: Iterable[Finding]) -> Confidence:
    """Assess a contract; `findings` are those of its checks."""
    tasks = [contract.tasks[task] for task in contract.order]
    built = [task for task in tasks if not task.is_human]
    parts = (
        _checks(findings, len(tasks)),
        _proofs(built),
        _coverage(contract),
        _share("files", 1, [task.files is not None for task in built], "tasks declare their files"),
        _share("reversible", 1, [task.rollback.kind != IRREVERSIBLE for task in tasks], "tasks can be rolled back"),
    )
    judged = [part for part in parts if part.value is not None]
    total = sum(part.weight for part in judged)
    score = sum((part.value or 0.0) * part.weight for part in judged) / total if total else 0.0
    return Confidence(round(score, 2), parts)


def _checks(findings: Iterable[Finding], tasks: int) -> Part:
    """Return the share of tasks without a warning."""
    doubts = sum(1 for finding in findings if finding.severity == WARNING)
    value = max(0.0, 1.0 - doubts / max(tasks, 1))
    return Part("checks", value, 2, f"warnings: {doubts}, tasks: {tasks}")


def _proofs(tasks: Sequence[Task]) -> Part:
    """Return the share of proofs that are commands. Opinions, people and unproven criteria do not count."""
    proofs = [proof in (CHECK, VERIFY, STEPS) for task in tasks for proof in contracts.proofs(task).values()]
    tests = [True for task in tasks for _ in task.tests]
    return _share("proofs", 4, [*proofs, *tests], "criteria and tests are proven by commands")


def _coverage(contract: Contract) -> Part:
    declared = {requirement for plan in contract.plans for requirement in plan.requirements}
    served = {requirement for task in contract.tasks.values() for requirement in task.requirements}
    return _share("coverage", 2, [requirement in served for requirement in declared], "requirements have a task")


def _share(name: str, weight: int, holds: Sequence[bool], words: str) -> Part:
    value = sum(holds) / len(holds) if holds else None
    return Part(name, value, weight, f"{sum(holds)} of {len(holds)} {words}")
