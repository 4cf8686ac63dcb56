"""Private home folders for agents, so that the user's settings and login do not affect a run unnoticed."""

from __future__ import annotations

import os

from idumb.domain import agent
from idumb.domain.agent import AgentRequest

OPTION, OWN, USER = "home", "own", "user"
CHOICES = (OWN, USER)
_FOLDERS = {
    "XDG_CONFIG_HOME": "config",
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "TMPDIR": "tmp",
}
_JUDGING = frozenset({agent.VALIDATOR, agent.VERIFIER, agent.SKEPTIC, agent.PLAN_CHECKER})


def place(homes: str | None, passing: str, binding: str, request: AgentRequest) -> str:
    """Return the home of a binding in one role. It lives in `homes` for the whole run, so that a session can continue.

    A judging role gets a new home each time, in `passing`, a folder deleted with the request: what a builder or an
    earlier judgement left in a home would act as instructions.
    """
    folder = passing if homes is None or request.role in _JUDGING else homes
    return os.path.join(folder, f"home-{binding.replace('/', '-')}-{request.role}")


def variables(home: str) -> dict[str, str]:
    """Return the variables that point to this home."""
    return {"HOME": home, **{name: os.path.join(home, folder) for name, folder in _FOLDERS.items()}}


def make(home: str, *more: str) -> None:
    """Create the home with its folders and `more`; existing agent files stay. Raises OSError."""
    for folder in (home, *(os.path.join(home, name) for name in (*_FOLDERS.values(), *more))):
        os.makedirs(folder, 0o700, exist_ok=True)
