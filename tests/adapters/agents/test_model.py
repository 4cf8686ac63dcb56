"""Models through pydantic-ai, on a loopback server: tools, verdicts, forms, and every way to fail (R-ADAPT-2)."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from idumb.agents import model_agent, model_tools, registry
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, PLANNER, VALIDATOR, AgentRequest, AgentResult, Budget
from idumb.domain.errors import AdapterError
from idumb.domain.plans import plan
from idumb.domain.settings import Binding
from idumb.system.redaction import Redactor
from tests.support import chat_server
from tests.support.cases import every
from tests.support.chat_server import ChatServer, Response
from tests.support.equipment import equipped
from tests.support.errors import refusing

INSTALLED = importlib.util.find_spec("pydantic_ai") is not None
needs_extra = pytest.mark.skipif(
    not INSTALLED, reason="the extra `models` is not installed: pip install -e '.[models]'"
)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(chat_server.text("Done.")).serving() as serving:
        yield serving


def bound(root: Path, url: str, **options: Any) -> registry.AgentRegistry:
    binding = Binding(
        "model", "model", environment=("MODEL_KEY",), options={"base_url": url, **options}, model="openai-chat:m-1"
    )
    redact = lambda text: text.replace("sk-secret", "[key]")  # noqa: E731 - one word
    stream = Redactor({"MODEL_KEY": "sk-secret"}).stream
    return registry.build(equipped(root, binding, redact=redact, transcripts=f"{root}-kept", stream=stream))


def ask(
    server: ChatServer, root: Path, *answers: Response, role: str = BUILDER, options: Any = (), **more: Any
) -> AgentResult:
    server.answers = list(answers) or server.answers
    task = plan.Task("T1-01", "Work", files=(plan.FileClaim("create", "a.txt"),))
    request = AgentRequest(role, task, "the prompt", str(root), ("a.txt",), deadline=60.0)
    return bound(root, server.url, **dict(options)).get("model").run(replace(request, **more))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")


@needs_extra
def test_the_transcript_names_each_call_the_tokens_so_far_and_what_the_model_says(
    server: ChatServer, tmp_path: Path
) -> None:
    """R-RUN-2."""
    made = chat_server.calls(("write_file", {"path": "a.txt", "content": "made\n", "intent": "make it"}))
    outside = chat_server.calls(("write_file", {"path": "b.txt", "content": "made\n", "intent": "more"}))
    result = ask(server, tmp_path, made, outside, chat_server.text("Made with sk-secret."))
    assert result.transcript is not None
    text = Path(result.transcript).read_text(encoding="utf-8")
    assert "sk-secret" not in text
    lines = text.splitlines()
    assert [line.split(",")[0].split("[")[0] for line in lines if "tokens so far" not in line] == [
        "write_file a.txt: completed",
        "write_file b.txt: failed",
        "says: Made with ",
    ]
    assert sum("tokens so far" in line for line in lines) == 2


@needs_extra
def test_a_builder_edits_its_task_s_files_with_tools(server: ChatServer, tmp_path: Path) -> None:
    calls = chat_server.calls(
        ("write_file", {"path": "a.txt", "content": "made\n", "intent": "make it"}),
        ("write_file", {"path": "b.txt", "content": "made\n", "intent": "more"}),
    )
    result = ask(server, tmp_path, calls, chat_server.text("Made."))
    assert (result.outcome, result.reply, result.model) == (outcome.COMPLETED, "Made.", "loop-1")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert [(s.intent, s.ok) for s in result.steps] == [("make it", True), ("more", False)]
    assert (result.usage.tokens_in, result.usage.tokens_out, result.usage.cost_usd) == (20, 10, None)
    assert "Bearer sk-secret" in server.requests[0].headers.values()
    told = [message["content"] for message in server.requests[1].body["messages"]]
    assert any(str(words).startswith("error: ") and "not a file of this task" in words for words in told)
    assert result.claimed_files == ("a.txt",)


@needs_extra
@pytest.mark.parametrize("response", [chat_server.error(404), chat_server.Response(b"{}"), chat_server.error(501)])
def test_a_server_with_only_chat_completions_gets_a_hint_what_to_configure(
    server: ChatServer, tmp_path: Path, response: chat_server.Response
) -> None:
    result = ask(server, tmp_path, response, model="openai:m-1")
    assert server.requests[0].path.endswith("/responses")
    assert (result.failure in {agent.MISSING, agent.MALFORMED}, "openai-chat:NAME" in result.message) == (True, True)


@needs_extra
def test_no_redirect_is_followed(server: ChatServer, tmp_path: Path) -> None:
    result = ask(server, tmp_path, Response(b"", 307, {"Location": f"{server.url}/other"}))
    assert (result.outcome, len(server.requests)) == (outcome.ERRORED, 1)


@needs_extra
def test_an_allowed_proxy_gets_the_whole_address(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-2."""
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    options = {"base_url": "http://models.invalid/v1", "plain_http": True, "proxy": "environment"}
    assert ask(server, tmp_path, options=options).outcome == outcome.COMPLETED
    assert server.requests[0].path == "http://models.invalid/v1/chat/completions"


