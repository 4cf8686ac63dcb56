"""The work of done tasks as it is now: what the branch lost of it, and how its files differ at the end of a run.

Work that idumb committed is looked up in HEAD, other work in the user's working tree. Changes of the user in his own
tree are named, and are no failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.core import kept_runs, questions, run_lookup
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, run_ref
from idumb.app.worktree import delivery
from idumb.domain import outcome, paths, wording
from idumb.domain.action import HISTORY, Decision
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal, Waiting
from idumb.domain.plans import graph
from idumb.domain.plans.plan import Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import CLOSED, RunState, TaskState


def commits(state: RunState) -> list[tuple[str, TaskState]]:
    """Return the commits of done tasks with their tasks, the oldest first."""
    done = (task for task in state.tasks.values() if task.status in outcome.DONE)
    rows = ((run_lookup.commit_of(task), task) for task in done)
    kept = [(commit, task) for commit, task in rows if commit]
    return sorted(kept, key=lambda row: row[1].checkpoint.seq if row[1].checkpoint else 0)


def is_rewritten(services: Services, state: RunState) -> bool:
    """Return whether the branch of a run does not have its newest commit, and with that none that is below it."""
    made = commits(state)
    if not made or services.history.head().branch != state.branch:
        return False
    return not services.history.descends(made[-1][0])


def lost(services: Services, state: RunState) -> dict[str, str]:
    """Return the done tasks of an unfinished run that the branch lost, with their commits.

    It has neither the commit, nor one with its trailers, nor the files as this task or a later one left them.
    """
    if state.state in CLOSED or not is_rewritten(services, state):
        return {}
    made, since = commits(state), services.history.trailers_since(state.base.commit)
    named = {(t.get("Idumb-Run"), t.get("Idumb-Task")) for _, t in since}
    head = services.history.head_tree()
    found: dict[str, str] = {}
    for number, (commit, task) in enumerate(made):
        there = {(run, task.id) for run in (state.id, task.carried_from)} & named or services.history.descends(commit)
        later = [made_later for _, made_later in made[number:]]
        if not there and not all(_is_there(services, state, head, path, later) for path in task.work.touched):
            found[task.id] = commit
    return found


def _is_there(services: Services, state: RunState, head: str, path: str, tasks: list[TaskState]) -> bool:
    present = services.trees.entry(head, path)
    trees = (left_by(services, state, task.id) for task in tasks if path in task.work.touched)
    return any(tree is not None and services.trees.entry(tree, path) == present for tree in trees)


def words_of_lost(state: RunState, gone: Mapping[str, str]) -> str:
    """Return in words what `lost` returned; "" if that is nothing."""
    return "; ".join(f"commit {c[:7]} of {task} is no longer on {state.branch or 'HEAD'}" for task, c in gone.items())


def mark_lost(services: Services, state: RunState) -> str:
    """Mark what the branch lost as not done, in a state that is only read. Return it in words; "" if there is none."""
    gone = lost(services, state)
    said = words_of_lost(state, gone)
    for task in gone:
        state.tasks[task] = replace(state.tasks[task], status=outcome.PENDING, reason=said)
    return said


def refuse_lost(services: Services, state: RunState) -> None:
    """Refuse to build on work that the branch lost: `resume` asks what follows."""
    if gone := lost(services, state):
        hint = f"idumb resume {state.phase} asks what follows"
        raise Refusal("run.history-changed", words_of_lost(state, gone), hint=hint, details={"phase": state.phase})


def ask_about_lost(context: RunContext) -> bool:
    """Ask what follows if the branch lost done work, and do it; return whether the run is to start afresh.

    Without an answer, nothing runs.
    """
    services, state = context.services, context.state
    gone = lost(services, state)
    if not gone:
        return False
    task, commits = context.contract.tasks[next(iter(gone))], tuple(gone.values())
    ahead = services.history.descends(services.history.head().commit or "", commits[-1])
    question = _question(task, state, words_of_lost(state, gone), commits, ahead=ahead)
    answer = context.journal.ask_once(services.asker, question)
    if answer is None:
        decide = f"idumb decide {question.id} {questions.AGAIN}, then idumb resume {state.phase}"
        raise Waiting("run.history-changed", question.what, hint=decide, details={"phase": state.phase})
    if answer.choice == questions.RETURN:
        bring_back(services, state, commits[-1])
    if answer.choice == questions.AGAIN:
        tasks = context.contract.tasks
        below = (tasks[id] for id in graph.dependents(context.contract.dependencies, gone))
        human = (task.id for task in below if task.kind == "human-verify")
        looked = (id for id in human if state.tasks[id].status in outcome.DONE)  # what a person looked at is gone
        context.journal.write(*(context.journal.event("task.reset", id, reason="history") for id in (*gone, *looked)))
    return answer.choice == questions.FRESH


def _question(task: Task, run: RunState, words: str, commits: Sequence[str], *, ahead: bool) -> Decision:
    """Return the question what follows if the branch lost commits of done tasks, of which this is the first.

    `ahead`: the commits are on top of the branch, so that they can be brought back as they were proven.
    """
    earlier = {i: q for i, q in run.decisions.items() if (q["kind"], q["task"]) == (HISTORY, task.id)}
    # Its answer was carried out at once unless it was `again`, so commits that are gone again are another question.
    carried_out = {i for i in earlier if i in run.answers and run.answers[i]["choice"] != questions.AGAIN}
    over = [i for i, q in earlier.items() if tuple(q["evidence"]) != tuple(commits) or i in carried_out]
    without = () if ahead else (questions.RETURN,)
    return questions.about(HISTORY, task, 1 + len(over), commits, without=without, words=words)


def bring_back(services: Services, state: RunState, newest: str) -> None:
    """Write what the branch lost into the user's tree again, and move the branch forward to it.

    Refusal `run.history-changed` if he changed one of these files; then nothing is written.
    """
    trees, history = services.trees, services.history
    head, branch = history.head().commit, state.branch
    before, after = history.tree_of(head), history.tree_of(newest)
    paths = [change.path for change in trees.changes(before, after)]
    other = "" if not head or history.descends(head, newest) else "the branch has other commits now"
    if why := history.in_progress() or other:
        raise _not_returned(state, newest, why)
    name = run_ref(services, state.id, f"before-return-{newest[:12]}")
    trees.snapshot(name, f"before commit {newest[:7]} was brought back")
    shown = services.open_checkout().checked_out
    conflicts = delivery.write_unless_changed(services, shown(after, paths), shown(before, paths), before, paths)
    why = f"you changed {wording.listed(c.path for c in conflicts)}" if conflicts else ""
    why = why or history.advance(branch, newest, head, f"return to {newest[:7]}")
    if why:
        raise _not_returned(state, newest, why)


def _not_returned(state: RunState, newest: str, why: str) -> Refusal:
    return Refusal(
        "run.history-changed",
        f"Commit {newest[:7]} cannot be brought back: {why}",
        hint=f"Commit your changes, then git cherry-pick {newest}; or idumb resume {state.phase}, which asks again",
        details={"phase": state.phase},
    )


# The end of a run


class FinalState(Struct, frozen=True):
    """`wrong` are lines about work that is not as the tasks of the run left it.

    `changed` are files of the run that differ in the user's working tree from HEAD.
    """

    wrong: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def words(self) -> tuple[str, ...]:
        """Return what a person should know although nothing failed by it."""
        if not self.changed:
            return ()
        return (f"Not as committed in your working tree: {wording.listed(self.changed)}",)


def compare_at_end(services: Services, state: RunState, contract: Contract, present: str) -> FinalState:
    """Compare `present`, a result of `present_tree`, with what the tasks left. Refusal `snapshots.freed`."""
    kept_runs.require_snapshots(services, state, state.attempted)
    writers = _last_writers(state)
    committed = {path for path, task in writers.items() if run_lookup.commit_of(state.tasks[task]) is not None}
    head = services.history.head_tree()
    trees = {path: head if path in committed else present for path in writers}
    wrong = (*_not_as_left(services, state, trees, writers), *_missing(services, state, contract, present, writers))
    changed = services.history.uncommitted(sorted(committed)) if committed else ()
    return FinalState(wrong, tuple(changed))


def present_tree(services: Services, contract: Contract) -> str:
    """Return the present tree of the user's files, with the ignored files that tasks declare by name."""
    named = {path for task in contract.tasks.values() for path in ledger.named_paths(task.files)}
    return services.trees.scan(sorted(named))


