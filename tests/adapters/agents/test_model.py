"""Models through pydantic-ai, on a loopback server: tools, verdicts, forms, and every way to fail (R-ADAPT-2)."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from idumb.agents import registry
from idumb.agents.adapter import Equipment
from idumb.agents.models import pydantic_agent as models
from idumb.agents.models.conversation import Ended
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, PLANNER, VALIDATOR, AgentRequest, AgentResult, Budget
from idumb.domain.errors import AdapterError
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from tests.support import chat_server
from tests.support.cases import every
from tests.support.chat_server import ChatServer, Response

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
    return registry.build(Equipment(Settings(bindings={"model": binding}), str(root), lambda *_: (False, ""), redact))


def no_patch(*_: object) -> tuple[bool, str]:
    return False, ""


def ask(
    server: ChatServer, root: Path, *answers: Response, role: str = BUILDER, options: Any = (), **more: Any
) -> AgentResult:
    server.answers = list(answers) or server.answers
    task = plan.Task("T1-01", "Work", files=(plan.FileClaim("create", "a.txt"),))
    request = AgentRequest(role, task, "the prompt", str(root), ("a.txt",), deadline=20.0)
    return bound(root, server.url, **dict(options)).get("model").run(dataclasses.replace(request, **more))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")


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
    assert server.requests[0].headers[
        "authorization" if "authorization" in server.requests[0].headers else "Authorization"
    ] == ("Bearer sk-secret")
    sent = json.dumps(server.requests[1].body["messages"])
    assert "not a file of this task" in sent


@every(
    "model, failure, has_hint",
    [
        ("openai:m-1", agent.NETWORK, True),
        ("openai:m-1", agent.MISSING, True),
        ("openai-responses:m-1", agent.MALFORMED, True),
        ("openai:m-1", agent.RATE_LIMITED, False),
        ("openai-chat:m-1", agent.NETWORK, False),
    ],
)
def test_a_server_without_the_responses_api_gets_a_hint_with_the_right_model_name(
    model: str, failure: str, *, has_hint: bool
) -> None:
    """R-ADAPT-2."""
    options = models._Options((model,), "http://127.0.0.1:8080/v1", None, 1, "tool", {}, proxies=False)
    talk = models._Talk(options, AgentRequest(BUILDER, None, "p", "/", ()), None)  # type: ignore[arg-type]
    result = talk._with_interface(Ended(outcome.ERRORED, "it said no", failure=failure))
    assert ("openai-chat:m-1" in result.message) is has_hint
    assert (result.outcome, result.failure) == (outcome.ERRORED, failure)


@needs_extra
@pytest.mark.parametrize(
    "response", [chat_server.error(404, "no such path"), chat_server.Response(b"{}"), chat_server.error(501)]
)
def test_a_server_with_only_chat_completions_gets_a_hint_what_to_configure(
    server: ChatServer, tmp_path: Path, response: chat_server.Response
) -> None:
    """R-ADAPT-2: the library reads any answer as if it were sound."""
    result = ask(server, tmp_path, response, model="openai:m-1")
    assert server.requests[0].path.endswith("/responses")
    assert result.failure in {agent.MISSING, agent.MALFORMED}
    assert "openai-chat:m-1" in result.message


@needs_extra
def test_a_proxy_of_the_environment_is_used_only_if_the_binding_allows_it(server: ChatServer, tmp_path: Path) -> None:
    """R-ADAPT-2: prompts and keys go only to the configured server."""
    others = Binding("model", "model", environment=("MODEL_KEY",), model="deepseek:m-1")
    for options, code in (({}, "agent.proxy"), ({"proxy": "http://127.0.0.1:9"}, "agent.bad-option")):
        built = registry.build(
            Equipment(
                Settings(bindings={"model": dataclasses.replace(others, options=options)}), str(tmp_path), no_patch, str
            )
        )
        with pytest.raises(AdapterError) as caught:
            built.get("model").describe()
        assert caught.value.code == code
    allowed = dataclasses.replace(others, options={"proxy": "environment"})
    assert (
        registry.build(Equipment(Settings(bindings={"model": allowed}), str(tmp_path), no_patch, str))
        .get("model")
        .describe()
        == ()
    )


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
def test_time_turns_and_tokens_are_limited(server: ChatServer, tmp_path: Path) -> None:
    result = ask(server, tmp_path, Response(b"", silent=True), deadline=0.5)
    assert (result.outcome, result.failure) == (outcome.TIMED_OUT, agent.STALL)
    again = chat_server.calls(("list_files", {}))
    endless = ask(server, tmp_path, again, options={"turns": 3})
    assert (endless.outcome, endless.failure) == (outcome.FAILED, None)
    assert ask(server, tmp_path, again, budget=Budget(tokens=20)).failure == agent.OVER_BUDGET


@needs_extra
def test_a_fallback_model_replaces_the_first(server: ChatServer, tmp_path: Path) -> None:
    answers = (chat_server.error(500, "oops"), chat_server.text("Done."))
    result = ask(server, tmp_path, *answers, options={"fallback": ["openai-chat:m-2"]})
    assert result.outcome == outcome.COMPLETED
    assert [received.body["model"] for received in server.requests] == ["m-1", "m-2"]


def test_without_the_extra_the_error_has_the_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)  # as if it were not installed
    who = bound(tmp_path, "https://models.example").get("model")
    with pytest.raises(AdapterError, match="requires pydantic-ai") as caught:
        registry.build(
            Equipment(
                Settings(bindings={"m": Binding("m", "model", model="a:b")}), str(tmp_path), lambda *_: (False, ""), str
            )
        ).get("m").describe()
    assert caught.value.hint is not None
    assert "pip install 'idumb[models]'" in caught.value.hint
    request = AgentRequest(PLANNER, None, "", str(tmp_path), (), about="x")
    assert who.run(request).failure == agent.MISSING
