"""Writes the documents that people read. They are never the truth: losing one loses nothing."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from idumb.app.attempt import handoff_writer
from idumb.app.contract import contract_versions
from idumb.app.core import kept_runs, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, checkpoint_path, execution_folder, progress_path, report_path
from idumb.app.worktree import preconditions
from idumb.domain import outcome, rerun
from idumb.domain.contract import Contract
from idumb.domain.plans import phase_ids
from idumb.domain.proof import evidence as proof
from idumb.domain.runs import replay
from idumb.domain.runs.run import CLOSED, RunState

SET_ASIDE = "set-aside"
WRITTEN = "written"
"""What keeps the reports of a working tree as idumb last wrote them to files."""
EVERY_SECONDS = 2.0
# A run spends at most a fiftieth of its time on projections.
_PAUSE = 50
_MOST_ARGUMENTS = 1_000


def write(services: Services, path: str, text: str) -> None:
    """Write one document. A refusal by the system is reported and stops nothing."""
    try:
        _set_aside(services, path)
        services.files.write(path, text)
    except OSError as problem:
        services.reporter.note(f"{path} could not be written: {problem.strerror or problem}")


def _set_aside(services: Services, path: str) -> None:
    """Keep the bytes of a file that idumb did not write and whose place it needs."""
    name = path.rpartition("/")[2]
    mark = _MADE.get(name) or (_MADE[""] if name.startswith("checkpoint-") else "")
    text = services.files.read(path) if mark else None
    if text and mark not in text:
        set_aside(services, path, text)


def set_aside(services: Services, path: str, text: str) -> None:
    """Keep the text of a file that is about to be replaced, and say where."""
    kept = services.backups.keep(SET_ASIDE, path, text.encode("utf-8", "surrogateescape"))
    services.reporter.note(f"{path} is not as idumb wrote it; its content is kept in {kept}")


_MADE = {"progress.json": '"contract_hash":', "": "\nrun: "}
"""Text that marks a file as idumb's own: by its name, "" for checkpoints."""

# Lines that differ each time a report is written: its time, and the tree, which contains the report itself.
_MOMENT = re.compile(r"(?m)^(created: .*|tree: .*|- \*\*(Time|Judged on):\*\* .*)$")


def write_report(services: Services, path: str, text: str) -> None:
    """Write a report that may be committed, unless only its time differs from the present one.

    A report that somebody changed, and that no commit has, is kept first.
    """
    existing, text = _existing(services, path), services.redactor.redact(text)
    if existing is not None and _MOMENT.sub("", existing) == _MOMENT.sub("", text):
        return
    ref, name = f"refs/idumb/worktrees/{services.worktree}/{WRITTEN}", path.rpartition("/")[2]
    written = services.trees.kept_blobs(ref)
    if existing and not _is_known(services, path, existing, written.get(name)):
        set_aside(services, path, existing)
    write(services, path, text)
    blob = services.trees.store(text.encode("utf-8", "surrogateescape"))
    services.trees.keep_blobs(ref, {**written, name: blob}, "reports as idumb wrote them")


def _is_known(services: Services, path: str, text: str, written: str | None) -> bool:
    """Return whether HEAD has a report as it is, or idumb wrote it so."""
    kept = None if written is None else services.trees.read(written)
    return text.encode("utf-8", "surrogateescape") in (kept, _in_head(services, path))


def _in_head(services: Services, path: str) -> bytes | None:
    entry = services.trees.entry(services.history.head_tree(), path)
    return None if entry is None else services.trees.read(entry.oid)


def remove(services: Services, path: str) -> None:
    """Remove a document if it is there."""
    with suppress(OSError):
        services.files.remove(path)


def _existing(services: Services, path: str) -> str | None:
    try:
        return services.files.read(path)
    except OSError:
        return None


