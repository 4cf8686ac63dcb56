"""The gates `types` and `lint`: the project's own checkers report nothing that they did not report before the task.

A checker that cannot run, or whose output cannot be compared, is never a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from idumb.domain import wording
from idumb.domain.proof import evidence, gate, gate_table, project_checkers
from idumb.domain.proof.evidence import GATE, Evidence
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.project_checkers import Finding

_LONGEST = 1024 * 1024
_UNKNOWN = "idumb cannot tell what of its output is new"


def _judge(name: str, inputs: Inputs) -> Judged:
    """Return one evidence per checker."""
    commands = inputs.asked[name].run or _configured(name, inputs)
    if not commands:
        names = wording.listed((each.label for each in project_checkers.CHECKERS if each.gate == name), 9)
        words = f"the project's top folder configures none of {names}; {_line(name)}"
        return Judged(words=words, result=evidence.ERRORED)
    return Judged(proofs=tuple(_compare(name, command, inputs) for command in commands))


types, lint = partial(_judge, gate_table.TYPES), partial(_judge, gate_table.LINT)


def _configured(name: str, inputs: Inputs) -> tuple[str, ...]:
    """Return the commands of the checkers that the project configured before the task, which cannot remove them."""

    def read(path: str) -> str | None:
        data = inputs.read(inputs.before(path), _LONGEST)
        return None if data is None else data.decode("utf-8", "replace")

    return tuple(command for _, command in project_checkers.configured(name, read))


def _compare(name: str, command: str, inputs: Inputs) -> Evidence:
    assert inputs.run is not None  # noqa: S101 - the registry asks
    after = inputs.run(name, command, before=False)
    if after.passed:
        return _made(name, after, evidence.PASSED, "reports nothing")
    if after.result == evidence.FAILED and after.exit_code == 0:
        return _made(name, after, evidence.FAILED, after.output)  # it changed what it judges
    if after.result != evidence.FAILED:
        return _made(name, after, after.result, _why_not(name, after))
    found = _found_in(after)
    before = inputs.run(name, command, before=True)
    if before.passed:
        return _made(name, after, evidence.FAILED, _listed(found) or gate.end_of_output(after))
    unknown = _not_comparable(before, after, found)
    if unknown:
        return _made(name, after, evidence.ERRORED, f"{unknown}; {_line(name)}")
    result, words = _difference(before, after, project_checkers.new_findings(_found_in(before), found, _moved(inputs)))
    return _made(name, after, result, words)


def _difference(before: Evidence, after: Evidence, fresh: list[Finding]) -> tuple[str, str]:
    """Return result and words. A checker that an error stopped has not seen the rest, on either tree."""
    if fresh and project_checkers.stopped(before.output):
        words = "an error stopped it on the tree before the task, so idumb cannot tell what is new"
        return evidence.ERRORED, f"{words}: {_listed(fresh)}"
    if fresh:
        return evidence.FAILED, _listed(fresh)
    if project_checkers.stopped(after.output):
        words = "an error stops it, as it did before the task; correct it first"
        return evidence.ERRORED, f"{words}: {_listed(_found_in(after))}"
    return evidence.PASSED, f"reports nothing new; {len(_found_in(after))} as before"


def _found_in(ran: Evidence) -> tuple[Finding, ...]:
    return project_checkers.findings(ran.output)


def _not_comparable(before: Evidence, after: Evidence, found: tuple[Finding, ...]) -> str:
    """Return why two outputs cannot be compared, in words; "" if they can."""
    if before.result != evidence.FAILED:
        return f"it fails, and on the tree before the task it {before.result.replace('_', ' ')}"
    if before.truncated or after.truncated:
        return f"{_UNKNOWN}, because it is too long"
    if not found or not _found_in(before):
        return f"{_UNKNOWN}, because it names no file with a line. {gate.end_of_output(after)}"
    return ""


def _made(name: str, ran: Evidence, result: str, words: str) -> Evidence:
    return replace(ran, subject=f"{GATE}{name}", text=_summary(name), result=result, output=words)


def _summary(name: str) -> str:
    row = gate_table.of_name(name)
    assert row is not None  # noqa: S101 - the registry names rows of the table
    return row.summary


def _why_not(name: str, ran: Evidence) -> str:
    if ran.result == evidence.TIMED_OUT:
        return f"it needs more time: `gates: {{{name}: {{timeout: 10m}}}}`"
    return (
        f"its program was not found or not executable. Install it where checks see it (checkout.prepare or"
        f" checkout.provide), or {_line(name)}\n{gate.end_of_output(ran)}"
    )


def _line(name: str) -> str:
    return f"name another command: `gates: {{{name}: {{run: COMMAND}}}}`"


def _listed(found: list[Finding] | tuple[Finding, ...]) -> str:
    return gate.lines([Violation(each.path, each.line, each.words) for each in found])


def _moved(inputs: Inputs) -> Mapping[str, str]:
    """Return the former path of each file that moved unchanged."""
    former = {change.old.oid: change.path for change in inputs.changes if change.new is None and change.old is not None}
    created = ((change.path, change.new) for change in inputs.changes if change.old is None and change.new is not None)
    return {path: former[entry.oid] for path, entry in created if entry.oid in former}
