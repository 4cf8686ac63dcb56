"""The tools of `idumb mcp`: each runs one idumb command in its own process and returns its JSON object.

Separate processes keep signals, locks and the user's terminal out of the server. Between two calls the server keeps
only the phase of the session.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from idumb import __version__
from idumb.app.core import actions
from idumb.domain.action import Action
from idumb.domain.errors import Refusal

Answer = dict[str, Any]
Way = dict[str, Any]
Answerer = Callable[..., Awaitable[Answer]]
"""What answers when it is called: a tool, or a command of idumb."""

INSTRUCTIONS = (
    "idumb executes plans that are contracts. Begin a session on a phase, take the next task, do exactly that work in"
    " the allowed files, and submit it. idumb judges the files and runs the checks itself. If work is not accepted,"
    " `ways` in the answer lists the next steps, each with its tool. A step without a tool needs a person: show them"
    " the command (ask_person lists all of them) and wait. Only a person may consent, approve or answer questions. Do"
    " not commit, and do not edit plans."
)
_SKIPPED = "skipped"
_LONGEST = 100_000
_LONGEST_DIFF = 30_000  # characters; hosts refuse a whole answer of more than 25,000 tokens
_PROGRAM = (sys.executable, "-P", "-m", "idumb")  # -P: never import a folder `idumb` of the repository


class Session(Struct):
    """The state that the tools share. Calls run one at a time, because a working tree has one owner."""

    run: Answerer
    phase: str | None = None
    by: str = "an agent"
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def _idumb(self, *argv: str) -> Answer:
        async with self.busy:
            return await self.run(*argv)

    async def _about_phase(self, *argv: str) -> Answer:
        """Run a command about the session's phase."""
        if self.phase is None:
            return _refused(argv[0], "session.none", "No session has begun.", [_tool("begin_session")])
        return await self._idumb(*argv, "--", self.phase)

    async def begin_session(self, phase: str, by: str = "an agent") -> Answer:
        """Begin a session on a phase. Returns its next task, its contract hash, and whether an attempt is open.

        Every answer has `ways`: the next steps, each with its tool or with a command for a person.

        by: your name, which is recorded.
        """
        answer = await self._idumb("next", "--", phase)
        if answer["ok"]:
            self.phase, self.by = str(answer["data"]["phase"]), by
        return answer

    async def next_task(self) -> Answer:
        """Take the next task of the session's phase. Saves the files and opens an attempt until you submit it.

        Returns everything that you need: acceptance criteria with their commands, allowed and protected files, limits,
        the feedback on the previous attempt, and all of it as a prompt. Returns an attempt that is already open.
        """
        answer = await self._about_phase("next")
        data = answer["data"]
        if answer["ok"] and data["open"] is not None and data["open"]["phase"] != data["phase"]:
            return _still_open(data["open"])
        first = [way["tool"]["name"] for way in answer["ways"][:1] if way["tool"] is not None]
        if not answer["ok"] or data["open"] is not None or first == ["submit_task"]:
            return answer
        if data["task"] is None:
            return await self._nothing_to_do(answer)
        return await self._idumb("start", f"--by={self.by}", "--", str(data["task"]["id"]))

    async def _nothing_to_do(self, answer: Answer) -> Answer:
        """Return the next step if every task is done, else a refusal that lists what the tasks wait for."""
        data = answer["data"]
        waits = [f"{item['id']}: {item['what']}" for item in data["decisions"]]
        waits += [
            f"{item['id']} {item['status']}: {item['why']}" for item in data["others"] if item["status"] != _SKIPPED
        ]
        if not waits:
            rows = (await self._idumb("status"))["data"].get("phases", ())
            verified = any(row["phase"] == data["phase"] and row["state"] == "verified" for row in rows)
            return {**answer, "ways": [_tool("end_session" if verified else "verify_phase"), *answer["ways"]]}
        message = f"No task of phase {data['phase']} can start now: {'; '.join(waits)}."
        return _refused("next", "session.nothing-to-do", message, answer["ways"], waits)

    async def submit_task(self, task: str, said: str = "") -> Answer:
        """Submit your work on the open task. `data.accepted` is the verdict, `data.feedback` the reason for a no.

        said: what you say about your work; it is recorded and does not affect the verdict.
        """
        return await self._idumb("submit", f"--say={said}", "--", task)

    async def show_task(self, task: str) -> Answer:
        """Show a task with its attempts, the results of its checks, and what it changed."""
        return await self._idumb("show", "--", task)

    async def show_changes(self, task: str) -> Answer:
        """Show what the last attempt at a task changed, as a diff. A long one is cut, and `warnings` say so."""
        answer = await self._idumb("show", "--diff", "--", task)
        data = answer["data"]
        if len(diff := data.get("diff", "")) > _LONGEST_DIFF:
            rest = f"git diff {data['base']} {data['tree']} -- FILE shows it whole"
            answer["warnings"].append(f"The diff of {len(diff)} characters is cut after {_LONGEST_DIFF}: {rest}")
            data["diff"] = diff[:_LONGEST_DIFF]
        return answer

    async def retry_task(self, task: str) -> Answer:
        """Start one more attempt at a failed task, with the feedback on the last one."""
        return await self._idumb("start", "--retry", f"--by={self.by}", "--", task)

    async def give_up_task(self, task: str, why: str) -> Answer:
        """End the open attempt without its work. Saves the work in a snapshot, then restores the files."""
        return await self._idumb("give-up", f"--why={why}", "--", task)

    async def ask_person(self, task: str) -> Answer:
        """List what only a person can decide about a failed or waiting task, with the command of each choice.

        Only a person may widen its files, accept it, skip it or roll it back. Show them the choices, and wait.
        """
        shown = await self._idumb("show", "--", task)
        listed = await self._idumb("decisions")
        if not shown["ok"] or not listed["ok"]:
            return shown if not shown["ok"] else listed
        data = shown["data"]
        questions = [question for question in listed["data"]["decisions"] if question.get("task") == data["id"]]
        persons = {way["command"] for way in shown["ways"] if way["tool"] is None}
        choices = [choice for choice in data.get("choices", ()) if choice["command"] in persons]
        if not questions and not choices:
            message = f"{data['id']} is {data['status']} and does not wait for a person."
            return _refused("show", "session.nothing-to-ask", message, [Action.of("show", data["id"]).row()])
        task_data = {name: data.get(name) for name in ("id", "phase", "status", "reason")}
        mine = {choice["command"] for choice in (*choices, *(c for q in questions for c in q["choices"]))}
        ways = [way for way in (*shown["ways"], *listed["ways"]) if way["command"] in mine]
        return {**shown, "data": {**task_data, "choices": choices, "decisions": questions}, "ways": ways}

    async def verify_phase(self) -> Answer:
        """Verify the session's phase again, after you corrected what failed."""
        return await self._about_phase("verify-work")

    async def status(self) -> Answer:
        """Show the state of every phase, what waits for a person, and the next command."""
        return await self._idumb("status")

    async def verify_workspace_integrity(self) -> Answer:
        """Check that files, plans, git's own files and the event log are as the phase's run left them."""
        return await self._about_phase("audit", "workspace")

    async def generate_attestation_bundle(self) -> Answer:
        """Export run, plans, commits, evidence and head of the event log as one object with its digest, not signed."""
        return await self._about_phase("audit", "bundle")

    async def end_session(self) -> Answer:
        """End the session. If an attempt is still open, submit it or give it up first."""
        answer = await self._idumb("status")
        rows = answer["data"].get("phases", ())
        attempt = next(({**row["open"], "phase": row["phase"]} for row in rows if row.get("open")), None)
        if attempt is not None:
            return _still_open(attempt, "status")
        self.phase = None
        return answer

    @property
    def tools(self) -> dict[str, Answerer]:
        """The public methods, by name."""
        names = (name for name, each in vars(Session).items() if inspect.iscoroutinefunction(each))
        return {name: getattr(self, name) for name in names if not name.startswith("_")}


