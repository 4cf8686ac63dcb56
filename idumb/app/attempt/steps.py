"""What steps prove by the bytes that they left, and what the step of a workflow gives out.

Outputs, the value of a condition and the option that a person chose are read from the frozen tree, from what a script
printed, or from the JSON answer of an agent, and checked against their declared types. A wrong one fails the attempt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from idumb.app.attempt.measure import bytes_of
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.domain import outcome, replies
from idumb.domain.agent import StepRecord
from idumb.domain.contract import Contract
from idumb.domain.plans import expression, step_effects, workflow
from idumb.domain.plans.expression import Reference
from idumb.domain.plans.plan import STEPS, Plan, Step
from idumb.domain.plans.workflow import Flow, Value
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.ledger import LINK, SUBMODULE
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import RunState

_EXECUTABLE = 0o100755
_MOST_OUTPUT = 4000


def evidence_of(context: RunContext, attempt: Attempt) -> Iterator[Evidence]:
    """Return evidence for each criterion that the steps prove."""
    criteria = [c for c in attempt.task.acceptance if c.proof == STEPS]
    records = {record.index: record for record in (attempt.result.steps if attempt.result else ())}
    for criterion in criteria:
        for step in attempt.task.steps:
            record = records.get(step.index)
            result, words = _step_result(context, attempt, step, record)
            yield Evidence(
                criterion.id,
                f"{criterion.text}{': ' if words else ''}{words}",
                result,
                command=step.command if step.tool == "run" else None,
                output=record.response[:_MOST_OUTPUT] if record else "",
                tree=attempt.candidate,
                seconds=record.seconds if record else 0.0,
            )


def _step_result(context: RunContext, attempt: Attempt, step: Step, record: StepRecord | None) -> tuple[str, str]:
    if record is None:
        return evidence.FAILED, "the step was not made"
    if not record.ok and step.continue_on_error:
        return evidence.TOLERATED, f"it failed ({record.words or record.response}), and the plan says to continue"
    if not record.ok:
        return evidence.FAILED, record.words or record.response
    wrong = _wrong_bytes(context, attempt, step)
    return (evidence.FAILED, wrong) if wrong else (evidence.PASSED, "")


def _wrong_bytes(context: RunContext, attempt: Attempt, step: Step) -> str:
    """Return which of the step's files differs from what it must leave; "" if none does."""

    def before(path: str) -> bytes | None:
        entry = context.work.entry(context.workspace.checked_out(attempt.base, [path]), path)
        return None if entry is None else context.work.read(entry.oid)

    for path, expected in step_effects.expected(step, before).items():
        entry = context.work.entry(attempt.candidate, path)
        if (entry is None) != (expected.data is None):
            return f"{path} is {'missing' if entry is None else 'still there'}"
        if entry is None or expected.data is None:
            continue
        same = context.work.read(entry.oid) == expected.data
        if not same and entry.oid != context.workspace.cleaned(path, expected.data):
            return f"{path} does not have the bytes that the step must leave"
        if expected.executable is not None and (entry.mode == _EXECUTABLE) != expected.executable:
            return f"{path} does not have the mode that the step sets"
    return ""


# The outputs of a workflow's step

_CHOICE = "choice"
_MOST_BYTES = 1024 * 1024
TOLERATED = "tolerated"
"""The outcome of a step that failed and has `continue_on_error`."""


def outputs_of(
    context: RunContext, attempt: Attempt, flow: Flow, proofs: list[Evidence]
) -> tuple[Attempt, list[Evidence]]:
    """Return the attempt with the outputs of its step, and the evidence about them."""
    criterion = next((c for c in attempt.task.acceptance if c.proof == STEPS), None)
    if flow.condition is not None and criterion is not None:
        value = bool(expression.evaluate(flow.condition, lambda name: value_of(context, attempt.plan, name)))
        words = f"`{flow.text}` is {workflow.shown(value)}"
        proof = Evidence(criterion.id, words, evidence.PASSED, tree=attempt.candidate)
        return replace(attempt, outputs={workflow.RESULT: value}), [proof]
    if attempt.task.options:
        chosen = next((answer.choice for answer in attempt.answers), None)  # none of a person who took the task
        return replace(attempt, outputs={} if chosen is None else {_CHOICE: chosen}), []
    if any(proof.result == evidence.TOLERATED for proof in proofs):
        return replace(attempt, outputs={workflow.OUTCOME: TOLERATED}), []
    if criterion is None or not flow.outputs:
        return attempt, []
    if attempt.awaits_verdict:  # its answer was judged when it came
        return replace(attempt, outputs=context.state.tasks[attempt.task.id].outputs), [
            Evidence(criterion.id, criterion.text, evidence.PASSED, tree=attempt.candidate)
        ]
    return _declared(context, attempt, flow, criterion.id)


class _WrongError(ValueError):
    """Why a step gave no value, in words."""


def _declared(context: RunContext, attempt: Attempt, flow: Flow, criterion: str) -> tuple[Attempt, list[Evidence]]:
    outputs: dict[str, Any] = {}
    proofs = []
    for value in flow.outputs:
        try:
            outputs[value.name] = _typed(value, _given(context, attempt, flow, value))
            result, words, output = evidence.PASSED, f"is {workflow.shown(outputs[value.name])[:80]}", ""
        except _WrongError as wrong:
            result, words = evidence.FAILED, f"{wrong} ({attempt.plan.path}:{value.line})"
            output = f"output {value.name} {words}"
        proofs.append(
            Evidence(criterion, f"output {value.name} {words}", result, output=output, tree=attempt.candidate)
        )
    return replace(attempt, outputs=outputs), proofs