@needs_extra
def test_an_impossible_token_count_is_unknown(server: ChatServer, tmp_path: Path) -> None:
    """R-ADAPT-3."""
    result = ask(server, tmp_path, chat_server.text("Done.", {"prompt_tokens": 10**4200, "completion_tokens": 5}))
    assert (result.usage.tokens_in, result.usage.tokens_out) in {(None, 5), (None, None)}


@needs_extra
def test_a_malformed_verdict_is_requested_again(server: ChatServer, tmp_path: Path) -> None:
    verdict = {"verdict": "PARTIAL", "findings": [{"file": "a", "line": 3, "message": "no"}]}
    result = ask(server, tmp_path, chat_server.calls(("final_result", verdict)), role=VALIDATOR)
    assert (result.outcome, result.message) == (outcome.FAILED, "PARTIAL: a:3: no")
    passed = {"verdict": "PASS", "findings": []}
    again = ask(
        server, tmp_path, chat_server.text("It is fine."), chat_server.calls(("final_result", passed)), role=VALIDATOR
    )
    assert again.outcome == outcome.COMPLETED
    never = ask(server, tmp_path, chat_server.text("It is fine."), role=VALIDATOR)
    assert (never.outcome, never.failure) == (outcome.FAILED, agent.MALFORMED)


@needs_extra
def test_other_roles_read_files_and_answer_in_the_required_format(server: ChatServer, tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["plan"], "properties": {"plan": {"type": "string"}}}
    response = chat_server.text('{"plan": "x"}')
    result = ask(
        server,
        tmp_path,
        response,
        role=PLANNER,
        task=None,
        about="phase-1",
        schema=schema,
        options={"output": "native"},
    )
    assert json.loads(result.reply) == {"plan": "x"}
    assert {t["function"]["name"] for t in server.requests[0].body["tools"]} == {"list_files", "read_file"}


FAULTS = {
    "wrong key": (chat_server.error(401, "bad key sk-secret"), outcome.ERRORED, agent.NOT_LOGGED_IN),
    "too many": (chat_server.error(429, "slow down"), outcome.ERRORED, agent.RATE_LIMITED),
    "broken": (chat_server.error(500, "oops"), outcome.ERRORED, agent.NETWORK),
    "unknown": (chat_server.error(404, "no such model"), outcome.ERRORED, agent.UNKNOWN_MODEL),
    "too long": (chat_server.error(400, "x", "context_length_exceeded"), outcome.FAILED, agent.CONTEXT_EXHAUSTED),
    "cut off": (chat_server.text("half", finish_reason="length"), outcome.FAILED, agent.CONTEXT_EXHAUSTED),
    "filtered": (chat_server.text("no", finish_reason="content_filter"), outcome.FAILED, agent.DECLINED),
    "garbage": (Response(b"<html>", headers={"Content-Type": "application/json"}), None, None),
    "truncated": (
        Response(b'{"choices"', length=900, headers={"Content-Type": "application/json"}),
        None,
        agent.NETWORK,
    ),
}


@needs_extra
@every("fault", FAULTS)
def test_every_fault_has_a_kind_and_is_not_retried_silently(server: ChatServer, tmp_path: Path, fault: str) -> None:
    response, ended, failure = FAULTS[fault]
    earlier = len(server.requests)
    result = ask(server, tmp_path, response)
    assert result.outcome in {outcome.ERRORED, outcome.FAILED}
    assert result.failure in agent.FAILURES
    assert ended in {None, result.outcome}
    assert failure in {None, result.failure}, result
    assert len(server.requests) == earlier + 1
    assert "sk-secret" not in repr(result)


