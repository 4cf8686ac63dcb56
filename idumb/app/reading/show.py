"""Show one task: its plan, attempts, evidence and checkpoint, and the changes it made."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from idumb.app.contract import loading
from idumb.app.core import kept_runs, run_lookup, schedule
from idumb.app.core.services import Result, Services, kept_at, plans_ref
from idumb.app.session import failure_report, next_steps
from idumb.app.worktree import done_work
from idumb.domain import contract as contracts
from idumb.domain import envelope as envelopes
from idumb.domain import paths
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState, TaskState

_SKIPPED_FIELDS = frozenset({"span", "spans", "steps", "notation"})


def show(services: Services, task: str) -> Result:
    """Return a task as the plan declares it, with its attempts and evidence from the newest run."""
    contract, state, task_id = _find(services, task)
    declared = contract.tasks[task_id]
    names = declared.__struct_fields__
    data: dict[str, Any] = {
        "id": task_id,
        "phase": contract.phase,
        "plan": contract.plan_of[task_id].path,
        "line": declared.span.line,
        "task": {name: _value(getattr(declared, name)) for name in names if name not in _SKIPPED_FIELDS},
        "proofs": contracts.proofs(declared),
        "steps": len(declared.steps),
        "run": None,
        "status": "pending",
        "attempts": [],
        "decisions": [],
    }
    if state is not None:
        done_work.mark_lost(services, state)
        statuses = schedule.statuses(contract, state)
        data |= next_steps.task_row(state, contract, task_id, statuses)
        attempted_in = run_lookup.attempting_run(services, state, task_id)
        data |= {
            "run": attempted_in.id,
            "choices": failure_report.choices(services, contract, state, task_id),
            "attempts": attempts_of(services, attempted_in, task_id),
            "decisions": [d for d in attempted_in.decisions.values() if d.get("task") == task_id],
            "answers": [
                a for i, a in attempted_in.answers.items() if attempted_in.decisions.get(i, {}).get("task") == task_id
            ],
        }
    return Result(data)


def _value(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: _value(getattr(value, name)) for name in value.__struct_fields__ if name != "span"}
    if isinstance(value, tuple):
        return [_value(v) for v in value]
    return dict(value) if hasattr(value, "items") else value


def attempts_of(services: Services, state: RunState, task: str) -> list[dict[str, Any]]:
    """Return the attempts in order, each with its evidence and outcome."""
    rows: dict[int, dict[str, Any]] = {}
    freed = kept_runs.freed(services).get(state.id, 0)
    for event in services.log.events(run=state.id, task=task):
        if event.attempt is None:
            continue
        row = rows.setdefault(event.attempt, {"attempt": event.attempt, "evidence": [], "outcome": None})
        if event.kind == "attempt.started":
            row |= {
                "freed": event.seq < freed,
                "started": event.at,
                "snapshot": event.payload["snapshot"],
                "builder": event.payload["builder"],
            }
            row |= {name: event.payload.get("envelope", {}).get(name) for name in ("adapter", "model")}
        elif event.kind == "evidence.recorded":
            row["evidence"].append(dict(event.payload))
        elif event.kind == "attempt.finished":
            keys = ["outcome", "verdict", "reason", "ledger", "feedback", "seconds", "deviations", "cause", "failure"]
            keys += ["fix", "validator", "tool_files", "messages"]
            row |= {k: event.payload.get(k) for k in keys} | {"result": event.payload.get("builder")}
        elif event.kind == "attempt.interrupted":
            row |= {"outcome": "interrupted", "reason": event.payload.get("reason", "")}
            kept = [] if row.get("freed") else _kept(services, state, event)
            row |= {"checkpoint": event.payload.get("snapshot"), "kept": kept}
        elif event.kind == "checkpoint.recorded":
            row |= {"commit": event.payload.get("commit"), "checkpoint": event.payload.get("snapshot")}
    return [rows[n] for n in sorted(rows)]


def _kept(services: Services, state: RunState, event: Event) -> list[str]:
    """Return a command that prints each file an interrupted attempt left, in the order of their names."""
    base = state.tasks[event.task or ""].work.base
    changes = () if base is None else services.trees.changes(base, event.payload["left"])
    written = (change.path for change in changes if change.new is not None)
    existing = [path for path in written if not paths.matches_any(path, paths.OWN_FILES)]
    return [f"git show {shlex.quote(kept_at(services, event.payload['snapshot'], path))}" for path in existing]


_DIGEST = re.compile(r"[0-9a-f]{7,64}")


def plan(services: Services, name: str) -> Result:
    """Return the bytes of a plan as a run locked it: of a task, or by the digest in the trailer `Idumb-Plan`.

    Refusal `plan.unknown-digest`.
    """
    if _DIGEST.fullmatch(name):
        return _kept_plan(services, name)
    contract, state, task_id = _find(services, name)
    locked = contract.plan_of[task_id]
    if state is not None:
        return _kept_plan(services, dict(state.contract.plans)[locked.path])
    text = dict(services.plans.plans(contract.folder))[locked.path].decode("utf-8", "replace")
    return Result({"path": locked.path, "sha256": locked.sha256, "phase": contract.phase, "run": None, "text": text})


def _kept_plan(services: Services, digest: str) -> Result:
    """Return the newest plan whose SHA-256 begins with `digest`, from the ref of its run."""
    events = (event for kind in ("run.started", "contract.amended") for event in services.log.events(kind=kind))
    found = [(event, row) for event in events for row in event.payload["plans"] if row[1].startswith(digest)]
    if not found:
        raise Refusal(
            "plan.unknown-digest",
            f"No run of this repository had a plan whose SHA-256 begins with {digest}.",
            hint="git log --format='%h %s %(trailers:key=Idumb-Plan)' shows the plans of commits",
        )
    event, (path, sha256) = max(found, key=lambda pair: pair[0].seq)
    # All working trees share one log, and each keeps the plans of its own runs.
    starts = services.log_files.starts()
    worktree = next((start.worktree for start in starts if start.run == event.run), services.worktree)
    ref = event.payload.get("ref") or plans_ref(services, event.run or "", 1, worktree)
    blob = services.trees.kept_blobs(ref).get(path.rpartition("/")[2])
    if blob is None:
        raise Refusal("plan.kept-gone", f"{ref} no longer has {path}.", hint=Action("doctor"))
    text = services.trees.read(blob).decode("utf-8", "replace")
    phase = run_lookup.run_of(services, event.run or "").phase
    return Result({"path": path, "sha256": sha256, "phase": phase, "run": event.run, "text": text})


def diff(services: Services, task: str) -> Result:
    """Return what a task changed, from its task base to its last checkpoint, or to what it left."""
    state, task_id, _ = _attempted(services, task, None)
    if state.tasks[task_id].work.left_tree is None:
        raise _no_attempt(task_id, "has no attempt that ended")
    kept_runs.require_snapshots(services, state, [task_id])
    return Result({"id": task_id, "run": state.id, **change_of(services, state.tasks[task_id])})


def change_of(services: Services, task_state: TaskState) -> dict[str, Any]:
    """Return what an attempted task changed: its trees, a row for each file, and the difference as text."""
    kept = task_state.checkpoint
    base, tree = task_state.work.base or "", (kept.tree if kept else task_state.work.left_tree) or ""
    names = dict.fromkeys((*task_state.work.touched, *task_state.work.deviations, *(kept.files if kept else ())))
    if not names:  # it waits for a person: nothing is delivered yet
        changed = (change.path for change in services.trees.changes(base, tree))
        names = dict.fromkeys(path for path in changed if not paths.matches_any(path, paths.OWN_FILES))
    text = services.trees.diff(base, tree, tuple(names)) if names else ""
    return {"base": base, "tree": tree, "files": files_of(services, base, tree, names), "diff": text}


def files_of(services: Services, old: str, new: str, names: Collection[str]) -> list[dict[str, Any]]:
    """Return a row for each file, with the lines that were added and removed between two trees."""
    counts = services.trees.line_counts(old, new) if names else {}
    return [{"path": p, "added": counts.get(p, (0, 0))[0], "removed": counts.get(p, (0, 0))[1]} for p in names]


def transcript(services: Services, task: str, attempt: int | None = None) -> Result:
    """Return what the agents of an attempt did, by default of the newest. Refusal if nothing is kept."""
    state, task_id, number = _attempted(services, task, attempt)
    texts = services.transcripts(state.id, task_id, number)
    if not texts:
        raise Refusal(
            "task.no-transcript",
            f"Attempt {number} of {task_id} has no transcript: people, handoffs and replayed runs write none.",
            hint=Action.of("show", task_id),
            details={"task": task_id},
        )
    rows = [{"role": role, "output": text} for role, text in texts.items()]
    return Result({"id": task_id, "run": state.id, "attempt": number, "transcripts": rows})


def envelope(services: Services, task: str, attempt: int | None = None) -> Result:
    """Return each part of the envelope of an attempt, by default the newest: its value or hash, and the hashed text."""
    state, task_id, number = _attempted(services, task, attempt)
    started = services.log.events(run=state.id, task=task_id, kind="attempt.started")
    event = next(event for event in started if event.attempt == number)
    recorded, texts = event.payload["envelope"], dict[str, str]()
    for kind in ("run.locked", "envelope.changed"):  # they keep the texts, by hash
        for kept in services.log.events(run=state.id, kind=kind):
            texts |= kept.payload["sources"] if kept.seq < event.seq else {}
    parts = []
    for name in envelopes.PARTS:
        value = recorded.get(name)
        source = texts.get(value) if isinstance(value, str) else None
        if name == envelopes.CONTEXT and event.payload.get("context") is not None:
            source = json.dumps(event.payload["context"], indent=1, sort_keys=True)
        parts.append({"name": name, "value": value, "absent": value == envelopes.NOTHING, "source": source})
    head = {"task": task_id, "run": state.id, "attempt": number, "at": event.at}
    return Result({**head, "builder": event.payload["builder"], "digest": recorded.get("digest"), "parts": parts})


def _attempted(services: Services, task: str, attempt: int | None) -> tuple[RunState, str, int]:
    """Return the run with an attempt of a task, the task and the attempt, by default the newest."""
    _, state, task_id = _find(services, task)
    state = run_lookup.attempting_run(services, state, task_id) if state else None
    newest = state.tasks[task_id].attempt.number if state is not None else 0
    number = newest if attempt is None else attempt
    if state is None or not 1 <= number <= newest:
        raise _no_attempt(task_id, "has not been attempted" if attempt is None else f"has no attempt {attempt}")
    return state, task_id, number


def _no_attempt(task: str, words: str) -> Refusal:
    return Refusal("task.no-attempt", f"{task} {words}.", hint=Action.of("show", task), details={"task": task})


def _find(services: Services, task: str) -> tuple[Contract, RunState | None, str]:
    phase, task_id = run_lookup.find_task(task)
    state = run_lookup.newest_run(services, phase)
    contract = loading.require_contract(services, phase, or_locked=True)
    run_lookup.require_task(contract.tasks, task_id, phase)
    if state is not None and not state.tasks.keys() >= set(contract.order):
        state = None  # the plan has got tasks since
    return contract, state, task_id
