"""The gate `test-intent`: a changed or new test asserts something. Whether it fails before the work, a check shows.

idumb reads the tests of Python; others are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from idumb.domain import wording
from idumb.domain.proof.gate import Before, Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change, Entry
from idumb.gates.languages import python_tests
from idumb.gates.languages.python_tests import ReadTest

Tests = Mapping[str, ReadTest]


def judge(inputs: Inputs) -> Judged | None:
    """Return the tests that assert nothing any more; None if no changed file has tests that idumb can read."""
    moved = {change.old.oid for change in inputs.changes if change.old is not None}
    wrong, files = [], []
    elsewhere = Before(inputs, lambda change: _tests(inputs, change, change.old) or {})
    for change in inputs.changes:
        if change.new is None or change.new.oid in moved:
            continue
        after = _tests(inputs, change, change.new)
        if after:
            files.append(change.path)
            wrong += list(_silent(change, _tests(inputs, change, change.old), after, elsewhere))
    return Judged(wrong, f"changed tests assert: {wording.listed(files)}") if files else None


def _tests(inputs: Inputs, change: Change, entry: Entry | None) -> Tests | None:
    """Return the tests of one side by name; none for an absent file, None if they cannot be read."""
    name = change.path.rpartition("/")[2]
    is_python = name.endswith("_test.py") or name == "tests.py" or (name.startswith("test_") and name.endswith(".py"))
    if entry is None or not is_python:
        return {}
    text = inputs.text(entry)
    if text is None:
        return None
    tests: dict[str, ReadTest] = {}
    for name, test in python_tests.read(text):
        tests[name] = test._replace(asserts=None) if name in tests else test
    return tests


def _silent(change: Change, before: Tests | None, after: Tests, elsewhere: Before[ReadTest]) -> Iterator[Violation]:
    """Yield the tests without assertion that are new, or that asserted something before the task."""
    if before is None:
        return
    for name, test in after.items():
        if test.asserts is not False and not test.skipped:
            continue
        old = before.get(name) or elsewhere.find(name)
        if old is None and not test.skipped:
            yield Violation(change.path, test.line, f"the test {name} is new and asserts nothing")
        elif old is not None and old.asserts and old.text != test.text:
            words = "is skipped now, whatever happens" if test.skipped else "asserts nothing any more"
            yield Violation(change.path, test.line, f"the test {name} {words}")
