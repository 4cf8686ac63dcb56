"""The scripted model over real sockets, in each protocol (R-ADAPT-2)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.error import URLError

import pytest

from tests.adapters.agents.fake_model.conversations import ALL, Protocol
from tests.support.cases import every
from tests.support.fake_model import Served, serving

WRITES = """when: greeting
answers:
  - write: {path: a.txt, content: "hello\\n"}
  - {say: It is written, tokens: {in: 12, out: 3}}"""
FAULTY = """when: {fault}
times: 1
answers: [{{fault: {fault}, say: a long enough answer, seconds: 0.05}}]"""
BROKEN = ("closed", "truncated", "garbage")
TOLD = {
    "rate-limited": {429},
    "overloaded": {503, 529},
    "server-error": {500},
    "unauthorized": {401},
    "unknown-model": {404},
    "context": {400},
}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    faults = [FAULTY.format(fault=fault) for fault in (*BROKEN, *TOLD, "drip", "silent")]
    unlimited = [rule.replace("times: 1\n", "") for rule in faults]
    with serving(*unlimited, WRITES, "when: decline\nanswers: [{fault: refused}]") as server:
        yield server


protocols = pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: protocol.name)


def streamed(protocol: Protocol, prompt: str, answered: int) -> dict[str, Any]:
    return {**protocol.body(prompt, answered), "stream": True}


@protocols
def test_a_script_is_followed_message_by_message(protocol: Protocol, served: Served) -> None:
    call = protocol.call(served.ask(protocol.path, protocol.body("write the greeting", 0)))
    assert call == ("Write", {"file_path": "a.txt", "content": "hello\n"})
    second = served.ask(protocol.path, protocol.body("write the greeting", 1))
    assert protocol.text(second) == "It is written"
    assert (second["usage"]["input_tokens"], second["usage"]["output_tokens"]) == (12, 3)
    assert "nothing more" in protocol.text(served.ask(protocol.path, protocol.body("write the greeting", 2)))


@protocols
def test_a_stream_has_the_same_content_as_a_whole_answer(protocol: Protocol, served: Served) -> None:
    events = served.events(protocol.path, streamed(protocol, "write the greeting", 0))
    text, given = protocol.assembled(events)
    assert (text, json.loads(given)) == ("", {"file_path": "a.txt", "content": "hello\n"})
    last = served.events(protocol.path, streamed(protocol, "write the greeting", 1))
    assert protocol.assembled(last) == ("It is written", "")


@protocols
def test_prompts_without_a_rule_get_no_scripted_answer(protocol: Protocol, served: Served) -> None:
    assert "Nothing is scripted" in protocol.text(served.ask(protocol.path, protocol.body("sing", 0)))


@every("fault", TOLD)
@protocols
def test_faults_have_the_provider_s_own_wording(protocol: Protocol, fault: str, served: Served) -> None:
    status, body = served.post(protocol.path, protocol.body(fault, 0))
    assert status in TOLD[fault]
    assert json.loads(body)["error"]["message"]


@every("fault", ["closed", "truncated", "silent"])
@protocols
def test_a_broken_connection_gives_no_answer(protocol: Protocol, fault: str, served: Served) -> None:
    with pytest.raises((http.client.HTTPException, ConnectionError, URLError)):
        served.post(protocol.path, streamed(protocol, fault, 0))


@protocols
def test_garbage_is_invalid_json_with_a_good_status(protocol: Protocol, served: Served) -> None:
    status, body = served.post(protocol.path, protocol.body("garbage", 0))
    assert status == 200
    with pytest.raises(ValueError, match=r"Expecting value|utf-8"):
        json.loads(body)


@protocols
def test_a_slowly_sent_answer_arrives_complete(protocol: Protocol, served: Served) -> None:
    assert protocol.text(served.ask(protocol.path, protocol.body("drip", 0))) == "a long enough answer"


@protocols
def test_a_model_can_decline(protocol: Protocol, served: Served) -> None:
    answer = served.ask(protocol.path, protocol.body("decline", 0))
    assert answer.get("stop_reason") == "refusal" or answer["status"] == "incomplete"


def test_after_a_rule_is_used_up_the_next_rule_answers() -> None:
    with serving(FAULTY.format(fault="rate-limited"), "answers: [{say: fine}]") as server:
        body = ALL[0].body("rate-limited", 0)
        assert server.post("/v1/messages", body)[0] == 429
        assert ALL[0].text(server.ask("/v1/messages", body)) == "fine"


def test_a_request_with_another_model_name_is_refused(served: Served) -> None:
    """A page in a browser can reach loopback by a name of its own."""
    assert served.post("/v1/messages", ALL[0].body("write the greeting", 0), Host="example.invalid")[0] == 403


def test_the_log_records_requests_without_the_key(served: Served) -> None:
    served.post("/v1/messages?key=s3cret", ALL[0].body("write the greeting", 0), Authorization="Bearer s3cret")
    noted = served.notes[-1]
    assert (noted["path"], noted["rule"], noted["calls"]) == ("/v1/messages", "Rule 12", ["Write"])
    assert "s3cret" not in json.dumps(served.notes)


@every("body", [b"{", b"[]", b"\xff"])
def test_a_request_that_is_not_an_object_is_an_error(body: bytes, served: Served) -> None:
    connection = http.client.HTTPConnection(served.address.removeprefix("http://"), timeout=10)
    connection.request("POST", "/v1/messages", body)
    assert connection.getresponse().status == 400
    connection.close()


@protocols
def test_what_a_client_leaves_out_or_a_script_has_no_use_for_is_passed_over(protocol: Protocol, served: Served) -> None:
    """Programs written in Go send null for an empty list."""
    body = protocol.body("write the greeting", 1)
    for name in ("input_schema", "parameters"):
        body["tools"] += [{"name": "now", name: {"type": "object", "properties": None, "required": None}}]
    failed = {"type": "web_search_tool_result", "content": {"error_code": "unavailable"}}
    for entries in (body.get("messages", []), body.get("input", [])):
        entries[1:1] = [{"role": "assistant", "content": [failed]}] * bool(entries)
    assert protocol.text(served.ask(protocol.path, body)) == "It is written"


def test_models_are_listed(served: Served) -> None:
    connection = http.client.HTTPConnection(served.address.removeprefix("http://"), timeout=10)
    connection.request("GET", "/v1/models")
    assert b"fake-model" in connection.getresponse().read()
    connection.close()
