"""The agent behind a Chat Completions server: edits within scope, verdicts, and every way to fail (R-ADAPT-2)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from idumb.agents import registry
from idumb.agents.adapter import Equipment
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, PLANNER, VALIDATOR, AgentRequest, AgentResult, Budget
from idumb.domain.errors import AdapterError
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from tests.support import chat_server, fake_model
from tests.support.cases import every
from tests.support.chat_server import ChatServer, Response

FILES = (plan.FileClaim("create", "a.txt"), plan.FileClaim("modify", "src/b.txt"))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(chat_server.text("Done.")).serving() as serving:
        yield serving


def bound(root: Path, url: str, environment: tuple[str, ...] = (), **options: Any) -> registry.AgentRegistry:
    binding = Binding("model", "http", environment=environment, options={"base_url": url, **options}, model="m-1")
    redact = lambda text: text.replace("sk-secret", "[key]")  # noqa: E731 - one word
    return registry.build(Equipment(Settings(bindings={"model": binding}), str(root), lambda *_: (False, ""), redact))


def a_request(root: Path, role: str = BUILDER, **more: Any) -> AgentRequest:
    task = plan.Task("T1-01", "Work", files=FILES)
    request = AgentRequest(role, task, "the prompt", str(root), ("a.txt", "src/b.txt"), deadline=10.0)
    return dataclasses.replace(request, **more)


def ask(server: ChatServer, root: Path, role: str = BUILDER, *answers: Response, **options: Any) -> AgentResult:
    if answers:
        server.answers = list(answers)
    return bound(root, server.url, **options).get("model").run(a_request(root, role))


def test_edits_are_made_by_tool_calls_and_recorded(server: ChatServer, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/b.txt").write_text("one two\n", encoding="utf-8")
    result = ask(
        server,
        tmp_path,
        BUILDER,
        chat_server.calls(("read_file", {"path": "src/b.txt"})),
        chat_server.calls(
            ("write_file", {"path": "a.txt", "content": "new\n", "intent": "make it"}),
            ("edit_file", {"path": "src/b.txt", "find": "two", "replace": "2", "intent": "count"}),
        ),
        chat_server.text("Both are done."),
    )
    assert result.outcome == outcome.COMPLETED
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "new\n"
    assert (tmp_path / "src/b.txt").read_text(encoding="utf-8") == "one 2\n"
    assert [(s.tool, s.intent, s.ok) for s in result.steps] == [
        ("write_file", "make it", True),
        ("edit_file", "count", True),
    ]
    assert result.claimed_files == ("a.txt", "src/b.txt")
    assert (result.reply, result.model) == ("Both are done.", "loop-1")
    assert (result.usage.tokens_in, result.usage.tokens_out, result.usage.cost_usd) == (30, 15, None)
    assert server.requests[1].body["messages"][-1]["content"] == "one two\n"


@every("tokens", [-5, 10**400, 10**13, True, "3"])
def test_impossible_usage_is_unknown(server: ChatServer, tmp_path: Path, tokens: Any) -> None:
    """R-ADAPT-3: a server cannot raise a ceiling or break the log by the usage that it reports."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 4}
    result = ask(server, tmp_path, PLANNER, chat_server.text("Done.", usage))
    assert (result.outcome, result.usage.tokens_in, result.usage.tokens_out) == (outcome.COMPLETED, None, 4)


