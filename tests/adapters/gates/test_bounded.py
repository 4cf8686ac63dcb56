"""A built-in gate has a limited time, and an error in it is a value (R-GATE-1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence, gate
from idumb.domain.proof.gate import Inputs, Judged
from idumb.gates import registry
from idumb.gates.registry import StepGate, StepGates
from tests.support import changes
from tests.support.cases import every

NAMES = ["a.py", "b.py", "c.py"]


def given() -> Inputs:
    """Each file has bytes of its own, so that what is read tells which file it is."""
    texts = {path: f"x = {path!r}\n" for path in NAMES}
    return replace(changes.inputs(dict.fromkeys(NAMES, "x = 1\n"), texts), seconds=lambda _: 60)


def judged_by(
    monkeypatch: pytest.MonkeyPatch, judge: Callable[[Inputs], Judged], inputs: Inputs, now: Callable[[], float]
) -> evidence.Evidence:
    monkeypatch.setattr(StepGate, "load", lambda _: judge)
    monkeypatch.setattr(registry, "GATES", (StepGate("syntax", lambda _: True, "syntax"),))
    ((name, result),) = StepGates(now).judge(inputs)
    assert name == "syntax"
    return gate.evidence_of(name, result, 1)[0]


def test_a_gate_without_time_has_not_passed_and_names_the_next_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read after the deadline, and nothing goes on running."""
    read: list[str] = []
    passed_time = [0.0]

    def judge(inputs: Inputs) -> Judged:
        for change in inputs.changes:
            inputs.read(change.new, 100)
            read.append(change.path)
            passed_time[0] += 40
        return Judged()

    proof = judged_by(monkeypatch, judge, given(), lambda: passed_time[0])
    assert read == ["a.py", "b.py"]
    assert (proof.result, proof.subject) == (evidence.TIMED_OUT, "gate syntax")
    assert proof.output == "c.py was not judged within 60s. Split the task, or set `timeout` of the gate"


def test_an_error_in_a_gate_is_evidence_that_names_gate_file_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(inputs: Inputs) -> Judged:
        inputs.read(inputs.changes[1].new, 100)
        raise KeyError("line")

    proof = judged_by(monkeypatch, judge, given(), lambda: 0.0)
    assert (proof.result, proof.subject) == (evidence.ERRORED, "gate syntax")
    assert "an error in the gate, not in the work, when it judged b.py: KeyError: 'line' (gates/test_bounded.py:" in (
        proof.output
    )
    assert "Report this line" in proof.output
    assert "`gates: {syntax: {level: 0}}`" in proof.output


def test_what_is_refused_outside_the_gate_is_no_error_of_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> bytes:
        raise Refusal("git.lost", "the object is lost")

    def judge(inputs: Inputs) -> Judged:
        inputs.read(inputs.changes[0].new, 100)
        return Judged()

    with pytest.raises(Refusal):
        judged_by(monkeypatch, judge, replace(given(), read=lost), lambda: 0.0)


def test_a_module_of_thousands_of_assigned_names_is_unknown_and_not_waited_for() -> None:
    text = "".join(f"x{number} = 1\n" for number in range(6000))
    task = replace(changes.inputs({}, {}).task, change="preserving")
    proof = changes.judge(changes.inputs({"a.py": "\n"}, {"a.py": text}, task=task))["change-class"]
    assert (proof.result, "a.py: idumb cannot read the file" in proof.output) == (evidence.UNPROVEN, True)


@every("text", ["if a:\n    f()\n" + "elif a:\n    f()\n" * 3000, "x = " + "-" * 3000 + "1\n", "f" + "()" * 3000])
def test_source_that_is_nested_deeply_is_no_error_of_a_gate(text: str) -> None:
    """S11: gates read untrusted text."""
    test = f"def test_a():\n    assert 1\n{text}"
    task = Task("T1-01", "A task", change="extending")
    before, gates = {"a.py": "\n", "test_a.py": "\n"}, ("specification", "design", "syntax")
    inputs = changes.inputs(before, {"a.py": text, "test_a.py": test}, asked=gates, task=task)
    assert {proof.result for proof in changes.judge(inputs).values()} <= {evidence.PASSED, evidence.UNPROVEN}