async def call_tool(session: Session, name: str, given: Mapping[str, Any]) -> Answer:
    """Call a tool as a client asked for it. What no tool can take is refused, with the right call.

    Models fill in what they do not know: null and an empty text mean nothing.
    """
    tools = session.tools
    if name not in tools:
        message = f"There is no tool {name}. The tools are {', '.join(tools)}."
        return _refused("mcp", "session.no-tool", message, [_tool("status")])
    tool, told = tools[name], {word: value for word, value in given.items() if value not in (None, "")}
    wanted = inspect.signature(tool).parameters
    wrong = [f"it has no argument {word!r}" for word in told if word not in wanted]
    unfit = [word for word, value in told.items() if not _is_fit(value)]
    wrong += [f"{word} is a text without NUL of at most {_LONGEST} bytes" for word in unfit]
    least = {word: word.upper() for word in _needed(tool)}
    wrong += [f"it needs {word}" for word in least if word not in told]
    if wrong:
        texts = {word: told[word] for word in wanted if isinstance(told.get(word), str) and word not in unfit}
        call = _tool(name, {**least, **texts})
        return _refused("mcp", "session.bad-call", f"{name} was not called: {'; '.join(wrong)}.", [call])
    # Some clients write a whole number as 1.0.
    texts = {word: v if isinstance(v, str) else json.dumps(v).removesuffix(".0") for word, v in told.items()}
    return await tool(**texts)


