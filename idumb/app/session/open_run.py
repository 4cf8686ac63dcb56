"""Opens the run context of a run: its workspace, agents and checks."""

from __future__ import annotations

from idumb.app.consent import approval_parts
from idumb.app.core import workspaces
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import Pace, RunContext
from idumb.app.core.services import Services
from idumb.app.ports.workspace import Workspace
from idumb.app.worktree import abandoned_clones
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.intake import ground
from idumb.domain.runs.run import RunState
from idumb.domain.settings import COMMIT_BUILDER, COMMITTED


def run_context(
    services: Services,
    journal: Journal,
    contract: Contract,
    *,
    on_deviation: str | None = None,
    max_attempts: int | None = None,
    workspace: str | None = None,
    deterministic: bool = False,
    sandboxed: bool = False,
    accepts_changes: bool = False,
) -> RunContext:
    """Open what a run works with. `accepts_changes`: the user accepts the present programs and settings of checks."""
    policy = journal.state.policy
    kind = workspace or workspaces.workspace_of(policy, journal.state.workspace)
    place = _workspace(services, journal.state, kind)
    commits = services.open_commits(place) if policy == COMMIT_BUILDER and kind == workspaces.CLONE else None
    continued = _has_open_attempt(journal.state) and not accepts_changes
    checks = services.open_checks(place, journal.state.id, continued=continued)
    if contract.variables:
        checks = checks.given(contract.variables)
    checks.watch((*ground.check_commands(contract), *approval_parts.configured_commands(services.settings)))
    return RunContext(
        services,
        journal,
        contract,
        place,
        services.open_agents(place, journal.state.id),
        checks,
        services.gates,
        policy,
        on_deviation,
        max_attempts or services.settings.run.max_attempts,
        Pace(),
        deterministic=deterministic,
        sandboxed=sandboxed,
        commits=commits,
    )


def _has_open_attempt(state: RunState) -> bool:
    return any(task_state.status == outcome.RUNNING for task_state in state.tasks.values())


def _workspace(services: Services, state: RunState, kind: str) -> Workspace:
    """Return the user's own tree, or a fresh clone with what the run did so far."""
    if state.attempted and workspaces.CLONE in (kind, state.workspace):
        abandoned_clones.put_away(services, state)
    place = services.open_workspace(kind, state.id)
    if place.kind == "here":
        return place
    if state.policy not in COMMITTED:  # else it is in HEAD
        done = [t.checkpoint for t in state.tasks.values() if t.checkpoint is not None and t.status in outcome.DONE]
        for kept in sorted(done, key=lambda checkpoint: checkpoint.seq):
            place.trees.restore(kept.tree, kept.tree, kept.files, force=True)
    return place
