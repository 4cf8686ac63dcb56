"""Refusals about agents, roles, and the programs around them."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain import failures, outcome
from idumb.domain.refusals.row import STATUS, Row, look, row, way

_START = "Start the agent"
_ASK = "Call an agent"
_CONFIGURE = way(
    "configure",
    "correct the binding in .idumb/config.yaml",
    "this changes the contract, so you are asked for consent again",
)
_OTHER = way("other", "choose another binding for that role", "you are asked for consent again")
_REINSTALL = way("reinstall", "reinstall the package")

_NO_ANSWER = row(
    "Use the agent's answer", way("again", "run the command again", "the agent is called once more"), _OTHER
)

ROWS: Mapping[str, Row] = {
    "agent.bad-address": row(_START, _CONFIGURE),
    "agent.bad-model": row(_START, _CONFIGURE),
    "agent.bad-option": row(_START, _CONFIGURE),
    "agent.inside-repository": row(_START, _CONFIGURE),
    "agent.no-command": row(_START, _CONFIGURE),
    "agent.no-key": row(
        _START,
        way(
            "key", "set the environment variable that holds the key", "the agent can log in; then run the command again"
        ),
        _OTHER,
    ),
    "agent.no-package": row(
        _START,
        way("install", "install the package", "the binding then works as it is", "pip install 'idumb[models]'"),
        way("http", "use the adapter http, which needs no package", "you are asked for consent again"),
    ),
    "agent.no-prompt": row(_START, _REINSTALL),
    "agent.no-recording": row("Replay a run", look("see the runs of a phase", "idumb log"), _CONFIGURE),
    "agent.not-a-person": row(
        "Give a person's consent or answer",
        way("person", "ask a person to run this command in their own terminal", "it is recorded as their decision"),
    ),
    "agent.not-found": row(
        _START,
        way("install", "install the program, or add its folder to PATH", "the binding then works as it is"),
        _CONFIGURE,
    ),
    "agent.no-sandbox": row(
        _START,
        way("install", "install the package bubblewrap", "it protects .git also from tasks with files beside it"),
        way("omit", "run without --require-sandbox", "idumb detects what the agent writes elsewhere"),
    ),
    "agent.not-loadable": row(_START, _REINSTALL, _OTHER),
    "agent.plain-http": row(_START, _CONFIGURE),
    "agent.proxy": row(
        _START, way("unset", "unset the proxy in the environment", "idumb connects to the agent directly"), _CONFIGURE
    ),
    "agent.unknown-adapter": row(_START, _CONFIGURE),
    "agent.unknown-binding": row(_START, _CONFIGURE),
    "agent.unknown-option": row(_START, _CONFIGURE),
    "agent.writable-by-others": row(
        _START,
        way("permit", "remove write permission for group and others", "no other user can change the program"),
        _CONFIGURE,
    ),
    "role.ceiling": row(
        _ASK,
        way(
            "raise",
            "raise the ceiling in .idumb/config.yaml",
            "the agent may use more; you are asked for consent again",
        ),
        look("do not call the agent", "idumb status", "leave"),
    ),
    **{f"role.{kind}": _NO_ANSWER for kind in (*failures.KINDS, *(o.replace("_", "-") for o in outcome.OUTCOMES))},
    "role.unbound": row(
        _ASK,
        way("bind", "name an agent for the role in .idumb/config.yaml", "the agent is called after you consent"),
        STATUS,
    ),
    "mcp.not-installed": row(
        "Serve idumb to an editor",
        way("install", "install the library", "idumb mcp then works", "pip install 'idumb[mcp]'"),
    ),
    "fake-model.log": row(
        "Write the log of the scripted model",
        way("rename", "choose another file with --log", "the log is written there"),
    ),
    "fake-model.port": row("Listen on that port", way("free", "omit --port", "idumb picks a free port")),
    "install.no-user-folder": row(
        "Install the commands for your user",
        way("project", "install them in this project", "they are written into this repository", "{project}"),
    ),
    "install.refused": row(
        "Write the commands", way("permit", "make that path readable and writable", "commands written before it stay")
    ),
    "script.invalid": row("Serve this script", way("correct", "correct the script")),
    "script.unreadable": row("Serve this script", way("permit", "make the file readable")),
}
