"""Size limits against what changed, and the table of gates (R-GATE-1, R-GATE-3)."""

from __future__ import annotations

from idumb.domain.plans.plan import Limits, Plan, Task
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.gate import Inputs
from idumb.domain.proof.ledger import CREATED, MODIFIED, Change
from idumb.gates import registry, size
from tests.support.cases import every

CHANGES = (Change("src/a.py", CREATED, None, None), Change("docs/b.md", MODIFIED, None, None))
COUNTS = {"src/a.py": (10, 0), "docs/b.md": (3, 2)}


@every(
    "declared, results, words",
    [
        (Limits(files=2), [evidence.PASSED], "2 files changed"),
        (Limits(files=1), [evidence.FAILED], "2 files changed"),
        (Limits(files=0), [evidence.FAILED], "2 files changed"),
        (Limits(lines=15), [evidence.PASSED], "15 lines changed"),
        (Limits(lines=14), [evidence.FAILED], "15 lines changed"),
        (Limits(paths=("src/**", "docs/*.md")), [evidence.PASSED], "all 2 changed paths are allowed"),
        (Limits(paths=("src/**",)), [evidence.FAILED], "outside: docs/b.md"),
        (Limits(2, 3, ("src/**",)), [evidence.PASSED, evidence.FAILED, evidence.FAILED], ""),
        (Limits(), [], ""),
    ],
)
def test_changes_are_compared_with_each_limit(declared: Limits, results: list[str], words: str) -> None:
    """R-PLAN-3, R-RUN-3."""
    violations = size.check(declared, CHANGES, COUNTS)
    assert [e.result for e in violations] == results
    assert words in "".join(e.output for e in violations)


def test_binary_files_count_as_files_and_not_as_lines() -> None:
    assert size.changed_lines(CHANGES, {"src/a.py": (None, None)}) == 0


def test_many_undeclared_files_are_summarized() -> None:
    many = [Change(f"x/{i}", CREATED, None, None) for i in range(9)]
    (violation,) = size.check(Limits(paths=("src/**",)), many, {})
    assert violation.output == "outside: x/0, x/1, x/2, x/3, x/4 and 4 more"


def judged(task: Task, plan: Plan) -> list[str]:
    inputs = Inputs(task, plan, CHANGES, lambda *_: None, lambda: COUNTS)
    return [proof.result for name, result in registry.StepGates().judge(inputs) for proof in result.proofs if name]


def test_the_task_s_limits_override_the_plan_s() -> None:
    plan = Plan("p", "", "1", "01", "", "", limits=Limits(files=1))
    assert judged(Task("T1-01", ""), plan) == [evidence.FAILED]
    assert judged(Task("T1-01", "", limits=Limits(files=2)), plan) == [evidence.PASSED]
    assert judged(Task("T1-01", ""), Plan("p", "", "1", "01", "", "")) == []


def test_the_gates_run_in_the_order_of_the_table() -> None:
    of_table = [row.name for row in gate_table.ROWS]
    places = [of_table.index(gate.name) for gate in registry.GATES]
    assert places == sorted(places)
    assert all(gate_table.ROWS[place].stage in (gate_table.STEP, gate_table.POST) for place in places)
    assert all(callable(gate.load()) for gate in registry.GATES)
