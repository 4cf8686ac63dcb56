"""Locks the next version of a run's contract.

Order: store the next plans durably → consent → write the plan → `contract.amended`. After a crash before that event,
the plan is as if its user had edited it, and the next command that runs it takes it over, because he agreed to it
(`was_agreed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.consent import needs, phase_grants
from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.contract import loading
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, plans_ref, write_forced
from idumb.domain import contract as contracts
from idumb.domain import grant as grants
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError, InputError, Refusal
from idumb.domain.grant import APPROVE, CONTRACT, PLANS, Grant
from idumb.domain.plans.plan import STRICT, Plan
from idumb.domain.runs.run import RunState, chained


class NextVersion(Struct, frozen=True):
    """The next contract, with the bytes of its plans.

    `path` is the plan to write, with the bytes `before` to replace; None writes none. `answers` are decisions whose
    answers the plan will contain. `consents`: plain consent to it is recorded; otherwise only approvals count.
    """

    contract: Contract
    sources: tuple[tuple[str, bytes], ...]
    changes: tuple[str, ...]
    by: str
    why: str = ""
    path: str | None = None
    before: bytes = b""
    changes_tasks: bool = True
    answers: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    consents: bool = False


def lock_next(services: Services, journal: Journal, next_version: NextVersion) -> None:
    """Make `next_version` the contract of the run.

    Refusal `amend.changed-meanwhile` if the plan changed meanwhile, `amend.link` if a link would be replaced.
    """
    if next_version.path is not None and services.plans.is_kept(next_version.path):
        next_version = replace(next_version, path=None)  # only the run keeps the plan: no file is written
    if next_version.path is not None:
        require_file(services, next_version.path, journal.state.phase)
    require_bytes(next_version.contract, next_version.sources)
    state = journal.state
    payload = _payload(services, state, next_version)
    blobs = {path.rsplit("/", 1)[-1]: services.trees.store(data) for path, data in next_version.sources}
    words = f"plans of run {state.number}, version {payload['version']}"
    payload["object"] = services.trees.keep_blobs(payload["ref"], blobs, words)
    if next_version.consents:
        phase_grants.record_amendment(services, next_version.contract, state.contract.hash)
    if next_version.path is not None:
        _write(services, next_version)
    resets = [journal.event("task.reset", task, reason="amended") for task in next_version.reset]
    journal.write(journal.event("contract.amended", **payload), *resets)


def _payload(services: Services, state: RunState, next_version: NextVersion) -> dict[str, Any]:
    contract, version = next_version.contract, state.contract.version + 1
    digests = ([task, contracts.task_digest(contract.tasks[task])] for task in contract.order)
    return {
        "version": version,
        "from": state.contract.hash,
        "to": contract.hash,
        "chain": chained(state.contract.chain, contract.hash),
        "plans": [list(item) for item in contracts.source_hashes(next_version.sources).items()],
        "path": next_version.path,
        "ref": plans_ref(services, state.id, version),
        "what": list(next_version.changes),
        "by": next_version.by,
        "why": next_version.why,
        "tasks": list(digests) if next_version.changes_tasks else None,
        "answers": list(next_version.answers),
        "reset": list(next_version.reset),
    }


def require_bytes(contract: Contract, sources: Sequence[tuple[str, bytes]]) -> None:
    """Require that the bytes are those of the contract. Refusal `amend.changed-meanwhile`."""
    expected = {plan.path: plan.sha256 for plan in contract.plans}
    if contracts.source_hashes(sources) != expected:
        raise _changed_meanwhile(", ".join(expected), contract.phase)


def require_file(services: Services, path: str, phase: str) -> None:
    """Require that no symbolic link leads to the plan. Refusal `amend.link`."""
    parts = path.split("/")
    links = services.named_files.links("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    if not links:
        return
    link = min(links, key=len)
    target = links[link] or "."
    raise Refusal(
        "amend.link",
        f"{link} is a symbolic link to {target}. idumb does not replace a link by a file, so nothing was written.",
        hint=f"Edit {links[path] or '.'} and run idumb amend {phase} --from-file, or replace {link} by its target",
        details={"phase": phase, "link": link, "leads_to": target},
    )


def _changed_meanwhile(path: str, phase: str) -> Refusal:
    return Refusal(
        "amend.changed-meanwhile",
        f"{path} changed while idumb was about to write it, so it was not written.",
        hint=Action.of("check-plan", phase, "--diff"),
        details={"phase": phase},
    )


def _write(services: Services, next_version: NextVersion) -> None:
    path, contract = next_version.path or "", next_version.contract
    present = dict(services.plans.plans(contract.folder)).get(path)
    if present != next_version.before:
        raise _changed_meanwhile(path, contract.phase)
    write_forced(services, path, dict(next_version.sources)[path].decode("utf-8"))


def was_agreed(services: Services, state: RunState, contract: Contract) -> bool:
    """Return whether idumb was about to lock this contract when it was killed: it had recorded the consent for that."""
    if contract.hash == state.contract.hash:
        return False
    since = str(state.contract.amendments[-1]["at"]) if state.contract.amendments else state.started_at
    try:
        stored = services.consent.grants(contract.phase)
    except IdumbError:  # a command that starts something reports why consent cannot be read
        return False
    own = (g for g in stored if g.how == phase_grants.AMENDMENT or g.validator.startswith(_validator(services)))
    return any(g.contract_hash == contract.hash and g.at > since and g.revoked is None for g in own)


def is_run_of(state: RunState, contract: Contract) -> bool:
    """Whether a run is of this contract. Once it is verified, only other plans make another contract of it."""
    if state.contract.hash == contract.hash:
        return True
    is_done = state.verified and state.restoring is None
    return is_done and dict(state.contract.plans) == {plan.path: plan.sha256 for plan in contract.plans}


def is_verified(state: RunState | None, contract: Contract) -> bool:
    """Return whether the newest run of a phase verified this contract, so that nothing is left to run."""
    return state is not None and state.verified and is_run_of(state, contract)


def committable(services: Services, state: RunState) -> Sequence[str]:
    """Amended plans whose earlier version is committed, so that the next version may be committed too."""
    refs = [plans_ref(services, state.id, version) for version in range(1, state.contract.version)]
    kept = {(name, blob) for ref in refs for name, blob in services.trees.kept_blobs(ref).items()}
    head = services.history.head_tree()
    entries = ((path, services.trees.entry(head, path)) for path, _ in state.contract.plans)
    return [path for path, entry in entries if entry is not None and (path.rsplit("/", 1)[-1], entry.oid) in kept]


# Answers of people, which the plan repeats


def present_if_locked(services: Services, state: RunState) -> Contract | None:
    """The contract of the run if the present plans are the locked ones; None otherwise."""
    try:
        contract = loading.load_phase(services, state.phase).contract
    except InputError:
        return None
    return contract if contract is not None and contract.hash == state.contract.hash else None


def append_answers(services: Services, journal: Journal, contract: Contract) -> Contract:
    """Write every new answer into the plans; return the next contract.

    No task changes, so consent carries over: plain consent as such, each approval with its own expiry. If a plan has no
    place for an answer, or no consent can carry over, only the log has the answer, and a note says so.
    """
    state = journal.state
    waiting = [i for i in state.answers if i in state.decisions and i not in state.contract.appended]
    for plan in contract.plans:
        answers = tuple(i for i in waiting if _plan_of(contract, state.decisions[i]).path == plan.path)
        # The log keeps the answers; idumb never writes plans of other tools, and definitions of workflows.
        if not answers or plan.is_foreign or plan.workflow is not None:
            continue
        try:
            contract = _append(services, journal, contract, plan.path, answers)
        except (InputError, Refusal) as problem:
            services.reporter.note(
                f"{', '.join(answers)} is recorded, but not written into the plan: {problem.message}"
            )
    return contract


def _plan_of(contract: Contract, question: Mapping[str, Any]) -> Plan:
    task = str(question.get("task"))
    return contract.plan_of[task] if task in contract.tasks else contract.plans[-1]


def _append(services: Services, journal: Journal, contract: Contract, path: str, answers: tuple[str, ...]) -> Contract:
    from idumb.domain import amendment, plan_diff
    from idumb.domain.amendment import Amendment

    state = journal.state
    require_file(services, path, state.phase)
    before = services.plans.plans(contract.folder)
    require_bytes(contract, before)
    lines = [Amendment(amendment.DECIDE, i, _line(state.decisions[i], state.answers[i])) for i in answers]
    amended = services.plans.amended(dict(before)[path], path, lines)
    if amended == dict(before)[path]:  # idumb was killed after it had written them
        return contract
    sources = tuple((p, amended if p == path else data) for p, data in before)
    loaded = loading.load_sources(services, state.phase, contract.folder, sources)
    if loaded.contract is None or plan_diff.compare(contract, loaded.contract).changes_tasks:
        raise InputError("amend.cannot-write", f"the answer would change the tasks of {path}")
    by = ", ".join(dict.fromkeys(str(state.answers[i]["by"]) for i in answers))
    consents = PhaseGrants(services, contract).covers(contract.hash, plain=True)
    carried = _approvals(services, state, contract, loaded.contract, by, consents=consents)
    notes = tuple(f"answer to {i}: {state.answers[i]['choice']}" for i in answers)
    for approval in carried:
        services.consent.record(approval)
    version = NextVersion(
        loaded.contract, sources, notes, by, path=path, before=dict(before)[path], changes_tasks=False
    )
    lock_next(services, journal, replace(version, answers=answers, consents=consents))
    return loaded.contract


def _line(question: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    line = f"{answer['choice']}, says {answer['by']}, to: {question['what']}"
    return f"{line} ({answer['guidance']})" if answer.get("guidance") else line


def _approvals(
    services: Services, state: RunState, old: Contract, new: Contract, by: str, *, consents: bool
) -> tuple[Grant, ...]:
    """Carry each valid approval over to the plan with the answers. Refuses if no consent can carry over.

    The plans differ only by answers of users. Each approval keeps its expiry and what it accepts. A signature covers
    the bytes and idumb cannot renew it, so the plan does not change while a signed approval counts.
    """
    agreed = PhaseGrants(services, old, state.base.commit)
    if state.mode == STRICT:
        agreed.approval()
    live = [grant for grant in agreed.live if grant.how == APPROVE or grant.accepted]
    is_signed = any(grant.signature is not None for grant in live)
    if is_signed or not (consents or any(grant.how == APPROVE for grant in live)):
        why = "it has no valid consent that could carry over"
        why = "its approval is signed, and the signature covers the present plan" if is_signed else why
        raise Refusal("approval.missing", why, details={"phase": old.phase})
    return tuple(_carried(services, grant, new, by) for grant in reversed(live))


def _validator(services: Services) -> str:
    return f"idumb {services.version}, answers of "


def _carried(services: Services, agreed: Grant, new: Contract, by: str) -> Grant:
    of_contract = {
        CONTRACT: grants.part(new.hash),
        PLANS: grants.part({p.path: p.sha256 for p in new.plans}),
        **needs.of_irreversible(new, agreed.accepted),
    }
    return replace(
        agreed,
        parts={name: of_contract.get(name, each) for name, each in agreed.parts.items()},
        at=services.clock.now(),
        validator=f"{_validator(services)}{by}",
        nonce=services.consent.nonce(),
    )
