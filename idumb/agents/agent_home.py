"""Homes of agents' own, in place of the user's: neither settings nor login of the user reach a run unseen."""

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
    """The home of a binding in one role, in `homes`, where it stays for the run, so that a session can be gone on with.

    Who judges has a new one each time, in `passing`, a folder that goes with the request: what a builder, or an earlier
    judgement, left in a home would be instructions to it.
    """
    folder = passing if homes is None or request.role in _JUDGING else homes
    return os.path.join(folder, f"home-{binding.replace('/', '-')}-{request.role}")


def variables(home: str) -> dict[str, str]:
    """What an environment says of this home."""
    return {"HOME": home, **{name: os.path.join(home, folder) for name, folder in _FOLDERS.items()}}


def make(home: str, *more: str) -> None:
    """Make the home with its folders, and `more` of them; what the agent kept in it stays. Raises OSError."""
    for folder in (home, *(os.path.join(home, name) for name in (*_FOLDERS.values(), *more))):
        os.makedirs(folder, 0o700, exist_ok=True)
