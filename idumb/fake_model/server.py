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
            raise Refusal(
                "fake-model.port",
                f"Cannot listen on port {port} of {HOST}: {problem.strerror or problem}",
                hint="Omit --port to use a free one",
            ) from None

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
    from idumb.system.processes import signals

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
    if log is None:
        yield lambda _: None
        return
    lock = threading.Lock()
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise Refusal(
            "fake-model.log",
            f"The log {log} cannot be written: {problem.strerror or problem}",
            hint="Name another file with --log",
        ) from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:

        def note(entry: Mapping[str, Any]) -> None:
            with lock:
                file.write(json.dumps(entry) + "\n")
                file.flush()

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
        if not isinstance(body, dict):
            self._send(Sent(400, {"error": {"type": "invalid_request_error", "message": "the request is no object"}}))
            return
        self._send(self.server.model.post(self._path(), body))

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing to standard error: the log has every request."""

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _is_for_us(self) -> bool:
        """Refuse requests with a foreign host name: a page in a browser can reach loopback under its own name."""
        host = self.headers.get("Host", HOST).rpartition("@")[2].partition(":")[0]
        if host in _NAMES and self.client_address[0] == HOST:
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
        whole = _bytes(sent)
        with contextlib.suppress(ConnectionError):
            if sent.fault in _SPOILED:
                _SPOILED[sent.fault](self, sent, whole)
                return
            self._head(sent, len(whole))
            if self.command != "HEAD":
                self.wfile.write(whole)

    def _head(self, sent: Sent, length: int) -> None:
        self.send_response(sent.status)
        self.send_header("Content-Type", "application/json" if sent.events is None else "text/event-stream")
        self.send_header("Content-Length", str(length))
        if sent.status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()

    # Faults

    def closed(self, _: Sent, __: bytes) -> None:
        """Send nothing; reset the connection."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def truncated(self, sent: Sent, whole: bytes) -> None:
        """Send the first half, then close the connection."""
        self._head(sent, len(whole))
        self.wfile.write(whole[: len(whole) // 2])
        self.wfile.flush()
        self.close_connection = True

    def garbage(self, sent: Sent, _: bytes) -> None:
        """Send bytes of no protocol with status 200."""
        self._head(sent, len(_GARBAGE))
        self.wfile.write(_GARBAGE)

    def drip(self, sent: Sent, whole: bytes) -> None:
        """Send everything, a few bytes at a time, over `seconds`."""
        pieces = [whole[at : at + _DRIP_BYTES] for at in range(0, len(whole), _DRIP_BYTES)]
        self._head(sent, len(whole))
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()
            if self.server.over.wait(min(sent.seconds, script.LONGEST_SECONDS) / len(pieces)):
                return

    def silent(self, sent: Sent, _: bytes) -> None:
        """Read the request, send nothing for `seconds`, then close the connection."""
        self.server.over.wait(min(sent.seconds or script.LONGEST_SECONDS, script.LONGEST_SECONDS))
        self.close_connection = True


_SPOILED: Mapping[str | None, Callable[[_Handler, Sent, bytes], None]] = {
    script.CLOSED: _Handler.closed,
    script.TRUNCATED: _Handler.truncated,
    script.GARBAGE: _Handler.garbage,
    script.DRIP: _Handler.drip,
    script.SILENT: _Handler.silent,
}


def _bytes(sent: Sent) -> bytes:
    return json.dumps(sent.body).encode("ascii") if sent.events is None else b"".join(map(_event, sent.events))


def _event(event: tuple[str | None, Any]) -> bytes:
    name, data = event
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode("ascii")
