"""The gates `non-goals` and `size`: a change stays within what the plan allows, whatever else the task declares.

`non-goals`: no path and no symbol of a non-goal changes. `size`: the limits of the task, or of its plan.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence

from idumb.domain import paths, wording
from idumb.domain.plans.plan import Limits, NonGoal
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs, Judged, LineCounts, Violation
from idumb.domain.proof.ledger import Change, Definitions
from idumb.gates import python_source

_LONGEST = 4 * 1024 * 1024


def non_goals(inputs: Inputs) -> Judged:
    """Return what changed; formatting counts as a change, because the plan says that nothing changes there."""
    goals = [goal for goal in inputs.plan.non_goals if goal.paths or goal.symbols]
    wrong = [violation for change in inputs.changes for violation in _of_paths(change, goals)]
    unread: list[str] = []
    if any(goal.symbols for goal in goals):
        for change in inputs.changes:
            wrong += _of_symbols(inputs, change, goals, unread)
    judged = f"{wording.listed(goal.id for goal in goals)}: unchanged"
    if unread:
        judged += f"; symbols not judged, because the language is unknown: {wording.listed(unread)}"
    return Judged(list(dict.fromkeys(wrong)), judged)


def _of_paths(change: Change, goals: list[NonGoal]) -> Iterator[Violation]:
    for goal in goals:
        if paths.is_covered(change.path, goal.paths):
            yield Violation(change.path, 0, f"{change.kind}, which the non-goal {goal.id} excludes: {goal.text}")


def _of_symbols(inputs: Inputs, change: Change, goals: list[NonGoal], unread: list[str]) -> Iterator[Violation]:
    concerned = [(goal, name) for goal in goals for name in _names(goal, change.path)]
    if not concerned:
        return
    before, after = _definitions(inputs, change, old=True), _definitions(inputs, change, old=False)
    if before is None:
        unread.append(change.path)
        return
    for goal, (pattern, placed) in concerned:
        for words in _differences(before, after, pattern, placed=placed):
            yield Violation(change.path, 0, f"{words}, which the non-goal {goal.id} excludes: {goal.text}")


def _differences(before: Definitions, after: Definitions | None, pattern: str, *, placed: bool) -> Iterator[str]:
    """Yield what happened to the names that a pattern covers; new ones count only if the non-goal names the file."""
    covered = [name for name in before if fnmatch.fnmatchcase(name, pattern)]
    if after is None:
        yield from (f"{name} cannot be read any more" for name in covered[:1])
        return
    for name in covered:
        if name not in after:
            yield f"{name} was removed"
        elif before[name] != after[name]:
            yield f"{name} changed"
    new = (name for name in after if name not in before and placed)
    yield from (f"{name} was added" for name in new if fnmatch.fnmatchcase(name, pattern))


def _names(goal: NonGoal, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the names that a non-goal guards in a file, and whether it names the file too."""
    for symbol in goal.symbols:
        name, _, place = symbol.partition(" in ")
        if not place or paths.is_covered(path, (place.strip(),)):
            yield name.strip(), bool(place)


def _definitions(inputs: Inputs, change: Change, *, old: bool) -> Definitions | None:
    """Return the definitions of one side; none for an absent file, None if they cannot be read."""
    entry = change.old if old else change.new
    if entry is None:
        return {}
    data = inputs.read(entry, _LONGEST)
    return None if data is None else python_source.definitions(change.path, data)


def size(inputs: Inputs) -> Judged | None:
    """Return one evidence per limit. Binary files count as files but not as lines."""
    limits = inputs.task.limits or inputs.plan.limits
    proofs = () if limits is None else check(limits, inputs.changes, inputs.line_counts())
    return Judged(proofs=proofs) if proofs else None


def check(limits: Limits, changes: Sequence[Change], line_counts: LineCounts) -> tuple[Evidence, ...]:
    """Return one evidence per declared limit."""
    counts = (("files", len(changes), limits.files), ("lines", changed_lines(changes, line_counts), limits.lines))
    proofs = [_at_most(unit, count, allowed) for unit, count, allowed in counts if allowed is not None]
    return (*proofs, _inside(limits.paths, changes)) if limits.paths else tuple(proofs)


def changed_lines(changes: Sequence[Change], line_counts: LineCounts) -> int:
    """Return the number of lines added and removed in the changed files."""
    counted = (line_counts.get(change.path, (None, None)) for change in changes)
    return sum((added or 0) + (removed or 0) for added, removed in counted)


def _at_most(unit: str, count: int, allowed: int) -> Evidence:
    result = evidence.PASSED if count <= allowed else evidence.FAILED
    return Evidence(f"limit {unit}", f"at most {allowed} {unit} change", result, output=f"{count} {unit} changed")


def _inside(allowed: Sequence[str], changes: Sequence[Change]) -> Evidence:
    strays = [change.path for change in changes if not paths.matches_any(change.path, allowed)]
    return Evidence(
        "limit paths",
        f"only {', '.join(allowed)} may change",
        evidence.FAILED if strays else evidence.PASSED,
        output=f"outside: {wording.listed(strays)}" if strays else f"all {len(changes)} changed paths are allowed",
    )
