"""Writes the projections that people read. Never part of the truth: losing or failing them loses nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from idumb.app import context, handing, place, relock, schedule
from idumb.app.bench import Attempt, Bench
from idumb.app.journal import Journal
from idumb.app.recording import evidence_payload
from idumb.app.services import Services
from idumb.domain import outcome, quick
from idumb.domain.contract import Contract
from idumb.domain.plan import Task
from idumb.domain.run import RunState
from idumb.domain.settings import COMMIT_BUILDER, COMMITTED

BRAIN = ".idumb/brain"
STATE_FILE = f"{BRAIN}/state.json"
EVERY_SECONDS = 2.0
# A run spends at most a fiftieth of its time on projections.
_PAUSE = 50
# Every later task looks three times at every file, some six microseconds a file: a twentieth of a task's time.
_DOCUMENTS = 8000


def write(services: Services, path: str, text: str) -> None:
    """Write one projection; what the system refuses is told and stops nothing, because nothing is lost by it."""
    try:
        services.reports.write(path, text)
    except OSError as problem:
        services.reporter.note(f"{path} could not be written: {problem.strerror or problem}")


# Lines of a report that say when it was made; the tree has the report itself in it, so it is another each time.
_MOMENT = re.compile(r"(?m)^(created: .*|tree: .*|- \*\*(Time|Judged on):\*\* .*)$")


def write_report(services: Services, path: str, text: str) -> None:
    """Write a report that may be committed, unless the one that is there says the same of another moment."""
    existing, text = _existing(services, path), services.surroundings.shown(text)
    if existing is None or _MOMENT.sub("", existing) != _MOMENT.sub("", text):
        write(services, path, text)


def remove(services: Services, path: str) -> None:
    with suppress(OSError):
        services.reports.remove(path)


def _existing(services: Services, path: str) -> str | None:
    try:
        return services.reports.read(path)
    except OSError:
        return None


def is_projection(path: str) -> bool:
    """Whether idumb itself makes the file from the log, and git ignores it."""
    return path == STATE_FILE or (path.startswith(f"{BRAIN}/execution/") and path.endswith("/progress.json"))


def execution_folder(phase: str) -> str:
    return f"{BRAIN}/execution/{phase}"


def checkpoint_path(phase: str, task: str) -> str:
    return f"{execution_folder(phase)}/checkpoint-{task}.md"


def report_path(folder: str, what: str) -> str:
    """`.planning/phases/01-name/01-name-SUMMARY.md`."""
    return f"{folder}/{folder.rsplit('/', 1)[-1]}-{what}.md"


def checkpoint(bench: Bench, attempt: Attempt) -> None:
    """The document of a checkpoint waits for the next progress: git is asked about new files in one go."""
    state = bench.journal.state
    if state.tasks[attempt.task.id].checkpoint is None:
        return
    text = bench.services.documents.checkpoint(
        state, attempt.task, [evidence_payload(e) for e in attempt.evidence], attempt.ledger.as_list()
    )
    bench.pace.waiting[checkpoint_path(state.phase, attempt.task.id)] = text
    known = state.tasks[attempt.task.id]
    if known.handover:
        place_of = context.path(execution_folder(state.phase), known.id, known.attempt)
        bench.pace.waiting[place_of] = context.document(attempt.task, known.attempt, known.handover)


def checkpoint_again(services: Services, state: RunState, task: Task) -> None:
    """The same document, made from the log."""
    attempt = state.tasks[task.id].attempt
    evidence: list[Mapping[str, Any]] = []
    lines: list[Mapping[str, Any]] = []
    for event in services.log.events(run=state.id, task=task.id):
        if event.attempt == attempt and event.kind == "evidence.recorded":
            evidence.append(event.payload)
        elif event.attempt == attempt and event.kind == "attempt.finished":
            lines = list(event.payload["ledger"])
    write(services, checkpoint_path(state.phase, task.id), services.documents.checkpoint(state, task, evidence, lines))


def progress(bench: Bench) -> None:
    """Checkpoints and progress.json, at most every two seconds while a run goes on, so that long runs stay linear."""
    pace, moment = bench.pace, bench.services.clock.monotonic()
    pace.begun = moment if pace.begun is None else pace.begun
    pace.ended += 1
    if moment < pace.due:
        return
    if len(bench.journal.state.attempted) <= _DOCUMENTS * (moment - pace.begun) / pace.ended or pace.ended == 1:
        waiting_checkpoints(bench)
    write_progress(bench.services, bench.contract, bench.journal.state)
    now = bench.services.clock.monotonic()
    pace.due = now + max(EVERY_SECONDS, _PAUSE * (now - moment))


def waiting_checkpoints(bench: Bench) -> None:
    """Called at the end of a run too: thousands of tasks of milliseconds leave most of their documents until then."""
    while bench.pace.waiting:
        path, text = bench.pace.waiting.popitem()
        write(bench.services, path, text)


def write_progress(services: Services, contract: Contract, state: RunState) -> None:
    text = services.documents.progress(state, schedule.statuses(contract, state), head=services.history.head().commit)
    write(services, f"{execution_folder(state.phase)}/progress.json", text)


def ending(services: Services, contract: Contract, state: RunState) -> tuple[str, ...]:
    """Everything that is written at the end of a run; the Markdown files, which may be committed."""
    _missing_checkpoints(services, contract, state)
    shown = schedule.statuses(contract, state)
    write_progress(services, contract, state)
    now = services.clock.now()
    existing = _existing(services, STATE_FILE)
    write(
        services,
        STATE_FILE,
        services.documents.state(existing, state, version=services.version, now=now, result=result(shown)),
    )
    summary = report_path(contract.folder, "SUMMARY")
    links = {
        t: "/".join([".."] * contract.folder.count("/") + ["..", checkpoint_path(state.phase, t)])
        for t in state.tasks
        if state.tasks[t].checkpoint is not None
    }
    write_report(
        services,
        summary,
        services.documents.summary(
            contract,
            state,
            shown,
            evidence=evidence_by_task(services, state),
            line_counts=_line_counts(services, state),
            now=now,
            links=links,
        ),
    )
    checkpoints = (checkpoint_path(state.phase, t) for t in state.tasks if state.tasks[t].attempt)
    return (summary, *checkpoints, *handing.at_end(services, contract, state))


def _missing_checkpoints(services: Services, contract: Contract, state: RunState) -> None:
    """A run that was killed did not write its last ones, or left those of an earlier attempt."""
    for task in state.attempted:
        kept = state.tasks[task].checkpoint
        if task not in contract.tasks or kept is None:
            continue
        if kept.snapshot not in (_existing(services, checkpoint_path(state.phase, task)) or ""):
            checkpoint_again(services, state, contract.tasks[task])


def result(shown: Mapping[str, str]) -> str:
    """B's word for a run: pass, partial or fail."""
    done = sum(1 for s in shown.values() if s in outcome.DONE or s == outcome.SKIPPED)
    if done == len(shown):
        return "pass"
    return "partial" if done else "fail"