@every(
    "name, arguments, word",
    [
        ("write_file", {"path": "other.txt", "content": "x"}, "not a file of this task"),
        ("write_file", {"path": "../a.txt", "content": "x"}, "not a file of this task"),
        ("move_file", {"from": "src/b.txt", "to": "c.txt"}, "not a file of this task"),
        ("delete_file", {"path": ".git/HEAD"}, "not a file of this task"),
        ("run", {"command": "touch other.txt"}, "unknown tool run"),
        ("read_file", {"path": ".env"}, "may contain secrets"),
        ("read_file", {"path": "src/../.git/config"}, ".."),
        ("read_file", {"path": "outside"}, "symbolic link"),
        ("edit_file", {"path": "src/b.txt", "find": "absent", "replace": "x"}, "found 0 matches"),
    ],
)
def test_an_out_of_scope_edit_is_refused_and_the_model_gets_the_reason(
    server: ChatServer, tmp_path: Path, name: str, arguments: Mapping[str, str], word: str
) -> None:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src/b.txt").write_text("b\n", encoding="utf-8")
    (root / ".env").write_text("KEY=1\n", encoding="utf-8")
    (tmp_path / "secret").write_text("secret\n", encoding="utf-8")
    (root / "outside").symlink_to(tmp_path / "secret")
    before = sorted(p.name for p in root.rglob("*"))
    result = ask(server, root, BUILDER, chat_server.calls((name, arguments)), chat_server.text("I could not."))
    tool_result = server.requests[-1].body["messages"][-1]["content"]
    assert tool_result.startswith("error: ")
    assert word in tool_result
    assert sorted(p.name for p in root.rglob("*")) == before
    assert (root / "src/b.txt").read_text(encoding="utf-8") == "b\n"
    assert result.claimed_files == ()


def test_only_builders_get_tools_that_write(server: ChatServer, tmp_path: Path) -> None:
    ask(server, tmp_path, BUILDER)
    ask(server, tmp_path, PLANNER)
    offered = [{t["function"]["name"] for t in received.body["tools"]} for received in server.requests]
    assert offered[1] == {"list_files", "read_file"}
    assert offered[0] > offered[1]
    assert server.requests[0].body["model"] == "m-1"
    assert server.requests[0].body["temperature"] == 0


