"""Refusals that the state of the repository gives, before anything is touched."""

from __future__ import annotations

from idumb.app.services import Services
from idumb.domain.errors import Refusal
from idumb.domain.run import RunState


def require_initialised(services: Services) -> None:
    if not services.reports.exists(".idumb/config.yaml"):
        raise Refusal("state.not-initialised", "idumb is not set up in this repository.", hint="idumb init")


def require_repository(services: Services) -> None:
    """No merge or the like in progress, and an identity where commits are to be made."""
    obstacle = services.history.obstacle()
    if obstacle is not None:
        code, message = obstacle
        raise Refusal(code, message, hint="git status tells how to finish or abort it")
    problem = services.history.identity_problem() if services.settings.git.commit == "task" else None
    if problem is not None:
        raise Refusal(
            "git.no-identity",
            f"git cannot commit for you: {problem}",
            hint="git config user.name NAME; git config user.email ADDRESS",
        )


def require_branch(services: Services, state: RunState) -> None:
    """A run goes on, back and forth only on the branch that it was started on."""
    head = services.history.head()
    if head.branch != state.branch:
        raise Refusal(
            "git.other-branch",
            f"The run was started on {state.branch or 'a detached HEAD'}; HEAD is on {head.branch or 'no branch'} now.",
            hint=f"git switch {state.branch}" if state.branch else "git switch --detach COMMIT",
        )
