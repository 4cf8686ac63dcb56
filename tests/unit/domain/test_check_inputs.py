"""Which files a check reads, as far as its text shows."""

from __future__ import annotations

import pytest

from idumb.domain.plans.plan import Condition
from idumb.domain.proof import check_inputs


@pytest.mark.parametrize(
    ("command", "inputs"),
    [
        ("test -s a.txt", {"a.txt"}),
        ("[ -f src/a.c ] && ! grep -q TODO ./src/a.c", {"src/a.c", "TODO"}),
        ("cat a.txt | grep -qx one; true", {"a.txt", "one"}),
        ("grep -rq main src", {"main", "src"}),
        ("ls docs", {"docs"}),
    ],
)
def test_known_inputs(command: str, inputs: set[str]) -> None:
    assert check_inputs.of_command(command) == frozenset(inputs)


def test_unknown_inputs() -> None:
    cases: list[str] = [
        "pytest -q",
        "sh app.sh",
        "test $(wc -l < a.txt) = 1",
        "cat *.txt",
        "cat ~/notes",
        "test -s /etc/passwd",
        "cat ../other",
        "grep -rq main",
        "grep -f patterns a.txt",
        "grep --file=patterns a.txt",
        "test a -nt b",
        "cat a.txt > b.txt",
        "cd src && test -s a.c",
        "A=b test -s a",
        "ls",
        "test -d .",
        "if true; then make; fi",
    ]
    assert not [command for command in cases if check_inputs.of_command(command) is not None]


def test_inputs_of_conditions() -> None:
    cases: list[tuple[Condition, set[str] | None]] = [
        (Condition("file-exists", "a/b"), {"a/b"}),
        (Condition("file-contains", "a", text="x"), {"a"}),
        (Condition("symbol", "name", path="m.py"), {"m.py"}),
        (Condition("env", "HOME"), set()),
        (Condition("command", "test -s a"), {"a"}),
        (Condition("command", "make"), None),
    ]
    assert not [
        (condition, inputs)
        for condition, inputs in cases
        if check_inputs.of_condition(condition) != (None if inputs is None else frozenset(inputs))
    ]
