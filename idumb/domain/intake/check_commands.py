"""Checks of the commands that prove tasks: they start, their failures count, and no builder owns what they run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from idumb.domain import paths, wording
from idumb.domain.contract import Contract, validator_of
from idumb.domain.intake.rule import Case, Hit, Hits
from idumb.domain.plans import empty_checks, run_files, shell
from idumb.domain.plans.plan import HUMAN, Plan, Task
from idumb.domain.proof import gate_table, ledger

_PRESENCE = frozenset({":", "[", "[[", "cat", "cd", "echo", "ls", "stat", "test", "true"})
"""Programs that at most show that a file exists."""

PLACEHOLDER = re.compile(r"\s*(?:TBD|TODO|FIXME|XXX|COMMAND|\?\?\?|\.\.\.|…|<[^<>|]+>)(?![\w/.-])")
"""How a command begins that is still to be written."""


def passing_anyway(case: Case) -> Hits:
    """Find checks that pass although their program fails (`pytest | tee log`), or whatever the work is.

    The latter are `true`, `test -n x`, and `! grep -q x` in a missing file.
    """
    makes = paths.cover([path for _, task in case.pairs for path in ledger.written_paths(task.files)])
    for plan, task, check in _judging(case):
        if hidden := empty_checks.hidden_failure(check.command):
            words = {"program": wording.short(hidden.command), "by": wording.short(hidden.by)}
            yield plan, task, check.hit(words)._replace(code="check.hidden-failure")
            continue
        why = empty_checks.why_sure(check.command)
        missing = [path for path in empty_checks.must_lack(check.command) if not makes(path)]
        if case.present is not None and missing and case.present.on_disk.isdisjoint(missing):
            why = f"{missing[0]} does not exist, and no task creates it"
        if why:
            yield plan, task, check.hit({"why": why})._replace(code="check.cannot-fail")


def of_other_tasks(case: Case) -> Hits:
    """Find the tasks that only checks of earlier tasks prove, once for a plan: nothing shows that they were done."""
    seen: set[str] = set()
    repeated: dict[str, list[str]] = {}
    for task in (case.contract.tasks[id] for id in case.contract.order):
        own = [c.command for c in task.acceptance if c.command and not c.keeps]
        own += [*task.verify, *(test.command for test in task.tests)]
        by_person = task.is_human or any(c.proof == HUMAN for c in task.acceptance)
        judged = by_person or validator_of(case.contract.plan_of[task.id], task, case.settings) is not None
        if own and seen.issuperset(own) and not judged and not task.is_history:
            repeated[task.id] = own
        seen.update(own)
    for plan in case.contract.plans:
        if tasks := [task for task in plan.tasks if task.id in repeated]:
            found = wording.listed((f"{task.id}: {repeated[task.id][0]}" for task in tasks), 5, between="; ")
            yield plan, tasks[0], Hit(found, {"tasks": wording.listed((task.id for task in tasks), 5)})


def placeholders(case: Case) -> Hits:
    """Find commands that are still to be written, such as `TBD`, in checks and in steps."""
    steps = ((plan, task, step) for plan, task in case.pairs for step in task.steps if step.tool == "run")
    stepped = ((plan, task, Proving(step.command, "steps", step.line)) for plan, task, step in steps)
    for plan, task, command in (*_judging(case), *stepped):
        if PLACEHOLDER.match(command.command):
            yield plan, task, command.hit({})


def own_checks(case: Case) -> Hits:
    """Find tasks whose only proof runs files that they may write themselves, once for a plan."""
    for plan in case.contract.plans:
        owned = [(task, *own) for task in plan.tasks if (own := _own_proof(case, plan, task)) is not None]
        for task, _, check in owned[:1]:
            found = wording.listed((f"{task.id}: {path}" for task, path, _ in owned), 5)
            words = {"tasks": wording.listed((task.id for task, _, _ in owned), 5)}
            yield plan, task, check.hit(words)._replace(found=found)


def _own_proof(case: Case, plan: Plan, task: Task) -> tuple[str, Proving] | None:
    """Return a file that the task may write and the check that runs it; None if anything else proves the task."""
    done = case.present.done if case.present is not None else frozenset()
    if task.is_human or task.steps or task.id in done or any(c.proof == HUMAN for c in task.acceptance):
        return None
    written = ledger.written_paths(task.files)
    if validator_of(plan, task, case.settings) is not None:
        return None
    own: list[tuple[str, Proving]] = []
    after = [check for check in _of_task(task) if check.field != "preconditions"]
    for check in (*after, *(Proving(each.check, "invariants") for each in plan.invariants_of(task))):
        path = _own_file(check.command, written)
        if path:
            own.append((path, check))
        elif not _PRESENCE.issuperset(name for part in shell.read(check.command).commands for name in part.started):
            return None
    return own[0] if own else None


def _own_file(command: str, written: Sequence[str]) -> str:
    """Return the script or the tests among the written paths that decide a check; "" if it runs another file too."""
    files, covers = run_files.of_command(command), paths.cover(written)
    if files.programs:
        return next(filter(covers, files.programs), "")
    decided = [next((path for path in written if _decides_suite(path, suite)), "") for suite in files.suites]
    runs = [*(path if covers(path) else "" for path in files.tests), *decided]
    return runs[0] if runs and all(runs) else ""


def _decides_suite(path: str, suite: str) -> bool:
    """Whether writing a path or glob decides what all the tests of a folder say; one new test of many does not."""
    folder, _, name = path.rpartition("/")
    is_inside = not suite or path.startswith(f"{suite}/")
    if paths.has_wildcard(path) or name == "conftest.py":
        return is_inside and run_files.is_test(path)
    return name.endswith("_test.go") and folder == suite != ""


def programs_of_checks(case: Case) -> Hits:
    """Find checks that start a program which neither exists nor is created by a task."""
    present = case.present
    by_hand = any(task.kind == "human-action" and not task.files for _, task in case.pairs)
    if present is None or not present.no_programs or by_hand:  # a person may install it
        return
    makes = paths.cover([p for t in case.contract.tasks.values() for p in ledger.written_paths(t.files)])
    prepared = case.settings.checkout.prepare
    reported: set[tuple[str, str, str, int]] = set()
    first: dict[str, Proving] = {}  # of each task and plan
    for plan, task, check in proving(case.contract):
        owner = task.id if task else plan.path
        is_first = first.setdefault(owner, check) is check
        if (task is not None and task.id in present.done) or PLACEHOLDER.match(check.command):
            continue
        for program in programs(check.command):
            key = (owner, program, check.field, check.line)
            if program not in present.no_programs or makes(posixpath.normpath(program)) or key in reported:
                continue
            reported.add(key)
            words = {"program": program, "problem": "cannot be started" if "/" in program else "is not on PATH"}
            runs_first = _runs_at_once(check.command, program) and ("/" not in program or is_first)
            yield plan, task, check.hit(words)._replace(certain=runs_first and not prepared)


class Proving(NamedTuple):
    """A command that proves a task or a plan. `line` is 0 for the line of the field."""

    command: str
    field: str
    line: int = 0

    def hit(self, words: Mapping[str, object]) -> Hit:
        words = {"task": self.field, **words} if self.field.startswith("gates.") else words
        return Hit(self.command, words, field=self.field, line=self.line)


def proving(contract: Contract) -> Iterator[tuple[Plan, Task | None, Proving]]:
    """Yield each command that proves something, with its plan, and with its task unless it proves the plan."""
    for plan in contract.plans:
        yield from ((plan, None, Proving(each.check, "invariants")) for each in plan.invariants)
        criteria = (Proving(c.command, "success_criteria", c.span.line) for c in plan.success_criteria if c.command)
        yield from ((plan, None, check) for check in criteria)
        yield from ((plan, task, check) for task in plan.tasks for check in _of_task(task))


def _judging(case: Case) -> Iterator[tuple[Plan, Task | None, Proving]]:
    """Yield the same, and the commands that the configuration names for gates that can fail a task."""
    yield from proving(case.contract)
    for name, gate in case.settings.gates.items():
        if gate_table.rule(case.settings, name).level != gate_table.INFORMATIONAL:
            yield from ((case.contract.plans[0], None, Proving(command, f"gates.{name}")) for command in gate.run)


def _runs_at_once(command: str, program: str) -> bool:
    """Return whether nothing before it can make the program, or put it on PATH, as `. .venv/bin/activate` does."""
    later = shell.read(command).commands[1:]
    return not any(program in part.texts for part in later)


def _of_task(task: Task) -> list[Proving]:
    checks = [Proving(c.command, "acceptance", c.span.line) for c in task.acceptance if c.command]
    checks += [Proving(command, "verify") for command in task.verify]
    checks += [Proving(test.command, "tests") for test in task.tests]
    for field, conditions in (("preconditions", task.preconditions), ("postconditions", task.postconditions)):
        checks += [Proving(c.subject, field) for c in conditions if c.kind == "command"]
    return checks


def programs(command: str) -> tuple[str, ...]:
    """Return the programs that a check starts by name; relative paths only if the command does not change folders."""
    script = shell.read(command)
    moves = any(part.texts[:1] in (["cd"], ["pushd"]) for part in script.commands)
    return tuple(name for name in script.programs if "/" not in name or name.startswith("/") or not moves)


def named_programs(contract: Contract) -> frozenset[str]:
    """Return every program that a check of the contract starts."""
    return frozenset(program for command in all_commands(contract) for program in programs(command))


def all_commands(contract: Contract) -> tuple[str, ...]:
    """Return the command of every check of the contract, each once."""
    return tuple(dict.fromkeys(check.command for _, _, check in proving(contract)))


def searched_files(contract: Contract) -> frozenset[str]:
    """Return the files in which checks of the contract want to find nothing."""
    return frozenset(path for command in all_commands(contract) for path in empty_checks.must_lack(command))
