"""What the step of a workflow gives out: its outputs, the value of a condition, the option that a person chose.

Outputs are read from the frozen tree, from what a script printed, or from the JSON answer of an agent, and checked
against their declared types. A wrong one fails the attempt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from idumb.app.attempt.measure import bytes_of
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.domain import outcome, replies
from idumb.domain.contract import Contract
from idumb.domain.plans import expression, workflow
from idumb.domain.plans.expression import Reference
from idumb.domain.plans.plan import STEPS, Plan, Task
from idumb.domain.plans.workflow import Flow, Value
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.ledger import LINK, SUBMODULE
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import RunState

_CHOICE = "choice"
_MOST_BYTES = 1024 * 1024
TOLERATED = "tolerated"
"""The outcome of a step that failed and has `continue_on_error`."""


def of_attempt(
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
        chosen = next((answer.choice for answer in attempt.answers), None)
        return replace(attempt, outputs={} if chosen is None else {_CHOICE: chosen}), []
    if any(proof.result == evidence.TOLERATED for proof in proofs):
        return replace(attempt, outputs={workflow.OUTCOME: TOLERATED}), []
    if criterion is None or not flow.outputs:
        return attempt, []
    if attempt.awaits_verdict:  # its answer was judged when it came
        return replace(attempt, outputs=context.journal.state.tasks[attempt.task.id].outputs), [
            Evidence(criterion.id, criterion.text, evidence.PASSED, tree=attempt.candidate)
        ]
    return _declared(context, attempt, flow, criterion.id)


def _declared(context: RunContext, attempt: Attempt, flow: Flow, criterion: str) -> tuple[Attempt, list[Evidence]]:
    outputs: dict[str, Any] = {}
    proofs = []
    for value, found in _found(context, attempt, flow).items():
        typed, problem = found if found[1] else _typed(value, found[0])
        words = f"output {value.name} {problem or 'is ' + workflow.shown(typed)[:80]}"
        place = f" ({attempt.plan.path}:{value.line})" if problem else ""
        result = evidence.FAILED if problem else evidence.PASSED
        output = f"{words}{place}" if problem else ""
        proofs.append(Evidence(criterion, f"{words}{place}", result, output=output, tree=attempt.candidate))
        if not problem:
            outputs[value.name] = typed
    return replace(attempt, outputs=outputs), proofs


class _Raw(str):
    """A text that is not parsed yet, such as the content of a file."""

    __slots__ = ()


_Found = tuple[Any, str]
"""The value, and why there is none; "" if there is one."""


def _found(context: RunContext, attempt: Attempt, flow: Flow) -> dict[Value, _Found]:
    """Return the value of each output, with the reason if there is none."""
    printed = [value for value in flow.outputs if not value.file]
    found = {value: _in_file(context, attempt, value) for value in flow.outputs if value.file}
    text = attempt.result.reply if attempt.result is not None else ""
    if flow.kind == workflow.SCRIPT and len(printed) == 1:
        found[printed[0]] = _Raw(text), ""
    elif printed:
        answer = _answer(text, printed[0].name, flow.kind)
        for value in printed:
            missing = answer if isinstance(answer, str) else "" if value.name in answer else "is missing in the answer"
            found[value] = (None, missing) if missing else (answer[value.name], "")  # type: ignore[index]
    return {value: found[value] for value in flow.outputs}


def _answer(text: str, key: str, kind: str) -> dict[str, Any] | str:
    """Return the JSON object of an answer, or the reason why there is none."""
    if kind == workflow.AGENT:
        answer = replies.answer(text, key)
        return f"is missing: {answer}" if isinstance(answer, str) else answer
    return _object(text, "what the script printed")


def _object(text: str, subject: str) -> dict[str, Any] | str:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as wrong:
        return f"cannot be read: {subject} is not JSON (line {wrong.lineno}: {wrong.msg})"
    except (ValueError, RecursionError):
        return f"cannot be read: {subject} is not JSON"
    return value if isinstance(value, dict) else f"cannot be read: {subject} is not a JSON object"


def _in_file(context: RunContext, attempt: Attempt, value: Value) -> _Found:
    entry = context.work.entry(attempt.candidate, value.file)
    if entry is None or entry.mode in (LINK, SUBMODULE):
        return None, f"is missing: there is no file {value.file}"
    data = bytes_of(context.work, entry, _MOST_BYTES)
    if data is None:
        return None, f"cannot be read: {value.file} is larger than {_MOST_BYTES} bytes"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None, f"cannot be read: {value.file} is not UTF-8"
    if not value.key:
        return _Raw(text), ""
    content = _object(text, value.file)
    if isinstance(content, str):
        return None, content
    if value.key not in content:
        return None, f"is missing: {value.file} has no key `{value.key}`"
    return content[value.key], ""


def _typed(value: Value, found: Any) -> _Found:
    if isinstance(found, _Raw):
        text = str(found).removesuffix("\n").removesuffix("\r")
        raw = text if value.type == expression.TEXT else text.strip()
        if value.type == expression.LIST:
            typed = workflow.from_json(value, [line for line in text.split("\n") if line])
        else:
            typed = workflow.from_json(value, raw) if value.type == expression.TEXT else workflow.from_text(value, raw)
    else:
        typed = workflow.from_json(value, found)
    if typed is None:
        return None, f"is not {value.accepted}: {workflow.shown(found)[:80].strip()!r}"
    return typed, ""


def value_of(context: RunContext, plan: Plan, reference: Reference) -> Any:
    """Return the value of a reference; None for the output of a step that did not give it."""
    if reference[0] == "inputs":
        return plan.workflow.values.get(reference[1]) if plan.workflow is not None else None
    task = next(task.id for task in plan.tasks if task.flow is not None and task.flow.step == reference[1])
    return _output(context.journal.state, task, reference[2])


def _output(state: RunState, task: str, name: str) -> Any:
    task_state = state.tasks[task]
    if name == workflow.OUTCOME:
        return task_state.outputs.get(workflow.OUTCOME, task_state.status)
    return task_state.outputs.get(name)


def variables(context: RunContext, attempt: Attempt) -> dict[str, str]:
    """Return the environment variables of a step: the inputs of the run, and the outputs that it takes."""
    flow, values = attempt.task.flow, dict(context.contract.variables)
    for name, take in flow.takes.items() if flow is not None else ():
        value = _output(context.journal.state, take.step, take.output)
        values[name] = take.default if value is None and take.default is not None else workflow.shown(value)
    return values


def described(context: RunContext, attempt: Attempt) -> str:
    """Return the variables, and the answer that is expected, for the prompt of an agent."""
    flow = attempt.task.flow
    lines = [f"- {name} = {json.dumps(value)}" for name, value in variables(context, attempt).items()]
    asked = answered(flow) if flow is not None else ()
    if asked:
        form = json.dumps(workflow.schema(asked))
        lines.append(f"\nEnd your answer with one JSON object, on lines of its own, of this JSON Schema:\n\n{form}")
    return "\n".join(lines)


def answered(flow: Flow) -> tuple[Value, ...]:
    """Return the outputs that an agent gives in its answer."""
    return tuple(v for v in flow.outputs if not v.file) if flow.kind == workflow.AGENT else ()


def omissions(context: RunContext, attempt: Attempt, task: Task) -> list[NewEvent]:
    """Return the events of the tasks that a decided condition omits."""
    flow = task.flow
    if flow is None or flow.condition is None:
        return []
    outputs = attempt.outputs or context.journal.state.tasks[task.id].outputs
    chosen = outputs.get(workflow.RESULT) is True
    reason = f"the condition {flow.step} is {workflow.shown(chosen)}: {flow.text}"
    return omitting(context, flow.otherwise if chosen else flow.then, task.id, reason)


def omitting(context: RunContext, tasks: tuple[str, ...], by: str, reason: str) -> list[NewEvent]:
    """Return the events that omit tasks, and those that follow from that."""
    over = [id for id, state in context.journal.state.tasks.items() if state.status in outcome.ENDED]
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
