"""The address of a model server: what is refused before anything is sent, and the deadline of the lookup."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from idumb.agents import model_server
from idumb.agents.model_server import Endpoint, NoAnswer
from idumb.domain.errors import AdapterError
from tests.support import chat_server
from tests.support.cases import every
from tests.support.chat_server import ChatServer


def test_the_deadline_includes_the_name_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ADAPT-2."""
    cut = threading.Event()
    own_cut, own_connect = model_server._cut, model_server._connect

    def cutting(*about: Any) -> None:
        own_cut(*about)
        cut.set()

    def connecting(connection: Any) -> None:
        assert cut.wait(20)
        own_connect(connection)

    monkeypatch.setattr(model_server, "_cut", cutting)
    monkeypatch.setattr(model_server, "_connect", connecting)
    with ChatServer(chat_server.text("Done.")).serving() as server:
        with pytest.raises(NoAnswer) as caught:
            Endpoint(server.url).post("/x", b"{}", {}, until=time.monotonic() + 0.05, idle=5)
        assert caught.value.late
        assert server.requests == []


@every(
    "address, proxy, code",
    [
        ("http://127.0.0.1:1/v1", "http://proxy.example:3128", "agent.plain-http"),
        ("http://127.0.0.1:1/v1", "https://127.0.0.1:3128", "agent.bad-address"),
        ("https://models.example/v1", "https://proxy.example:3128", "agent.bad-address"),
    ],
)
def test_a_proxy_that_could_read_the_traffic_or_is_unsupported_is_refused(address: str, proxy: str, code: str) -> None:
    """R-ADAPT-2."""
    with pytest.raises(AdapterError) as caught:
        Endpoint(address, proxy=proxy)
    assert caught.value.code == code


def test_a_proxy_that_cannot_read_the_traffic_or_is_allowed_is_used() -> None:
    """R-ADAPT-2."""
    with ChatServer(chat_server.text("Done.")).serving() as proxy:
        allowed = Endpoint("http://models.invalid/v1", proxy=proxy.url.removesuffix("/v1"), plain=True)
        assert allowed.post("/x", b"{}", {}, until=time.monotonic() + 20, idle=20).status == 200
        assert [request.path for request in proxy.requests] == ["http://models.invalid/v1/x"]
    Endpoint("https://models.example/v1", proxy="http://proxy.example:3128")
    Endpoint("http://127.0.0.1:1/v1", proxy="http://127.0.0.1:3128")
