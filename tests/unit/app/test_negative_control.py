"""Which commands must fail before the work, and which criteria were proven before it (R-RUN-3)."""

from __future__ import annotations

from idumb.app.attempt import negative_control
from idumb.domain.plans.plan import Condition, Criterion, Task, TestIntent
from tests.support.cases import every

WORK, OLD = Criterion("AC-1", "new", "check", "new"), Criterion("AC-2", "old", "check", "old", keeps=True)
BY_VERIFY = Criterion("AC-3", "verified", "verify")


def test_commands_that_must_depend_on_the_work_have_the_first_subject() -> None:
    task = Task(
        "T1-01",
        "t",
        acceptance=(WORK, OLD, Criterion("AC-4", "seen", "human")),
        verify=("suite", "old", "new"),
        tests=(TestIntent("tested", "fails", "passes"),),
        postconditions=(Condition("command", "after"), Condition("file-exists", "a.txt")),
    )
    assert list(negative_control.commands(task).items()) == [
        ("new", "AC-1"),
        ("suite", "verify 1"),
        ("after", "postcondition 1"),
    ]


@every(
    "criteria, verify, passed, named",
    [
        ((WORK,), (), {"new"}, ["AC-1"]),
        ((WORK,), (), set(), []),
        ((WORK,), ("suite",), {"suite"}, []),
        ((WORK, OLD), (), {"old"}, []),
        ((BY_VERIFY,), ("one", "two"), {"one", "two"}, ["AC-3"]),
        ((BY_VERIFY,), ("one", "two"), {"one"}, []),
        ((BY_VERIFY, WORK), ("one",), {"one"}, ["AC-3"]),
        ((BY_VERIFY, OLD), ("old", "one"), {"one"}, ["AC-3"]),
        ((BY_VERIFY, OLD), ("old",), set(), []),
        ((), ("one",), {"one"}, ["Verify"]),
        ((), (), set(), []),
    ],
)
def test_a_criterion_is_named_if_every_command_that_proves_it_passed_before(
    criteria: tuple[Criterion, ...], verify: tuple[str, ...], passed: set[str], named: list[str]
) -> None:
    task = Task("T1-01", "t", acceptance=criteria, verify=verify)
    commands = ("new", "one", "two", "suite", "old")
    for other in ("failed", "errored", "timed_out", "not run: a signal ended it"):
        results = {command: "passed" if command in passed else other for command in commands}
        assert negative_control.passed_before(task, results) == named
