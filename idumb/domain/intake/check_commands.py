"""Checks of the commands that prove tasks: their failures must count, and the builder must not own what they run."""

from __future__ import annotations

from collections.abc import Iterator

from idumb.domain.finding import Finding
from idumb.domain.intake import ground
from idumb.domain.intake.rule import Case, short
from idumb.domain.plans import exit_code
from idumb.domain.plans.exit_code import Hidden
from idumb.domain.plans.plan import Plan, Task

_OWN = "Make it a check of its own"
_WAYS = {
    exit_code.PIPE: (
        "a pipe has the exit code of its last program ({by})",
        "Omit `| {by}`: idumb keeps the output of a check. Or run it as `bash -o pipefail -c '…'`.",
    ),
    exit_code.FALLBACK: ("`|| {by}` replaces its exit code", "Omit `|| {by}`, or end it with `exit 1`."),
    exit_code.SEQUENCE: (
        "the exit code is that of the last command ({by})",
        f"Join the commands with `&&`. {_OWN}, if both must run.",
    ),
    exit_code.BACKGROUND: ("`&` discards its exit code", "Omit `&`."),
    exit_code.CONDITION: ("`if` discards its exit code", "Omit `if`, or add `else exit 1`."),
    exit_code.LOOP: ("the exit code is that of the last round of the loop", "Add `|| exit 1` inside the loop."),
}
_NO_PIPEFAIL = "; not every `/bin/sh` has `set -o pipefail`, and dash stops there"


def hidden_failures(case: Case) -> Iterator[Finding]:
    """Find checks that pass although their program fails, such as `pytest | tee log` and `npm test || true`."""
    for plan, task, command, line, field in _proving(case):
        hidden = exit_code.hidden_failures(command)
        if hidden:
            yield _hidden_failure(case, (plan, task), command, (field, line), hidden[0])


def _hidden_failure(
    case: Case, where: tuple[Plan, Task | None], command: str, at: tuple[str, int], hidden: Hidden
) -> Finding:
    (plan, task), (field, line) = where, at
    why, mend = (text.format(by=short(hidden.by)) for text in _WAYS[hidden.way])
    if hidden.pipefail:
        why += _NO_PIPEFAIL
        mend = "Run it as `bash -o pipefail -c '…'`, or omit the pipe."
    elif hidden.way == exit_code.PIPE and hidden.by.startswith(("grep", "egrep", "fgrep", "rg", "jq")):
        mend = f"{_OWN}, without the pipe."
    message = f"{task.id if task else 'The plan'}: a check passes even if `{short(hidden.command)}` fails: {why}."
    return case.at("check.hidden-failure", plan, task, short(command), message, mend, field=field, line=line)


def _proving(case: Case) -> Iterator[tuple[Plan, Task | None, str, int, str]]:
    """Yield each command that proves something, with its plan and task, its line (0 for its field's) and its field."""
    for plan in case.contract.plans:
        yield from ((plan, None, i.check, 0, "invariants") for i in plan.invariants)
        for criterion in plan.success_criteria:
            if criterion.command:
                line = criterion.span.line if criterion.span else 0
                yield plan, None, criterion.command, line, "success_criteria"
        for task in plan.tasks:
            yield from ((plan, task, command, line, field) for command, line, field in ground.checks(task))
