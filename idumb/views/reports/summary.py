"""Render `{phase}-SUMMARY.md` from the recorded state of a run, in seven sections."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from idumb.domain import outcome, rerun
from idumb.domain.contract import Contract
from idumb.domain.decision import STOPPED
from idumb.domain.runs import run, spending
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import TaskState
from idumb.lazy_dataclass import dataclass
from idumb.views import markup, quantities
from idumb.views.graph import mermaid
from idumb.views.reports import evidence_table, run_status

LineCounts = Mapping[str, tuple[int | None, int | None]]
MOST_NODES = 120
_FAILED_OUTPUT_LINES = 20
_MOST_COMMANDS = 100
_ENDED = frozenset({run.COMPLETED, run.FAILED})


@dataclass(frozen=True, slots=True)
class _Facts:
    contract: Contract
    state: RunState
    where: Mapping[str, str]
    causes: Mapping[str, tuple[str, ...]]
    evidence: Mapping[str, Sequence[evidence_table.Recorded]]
    line_counts: LineCounts
    links: Mapping[str, str]
    now: str
    clone: Sequence[str] = ()

    def ids(self, *statuses: str) -> tuple[str, ...]:
        return run_status.with_status(self.where, *statuses)

    def task(self, task_id: str) -> TaskState:
        return self.state.tasks.get(task_id) or TaskState(task_id, "")

    def title(self, task_id: str) -> str:
        return markup.prose(self.contract.tasks[task_id].title)

    def linked(self, task_id: str) -> str:
        target = self.links.get(task_id)
        return markup.link(markup.prose(task_id), target) if target else markup.prose(task_id)


def render(
    contract: Contract,
    state: RunState,
    statuses: Mapping[str, str],
    *,
    evidence: Mapping[str, Sequence[evidence_table.Recorded]],
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
    causes = run_status.causes(contract, statuses)
    facts = _Facts(contract, state, statuses, causes, evidence, line_counts, links, now, clone)
    lines = [*markup.frontmatter(_frontmatter(facts)), "", f"# Phase {markup.prose(contract.phase)} Execution Summary"]
    for title, section in _SECTIONS:
        lines += ["", f"## {title}", "", *section(facts)]
    return "\n".join(lines) + "\n"


def _frontmatter(facts: _Facts) -> dict[str, markup.Scalar | Sequence[markup.Scalar]]:
    return {
        "type": "summary",
        "phase": facts.contract.phase,
        "status": "executed" if facts.state.state in _ENDED else "partial",
        "created": facts.now,
        "validator": "execute-phase-workflow",
        "tasks_completed": len(facts.ids(*outcome.DONE)),
        "tasks_failed": len(facts.ids(outcome.FAILED)),
        "tasks_skipped": len(facts.ids(outcome.SKIPPED)),
        "tasks_blocked": len(facts.ids(outcome.BLOCKED)),
        "total_duration_minutes": round(_seconds(facts) / 60),
        "files_modified_count": len(_files(facts)),
        "run": facts.state.id,
        "result": run_status.result(facts.where),
        "tasks_accepted": len(facts.ids(outcome.ACCEPTED)),
        "tasks_total": len(facts.where),
        "contract_hash": facts.contract.hash,
        "tasks_waiting": len(facts.ids(outcome.WAITING)),
        "tasks_pending": len(facts.ids(*outcome.NOT_RUN)),
    }


def _seconds(facts: _Facts) -> float:
    """Return the working time of this run, without carried tasks."""
    return sum(task.progress.seconds for task in facts.state.tasks.values())


def _files(facts: _Facts) -> tuple[str, ...]:
    """Return the paths of all checkpoints and line counts. A path without a count was restored."""
    kept = {path for t in facts.state.tasks.values() if t.checkpoint is not None for path in t.checkpoint.files}
    return tuple(sorted(kept | set(facts.line_counts)))


def _overview(facts: _Facts) -> list[str]:
    attempted = sum(1 for task in facts.state.tasks.values() if task.attempt.number)
    plans = ", ".join(markup.code(path) for path, _ in facts.state.contract.plans) or "unknown"
    lines = [
        (
            f"- **Overall status:** {_overall(facts)} (run {markup.code(facts.state.id)} is "
            f"{markup.prose(facts.state.state)}{_because(facts.state.reason)})"
        ),
        (
            f"- **Time:** {quantities.moment(facts.state.started_at) or 'unknown'} to "
            f"{quantities.moment(facts.state.changed_at) or 'unknown'}, {quantities.duration(_seconds(facts))} at work"
        ),
        f"- **Plans:** {plans}",
        f"- **Base:** {_commit(facts.state.base.commit)}"
        + (f" on {markup.code(facts.state.branch)}" if facts.state.branch else ""),
        *_used(facts),
        f"- **Attempted:** {attempted} of {quantities.counted(len(facts.where), 'task')}",
    ]
    lines += [f"- **{name}:** {len(facts.ids(*statuses))}" for name, statuses in _COUNTS]
    # The tables below link the checkpoints of completed, failed and blocked tasks.
    others = [facts.linked(i) for i in facts.ids(*_IN_NO_TABLE) if i in facts.links]
    lines += [f"- **Other checkpoints:** {', '.join(others)}"] if others else []
    return [*lines, "", *_picture(facts)]


def _used(facts: _Facts) -> list[str]:
    """Return the usage that agents reported in this run."""
    spent = spending.total(facts.state.spent.values())
    if not (spent.tokens or spent.cost_usd or spent.unknown_tokens or spent.unknown_cost):
        return []
    tokens = quantities.sum_of(spent.tokens, spent.unknown_tokens, str(spent.tokens))
    cost = quantities.sum_of(spent.cost_usd, spent.unknown_cost, quantities.money(spent.cost_usd))
    return [f"- **Used by agents:** tokens {tokens}; cost {cost}"]


def _overall(facts: _Facts) -> str:
    """Return the overall status; a run without failures that has not ended is unfinished."""
    result = run_status.result(facts.where)
    if result == "pass":
        return "passed"
    if not facts.ids(outcome.FAILED, outcome.SKIPPED, outcome.BLOCKED):
        return "unfinished"
    return "partially complete" if result == "partial" else "failed"


_COUNTS = (
    ("Completed", (outcome.COMPLETED, outcome.ACCEPTED)),
    ("Failed", (outcome.FAILED,)),
    ("Skipped", (outcome.SKIPPED,)),
    ("Blocked", (outcome.BLOCKED,)),
    ("Waiting", (outcome.WAITING,)),
    ("Not run yet", outcome.NOT_RUN),
)


_IN_NO_TABLE = (outcome.SKIPPED, outcome.WAITING, *outcome.NOT_RUN)


def _because(reason: str) -> str:
    return f": {markup.prose(reason)}" if reason else ""


def _commit(commit: str | None) -> str:
    return f"commit `{quantities.short(commit)}`" if commit else "no commit"


def _picture(facts: _Facts) -> list[str]:
    """Return the graph of all tasks, or of unfinished ones if there are too many."""
    if len(facts.where) <= MOST_NODES:
        return _mermaid(facts, set(facts.where))
    undone = {task_id for task_id, status in facts.where.items() if status not in outcome.DONE}
    undone |= {needed for task_id in tuple(undone) for needed in facts.contract.dependencies[task_id]}
    whole = f"`idumb graph {facts.contract.phase}` draws all {len(facts.where)} tasks."
    if not undone or len(undone) > MOST_NODES:
        return [f"The graph is too large to show here; {whole}"]
    return [f"Only unfinished tasks and their dependencies are shown; {whole}", "", *_mermaid(facts, undone)]


def _mermaid(facts: _Facts, only: set[str]) -> list[str]:
    return ["```mermaid", *mermaid.render(facts.contract, facts.where, only).splitlines(), "```"]


def _completed(facts: _Facts) -> list[str]:
    ids = facts.ids(*outcome.DONE)
    if not ids:
        return ["None."]
    rows = (
        (facts.linked(i), facts.title(i), _duration(facts.task(i)), _validator(facts, i), _own_commit(facts.task(i)))
        for i in ids
    )
    controls = [
        f"- {facts.linked(i)}: {line}" for i in ids for line in evidence_table.controls(facts.evidence.get(i, ()))
    ]
    table = markup.table(("ID", "Title", "Duration", "Validator", "Commit"), rows)
    return [*table, *(["", *controls] if controls else []), *_proof(facts, ids)]


def _proof(facts: _Facts, ids: Sequence[str]) -> list[str]:
    """Return the shell lines that rerun the checks of the completed tasks in a clone, without idumb."""
    plans = facts.contract.plan_by_task()
    checks = [(i, check) for i in ids for check in rerun.checks_of_task(facts.contract.tasks[i], plans[i])]
    commands = rerun.shell_lines(
        [*checks, *(("phase", check) for check in rerun.checks_of_phase(facts.contract.plans))]
    )
    if not facts.clone or not commands:
        return []
    phase, more = facts.contract.phase, len(commands) - _MOST_COMMANDS
    rest = ["", f"`idumb prove {phase}` also runs {quantities.counted(more, 'more command')}."] if more > 0 else []
    return [
        "",
        (
            f"`idumb prove {phase}` reruns these checks in a fresh clone. To do the same without idumb, paste this in"
            " the top folder of the repository. It runs code of the repository."
        ),
        "",
        *markup.block("\n".join([*facts.clone, *commands[:_MOST_COMMANDS]]), "sh"),
        *rest,
        *_lacking(facts, ids),
    ]


def _lacking(facts: _Facts, ids: Sequence[str]) -> list[str]:
    """Return lines that name what the recorded checks had and a clone of a stranger has not."""
    weaker = evidence_table.weakened(
        [{**row, "subject": f"{i} {row['subject']}"} for i in ids for row in facts.evidence.get(i, ())]
    )
    words = "The recorded evidence proves less than these commands:"
    return ["", words, "", *(f"- {line}" for line in weaker)] if weaker else []


def _duration(task: TaskState) -> str:
    if task.carried_from is not None:
        return f"earlier run {markup.code(task.carried_from)}"
    return quantities.duration(task.progress.seconds)


def _validator(facts: _Facts, task_id: str) -> str:
    task = facts.task(task_id)
    if task.status == outcome.ACCEPTED:
        return f"accepted by a person{_because(task.reason)}"
    if task.carried_from is not None:
        return "proven by the earlier run"
    return evidence_table.summed(facts.evidence.get(task_id, ()))


def _own_commit(task: TaskState) -> str:
    kept = task.checkpoint
    commit = task.accepted_commit or (kept.commit if kept is not None else None)
    return f"`{quantities.short(commit)}`" if commit else "none"


def _failed(facts: _Facts) -> list[str]:
    ids = facts.ids(outcome.FAILED)
    if not ids:
        return ["None."]
    rows = ((facts.linked(i), facts.title(i), _reason(facts.task(i)), _attempts(facts.task(i))) for i in ids)
    lines = markup.table(("ID", "Title", "Failure Reason", "Attempts"), rows)
    for task_id in ids:
        lines += ["", *_diagnosis(facts, task_id)]
    return lines


def _reason(task: TaskState) -> str:
    error = task.checkpoint.error if task.checkpoint is not None else None
    reasons = [text for text in (task.reason, error) if text]
    return "; ".join(markup.prose(text) for text in dict.fromkeys(reasons)) or "no reason is recorded"


def _attempts(task: TaskState) -> str:
    """Return the number of all attempts, as in the list of dead letters; retries start their own count."""
    return str(task.attempt.number)


def _diagnosis(facts: _Facts, task_id: str) -> list[str]:
    task = facts.task(task_id)
    lines = [f"### {markup.prose(task_id)}: {facts.title(task_id)}", ""]
    bad = evidence_table.failures(facts.evidence.get(task_id, ()))
    for row in bad:
        code = "" if row.get("exit_code") is None else f" with exit {row['exit_code']}"
        lines += [
            (
                f"{markup.prose(row['subject'])} {evidence_table.result_words(row['result'])}{code}: "
                f"{evidence_table.how(row)}"
            ),
            "",
            *evidence_table.tail(row, _FAILED_OUTPUT_LINES),
            "",
        ]
    if not bad:
        lines += ["No check failed; only the reason above is recorded.", ""]
    if task.context.feedback:
        lines += ["Validator:", "", *markup.block(task.context.feedback, "text"), ""]
    return [*lines, f"**Remediation:** {_remediation(facts.contract.phase, task_id, task.attempt.outcome)}"]


def _blocked(facts: _Facts) -> list[str]:
    ids = facts.ids(outcome.BLOCKED)
    if not ids:
        return ["None."]
    rows = ((markup.prose(i), facts.title(i), _blocked_by(facts, i), _unblock(facts, i)) for i in ids)
    lines = markup.table(("ID", "Title", "Blocked By", "Unblock Path"), rows)
    shown = set(ids) | {needed for i in ids for needed in facts.contract.dependencies[i]}
    shown |= {root for i in ids for root in facts.causes[i]}
    return [*lines, "", *_mermaid(facts, shown)] if len(shown) <= MOST_NODES else lines


def _blocked_by(facts: _Facts, task_id: str) -> str:
    return ", ".join(f"{markup.prose(root)} ({facts.where[root]})" for root in facts.causes[task_id])


def _unblock(facts: _Facts, task_id: str) -> str:
    causes = facts.causes[task_id]
    skipped = bool(causes) and facts.where[causes[0]] == outcome.SKIPPED
    return _unblock_path(facts.contract.phase, causes, skipped=skipped)


def _deviations(facts: _Facts) -> list[str]:
    tasks = [(i, facts.task(i)) for i in facts.where]
    outside = [f"{markup.prose(i)}: {markup.prose(text)}" for i, task in tasks for text in task.work.deviations]
    accepted = [f"{markup.prose(i)}: {markup.code(path)}" for i, task in tasks for path in task.work.accepted_paths]
    groups = (
        ("Files modified outside scope", outside),
        ("Scope changes accepted", accepted),
        ("Tasks skipped", [f"{markup.prose(i)}: {_reason(facts.task(i))}" for i in facts.ids(outcome.SKIPPED)]),
        ("Timeline deviations", _late(facts)),
    )
    lines: list[str] = []
    for title, items in groups:
        if items:
            lines += [f"**{title}**", "", *(f"- {item}" for item in items), ""]
    return lines[:-1] or ["None."]


def _late(facts: _Facts) -> list[str]:
    late = []
    for task_id in facts.where:
        task, planned = facts.task(task_id), facts.contract.tasks[task_id]
        if planned.estimate is not None and task.progress.seconds > planned.estimate:
            late.append(
                f"{markup.prose(task_id)}: took {quantities.duration(task.progress.seconds)}, estimated "
                f"{quantities.duration(planned.estimate)}"
            )
    return late


def _files_modified(facts: _Facts) -> list[str]:
    files = _files(facts)
    if not files:
        return ["None."]
    folders: dict[str, list[str]] = {}
    for path in files:
        folders.setdefault(posixpath.dirname(path), []).append(path)
    lines: list[str] = []
    for folder in sorted(folders):
        lines += [f"**{markup.code(folder + '/') if folder else 'Top folder'}**", ""]
        lines += [f"- {markup.code(posixpath.basename(p))}: {_lines_of(facts.line_counts, p)}" for p in folders[folder]]
        lines += [""]
    return [*lines, _totals(facts.line_counts, files), *_symbols(facts)]


def _symbols(facts: _Facts) -> list[str]:
    """Return the symbols that each task added, removed and changed."""
    lines = [f"- {markup.prose(i)}: {markup.prose(words)}" for i in facts.where for words in facts.task(i).work.symbols]
    return ["", "**Symbols**", "", *lines] if lines else []


def _lines_of(counts: LineCounts, path: str) -> str:
    if path not in counts:
        return "as before the run, or not counted"
    return quantities.line_counts(*counts[path])


def _totals(counts: LineCounts, files: Sequence[str]) -> str:
    counted = [counts[path] for path in files if path in counts]
    added = sum(a or 0 for a, _ in counted)
    removed = sum(r or 0 for _, r in counted)
    binary = sum(1 for a, r in counted if a is None or r is None)
    extra = f", {binary} binary" if binary else ""
    uncounted = f", {len(files) - len(counted)} without a count" if len(counted) < len(files) else ""
    return f"Total: {quantities.counted(len(files), 'file')}, +{added} -{removed}{extra}{uncounted}."


def _waiting(facts: _Facts, task: str) -> str:
    if facts.task(task).decisions:
        return f"- {markup.prose(task)} waits for you: `idumb decisions` lists the questions."
    return f"- {markup.prose(task)} waits for an answer: write it, then run `idumb resume {facts.contract.phase}`"


def _next_steps(facts: _Facts) -> list[str]:
    phase, failed = facts.contract.phase, facts.ids(outcome.FAILED)
    result = run_status.result(facts.where)
    if facts.state.verified:
        return ["- The phase is verified; nothing is left to do."]
    if result == "pass":
        return [f"- Proceed to verification: `idumb verify-work {phase}`"]
    steps = [f"- {markup.prose(i)}: {_remediation(phase, i, facts.task(i).attempt.outcome)}" for i in failed]
    steps += [_waiting(facts, i) for i in facts.ids(outcome.WAITING)]
    if facts.ids(outcome.READY, outcome.PENDING):
        steps.append(f"- Continue with the remaining tasks: `idumb resume {phase}`")
    if failed:
        ways = f"`idumb accept {failed[0]} --why REASON` or `idumb skip {failed[0]} --why REASON`"
        steps.append(f"- Or keep failed tasks as they are ({ways}), then `idumb resume {phase}`")
    if any(decision["kind"] == STOPPED and decision["task"] in failed for decision in facts.state.decisions.values()):
        steps.append("- Decide what to do about tasks that have no attempts left: `idumb decisions`")
    if result == "partial":
        steps.append(f"- Verify what is done so far: `idumb verify-work {phase}`")
    return steps or ["- `idumb status` shows the state of the phase."]


def _remediation(phase: str, task_id: str, ended: str | None) -> str:
    """Return how to fix a failed task, by the outcome of its last attempt, as one sentence with commands."""
    look, again = f"idumb show {task_id}", f"then `idumb resume {phase} --retry-failed`"
    if ended == outcome.TIMED_OUT:
        return f"Find out what takes so long (`{look}`), or declare a longer Timeout in the plan, {again}."
    if ended == outcome.ERRORED:
        return f"Fix the builder or the check so that it can run (`{look}` shows its output), {again}."
    if ended == outcome.REFUSED:
        return f"Provide what the attempt needs before it can start (`{look}` names it), {again}."
    return f"Read the output of the checks (`{look}`), fix the cause, {again}."


def _unblock_path(phase: str, causes: Sequence[str], *, skipped: bool = False) -> str:
    """Return how to unblock a task: fix or accept the cause, or remove the dependency."""
    if not causes:
        return f"`idumb resume {phase}`"
    root = causes[0]
    fix = "" if skipped else f"Fix {root}, then `idumb resume {phase} --retry-failed`; or "
    return f"{fix}`idumb accept {root} --why REASON`; or remove the dependency from the plan"


_SECTIONS = (
    ("Overview", _overview),
    ("Completed Tasks", _completed),
    ("Failed Tasks", _failed),
    ("Blocked Tasks", _blocked),
    ("Deviations from Plan", _deviations),
    ("Files Modified", _files_modified),
    ("Next Steps", _next_steps),
)
