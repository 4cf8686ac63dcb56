"""The loopback server: reads requests and sends the scripted model's responses, corrupted if the script says so."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from idumb.domain import model_script as script
from idumb.domain.errors import Refusal
from idumb.domain.model_script import Script
from idumb.fake_model.model import FakeModel, Sent, refused

HOST = "127.0.0.1"
_GARBAGE = b"\x00\xff<<< not a protocol >>>\r\n{]"
_DRIP_BYTES = 8
_CLOSING = frozenset({script.CLOSED, script.SILENT, script.TRUNCATED})
"""Faults after which the connection ends."""


class Server(ThreadingHTTPServer):
    """Listens on the loopback address only; `port` 0 selects a free port."""

    def __init__(self, scripted: Script, port: int, note: Callable[[Mapping[str, Any]], object]) -> None:
        self.model = FakeModel(scripted)
        self.note = note
        self.over = threading.Event()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as problem:
            words = f"Cannot listen on port {port} of {HOST}: {problem.strerror or problem}"
            raise Refusal("fake-model.port", words, hint="Omit --port to use a free one") from None
        self.address = f"http://{HOST}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnects; the log has the request."""


def serve(scripted: Script, port: int, log: str | None, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; call `ready` with the address once clients can connect.

    `log` is a file that gets one JSON object per request: what was requested and answered, never a header, a query or a
    key.
    """
    from idumb.system import signals

    try:
        file = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        words = f"The log {log} cannot be written: {problem.strerror or problem}"
        raise Refusal("fake-model.log", words, hint="Name another file with --log") from None

    def note(entry: Mapping[str, Any]) -> None:
        os.write(file, json.dumps(entry).encode() + b"\n")  # one write, so that lines of two threads do not mix

    with open(file, "wb"), Server(scripted, port, note) as server, signals.until_signalled() as wait:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        ready(server.address)
        wait()
        server.over.set()
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = script.LONGEST_SECONDS

    def do_GET(self) -> None:
        """Answer any request. A foreign host name is refused: a page in a browser can reach loopback under its own."""
        path, size = self.path.partition("?")[0], self.headers.get("Content-Length") or "0"
        if self.headers.get("Host", HOST).partition(":")[0] not in {HOST, "localhost"}:
            sent = refused(403, "forbidden", f"only {HOST} is answered")
        else:
            sent = self.server.model.answer(path, self.rfile.read(int(size)) if self.command == "POST" else None)
        self.server.note({"method": self.command, "path": path, "status": sent.status, **sent.note})
        self.close_connection |= sent.status == 403 or sent.fault in _CLOSING
        with contextlib.suppress(OSError):
            self._send(sent)

    do_HEAD = do_POST = do_GET  # noqa: N815 - names that the base class calls

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing to standard error: the log has every request."""

    def _send(self, sent: Sent) -> None:
        """Send the response, or half of it, a few bytes at a time over some seconds, or bytes of no protocol."""
        if sent.fault == script.SILENT:
            self.server.over.wait(sent.seconds or script.LONGEST_SECONDS)
        elif sent.fault == script.CLOSED:  # not a byte, and a reset
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            self._answer(sent, _GARBAGE if sent.fault == script.GARBAGE else _bytes(sent))

    def _answer(self, sent: Sent, whole: bytes) -> None:
        self.send_response(sent.status)
        self.send_header("Content-Type", "text/event-stream" if sent.stream else "application/json")
        self.send_header("Content-Length", str(len(whole)))
        if sent.status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        size = _DRIP_BYTES if sent.fault == script.DRIP else len(whole)
        end = 0 if self.command == "HEAD" else len(whole) // 2 if sent.fault == script.TRUNCATED else len(whole)
        for at in range(0, end, size):
            self.wfile.write(whole[at : min(at + size, end)])
            if sent.fault == script.DRIP and self.server.over.wait(sent.seconds * size / len(whole)):
                return


def _bytes(sent: Sent) -> bytes:
    return b"".join(_event(*event) for event in sent.body) if sent.stream else json.dumps(sent.body).encode("ascii")


def _event(name: str | None, data: Mapping[str, Any]) -> bytes:
    text = f"event: {name}\ndata: {json.dumps({'type': name, **data})}" if name else f"data: {json.dumps(data)}"
    return f"{text}\n\n".encode("ascii")
