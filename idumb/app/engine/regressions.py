"""Runs the checks of completed tasks again whose inputs may have changed, before the next task builds on the work.

The checks of one task run together and in their order, because a later one may use what an earlier one built. A check
whose text shows its inputs runs again only if one of them changed; any other runs again after every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from idumb.app.attempt import own_checks
from idumb.app.attempt.own_checks import OwnCheck
from idumb.app.core.run_context import RunContext
from idumb.app.worktree import task_base
from idumb.domain import outcome, wording
from idumb.domain.paths import folders_above
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs import regression
from idumb.domain.runs.regression import Broken
from idumb.domain.runs.task_state import TaskState
from idumb.domain.settings import AFTER_EACH, CheckSettings
from idumb.lazy_dataclass import dataclass

LEAST_SECONDS = 60.0
"""The checks of one round may take as long as the work since the last round took, but at least this long."""

_NOTES = "regressions"
_LINK_OR_SUBMODULE = frozenset({0o120000, 0o160000})
_ATTRIBUTES = ".gitattributes"


@dataclass(slots=True)
class _Rounds:
    """`passed`: by completed task, the tree on which its checks passed last, the longest ago first.

    `tree`: that of the last round, on which the checks of all tasks passed but those in `behind`. `inputs`: by task,
    what all its checks read; None if one of them does not show that. `ended`: the monotonic time of the last round;
    `is_complete`: nothing is left for a later one. `is_bounded`, `noted`: what was reported already.
    """

    passed: dict[str, str] = field(default_factory=dict)
    tree: str = ""
    behind: dict[str, None] = field(default_factory=dict)
    inputs: dict[str, frozenset[str] | None] = field(default_factory=dict)
    ended: float = 0.0
    is_complete: bool = False
    is_bounded: bool = False
    noted: set[str] = field(default_factory=set)


def find(context: RunContext) -> str | None:
    """Return why nothing may be built now: a check of a completed task fails, and a person must decide; else None."""
    settings = context.services.settings.checks or CheckSettings()
    if settings.regression != AFTER_EACH:
        return None
    clock = context.services.clock.monotonic
    rounds: _Rounds = context.notes.setdefault(_NOTES, _Rounds(ended=clock()))
    new = _add_completed(context, rounds)
    if not rounds.passed or (context.journal.state.uncommitted() and _are_untouched(rounds, new)):
        return None
    tree = _present_tree(context)
    _note_unchanged(context, rounds, new, tree)
    broken = _round(context, rounds, tree, _allowance(clock() - rounds.ended))
    rounds.ended = clock()
    return _put(context, broken)


def _allowance(since_last_round: float) -> float:
    """Return how many seconds a round may take."""
    return max(LEAST_SECONDS, since_last_round)


def _are_untouched(rounds: _Rounds, new: Sequence[TaskState]) -> bool:
    """Return whether every earlier check shows what it reads, and the one new task changed none of it.

    Then the files are not compared, which takes long while nobody commits them. What the user changed meanwhile is
    judged in a later round or at the end.
    """
    if not rounds.is_complete or len(new) != 1 or new[0].checkpoint is None:
        return False
    changed = _with_parents(new[0].checkpoint.files)
    earlier = (inputs for task_id, inputs in rounds.inputs.items() if task_id != new[0].id)
    return bool(changed) and not any(_are_affected(inputs, changed) for inputs in earlier)


def _add_completed(context: RunContext, rounds: _Rounds) -> list[TaskState]:
    """Add the tasks that were completed since, and forget those that are not completed any more. Return the former."""
    changed = context.journal.state.changed_tasks()
    for task_state in changed:
        if task_state.status != outcome.COMPLETED:
            for known in (rounds.inputs, rounds.passed, rounds.behind):
                known.pop(task_state.id, None)
    new = [t for t in changed if t.status == outcome.COMPLETED and t.id not in rounds.inputs]
    for task_state in sorted(new, key=_when):
        checks = tuple(own_checks.of_task(context.contract.tasks[task_state.id]))
        rounds.inputs[task_state.id] = frozenset()
        if checks:
            rounds.passed[task_state.id] = tree = _tree_after(context, task_state)
            rounds.behind[task_state.id] = None
            rounds.inputs[task_state.id] = _inputs(context, checks, tree)
    return new


def _note_unchanged(context: RunContext, rounds: _Rounds, new: Sequence[TaskState], tree: str) -> None:
    """Note that the task that was just completed passed on `tree`, if nothing changed the files since.

    Its checkpoint also has what is not part of its work, such as the documents of all tasks, which are not compared.
    """
    if len(new) != 1 or new[0].id not in context.begun or new[0].id not in rounds.passed:
        return
    services, kept = context.services, new[0].checkpoint
    if kept is None or kept.commit is not None:
        return
    if task_base.tree_between_attempts(services, context.journal.state, kept.tree) == tree:
        rounds.passed[new[0].id] = tree


def _when(task_state: TaskState) -> int:
    return 0 if task_state.checkpoint is None else task_state.checkpoint.seq


def _tree_after(context: RunContext, task_state: TaskState) -> str:
    """Return the tree on which the checks of a completed task passed; "" if that is unknown."""
    kept = task_state.checkpoint
    if kept is None:
        return ""
    try:
        return kept.tree if kept.commit is None else context.services.history.tree_of(kept.commit)
    except KeyError:  # the user rewrote history, and git removed the commit
        return ""


def _present_tree(context: RunContext) -> str:
    services, state = context.services, context.journal.state
    if not state.uncommitted():
        return services.history.tree_of(services.history.head().commit)
    return task_base.tree_between_attempts(services, state, services.trees.scan())


def _inputs(context: RunContext, checks: Iterable[OwnCheck], tree: str) -> frozenset[str] | None:
    """Return what these checks read; None if one does not show it, or if a link or submodule leads elsewhere."""
    inputs: set[str] = set()
    for check in checks:
        shown = check.inputs
        if shown is None:
            return None
        inputs |= shown
    if not tree:
        return None
    trees = context.services.trees
    entries = (trees.entry(tree, path) for path in {*inputs, *folders_above(inputs)})
    return None if any(e is not None and e.mode in _LINK_OR_SUBMODULE for e in entries) else frozenset(inputs)


def _round(context: RunContext, rounds: _Rounds, tree: str, seconds: float) -> list[Broken]:
    """Run what may have changed; return the checks that fail. What does not fit in the time waits for a later round."""
    clock = context.services.clock.monotonic
    end, broken, ran = clock() + seconds, list[Broken](), dict[tuple[str, ...], bool]()
    changed_since: dict[str, frozenset[str]] = {}
    accepted = regression.accepted(context.journal.state)
    left_over = []
    # In a run of thousands of tasks that change nothing, only the newest is looked at.
    looked_at = [*rounds.behind] if tree == rounds.tree else [*rounds.passed]
    rounds.tree = ""  # until the round is over
    for task_id in looked_at:
        last = rounds.passed[task_id]
        if last == tree:
            continue
        if last not in changed_since:
            changed_since[last] = _changes(context, last, tree)
        task = context.contract.tasks[task_id]
        if not _are_affected(rounds.inputs[task_id], changed_since[last]):
            rounds.passed[task_id] = tree
            continue
        checks = tuple(own_checks.of_task(task))
        commands = tuple(check.command or repr(check.condition) for check in checks)
        if not ran.get(commands):
            if ran and clock() > end:
                left_over.append(task_id)
                continue
            failed = [e for e in _run(context, checks, tree) if e.subject not in accepted]
            ran[commands] = not failed
            if failed:
                culprit = _culprit(context, task, last, tree)
                if culprit is not None:
                    broken += [Broken(task_id, each, culprit) for each in failed]
                    continue
                _report_outside(context, rounds, failed)
        del rounds.passed[task_id]
        rounds.passed[task_id] = tree
        rounds.inputs[task_id] = _inputs(context, checks, tree)
    rounds.tree, rounds.behind = tree, dict.fromkeys(known for known in looked_at if rounds.passed[known] != tree)
    rounds.is_complete = not left_over
    _report(context, rounds, left_over)
    return broken


def _changes(context: RunContext, old: str, new: str) -> frozenset[str]:
    """Return the paths that differ, and the folders above them; nothing if every file may differ."""
    return _with_parents([change.path for change in context.services.trees.changes(old, new)]) if old else frozenset()


def _with_parents(changed: Sequence[str]) -> frozenset[str]:
    """Return paths and the folders above them; nothing if attributes are among them, which can change every file."""
    paths = folders_above(changed).union(changed)
    return frozenset() if any(path.rpartition("/")[2] == _ATTRIBUTES for path in paths) else frozenset(paths)


def _are_affected(inputs: frozenset[str] | None, changed: frozenset[str]) -> bool:
    return inputs is None or not changed or not inputs.isdisjoint(changed)


def _run(context: RunContext, checks: Sequence[OwnCheck], tree: str) -> list[Evidence]:
    """Run the checks of one task; return those that fail twice. One that fails once is reported."""
    failed = _failures(context, checks, tree)
    if not failed:
        return []
    again = _failures(context, checks, tree)
    unsure = [e.subject for e in failed if e.subject not in {other.subject for other in again}]
    if unsure:
        context.services.reporter.note(f"{wording.listed(unsure)} failed once, then passed on the same files")
    return again


def _failures(context: RunContext, checks: Sequence[OwnCheck], tree: str) -> list[Evidence]:
    services, limit = context.services, float(context.services.settings.run.check_timeout)
    context.checks.renew()
    results = []
    for check in checks:
        services.interrupts.check()
        with services.interrupts.armed():
            results.append(check.run(context.checks, limit, tree))
    context.checks.end_processes()
    return [e for e in results if e.result in evidence.BROKEN]


def _culprit(context: RunContext, task: Task, last: str, tree: str) -> str | None:
    """Return the task after which the checks fail: by halving, if several were completed since they passed."""
    state = context.journal.state
    ended = sorted((t for t in state.tasks.values() if t.status == outcome.COMPLETED), key=_when)
    after_each = ((t.id, _tree_after(context, t)) for t in ended if t.id != task.id)
    trees = [(id, after) for id, after in after_each if after]
    passed = next((i for i, (_, after) in enumerate(trees) if after == last), -1)
    since = [row for row in trees[passed + 1 :] if _when(state.tasks[row[0]]) > _when(state.tasks[task.id])]
    if not since:
        return None
    checks = tuple(own_checks.of_task(task))
    if since[-1][1] != tree and not _failures(context, checks, since[-1][1]):
        return None  # what was committed after the last task broke it
    low, high = 0, len(since) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _failures(context, checks, since[middle][1]) else (middle + 1, high)
    return since[low][0]


def _report(context: RunContext, rounds: _Rounds, left_over: Sequence[str]) -> None:
    """Say once that the time was too short for all checks."""
    if left_over and not rounds.is_bounded:
        rounds.is_bounded = True
        context.services.reporter.note(
            f"There was no time to repeat the checks of {wording.listed(left_over, 3)}; they run after a later task,"
            " and all checks run at the end"
        )


def _report_outside(context: RunContext, rounds: _Rounds, failed: Sequence[Evidence]) -> None:
    """Report once that something outside the run broke these checks; only the verification judges that."""
    new = [e.subject for e in failed if e.subject not in rounds.noted]
    rounds.noted.update(new)
    if new:
        context.services.reporter.note(
            f"{wording.listed(new)} passed when the task was done and now fails, because of what was committed outside"
            " the run; idumb judges it at the end"
        )


def _put(context: RunContext, broken: Sequence[Broken]) -> str | None:
    """Record the question about what the first culprit broke, withdraw others; return why the run waits."""
    journal, state = context.journal, context.journal.state
    first = [each for each in broken if each.culprit == broken[0].culprit]
    question = regression.question(state, first) if first else None
    gone = [id for id in regression.waiting(state) if question is None or id != question.id]
    events = [journal.event("decision.withdrawn", state.decisions[id]["task"], decision=id) for id in gone]
    if question is not None:
        events.append(journal.question_event(question, question.task))
    if events:
        journal.write(*events)
    return None if question is None else question.what
