"""Evidence rerun elsewhere: which checks a contract has, and how a new result compares with the recorded one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from idumb.domain import contract as contracts
from idumb.domain.plans.plan import CHECK, Condition, Plan, Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence

SAME = "same"
NOW_FAILS = "now_fails"
NOW_PASSES = "now_passes"
NOT_RUN = "not_run"
CHANGED_COMMAND = "changed_command"
STILL_FAILS = "still_fails"
FAILS = frozenset({NOW_FAILS, STILL_FAILS})
"""Results of a check; then those of a task or of a phase."""
PROVEN, MISMATCH, NO_COMMIT, NOTHING_TO_RUN = "proven", "mismatch", "no_commit", "nothing_to_run"


class Check(Struct, frozen=True):
    """One check that idumb can rerun. Without a `condition` it is the command alone."""

    subject: str
    text: str
    command: str | None
    condition: Condition | None = None

    @property
    def is_test(self) -> bool:
        return self.subject.startswith("test ")


def checks_of_task(task: Task, plan: Plan | None = None) -> tuple[Check, ...]:
    """Return the checks of a task in the order of an attempt, with the invariants of `plan` that it must keep.

    Criteria, Verify, tests, invariants, postconditions: a later one may use what an earlier one built.
    """
    proofs = contracts.proofs(task)
    return (
        *(Check(c.id, c.text, c.command) for c in task.acceptance if proofs[c.id] == CHECK and c.command),
        *(Check(f"verify {i}", command, command) for i, command in enumerate(task.verify, 1)),
        *(Check(f"test {i} after", t.intent or t.command, t.command) for i, t in enumerate(task.tests, 1)),
        *(Check(f"invariant {i.id}", i.text, i.check) for i in (plan.invariants_of(task) if plan else ())),
        *(
            Check(f"postcondition {i}", c.subject, c.subject if c.kind == "command" else None, c)
            for i, c in enumerate(task.postconditions, 1)
        ),
    )


def checks_of_phase(plans: Sequence[Plan]) -> tuple[Check, ...]:
    """Return the success criteria and invariants of a phase that have a command, under the names of a verification."""
    prefixes = {plan.path: f"plan {plan.plan} " if len(plans) > 1 else "" for plan in plans}
    criteria = [
        Check(f"{prefixes[plan.path]}{c.id}", c.text, c.command) for plan in plans for c in plan.success_criteria
    ]
    invariants = [
        Check(f"{prefixes[plan.path]}invariant {i.id}", i.text, i.check) for plan in plans for i in plan.invariants
    ]
    first = {check.command: check for check in reversed(invariants)}
    return (*(c for c in criteria if c.command), *(i for i in invariants if first[i.command] is i))


def is_before(subject: str) -> bool:
    """Return whether evidence of this subject is about the state before the work."""
    return subject.startswith("precondition") or subject.endswith(" before")


def last_of_each(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the last evidence of each subject about the work itself, and nothing about the state before it."""
    return {str(row["subject"]): row for row in rows if not is_before(str(row["subject"]))}


def compare(recorded: str | None, now: Evidence) -> str:
    """Return how a new result compares with the recorded one; None was never recorded."""
    if {now.result, recorded} <= evidence.BROKEN:
        return STILL_FAILS
    if now.result == recorded:
        return SAME
    return NOW_PASSES if now.passed else NOW_FAILS


def result_of(checks: Sequence[Mapping[str, Any]]) -> str:
    """Return the result of a task or a phase: a mismatch if a check fails, proven if at least one passes."""
    if any(row["result"] in FAILS for row in checks):
        return MISMATCH
    return PROVEN if any(row["now"] == evidence.PASSED for row in checks) else NOTHING_TO_RUN


def shell_lines(checks: Iterable[tuple[str, Check]]) -> list[str]:
    """Return a line for each command that a person can paste into a shell: it prints the exit code and the names.

    A command that several checks share appears once.
    """
    names: dict[str, list[str]] = {}
    for name, check in checks:
        if check.command:
            names.setdefault(check.command, []).append(f"{name} {check.subject}".strip())
    return [
        f'(cd "$proof" && sh -c {shlex.quote(command)}); echo "exit $?:" {shlex.quote(", ".join(labels))}'
        for command, labels in names.items()
    ]


def clone_lines(commit: str) -> list[str]:
    """Return the lines that clone the repository in the current folder and check out a commit."""
    return [*_CLONE, f'git -C "$proof" checkout --detach {commit} || {_NO_COMMIT}']


def hidden_lines(snapshot: str, path: str) -> list[str]:
    """Return the lines that check out a tree which no commit has, from a snapshot that this repository keeps."""
    fetch = f'git -C "$proof" -c protocol.version=2 fetch origin {snapshot}'
    return [*_CLONE, fetch, f'git -C "$proof" read-tree --reset -u {snapshot}:{path} || {_NO_COMMIT}']


def setup_lines(folder: str, prepare: Sequence[str]) -> list[str]:
    """Return the lines after which commands run in the folder of a project, with what `checkout.prepare` installs."""
    project = [f'proof="$proof"/{shlex.quote(folder)}'] if folder else []
    return [*project, *(f'(cd "$proof" && sh -c {shlex.quote(command)})' for command in prepare)]


_CLONE = ('proof="$(mktemp -d)/proof"', 'git clone --no-checkout --no-local . "$proof"')
_NO_COMMIT = 'proof="/this repository lacks the commit"'
"""Without the commit, no check may pass in an empty folder: each fails, and says why."""
