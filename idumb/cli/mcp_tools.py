"""The tools of `idumb mcp`: each runs one command of idumb as a process of its own and gives its JSON object.

A process for each keeps signals, locks and the user's terminal out of the server; nothing is held between two calls but
the phase that the session is about.
"""

from __future__ import annotations

import asyncio
import functools
import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec

from idumb import __version__
from idumb.cli import mcp_next_actions
from idumb.domain.errors import Refusal

Answer = dict[str, Any]
Run = Callable[..., Awaitable[Answer]]
P = ParamSpec("P")

INSTRUCTIONS = (
    "idumb executes plans that are contracts. Begin a session on a phase, take the next task, do exactly that work in"
    " the files that it allows, and submit it. Only bytes count: idumb runs the checks itself. Where work is not"
    " accepted, `ways` of the answer lists what can follow, each with the tool that does it; without a tool it is a"
    " person's: show them the command (ask_person has all of these) and wait. Consent, approval and answers to"
    " questions are never yours to give. Do not commit, and do not edit plans."
)
_CONSENT = "consent."
"""How the ids of questions about consent begin. They are refused unseen: one may be asked while this looks."""
_SKIPPED = "skipped"
_PROGRAM = (sys.executable, "-P", "-m", "idumb")  # without -P a folder `idumb` of the repository would be run


def _with_ways(tool: Callable[P, Coroutine[Any, Any, Answer]]) -> Callable[P, Coroutine[Any, Any, Answer]]:
    """The tool's answer with what can follow, and which tool does that."""

    @functools.wraps(tool)
    async def call(*given: P.args, **named: P.kwargs) -> Answer:
        return mcp_next_actions.marked(await tool(*given, **named))

    return call


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

    @_with_ways
    async def begin_session(self, phase: str, by: str = "an agent") -> Answer:
        """Begin to work on a phase. Answers with its next task, its contract hash, and whether an attempt is open.

        Answers of all tools have `ways`: what can follow, each with the tool that does it, or a person's command.

        by: your own name, for the record.
        """
        answer = await self._say("next", "--", phase)
        if answer["ok"]:
            self.phase, self.by = str(answer["data"]["phase"]), by
        return answer

    @_with_ways
    async def next_task(self) -> Answer:
        """Take the next task of the session's phase: its files are saved and the attempt is open until you submit it.

        Answers with everything that you need: acceptance and its commands, allowed and protected files, limits, the
        feedback of the attempt before, and all of it as a prompt. Where an attempt is open already, it is that one.
        """
        if self.phase is None:
            return _not_begun("next")
        known = await self._say("next", "--", self.phase)
        data = known["data"]
        if known["ok"] and data["open"] is not None and data["open"]["phase"] != data["phase"]:
            return _still_open(data["open"])
        if not known["ok"] or data["open"] is not None or mcp_next_actions.submits(data["next"][0]):
            return known
        if data["task"] is None:
            return await self._nothing_to_do(known)
        return await self._say("start", f"--by={self.by}", "--", str(data["task"]["id"]))

    async def _nothing_to_do(self, known: Answer) -> Answer:
        """Where all is done, what follows; else a refusal that says what is waited for."""
        data = known["data"]
        waits = [f"{one['id']}: {one['what']}" for one in data["decisions"]]
        waits += [f"{one['id']} {one['status']}: {one['why']}" for one in data["others"] if one["status"] != _SKIPPED]
        if not waits:
            rows = (await self._say("status"))["data"].get("phases", ())
            verified = any(row["phase"] == data["phase"] and row["state"] == "verified" for row in rows)
            return {**known, "ways": [mcp_next_actions.way("end_session" if verified else "verify_phase")]}
        words = f"No task of phase {data['phase']} can be taken now: {'; '.join(waits)}."
        ways = [mcp_next_actions.by_command(command) for command in data["next"]]
        return _refused("next", "session.nothing-to-do", words, data["next"][0], ways, waits)

    @_with_ways
    async def submit_task(self, task: str, said: str = "") -> Answer:
        """Have your work on the open task judged. `data.accepted` says whether it holds, `data.feedback` why not.

        said: what you say of your work; it is kept, and counts for nothing.
        """
        return await self._say("submit", f"--say={said}", "--", task)

    @_with_ways
    async def show_task(self, task: str) -> Answer:
        """A task with all its attempts: what each check said, which files were not declared, how they were before."""
        return await self._say("show", "--", task)

    @_with_ways
    async def show_changes(self, task: str) -> Answer:
        """What the last attempt at a task changed, as a diff."""
        return await self._say("diff", "--", task)

    @_with_ways
    async def retry_task(self, task: str) -> Answer:
        """Begin one more attempt at a task that failed, with the feedback of the last one.

        After an undeclared change first undo it with your own tools: `show_task` has the bytes of before
        (`bring_back`). What you did not change yourself may be the person's: leave it, and ask them.
        """
        return await self._say("start", "--retry", f"--by={self.by}", "--", task)

    @_with_ways
    async def give_up_task(self, task: str, why: str) -> Answer:
        """End the open attempt without its work, which is kept in a snapshot and taken out of the files."""
        return await self._say("give-up", f"--why={why}", "--", task)

    @_with_ways
    async def verify_phase(self) -> Answer:
        """Judge the session's phase again from its success criteria, once what failed there was corrected."""
        if self.phase is None:
            return _not_begun("verify-work")
        return await self._say("verify-work", "--", self.phase)

    @_with_ways
    async def ask_person(self, task: str) -> Answer:
        """What only a person can decide about a task that failed or waits, with the command for each choice.

        To widen its files, accept it, leave it out or roll it back is theirs. Show them the choices, and wait.
        """
        shown = await self._say("show", "--", task)
        asked = await self._say("decisions")
        if not shown["ok"] or not asked["ok"]:
            return shown if not shown["ok"] else asked
        data = shown["data"]
        mine = [one for one in asked["data"]["decisions"] if one.get("task") == data["id"]]
        ways = [one for one in data.get("choices", ()) if mcp_next_actions.tool_of(one["command"]) is None]
        if not mine and not ways:
            words = f"{data['id']} is {data['status']}: nothing about it waits for a person."
            look = f"idumb show {data['id']}"
            return _refused("show", "session.nothing-to-ask", words, look, [mcp_next_actions.by_command(look)])
        told = {name: data.get(name) for name in ("id", "phase", "status", "reason")}
        return {**shown, "data": {**told, "choices": ways, "decisions": mine}}

    @_with_ways
    async def status(self) -> Answer:
        """Where every phase is, what waits for a person, and the next command."""
        return await self._say("status")

    @_with_ways
    async def decide(self, decision: str, choice: str, guidance: str = "") -> Answer:
        """The command with which a person answers a question (`status` lists the questions with their choices).

        No tool answers for a person. `retry_task` tries a failed task again.
        guidance: the person's own words to the next attempt.
        """
        if decision.startswith(_CONSENT):
            return _at_a_terminal(decision, choice, guidance)
        asked = await self._say("decisions")
        if not asked["ok"]:
            return asked
        if all(row["id"] != decision for row in asked["data"]["decisions"]):
            words = f"No question has the id {decision}."
            return _refused(
                "decide", "decision.unknown", words, "status", [mcp_next_actions.by_command("idumb decisions")]
            )
        return _at_a_terminal(decision, choice, guidance)

    @_with_ways
    async def verify_workspace_integrity(self) -> Answer:
        """Whether files, plans, git's own files and the event log are as the phase's run left them."""
        return await self._audit("workspace")

    @_with_ways
    async def generate_attestation_bundle(self) -> Answer:
        """Run, plans, commits, evidence and head of the event log in one object with its digest; it is not signed."""
        return await self._audit("bundle")

    async def _audit(self, action: str) -> Answer:
        if self.phase is None:
            return _not_begun("audit")
        return await self._say("audit", "--", action, self.phase)

    @_with_ways
    async def end_session(self, give_up: str = "") -> Answer:
        """End the session. An attempt that is still open must be submitted first, or given up for a reason.

        give_up: why the open task is not finished; its work is kept in a snapshot and taken out of the files.
        """
        known = await self._say("status")
        rows = known["data"].get("phases", ())
        found = next(({**row["open"], "phase": row["phase"]} for row in rows if row.get("open")), None)
        if found is not None and not give_up.strip():
            return _still_open(found, "status")
        if found is not None:
            given = await self._say("give-up", f"--why={give_up}", "--", str(found["task"]))
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
            self.show_task,
            self.show_changes,
            self.retry_task,
            self.give_up_task,
            self.ask_person,
            self.verify_phase,
            self.status,
            self.decide,
            self.verify_workspace_integrity,
            self.generate_attestation_bundle,
            self.end_session,
        )


