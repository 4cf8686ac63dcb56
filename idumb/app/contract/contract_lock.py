"""The lock of a running contract: before each task, plans, configuration and policy must be as they were locked."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from idumb.app.consent import approval_parts, approvals, irreversible
from idumb.app.core import next_actions
from idumb.app.core.run_context import RunContext
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


def require_sources(services: Services, contract: Contract) -> tuple[tuple[str, bytes], ...]:
    """Return the bytes of a contract's plans. Refusal `lock.plan-changed` if they changed after they were loaded."""
    plans = services.plans.plans(contract.folder)
    if {path: _sha256(data) for path, data in plans} != {p.path: p.sha256 for p in contract.plans}:
        raise Refusal(
            "lock.plan-changed",
            f"A plan of phase {contract.phase} changed while this command started. Nothing ran.",
            hint=f"idumb check-plan {contract.phase}",
            details={
                "phase": contract.phase,
                "run": step_plan.run_command(contract.phase),
                "changed": [path for path, _ in plans],
            },
        )
    return plans


def untracked_inputs(services: Services, plans: Iterable[str]) -> Mapping[str, Any] | None:
    """The untracked files that a run depends on, with the command that adds them; None if git tracks them all.

    Reports are committed, so a clone would have the reports without the plan. Ignored files are excluded.
    """
    policy = (path for path, _ in services.policy.sources if not path.startswith("/"))
    prompts = (f"{PROMPTS}/{name}.md" for name in services.settings.prompts)
    missing = services.history.untracked((*plans, CONFIGURATION, *policy, *prompts))
    return {"paths": list(missing), "command": f"git add -- {shlex.join(missing)}"} if missing else None


def require(context: RunContext, task: Task) -> None:
    """Require that the locked inputs are unchanged and, in strict mode, that the approval is still valid.

    Refusal `lock.plan-changed`, `lock.configuration-changed` or that of the approval. Files are read only if their
    size, times or location show that they may have changed.
    """
    services, cached = context.services, context.locked
    signature = services.files.signature(_watched_files(context))
    if signature is None or signature != cached.get("files"):
        _require_same(context)
    if STRICT in (context.contract.mode, context.journal.state.mode):
        mark = f"{signature}.{services.consent.mark()}"
        until = cached.get("until", "")
        if signature is None or mark != cached.get("approval") or (until and until <= services.clock.now()):
            kept = approvals.require(services, context.contract)
            cached["approval"], cached["until"] = mark, kept.approval.expires or ""
            cached["named"] = approval_parts.bound_files(kept.approval)
    cached["files"] = signature or ""
    irreversible.require(services, context.contract, task)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _watched_files(context: RunContext) -> tuple[str, ...]:
    """Plans, their folder, configuration, templates and policy; in strict mode also the files that commands name."""
    files = [
        context.contract.folder,
        CONFIGURATION,
        POLICY,
        *(path for path, _ in context.journal.state.contract.plans),
    ]
    files += [path for path, _ in context.services.policy.sources]
    files += [PROMPTS, *(f"{PROMPTS}/{name}.md" for name in context.services.settings.prompts)]
    if STRICT in (context.contract.mode, context.journal.state.mode):
        files += context.locked.get("named", ())
    return tuple(files)


def _require_same(context: RunContext) -> None:
    """Refuse if plans, configuration or policy differ from the newest lock."""
    services, locked = context.services, dict(context.journal.state.contract.plans)
    try:
        present = {path: _sha256(data) for path, data in services.plans.plans(context.contract.folder)}
        settings, policy = services.present_settings(), services.present_policy()
    except InputError as problem:
        raise _refusal(
            context, "plan" if problem.code.startswith("plan") else "configuration", [problem.message]
        ) from None
    changed = sorted(path for path in {*present, *locked} if present.get(path) != locked.get(path))
    if changed:
        raise _refusal(context, "plan", changed)
    if settings != services.settings and _settings_digest(context, settings) != _settings_digest(
        context, services.settings
    ):
        raise _refusal(context, "configuration", [CONFIGURATION])
    if policy.digest != services.policy.digest:
        raise _refusal(context, "policy", [path for path, _ in services.policy.sources] or ["the policy"])


def _settings_digest(context: RunContext, settings: Settings) -> str:
    return contracts.governing_settings(context.contract.plans, settings).digest()


def _refusal(context: RunContext, what: str, changed: Sequence[str]) -> Refusal:
    from idumb.app.contract import changed_contract  # only a refusal needs it

    phase = context.contract.phase
    state = context.journal.state
    choices = changed_contract.choices(context.services, state, changed if what == "plan" else ())
    why = f"{wording.listed(changed)} changed during the run of phase {phase}"
    return Refusal(
        f"lock.{what}-changed",
        f"{why}; it runs only as locked, so it stopped before the next task.",
        hint=changed_contract.hint(state, choices),
        details=next_actions.offer(
            f"Continue phase {phase}",
            why,
            changed,
            choices,
            changed=list(changed),
            part=approval_words.PARTS[0] if what == "plan" else what,
        ),
    )
