"""`{phase}-SUMMARY.md` from the recorded state of a run, in seven sections; its template has the words."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from idumb.app.core import schedule
from idumb.domain import contract as contracts
from idumb.domain import outcome, rerun
from idumb.domain.action import STOPPED
from idumb.domain.contract import Contract
from idumb.domain.runs import run, spending
from idumb.domain.runs.run import RunState, TaskState
from idumb.views import graph, phrases, report_templates
from idumb.views.report_templates import Recorded

Tasks = Mapping[str, TaskState]
Evidence = Mapping[str, Sequence[Recorded]]
"""By task, the payloads of its last attempt's `evidence.recorded` events."""
LineCounts = Mapping[str, tuple[int | None, int | None]]
"""By path, the lines added and removed; None for a binary file."""
_MOST_NODES = 120
_MOST_COMMANDS = 100
_ENDED = frozenset({run.COMPLETED, run.FAILED})
_MOST_CAUSES = 5
_IN_NO_TABLE = (outcome.SKIPPED, outcome.WAITING, *outcome.NOT_RUN)


def render(
    contract: Contract,
    state: RunState,
    statuses: Mapping[str, str],
    *,
    evidence: Evidence,
    line_counts: LineCounts,
    now: str,
    links: Mapping[str, str],
    clone: Sequence[str] = (),
) -> str:
    """Return the whole document.

    - `statuses`: those of `schedule.statuses`.
    - `links`: by task, the path of its checkpoint from the summary's folder.
    - `clone`: the shell lines that clone the work.
    """

    def ids(*wanted: str) -> tuple[str, ...]:
        return tuple(id for id, status in statuses.items() if status in wanted)

    tasks = {id: state.tasks.get(id) or TaskState(id, "") for id in statuses}
    done, skipped, settled = ids(*outcome.DONE), ids(outcome.SKIPPED), ids(*outcome.ENDED)
    blocked = schedule.root_causes(contract, statuses, ids(outcome.BLOCKED))
    causes = {id: roots[:_MOST_CAUSES] for id, roots in blocked.items()}
    reasons = {id: _reasons(task) for id, task in tasks.items()}
    held = {needed for id, roots in causes.items() for needed in (id, *contract.dependencies[id], *roots)}
    spent = spending.total(state.spent.values())
    reported = spent.tokens or spent.cost_usd or spent.unknown_tokens or spent.unknown_cost
    files = _files(state, line_counts)
    return report_templates.render(
        "summary.md",
        phase=contract.phase,
        contract=contract,
        state=state,
        statuses=statuses,
        tasks=tasks,
        evidence=evidence,
        line_counts=line_counts,
        now=now,
        links=links,
        ended=state.state in _ENDED,
        result="pass" if len(settled) == len(statuses) else "partial" if settled else "fail",
        seconds=sum(task.progress.seconds for task in state.tasks.values()),
        used=phrases.spent(asdict(spent)) if reported else {},
        done=done,
        accepted=ids(outcome.ACCEPTED),
        failed=ids(outcome.FAILED),
        skipped=skipped,
        blocked=ids(outcome.BLOCKED),
        waiting=ids(outcome.WAITING),
        not_run=ids(*outcome.NOT_RUN),
        runnable=ids(outcome.READY, outcome.PENDING),
        before=[id for id in ids(outcome.OMITTED) if contract.tasks[id].is_history],
        # The tables link the checkpoints of completed, failed and blocked tasks.
        others=[task for task in ids(*_IN_NO_TABLE) if task in links],
        causes=causes,
        diagram=_diagram(contract, statuses, statuses),
        of_blocked=_diagram(contract, statuses, held),
        controls=[(id, *row) for id in done for row in report_templates.controls(evidence.get(id, ()))],
        proof=_proof(contract, done, evidence, clone),
        reasons=reasons,
        deviations=_deviations(contract, state, tasks, reasons, skipped),
        symbols=[(id, words) for id, task in tasks.items() for words in task.work.symbols],
        files=files,
        folders=_folders(files),
        totals=_totals(files, line_counts),
        undecided=any(
            question["kind"] == STOPPED and statuses.get(question["task"]) == outcome.FAILED
            for question in state.decisions.values()
        ),
    )


