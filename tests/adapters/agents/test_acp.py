"""Scripted agents that speak the Agent Client Protocol: vetoes, endings and cleanup (R-ADAPT-2)."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from idumb.agents import acp, failure_words, registry
from idumb.agents.acp_client import LONGEST_LINE, MOST_CALLS, Client, ToolCall
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, PLANNER, VALIDATOR, AgentRequest, AgentResult
from idumb.domain.plans import plan
from idumb.domain.settings import Binding, Settings
from tests.support import acp_agent, programs
from tests.support.cases import every
from tests.support.equipment import equipped
from tests.support.seed import one_on_a_push


def ask(root: Path, *script: str, role: str = BUILDER, options: Any = (), **more: Any) -> AgentResult:
    (root / "src").mkdir(exist_ok=True)
    argv = (sys.executable, acp_agent.__file__, *script)
    binding = Binding("editor", "acp", argv, options=dict(options))
    settings = Settings(bindings={"editor": binding}, environment=("PATH", "HOME"))
    redact = lambda text: text.replace("sk-secret", "[key]")  # noqa: E731 - one word
    agents = registry.build(equipped(root, settings=settings, redact=redact))
    task = plan.Task("T1-01", "Work", files=(plan.FileClaim("create", "a.txt"),))
    request = AgentRequest(role, task, "the prompt", str(root), ("a.txt", "src/**"), deadline=20.0, run_id="r")
    return agents.get("editor").run(replace(request, **more))


def test_declared_files_are_written_and_undeclared_writes_are_vetoed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "away").symlink_to(tmp_path.parent)
    (tmp_path / "src/link").symlink_to(tmp_path / ".github")
    (tmp_path / ".github").mkdir()
    script = ["write", "a.txt", "write", "src/b.txt", "say", "first ", "write", "other.txt", "write", "src/../c.txt"]
    more = ["write", "away/d.txt", "write", "src/link/e.txt", "run", "touch f.txt", "say", "Done."]
    result = ask(tmp_path, *script, *more)
    assert result.outcome == outcome.COMPLETED
    paths = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert paths == {"a.txt", "src/b.txt"}
    assert not (tmp_path.parent / "d.txt").exists()
    assert [s.ok for s in result.steps] == [True, True, False, False, False, False, False]
    assert "not a file of this task" in result.steps[2].response
    assert (result.reply, result.session) == ("Done.", "s-1")
    assert (result.usage.tokens_in, result.usage.tokens_out, result.usage.cost_usd) == (12, 3, None)
    assert "vetoed" in result.message


def test_a_link_is_written_only_if_it_leads_to_a_declared_file(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "a.txt").symlink_to(tmp_path / "outside.txt")
    (work / "src/b.txt").symlink_to("../other.txt")
    (work / "src/c.txt").symlink_to("d.txt")
    result = ask(work, "write", "a.txt", "write", "src/b.txt", "write", "src/c.txt")
    assert [s.ok for s in result.steps] == [False, False, True]
    assert "outside the working tree" in result.steps[0].response
    assert "other.txt is not a file of this task" in result.steps[1].response
    assert not (tmp_path / "outside.txt").exists()
    assert (work / "src/d.txt").exists()


def permission(client: Client, kind: str, *choices: str, **call: Any) -> Any:
    """Return the client's answer to one permission request that offers `choices`."""
    options = [{"optionId": choice, "name": choice, "kind": choice} for choice in choices]
    params = {"toolCall": {"toolCallId": "1", "title": "t", "kind": kind, **call}, "options": options}
    message = {"id": 9, "method": "session/request_permission", "params": params}
    return json.loads(client.heard(json.dumps(message).encode() + b"\n"))["result"]["outcome"]


def held_to(root: Path, *, shell: bool = False) -> Client:
    """A client with the vetoes of a builder of `a.txt` and `src`, without its protected lock."""
    editor = acp.AcpAgent(Binding("e", "acp", ("x",), options={"shell": shell}), equipped(root))
    allowed, protected = ("a.txt", "src/**"), ("src/lock",)
    request = AgentRequest(
        BUILDER, plan.Task("T1-01", "Work"), "p", str(root), allowed, protected=protected, deadline=1.0
    )
    return Client(str(root), "x", functools.partial(editor._refused, request))


