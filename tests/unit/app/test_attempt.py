"""One attempt: its record (R-RUN-7), its stages (R-RUN-3), its controls (R-RUN-3), and proofs of steps (R-PLAN-7)."""

from __future__ import annotations

import json
import random
import types
import typing
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import fields, replace

from idumb.app.attempt import pipeline, steps, task_checks
from idumb.app.attempt.pipeline import Stage
from idumb.app.core.attempt import MOST_REPLY, STAGES, Attempt, loaded
from idumb.app.ports import Head, RepositoryState
from idumb.domain import outcome
from idumb.domain.agent import AgentResult, StepRecord
from idumb.domain.plans.plan import STEPS, Condition, Criterion, Option, Plan, Step, Task, TestIntent
from idumb.domain.plans.workflow import Flow
from idumb.domain.proof import evidence
from tests.support.cases import every
from tests.support.seed import commit_seed

TASK = Task("T1-01", "Work")
PLAN = Plan("p", "h", "1", "01", "A plan", "Work is done", tasks=(TASK,))
FIELDS: dict[str, Any] = {"base": "", "feedback": "", "builder": "b", "validator": None, "ref": "r"}
ATTEMPT = Attempt(task=TASK, plan=PLAN, number=1, started=0.0, **FIELDS)


def drawn(kind: Any, chance: random.Random) -> Any:
    """Return a value of a type, with a value for every field of a class, also for those with a default."""
    if kind in (Task, Plan):
        return TASK if kind is Task else PLAN
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind(**{one.name: drawn(one.type, chance) for one in fields(kind)})
    outer, inner = typing.get_origin(kind), typing.get_args(kind)
    if outer is tuple and inner[-1] is ...:
        return tuple(drawn(inner[0], chance) for _ in range(chance.randrange(3)))
    if outer is tuple:
        return tuple(drawn(one, chance) for one in inner)
    if outer in (types.UnionType, typing.Union):
        return drawn(chance.choice(inner), chance)
    if isinstance(outer, type) and issubclass(outer, Mapping):
        return {chance.choice("abc"): drawn(inner[1], chance) for _ in range(chance.randrange(3))}
    return chance.choice(PLAIN[kind])


PLAIN: dict[Any, list[Any]] = {
    str: ["", "a", "é\n", "x y"],
    int: [0, 1, 1 << 40],
    float: [0.0, 0.5, 3.25],
    bool: [True, False],
    types.NoneType: [None],
    **{kind: [None, "a", 1, ["b"], {"c": 0}] for kind in (Any, object)},
    frozenset[tuple[str, str]]: [frozenset()],
}


def test_an_attempt_loads_from_the_log_as_an_equal_value() -> None:
    chance = random.Random(commit_seed())
    for stage in STAGES * 5:
        some = drawn(Attempt, chance)
        before = RepositoryState(some.before.head, some.before.guarded)
        attempt = replace(some, stage=stage, started=3.0, before=before, logged=None)
        again = loaded(json.loads(json.dumps(attempt.saved(10.0))), TASK, PLAN, 110.0)
        # A hundred seconds passed in which nobody worked on it.
        assert replace(again, logged=None) == replace(attempt, started=103.0)


def test_of_a_long_reply_the_end_is_saved() -> None:
    reply = "x" * MOST_REPLY + "the answer"
    result = AgentResult("completed", reply=reply)
    attempt = Attempt(task=TASK, plan=PLAN, number=1, started=0.0, result=result, **FIELDS)
    again = loaded(attempt.saved(0.0), TASK, PLAN, 0.0)
    assert again.result is not None
    assert again.result.reply == reply[-MOST_REPLY:]


def test_git_s_configuration_is_not_recorded() -> None:
    """It may hold credentials."""
    before = RepositoryState(Head(None, None), {}, {"config": frozenset({("url.x", "secret")})})
    attempt = Attempt(task=TASK, plan=PLAN, number=1, started=0.0, before=before, **FIELDS)
    assert "secret" not in json.dumps(attempt.saved(0.0))


