"""`idumb mcp` with the official client library, and its tools without the library."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from idumb.cli import mcp_tools
from idumb.domain.action import Action
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared, prepared_project
from tests.support.project import Project, task
from tests.support.schemas import validator

TOOLS = [
    "begin_session",
    "next_task",
    "submit_task",
    "show_task",
    "show_changes",
    "retry_task",
    "give_up_task",
    "ask_person",
    "verify_phase",
    "status",
    "verify_workspace_integrity",
    "generate_attestation_bundle",
    "end_session",
]
ANSWER = validator("answer")
Call = Callable[..., Awaitable[dict[str, Any]]]
installed = importlib.util.find_spec("mcp") is not None


def _planned(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.configure("run: {max_attempts: 2}\n")
    tasks = [
        task("T1-01", files="create `a.txt`", check="grep -q right a.txt"),
        task("T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01"),
    ]
    project.plan(tasks, head="builder: editor\n")
    return project


def _opened(sandbox: GitSandbox) -> Project:
    project = _planned(sandbox)
    assert project.quick("start", "T1-01", "--approve", project.approval()).code == 0
    return project


project = prepared_project(_planned)


async def work_through(project: Project, call: Call) -> None:
    """A session from its beginning to its end, with a refusal, a failure and work that is given up on the way."""
    assert tools_of(await call("next_task")) == ["begin_session"]
    assert (await call("verify_phase"))["error"]["code"] == "session.none"
    begun = await call("begin_session", phase="1", by="a client")
    assert begun["data"]["contract_hash"] == project.contract_hash()
    refused = await call("next_task")
    assert (refused["ok"], refused["error"]["code"]) == (False, "consent.missing")
    assert project.quick("start", "T1-01", "--approve", project.approval()).code == 0
    assert (await call("next_task"))["data"]["open"]["task"] == "T1-01"
    (project.folder / "a.txt").write_text("wrong\n", encoding="utf-8")
    wrong = await call("submit_task", task="T1-01", said="--on-deviation=keep")
    assert (wrong["ok"], wrong["data"]["accepted"]) == (False, False)
    again = await call("next_task")
    assert "grep -q right a.txt" in again["data"]["task"]["feedback"]
    (project.folder / "a.txt").write_text("right\n", encoding="utf-8")
    assert (await call("submit_task", task="T1-01"))["data"]["accepted"]
    assert "right" in (await call("show_changes", task="T1-01"))["data"]["diff"]
    second = (await call("next_task"))["data"]
    assert (second["open"]["task"], second["open"]["by"]) == ("T1-02", "a client")
    whole = await call("verify_workspace_integrity")
    assert (whole["data"]["intact"], whole["data"]["open"]["task"]) == (True, "T1-02")
    assert (await call("generate_attestation_bundle"))["data"]["signed"] is False
    still = await call("end_session")
    assert (still["error"]["code"], tools_of(still)) == ("attempt.open", ["submit_task", "give_up_task"])
    assert (await call("give_up_task", task="T1-02", why="no time"))["ok"]
    assert (await call("end_session"))["ok"]
    assert project.statuses() == {"T1-01": "completed", "T1-02": "ready"}


def test_a_session_drives_a_phase_from_start_to_end(project: Project) -> None:
    """R-OPS-6: the tools, without the protocol."""

    async def run(*argv: str) -> dict[str, Any]:
        return project.quick(*mcp_tools.with_json(argv)).object

    session = mcp_tools.Session(run)

    async def call(name: str, **given: str) -> dict[str, Any]:
        results: dict[str, Any] = await getattr(session, name)(**given)
        ANSWER.validate(results)
        return results

    asyncio.run(work_through(project, call))


@pytest.mark.nightly
@pytest.mark.timeout(180)
@pytest.mark.skipif(not installed, reason="the extra `mcp` is not installed")
def test_the_official_client_works_through_a_task(prepared: Prepared) -> None:
    """R-OPS-6: over standard input and output."""
    project = prepared.get(_opened)
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def speak() -> None:
        server = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "idumb", "mcp"], cwd=project.folder, env=dict(os.environ)
        )
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS

            async def call(name: str, **given: Any) -> dict[str, Any]:
                answer = await client.call_tool(name, given)
                content = answer.structured_content
                assert isinstance(content, dict)
                assert answer.is_error == (not content["ok"]), content
                assert json.loads(answer.content[0].model_dump()["text"]) == content
                return content

            assert (await call("next_task"))["error"]["code"] == "session.none"
            begun = await call("begin_session", phase=1, by="a client")  # clients send numbers, too
            assert begun["data"]["contract_hash"] == project.contract_hash()
            (project.folder / "a.txt").write_text("right\n", encoding="utf-8")
            assert (await call("submit_task", task="T1-01"))["data"]["accepted"]
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools["retry_task"].input_schema["properties"]) == {"task"}
            assert (await call("retry_task"))["error"]["code"] == "session.bad-call"

    asyncio.run(speak())


TEXT = "is a text without NUL of at most 100000 bytes"
BAD_CALLS: tuple[tuple[str, dict[str, Any], str, dict[str, str]], ...] = (
    ("begin_session", {}, "it needs phase", {"phase": "PHASE"}),
    ("begin_session", {"phase": None}, "it needs phase", {"phase": "PHASE"}),
    ("begin_session", {"phase": ""}, "it needs phase", {"phase": "PHASE"}),
    ("begin_session", {"phaze": "1"}, "it has no argument 'phaze'; it needs phase", {"phase": "PHASE"}),
    ("begin_session", {"phase": ["1"], "by": "me"}, f"phase {TEXT}", {"phase": "PHASE", "by": "me"}),
    ("give_up_task", {"task": "T1-01", "why": True}, f"why {TEXT}", {"task": "T1-01", "why": "WHY"}),
    ("give_up_task", {"task": "T1-01", "why": "\0"}, f"why {TEXT}", {"task": "T1-01", "why": "WHY"}),
    ("submit_task", {"task": "T1-01", "said": "é" * 60_000}, f"said {TEXT}", {"task": "T1-01"}),
    ("status", {"verbose": 1}, "it has no argument 'verbose'", {}),
)


def test_a_call_that_no_tool_can_take_is_refused_in_idumb_s_own_form_with_the_right_call() -> None:
    """R-OPS-6."""
    session = mcp_tools.Session(mcp_tools.run)
    for name, given, why, right in BAD_CALLS:
        answer = asyncio.run(mcp_tools.call_tool(session, name, given))
        ANSWER.validate(answer)
        assert answer["error"]["message"] == f"{name} was not called: {why}."
        assert answer["ways"] == [{"command": None, "tool": {"name": name, "arguments": right}}]
    answer = asyncio.run(mcp_tools.call_tool(session, "sing", {}))
    ANSWER.validate(answer)
    assert (answer["error"]["code"], tools_of(answer)) == ("session.no-tool", ["status"])


def test_a_number_is_taken_as_text_and_null_or_an_empty_text_as_nothing() -> None:
    said: list[tuple[str, ...]] = []

    async def run(*argv: str) -> dict[str, Any]:
        said.append(argv)
        return {"ok": True, "data": {"phase": "6"}, "error": None}

    session = mcp_tools.Session(run)
    for number, by in ((6.2, None), (6, ""), (6.0, None)):
        asyncio.run(mcp_tools.call_tool(session, "begin_session", {"phase": number, "by": by}))
        assert session.by == "an agent"
    assert said == [("next", "--", "6.2"), ("next", "--", "6"), ("next", "--", "6")]


def test_a_long_diff_is_cut_for_a_host_that_would_refuse_the_whole_answer() -> None:
    data = {"base": "b" * 40, "tree": "c" * 40, "diff": "+line\n" * 10_000}

    async def run(*_: str) -> dict[str, Any]:
        return {"ok": True, "data": dict(data), "warnings": []}

    answer = asyncio.run(mcp_tools.call_tool(mcp_tools.Session(run), "show_changes", {"task": "T1-01"}))
    assert answer["data"]["diff"] == "+line\n" * 5_000
    assert f"git diff {data['base']} {data['tree']} -- FILE" in answer["warnings"][0]


def test_a_cancelled_call_ends_its_command_however_much_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import signal, sys, time\nsignal.signal(15, lambda *_: (print('x' * 10**6), sys.exit()))\ntime.sleep(60)"
    monkeypatch.setattr(mcp_tools, "_PROGRAM", (sys.executable, "-c", program))
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(mcp_tools.run("status"), 1))


def test_a_refusal_is_an_error_of_the_protocol_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-OPS-6: with a stand-in for the library, whose import takes two seconds. Ctrl-C ends the server."""
    handlers: dict[str, Callable[..., Coroutine[Any, Any, Any]]] = {}

    class Server:
        def __init__(self, *_: str, **given: Any) -> None:
            handlers.update(given)

        async def run(self, *_: object) -> None:
            assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL

        def create_initialization_options(self) -> None: ...

    async def run(*_: str) -> dict[str, Any]:
        return {"ok": True, "data": {}, "error": None}

    names = ("Tool", "ListToolsResult", "CallToolResult", "TextContent")
    library = SimpleNamespace(types=SimpleNamespace(**dict.fromkeys(names, SimpleNamespace)))
    stdio = SimpleNamespace(stdio_server=contextlib.asynccontextmanager(_streams))
    modules = {"mcp": library, "mcp.server": SimpleNamespace(Server=Server), "mcp.server.stdio": stdio}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(mcp_tools, "run", run)
    before = signal.getsignal(signal.SIGINT)
    try:
        mcp_tools.serve()
    finally:
        signal.signal(signal.SIGINT, before)
    assert [tool.name for tool in asyncio.run(handlers["on_list_tools"]()).tools] == TOOLS
    asked = [SimpleNamespace(name=name, arguments=None) for name in ("next_task", "status")]
    refused, answered = (asyncio.run(handlers["on_call_tool"](None, each)) for each in asked)
    assert (refused.is_error, refused.structured_content["error"]["code"]) == (True, "session.none")
    assert (answered.is_error, json.loads(answered.content[0].text)["ok"]) == (False, True)


