"""Compares the working tree at the end of a run with what its tasks left: bytes, permissions, and unexpected files.

Undeclared changes during a task stop that task. Changes found here were made between or after tasks: in a file of the
run they leave the phase unproven; elsewhere they are reported and stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from idumb.app.core import kept_runs
from idumb.app.core.services import Services
from idumb.app.worktree import tool_leftovers
from idumb.domain import outcome, paths, wording
from idumb.domain.contract import Contract
from idumb.domain.proof import ledger
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import TaskState
from idumb.lazy_dataclass import dataclass

SHOWN = 50


@dataclass(frozen=True, slots=True)
class Workspace:
    """`wrong` are lines about files of the run that are not as its tasks left them.

    `unexpected` are paths that changed since the run began and that no task of it touched, at most `SHOWN`; `more`
    counts the rest. `uncertain` are those of them that changed since an attempt began which was interrupted: it may
    have changed them, if nobody said that they are theirs.
    """

    wrong: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    more: int = 0
    uncertain: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        return {"wrong": list(self.wrong), "unexpected": list(self.unexpected), "more": self.more}

    def words(self) -> tuple[str, ...]:
        """Return what a person should know although nothing failed by it."""
        certain = [path for path in self.unexpected if path not in self.uncertain]
        lines = []
        if certain:
            listed = wording.listed(certain, hidden=self.more)
            lines.append(f"Changed since the run began, but not by its tasks: {listed}")
        if self.uncertain:
            began = "Changed since an attempt began that was interrupted, by it, by a check or by you"
            lines.append(f"{began}: {wording.listed(self.uncertain)}")
        return tuple(lines)


def at_end(services: Services, state: RunState, contract: Contract) -> Workspace:
    """Compare the present tree."""
    return compare(services, state, contract, scan(services, contract))


def scan(services: Services, contract: Contract) -> str:
    """Return the present tree, with the ignored files that tasks declare by name."""
    return services.trees.scan(sorted(_named_paths(contract)))


def _named_paths(contract: Contract) -> frozenset[str]:
    return frozenset(path for task in contract.tasks.values() for path in ledger.named_paths(task.files))


def compare(services: Services, state: RunState, contract: Contract, tree: str) -> Workspace:
    """Compare a tree with what the tasks left, and with the run's base. Refusal `snapshots.freed`."""
    kept_runs.require(services, state, state.attempted)
    writers = _last_writers(state)
    wrong = (
        *_not_as_left(services, state, tree, writers),
        *_missing(services, state, contract, tree, writers),
    )
    foreign = tuple(_unexpected(services, state, contract, tree))
    uncertain = _uncertain(services, state) if foreign else frozenset()
    shown = foreign[:SHOWN]
    return Workspace(wrong, shown, max(0, len(foreign) - SHOWN), tuple(path for path in shown if path in uncertain))


def _uncertain(services: Services, state: RunState) -> frozenset[str]:
    """Return what changed since interrupted attempts began, without what a person called theirs later."""
    possible: set[str] = set()
    for event in services.log.events(run=state.id):
        if event.kind == "attempt.interrupted":
            possible.update(event.payload["others"])
        elif event.kind == "task.reset":
            possible.difference_update(event.payload.get("yours", ()))
    return frozenset(possible)


def _last_writers(state: RunState) -> dict[str, str]:
    """Return each path with the completed task that changed it last, unless an unfinished task changed it later."""
    writers: dict[str, str] = {}
    for task in sorted(state.attempted, key=state.attempted.__getitem__):
        task_state = state.tasks[task]
        if task_state.status == outcome.COMPLETED:
            writers.update(dict.fromkeys(task_state.work.touched, task))
        elif task_state.status not in outcome.ENDED:
            for path in task_state.work.touched:
                writers.pop(path, None)
    return writers


def _not_as_left(services: Services, state: RunState, tree: str, writers: Mapping[str, str]) -> Iterator[str]:
    for path, task in writers.items():
        left_tree = state.tasks[task].work.left_tree
        if left_tree is None:
            continue
        expected, present = services.trees.entry(left_tree, path), services.trees.entry(tree, path)
        if expected == present:
            continue
        if expected is not None and present is not None and expected.oid == present.oid:
            yield f"{path} has mode {present.mode:o}, and {task} left it with {expected.mode:o}"
        else:
            yield f"{path} is not as {task} left it"


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


def _undeclared(task: TaskState) -> tuple[str, ...]:
    """Return the undeclared changes of a task; nobody knows who made those since an interrupted attempt began."""
    return () if task.attempt.outcome == outcome.CANCELLED else task.work.deviations


def _unexpected(services: Services, state: RunState, contract: Contract, tree: str) -> Iterator[str]:
    """Yield changes since the base that no task, no check and not idumb made."""
    if state.workspace != "here" or not state.base.tree:
        return
    ours = {
        path
        for task in state.tasks.values()
        for path in (*task.work.touched, *task.work.accepted_paths, *_undeclared(task))
    }
    named_paths = _named_paths(contract)  # the base lacks those that git ignores
    changed = [
        c.path
        for c in services.trees.changes(state.base.tree, tree)
        if c.path not in ours
        and not (c.old is None and c.path in named_paths)
        and not paths.matches_any(c.path, paths.OWN_FILES)
    ]
    if not changed:
        return
    reported: set[str] = set()
    for event in services.log.events(run=state.id, kind="attempt.finished"):
        reported.update(event.payload["residue"], event.payload["touched"])
    rest = [path for path in changed if path not in reported]
    declared = (path for task in contract.tasks.values() for path in ledger.written_paths(task.files))
    yield from tool_leftovers.work_only(services, state, rest, tree, declared)