def _files(state: RunState, line_counts: LineCounts) -> list[str]:
    """Return the paths of all checkpoints and line counts. A path without a count was restored."""
    kept = {path for t in state.tasks.values() if t.checkpoint is not None for path in t.checkpoint.files}
    return sorted(kept | set(line_counts))


def _diagram(contract: Contract, statuses: Mapping[str, str], shown: Collection[str]) -> str | None:
    """Return the graph of these tasks; None if it is too large to be read."""
    return graph.mermaid(contract, statuses, shown) if len(shown) <= _MOST_NODES else None


def _proof(contract: Contract, ids: Sequence[str], evidence: Evidence, clone: Sequence[str]) -> Mapping[str, Any]:
    """Return the shell lines that rerun the checks of the completed tasks in a clone, without idumb.

    `weaker` is what the recorded checks had and a clone of a stranger has not.
    """
    plans = contract.plan_of
    standing = contracts.without_replaced(contract, ids, ids)
    checks = [(task.id, check) for task in standing for check in rerun.checks_of_task(task, plans[task.id])]
    checks += [("phase", check) for check in rerun.checks_of_phase(contract.plans)]
    commands = rerun.shell_lines(checks)
    if not clone or not commands:
        return {}
    recorded = [{**row, "subject": f"{id} {row['subject']}"} for id in ids for row in evidence.get(id, ())]
    return {
        "lines": [*clone, *commands[:_MOST_COMMANDS]],
        "more": max(0, len(commands) - _MOST_COMMANDS),
        "weaker": report_templates.weakened(recorded),
    }


def _deviations(
    contract: Contract, state: RunState, tasks: Tasks, reasons: Mapping[str, str], skipped: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """Return what is not as the plan has it, or not as it had it first."""
    late = [
        f"{id}: took {phrases.duration(task.progress.seconds)}, estimated {phrases.duration(estimate)}"
        for id, task in tasks.items()
        if (estimate := contract.tasks[id].estimate) is not None and task.progress.seconds > estimate
    ]
    amendments, answers = state.contract.amendments, state.answers.values()
    return [
        ("Files modified outside scope", [f"{i}: {text}" for i, t in tasks.items() for text in t.work.deviations]),
        ("Scope changes accepted", [f"{i}: {path}" for i, t in tasks.items() for path in t.work.accepted_paths]),
        ("Tasks skipped", [f"{i}: {reasons[i]}" for i in skipped]),
        ("Timeline deviations", late),
        ("Amendments", [f"Version {a['version']}: {'; '.join(a['what'])}" for a in amendments]),
        ("Answers of people", [f"{a['decision']}: {a['choice']}, by {a['by']}" for a in answers]),
    ]


def _reasons(task: TaskState) -> str:
    """Return why a task has its status."""
    error = task.checkpoint.error if task.checkpoint is not None else None
    return "; ".join(dict.fromkeys(filter(None, (task.reason, error)))) or "no reason is recorded"


def _folders(files: Sequence[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each folder with its files: their names and paths."""
    folders: dict[str, list[tuple[str, str]]] = {}
    for path in files:
        folder, name = posixpath.split(path)
        folders.setdefault(folder, []).append((name, path))
    return sorted(folders.items())


def _totals(files: Sequence[str], line_counts: LineCounts) -> Mapping[str, int]:
    counted = [line_counts[path] for path in files if path in line_counts]
    return {
        "added": sum(added or 0 for added, _ in counted),
        "removed": sum(removed or 0 for _, removed in counted),
        "binary": sum(1 for counts in counted if None in counts),
        "uncounted": len(files) - len(counted),
    }
