"""What it means that an agent could not do its work, and what a person does about it: one row for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from idumb.domain import agent

STOPPING = frozenset(
    {
        agent.MISSING,
        agent.NOT_LOGGED_IN,
        agent.UNKNOWN_MODEL,
        agent.RATE_LIMITED,
        agent.NETWORK,
        agent.OVER_BUDGET,
    }
)
"""Kinds that say nothing of the work, and that another attempt would meet again: the run stops, no attempt counts."""

UNCOUNTED = STOPPING | {agent.CONTEXT_EXHAUSTED}


@dataclass(frozen=True, slots=True)
class Kind:
    """`says` follows the name of the agent; `mend` is what to do, `$go_on` in it the command that goes on."""

    says: str
    mend: str


KINDS: Mapping[str, Kind] = {
    agent.MISSING: Kind("cannot be started", "$install, then $go_on"),
    agent.NOT_LOGGED_IN: Kind("is not logged in", "$login, then $go_on"),
    agent.UNKNOWN_MODEL: Kind(
        "does not know the model that it is configured for",
        "Correct or omit `model` in .idumb/config.yaml, then $go_on",
    ),
    agent.DECLINED: Kind("declined the work", "Change what the task asks for, or name another builder; then $go_on"),
    agent.RATE_LIMITED: Kind("is limited by its provider", "Wait for the limit to pass, then $go_on"),
    agent.NETWORK: Kind("could not reach its model", "Look at the network and at the address it uses, then $go_on"),
    agent.MALFORMED: Kind("gave an answer that nobody can read", "idumb show tells what it said; then $go_on"),
    agent.STALL: Kind("stopped working without an end", "Raise idle_timeout if it needs the time, then $go_on"),
    agent.CONTEXT_EXHAUSTED: Kind("filled its context", "Split the task: idumb amend; or $go_on"),
    agent.OVER_BUDGET: Kind("reached its budget", "Raise the ceiling in .idumb/config.yaml, or leave it; then $go_on"),
}

_INSTALL: Mapping[str, str] = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "gemini": "npm install -g @google/gemini-cli",
    "qwen": "npm install -g @qwen-code/qwen-code",
    "copilot": "npm install -g @github/copilot",
    "opencode": "npm install -g opencode-ai",
}
_LOGIN: Mapping[str, str] = {
    "claude": "Start claude and type /login, or set ANTHROPIC_API_KEY and name it in the binding's `environment`",
    "codex": "codex login",
    "gemini": "Start gemini once, or set GEMINI_API_KEY and name it in the binding's `environment`",
    "qwen": "Start qwen once, or set OPENAI_API_KEY and name it in the binding's `environment`",
    "copilot": "Start copilot and type /login",
    "opencode": "opencode auth login",
}


def command(kind: str | None) -> str:
    """The command that goes on once the cause is gone.

    A run keeps to the configuration that it was agreed to; under another one the next run takes over what is done.
    """
    return "execute-phase" if kind == agent.UNKNOWN_MODEL else "resume"


def install(program: str) -> str | None:
    """The command that installs a program, where it is a known one."""
    return _INSTALL.get(program)


@dataclass(frozen=True, slots=True)
class FailureMessage:
    """A failure in words: what happened, and the next step."""

    kind: str
    message: str
    mend: str


def failure_message(kind: str, name: str, argv: Sequence[str], message: str, go_on: str) -> FailureMessage:
    """`name` is the binding's, `argv` what it starts, `message` the agent's own words, `go_on` the next command."""
    known = KINDS[kind]
    program = argv[0].rsplit("/", 1)[-1] if argv else name
    words = {
        "$install": f"Install it: {command}" if (command := install(program)) else f"Install {program}",
        "$login": _LOGIN.get(program, f"Log {program} in, or name its key in the binding's `environment`"),
        "$go_on": go_on,
    }
    mend = known.mend
    for place, text in words.items():
        mend = mend.replace(place, text)
    return FailureMessage(kind, f"{name} {known.says}" + (f": {message}" if message else ""), mend)
