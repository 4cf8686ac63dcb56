"""Steps are proven by the bytes of the frozen tree, never by what they say of themselves (R-PLAN-7)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from idumb.app.attempt import step_evidence
from idumb.domain.agent import StepRecord
from idumb.domain.plans.plan import STEPS, Criterion, Step, Task
from idumb.domain.proof import evidence
from tests.support.cases import every

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


def judged(step: Step, frozen: tuple[int, bytes] | None, *, ok: bool = True) -> list[tuple[str, str]]:
    task = Task("T1-01", "Steps", acceptance=(Criterion("AC-1", "made", STEPS),), steps=(step,))
    record = StepRecord(0, step.tool, step.intent, step.arguments, ok=ok, response="no room")
    attempt = SimpleNamespace(task=task, result=SimpleNamespace(steps=(record,)), base=BEFORE, candidate=AFTER)
    workspace = SimpleNamespace(raw=lambda tree, _: tree, cleaned=lambda *_: "")
    context = SimpleNamespace(work=Trees(frozen), workspace=workspace)
    return [(e.result, e.text) for e in step_evidence.of_attempt(cast("Any", context), cast("Any", attempt))]


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


def test_correct_files_do_not_save_a_failed_step() -> None:
    assert judged(WRITE, (PROGRAM, b"x\n"), ok=False) == [(evidence.FAILED, "made: no room")]
