"""A model server on the loopback interface with scripted answers, which records its requests."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Response:
    """One answer; `length` is the header's value."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False
    length: int | None = None


@dataclass(slots=True)
class ReceivedRequest:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class ChatServer:
    """`requests` are those received so far. Answers are given in order; the last one repeats."""

    def __init__(self, *answers: Response) -> None:
        self.requests: list[ReceivedRequest] = []
        self.answers = list(answers)
        self.over = threading.Event()
        handler = type("Handler", (_Handler,), {"chat": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @contextlib.contextmanager
    def serving(self) -> Iterator[ChatServer]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    chat: ChatServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.chat.requests.append(ReceivedRequest(self.path, dict(self.headers), json.loads(data)))
        answers = self.chat.answers
        response = answers.pop(0) if len(answers) > 1 else answers[0]
        if response.silent:
            self.chat.over.wait(30)
            return
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body) if response.length is None else response.length))
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(response.body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def text(words: str, usage: Mapping[str, int] | None = USAGE, **more: Any) -> Response:
    """A message of text; `more` goes into the choice."""
    message = {"role": "assistant", "content": words}
    return _completion({"index": 0, "message": message, "finish_reason": "stop", **more}, usage)


def calls(*tool_calls: tuple[str, Mapping[str, Any]]) -> Response:
    """A message that calls tools."""
    listed = [
        {"id": f"call-{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(tool_calls)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": listed}
    return _completion({"index": 0, "message": message, "finish_reason": "tool_calls"}, USAGE)


def _completion(choice: Mapping[str, Any], usage: Mapping[str, int] | None) -> Response:
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "loop-1", "choices": [choice]}
    return Response(json.dumps({**body, "usage": usage}).encode())


def error(status: int, words: str = "", code: str = "", **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(json.dumps({"error": {"message": words, "code": code}}).encode(), status, named)
