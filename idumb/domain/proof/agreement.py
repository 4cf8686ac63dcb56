"""The gate `agreement`: pieces of recorded evidence about one phase that contradict one another. A pure function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence, symbols
from idumb.domain.proof.deadline import NEVER, Deadline
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Judgement, Opinion

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The evidence of each task's last attempt, as in `evidence.recorded`."""


def judge(
    tasks: Sequence[Task],
    changed: Mapping[str, Sequence[str]],
    touched: Mapping[str, Sequence[str]],
    rows: Rows,
    final: Sequence[Evidence],
    opinions: Sequence[Opinion],
    deadline: Deadline = NEVER,
) -> tuple[str, ...]:
    """Return the contradictions, in words; also that there was no time to find all.

    `tasks` are the completed ones, in their order, `changed` the symbols of their ledgers as text, and `touched` their
    paths. `final` are the own checks of tasks on the final tree, `opinions` those of verifier and skeptic.
    """
    parts = [
        _plan_and_ledger(tasks, changed),
        *(_tests_and_criteria(task, rows.get(task.id, ()), final) for task in tasks),
        _validator_and_opinions(touched, rows, opinions),
        _between_opinions(opinions),
    ]
    words: list[str] = []
    for part in parts:
        if deadline.passed:
            words.append(f"the evidence was not compared within {deadline.seconds:.0f}s (gate agreement)")
            break
        words += part
    return tuple(dict.fromkeys(words))


def _plan_and_ledger(tasks: Sequence[Task], changed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield names that the plan promises and that a task removed without declaring it."""
    promised: dict[tuple[str, str], str] = {}
    removed: dict[tuple[str, str], str] = {}
    for task in tasks:
        claims = task.symbols or ()
        for actual, name, path in _parsed(changed.get(task.id, ())):
            covered = {claim.action for claim in claims if symbols.means(claim.name, path, name)}
            if actual == symbols.ADDED:
                removed.pop((path, name), None)
                if "add" in covered:
                    promised[path, name] = task.id
            elif actual == symbols.REMOVED and "remove" in covered:
                promised.pop((path, name), None)
            elif actual == symbols.REMOVED:
                removed[path, name] = task.id
                if any(symbols.means(interface.name, path, name) for interface in task.interfaces):
                    yield f"{task.id} declares the interface {name}, and its ledger has {name} in {path} as removed"
    for (path, name), task_id in removed.items():
        if (path, name) in promised:
            yield f"{promised[path, name]} declares that it adds {name} in {path}, and {task_id} removed it undeclared"


def _parsed(texts: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield change, name and path of texts such as `added load in a.py`."""
    for text in texts:
        actual, _, rest = text.partition(" ")
        name, between, path = rest.partition(" in ")
        if between:
            yield actual, name, path


def _tests_and_criteria(task: Task, rows: Sequence[Mapping[str, Any]], final: Sequence[Evidence]) -> Iterator[str]:
    failed_before = [i for i, test in enumerate(task.tests, 1) if test.before == "fails"]
    criteria_ids = {criterion.id for criterion in task.acceptance}
    if failed_before and any(row["subject"] == f"test {failed_before[0]} after" for row in rows):
        for row in rows:
            if row.get("control") == evidence.PASSED and row["subject"] in criteria_ids:
                yield f"{task.id}: its tests failed before the work, and {row['subject']} already passed there"
    own = [each for each in final if each.subject.startswith(f"{task.id} ")]
    tests = [each for each in own if each.subject.startswith(f"{task.id} test ")]
    criteria = [each for each in own if each.subject.removeprefix(f"{task.id} ") in criteria_ids]
    for some, others in ((tests, criteria), (criteria, tests)):
        broken = [each.subject for each in others if each.result in evidence.BROKEN]
        if some and broken and all(each.passed for each in some):
            yield f"{some[0].subject} passes on the final tree, and {broken[0]} does not"


def _validator_and_opinions(
    touched: Mapping[str, Sequence[str]], rows: Rows, opinions: Sequence[Opinion]
) -> Iterator[str]:
    """Yield tasks that a validator passed, and in whose files an agent refutes a criterion."""
    passed = [
        task
        for task in touched
        if any(
            row["subject"].startswith("validator ") and row["result"] == evidence.PASSED for row in rows.get(task, ())
        )
    ]
    for opinion, one in _judgements(opinions):
        place = next((each for each in one.citations if each.resolves), None) if one.refutes else None
        for task in passed if place is not None else ():
            if place is not None and place.file in touched[task]:
                where = f"{place.file}:{place.line}"
                yield f"the validator passed {task}, and the {opinion.role} refutes {one.criterion} at {where}"


def _between_opinions(opinions: Sequence[Opinion]) -> Iterator[str]:
    holding = [(opinion, one) for opinion, one in _judgements(opinions) if one.holds]
    for opinion, one in _judgements(opinions):
        for other, held in holding if one.refutes else ():
            if other.role != opinion.role and held.criterion.casefold() == one.criterion.casefold():
                yield f"the {other.role} says that {held.criterion} holds, and the {opinion.role} that it does not"


def _judgements(opinions: Sequence[Opinion]) -> Iterator[tuple[Opinion, Judgement]]:
    return ((opinion, one) for opinion in opinions for one in opinion.judgements)
