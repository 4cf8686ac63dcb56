"""Audit a run: compare log, plans, commits and files with what the run recorded, and export it as a bundle.

The file of a bundle is canonical JSON, signed as a whole: `sha256sum` and `ssh-keygen -Y verify` check it.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import open_attempt, run_lookup
from idumb.app.core.services import Result, Services, fields
from idumb.app.worktree import done_work, preconditions
from idumb.domain import agent, canonical_json, errors
from idumb.domain import contract as contracts
from idumb.domain.action import Action
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState, TaskState


def compare(services: Services, phase: str) -> Result:
    """Compare files, plans, guarded files and log with what the phase's newest run left.

    Changes that belong to no task are listed, and break nothing.
    """
    state = run_lookup.named_run(services, phase)
    contract = loading.locked_contract(services, state)
    final = done_work.compare_at_end(services, state, contract, done_work.present_tree(services, contract))
    chain = services.log.verify()
    locked, present = dict(state.contract.plans), contracts.source_hashes(services.plans.plans(contract.folder))
    plans = sorted(path for path in {*locked, *present} if locked.get(path) != present.get(path))
    guarded = preconditions.changed_guarded_files(services, state)
    in_repository = [name for name in guarded if not name.startswith(("~/", "/"))]  # not the user's own configuration
    open_now = open_attempt.find(services)
    broken = [
        *([f"event {chain.broken_at}: {chain.why}"] if chain.broken_at is not None else []),
        *(f"{path} differs from the plan that the run locked" for path in plans),
        *(f"{name}, a guarded git file, changed since the last attempt started" for name in in_repository),
        *final.wrong,
    ]
    data = {
        "phase": state.phase,
        "run": state.id,
        "intact": not broken,
        "broken": broken,
        **fields(final, "changed"),
        "open": None if open_now is None else open_now.as_dict(),
        "events": chain.count,
        "head": chain.head,
    }
    if not broken:
        return Result(data, warnings=final.words())
    words = f"Run {state.number} of phase {state.phase} is not intact: {broken[0]}"
    return Result(data, errors.EXIT_FAILED, final.words(), ("audit.not-intact", words, Action("doctor")))


def bundle(services: Services, phase: str) -> Result:
    """Export the newest run of a phase as unsigned data, to keep elsewhere and compare later."""
    state = run_lookup.named_run(services, phase)
    chain = services.log.verify()
    content = {
        "idumb": services.version,
        "made_at": services.clock.now(),
        "run": {
            "id": state.id,
            **fields(state, "phase", "mode", "started_at"),
            "base_commit": state.base.commit,
            "head_commit": services.history.head().commit,
        },
        "contract": {
            "hash": state.contract.hash,
            "version": state.contract.version,
            "plans": [{"path": path, "sha256": digest} for path, digest in state.contract.plans],
        },
        "tasks": [_task(services, state, task_state) for task_state in state.tasks.values()],
        "decisions": [
            {name: answer[name] for name in ("decision", "choice", "by")} for answer in state.answers.values()
        ],
        "verification": None if state.verification is None else state.verification.get("status"),
        "log": {"events": chain.count, "head": chain.head, "broken_at": chain.broken_at},
    }
    data = {"bundle": content, "sha256": canonical_json.digest(content), "signed": False, "written": []}
    if chain.broken_at is None:
        return Result(data, warnings=(_UNSIGNED,))
    broken = f"The event log was changed: event {chain.broken_at}: {chain.why}"
    return Result(data, errors.EXIT_FAILED, (_UNSIGNED,), ("audit.broken", broken, Action("doctor")))


NAMESPACE = "idumb-bundle"
"""What signatures of bundles are for, so that none passes for that of an approval."""

_UNSIGNED = "The bundle is not signed: it repeats the log of this machine, and proves nothing to others."


def signed_files(services: Services, made: Result, path: str, key: str | None) -> tuple[Result, dict[str, bytes]]:
    """Return the answer, and by path the bytes of a bundle and of its signature by an SSH key, to be written."""
    data = canonical_json.encode(services.redactor.value(made.data["bundle"]))
    written, warnings, following = {path: data}, made.warnings, [f"sha256sum {shlex.quote(path)}"]
    if key is not None:
        try:
            signature = services.signatures.sign(data, key, interactive=services.asker.interactive, namespace=NAMESPACE)
        except Refusal as refused:
            raise Refusal("audit.not-signed", refused.message, hint=refused.hint) from refused
        written[f"{path}.sig"], warnings = signature.encode("ascii"), ()
        names = f"-s {shlex.quote(path)}.sig < {shlex.quote(path)}"
        following.append(f"ssh-keygen -Y verify -f ALLOWED_SIGNERS -I NAME -n {NAMESPACE} {names}")
    digest = hashlib.sha256(data).hexdigest()  # a secret may be known that was none when the log was written
    answer = {**made.data, "sha256": digest, "signed": key is not None, "written": [*written], "next": following}
    return Result(answer, warnings=warnings), written


_OF_CHECK = ("subject", "result", "command", "exit_code", "output_sha256", "tree", "sandbox")
_OF_STEP = ("index", "tool", "arguments", "ok", "words", "plan_hash")
_OF_RESPONSE = ("outcome", "model", "output_sha256")


def _task(services: Services, state: RunState, task: TaskState) -> dict[str, Any]:
    """Return a task with all steps and responses, and each check of the attempt that its checkpoint keeps.

    Without a checkpoint, the checks are those of its newest attempt.
    """
    kept, made_in = task.checkpoint, run_lookup.attempting_run(services, state, task.id)
    number = kept.attempt if kept is not None else task.attempt.number
    events = list(services.log.events(run=made_in.id, task=task.id))
    checks = (e.payload for e in events if e.kind == "evidence.recorded" and e.attempt == number)
    return {
        **fields(task, "id", "digest", "status"),
        "commit": None if kept is None else kept.commit,
        "tree": None if kept is None else kept.tree,
        "files": [] if kept is None else list(kept.files),
        "steps": [_step(event) for event in events if event.kind == "step.finished"],
        "responses": [row for event in events if event.kind == "attempt.finished" for row in _responses(event)],
        "evidence": [{name: check.get(name) for name in _OF_CHECK} for check in checks],
    }


def _step(event: Event) -> dict[str, Any]:
    response = canonical_json.digest(event.payload["response"])
    of = {"event": event.seq, "event_hash": event.hash, "attempt": event.attempt}
    return {**of, **{name: event.payload[name] for name in _OF_STEP}, "response_sha256": response}


def _responses(event: Event) -> Iterator[dict[str, Any]]:
    """Yield what builder and validator of an attempt answered, as digests. An attempt that waited repeats it."""
    for role in (agent.BUILDER, agent.VALIDATOR):
        result = event.payload.get(role)
        if result is not None:
            of = {"event": event.seq, "event_hash": event.hash, "attempt": event.attempt, "role": role}
            yield {**of, **{name: result.get(name) for name in _OF_RESPONSE}}
