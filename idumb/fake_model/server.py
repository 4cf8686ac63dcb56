"""The loopback server: reads requests and sends the scripted model's responses, corrupted if the script says so."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from idumb.domain import canonical_json
from idumb.domain import model_script as script
from idumb.domain.errors import Refusal
from idumb.domain.model_script import Script
from idumb.fake_model.model import FakeModel, Format, Sent

HOST = "127.0.0.1"
LARGEST_REQUEST = 64 * 1024 * 1024
_NAMES = frozenset({HOST, "localhost"})
_GARBAGE = b"\x00\xff<<< not a protocol >>>\r\n{]"
_DRIP_BYTES = 8

Note = Callable[[Mapping[str, Any]], None]


class Server(ThreadingHTTPServer):
    """Listens on the loopback address only; `port` 0 selects a free port."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, scripted: Script, port: int, note: Note, more: Mapping[str, Format] | None = None) -> None:
        self.model = FakeModel(scripted, more)
        self.note = note
        self.over = threading.Event()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as problem:
            words = f"Cannot listen on port {port} of {HOST}: {problem.strerror or problem}"
            raise Refusal("fake-model.port", words, hint="Omit --port to use a free one") from None

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnects; the log has the request."""


def serve(scripted: Script, port: int, log: str | None, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; call `ready` with the address once clients can connect.

    `log` is a file that gets one JSON object per request: what was requested and answered, never a header, a query or a
    key.
    """
    from idumb.system import signals

    with _noting(log) as note, Server(scripted, port, note) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        with signals.until_signalled() as wait:
            thread.start()
            ready(server.address)
            wait()
        server.over.set()
        server.shutdown()


@contextlib.contextmanager
def _noting(log: str | None) -> Iterator[Note]:
    lock = threading.Lock()
    try:
        handle = os.open(
            os.devnull if log is None else log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
    except OSError as problem:
        words = f"The log {log} cannot be written: {problem.strerror or problem}"
        raise Refusal("fake-model.log", words, hint="Name another file with --log") from None

    with os.fdopen(handle, "w", encoding="utf-8") as file:

        def note(entry: Mapping[str, Any]) -> None:
            with lock:
                print(json.dumps(entry), file=file, flush=True)

        yield note


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "idumb-fake-model"
    sys_version = ""
    timeout = script.LONGEST_SECONDS

    def do_GET(self) -> None:
        if self._is_for_us():
            self._send(self.server.model.get(self._path()))

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

    def do_POST(self) -> None:
        if not self._is_for_us():
            return
        try:
            body = canonical_json.decode(self._body() or b"{}")
        except ValueError:
            body = None
        if isinstance(body, dict):
            self._send(self.server.model.post(self._path(), body))
        else:
            self._send(Sent(400, {"error": {"type": "invalid_request_error", "message": "the request is no object"}}))

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing to standard error: the log has every request."""

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _is_for_us(self) -> bool:
        """Refuse requests with a foreign host name: a page in a browser can reach loopback under its own name."""
        if self.headers.get("Host", HOST).partition(":")[0] in _NAMES:
            return True
        self.close_connection = True
        self._send(Sent(403, {"error": {"type": "forbidden", "message": f"only {HOST} is answered"}}))
        return False

    def _body(self) -> bytes:
        size = int(self.headers.get("Content-Length") or 0)
        if not 0 <= size <= LARGEST_REQUEST:
            raise ValueError("too large")
        return self.rfile.read(size)

    def _send(self, sent: Sent) -> None:
        self.server.note({"method": self.command, "path": self._path(), "status": sent.status, **(sent.note or {})})
        seconds = min(sent.seconds, script.LONGEST_SECONDS)
        self.close_connection |= sent.fault in _CLOSING
        with contextlib.suppress(OSError):
            if sent.fault == script.CLOSED:  # not a byte, and a reset
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif sent.fault == script.SILENT:
                self.server.over.wait(seconds or script.LONGEST_SECONDS)
            else:
                self._answer(sent, seconds)

    def _answer(self, sent: Sent, seconds: float) -> None:
        """Send the response, or half of it, a few bytes at a time over `seconds`, or bytes of no protocol."""
        whole = _GARBAGE if sent.fault == script.GARBAGE else _bytes(sent)
        self.send_response(sent.status)
        self.send_header("Content-Type", "application/json" if sent.events is None else "text/event-stream")
        self.send_header("Content-Length", str(len(whole)))
        if sent.status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        size = {script.TRUNCATED: len(whole) // 2, script.DRIP: _DRIP_BYTES}.get(sent.fault or "", len(whole))
        for at in range(0, size if sent.fault == script.TRUNCATED else len(whole), size):
            if self.command != "HEAD":
                self.wfile.write(whole[at : at + size])
            if sent.fault == script.DRIP and self.server.over.wait(seconds * size / len(whole)):
                return


_CLOSING = frozenset({script.CLOSED, script.SILENT, script.TRUNCATED})
"""Faults after which the connection ends."""


def _bytes(sent: Sent) -> bytes:
    return json.dumps(sent.body).encode("ascii") if sent.events is None else b"".join(map(_event, sent.events))


def _event(event: tuple[str | None, Any]) -> bytes:
    name, data = event
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode("ascii")
