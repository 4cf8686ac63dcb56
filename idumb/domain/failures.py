"""What each kind of agent failure means, and how a person fixes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from idumb.domain import agent
from idumb.lazy_dataclass import dataclass

NOT_PREPARED = "not-prepared"
"""No check could run, because a command of `checkout.prepare` failed."""
GATE_ERROR = "gate-error"
"""A gate could not judge the work: it has an error, had too little time, or knows no command to run."""
PASSED_BEFORE = "passed-before"
"""A check passed before the work too, so it does not show that the work was done."""

BROKEN_HEAD = "broken-head"
"""A check fails on the user's new commit without the work too."""

STOPPING = frozenset(
    {
        NOT_PREPARED,
        GATE_ERROR,
        PASSED_BEFORE,
        agent.MISSING,
        agent.NOT_LOGGED_IN,
        agent.UNKNOWN_MODEL,
        agent.RATE_LIMITED,
        agent.NETWORK,
        agent.OVER_BUDGET,
    }
)
"""Failures that another attempt would meet again: the run stops, and the attempt does not count."""

UNCOUNTED = STOPPING | {agent.CONTEXT_EXHAUSTED, BROKEN_HEAD}


@dataclass(frozen=True, slots=True)
class Kind:
    """`says` follows the name of the agent. `fix` is the next step; `$go_on` in it is the command that continues."""

    says: str
    fix: str


KINDS: Mapping[str, Kind] = {
    agent.MISSING: Kind("cannot be started", "$install, then $go_on"),
    agent.NOT_LOGGED_IN: Kind("is not logged in", "$login, then $go_on"),
    agent.UNKNOWN_MODEL: Kind(
        "does not know the model that it is configured for",
        "Correct or omit `model` in .idumb/config.yaml, then $go_on",
    ),
    agent.DECLINED: Kind("declined the work", "Change the task or choose another builder, then $go_on"),
    agent.RATE_LIMITED: Kind("is limited by its provider", "Wait for the limit to pass, then $go_on"),
    agent.NETWORK: Kind("could not reach its model", "Check the network and the address that it uses, then $go_on"),
    agent.MALFORMED: Kind("gave an unreadable answer", "Read its output with idumb show, then $go_on"),
    agent.STALL: Kind("stopped responding", "If it needs more time, raise idle_timeout; then $go_on"),
    agent.CONTEXT_EXHAUSTED: Kind("filled its context window", "Split the task with idumb amend, or $go_on"),
    agent.OVER_BUDGET: Kind("reached its budget", "Raise the ceiling in .idumb/config.yaml or keep it, then $go_on"),
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
    """Return the command that continues when the cause is fixed.

    A run keeps the configuration that it was approved with. After a change of the configuration, the next run adopts
    the completed tasks.
    """
    return "execute-phase" if kind in (agent.UNKNOWN_MODEL, NOT_PREPARED, GATE_ERROR) else "resume"


def install(program: str) -> str | None:
    """Return the command that installs a known program, or None."""
    return _INSTALL.get(program)


@dataclass(frozen=True, slots=True)
class FailureMessage:
    """A failure in words: what happened, what fixes it, and the command that continues then, unless `fix` names it."""

    kind: str
    message: str
    fix: str
    command: str = ""

    @property
    def next_step(self) -> str:
        return f"{self.fix}, then {self.command}" if self.command else self.fix


def failure_message(kind: str, name: str, argv: Sequence[str], message: str, go_on: str) -> FailureMessage:
    """Return the message.

    `argv` is what the binding `name` starts, `message` the agent's own words, `go_on` the next command.
    """
    row = KINDS[kind]
    program = argv[0].rsplit("/", 1)[-1] if argv else name
    words = {
        "$install": f"Install it: {command}" if (command := install(program)) else f"Install {program}",
        "$login": _LOGIN.get(program, f"Log {program} in, or name its key in the binding's `environment`"),
        "$go_on": go_on,
    }
    fix = row.fix
    for place, text in words.items():
        fix = fix.replace(place, text)
    return FailureMessage(kind, f"{name} {row.says}" + (f": {message}" if message else ""), fix)