@every("kind", ["read", "search", "think", "execute"])
def test_a_permission_request_with_a_diff_is_a_write_whatever_its_kind(tmp_path: Path, kind: str) -> None:
    """R-ADAPT-2."""
    client = held_to(tmp_path, shell=True)
    difference = {"type": "diff", "path": str(tmp_path / "other.txt"), "oldText": "", "newText": "x"}
    assert permission(client, kind, "allow_once", "reject_once", content=[difference])["optionId"] == "reject_once"
    assert client.calls["1"].why == "other.txt is not a file of this task"
    declared = {**difference, "path": str(tmp_path / "a.txt")}
    client = held_to(tmp_path, shell=True)
    assert permission(client, kind, "allow_once", "reject_once", content=[declared])["optionId"] == "allow_once"


def test_an_agent_that_never_ends_its_tool_calls_is_ended(tmp_path: Path) -> None:
    """F60: each would be an event in the log."""
    client = held_to(tmp_path)
    for number in range(MOST_CALLS + 1):
        assert not client.over
        update = {"sessionUpdate": "tool_call", "toolCallId": str(number)}
        client.heard(json.dumps({"method": "session/update", "params": {"update": update}}).encode() + b"\n")
    assert (client.over, client.error) == (True, f"it made more than {MOST_CALLS} tool calls")


