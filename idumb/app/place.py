"""The user's repository as a place to work: refusals before anything is touched, and commits by the user's settings."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.app.ports import CommitAttempt, Standing
from idumb.app.services import Services
from idumb.domain.errors import Refusal, WorkFailed
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


def require_standing(services: Services, state: RunState, task: str, before: Standing) -> None:
    """While a task ran, HEAD went forward on its branch if at all, and git's own files are as they were."""
    after = services.history.standing()
    changed = sorted(n for n in {*before.guarded, *after.guarded} if before.guarded.get(n) != after.guarded.get(n))
    if changed:
        raise Refusal(
            "git.guarded-changed",
            f"Files of git's own changed while {task} ran: {', '.join(changed[:5])}",
            hint=f"Look at them and put them back, then idumb resume {state.phase}",
            details={"task": task, "paths": changed},
        )
    require_branch(services, state)
    was = before.head.commit
    if was is not None and not services.history.descends(was):
        raise Refusal(
            "git.branch-rewritten",
            f"While {task} ran, HEAD went from {was} to {after.head.commit or 'no commit'}, which does not contain it.",
            hint=f"git reflog shows what happened; git branch NAME {was} keeps it. Then idumb resume {state.phase}",
            details={"task": task, "was": was, "is": after.head.commit},
        )


def commit(services: Services, paths: Sequence[str], message: str) -> CommitAttempt:
    """Commit these paths on the present HEAD by the user's settings; nothing to commit is no refusal."""
    if not paths:
        return CommitAttempt(None)
    return services.history.commit(
        paths,
        message,
        expected_head=services.history.head().commit,
        hooks=services.settings.git.hooks,
        allow_empty=False,
    )


def commit_or_fail(services: Services, paths: Sequence[str], message: str, what: str) -> str | None:
    """The commit, None where there is nothing to commit; WorkFailed with `what` and git's words when it refuses."""
    made = commit(services, paths, message)
    if paths and made.commit is None:
        raise WorkFailed("git.commit-refused", f"{what}: {made.words}", hint="Mend what git names and say it again")
    return made.commit
