"""Where the programs of a run work: in the user's own tree, or in a clone."""

from __future__ import annotations

from idumb.domain.errors import Refusal
from idumb.domain.settings import COMMIT_BUILDER, Settings

CLONE = "clone"
HERE = "here"


def require_clone(settings: Settings, workspace: str | None) -> None:
    """Refuse another workspace under the policy `builder`."""
    if settings.git.commit == COMMIT_BUILDER and workspace == HERE:
        raise Refusal(
            "commit.needs-clone",
            "`git.commit: builder` lets builders commit in a private clone; --workspace here would let them commit"
            " on your own branch.",
            hint="Omit --workspace, or set `git: {commit: task}` in .idumb/config.yaml",
        )


def workspace_of(policy: str, usual: str) -> str:
    """Return where tasks run under a policy, unless a command names another workspace."""
    return CLONE if policy == COMMIT_BUILDER else usual