def test_a_write_without_a_file_or_to_a_protected_one_is_vetoed(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    for name, why in (("", "it does not name a file"), ("src/lock", "src/lock is protected by src/lock")):
        client, places = held_to(tmp_path), [{"path": str(tmp_path / name)}] if name else []
        assert permission(client, "edit", "allow_once", "reject_once", locations=places)["optionId"] == "reject_once"
        assert client.calls["1"].why == why


@every("choices, option", [(("reject_once",), "selected"), ((), "cancelled")])
def test_permissions_are_never_granted_for_always(tmp_path: Path, choices: tuple[str, ...], option: str) -> None:
    """R-ADAPT-2."""
    client = held_to(tmp_path)
    answer = permission(client, "edit", "allow_always", *choices, locations=[{"path": str(tmp_path / "a.txt")}])
    assert (answer["outcome"], answer.get("optionId")) == (option, choices[0] if choices else None)
    assert client.calls["1"].why == "it offers no option to allow this call once"


def test_commands_run_only_if_the_binding_allows_them(tmp_path: Path) -> None:
    ask(tmp_path, "run", "touch a.txt", options={"shell": True})
    assert (tmp_path / "a.txt").exists()


def test_the_version_is_that_of_the_agent_s_package(tmp_path: Path) -> None:
    """R-ENV-1: the version is read from a file, and nothing is started."""
    (tmp_path / "node_modules/agent").mkdir(parents=True)
    (tmp_path / "node_modules/agent/package.json").write_text('{"version": "1.2.3"}', encoding="utf-8")
    program = programs.script(tmp_path / "node_modules/agent/run", "touch started")
    assert acp.AcpAgent(Binding("a", "acp", (str(program),)), equipped(tmp_path / "work")).version == "1 1.2.3"
    assert acp.AcpAgent(Binding("a", "acp", ("no-such-program",)), equipped(tmp_path / "work")).version == "1"
    (tmp_path / "package.json").write_text('{"version": "0.0.1"}', encoding="utf-8")  # of the project that uses it
    shim = programs.script(tmp_path / "node_modules/.bin/agent", "exec ../agent/run")
    assert acp.AcpAgent(Binding("a", "acp", (str(shim),)), equipped(tmp_path / "work")).version != "1 0.0.1"


def test_other_roles_write_nothing(tmp_path: Path) -> None:
    result = ask(tmp_path, "write", "a.txt", "say", "A plan.", role=PLANNER, task=None, about="phase-1")
    assert (result.outcome, result.reply, (tmp_path / "a.txt").exists()) == (outcome.COMPLETED, "A plan.", False)


def test_the_prompt_arrives_whole_and_says_that_commands_are_refused(tmp_path: Path) -> None:
    """R-ADAPT-2: some agents end at a veto."""
    prompt = "".join(f"line {i} with some words\n" for i in range(20_000))
    result = ask(tmp_path, "prompt", prompt=prompt, options={"mode": "plan", "shell": True})
    assert result.reply == "mode plan;" + prompt
    assert "Run no commands" in ask(tmp_path, "prompt").reply


@every("way, notice", [("models", "model big;"), ("options", "which is big;"), ("listed", "which is other;")])
def test_the_model_is_selected_in_the_way_the_agent_offers(tmp_path: Path, way: str, notice: str) -> None:
    """R-ADAPT-1."""
    model = "other" if way == "listed" else "big"
    result = ask(tmp_path, way, "say", "Done.", model=model, options={"mode": "plan"})
    assert (result.reply, result.model) == (f"{notice}mode plan;Done.", model)


@every("script, words", [("fixed", "the model big"), ("listed", "")])
def test_a_model_that_the_agent_does_not_offer_is_refused(tmp_path: Path, script: str, words: str) -> None:
    """R-ADAPT-1, R-ADAPT-2: no other model is used silently, also by an agent without a choice of models."""
    result = ask(tmp_path, script, "write", "a.txt", model="big")
    assert (result.outcome, result.failure, result.model) == (outcome.ERRORED, agent.UNKNOWN_MODEL, None)
    assert words in result.message
    assert not (tmp_path / "a.txt").exists()


def test_claude_code_gets_any_model_id_with_the_session(tmp_path: Path) -> None:
    """R-ADAPT-2: newer versions list only aliases and refuse any other model id afterwards."""
    client = Client(str(tmp_path), "x", str, model="claude-sonnet-4-5")
    client.begin()
    begun = {"protocolVersion": 1, "agentInfo": {"name": "@agentclientprotocol/claude-agent-acp", "version": "0.49.0"}}
    new = json.loads(client.heard(json.dumps({"id": 1, "result": begun}).encode() + b"\n"))
    assert new["params"]["_meta"] == {"claudeCode": {"options": {"model": "claude-sonnet-4-5"}}}
    listed = [{"id": "model", "options": [{"value": "default"}, {"value": "sonnet"}]}]
    answer = {"id": 2, "result": {"sessionId": "s", "configOptions": listed}}
    assert json.loads(client.heard(json.dumps(answer).encode() + b"\n"))["method"] == "session/prompt"


@every(
    "script, ended, failure, words",
    [
        (("stop", "max_tokens"), outcome.FAILED, agent.CONTEXT_EXHAUSTED, "context"),
        (("stop", "refusal"), outcome.FAILED, agent.DECLINED, "declined"),
        (
            ("say", "API Error: odd", "stop", "refusal"),
            outcome.FAILED,
            agent.DECLINED,
            "it declined, and said: API Error: odd",
        ),
        (("stop", "max_turn_requests"), outcome.FAILED, None, "limit of model requests"),
        (("stop", "whatever"), outcome.FAILED, agent.MALFORMED, "whatever"),
        (("error", "-32603", "429 Too Many Requests sk-secret"), outcome.ERRORED, agent.RATE_LIMITED, "[key]"),
        (("error", "-32000", "who are you"), outcome.ERRORED, agent.NOT_LOGGED_IN, "who are you"),
        (("locked",), outcome.ERRORED, agent.NOT_LOGGED_IN, "Authentication required"),
        (("future",), outcome.ERRORED, agent.MISSING, "version 2"),
        (("die",), outcome.FAILED, agent.MALFORMED, "out of luck"),
        (("junk", "say", "fine"), outcome.COMPLETED, None, ""),
        (("ask", "fs/read_text_file"), outcome.COMPLETED, None, ""),
    ],
)
def test_every_stop_reason_has_an_outcome_and_a_kind(
    tmp_path: Path, script: tuple[str, ...], ended: str, failure: str | None, words: str
) -> None:
    result = ask(tmp_path, *script)
    assert (result.outcome, result.failure) == (ended, failure), result
    assert words in result.message
    assert "sk-secret" not in repr(result)
    if script[0] == "ask":
        assert "is not offered" in result.reply


def test_a_verdict_of_an_agent_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    passes = '{"verdict": "PASS", "evidence": [], "findings": []}'
    result = ask(tmp_path, "say", passes, "stop", "max_tokens", role=VALIDATOR)
    assert (result.outcome, result.reply) == (outcome.FAILED, passes)


@pytest.mark.parametrize("script", one_on_a_push(["connection to the model was cut", "cancelled"], "a last message"))
def test_a_last_message_of_a_stalled_agent_is_not_another_failure(tmp_path: Path, script: str) -> None:
    """R-ADAPT-2."""
    result = ask(tmp_path, "protest", script, idle_timeout=0.5)
    assert (result.outcome, result.failure, result.cause) == (outcome.TIMED_OUT, agent.STALL, "model-stall")
    assert "of silence" in result.message


def a_client() -> Client:
    def permits(permission: ToolCall) -> str:
        return ""

    client = Client("/work", "prompt", permits)
    client.begin()
    return client


@every(
    "line",
    [
        b'{"id": 1, "result": {"protocolVersion": 1}}\n{"id": 2, "result": {}}\n',
        b'{"id": 1, "result": []}\n',
        b'{"method": "session/update", "params": {"update": 3}}\n',
        b'{"method": "session/request_permission", "id": 5, "params": {}}\n',
        b'{"id": 1, "error": "no"}\n',
        b"x" * (LONGEST_LINE + 1),
    ],
)
def test_no_message_breaks_the_client(line: bytes) -> None:
    client = a_client()
    client.heard(line)
    assert client.over
    assert client.error


@every("data", [{"error": {"code": 402, "message": "No more."}}, ["HTTP 402"], "status 402", {"details": "HTTP 402"}])
def test_the_data_of_an_error_name_its_kind_in_any_form(data: Any) -> None:
    client = a_client()
    error = {"code": -32603, "message": "Internal error", "data": data}
    client.heard(json.dumps({"id": 1, "error": error}).encode() + b"\n")
    assert failure_words.of_error(client.problem) == agent.OVER_BUDGET


def test_messages_may_be_split_anywhere() -> None:
    client = a_client()
    messages = b'{"id": 1, "result": {"protocolVersion": 1}}\n{"id": 2, "result": {"sessionId": "s"}}\n'
    answers = b"".join(client.heard(messages[i : i + 1]) for i in range(len(messages)))
    assert answers.count(b"\n") == 2
    assert b'"session/prompt"' in answers


def send_update(client: Client, **update: Any) -> None:
    message = {"method": "session/update", "params": {"update": update}}
    client.heard(json.dumps(message).encode() + b"\n")


def test_the_last_message_is_kept_after_any_amount_of_output() -> None:
    """R-ADAPT-2."""
    client = a_client()
    for _ in range(3):
        send_update(client, sessionUpdate="agent_message_chunk", content={"type": "text", "text": "x" * 1_000_000})
    send_update(client, sessionUpdate="tool_call", toolCallId="1", kind="read", title="look")
    send_update(client, sessionUpdate="agent_message_chunk", content={"type": "text", "text": "Done."})
    assert client.reply == "Done."


def test_arguments_of_a_command_are_not_treated_as_paths(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    client = Client(str(tmp_path), "x", lambda _: "")
    given = {"source": "startup", "command": ["ls"]}
    send_update(client, sessionUpdate="tool_call", toolCallId="1", kind="execute", title="ls", rawInput=given)
    send_update(
        client, sessionUpdate="tool_call", toolCallId="2", kind="move", title="mv", rawInput={"source": "a.txt"}
    )
    assert [call.paths for call in client.calls.values()] == [(), ("a.txt",)]


@every("count, amount", [(-5, -100), (10**400, 10**400), (1.5, float("nan")), (None, float("inf"))])
def test_impossible_usage_is_unknown(count: Any, amount: float) -> None:
    """R-ADAPT-3: an agent cannot raise a ceiling by its report."""
    usage = {"inputTokens": count, "outputTokens": count, "cost": {"currency": "USD", "amount": amount}}
    assert acp.usage_of(usage) == agent.Usage()


def test_cached_input_tokens_are_counted() -> None:
    """R-ADAPT-3."""
    usage = {"inputTokens": 5, "cachedReadTokens": 700, "cachedWriteTokens": 30, "outputTokens": 2, "totalTokens": 737}
    assert acp.usage_of(usage) == agent.Usage(735, 2)


def test_the_transcript_has_short_lines_of_what_the_agent_does() -> None:
    told: list[str] = []
    client = Client("/work", "prompt", lambda _: "", tell=told.append)
    client.begin()
    client.heard(b'{"id": 1, "result": {"protocolVersion": 1}}\n')
    client.heard(b'{"id": 2, "result": {"sessionId": "s"}}\n')
    send_update(client, sessionUpdate="agent_message_chunk", content={"type": "text", "text": "I write a.txt."})
    send_update(client, sessionUpdate="tool_call", toolCallId="1", kind="edit", title="w", rawInput={"path": "a.txt"})
    send_update(client, sessionUpdate="tool_call_update", toolCallId="1", status="completed")
    send_update(client, sessionUpdate="usage_update", used=900, size=128000)
    send_update(client, sessionUpdate="agent_message_chunk", content={"type": "text", "text": "Done."})
    client.heard(b'{"id": 4, "result": {"stopReason": "end_turn"}}\n')
    assert told == ["says: I write a.txt.", "edit a.txt: completed", "900 tokens so far", "says: Done."]
