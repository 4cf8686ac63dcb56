"""Refusals about agents, roles, and the programs beside them."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain import failures, outcome
from idumb.domain.refusals.row import DOCTOR, LOOK, STATUS, Row, row, way

_START = "Start the agent"
_ASK = "Ask an agent"
_CONFIGURE = way(
    "configure",
    "correct the binding in .idumb/config.yaml",
    "the contract's hash changes with it, so consent is asked for again",
)
_OTHER = way("other", "name another binding for that role", "consent is asked for again")
_REINSTALL = way("reinstall", "install the package again", "then run the same command again")

_NO_ANSWER = row(
    "Use the agent's answer", way("again", "run the same command again", "the agent is asked once more"), _OTHER
)

ROWS: Mapping[str, Row] = {
    "agent.bad-address": row(_START, _CONFIGURE),
    "agent.bad-model": row(_START, _CONFIGURE),
    "agent.bad-option": row(_START, _CONFIGURE),
    "agent.inside-repository": row(_START, _CONFIGURE),
    "agent.no-command": row(_START, _CONFIGURE),
    "agent.no-key": row(
        _START, way("key", "set the variable that holds the key", "the agent can log in; then run it again"), _OTHER
    ),
    "agent.no-package": row(
        _START,
        way("install", "install the package", "the binding works as it is", "pip install 'idumb[models]'"),
        way("http", "use the adapter http, which needs nothing", "consent is asked for again"),
    ),
    "agent.no-prompt": row(_START, _REINSTALL),
    "agent.no-recording": row("Replay a run", way("look", "see the runs of a phase", LOOK, "idumb log"), _CONFIGURE),
    "agent.not-a-person": row(
        "Speak for a person",
        way("person", "let a person run this command in a terminal of their own", "it is their word then"),
    ),
    "agent.not-found": row(
        _START,
        way("install", "install the program, or put its folder on PATH", "the binding works as it is"),
        _CONFIGURE,
    ),
    "agent.not-loadable": row(_START, _REINSTALL, _OTHER),
    "agent.plain-http": row(_START, _CONFIGURE),
    "agent.proxy": row(
        _START, way("unset", "unset the proxy in the environment", "the agent is reached directly"), _CONFIGURE
    ),
    "agent.unknown-adapter": row(_START, _CONFIGURE),
    "agent.unknown-binding": row(_START, _CONFIGURE),
    "agent.unknown-option": row(_START, _CONFIGURE),
    "agent.writable-by-others": row(
        _START, way("permit", "take write permission from group and others", "nobody else can change it"), _CONFIGURE
    ),
    "role.ceiling": row(
        _ASK,
        way("raise", "raise the ceiling in .idumb/config.yaml", "the agent may use more; consent is asked for again"),
        way("leave", "leave it unasked", LOOK, "idumb status"),
    ),
    "role.changed-tree": row(
        "Use the agent's answer", DOCTOR, way("again", "run the same command again", "the agent is asked once more")
    ),
    **{f"role.{kind}": _NO_ANSWER for kind in (*failures.KINDS, *(o.replace("_", "-") for o in outcome.OUTCOMES))},
    "role.unbound": row(
        _ASK,
        way("bind", "name an agent for the role in .idumb/config.yaml", "it is asked once you consented"),
        STATUS,
    ),
    "mcp.not-installed": row(
        "Serve idumb to an editor",
        way("install", "install the library", "idumb mcp works then", "pip install 'idumb[mcp]'"),
    ),
    "fake-model.log": row(
        "Write the log of the scripted model", way("rename", "name another file with --log", "it is written there")
    ),
    "fake-model.port": row("Listen on that port", way("free", "leave out --port", "a port that is free is taken")),
    "install.no-user-folder": row(
        "Install the commands for your user",
        way("project", "install them in this project", "they are files of this repository", "{project}"),
    ),
    "install.refused": row(
        "Write the commands", way("permit", "permit that path to be read and written", "what came before it stands")
    ),
    "script.invalid": row("Serve this script", way("correct", "correct the script", "it is served then")),
    "script.unreadable": row("Serve this script", way("permit", "make the file readable", "it is served then")),
}
