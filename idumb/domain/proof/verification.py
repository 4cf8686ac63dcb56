"""What the recorded evidence of a phase shows besides its checks: contradictions, unproven work, and gaps.

The gate `agreement` finds pieces of evidence that contradict one another. The gate `completion` finds what nobody
proved, and open warnings; graph, invariants, tests, checks and files are judged by `idumb/app/verify/`. Gaps are
results that the phase should deliver and its verification did not find. Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from idumb.domain import paths
from idumb.domain.plans.plan import FileClaim, Task
from idumb.domain.proof import evidence, gate_table, judgement, ledger
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import NEVER, Deadline
from idumb.domain.proof.judgement import Judgement, Opinion

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The evidence of each task's last attempt, as in `evidence.recorded`."""


def contradictions(
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
            covered = {claim.action for claim in claims if ledger.means_symbol(claim.name, path, name)}
            if actual == ledger.ADDED:
                removed.pop((path, name), None)
                if "add" in covered:
                    promised[path, name] = task.id
            elif actual == ledger.REMOVED and "remove" in covered:
                promised.pop((path, name), None)
            elif actual == ledger.REMOVED:
                removed[path, name] = task.id
                if any(ledger.means_symbol(interface.name, path, name) for interface in task.interfaces):
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


WEAK = {evidence.OPINION: "is covered only by an opinion", evidence.UNPROVEN: "has no proof"}
"""Results of criteria that prove nothing, in words."""
_BY_PERSON = "validator"
"""The subject of a person's yes to a whole task."""


def unproven_work(tasks: Iterable[Task], rows: Rows) -> tuple[str, ...]:
    """Return what is open of completed tasks, in words. A person decided accepted tasks."""
    words: list[str] = []
    for task in tasks:
        newest = {row["subject"]: row for row in rows.get(task.id, ())}
        words += [*_unproven(task, newest), *_warnings(task.id, newest)]
    return tuple(words)


def _unproven(task: Task, newest: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the criteria that neither a command, nor a person, nor the evidence of a validator proves."""
    if task.is_human or newest.get(_BY_PERSON, {}).get("result") == evidence.PASSED:
        return
    shown = [row for each in newest.values() if each["result"] == evidence.PASSED for row in each.get("shown", ())]
    proven = judgement.proven_criteria(task, (row["criterion"] for row in shown))
    for criterion in task.acceptance:
        result = newest.get(criterion.id, {}).get("result")
        if result in WEAK and criterion.id not in proven:
            yield f"{task.id} {criterion.id} {WEAK[result]}"


def _warnings(task: str, newest: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the gates that could block and were not decided."""
    for subject, row in newest.items():
        level = row.get("level", gate_table.ADVISORY)
        if subject.startswith(evidence.GATE) and level > gate_table.INFORMATIONAL and row["result"] != evidence.PASSED:
            reason = str(row.get("output") or "").partition("\n")[0]
            words = f"{task} has an open warning: {subject} is {row['result'].replace('_', ' ')}"
            yield f"{words}: {reason}" if reason else words


_MOST = 50
_CLOSED = frozenset({evidence.PASSED, evidence.TOLERATED, evidence.WAITING})  # a person's answer closes what waits


class Gap(Struct, frozen=True):
    """`subject` names it in the verification, `text` says what must hold, `why` what is missing.

    `check` is the command that proves it; None if a person must judge it.
    """

    subject: str
    text: str
    why: str
    check: str | None = None


def gaps_of(record: Mapping[str, Any]) -> tuple[Gap, ...]:
    """Return every gap of a verification, criteria first; one gap for each command and each text."""
    partial = record.get("status") == "partial"
    gaps = [
        Gap(e["subject"], e["text"], _why(e), e.get("command"))
        for e in record["evidence"]
        if e["result"] not in _CLOSED and (partial or e["result"] != evidence.OPINION)
    ]
    gaps += [
        Gap("files", f"{text}: fixed", "the files are not as the tasks left them") for text in record["mismatches"]
    ]
    for row in record["requirements"]:
        if not row["met"]:
            words = f"{row['id']}: {row['text']}" if row["text"] else row["id"]
            gaps.append(Gap(row["id"], f"{words} is met", "no task that is done serves it"))
    if partial and not any(e["result"] == evidence.PASSED for e in record["evidence"]):
        gaps += [
            Gap(t, f"The work of {t} is proven", f"accepted by a person: {w}") for t, w in record["accepted"].items()
        ]
        gaps += [Gap(t, f"The work of {t} is done and proven", "it was skipped") for t in record["skipped"]]
    subjects = {gap.subject for gap in gaps}
    gaps += [gap for gap in _refuted(record) if gap.subject not in subjects]
    one_each = {(gap.check or gap.text): gap for gap in reversed(gaps)}
    return tuple(reversed(one_each.values()))[:_MOST]


def _why(criterion: Mapping[str, Any]) -> str:
    code = "" if criterion.get("exit_code") is None else f", exit {criterion['exit_code']}"
    return f"{str(criterion['result']).replace('_', ' ')}{code}"


def _refuted(record: Mapping[str, Any]) -> list[Gap]:
    texts = {e["subject"]: e["text"] for e in record["evidence"]}
    gaps = []
    for opinion in record.get("judged_by", ()):
        for one in opinion["judgements"]:
            places = [f"{c['file']}:{c['line']}" for c in one["citations"] if c["resolves"]]
            if not one["holds"] and places:
                # its check passed for wrong work, so the check cannot close the gap
                text = texts.get(one["criterion"], one["criterion"])
                gaps.append(Gap(one["criterion"], text, f"{one['why']} ({', '.join(places[:3])})"))
    return gaps


def reachable(claims: Collection[FileClaim]) -> tuple[str, ...]:
    """Return globs around the files that a phase's tasks write, for a task that closes a gap in any of them."""
    globs = []
    for claim in claims:
        path = claim.target or claim.path
        folder, slash, name = path.rpartition("/")
        if paths.has_wildcard(path):
            globs.append(path)
        elif slash:
            globs.append(f"{folder}/**")
        else:
            _, dot, ending = name.rpartition(".")
            globs.append(f"*.{ending}" if dot and ending else f"{name}*")
    return tuple(dict.fromkeys(globs))