def test_without_tools_the_model_gets_the_files_and_answers_with_edits(server: ChatServer, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/b.txt").write_text("one two\n", encoding="utf-8")
    edits = [
        {"tool": "write_file", "path": "a.txt", "content": "new\n", "intent": "make"},
        {"tool": "delete_file", "path": "src/b.txt", "intent": "not needed"},
    ]
    result = ask(server, tmp_path, BUILDER, chat_server.text(json.dumps({"edits": edits})), tools=False)
    assert result.outcome == outcome.COMPLETED
    assert (tmp_path / "a.txt").exists()
    assert not (tmp_path / "src").exists()
    assert "one two" in server.requests[0].body["messages"][0]["content"]
    assert "tools" not in server.requests[0].body
    outside = [{"tool": "write_file", "path": "c.txt", "content": "x"}]
    result = ask(server, tmp_path, BUILDER, chat_server.text(json.dumps({"edits": outside})), tools=False)
    assert (result.outcome, (tmp_path / "c.txt").exists()) == (outcome.FAILED, False)


@every(
    "reply_text, ended, failure",
    [
        ('{"verdict": "PASS", "findings": []}', outcome.COMPLETED, None),
        ('Well.\n```json\n{"verdict": "PASS",\n "findings": []}\n```\n', outcome.COMPLETED, None),
        ('{"verdict": "PARTIAL", "findings": [{"file": "a", "line": 1, "message": "no"}]}', outcome.FAILED, None),
        ('{"verdict": "FAIL"}', outcome.FAILED, None),
        ("PASS", outcome.ERRORED, agent.MALFORMED),
        ('{"verdict": "pass"}', outcome.ERRORED, agent.MALFORMED),
    ],
)
def test_only_a_clear_pass_of_a_validator_counts(
    server: ChatServer, tmp_path: Path, reply_text: str, ended: str, failure: str | None
) -> None:
    result = ask(server, tmp_path, VALIDATOR, chat_server.text(reply_text))
    assert (result.outcome, result.failure) == (ended, failure)
    if "PARTIAL" in reply_text:
        assert result.message == "PARTIAL: a:1: no"
    schema = server.requests[-1].body["response_format"]["json_schema"]["schema"]
    assert "verdict" in schema["required"]


def test_a_required_answer_format_is_requested_and_checked(server: ChatServer, tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["plan"], "properties": {"plan": {"type": "string"}}}
    request = a_request(tmp_path, PLANNER, task=None, about="phase-2", schema=schema)
    server.answers = [chat_server.text('```json\n{"plan": "x"}\n```'), chat_server.text('{"other": 1}')]
    agents = bound(tmp_path, server.url, schema="prompt")
    assert json.loads(agents.get("model").run(request).reply) == {"plan": "x"}
    assert '"required": ["plan"]' in server.requests[0].body["messages"][1]["content"]
    assert agents.get("model").run(request).failure == agent.MALFORMED


FAULTS = {
    "wrong key": (chat_server.error(401, "bad key sk-secret"), outcome.ERRORED, agent.NOT_LOGGED_IN),
    "forbidden": (chat_server.error(403, "no"), outcome.ERRORED, agent.NOT_LOGGED_IN),
    "too many": (chat_server.error(429, "slow down", Retry_After="17"), outcome.ERRORED, agent.RATE_LIMITED),
    "no money": (chat_server.error(429, "pay", "insufficient_quota"), outcome.ERRORED, agent.OVER_BUDGET),
    "broken": (chat_server.error(500, "oops"), outcome.ERRORED, agent.NETWORK),
    "unknown model": (chat_server.error(404, "no such model"), outcome.ERRORED, agent.UNKNOWN_MODEL),
    "no such interface": (chat_server.error(501), outcome.ERRORED, agent.MISSING),
    "unknown path": (chat_server.error(404, "no such path"), outcome.ERRORED, agent.MISSING),
    "too long": (chat_server.error(400, "x", "context_length_exceeded"), outcome.FAILED, agent.CONTEXT_EXHAUSTED),
    "cut off": (chat_server.text("half", finish_reason="length"), outcome.FAILED, agent.CONTEXT_EXHAUSTED),
    "filtered": (chat_server.text("", finish_reason="content_filter"), outcome.FAILED, agent.DECLINED),
    "garbage": (Response(b"<html>"), outcome.FAILED, agent.MALFORMED),
    "other json": (Response(b'{"choices": []}'), outcome.FAILED, agent.MALFORMED),
    "nothing": (chat_server.text(""), outcome.FAILED, agent.MALFORMED),
    "truncated": (Response(b'{"choices"', length=900), outcome.ERRORED, agent.NETWORK),
}


@every("fault", FAULTS)
def test_every_fault_has_a_kind(server: ChatServer, tmp_path: Path, fault: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-secret")
    response, ended, failure = FAULTS[fault]
    result = ask(server, tmp_path, BUILDER, response, environment=("MODEL_KEY",))
    assert (result.outcome, result.failure) == (ended, failure)
    assert result.message
    assert "sk-secret" not in repr(result)
    assert server.requests[-1].headers["Authorization"] == "Bearer sk-secret"
    if fault == "too many":
        assert "17 s" in result.message


def test_a_closed_server_is_a_network_failure(tmp_path: Path) -> None:
    with ChatServer(chat_server.text("")).serving() as server:
        url = server.url
    result = bound(tmp_path, url).get("model").run(a_request(tmp_path))
    assert (result.outcome, result.failure) == (outcome.ERRORED, agent.NETWORK)


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(Response(b"", silent=True), id="silence"),
        pytest.param(Response(b" " * 4000, drip=True), id="slow drip"),
        pytest.param(
            Response(b" " * 4000, drip=True, headers={"Connection": "close"}), id="slow drip, closed at its end"
        ),
    ],
)
def test_the_deadline_holds_whatever_the_server_does(server: ChatServer, tmp_path: Path, response: Response) -> None:
    server.answers = [response]
    result = bound(tmp_path, server.url).get("model").run(a_request(tmp_path, deadline=0.3))
    assert (result.outcome, result.failure, result.cause) == (outcome.TIMED_OUT, agent.STALL, "model-stall")
    assert result.seconds < 5