def _is_fit(value: Any) -> bool:
    """Return whether a value can be an argument of a program: a text or a number, not longer than Linux allows."""
    given = str(value)
    return type(value) in (str, int, float) and "\0" not in given and len(given.encode()) <= _LONGEST


def _still_open(attempt: Answer, command: str = "next") -> Answer:
    task = attempt["task"]
    message = f"{task} of phase {attempt['phase']} has been open since {attempt['since']}, for {attempt['by']}."
    return _refused(command, "attempt.open", message, [Action.of("submit", task).row(), actions.give_up(task).row()])


def _tool(name: str, arguments: Mapping[str, str] | None = None) -> Way:
    """Return a next step that only a tool can do."""
    return {"command": None, "tool": {"name": name, "arguments": dict(arguments or {})}}


def _refused(command: str, code: str, message: str, ways: Sequence[Way], evidence: Sequence[str] = ()) -> Answer:
    """Return a refusal by the tools themselves, with the details that every refusal has."""
    from idumb.views import answer

    choices = [
        {"id": text, "text": text, "consequence": "the session goes on", "command": way["command"]}
        for way in ways
        if (text := way["command"] or f"call {way['tool']['name']}")
    ]
    details = {"what": f"idumb {command}", "why": message, "evidence": [*evidence] or [message], "choices": choices}
    error = {"code": code, "message": message, "hint": choices[0]["text"], "details": details}
    return {**answer.json_object(command, data={}, error=error), "ways": [*ways]}


def with_json(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments with the option before those that are no options."""
    end = argv.index("--") if "--" in argv else len(argv)
    return (*argv[:end], "--json", *argv[end:])


async def run(*argv: str) -> Answer:
    """Run one command in the current folder and return its answer, or a refusal if it gave none."""
    process = await asyncio.create_subprocess_exec(
        *_PROGRAM,
        *with_json(argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()  # it stops at a safe point, records that, and answers
        await process.communicate()
        raise
    try:
        answer: Answer = json.loads(out)
    except ValueError:
        message = f"idumb {argv[0]} exited with {process.returncode} and no answer."
        return _refused(argv[0], "session.no-answer", message, [Action("doctor").row()])
    return answer


def listed() -> list[dict[str, str]]:
    """Return the name and the first line of each tool."""
    return [
        {"name": name, "about": (tool.__doc__ or "").partition("\n")[0]} for name, tool in Session(run).tools.items()
    ]


def _schema(tool: Answerer) -> dict[str, Any]:
    words = inspect.signature(tool).parameters
    return {"type": "object", "properties": {word: {"type": "string"} for word in words}, "required": _needed(tool)}


def _needed(tool: Answerer) -> list[str]:
    return [word for word, each in inspect.signature(tool).parameters.items() if each.default is each.empty]


def serve() -> None:
    """Serve until standard input ends. Refuses (`mcp.not-installed`) without the extra."""
    try:
        from mcp import types
        from mcp.server import Server
        from mcp.server.stdio import stdio_server
    except ImportError as missing:
        raise Refusal(
            "mcp.not-installed",
            "The library for the Model Context Protocol is not installed.",
            hint="pip install 'idumb[mcp]'",
        ) from missing
    session = Session(run)

    async def tools(*_: object) -> types.ListToolsResult:
        rows = [
            types.Tool(name=name, description=inspect.getdoc(tool), input_schema=_schema(tool))
            for name, tool in session.tools.items()
        ]
        return types.ListToolsResult(tools=rows)

    async def call(_: object, asked: types.CallToolRequestParams) -> types.CallToolResult:
        """An answer that is not `ok` is an error of the protocol too."""
        answer = await call_tool(session, asked.name, asked.arguments or {})
        text = types.TextContent(type="text", text=json.dumps(answer))
        return types.CallToolResult(content=[text], structured_content=answer, is_error=not answer["ok"])

    server = Server("idumb", instructions=INSTRUCTIONS, version=__version__, on_list_tools=tools, on_call_tool=call)

    async def speak() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the library waits for a line, whatever else happens
    asyncio.run(speak())
