"""Checks of tool calls: allowed by the policy, with a meaningful intent, and with the same result on every run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from idumb import lazy_pattern
from idumb.domain.finding import Finding
from idumb.domain.intake.rule import Case, is_declaration, short
from idumb.domain.plans import commands, programs
from idumb.domain.plans.plan import IRREVERSIBLE, Plan, Step, Task

# fmt: off
_SAYS_NOTHING = frozenset({
    "a", "above", "an", "apply", "as", "change", "create", "delete", "described", "description", "directory", "do",
    "edit", "exec", "execute", "file", "files", "fix", "in", "intent", "it", "make", "misc", "move", "n", "na", "next",
    "none", "of", "patch", "run", "same", "see", "step", "stuff", "task", "that", "the", "thing", "things",
    "this", "title", "to", "update", "work", "write", "x",
})
_VARIABLES = frozenset({"RANDOM", "SRANDOM", "EPOCHSECONDS", "EPOCHREALTIME", "SECONDS"})
# fmt: on
REPOSITORY = "IDUMB_REPOSITORY"
_NO_BRANCH = "Decide in the plan, or move the branch into a script file in the repository, which the approval covers."
_CHANCE = "gives a different result every time"
_CALLS = lazy_pattern.compile(
    r"/dev/u?random\b|\brandom\.(?:random|randint|choice|choices|shuffle|sample)\(|\bMath\.random\("
    r"|\buuid\.uuid[14]\(|\bsecrets\.token\w*\(?|\b(?:time\.time|Date\.now|datetime\.now|datetime\.utcnow)\("
)
"""Calls of chance and clock in languages that commands embed, and random devices."""
_REQUESTS = lazy_pattern.compile(r"\burllib\b|\bhttp\.client\b|\brequests\.\w+\(|\bNet::HTTP\b|\bfetch\(|\bsocket\b")
_AWK = lazy_pattern.compile(r"\brand\(|\bsystime\(")
_WORD = lazy_pattern.compile(r"\w+")


def not_allowed(case: Case) -> Iterator[Finding]:
    """Find tools that the policy does not allow."""
    allowed = case.policy.tools
    if allowed is None:
        return
    where = " and ".join(path for path, _ in case.policy.sources)
    for plan, task, step in _steps(case):
        if step.tool not in allowed:
            message = f"{task.id}: the tool {step.tool} is not allowed by {where}."
            fix = "Use an allowed tool, or ask the owner of the policy to allow it."
            accepted, line = ", ".join(sorted(allowed)) or "no tool", step.line
            yield case.at("step.tool-not-allowed", plan, task, step.tool, message, fix, accepted=accepted, line=line)


def vague_intents(case: Case) -> Iterator[Finding]:
    """Find intents that say no more than the tool's name."""
    for plan, task, step in _steps(case):
        if len(step.intent) <= 24 and _SAYS_NOTHING.issuperset(_WORD.findall(step.intent.casefold().replace("_", " "))):
            message = f"{task.id}: the intent {step.intent!r} does not state the purpose of the step."
            fix = "Say in a few words what this step achieves."
            yield case.at("step.vague-intent", plan, task, step.intent, message, fix, line=step.line)


def chance(case: Case) -> Iterator[Finding]:
    """Find commands that depend on chance, the clock or the network without a matching assumption."""
    for plan, task, step in _steps(case):
        if step.tool != "run":
            continue
        for name, why in _variable(step).items():
            if not _assumed(plan, task, name):
                message = f"{task.id}: a step runs {name}, which {why}."
                fix = "Write the value into the plan, or seed the generator."
                if is_declaration(plan):
                    assumption = f"`{task.id} uses {name}: …`"
                    fix = f"Write the value into the plan, or add an assumption that names both: {assumption}."
                yield case.at("step.not-deterministic", plan, task, name, message, fix, line=step.line)


def _variable(step: Step) -> dict[str, str]:
    """Return each name in a command whose result varies, with the reason; an assumption must use this name."""
    script, text = _script(step), _command(step)
    reasons = {f"${name}": _CHANCE for name in script.variables if name in _VARIABLES}
    for command in script.commands:
        if command.own and (why := programs.varies(command.own)):
            reasons[command.program] = why
    reasons |= {match[0].rstrip("("): _CHANCE for match in _CALLS.finditer(text)}
    if any(programs.does(part.program, programs.INTERPRETER) or "awk" in part.program for part in script.commands):
        reasons |= {match[0].rstrip("("): "uses the network" for match in _REQUESTS.finditer(text)}
        reasons |= {match[0].rstrip("("): _CHANCE for match in _AWK.finditer(text)}
    return reasons


def _assumed(plan: Plan, task: Task, name: str) -> bool:
    """Whether an assumption of the plan names both the task and what it uses."""
    return any(_names(text, task.id) and _names(text, name) for text in plan.assumptions)


def _names(text: str, name: str) -> bool:
    start = "" if name.startswith("$") else r"(?<![\w$.-])"
    return re.search(rf"{start}{re.escape(name)}(?![\w-])", text) is not None


def leaving(case: Case) -> Iterator[Finding]:
    """Find commands with paths outside the workspace, and with the user's repository in a task that can be undone."""
    for plan, task, step in _steps(case):
        script = _script(step) if step.tool == "run" else commands.Script()
        found = list(commands.leaving(script))
        if REPOSITORY in script.variables and task.rollback.kind != IRREVERSIBLE:
            found.append(f"${REPOSITORY}")
        for path in found:
            message = f"{task.id}: a step names {path}, outside the checkout that idumb proves and can restore."
            fix = "Use a path inside the workspace."
            if path == f"${REPOSITORY}":
                fix = "Add `- **Rollback:** irreversible: reason` to the task, or work in the checkout."
                if not is_declaration(plan):
                    fix = "Work in the checkout. Only a plan in Markdown can declare a task irreversible."
            yield case.at("path.leaves-workspace", plan, task, path, message, fix, field="steps", line=step.line)


def branches(case: Case) -> Iterator[Finding]:
    """Find commands that branch at run time."""
    for plan, task, step in _steps(case):
        if step.tool != "run":
            continue
        for word in dict.fromkeys(_script(step).branches):
            found = f"{word} in {short(_command(step))}"
            message = f"{task.id}: a step branches at run time (`{word}`)."
            yield case.at("step.branch", plan, task, found, message, _NO_BRANCH, line=step.line)


def _script(step: Step) -> commands.Script:
    """Return the script of a `run` step, from its command or its argument list."""
    command = step.arguments.get("command")
    if command is not None:
        return commands.read(str(command))
    return commands.of_arguments(tuple(map(str, step.arguments.get("argv", ()))))


def _command(step: Step) -> str:
    command = step.arguments.get("command")
    return str(command) if command is not None else " ".join(map(str, step.arguments.get("argv", ())))


def _steps(case: Case) -> Iterator[tuple[Plan, Task, Step]]:
    return ((plan, task, step) for plan, task in case.pairs for step in task.steps)