def evidence_by_task(services: Services, state: RunState) -> dict[str, list[Mapping[str, Any]]]:
    """The evidence of each task's last attempt, from the log."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for event in services.log.events(run=state.id, kind="evidence.recorded"):
        if event.task in state.tasks and event.attempt == state.tasks[event.task].attempt:
            found.setdefault(event.task, []).append(event.payload)
    return found


def _line_counts(services: Services, state: RunState) -> Mapping[str, tuple[int | None, int | None]]:
    """Lines added and removed between the run's base and its end, for the paths that its tasks touched."""
    if not state.attempted:
        return {}
    last = state.tasks[max(state.attempted, key=state.attempted.__getitem__)]
    touched = {path for task in state.attempted for path in state.tasks[task].touched}
    counts = services.trees.line_counts(state.base_tree, last.left or state.base_tree)
    return {path: count for path, count in counts.items() if path in touched}


def verification(services: Services, contract: Contract, state: RunState) -> tuple[str, ...]:
    """The report of `verify-work` after tasks were taken back or brought back: it says what the log says now."""
    path = report_path(contract.folder, "VERIFICATION")
    if "VERIFICATION" not in services.plans.recorded(contract.folder):
        return ()  # there is none, or somebody else wrote it
    record = state.verification
    if record is None:
        write_report(services, path, services.documents.unverified(contract, state, now=services.clock.now()))
    elif contract.hash == state.contract_hash:
        judged = services.log.events(run=state.id, kind="verification.recorded", newest_first=True)
        at = next((event.at for event in judged if event.payload == record), services.clock.now())
        write_report(services, path, services.documents.verification(contract, record, now=at))
    return (path,)


def to_commit(services: Services, state: RunState, reports: Sequence[str]) -> tuple[str, ...]:
    """Those of the Markdown reports, amended and quick plans that policy and settings say to commit, and that changed.

    Ignored files stay out of it; a document that is gone is committed as gone.
    """
    if not services.settings.git.commit_reports or state.policy not in COMMITTED or _commits_wait(state):
        return ()
    ours = (path for path, _ in state.plans if path.startswith(f"{quick.FOLDER}/"))
    return tuple(services.history.uncommitted([*reports, *ours, *relock.committable(services, state)]))


def _commits_wait(state: RunState) -> bool:
    """Whether a builder's commits wait for a person's answer: nothing may be committed before them, where HEAD is."""
    if state.policy != COMMIT_BUILDER:
        return False
    return any(t.status == outcome.WAITING and t.left != t.base for t in state.tasks.values())


def record_reports(services: Services, journal: Journal, reports: Sequence[str]) -> tuple[str, ...]:
    """Commit what is to be committed of the reports, and record it; warnings."""
    state = journal.state
    changed = to_commit(services, state, reports)
    subject = f"Phase {state.phase}: reports of run {state.number}"
    made = place.commit(services, changed, f"{subject}\n\nIdumb-Run: {state.id}\nIdumb-Reports: {state.phase}\n")
    if made.commit is not None:
        journal.write(journal.event("reports.committed", commit=made.commit, paths=list(changed)))
    return (f"git refused the commit of the reports: {made.words}",) if made.words and made.commit is None else ()
