"""Checks of tool calls: allowed by the policy, with a meaningful intent, and with the same result on every run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from idumb.domain.intake.rule import Case, Hit, is_declaration, says_nothing
from idumb.domain.plans import programs, shell
from idumb.domain.plans.plan import IRREVERSIBLE, Plan, Step, Task

_VARIABLES = frozenset({"RANDOM", "SRANDOM", "EPOCHSECONDS", "EPOCHREALTIME", "SECONDS"})
REPOSITORY = "IDUMB_REPOSITORY"
_CHANCE = "gives a different result every time"
_CALLS = re.compile(
    r"\brandom\.(?:random|randint|choice|choices|shuffle|sample)\(|\bMath\.random\("
    r"|\buuid\.uuid[14]\(|\bsecrets\.token\w*\(?|\b(?:time\.time|Date\.now|datetime\.now|datetime\.utcnow)\("
    r"|\brand\(|\bsystime\("
)
"""Calls of chance and clock in languages that commands embed."""
_DEVICES = re.compile(r"/dev/u?random\b")
_REQUESTS = re.compile(r"\burllib\b|\bhttp\.client\b|\brequests\.\w+\(|\bNet::HTTP\b|\bfetch\(|\bsocket\b")


def not_allowed(case: Case, _: Plan, task: Task) -> Iterator[Hit]:
    """Find tools that the policy does not allow."""
    if (allowed := case.policy.tools) is None:
        return
    words = {"where": " and ".join(path for path, _ in case.policy.sources)}
    accepted = ", ".join(sorted(allowed)) or "no tool"
    yield from (Hit(s.tool, words, line=s.line, accepted=accepted) for s in task.steps if s.tool not in allowed)


def vague_intents(_: Case, __: Plan, task: Task) -> Iterator[Hit]:
    """Find intents that say no more than the tool's name."""
    for step in task.steps:
        if says_nothing(step.intent):
            yield Hit(step.intent, line=step.line)


def not_deterministic(_: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find commands that depend on chance, the clock or the network without a matching assumption."""
    for step in _runs(task):
        for name, why in _variable(step).items():
            if not _assumed(plan, task, name):
                fix = "" if is_declaration(plan) else "Write the value into the plan, or seed the generator."
                yield Hit(name, {"why": why}, line=step.line, fix=fix)


def _variable(step: Step) -> dict[str, str]:
    """Return each name in a command whose result varies, with the reason; an assumption must use this name."""
    script, text = _script(step), step.command
    reasons = {f"${name}": _CHANCE for name in script.variables if name in _VARIABLES}
    for command in script.commands:
        if command.own and (why := programs.why_not_deterministic(command.own)):
            reasons[command.program] = why
    reasons |= {match[0]: _CHANCE for match in _DEVICES.finditer(text)}
    if any(programs.has_trait(part.program, programs.INTERPRETER) or "awk" in part.program for part in script.commands):
        reasons |= {match[0].rstrip("("): "uses the network" for match in _REQUESTS.finditer(text)}
        reasons |= {match[0].rstrip("("): _CHANCE for match in _CALLS.finditer(text)}
    return reasons


def _assumed(plan: Plan, task: Task, name: str) -> bool:
    """Whether an assumption of the plan names both the task, or its step of a workflow, and what it uses."""
    ids = [task.id] if task.flow is None else [task.id, task.flow.step]
    return any(_names(text, name) and any(_names(text, id) for id in ids) for text in plan.assumptions)


def _names(text: str, name: str) -> bool:
    start = "" if name.startswith("$") else r"(?<![\w$.-])"
    return re.search(rf"{start}{re.escape(name)}(?![\w-])", text) is not None


def leaves_workspace(_: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find commands with paths outside the workspace, and with the user's repository in a task that can be undone."""
    for step in _runs(task):
        script = _script(step)
        yield from (_outside(path, step) for path in shell.outside_paths(script))
        if REPOSITORY in script.variables and task.rollback.kind != IRREVERSIBLE:
            fix = "Work in the checkout. Only a plan in Markdown can declare a task irreversible."
            if is_declaration(plan):
                how = (
                    "- **Rollback:** irreversible: reason" if task.flow is None else "rollback: {irreversible: reason}"
                )
                fix = f"Add `{how}`, or work in the checkout."
            yield _outside(f"${REPOSITORY}", step)._replace(fix=fix)


def _outside(path: str, step: Step) -> Hit:
    what = f"names {path} in a step, outside the checkout that idumb proves and can restore"
    return Hit(path, {"what": what}, field="steps", line=step.line)


def branches(_: Case, __: Plan, task: Task) -> Iterator[Hit]:
    """Find commands that branch at run time."""
    for step in _runs(task):
        for word in dict.fromkeys(_script(step).branches):
            yield Hit(f"{word} in {step.command}", {"word": word}, line=step.line)


def _runs(task: Task) -> Iterator[Step]:
    return (step for step in task.steps if step.tool == "run")


def _script(step: Step) -> shell.Script:
    """Return the script of a `run` step, from its command or its argument list."""
    argv = map(str, step.arguments.get("argv", ()))
    return shell.read(str(step.arguments.get("command") or shlex.join(argv)))