class _Raw(str):
    """A text that is not parsed yet, such as the content of a file."""

    __slots__ = ()


def _given(context: RunContext, attempt: Attempt, flow: Flow, value: Value) -> Any:
    """Return the value of an output as the step gave it: in a file, as all that a script printed, or in an answer."""
    if value.file:
        return _in_file(context, attempt, value)
    text = attempt.result.reply if attempt.result is not None else ""
    printed = [other.name for other in flow.outputs if not other.file]
    if flow.kind == workflow.AGENT:
        answer = replies.answer(text, printed[0])
        if isinstance(answer, str):
            raise _WrongError(f"is missing: {answer}")
    elif flow.kind == workflow.SCRIPT and len(printed) == 1:
        return _Raw(text)
    else:
        answer = _object(text, "what the script printed")
    if value.name not in answer:
        raise _WrongError("is missing in the answer")
    return answer[value.name]


def _object(text: str, subject: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise _WrongError(f"cannot be read: {subject} is not JSON ({wrong})") from None
    if not isinstance(value, dict):
        raise _WrongError(f"cannot be read: {subject} is not a JSON object")
    return value


def _in_file(context: RunContext, attempt: Attempt, value: Value) -> Any:
    entry = context.work.entry(attempt.candidate, value.file)
    if entry is None or entry.mode in (LINK, SUBMODULE):
        raise _WrongError(f"is missing: there is no file {value.file}")
    data = bytes_of(context.work, entry, _MOST_BYTES)
    if data is None:
        raise _WrongError(f"cannot be read: {value.file} is larger than {_MOST_BYTES} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _WrongError(f"cannot be read: {value.file} is not UTF-8") from None
    if not value.key:
        return _Raw(text)
    content = _object(text, value.file)
    if value.key not in content:
        raise _WrongError(f"is missing: {value.file} has no key `{value.key}`")
    return content[value.key]


def _typed(value: Value, found: Any) -> Any:
    if not isinstance(found, _Raw):
        typed = workflow.from_json(value, found)
    elif value.type == expression.LIST:
        typed = workflow.from_json(value, [line for line in _without_end(found).split("\n") if line])
    elif value.type == expression.TEXT:
        typed = workflow.from_json(value, _without_end(found))
    else:
        typed = workflow.from_text(value, found.strip())
    if typed is None:
        raise _WrongError(f"is not {value.accepted}: {workflow.shown(found)[:80].strip()!r}")
    return typed


def _without_end(text: str) -> str:
    return str(text).removesuffix("\n").removesuffix("\r")


def value_of(context: RunContext, plan: Plan, reference: Reference) -> Any:
    """Return the value of a reference; None for the output of a step that did not give it."""
    if reference[0] == "inputs":
        return plan.workflow.values.get(reference[1]) if plan.workflow is not None else None
    task = next(task.id for task in plan.tasks if task.flow is not None and task.flow.step == reference[1])
    return _output(context.state, task, reference[2])


def _output(state: RunState, task: str, name: str) -> Any:
    task_state = state.tasks[task]
    if name == workflow.OUTCOME:
        return task_state.outputs.get(workflow.OUTCOME, task_state.status)
    return task_state.outputs.get(name)


def variables(context: RunContext, flow: Flow) -> dict[str, str]:
    """Return the environment variables of a step: the inputs of the run, and the outputs that it takes."""
    values = dict(context.contract.variables)
    for name, take in flow.takes.items():
        value = _output(context.state, take.step, take.output)
        values[name] = take.default if value is None and take.default is not None else workflow.shown(value)
    return values


def described(context: RunContext, flow: Flow) -> str:
    """Return the variables, and the answer that is expected, for the prompt of an agent."""
    lines = [f"- {name} = {json.dumps(value)}" for name, value in variables(context, flow).items()]
    asked = answered(flow)
    if asked:
        form = json.dumps(workflow.schema(asked))
        lines.append(f"\nEnd your answer with one JSON object, on lines of its own, of this JSON Schema:\n\n{form}")
    return "\n".join(lines)


def answered(flow: Flow) -> tuple[Value, ...]:
    """Return the outputs that an agent gives in its answer."""
    return tuple(v for v in flow.outputs if not v.file) if flow.kind == workflow.AGENT else ()


def omissions(context: RunContext, attempt: Attempt) -> list[NewEvent]:
    """Return the events of the tasks that a decided condition omits."""
    task, flow = attempt.task, attempt.task.flow
    if flow is None or flow.condition is None:
        return []
    outputs = attempt.outputs or context.state.tasks[task.id].outputs
    chosen = outputs.get(workflow.RESULT) is True
    reason = f"the condition {flow.step} is {workflow.shown(chosen)}: {flow.text}"
    return omitting(context, flow.otherwise if chosen else flow.then, task.id, reason)


def omitting(context: RunContext, tasks: tuple[str, ...], by: str, reason: str) -> list[NewEvent]:
    """Return the events that omit tasks, and those that follow from that."""
    over = [id for id, state in context.state.tasks.items() if state.status in outcome.ENDED]
    omitted = workflow.omitted_with(flows(context.contract), tasks, over)
    return [
        context.journal.event(
            "task.omitted", id, by=by, reason=reason if id in tasks else f"it depends on an omitted step; {reason}"
        )
        for id in omitted
    ]


def flows(contract: Contract) -> Mapping[str, Flow]:
    """Return what workflows add to each task, in the order of execution."""
    tasks = (contract.tasks[id] for id in contract.order)
    return {task.id: task.flow for task in tasks if task.flow is not None}
