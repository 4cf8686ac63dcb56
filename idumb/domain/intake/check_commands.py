"""Checks of the commands that prove tasks: their failures must count, and the builder must not own what they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from idumb import lazy_pattern
from idumb.domain import paths, wording
from idumb.domain.contract import validator_of
from idumb.domain.finding import Finding
from idumb.domain.intake import ground, scope
from idumb.domain.intake.rule import Case, short
from idumb.domain.plans import commands, run_files
from idumb.domain.plans import hidden_failures as hiding
from idumb.domain.plans.hidden_failures import Hidden
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

_PLACEHOLDER = lazy_pattern.compile(r"\s*(?:TBD|TODO|FIXME|XXX|COMMAND|\?\?\?|\.\.\.|…|<[^<>|]+>)(?![\w/.-])")
_PRESENCE = frozenset({":", "[", "[[", "cat", "cd", "echo", "ls", "stat", "test", "true"})
"""Programs that at most show that a file exists."""


def hidden_failures(case: Case) -> Iterator[Finding]:
    """Find checks that pass although their program fails, such as `pytest | tee log` and `npm test || true`."""
    for plan, task, command, line, field in _proving(case):
        hidden = hiding.find(command)
        if hidden:
            yield _hidden_failure(case, (plan, task), command, (field, line), hidden[0])


def unclosed(case: Case) -> Iterator[Finding]:
    """Find checks that no shell can run, such as `test -s "a.txt`."""
    for plan, task, command, line, field in _proving(case):
        mark = commands.read(command).unclosed
        if mark:
            message = f"{task.id if task else 'The plan'}: a check can never pass: the shell finds no end of `{mark}`."
            fix = f"Close the `{mark}`, or omit it."
            yield case.at("check.unclosed", plan, task, short(command), message, fix, field=field, line=line)


def placeholders(case: Case) -> Iterator[Finding]:
    """Find commands that are still to be written, such as `TBD`, in checks and in steps."""
    stepped = (
        (plan, task, str(step.arguments.get("command", "")), step.line, "steps")
        for plan, task in case.pairs
        for step in task.steps
        if step.tool == "run"
    )
    for plan, task, command, line, field in (*_proving(case), *stepped):
        if _PLACEHOLDER.match(command):
            message = f"{task.id if task else 'The plan'}: `{short(command)}` is a placeholder, not a command."
            fix = "Write the command."
            yield case.at("command.placeholder", plan, task, short(command), message, fix, field=field, line=line)


def _hidden_failure(
    case: Case, where: tuple[Plan, Task | None], command: str, at: tuple[str, int], hidden: Hidden
) -> Finding:
    (plan, task), (field, line) = where, at
    why, fix = (text.format(by=short(hidden.by)) for text in _WAYS[hidden.way])
    if hidden.pipefail:
        why += _NO_PIPEFAIL
        fix = "Run it as `bash -o pipefail -c '…'`, or omit the pipe."
    elif hidden.way == hiding.PIPE and hidden.by.startswith(("grep", "egrep", "fgrep", "rg", "jq")):
        fix = f"{_OWN}, without the pipe."
    message = f"{task.id if task else 'The plan'}: a check passes even if `{short(hidden.command)}` fails: {why}."
    return case.at("check.hidden-failure", plan, task, short(command), message, fix, field=field, line=line)


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


@dataclass(frozen=True, slots=True)
class _OwnCheck:
    """A check of a task that runs files which the task may write: `programs` that judge, and `tests`."""

    command: str
    line: int
    field: str
    programs: tuple[str, ...]
    tests: tuple[str, ...]


def own_checks(case: Case) -> Iterator[Finding]:
    """Find tasks whose only proof is a script, or tests, that they may write themselves."""
    for plan in case.contract.plans:
        found = [(task, check) for task in plan.tasks for check in _own_checks(case, plan, task)]
        yield from _own_programs(case, plan, found)
        yield from _own_tests(case, plan, found)


def _own_programs(case: Case, plan: Plan, found: Sequence[tuple[Task, _OwnCheck]]) -> Iterator[Finding]:
    """Report for each task the first check that runs a script, or a target of it, which the task may write."""
    for task, check in _firsts((task, check) for task, check in found if check.programs).values():
        message = (
            f"{task.id} may write {check.programs[0]}, which its own check runs, so the builder can make the check"
            " pass without doing the work."
        )
        fix = "Let an earlier task write the file, or add a check that does not depend on this task's files."
        code, field, line = "check.own-program", check.field, check.line
        yield case.at(code, plan, task, short(check.command), message, fix, field=field, line=line)


def _own_tests(case: Case, plan: Plan, found: Sequence[tuple[Task, _OwnCheck]]) -> Iterator[Finding]:
    """Report once for a plan the tasks that only tests prove which they write themselves."""
    firsts = _firsts((task, check) for task, check in found if check.tests)
    if not firsts:
        return
    task, check = next(iter(firsts.values()))
    verb = "writes the tests that alone prove it" if len(firsts) == 1 else "write the tests that alone prove them"
    paths_by_task = wording.listed((f"{id}: {own.tests[0]}" for id, (_, own) in firsts.items()), 5)
    message = f"{wording.listed(firsts, 5)} {verb}, so the builder can weaken them."
    fix = "If that is too weak, let an earlier task write the tests, add a check of your own, or a validator."
    field, line = check.field, check.line
    yield case.at("check.own-tests", plan, task, paths_by_task, message, fix, field=field, line=line)


def _firsts(found: Iterable[tuple[Task, _OwnCheck]]) -> dict[str, tuple[Task, _OwnCheck]]:
    """Return the first check of each task, by the task's id."""
    firsts: dict[str, tuple[Task, _OwnCheck]] = {}
    for task, check in found:
        firsts.setdefault(task.id, (task, check))
    return firsts


def _own_checks(case: Case, plan: Plan, task: Task) -> tuple[_OwnCheck, ...]:
    """Return the checks of a task that run files which it may write; none if anything else proves the task."""
    done = case.present.done if case.present is not None else frozenset()
    if task.is_human or task.steps or task.id in done or any(c.proof == HUMAN for c in task.acceptance):
        return ()
    written = ledger.written_paths(task.files)
    if not written or validator_of(plan, task, case.settings) is not None:
        return ()
    chosen = None if task.invariants is None else set(task.invariants)
    checks = [row for row in ground.checks(task) if row[2] != "preconditions"]
    checks += [(i.check, 0, "invariants") for i in plan.invariants if chosen is None or i.id in chosen]
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