def _at_a_terminal(decision: str, choice: str, guidance: str) -> Answer:
    words = f"{decision} is answered by a person at a terminal; no tool passes that on."
    command = shlex.join(["idumb", "decide", decision, choice, *(("--guidance", guidance) if guidance else ())])
    way = mcp_next_actions.by_command(command)
    return _refused("decide", "decision.at-terminal", words, f"a person says: {command}", [way], [decision])


def _still_open(found: Answer, command: str = "next") -> Answer:
    words = f"{found['task']} of phase {found['phase']} is open since {found['since']}, for {found['by']}."
    ways = [
        mcp_next_actions.by_command(f"idumb submit {found['task']}"),
        mcp_next_actions.by_command(f"idumb give-up {found['task']} --why REASON"),
    ]
    return _refused(command, "attempt.open", words, f"submit_task {found['task']}, or end_session with give_up", ways)


def _not_begun(command: str) -> Answer:
    ways = [mcp_next_actions.by_tool("begin_session", "begin a session on a phase", "its tasks can be taken")]
    return _refused(command, "session.none", "No session has begun.", "begin_session", ways)


def _refused(
    command: str,
    code: str,
    message: str,
    hint: str,
    choices: Sequence[Mapping[str, Any]],
    evidence: Sequence[str] = (),
) -> Answer:
    """A refusal of the tools' own, with all that every refusal states."""
    from idumb.views import answer

    details = {"what": f"idumb {command}", "why": message, "evidence": [*evidence] or [message], "choices": [*choices]}
    return answer.whole(command, data={}, error={"code": code, "message": message, "hint": hint, "details": details})


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
    words = f"idumb {command} ended with {process.returncode}."
    return _refused(command, "session.no-answer", words, "idumb doctor", [mcp_next_actions.by_command("idumb doctor")])


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
    from mcp.types import CallToolResult, TextContent

    def told(tool: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[CallToolResult]]:
        """The tool as the protocol has it: what is not `ok` is an error there too."""

        @functools.wraps(tool)
        async def call(**given: Any) -> CallToolResult:
            answer = await tool(**given)
            text = TextContent(type="text", text=json.dumps(answer))
            return CallToolResult(content=[text], structured_content=answer, is_error=not answer["ok"])

        return call

    server = MCPServer("idumb", instructions=INSTRUCTIONS, version=__version__)
    for tool in Session(run).tools:
        server.add_tool(told(tool))
    server.run("stdio")