# Which commands must fail before the work, and which criteria were proven before it


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
    assert list(task_checks.commands(task).items()) == [
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
        assert task_checks.passed_before(task, results) == named


# Steps are proven by the bytes of the frozen tree, never by what they say of themselves


WRITE = Step(0, "write_file", "make it", {"path": "a.txt", "content": "x\n", "mode": "755"})
DELETE = Step(0, "delete_file", "drop it", {"path": "a.txt"})
FILE, PROGRAM = 0o100644, 0o100755
BEFORE, AFTER = "before", "after"


class Trees:
    """The state of `a.txt` in the tree before and in the frozen one: (mode, bytes), None if absent."""

    def __init__(self, frozen: tuple[int, bytes] | None) -> None:
        self.frozen = frozen

    def entry(self, tree: str, path: str) -> Any:
        assert path == "a.txt"
        frozen = self.frozen if tree == AFTER else None
        return None if frozen is None else SimpleNamespace(mode=frozen[0], oid=frozen[1])

    def read(self, oid: bytes) -> bytes:
        return oid


def judged(
    step: Step, frozen: tuple[int, bytes] | None, *, ok: bool = True, made: bool = True
) -> list[tuple[str, str]]:
    task = Task("T1-01", "Steps", acceptance=(Criterion("AC-1", "made", STEPS),), steps=(step,))
    record = StepRecord(0, step.tool, step.intent, step.arguments, ok=ok, response="no room")
    attempt = SimpleNamespace(task=task, result=SimpleNamespace(steps=(record,) * made), base=BEFORE, candidate=AFTER)
    workspace = SimpleNamespace(raw=lambda tree, _: tree, cleaned=lambda *_: "")
    context = SimpleNamespace(work=Trees(frozen), workspace=workspace)
    return [(e.result, e.text) for e in steps.evidence_of(cast("Any", context), cast("Any", attempt))]


def test_a_step_with_the_expected_file_content_is_proven() -> None:
    assert judged(WRITE, (PROGRAM, b"x\n")) == [(evidence.PASSED, "made")]
    assert judged(DELETE, None) == [(evidence.PASSED, "made")]


@every(
    "step, frozen, why",
    [
        (WRITE, None, "a.txt is missing"),
        (WRITE, (PROGRAM, b"y\n"), "a.txt does not have the bytes that the step must leave"),
        (WRITE, (FILE, b"x\n"), "a.txt does not have the mode that the step sets"),
        (DELETE, (FILE, b"x\n"), "a.txt is still there"),
    ],
)
def test_a_step_s_own_claim_of_success_is_not_trusted(step: Step, frozen: tuple[int, bytes] | None, why: str) -> None:
    assert judged(step, frozen) == [(evidence.FAILED, f"made: {why}")]


def test_correct_files_do_not_save_a_failed_step_or_one_that_was_not_made() -> None:
    assert judged(WRITE, (PROGRAM, b"x\n"), ok=False) == [(evidence.FAILED, "made: no room")]
    assert judged(WRITE, (PROGRAM, b"x\n"), made=False) == [(evidence.FAILED, "made: the step was not made")]


def test_a_decision_of_a_workflow_that_a_person_took_gives_out_no_choice() -> None:
    flow = Flow("a", "human", "All")
    taken = replace(ATTEMPT, task=replace(TASK, kind="decision", options=(Option("x", "one"),), flow=flow))
    assert steps.outputs_of(cast("Any", None), taken, flow, [])[0].outputs == {}


# Its stages


class Calls:
    """A run context that counts guards and checks for an interrupt, and stages that note their names."""

    def __init__(self) -> None:
        self.guards = self.checks = 0
        self.stages: list[str] = []
        self.services = SimpleNamespace(
            owner=SimpleNamespace(guard=self._guard), interrupts=SimpleNamespace(check=self._check, received=15)
        )

    def _guard(self) -> None:
        self.guards += 1

    def _check(self) -> None:
        self.checks += 1

    def stage(self, name: str, **options: Any) -> Stage:
        def run(_: Any, attempt: Attempt) -> Attempt:
            self.stages.append(name)
            return attempt.ended(outcome.FAILED, name) if name == "fails" else attempt

        return Stage(run, **options)


def led(calls: Calls, *stages: Stage) -> Attempt:
    return pipeline.lead(calls, ATTEMPT, stages)  # type: ignore[arg-type]


def test_a_lost_working_tree_counts_before_an_interrupt() -> None:
    """An interrupt is recorded, and only the owner may record anything."""
    calls, order = Calls(), list[str]()
    calls.services.owner.guard = lambda: order.append("guard")
    calls.services.interrupts.check = lambda: order.append("interrupt")
    led(calls, calls.stage("builds"))
    assert order == ["guard", "interrupt"]


def test_a_failed_attempt_skips_later_stages() -> None:
    """Ownership is checked before each stage that runs, an interrupt only without a failure."""
    calls = Calls()
    names = ("builds", "fails", "judges")
    stages = (*map(calls.stage, names), calls.stage("records", also_failed=True))
    assert led(calls, *stages).outcome == outcome.FAILED
    assert calls.stages == ["builds", "fails", "records"]
    assert (calls.guards, calls.checks) == (3, 2)
