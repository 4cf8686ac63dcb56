"""`{phase}-SUMMARY.md` from the recorded state of a run, in seven sections."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass  # noqa: TID251 - it keeps what it has worked out
from functools import cached_property
from typing import Any

from idumb.domain import outcome, rerun
from idumb.domain.contract import Contract
from idumb.domain.decision import STOPPED
from idumb.domain.runs import run, spending
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import TaskState
from idumb.views import graph, markup, quantities
from idumb.views.reports import evidence_table, rendering, run_status
from idumb.views.reports.evidence_table import Recorded
from idumb.views.reports.rendering import Markdown

LineCounts = Mapping[str, tuple[int | None, int | None]]
MOST_NODES = 120
_MOST_COMMANDS = 100
_ENDED = frozenset({run.COMPLETED, run.FAILED})
_COUNTS = (
    ("Completed", outcome.DONE),
    ("Failed", (outcome.FAILED,)),
    ("Skipped", (outcome.SKIPPED,)),
    ("Blocked", (outcome.BLOCKED,)),
    ("Waiting", (outcome.WAITING,)),
    ("Not run yet", outcome.NOT_RUN),
)
_IN_NO_TABLE = (outcome.SKIPPED, outcome.WAITING, *outcome.NOT_RUN)


def render(
    contract: Contract,
    state: RunState,
    statuses: Mapping[str, str],
    *,
    evidence: Mapping[str, Sequence[Recorded]],
    line_counts: LineCounts,
    now: str,
    links: Mapping[str, str],
    clone: Sequence[str] = (),
) -> str:
    """Return the whole document.

    - `statuses`: those of `schedule.statuses`.
    - `evidence`: by task, the payloads of its last attempt's `evidence.recorded` events.
    - `line_counts`: by path, the lines added and removed; None for a binary file.
    - `links`: by task, the path of its checkpoint from the summary's folder.
    - `clone`: the shell lines that clone the work.
    """
    facts = _Facts(contract, state, statuses, evidence, line_counts, links)
    return rendering.render(
        "summary.md",
        fields=facts.front_matter(now),
        phase=contract.phase,
        state=state,
        statuses=statuses,
        evidence=evidence,
        line_counts=line_counts,
        overall=facts.overall(),
        result=facts.result,
        seconds=facts.seconds,
        used=facts.used(),
        attempted=sum(1 for task in state.tasks.values() if task.attempt.number),
        counts=facts.counts(),
        # The tables link the checkpoints of completed, failed and blocked tasks.
        others=[task for task in facts.ids(*_IN_NO_TABLE) if task in links],
        picture=facts.picture(),
        done=facts.ids(*outcome.DONE),
        failed=facts.ids(outcome.FAILED),
        blocked=facts.ids(outcome.BLOCKED),
        waiting=facts.ids(outcome.WAITING),
        runnable=facts.ids(outcome.READY, outcome.PENDING),
        controls=[(i, *row) for i in facts.ids(*outcome.DONE) for row in evidence_table.controls(evidence.get(i, ()))],
        proof=facts.proof(clone),
        blocked_picture=facts.blocked_picture(),
        deviations=facts.deviations(),
        folders=facts.folders(),
        totals=facts.totals(),
        symbols=[(i, words) for i in statuses for words in facts.task(i).work.symbols],
        undecided=any(
            question["kind"] == STOPPED and statuses.get(question["task"]) == outcome.FAILED
            for question in state.decisions.values()
        ),
        **{function.__name__: function for function in facts.of_a_task()},
    )


@dataclass(frozen=True)
class _Facts:
    contract: Contract
    state: RunState
    statuses: Mapping[str, str]
    evidence: Mapping[str, Sequence[Recorded]]
    line_counts: LineCounts
    links: Mapping[str, str]

    def of_a_task(self) -> tuple[Callable[[str], Any], ...]:
        """Return the functions that the template calls with the id of a task."""
        words = (self.took, self.validator, self.own_commit, self.blocked_by, self.unblock, self.remediation)
        return (self.task, self.title, self.linked, self.reasons, *words)

    def counts(self) -> list[tuple[str, tuple[str, ...]]]:
        before = tuple(id for id in self.ids(outcome.OMITTED) if self.contract.tasks[id].is_history)
        counted = [(name, self.ids(*which)) for name, which in _COUNTS]
        return [*counted, ("Done before idumb", before)] if before else counted

    def ids(self, *statuses: str) -> tuple[str, ...]:
        return run_status.with_status(self.statuses, *statuses)

    def task(self, task_id: str) -> TaskState:
        return self.state.tasks.get(task_id) or TaskState(task_id, "")

    def title(self, task_id: str) -> str:
        return self.contract.tasks[task_id].title

    def linked(self, task_id: str) -> Markdown:
        target, id = self.links.get(task_id), markup.prose(task_id)
        return Markdown(markup.link(id, target) if target else id)

    @cached_property
    def result(self) -> str:
        return run_status.result(self.statuses)

    @cached_property
    def causes(self) -> Mapping[str, tuple[str, ...]]:
        return run_status.causes(self.contract, self.statuses)

    @cached_property
    def seconds(self) -> float:
        """The working time of this run, without carried tasks."""
        return sum(task.progress.seconds for task in self.state.tasks.values())

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The paths of all checkpoints and line counts. A path without a count was restored."""
        kept = {path for t in self.state.tasks.values() if t.checkpoint is not None for path in t.checkpoint.files}
        return tuple(sorted(kept | set(self.line_counts)))

    def front_matter(self, now: str) -> dict[str, markup.Scalar]:
        return {
            "type": "summary",
            "phase": self.contract.phase,
            "status": "executed" if self.state.state in _ENDED else "partial",
            "created": now,
            "validator": "execute-phase-workflow",
            "tasks_completed": len(self.ids(*outcome.DONE)),
            "tasks_failed": len(self.ids(outcome.FAILED)),
            "tasks_skipped": len(self.ids(outcome.SKIPPED)),
            "tasks_blocked": len(self.ids(outcome.BLOCKED)),
            "total_duration_minutes": round(self.seconds / 60),
            "files_modified_count": len(self.files),
            "run": self.state.id,
            "result": self.result,
            "tasks_accepted": len(self.ids(outcome.ACCEPTED)),
            "tasks_total": len(self.statuses),
            "contract_hash": self.contract.hash,
            "tasks_waiting": len(self.ids(outcome.WAITING)),
            "tasks_pending": len(self.ids(*outcome.NOT_RUN)),
        }

    def overall(self) -> str:
        """Return the overall status; a run without failures that has not ended is unfinished."""
        if self.result == "pass":
            return "passed"
        if not self.ids(outcome.FAILED, outcome.SKIPPED, outcome.BLOCKED):
            return "unfinished"
        return "partially complete" if self.result == "partial" else "failed"

    def used(self) -> Mapping[str, str]:
        """Return the usage that agents reported in this run; empty without any."""
        spent = spending.total(self.state.spent.values())
        reported = spent.tokens or spent.cost_usd or spent.unknown_tokens or spent.unknown_cost
        return quantities.spent(spent) if reported else {}

    def picture(self) -> Mapping[str, Any]:
        """Return the graph of all tasks, or of unfinished ones if there are too many."""
        if len(self.statuses) <= MOST_NODES:
            return {"mermaid": self._drawn(set(self.statuses))}
        undone = {task_id for task_id, status in self.statuses.items() if status not in outcome.DONE}
        undone |= {needed for task_id in tuple(undone) for needed in self.contract.dependencies[task_id]}
        return {"only": True, "mermaid": self._drawn(undone)} if 0 < len(undone) <= MOST_NODES else {}

    def blocked_picture(self) -> str | None:
        ids = self.ids(outcome.BLOCKED)
        shown = {needed for i in ids for needed in (i, *self.contract.dependencies[i], *self.causes[i])}
        return self._drawn(shown) if len(shown) <= MOST_NODES else None

    def _drawn(self, only: set[str]) -> str:
        return graph.mermaid(self.contract, self.statuses, only)

    def proof(self, clone: Sequence[str]) -> Mapping[str, Any]:
        """Return the shell lines that rerun the checks of the completed tasks in a clone, without idumb.

        `weaker` is what the recorded checks had and a clone of a stranger has not.
        """
        ids, plans = self.ids(*outcome.DONE), self.contract.plan_by_task()
        checks = [(i, check) for i in ids for check in rerun.checks_of_task(self.contract.tasks[i], plans[i])]
        checks += [("phase", check) for check in rerun.checks_of_phase(self.contract.plans)]
        commands = rerun.shell_lines(checks)
        if not clone or not commands:
            return {}
        recorded = [{**row, "subject": f"{i} {row['subject']}"} for i in ids for row in self.evidence.get(i, ())]
        return {
            "lines": [*clone, *commands[:_MOST_COMMANDS]],
            "more": max(0, len(commands) - _MOST_COMMANDS),
            "weaker": evidence_table.weakened(recorded),
        }

    def took(self, task_id: str) -> Markdown:
        """Return how long a task took, and in how many attempts if one was not enough."""
        task = self.task(task_id)
        if task.carried_from is not None:
            return Markdown(f"earlier run {markup.code(task.carried_from)}")
        attempts = f" in {task.attempt.number} attempts" if task.attempt.number > 1 else ""
        return Markdown(quantities.duration(task.progress.seconds) + attempts)

    def validator(self, task_id: str) -> str:
        task = self.task(task_id)
        if task.status == outcome.ACCEPTED:
            return "accepted by a person" + (f": {task.reason}" if task.reason else "")
        if task.carried_from is not None:
            return "proven by the earlier run"
        return evidence_table.summed(self.evidence.get(task_id, ()))

    def own_commit(self, task_id: str) -> Markdown:
        task = self.task(task_id)
        commit = task.accepted_commit or (task.checkpoint.commit if task.checkpoint is not None else None)
        return Markdown(f"`{quantities.short(commit)}`" if commit else "none")

    def reasons(self, task_id: str) -> str:
        """Return why a task has its status."""
        task = self.task(task_id)
        error = task.checkpoint.error if task.checkpoint is not None else None
        return "; ".join(dict.fromkeys(filter(None, (task.reason, error)))) or "no reason is recorded"

    def blocked_by(self, task_id: str) -> str:
        return ", ".join(f"{root} ({self.statuses[root]})" for root in self.causes[task_id])

    def unblock(self, task_id: str) -> Markdown:
        """Return how to unblock a task: fix or accept the cause, or remove the dependency."""
        phase, causes = self.contract.phase, self.causes[task_id]
        if not causes:
            return Markdown(f"`idumb resume {phase}`")
        root = causes[0]
        skipped = self.statuses[root] == outcome.SKIPPED
        fix = "" if skipped else f"Fix {root}, then `idumb resume {phase} --retry-failed`; or "
        return Markdown(f"{fix}`idumb accept {root} --why REASON`; or remove the dependency from the plan")

    def remediation(self, task_id: str) -> Markdown:
        """Return how to fix a failed task, by the outcome of its last attempt, as one sentence with commands."""
        look = f"idumb show {task_id}"
        ways = {
            outcome.TIMED_OUT: f"Find out what takes so long (`{look}`), or declare a longer Timeout in the plan",
            outcome.ERRORED: f"Fix the builder or the check so that it can run (`{look}` shows its output)",
            outcome.REFUSED: f"Provide what the attempt needs before it can start (`{look}` names it)",
        }
        ended = self.task(task_id).attempt.outcome or ""
        way = ways.get(ended, f"Read the output of the checks (`{look}`), fix the cause")
        return Markdown(f"{way}, then `idumb resume {self.contract.phase} --retry-failed`.")

    def deviations(self) -> list[tuple[str, list[str]]]:
        """Return what is not as the plan has it, or not as it had it first."""
        tasks = [(i, self.task(i)) for i in self.statuses]
        amendments, answers = self.state.contract.amendments, self.state.answers.values()
        return [
            ("Files modified outside scope", [f"{i}: {text}" for i, task in tasks for text in task.work.deviations]),
            ("Scope changes accepted", [f"{i}: {path}" for i, task in tasks for path in task.work.accepted_paths]),
            ("Tasks skipped", [f"{i}: {self.reasons(i)}" for i in self.ids(outcome.SKIPPED)]),
            ("Timeline deviations", [line for i in self.statuses if (line := self._late(i))]),
            ("Amendments", [f"Version {a['version']}: {'; '.join(a['what'])}" for a in amendments]),
            ("Answers of people", [f"{a['decision']}: {a['choice']}, by {a['by']}" for a in answers]),
        ]

    def _late(self, task_id: str) -> str:
        seconds, estimate = self.task(task_id).progress.seconds, self.contract.tasks[task_id].estimate
        if estimate is None or seconds <= estimate:
            return ""
        return f"{task_id}: took {quantities.duration(seconds)}, estimated {quantities.duration(estimate)}"

    def folders(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return each folder with its files: their names and paths."""
        folders: dict[str, list[tuple[str, str]]] = {}
        for path in self.files:
            folder, name = posixpath.split(path)
            folders.setdefault(folder, []).append((name, path))
        return sorted(folders.items())

    def totals(self) -> Mapping[str, int]:
        counted = [self.line_counts[path] for path in self.files if path in self.line_counts]
        return {
            "files": len(self.files),
            "added": sum(added or 0 for added, _ in counted),
            "removed": sum(removed or 0 for _, removed in counted),
            "binary": sum(1 for counts in counted if None in counts),
            "uncounted": len(self.files) - len(counted),
        }
