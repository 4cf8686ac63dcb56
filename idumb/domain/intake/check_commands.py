"""Checks of the commands that prove tasks: their failures must count, and the builder must not own what they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from idumb.domain import paths, wording
from idumb.domain.contract import validator_of
from idumb.domain.intake import ground, scope, steps
from idumb.domain.intake.rule import Case, Hit, Hits, short
from idumb.domain.plans import commands, run_files
from idumb.domain.plans import hidden_failures as hiding
from idumb.domain.plans.plan import HUMAN, Plan, Task
from idumb.domain.proof import ledger
from idumb.lazy_dataclass import dataclass

_OWN = "Make it a check of its own"
_WAYS = {
    hiding.PIPE: (
        "a pipe has the exit code of its last program ({by})",
        "Omit `| {by}`: idumb keeps the output of a check. Or run it as `bash -o pipefail -c '…'`.",
    ),
    hiding.FALLBACK: ("`|| {by}` replaces its exit code", "Omit `|| {by}`, or end it with `exit 1`."),
    hiding.SEQUENCE: (
        "the exit code is that of the last command ({by})",
        f"Join the commands with `&&`. {_OWN}, if both must run.",
    ),
    hiding.BACKGROUND: ("`&` discards its exit code", "Omit `&`."),
}
_NO_PIPEFAIL = "; not every `/bin/sh` has `set -o pipefail`, and dash stops there"

_PRESENCE = frozenset({":", "[", "[[", "cat", "cd", "echo", "ls", "stat", "test", "true"})
"""Programs that at most show that a file exists."""


def hidden_failures(case: Case) -> Hits:
    """Find checks that pass although their program fails, such as `pytest | tee log` and `npm test || true`."""
    for plan, task, _, command, line, field in ground.proving(case.contract):
        for hidden in hiding.find(command)[:1]:
            why, fix = (text.format(by=short(hidden.by)) for text in _WAYS[hidden.way])
            if hidden.pipefail:
                why, fix = why + _NO_PIPEFAIL, "Run it as `bash -o pipefail -c '…'`, or omit the pipe."
            elif hidden.way == hiding.PIPE and hidden.by.startswith(("grep", "egrep", "fgrep", "rg", "jq")):
                fix = f"{_OWN}, without the pipe."
            yield plan, task, Hit(command, {"program": short(hidden.command), "why": why}, "", field, line, fix=fix)


def sure(case: Case) -> Hits:
    """Find checks that pass whatever the work is, such as `true`, `test -n x` and `! grep -q x` in a missing file."""
    present = case.present
    makes = paths.cover([path for _, task in case.pairs for path in ledger.written_paths(task.files)])
    for plan, task, _, command, line, field in ground.proving(case.contract):
        why = "" if hiding.find(command) else hiding.why_sure(command)
        missing = [path for path in hiding.must_lack(command) if not makes(path)]
        if present is not None and missing and present.on_disk.isdisjoint(missing):
            why = f"{missing[0]} does not exist, and no task creates it"
        if why:
            yield plan, task, Hit(command, {"why": why}, field=field, line=line)


def of_other_tasks(case: Case) -> Hits:
    """Find the tasks that only checks of earlier tasks prove, once for a plan: nothing shows that they were done."""
    seen: set[str] = set()
    repeated: dict[str, list[str]] = {}
    for task in (case.contract.tasks[id] for id in case.contract.order):
        own = [c.command for c in task.acceptance if c.command and not c.keeps]
        own += [*task.verify, *(test.command for test in task.tests)]
        by_person = task.is_human or any(c.proof == HUMAN for c in task.acceptance)
        judged = by_person or validator_of(case.contract.plan_of(task.id), task, case.settings) is not None
        if own and seen.issuperset(own) and not judged and not task.is_history:
            repeated[task.id] = own
        seen.update(own)
    for plan in case.contract.plans:
        if tasks := [task for task in plan.tasks if task.id in repeated]:
            found = wording.listed((f"{task.id}: {repeated[task.id][0]}" for task in tasks), 5, between="; ")
            yield plan, tasks[0], Hit(found, {"tasks": wording.listed((task.id for task in tasks), 5)})


def unclosed(case: Case) -> Hits:
    """Find checks that no shell can run, such as `test -s "a.txt`."""
    for plan, task, _, command, line, field in ground.proving(case.contract):
        if mark := commands.read(command).unclosed:
            yield plan, task, Hit(command, {"mark": mark}, field=field, line=line)


def placeholders(case: Case) -> Hits:
    """Find commands that are still to be written, such as `TBD`, in checks and in steps."""
    stepped = (
        (plan, task, 0, steps.command_of(step), step.line, "steps")
        for plan, task in case.pairs
        for step in task.steps
        if step.tool == "run"
    )
    for plan, task, _, command, line, field in (*ground.proving(case.contract), *stepped):
        if ground.PLACEHOLDER.match(command):
            yield plan, task, Hit(command, field=field, line=line)


@dataclass(frozen=True, slots=True)
class _OwnCheck:
    """A check of a task that runs files which the task may write: `programs` that judge, and `tests`."""

    command: str
    line: int
    field: str
    programs: tuple[str, ...]
    tests: tuple[str, ...]


def own_checks(case: Case) -> Hits:
    """Find tasks whose only proof is a script, or tests, that they may write themselves; tests once for a plan."""
    for plan in case.contract.plans:
        scripts: dict[str, tuple[Task, _OwnCheck]] = {}
        tests: dict[str, tuple[Task, _OwnCheck]] = {}
        for task in plan.tasks:
            for own in _own_checks(case, plan, task):
                (scripts if own.programs else tests).setdefault(task.id, (task, own))
        for task, own in scripts.values():
            words = {"path": own.programs[0]}
            yield plan, task, Hit(own.command, words, "check.own-program", own.field, own.line)
        for task, own in [*tests.values()][:1]:
            verb = (
                "writes the tests that alone prove it" if len(tests) == 1 else "write the tests that alone prove them"
            )
            found = wording.listed((f"{id}: {each.tests[0]}" for id, (_, each) in tests.items()), 5)
            words = {"who": f"{wording.listed(tests, 5)} {verb}"}
            yield plan, task, Hit(found, words, "check.own-tests", own.field, own.line)


def _own_checks(case: Case, plan: Plan, task: Task) -> tuple[_OwnCheck, ...]:
    """Return the checks of a task that run files which it may write; none if anything else proves the task."""
    done = case.present.done if case.present is not None else frozenset()
    if task.is_human or task.steps or task.id in done or any(c.proof == HUMAN for c in task.acceptance):
        return ()
    written = ledger.written_paths(task.files)
    if not written or validator_of(plan, task, case.settings) is not None:
        return ()
    checks = [row for row in ground.checks(task) if row[2] != "preconditions"]
    checks += [(invariant.check, 0, "invariants") for invariant in plan.invariants_of(task)]
    covers = paths.cover(written)
    own = [_own_check(row, written, covers) for row in checks]
    if any(check is None and not _is_presence(row[0]) for check, row in zip(own, checks, strict=True)):
        return ()
    return tuple(check for check in own if check is not None and check.field != "invariants")


def _own_check(row: tuple[str, int, str], written: Sequence[str], covers: Callable[[str], bool]) -> _OwnCheck | None:
    """Return a check if it runs a script that the task may write, or only tests that it may write."""
    files = run_files.of_command(row[0])
    programs = tuple(path for path in files.programs if covers(path))
    decided = [tuple(path for path in written if _decides_suite(path, suite)) for suite in files.suites]
    tests = (*(path for path in files.tests if covers(path)), *(path for group in decided for path in group))
    if programs:
        return _OwnCheck(*row, programs, ())
    only_own = tests and all(map(covers, files.tests)) and all(decided) and not files.programs
    return _OwnCheck(*row, (), tests) if only_own else None


def _decides_suite(path: str, suite: str) -> bool:
    """Whether writing a path or glob decides what all the tests of a folder say; one new test of many does not."""
    below = f"{suite}/" if suite else ""
    if not paths.has_wildcard(path):
        folder, _, name = path.rpartition("/")
        return (name == "conftest.py" and path.startswith(below)) or (
            name.endswith("_test.go") and folder == suite and suite != ""
        )
    if not run_files.is_test(path) and not path.startswith("**"):
        return False
    folder = scope.fixed_folder(path)
    return f"{folder}/".startswith(below) or f"{suite}/".startswith(f"{folder}/" if folder else "")


def _is_presence(command: str) -> bool:
    return all(name in _PRESENCE for part in commands.read(command).commands for name in part.started)