@needs_extra
def test_time_silence_turns_and_tokens_are_limited(server: ChatServer, tmp_path: Path) -> None:
    result = ask(server, tmp_path, Response(b"", silent=True), deadline=0.5)
    assert (result.outcome, result.failure) == (outcome.TIMED_OUT, agent.STALL)
    result = ask(server, tmp_path, Response(b"", silent=True), idle_timeout=0.2)
    assert (result.outcome, result.failure, result.cause) == (outcome.TIMED_OUT, agent.STALL, "model-stall")
    again = chat_server.calls(("list_files", {}))
    endless = ask(server, tmp_path, again, options={"turns": 3})
    assert (endless.outcome, endless.failure) == (outcome.FAILED, None)
    spent = ask(server, tmp_path, again, budget=Budget(tokens=20))
    assert (spent.outcome, spent.failure) == (outcome.FAILED, agent.OVER_BUDGET), (
        "the next attempt goes on with its work"
    )


@needs_extra
def test_the_deadline_is_checked_before_every_call(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def call(_: object, name: str, __: object) -> tuple[bool, str]:
        calls.append(name)
        return True, "words"

    monkeypatch.setattr(model_tools.ModelTools, "is_late", lambda _: len(calls) >= 2)
    monkeypatch.setattr(model_tools.ModelTools, "call", call)
    result = ask(server, tmp_path, chat_server.calls(*[("list_files", {})] * 5), chat_server.text("Done."))
    assert (result.outcome, result.failure) == (outcome.TIMED_OUT, agent.STALL)
    assert (len(calls), len(server.requests)) == (2, 1)


@needs_extra
@every(
    "options, code",
    [
        ({"base_url": "http://models.example/v1"}, "agent.plain-http"),
        ({"base_url": "ftp://models.example"}, "agent.bad-address"),
        ({"base_url": "https://user:key@models.example"}, "agent.bad-address"),
        ({"base_url": "https://models.example", "turn": 3}, "agent.bad-option"),
        ({"base_url": "https://models.example", "turns": "3"}, "agent.bad-option"),
        ({"base_url": "https://models.example", "output": "xml"}, "agent.bad-option"),
        ({"base_url": "https://models.example", "key": "OTHER"}, "agent.bad-option"),
        ({"base_url": "https://models.example", "proxy": "http://127.0.0.1:9"}, "agent.bad-option"),
    ],
)
def test_invalid_options_are_reported_before_any_request(tmp_path: Path, options: dict[str, Any], code: str) -> None:
    with refusing(code):
        bound(tmp_path, options.pop("base_url"), **options).get("model").describe()


@needs_extra
def test_a_missing_key_is_reported_as_not_logged_in(
    server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MODEL_KEY")
    result = ask(server, tmp_path)
    assert (result.failure, server.requests) == (agent.NOT_LOGGED_IN, [])
    assert "MODEL_KEY is not set" in result.message


OF_ANOTHER_LIBRARY = pytest.param(("anthropic",), marks=pytest.mark.nightly)  # its import takes two seconds


@needs_extra
@pytest.mark.parametrize(
    "providers", [("openai", "openai-chat", "deepseek", "ollama", "moonshotai"), OF_ANOTHER_LIBRARY], ids=" ".join
)
def test_every_provider_of_the_library_gets_the_binding_s_key_and_no_retry_of_its_own(
    tmp_path: Path, providers: tuple[str, ...]
) -> None:
    for provider in providers:
        options = model_agent._Options((f"{provider}:m",), "https://x.example/v1", "k", {})
        talk = model_agent._Conversation(options, AgentRequest(PLANNER, None, "", str(tmp_path), ()), None)  # type: ignore[arg-type]
        talk._model()
        (client,) = talk._clients
        assert (client.api_key, client.max_retries) == ("k", 0)


@needs_extra
def test_a_fallback_model_replaces_the_first(server: ChatServer, tmp_path: Path) -> None:
    answers = (chat_server.error(500, "oops"), chat_server.text("Done."))
    result = ask(server, tmp_path, *answers, options={"fallback": ("openai-chat:m-2",)})
    assert result.outcome == outcome.COMPLETED
    assert [received.body["model"] for received in server.requests] == ["m-1", "m-2"]


def test_without_the_extra_the_error_has_the_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)  # as if it were not installed
    who = bound(tmp_path, "https://models.example").get("model")
    with pytest.raises(AdapterError, match="requires pydantic-ai") as caught:
        registry.build(equipped(tmp_path, Binding("m", "model", model="a:b"))).get("m").describe()
    assert caught.value.hint is not None
    assert "pip install 'idumb[models]'" in caught.value.hint
    request = AgentRequest(PLANNER, None, "", str(tmp_path), (), about="x")
    assert who.run(request).failure == agent.MISSING
