"""The next version of a run's contract: announced, written, recorded; what a crash left in between is settled.

Order: the plans' next bytes are kept and forced to disk → consent → `amendment.intended` → the plan → the event
`contract.amended`. Ended in between, the next command that writes adopts the plan if it is as intended, and else drops
the amendment.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idumb.app.consent import agent_programs
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, plans_ref
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.runs import replay
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState, chained

HOW = "amendment"


@dataclass(frozen=True, slots=True)
class Next:
    """A contract that is to follow, with the bytes of its plans. `path` is the plan to be written, None: as it is.

    `before` are the bytes that are to be replaced. `answers` are decisions whose answers the plan then tells of.
    `consents`: somebody's word for it has no end, and is kept as such; else only approvals of it count.
    """

    contract: Contract
    sources: tuple[tuple[str, bytes], ...]
    what: tuple[str, ...]
    by: str
    why: str = ""
    path: str | None = None
    before: bytes = b""
    changes_tasks: bool = True
    answers: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    consents: bool = False


def lock(services: Services, journal: Journal, wanted: Next) -> None:
    """Make it the contract of the run.

    Refusal `amend.changed-meanwhile` where somebody else changed the plan, `amend.link` where a link would be replaced.
    """
    if wanted.path is not None:
        require_file(services, wanted.path, journal.state.phase)
    require_bytes(wanted.contract, wanted.sources)
    state, now = journal.state, services.clock.now()
    said = _said(services, state, wanted)
    blobs = {path.rsplit("/", 1)[-1]: services.trees.store(data) for path, data in wanted.sources}
    services.trees.keep_blobs(said["ref"], blobs, f"plans of run {state.number}, version {said['version']}")
    if wanted.consents:
        agreed = agent_programs.consent_record(services, wanted.contract, state.contract.hash)
        services.consent.record(wanted.contract.hash, phase=state.phase, how=HOW, at=now, agreed=agreed)
    if wanted.path is not None:
        journal.write(journal.event("amendment.intended", **said))
        _write(services, journal, wanted)
    _record(journal, said)


def _said(services: Services, state: RunState, wanted: Next) -> dict[str, Any]:
    contract, version = wanted.contract, state.contract.version + 1
    digests = ([task, contracts.task_digest(contract.tasks[task])] for task in contract.order)
    return {
        "version": version,
        "from": state.contract.hash,
        "to": contract.hash,
        "chain": chained(state.contract.chain, contract.hash),
        "plans": [[path, _sha256(data)] for path, data in wanted.sources],
        "path": wanted.path,
        "ref": plans_ref(services, state.id, version),
        "what": list(wanted.what),
        "by": wanted.by,
        "why": wanted.why,
        "tasks": list(digests) if wanted.changes_tasks else None,
        "answers": list(wanted.answers),
        "reset": list(wanted.reset),
    }


def require_bytes(contract: Contract, sources: Sequence[tuple[str, bytes]]) -> None:
    """These bytes are the contract's; Refusal `amend.changed-meanwhile` where somebody saved a plan in between."""
    known = {plan.path: plan.sha256 for plan in contract.plans}
    if {path: _sha256(data) for path, data in sources} != known:
        raise _changed_meanwhile(", ".join(known), contract.phase)


def require_file(services: Services, path: str, phase: str) -> None:
    """A plan is written as a file of its own; Refusal `amend.link` where it is reached by a symbolic link."""
    parts = path.split("/")
    links = services.files.links("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    if not links:
        return
    link = min(links, key=len)
    leads = links[link] or "."
    raise Refusal(
        "amend.link",
        f"{link} is a symbolic link to {leads}, and idumb replaces no link by a file; nothing was written.",
        hint=f"Change {links[path] or '.'} yourself and idumb amend {phase} --from-file,"
        f" or put what it leads to in place of {link}",
        details={"phase": phase, "link": link, "leads_to": leads},
    )


def _changed_meanwhile(path: str, phase: str) -> Refusal:
    return Refusal(
        "amend.changed-meanwhile",
        f"{path} was changed by somebody else at this moment; it is left as it is.",
        hint=f"idumb plan-diff {phase}",
        details={"phase": phase},
    )


def _write(services: Services, journal: Journal, wanted: Next) -> None:
    path = wanted.path or ""
    if _present(services, path) != _sha256(wanted.before):
        _abandon(journal)
        raise _changed_meanwhile(path, journal.state.phase)
    services.reports.write_source(path, dict(wanted.sources)[path].decode("utf-8"))
    services.trees.force((path,))


def _record(journal: Journal, said: Mapping[str, Any]) -> None:
    """The new version, and with it the tasks that may be tried again."""
    resets = [journal.event("task.reset", task, reason="amended") for task in said["reset"]]
    journal.write(journal.event("contract.amended", **said), *resets)


def _abandon(journal: Journal) -> None:
    known = journal.state.contract.amending or {}
    journal.write(journal.event("amendment.abandoned", version=known["version"], to=known["to"]))


def settle(services: Services, journal: Journal) -> None:
    """An amendment whose record is missing: adopted where the plan is as intended, else dropped. Nothing is written."""
    said = journal.state.contract.amending
    if said is None:
        return
    intended = next(sha for path, sha in said["plans"] if path == said["path"])
    if _present(services, said["path"]) == intended:
        _record(journal, said)
    else:
        _abandon(journal)


def adopts(state: RunState, contract_hash: str) -> bool:
    """Whether this contract is one that was agreed to and only misses its record."""
    return state.contract.amending is not None and state.contract.amending["to"] == contract_hash


def foreseen(state: RunState, contract_hash: str) -> RunState:
    """The state as it is once the missing record is made; as it is where this contract misses none."""
    said = state.contract.amending
    if said is None or not adopts(state, contract_hash):
        return state
    found = dataclasses.replace(state, tasks=dict(state.tasks))
    at = (state.id, state.last_seq, state.changed_at)
    replay.apply(found, unwritten("contract.amended", None, said, *at))
    for task in said["reset"]:
        replay.apply(found, unwritten("task.reset", task, {"reason": "amended"}, *at))
    return found


def unwritten(kind: str, task: str | None, payload: Mapping[str, Any], run: str, seq: int, at: str) -> Event:
    """An event that is about to be recorded, to see the state after it."""
    return Event(seq, "", run, task, None, kind, payload, version=1, fence=0, at=at, previous="", hash="")


def _present(services: Services, path: str) -> str | None:
    """SHA-256 of a plan as it is, None where there is none."""
    found = dict(services.plans.plans(path.rsplit("/", 1)[0]))
    return _sha256(found[path]) if path in found else None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def committable(services: Services, state: RunState) -> Sequence[str]:
    """Amended plans that are committed as a version of this run, so that their next version may be committed too."""
    head = services.history.head_tree()
    if state.contract.version == 1 or head is None:
        return ()
    refs = [plans_ref(services, state.id, version) for version in range(1, state.contract.version)]
    kept = {(name, blob) for ref in refs for name, blob in services.trees.kept_blobs(ref).items()}
    found = ((path, services.trees.entry(head, path)) for path, _ in state.contract.plans)
    return [path for path, entry in found if entry is not None and (path.rsplit("/", 1)[-1], entry.oid) in kept]
