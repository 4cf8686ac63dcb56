"""The tools of `idumb mcp`: each runs one command of idumb as a process of its own and gives its JSON object.

A process for each keeps signals, locks and the user's terminal out of the server; nothing is held between two calls but
the phase that the session is about.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from idumb import __version__
from idumb.domain.errors import Refusal

Answer = dict[str, Any]
Run = Callable[..., Awaitable[Answer]]

INSTRUCTIONS = (
    "idumb executes plans that are contracts. Begin a session on a phase, take the next task, do exactly that work in"
    " the files that it allows, and submit it. Only bytes count: idumb runs the checks itself. Consent, approval and"
    " answers to questions are a person's: pass their words on, never give them yourself. Do not commit, and do not"
    " edit plans."
)
_AT_A_TERMINAL = frozenset({"deviation", "consent", "approval", "irreversible", "secret", "verification"})
_CONSENT = "consent."
"""How the ids of questions about consent begin. They are refused unseen: one may be asked while this looks."""
_LEAVES_OUT = frozenset({("effect", "skip"), ("failure", "skip")})
"""Kinds of questions, and (kind, choice): a plan may offer a choice of its own by the same name."""
_PROGRAM = (sys.executable, "-P", "-m", "idumb")  # without -P a folder `idumb` of the repository would be run


@dataclass(slots=True)
class Session:
    """What the tools share. Calls wait for each other: a work tree has one owner."""

    run: Run
    phase: str | None = None
    by: str = "an agent"
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def _say(self, *argv: str) -> Answer:
        async with self.busy:
            return await self.run(*argv)

    async def begin_session(self, phase: str, by: str = "an agent") -> Answer:
        """Begin to work on a phase. Answers with its next task, its contract hash, and whether an attempt is open.

        by: your own name, for the record.
        """
        answer = await self._say("next", "--", phase)
        if answer["ok"]:
            self.phase, self.by = str(answer["data"]["phase"]), by
        return answer

    async def next_task(self) -> Answer:
        """Take the next task of the session's phase: its files are saved and the attempt is open until you submit it.

        Answers with everything that you need: acceptance and its commands, allowed and protected files, limits, the
        feedback of the attempt before, and all of it as a prompt. Where an attempt is open already, it is that one.
        """
        if self.phase is None:
            return _refused("next", "session.none", "No session has begun.", "begin_session")
        known = await self._say("next", "--", self.phase)
        data = known["data"]
        if known["ok"] and data["open"] is not None and data["open"]["phase"] != data["phase"]:
            return _still_open(data["open"])
        if not known["ok"] or data["open"] is not None or data["task"] is None:
            return known
        return await self._say("start", f"--by={self.by}", "--", str(data["task"]["id"]))

    async def submit_task(self, task: str, said: str = "") -> Answer:
        """Have your work on the open task judged. `data.accepted` says whether it holds, `data.feedback` why not.

        said: what you say of your work; it is kept, and counts for nothing.
        """
        return await self._say("submit", f"--say={said}", "--", task)

    async def status(self) -> Answer:
        """Where every phase is, what waits for a person, and the next command."""
        return await self._say("status")

    async def decide(self, decision: str, choice: str, guidance: str = "") -> Answer:
        """Pass on the answer of a person to a question (`status` lists them with their choices). Never answer yourself.

        Whose undeclared changes are, consent, whether a secret is committed, that a task is left out, and that a phase
        counts as verified, a person says at a terminal.
        guidance: the person's own words to the next attempt.
        """
        if decision.startswith(_CONSENT):
            return _at_a_terminal(decision, choice)
        asked = await self._say("decisions")
        if not asked["ok"]:
            return asked
        kind = next((str(row["kind"]) for row in asked["data"]["decisions"] if row["id"] == decision), "")
        if kind in _AT_A_TERMINAL or (kind, choice) in _LEAVES_OUT:
            return _at_a_terminal(decision, choice)
        return await self._say("decide", f"--guidance={guidance}", "--", decision, choice)

    async def verify_workspace_integrity(self) -> Answer:
        """Whether files, plans, git's own files and the event log are as the phase's run left them."""
        return await self._audit("workspace")

    async def generate_attestation_bundle(self) -> Answer:
        """Run, plans, commits, evidence and head of the event log in one object with its digest; it is not signed."""
        return await self._audit("bundle")

    async def _audit(self, action: str) -> Answer:
        if self.phase is None:
            return _refused("audit", "session.none", "No session has begun.", "begin_session")
        return await self._say("audit", "--", action, self.phase)

    async def end_session(self, give_up: str = "") -> Answer:
        """End the session. An attempt that is still open must be submitted first, or given up for a reason.

        give_up: why the open task is not finished; its work is kept in a snapshot and taken out of the files.
        """
        known = await self._say("status")
        rows = known["data"].get("phases", ())
        task = next((row["open"]["task"] for row in rows if row.get("open")), None)
        if task is not None and not give_up.strip():
            hint = f"submit_task {task}, or end_session with give_up"
            return _refused("status", "attempt.open", f"{task} is still open.", hint)
        if task is not None:
            given = await self._say("give-up", f"--why={give_up}", "--", str(task))
            if not given["ok"]:
                return given
            known = await self._say("status")
        self.phase = None
        return known

    @property
    def tools(self) -> tuple[Callable[..., Awaitable[Answer]], ...]:
        return (
            self.begin_session,
            self.next_task,
            self.submit_task,
            self.status,
            self.decide,
            self.verify_workspace_integrity,
            self.generate_attestation_bundle,
            self.end_session,
        )


def _at_a_terminal(decision: str, choice: str) -> Answer:
    words = f"{decision} is answered by a person at a terminal; no tool passes that on."
    return _refused("decide", "decision.at-terminal", words, f"a person says: idumb decide {decision} {choice}")


def _still_open(found: Answer) -> Answer:
    words = f"{found['task']} of phase {found['phase']} is open since {found['since']}, for {found['by']}."
    return _refused("next", "attempt.open", words, f"submit_task {found['task']}, or end_session with give_up")


def _refused(command: str, code: str, message: str, hint: str) -> Answer:
    from idumb.views import answer

    return answer.whole(command, data={}, error={"code": code, "message": message, "hint": hint, "details": {}})


async def run(*argv: str) -> Answer:
    """One command in the current folder; what it answers, or a refusal where it answered nothing."""
    command, *rest = argv
    process = await asyncio.create_subprocess_exec(
        *_PROGRAM,
        command,
        "--json",
        *rest,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()  # it stops at a safe point and says so in the log
        await process.wait()
        raise
    try:
        found = json.loads(out)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    return _refused(command, "session.no-answer", f"idumb {command} ended with {process.returncode}.", "idumb doctor")


def listed() -> list[dict[str, str]]:
    """Name and first line of each tool."""
    return [{"name": _name(t), "about": (t.__doc__ or "").partition("\n")[0]} for t in Session(run).tools]


def _name(tool: Callable[..., Awaitable[Answer]]) -> str:
    return str(getattr(tool, "__name__", ""))


def serve() -> None:
    """Until standard input ends. Refusal `mcp.not-installed` without the extra."""
    try:
        from mcp.server import MCPServer
    except ImportError as missing:
        raise Refusal(
            "mcp.not-installed",
            "The library for the Model Context Protocol is not installed.",
            hint="pip install 'idumb[mcp]'",
        ) from missing
    server = MCPServer("idumb", instructions=INSTRUCTIONS, version=__version__)
    for tool in Session(run).tools:
        server.add_tool(tool)
    server.run("stdio")