async def _streams() -> AsyncIterator[tuple[None, None]]:
    yield None, None


def test_without_the_extra_the_error_names_the_install_command(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)  # as if it were not installed
    refused = project.quick("mcp")
    assert (refused.code, "idumb[mcp]" in refused.err) == (4, True)


def test_the_tools_are_listed_without_the_extra(project: Project) -> None:
    assert [tool["name"] for tool in project.json("mcp", "--list").data["tools"]] == TOOLS


class Tools:
    """The tools of one session, without the protocol, and every command that they ran."""

    def __init__(self, project: Project, phase: str = "1") -> None:
        self.said: list[tuple[str, ...]] = []
        self.session = mcp_tools.Session(self._run)
        self.project = project
        assert self.call("begin_session", phase=phase, by="a client")["ok"]

    async def _run(self, *argv: str) -> dict[str, Any]:
        self.said.append(argv)
        return self.project.quick(*mcp_tools.with_json(argv)).object

    def call(self, name: str, **given: str) -> dict[str, Any]:
        answer: dict[str, Any] = asyncio.run(getattr(self.session, name)(**given))
        ANSWER.validate(answer)
        return answer


def tools_of(answer: dict[str, Any]) -> list[str]:
    """The names of the tools that the answer offers, in their order."""
    return [str(way["tool"]["name"]) for way in answer["ways"] if way["tool"] is not None]