def _last_writers(state: RunState) -> dict[str, str]:
    """Return each path with the done task that changed it last, unless an unfinished task changed it later."""
    writers: dict[str, str] = {}
    for task in sorted(state.attempted, key=state.attempted.__getitem__):
        task_state = state.tasks[task]
        if task_state.status in outcome.DONE:
            writers.update(dict.fromkeys(task_state.work.touched, task))
        elif task_state.status not in outcome.ENDED:
            for path in task_state.work.touched:
                writers.pop(path, None)
    return writers


def _not_as_left(
    services: Services, state: RunState, trees: Mapping[str, str], writers: Mapping[str, str]
) -> Iterator[str]:
    for path, task in writers.items():
        left = left_by(services, state, task)
        if left is None:
            continue
        expected, present = services.trees.entry(left, path), services.trees.entry(trees[path], path)
        if expected == present:
            continue
        if expected is not None and present is not None and expected.oid == present.oid:
            yield f"{path} has mode {present.mode:o}, and {task} left it with {expected.mode:o}"
        else:
            yield f"{path} is not as {task} left it"


def left_by(services: Services, state: RunState, task: str) -> str | None:
    """Return the tree that a task committed, or left; None if it is gone, because the user rewrote history."""
    commit = run_lookup.commit_of(state.tasks[task])
    if commit is None:
        return state.tasks[task].work.left_tree
    try:
        return services.history.tree_of(commit)
    except KeyError:
        return None


def _missing(
    services: Services, state: RunState, contract: Contract, tree: str, writers: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each file that a completed task declares to create and that is missing.

    What a pattern matched is in `writers`.
    """
    claims = [(c, t.id) for t in contract.tasks.values() for c in ledger.written_claims(t.files or ())]
    deleted = {claim.path for claim, _ in claims if claim.verb == "delete"}
    for claim, task in claims:
        if claim.verb != "create" or claim.path in deleted or claim.path in writers:
            continue
        if state.tasks[task].status != outcome.COMPLETED or paths.has_wildcard(claim.path):
            continue
        if services.trees.entry(tree, claim.path) is None:
            yield f"{claim.path}, created by {task}, is missing"