def test_silence_ends_the_call_after_the_idle_timeout(server: ChatServer, tmp_path: Path) -> None:
    server.answers = [Response(b"", silent=True)]
    result = bound(tmp_path, server.url).get("model").run(a_request(tmp_path, idle_timeout=0.2))
    assert (result.outcome, result.failure) == (outcome.TIMED_OUT, agent.STALL)


def test_an_endless_answer_is_not_kept(server: ChatServer, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("idumb.agents.model_server.LARGEST", 1000)
    assert ask(server, tmp_path, BUILDER, Response(b" " * 5000)).failure == agent.MALFORMED


def test_no_redirect_is_followed(server: ChatServer, tmp_path: Path) -> None:
    moved = Response(b"", 307, {"Location": f"{server.url}/other"})
    result = ask(server, tmp_path, BUILDER, moved)
    assert result.failure == agent.MISSING
    assert len(server.requests) == 1


def test_proxies_of_the_environment_are_ignored(server: ChatServer, tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(server, tmp_path).outcome == outcome.COMPLETED


def test_a_configured_proxy_gets_the_whole_address(server: ChatServer, tmp_path: Path) -> None:
    proxy = server.url.removesuffix("/v1")
    agents = bound(tmp_path, "http://models.invalid/v1", proxy=proxy, plain_http=True)
    assert agents.get("model").run(a_request(tmp_path)).outcome == outcome.COMPLETED
    assert server.requests[0].path == "http://models.invalid/v1/chat/completions"


def test_turns_and_tokens_are_limited(server: ChatServer, tmp_path: Path) -> None:
    again = chat_server.calls(("list_files", {}))
    result = ask(server, tmp_path, BUILDER, again, turns=3)
    assert (result.outcome, result.failure, len(server.requests)) == (outcome.FAILED, None, 3)
    request = a_request(tmp_path, budget=Budget(tokens=20))
    result = bound(tmp_path, server.url).get("model").run(request)
    assert (result.failure, len(server.requests)) == (agent.OVER_BUDGET, 5)


@every(
    "options, code",
    [
        ({"base_url": "http://models.example/v1"}, "agent.plain-http"),
        ({"base_url": "ftp://models.example"}, "agent.bad-address"),
        ({"base_url": "https://user:key@models.example"}, "agent.bad-address"),
        ({"base_url": ""}, "agent.bad-option"),
        ({"base_url": "https://models.example", "turn": 3}, "agent.bad-option"),
        ({"base_url": "https://models.example", "turns": "3"}, "agent.bad-option"),
        ({"base_url": "https://models.example", "schema": "xml"}, "agent.bad-option"),
        ({"base_url": "https://models.example", "key": "OTHER"}, "agent.bad-option"),
    ],
)
def test_invalid_options_are_reported_before_any_request(tmp_path: Path, options: Mapping[str, Any], code: str) -> None:
    binding = Binding("model", "http", options=options)
    agents = registry.build(
        Equipment(Settings(bindings={"model": binding}), str(tmp_path), lambda *_: (False, ""), str)
    )
    with pytest.raises(AdapterError) as caught:
        agents.get("model").describe()
    assert caught.value.code == code


def test_a_missing_key_is_reported_as_not_logged_in(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    agents = bound(tmp_path, "https://models.example", ("MODEL_KEY",))
    result = agents.get("model").run(a_request(tmp_path))
    assert result.failure == agent.NOT_LOGGED_IN
    assert "MODEL_KEY is not set" in result.message


def test_the_bundled_scripted_model_works_with_the_adapter(tmp_path: Path) -> None:
    rule = "answers:\n  - write: {path: a.txt, content: made}\n  - say: It is made."
    with fake_model.serving(rule) as served:
        result = bound(tmp_path, f"{served.address}/v1").get("model").run(a_request(tmp_path))
    assert (result.outcome, result.reply) == (outcome.COMPLETED, "It is made.")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "made"
