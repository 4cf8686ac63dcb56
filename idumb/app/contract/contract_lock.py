"""The lock of a running contract: before each task the bytes that were locked are held against those in the files."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from idumb.app.consent import approval_parts, approvals, irreversible
from idumb.app.core import next_actions
from idumb.app.core.run_context import Bench
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import wording
from idumb.domain.consent import approval as approval_words
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans import step_plan
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.settings import Settings

CONFIGURATION = ".idumb/config.yaml"
POLICY = ".idumb/policy/tools.yaml"
PROMPTS = ".idumb/prompts"


def sources(services: Services, contract: Contract) -> tuple[tuple[str, bytes], ...]:
    """The bytes of the plans that a contract was made of; Refusal where they changed since they were read."""
    found = services.plans.plans(contract.folder)
    if {path: _sha256(data) for path, data in found} != {p.path: p.sha256 for p in contract.plans}:
        raise Refusal(
            "lock.plan-changed",
            f"A plan of phase {contract.phase} changed while this command started; nothing was begun.",
            hint=f"idumb check-plan {contract.phase}",
            details={
                "phase": contract.phase,
                "run": step_plan.run_command(contract.phase),
                "changed": [path for path, _ in found],
            },
        )
    return found


def untracked(services: Services, plans: Iterable[str]) -> Mapping[str, Any] | None:
    """What a run is bound to and git does not have, with the command that adds it; None where git has all of it.

    Reports are committed, so a clone would have them without the plan. What git ignores is left out of both.
    """
    policy = (path for path, _ in services.policy.sources if not path.startswith("/"))
    prompts = (f"{PROMPTS}/{name}.md" for name in services.settings.prompts)
    found = services.history.untracked((*plans, CONFIGURATION, *policy, *prompts))
    return {"paths": list(found), "command": f"git add -- {shlex.join(found)}"} if found else None


def require(bench: Bench, task: Task) -> None:
    """Refusal `lock.plan-changed` or `lock.configuration-changed`, in strict mode also those of an approval.

    Files are read only where their size, times or place say that they may have changed.
    """
    services, known = bench.services, bench.locked
    seen = services.files.signature(_watched(bench))
    if seen is None or seen != known.get("files"):
        _require_same(bench)
    if STRICT in (bench.contract.mode, bench.journal.state.mode):
        mark = f"{seen}.{services.consent.mark()}"
        until = known.get("until", "")
        if seen is None or mark != known.get("approval") or (until and until <= services.clock.now()):
            kept = approvals.require(services, bench.contract)
            known["approval"], known["until"] = mark, kept.approval.expires or ""
            known["named"] = approval_parts.bound_files(kept.approval)
    known["files"] = seen or ""
    irreversible.require(services, bench.contract, task)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _watched(bench: Bench) -> tuple[str, ...]:
    """Plans and their folder, configuration, templates and policy, and in strict mode the files that commands name."""
    found = [bench.contract.folder, CONFIGURATION, POLICY, *(path for path, _ in bench.journal.state.contract.plans)]
    found += [path for path, _ in bench.services.policy.sources]
    found += [PROMPTS, *(f"{PROMPTS}/{name}.md" for name in bench.services.settings.prompts)]
    if STRICT in (bench.contract.mode, bench.journal.state.mode):
        found += bench.locked.get("named", ())
    return tuple(found)


def _require_same(bench: Bench) -> None:
    """The plans as they are now are those of the newest lock, and so is the configuration."""
    services, locked = bench.services, dict(bench.journal.state.contract.plans)
    try:
        present = {path: _sha256(data) for path, data in services.plans.plans(bench.contract.folder)}
        settings = _settings_digest(bench, services.present_settings())
        policy = services.present_policy().digest
    except InputError as problem:
        raise _refusal(
            bench, "plan" if problem.code.startswith("plan") else "configuration", [problem.message]
        ) from None
    changed = sorted(path for path in {*present, *locked} if present.get(path) != locked.get(path))
    if changed:
        raise _refusal(bench, "plan", changed)
    if settings != _settings_digest(bench, services.settings):
        raise _refusal(bench, "configuration", [CONFIGURATION])
    if policy != services.policy.digest:
        raise _refusal(bench, "policy", [path for path, _ in services.policy.sources] or ["the policy"])


def _settings_digest(bench: Bench, settings: Settings) -> str:
    return contracts.governing_settings(bench.contract.plans, settings).digest()


def _refusal(bench: Bench, what: str, changed: Sequence[str]) -> Refusal:
    from idumb.app.contract import changed_contract  # as in `session`: a run whose lock holds has no use for it

    phase = bench.contract.phase
    state = bench.journal.state
    choices = changed_contract.choices(bench.services, state, changed if what == "plan" else ())
    words = f"{wording.listed(changed)} changed while phase {phase} runs"
    return Refusal(
        f"lock.{what}-changed",
        f"{words}; it runs only as it was locked, so it stopped before the next task.",
        hint=changed_contract.hint(state, choices),
        details={
            "what": f"Go on with phase {phase}",
            "why": words,
            "evidence": list(changed),
            "choices": next_actions.rows(choices),
            "changed": list(changed),
            "part": approval_words.PARTS[0] if what == "plan" else what,
        },
    )
