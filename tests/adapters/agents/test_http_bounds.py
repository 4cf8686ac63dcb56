"""Limits for a model behind a server: calls per turn, time, and who can read its handoff files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from idumb.agents import registry
from idumb.agents.adapter import Equipment
from idumb.agents.models import http_agent, model_tools
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, AgentRequest, AgentResult
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from idumb.system.redaction import Redactor
from tests.support import chat_server
from tests.support.chat_server import ChatServer, Response

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
READ = ("read_file", {"path": "a.txt"})


def ask(root: Path, *answers: Response, deadline: float = 20.0, tools: bool = True) -> tuple[AgentResult, ChatServer]:
    (root / "a.txt").write_text(f"{TOKEN} a\n", encoding="utf-8")
    with ChatServer(*answers).serving() as server:
        binding = Binding("m", "http", options={"base_url": server.url, "tools": tools})
        agents = registry.build(
            Equipment(Settings(bindings={"m": binding}), str(root), lambda *_: (False, ""), Redactor().redact)
        )
        return agents.get("m").run(dataclasses.replace(a_request(root), deadline=deadline)), server


def a_request(root: Path) -> AgentRequest:
    task = plan.Task("T1-01", "Work", files=(plan.FileClaim("modify", "a.txt"),))
    return AgentRequest(BUILDER, task, "the prompt", str(root), ("a.txt",), ticket="5f0c")


def test_too_many_calls_in_one_turn_end_the_attempt(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    result, server = ask(tmp_path, chat_server.calls(*[READ] * (model_tools.MOST_CALLS + 1)), chat_server.text("Done."))
    assert (result.outcome, len(server.requests)) == (outcome.FAILED, 1)
    assert "in one turn" in result.message


@pytest.mark.parametrize("tools", [True, False])
def test_the_deadline_is_checked_before_every_call(
    tmp_path: Path, *, tools: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-2."""
    calls: list[str] = []
    monkeypatch.setattr(model_tools.ModelTools, "is_late", lambda _: len(calls) >= 2)
    monkeypatch.setattr(model_tools.ModelTools, "call", lambda _, name, __: (not calls.append(name), "words"))  # type: ignore[func-returns-value]
    edits = json.dumps({"edits": [{"tool": "delete_file", "path": "a.txt"}] * 5})
    answer = chat_server.calls(*[READ] * 5) if tools else chat_server.text(edits)
    result, server = ask(tmp_path, answer, chat_server.text("Done."), tools=tools)
    assert (result.outcome, result.failure) == (outcome.TIMED_OUT, agent.STALL)
    assert (len(calls), len(server.requests)) == (2, 1)


def test_an_endlessly_growing_conversation_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ADAPT-2."""
    monkeypatch.setattr(http_agent, "_LONGEST_TALK", 20_000)
    result, _ = ask(tmp_path, chat_server.calls(*[("list_files", {"glob": "x" * 500})] * 5))
    assert (result.outcome, result.failure) == (outcome.FAILED, agent.CONTEXT_EXHAUSTED)


def test_a_server_without_tools_gets_no_secret_from_a_file(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    _, server = ask(tmp_path, chat_server.text('{"edits": []}'), tools=False)
    sent = str(server.requests[0].body)
    assert "[redacted:github:" in sent
    assert TOKEN not in sent


def test_a_handoff_contains_no_secret_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text(f"{TOKEN} a\n", encoding="utf-8")
    agents = registry.build(
        Equipment(
            Settings(bindings={"away": Binding("away", "handoff")}),
            str(work),
            lambda *_: (False, ""),
            Redactor().redact,
            handoffs=str(tmp_path / "handoffs"),
        )
    )
    assert agents.get("away").run(a_request(work)).outcome == outcome.WAITING
    (paper,) = (tmp_path / "handoffs").iterdir()
    assert paper.stat().st_mode & 0o777 == 0o600
    text = paper.read_text(encoding="utf-8")
    assert "[redacted:github:" in text
    assert TOKEN not in text
