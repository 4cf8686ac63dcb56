"""What a validator's answer proves, and when a person is asked: it proves only what it shows (R-RUN-3, R-GATE-3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from idumb.domain import agent, outcome
from idumb.domain.agent import AgentRequest, AgentResult
from idumb.domain.plans.plan import OPINION, Criterion
from idumb.domain.settings import Binding, GateSettings, Settings
from tests.support.engine_run import EngineRun, task

OPINIONS = tuple(
    Criterion(f"AC-{number}", f"it is {word}", OPINION) for number, word in enumerate(("kind", "short"), 1)
)


def shows(*evidence: dict[str, Any], verdict: str = "PASS") -> str:
    return json.dumps({"verdict": verdict, "evidence": list(evidence), "findings": []})


def at(criterion: str, file: str = "A", line: int = 1) -> dict[str, Any]:
    return {"criterion": criterion, "file": file, "line": line}


def judged(
    *verdicts: str,
    criteria: Sequence[Criterion] = OPINIONS,
    checks: Sequence[str] = (),
    level: int | None = None,
    **fields: Any,
) -> EngineRun:
    """A task with a file of two lines, and a validator that gives these answers, call by call."""
    replies = list(verdicts)

    def work(request: AgentRequest, files: dict[str, bytes]) -> AgentResult:
        if request.role == agent.VALIDATOR:
            reply = replies.pop(0) if replies else ""
            return AgentResult(outcome.FAILED if '"FAIL"' in reply else outcome.COMPLETED, reply=reply)
        files["A"] = b"one\ntwo\n"
        return AgentResult(outcome.COMPLETED)

    bindings = {name: Binding(name, "scripted") for name in ("builder", "judge")}
    gates = {} if level is None else {agent.VALIDATOR: GateSettings(level=level)}
    settings = Settings(builder="builder", validator="judge", bindings=bindings, gates=gates)
    made = task("A", acceptance=tuple(criteria), verify=tuple(checks))
    return EngineRun(made, work=work, settings=settings, **fields)


def asked(run: EngineRun) -> dict[str, Any]:
    """Run until the task waits for its only question, which uses up no attempt."""
    assert run.run().kind == "waiting"
    assert run.state.tasks["A"].progress.attempts == 0
    (question,) = run.state.decisions.values()
    return dict(question)


def result(run: EngineRun) -> dict[str, Any]:
    found = [event.payload for event in run.events("evidence.recorded")]
    return dict([one for one in found if one["subject"] == "validator judge"][-1])


def calls(run: EngineRun) -> list[AgentRequest]:
    return [request for request in run.builder.requests if request.role == agent.VALIDATOR]


def test_a_pass_with_evidence_for_every_criterion_completes_the_task() -> None:
    """R-RUN-3: the command that it shows is never run."""
    command = {"criterion": "it is kind", "command": "touch ran", "output": "8 A"}
    run = judged(shows(command, at("ac-2: it is short", "./A", 2)))
    assert run.run().kind == "done"
    assert (result(run)["result"], len(result(run)["shown"])) == ("passed", 2)
    assert run.checks.ran == []


def test_rejecting_a_pass_without_evidence_fails_the_attempt() -> None:
    """R-RUN-5."""
    run = judged()
    question = asked(run)
    assert (question["kind"], list(question["evidence"])[:1]) == ("judge", ["PASS without evidence"])
    run.answer("no", "too curt").run(max_attempts=1)
    assert run.status() == {"A": "failed"}
    assert "too curt" in run.state.tasks["A"].reason


INVALID = {
    shows(at("AC-1", "A", 3)): "it cites A:3, which the judged files do not have",
    shows(at("AC-1", "../judge")): "it cites ../judge:1, which the judged files do not have",
    json.dumps({"verdict": "PASS", "evidence": "all of it"}): "its evidence is no list",
}


@pytest.mark.parametrize("reply", INVALID)
def test_a_pass_with_invalid_evidence_is_requested_again_and_then_a_person_is_asked(reply: str) -> None:
    """Whatever else proves the task; the second call gets the problem of the first answer."""
    run, why = judged(reply, reply, criteria=(), checks=("test -f A",)), INVALID[reply]
    question = asked(run)
    assert question["why"] == "The validator judge gave an answer that cannot be used."
    assert why in question["evidence"][0]
    assert result(run)["result"] == "unproven"
    (retried,) = run.events("call.retried")
    assert (retried.payload["role"], retried.payload["failure"]) == ("validator", "malformed")
    first, second = (request.feedback for request in calls(run))
    assert (why in first, why in second) == (False, True)


def test_the_second_answer_of_a_validator_counts() -> None:
    run = judged(shows(at("AC-1", "nothere", 99)), shows(at("AC-1"), at("AC-2")))
    assert run.run().kind == "done"
    assert (len(calls(run)), result(run)["result"]) == (2, "passed")


def test_a_failing_verdict_needs_no_evidence() -> None:
    """Evidence in a FAIL proves nothing either way."""
    run = judged(shows(at("AC-1", "nothere", 99), verdict="FAIL"))
    run.run(max_attempts=1)
    assert (run.status(), len(calls(run))) == ({"A": "failed"}, 1)
    assert "validator judge failed" in run.state.tasks["A"].reason


def test_a_validator_of_level_0_asks_no_person() -> None:
    """R-GATE-6."""
    bad = shows(at("AC-1", "nothere", 99))
    assert judged(bad, bad, criteria=(), checks=("test -f A",), level=0).run().kind == "done"


def test_evidence_refers_to_files_of_the_judged_clone() -> None:
    """R-GIT-5; and what waits there for a person is delivered by their yes."""
    run = judged(shows(at("AC-1")))
    question = asked(run)
    assert question["why"] == "The validator judge shows nothing for AC-2, and nothing else proves it."
    assert "A" not in run.repository.files
    assert run.answer("yes").run().kind == "done"
    assert run.repository.files["A"] == b"one\ntwo\n"