def handovers(services: Services, state: RunState, contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield path and text of what attempts of a run left to fresh agents."""
    for event in services.log.events(run=state.id, kind="attempt.finished"):
        task, handover = contract.tasks.get(event.task or ""), event.payload.get("handover")
        if task is not None and handover:
            path = f"{execution_folder(state.phase)}/context-{task.id}-{event.attempt}.md"
            yield path, f"# {task.id}, attempt {event.attempt}: handover to the next agent\n\n{handover}\n"


def checkpoints(
    services: Services, state: RunState, contract: Contract, tasks: Collection[str]
) -> Iterator[tuple[str, str | None]]:
    """Yield path and text of the documents of checkpoints from the log; None if a rollback removed one.

    Each says what was known when its checkpoint was recorded. `state` may be ahead of the log.
    """
    now, trimmed = RunState(), set[str]()
    evidence: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    lines: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    texts: dict[int, Callable[[], str]] = {}
    for event in services.log.events(run=state.id):
        replay.apply(now, event)
        key = event.task or "", event.attempt or 1
        if event.kind == "rollback.completed":
            trimmed.update(event.payload["tasks"])
        elif event.kind == "evidence.recorded":
            evidence.setdefault(key, []).append(event.payload)
        elif event.kind == "attempt.finished":
            lines[key] = event.payload["ledger"]
        elif event.kind == "checkpoint.recorded" and event.task in tasks:
            moment = RunState(id=state.id, tasks={key[0]: now.tasks[key[0]]})
            facts = proof.standing(evidence.get(key, ())), lines.get(key, ())
            texts[event.seq] = functools.partial(services.documents.checkpoint, moment, contract.tasks[key[0]], *facts)
    for name in tasks:
        kept = state.tasks[name].checkpoint
        if kept is None and name in trimmed:
            yield checkpoint_path(state.phase, name), None
        elif kept is not None and kept.seq in texts:
            yield checkpoint_path(state.phase, name), texts[kept.seq]()


def write_progress_if_due(context: RunContext, due: float) -> float:
    """Write progress.json if it is `due`, at most every two seconds, so that long runs stay linear.

    Return when it is due next, in monotonic seconds.
    """
    moment = context.services.clock.monotonic()
    if moment < due:
        return due
    write_progress(context.services, context.contract, context.state)
    now = context.services.clock.monotonic()
    return now + max(EVERY_SECONDS, _PAUSE * (now - moment))


def write_at_stop(services: Services, contract: Contract, state: RunState) -> None:
    """Write what every stop of a run writes: its progress, and what its attempts left for people and agents."""
    write_progress(services, contract, state)
    if state.reports_in_log:
        return
    _missing_checkpoints(services, contract, state)
    for path, text in handovers(services, state, contract):
        if _existing(services, path) is None:
            write(services, path, text)


def write_progress(services: Services, contract: Contract, state: RunState) -> None:
    text = services.documents.progress(state, schedule.statuses(contract, state))
    write(services, progress_path(state.phase), text)


def is_behind(services: Services, state: RunState) -> bool:
    """Return whether progress.json describes an earlier moment than the run's last one."""
    return f'"updated_at": "{state.moved_at}"' not in (_existing(services, progress_path(state.phase)) or "")


def write_at_end(services: Services, contract: Contract, state: RunState) -> tuple[str, ...]:
    """Write everything that the end of a run writes; return the Markdown files, which may be committed."""
    write_at_stop(services, contract, state)
    handoffs = handoff_writer.write_of_run(services, state)
    if state.reports_in_log:
        return handoffs
    path, text = summary(services, contract, state)
    write_report(services, path, text)
    checkpoints = (checkpoint_path(state.phase, t) for t in state.tasks if state.tasks[t].attempt.number)
    return (path, *checkpoints, *handoffs)


def summary(services: Services, contract: Contract, state: RunState) -> tuple[str, str]:
    """Return path and text of the summary of a run."""
    links = {
        t: "/".join([".."] * contract.folder.count("/") + ["..", checkpoint_path(state.phase, t)])
        for t in state.tasks
        if state.tasks[t].checkpoint is not None
    }
    text = services.documents.summary(
        contract,
        state,
        schedule.statuses(contract, state),
        evidence=evidence_by_task(services, state),
        line_counts=_line_counts(services, state),
        now=services.clock.now(),
        links=links,
        clone=_clone_lines(services, state),
    )
    return report_path(contract.folder, "SUMMARY"), text


def _clone_lines(services: Services, state: RunState) -> list[str]:
    """Return the shell lines with which anyone clones what the run left, without idumb."""
    place = run_lookup.place_of_run(services, state)
    if place is None:
        return []
    if place.commit is not None:
        lines = rerun.clone_lines(place.commit)
    else:
        lines = rerun.hidden_lines(place.snapshot or "", run_lookup.FILES)
    return [*lines, *rerun.setup_lines(services.folder, services.settings.checkout.prepare)]


def _missing_checkpoints(services: Services, contract: Contract, state: RunState) -> None:
    """Write the documents that are missing, or that an earlier attempt left."""
    kept = {task: state.tasks[task].checkpoint for task in state.attempted if task in contract.tasks}
    missing = [
        task
        for task, recorded in kept.items()
        if recorded is not None and recorded.at not in (_existing(services, checkpoint_path(state.phase, task)) or "")
    ]
    for path, text in checkpoints(services, state, contract, missing) if missing else ():
        if text is not None:
            write(services, path, text)


def result(statuses: Mapping[str, str]) -> str:
    """Return the run's result: pass, partial or fail."""
    done = sum(1 for s in statuses.values() if s in outcome.ENDED)
    if done == len(statuses):
        return "pass"
    return "partial" if done else "fail"


def evidence_by_task(services: Services, state: RunState) -> dict[str, list[Mapping[str, Any]]]:
    """Return the evidence of each task's last attempt from the log."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for event in services.log.events(run=state.id, kind="evidence.recorded"):
        if event.task in state.tasks and event.attempt == state.tasks[event.task].attempt.number:
            rows.setdefault(event.task, []).append(event.payload)
    return {task: proof.standing(recorded) for task, recorded in rows.items()}


def _line_counts(services: Services, state: RunState) -> Mapping[str, tuple[int | None, int | None]]:
    """Return lines added and removed between the run's base and its end, for the paths that its tasks touched."""
    touched = {path for task in state.attempted for path in state.tasks[task].work.touched}
    if not touched or state.id in kept_runs.freed(services):
        return {}
    last = state.tasks[max(state.attempted, key=state.attempted.__getitem__)]
    asked = touched if len(touched) < _MOST_ARGUMENTS else ()
    counts = services.trees.line_counts(state.base.tree, last.work.left_tree or state.base.tree, *asked)
    return {path: count for path, count in counts.items() if path in touched}


def rewrite_verification(services: Services, contract: Contract, state: RunState) -> tuple[str, ...]:
    """Rewrite the report of `verify-work` after a rollback or an undo, so that it says what the log says."""
    if state.reports_in_log or services.plans.recorded(contract.folder, "VERIFICATION") is None:
        return ()  # there is none, or somebody else wrote it
    path, text = verification_report(services, contract, state)
    if text is not None:
        write_report(services, path, text)
    return (path,)


def verification_report(services: Services, contract: Contract, state: RunState) -> tuple[str, str | None]:
    """Return path and text of the report of `verify-work`; no text if it judged another contract."""
    path, record = report_path(contract.folder, "VERIFICATION"), state.verification
    if record is None:
        return path, services.documents.unverified(contract, state, now=services.clock.now())
    if contract.hash != state.contract.hash:
        return path, None
    judged = services.log.events(run=state.id, kind="verification.recorded", newest_first=True)
    at = next((event.at for event in judged if event.payload == record), services.clock.now())
    return path, services.documents.verification(contract, record, now=at)


def to_commit(services: Services, state: RunState, reports: Sequence[str]) -> tuple[str, ...]:
    """Return the reports and the plans written by idumb that settings say to commit, and that changed.

    Ignored files are omitted; a removed document is committed as removed.
    """
    if not state.commits_reports:
        return ()
    plans = (path for path in _own_plans(services, state) if not _tells_a_secret(services, path))
    return tuple(services.history.uncommitted([*reports, *plans]))


def corrections(services: Services, state: RunState, reports: Sequence[str]) -> tuple[str, ...]:
    """Return `to_commit` for a restore, if reports of the run are committed: they must say what is true now."""
    committed = run_lookup.last_event(services, "reports.committed", state.id)
    return () if committed is None else to_commit(services, state, reports)


def _is_settled(state: RunState) -> bool:
    """Return whether a run is over and nothing waits for an answer, so that its reports will not change again."""
    record = state.verification or {}
    asked = record.get("decision")
    waits = record.get("status") == "waiting" or (asked is not None and asked not in state.answers)
    return state.state in CLOSED and not waits


def _own_plans(services: Services, state: RunState) -> Sequence[str]:
    """Return the plans that idumb wrote, and amended ones whose earlier version is committed."""
    folders = tuple(f"{kind.parent}/" for kind in phase_ids.NUMBERED)
    own = [path for path, _ in state.contract.plans if path.startswith(folders)]
    return [*own, *contract_versions.committable(services, state)]


def _tells_a_secret(services: Services, path: str) -> bool:
    """Return whether a plan holds a known secret that HEAD's version does not. Plans are not redacted: they run."""
    without, text = services.redactor.redact, _existing(services, path)
    if text is None or without(text) == text:
        return False
    before = (_in_head(services, path) or b"").decode("utf-8", "replace")
    return without(before) == before


def record_reports(services: Services, journal: Journal, reports: Sequence[str]) -> tuple[str, ...]:
    """Commit the reports of a run that is over, and record that; return warnings.

    Nothing is committed for a halted run: its reports will change.
    """
    state = journal.state
    if not _is_settled(state) or state.reports_in_log:
        return ()
    changed = to_commit(services, state, reports)
    if not changed and run_lookup.last_event(services, "reports.committed", state.id) is None:
        made = run_lookup.commit_of_reports(services, state)
        if made is not None:
            journal.append("reports.committed", commit=made, paths=list(reports))
    return _commit_reports(services, journal, changed)


def record_corrections(services: Services, journal: Journal, reports: Sequence[str]) -> tuple[str, ...]:
    """Record the reports after a restore; return warnings. Those that it could not commit with its files follow now."""
    return _commit_reports(services, journal, corrections(services, journal.state, reports))


def reports_of(services: Services, contract: Contract, state: RunState) -> dict[str, str]:
    """Return, by path, the text of every report of a run, as the log describes it."""
    texts = dict([summary(services, contract, state)])
    path, text = verification_report(services, contract, state)
    if text is not None and run_lookup.last_event(services, "verification.recorded", state.id) is not None:
        texts[path] = text
    kept = [task for task in state.tasks if state.tasks[task].checkpoint is not None and task in contract.tasks]
    texts.update((path, text) for path, text in checkpoints(services, state, contract, kept) if text is not None)
    texts.update(handovers(services, state, contract))
    return {path: services.redactor.redact(text) for path, text in texts.items()}


def _commit_reports(services: Services, journal: Journal, changed: tuple[str, ...]) -> tuple[str, ...]:
    state = journal.state
    message = preconditions.message_of_run(services, state, f"Phase {state.phase}: reports of run {state.number}")
    committed = preconditions.commit(services, state, changed, f"{message}Idumb-Reports: {state.phase}\n")
    if committed.commit is not None:
        journal.append("reports.committed", commit=committed.commit, paths=list(changed))
    refused = committed.words if committed.commit is None else ""
    warnings = [f"git refused the commit of the reports: {refused}"] if refused else []
    if state.commits_reports:
        held = [path for path in _own_plans(services, state) if _tells_a_secret(services, path)]
        warnings += [f"{path} holds a known secret and HEAD's does not, so idumb does not commit it" for path in held]
    return tuple(warnings)
