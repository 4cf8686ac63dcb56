"""Declared tool calls: allowed by the policy, with an intent that says something, the same on every run."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.intake.rule import SILENT, Case, Example, Rule
from idumb.domain.plan import Plan, Step, Task

# fmt: off
_SAYS_NOTHING = frozenset({
    "a", "above", "an", "apply", "as", "change", "create", "delete", "described", "description", "directory", "do",
    "edit", "exec", "execute", "file", "files", "fix", "in", "intent", "it", "make", "misc", "move", "n", "na", "next",
    "none", "of", "patch", "run", "same", "see", "step", "stuff", "task", "that", "the", "thing", "things",
    "this", "title", "to", "update", "work", "write", "x",
})
# fmt: on
_WORD = re.compile(r"\w+")


def not_allowed(case: Case) -> Iterator[Finding]:
    """A tool that the policy does not allow."""
    allowed = case.policy.tools
    if allowed is None:
        return
    where = " and ".join(path for path, _ in case.policy.sources)
    for plan, task, step in _steps(case):
        if step.tool not in allowed:
            yield _at(
                case,
                "step.tool-not-allowed",
                (plan, task, step),
                found=step.tool,
                accepted=", ".join(sorted(allowed)) or "no tool at all",
                message=f"{task.id}: the tool {step.tool} is not allowed by {where}.",
                mend="Use a tool that is allowed, or ask whoever keeps the policy.",
            )


def vague_intents(case: Case) -> Iterator[Finding]:
    """An intent that says no more than the tool does."""
    for plan, task, step in _steps(case):
        if len(step.intent) <= 24 and _SAYS_NOTHING.issuperset(_WORD.findall(step.intent.casefold().replace("_", " "))):
            yield _at(
                case,
                "step.vague-intent",
                (plan, task, step),
                found=step.intent,
                accepted="what the step is for",
                message=f"{task.id}: the intent {step.intent!r} does not say what the step is for.",
                mend="Say in a few words what is to be true after this step.",
            )


def chance(case: Case) -> Iterator[Finding]:
    """A command of a step whose result depends on chance or on the clock."""
    for plan, task, step in _steps(case):
        command = _command(step)
        found = _chance().search(command) if command else None
        if found is not None:
            yield _at(
                case,
                "step.not-deterministic",
                (plan, task, step),
                found=found[0].strip(),
                accepted="a command that does the same every time",
                message=f"{task.id}: a step runs {found[0].strip()}, which gives something else every time.",
                mend="Write the value into the plan, or give the generator a seed.",
            )


def branches(case: Case) -> Iterator[Finding]:
    """A command of a step that does one thing or another, decided while it runs."""
    for plan, task, step in _steps(case):
        command = _command(step)
        if ("else" in command or "case " in command) and (found := _branch().search(command)):
            yield _at(
                case,
                "step.branch",
                (plan, task, step),
                found=found[0][:60],
                accepted="one way through the command",
                message=f"{task.id}: a step decides while it runs which of two ways it takes.",
                mend="Decide in the plan, or leave the branch where both ways were read and are wanted.",
            )


def _command(step: Step) -> str:
    if step.tool != "run":
        return ""
    given = step.arguments.get("command")
    return str(given) if given is not None else " ".join(map(str, step.arguments.get("argv", ())))


@functools.cache
def _chance() -> re.Pattern[str]:
    return re.compile(
        r"\$\{?RANDOM\b|/dev/u?random\b|\bshuf\b(?![^|;&]*--random-source)|\buuidgen\b|\bopenssl rand\b|\bsort -R\b"
        r"|\$\(date\b|`date\b|\brandom\.(?:random|randint|choice|choices|shuffle|sample)\(|\bMath\.random\("
        r"|\buuid\.uuid[14]\(|\bsecrets\.token|\b(?:time\.time|Date\.now|datetime\.now|datetime\.utcnow)\("
    )


@functools.cache
def _branch() -> re.Pattern[str]:
    return re.compile(r"\bif\b[^\n]*?[;\n]\s*then\b[\s\S]*?\belse\b|\bcase\s+\S+\s+in\b")


def _steps(case: Case) -> Iterator[tuple[Plan, Task, Step]]:
    return ((plan, task, step) for plan, task in case.pairs for step in task.steps)


def _at(
    case: Case, code: str, where: tuple[Plan, Task, Step], *, found: str, accepted: str, message: str, mend: str
) -> Finding:
    plan, task, step = where
    return case.at(
        code, plan, task, "steps", found=found, accepted=accepted, message=message, mend=mend, line=step.line
    )


def _example(step: str, policy: str = "") -> Example:
    return Example(
        "### T1-01: Greet\n\n- **Files:** create `hello.txt`\n- **Acceptance:**\n"
        f"  - [ ] It is there — check: `test -s hello.txt`\n\n```yaml steps\n{step}\n```\n",
        policy=policy,
    )


_RUN = "- tool: run\n  intent: {intent}\n  arguments: {{command: '{command}'}}"

RULES = (
    Rule(
        "step.tool-not-allowed",
        ERROR,
        ERROR,
        not_allowed,
        "A step uses a tool that a policy does not allow.",
        _example(
            _RUN.format(intent="greet from the shell", command="echo hello > hello.txt"),
            policy="allow: [write_file, edit_file]\n",
        ),
    ),
    Rule(
        "step.vague-intent",
        WARNING,
        ERROR,
        vague_intents,
        "The intent of a step says no more than its tool does.",
        _example("- {tool: write_file, intent: write file, arguments: {path: hello.txt, content: hello}}"),
    ),
    Rule(
        "step.not-deterministic",
        WARNING,
        ERROR,
        chance,
        "The command of a step depends on chance or on the clock, so two runs differ.",
        _example(_RUN.format(intent="write a greeting with a number", command="echo hello $RANDOM > hello.txt")),
    ),
    Rule(
        "step.branch",
        SILENT,
        WARNING,
        branches,
        "The command of a step takes one of two ways, decided while it runs.",
        _example(
            _RUN.format(
                intent="greet in the language of the machine",
                command='if test -n "$LANG"; then echo hello; else echo salve; fi > hello.txt',
            )
        ),
    ),
)