def persons(answer: dict[str, Any]) -> list[str]:
    """The commands that the answer leaves to a person."""
    return [str(way["command"]) for way in answer["ways"] if way["tool"] is None]


@pytest.fixture
def opened(prepared: Prepared) -> Tools:
    """T1-01 is open."""
    return Tools(prepared.get(_opened))


def put(project: Project, path: str, text: str) -> None:
    (project.folder / path).write_text(text, encoding="utf-8")


def test_after_the_last_attempt_a_tool_can_retry_and_a_person_can_decide(opened: Tools) -> None:
    """R-ADAPT-7, R-RUN-5."""
    put(opened.project, "a.txt", "wrong\n")
    first = opened.call("submit_task", task="T1-01")
    assert (first["ok"], tools_of(first)[0]) == (False, "next_task")
    assert opened.call("next_task")["data"]["open"]["task"] == "T1-01"
    last = opened.call("submit_task", task="T1-01")
    assert (last["ok"], tools_of(last)[0]) == (False, "retry_task")
    none = opened.call("next_task")
    assert (none["ok"], none["error"]["code"]) == (False, "session.nothing-to-do")
    assert "T1-01.exhausted.2" in none["error"]["message"]
    assert "retry_task" in tools_of(none)
    decision = opened.call("ask_person", task="T1-01")
    assert [one["id"] for one in decision["data"]["decisions"]] == ["T1-01.exhausted.2"]
    assert [one["id"] for one in decision["data"]["choices"]] == ["take", "accept", "skip", "start-fresh"]
    assert opened.project.statuses()["T1-01"] == "failed"
    assert opened.call("retry_task", task="T1-01")["data"]["open"]["task"] == "T1-01"
    assert opened.project.json("decisions").data["decisions"] == []


