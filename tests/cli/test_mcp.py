"""`idumb mcp`, as the official client library sees it; and what its tools do where that is not installed."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from idumb.cli import mcp_tools
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

TOOLS = [
    "begin_session",
    "next_task",
    "submit_task",
    "status",
    "decide",
    "verify_workspace_integrity",
    "generate_attestation_bundle",
    "end_session",
]
Call = Callable[..., Awaitable[dict[str, Any]]]
installed = importlib.util.find_spec("mcp") is not None


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    made = projects.create(sandbox)
    tasks = [
        task("T1-01", files="create `a.txt`", check="grep -q right a.txt"),
        task("T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01"),
    ]
    made.plan(tasks, head="builder: editor\n")
    return made


async def work_through(project: Project, call: Call) -> None:
    """A session from its beginning to its end, with a refusal, a failure and work that is given up on the way."""
    assert (await call("next_task"))["error"]["code"] == "session.none"
    begun = await call("begin_session", phase="1", by="a client")
    assert begun["data"]["contract_hash"] == project.approval()
    refused = await call("next_task")
    assert (refused["ok"], refused["error"]["code"]) == (False, "consent.missing")
    assert project.quick("start", "T1-01", "--approve", project.approval()).code == 0
    assert (await call("next_task"))["data"]["open"]["task"] == "T1-01"
    (project.folder / "a.txt").write_text("wrong\n", encoding="utf-8")
    wrong = await call("submit_task", task="T1-01", said="--on-deviation=accept")
    assert (wrong["ok"], wrong["data"]["accepted"]) == (False, False)
    again = await call("next_task")
    assert "grep -q right a.txt" in again["data"]["task"]["feedback"]
    (project.folder / "a.txt").write_text("right\n", encoding="utf-8")
    assert (await call("submit_task", task="T1-01"))["data"]["accepted"]
    second = (await call("next_task"))["data"]
    assert (second["open"]["task"], second["open"]["by"]) == ("T1-02", "a client")
    assert (await call("decide", decision="none", choice="yes"))["ok"] is False
    whole = await call("verify_workspace_integrity")
    assert (whole["data"]["intact"], whole["data"]["open"]["task"]) == (True, "T1-02")
    assert (await call("generate_attestation_bundle"))["data"]["signed"] is False
    assert (await call("end_session"))["error"]["code"] == "attempt.open"
    assert (await call("end_session", give_up="no time"))["ok"]
    assert project.statuses() == {"T1-01": "completed", "T1-02": "ready"}


def test_a_session_goes_from_its_beginning_to_its_end(project: Project) -> None:
    """R-OPS-6: the tools, without the protocol."""

    async def run(*argv: str) -> dict[str, Any]:
        return project.idumb(argv[0], "--json", *argv[1:]).object

    session = mcp_tools.Session(run)

    async def call(name: str, **given: str) -> dict[str, Any]:
        found: dict[str, Any] = await getattr(session, name)(**given)
        return found

    asyncio.run(work_through(project, call))


def test_a_command_that_a_tool_runs_answers_for_the_current_folder(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder `idumb` of the repository is not taken for the program."""
    (project.folder / "idumb").mkdir()
    (project.folder / "idumb" / "__main__.py").write_text("print('{}')\n", encoding="utf-8")
    (project.folder / "idumb" / "__init__.py").touch()
    monkeypatch.chdir(project.folder)
    assert asyncio.run(mcp_tools.run("status"))["data"]["phases"][0]["phase"] == "1"


def _session(project: Project) -> mcp_tools.Session:
    async def run(*argv: str) -> dict[str, Any]:
        return project.idumb(argv[0], "--json", *argv[1:]).object

    return mcp_tools.Session(run)


def test_no_task_is_handed_out_while_an_attempt_of_another_phase_is_open(project: Project) -> None:
    """R-ADAPT-7: one attempt is open at most, and the session's phase has to wait for it."""
    project.plan([task("T2-01", files="create `c.txt`", check="true")], phase="2", head="builder: editor\n")
    assert project.quick("start", "T2-01", "--approve", project.approval("2")).code == 0
    assert project.json("next", "1").data["task"] is None
    session = _session(project)

    async def taken() -> dict[str, Any]:
        assert (await session.begin_session("1"))["ok"]
        return await session.next_task()

    refused = asyncio.run(taken())
    assert (refused["ok"], refused["error"]["code"]) == (False, "attempt.open")
    assert "T2-01" in refused["error"]["hint"]


@pytest.mark.parametrize(
    ("kind", "choice", "passed_on"),
    [
        ("deviation", "accept", False),
        ("consent", "yes", False),
        ("effect", "skip", False),
        ("failure", "skip", False),
        ("effect", "again", True),
        ("criterion", "yes", True),
        ("decision", "skip", True),
    ],
)
def test_answers_that_a_person_gives_at_a_terminal_are_not_passed_on(
    kind: str, choice: str, *, passed_on: bool
) -> None:
    """No tool accepts undeclared changes, consents or leaves a task out."""
    said: list[tuple[str, ...]] = []

    async def run(*argv: str) -> dict[str, Any]:
        said.append(argv)
        return {"ok": True, "data": {"decisions": [{"id": "T1-01.q", "kind": kind}]}}

    answer = asyncio.run(mcp_tools.Session(run).decide("T1-01.q", choice))
    assert (answer["ok"], said[-1][0] == "decide") == (passed_on, passed_on)
    if not passed_on:
        assert answer["error"]["code"] == "decision.at-terminal"
        assert f"idumb decide T1-01.q {choice}" in answer["error"]["hint"]


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(not installed, reason="the extra `mcp` is not installed")
def test_the_official_client_works_through_a_phase(project: Project) -> None:
    """R-OPS-6: over standard input and output."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def speak() -> None:
        server = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "idumb", "mcp"], cwd=project.folder, env=dict(os.environ)
        )
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS

            async def call(name: str, **given: str) -> dict[str, Any]:
                found = (await client.call_tool(name, given)).structured_content
                assert isinstance(found, dict)
                return found

            await work_through(project, call)

    asyncio.run(speak())


@pytest.mark.skipif(installed, reason="the extra `mcp` is installed")
def test_without_the_extra_it_says_how_to_get_it(project: Project) -> None:
    refused = project.quick("mcp")
    assert (refused.code, "idumb[mcp]" in refused.err) == (4, True)


def test_the_tools_are_listed_without_the_extra(project: Project) -> None:
    assert [tool["name"] for tool in project.json("mcp", "--list").data["tools"]] == TOOLS
