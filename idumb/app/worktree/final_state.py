"""Compares what is there at the end of a run with what its tasks left: bytes, permissions, missing files.

Work that idumb committed is looked up in HEAD, other work in the user's working tree. Changes of the user in his own
tree are named, and are no failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from idumb.app.core import kept_runs, run_lookup
from idumb.app.core.services import Services
from idumb.domain import outcome, paths, wording
from idumb.domain.contract import Contract
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState

SHOWN = 50


class FinalState(Struct, frozen=True):
    """`wrong` are lines about work that is not as the tasks of the run left it.

    `changed` are files of the run that differ in the user's working tree from HEAD, at most SHOWN; `more` counts the
    rest.
    """

    wrong: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    more: int = 0

    def as_dict(self) -> dict[str, object]:
        return {"wrong": list(self.wrong), "changed": list(self.changed), "more": self.more}

    def words(self) -> tuple[str, ...]:
        """Return what a person should know although nothing failed by it."""
        if not self.changed:
            return ()
        return (f"Not as committed in your working tree: {wording.listed(self.changed, hidden=self.more)}",)


def at_end(services: Services, state: RunState, contract: Contract, present: str) -> FinalState:
    """Compare what is there now; `present` is the `scan` of it. Refusal `snapshots.freed`."""
    kept_runs.require(services, state, state.attempted)
    writers = _last_writers(state)
    committed = {path for path, task in writers.items() if run_lookup.commit_of(state.tasks[task]) is not None}
    head = services.history.head_tree() or present
    trees = {path: head if path in committed else present for path in writers}
    wrong = (*_not_as_left(services, state, trees, writers), *_missing(services, state, contract, present, writers))
    changed = services.history.uncommitted(sorted(committed)) if committed else ()
    return FinalState(wrong, tuple(changed[:SHOWN]), max(0, len(changed) - SHOWN))


def scan(services: Services, contract: Contract) -> str:
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