def test_an_answer_without_a_next_task_has_a_next_step(opened: Tools) -> None:
    """R-OPS-6: done and verified, the session ends; what waits is a refusal that says for what."""
    for id, path in (("T1-01", "a.txt"), ("T1-02", "b.txt")):
        assert opened.call("next_task")["data"]["open"]["task"] == id
        put(opened.project, path, "right\n")
        assert opened.call("submit_task", task=id)["data"]["accepted"]
    done = opened.call("next_task")
    assert (done["ok"], done["data"]["task"], tools_of(done)[0]) == (True, None, "end_session")
    assert opened.call("end_session")["ok"]


def test_a_task_of_another_builder_is_refused_with_the_command_that_runs_it(sandbox: GitSandbox) -> None:
    """R-OPS-6."""
    project = projects.create(sandbox)
    project.plan([task("T1-01", files="create `a.txt`", check="true")], head="builder: human\n")
    assert project.quick("start", "T1-01", "--approve", project.approval()).code == 4
    refused = Tools(project).call("next_task")
    assert (refused["ok"], refused["error"]["code"]) == (False, "task.other-builder")
    assert "idumb execute-phase 1" in persons(refused)


PERSONS = ("accept", "amend", "approve", "deinit", "execute-phase", "resume", "rollback", "skip", "stop", "undo")


def test_no_tool_runs_a_command_or_option_reserved_for_a_person() -> None:
    """R-ASK-2, R-LOCK-2: whatever an agent passes in, it stays an argument."""
    outputs: list[tuple[str, ...]] = []

    async def run(*argv: str) -> dict[str, Any]:
        outputs.append(argv)
        data = {"phase": "1", "task": {"id": "T1-01"}, "open": None, "decisions": [], "others": [], "next": ["x"]}
        data |= {"id": "T1-01", "status": "failed", "phases": []}
        return {"ok": True, "data": data, "ways": [], "error": None}

    session = mcp_tools.Session(run)
    for tool in (session.begin_session, *session.tools.values()):
        asyncio.run(tool(**dict.fromkeys(inspect.signature(tool).parameters, "--approve=x")))  # type: ignore[arg-type]
    assert {argv[0] for argv in outputs}.isdisjoint(PERSONS)
    given = [word for argv in outputs for word in argv[1 : argv.index("--") if "--" in argv else None]]
    allowed = {"--by", "--say", "--why", "--guidance", "--retry", "--diff", "workspace", "bundle"}
    assert {word.partition("=")[0] for word in given} <= allowed


def test_an_action_is_matched_with_the_tool_that_does_the_same() -> None:
    """R-ADAPT-7, R-ASK-2."""
    tools = {
        Action("show", ("T1-01",)): "show_task",
        Action("start", ("T1-01", "--retry")): "retry_task",
        Action("submit", ("T1-01",)): "submit_task",
        Action("decisions"): "status",
        Action("submit", ("T1-01", "--on-deviation", "keep")): None,
        Action("start", ("T1-01", "--approve", "HASH")): None,
        Action("accept", ("T1-01", "--why", "REASON")): None,
        Action("resume", ("1", "--retry-failed")): None,
    }
    assert {action: (action.tool or {}).get("name") for action in tools} == tools
    assert set(tools.values()) - {None} <= set(TOOLS)
