"""Sends one request to a model's server, with limits of time and size, no redirects, and only a configured proxy.

It also lists the models that a server accepts, for the message about an unknown one.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from idumb.domain import canonical_json, wording
from idumb.domain.errors import AdapterError
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

LARGEST = 16 * 1024 * 1024  # bytes of one answer
_CONNECT = 30.0  # seconds
_LIST_SECONDS = 10.0
_MOST_MODELS = 20
_LONGEST_ID = 100
_HINT = "idumb help agents, section http"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(Exception):
    """No usable response. `late`: the time limit expired. `silent`: the server sent nothing for too long."""

    def __init__(self, words: str, *, late: bool = False, silent: bool = False, malformed: bool = False) -> None:
        super().__init__(words)
        self.late = late
        self.silent = silent
        self.malformed = malformed


class Endpoint:
    """The address of a server. Raises AdapterError for a forbidden address.

    Plain http exposes keys and prompts, so only this machine may use it, unless `plain` allows it. `proxy` is an
    address such as `http://proxy:3128`. A proxy cannot read https; it can read plain http.
    """

    def __init__(self, address: str, *, plain: bool = False, proxy: str | None = None) -> None:
        self._to = _checked(address, "base_url")
        self._proxy = _checked(proxy, "proxy") if proxy else None
        if self._proxy is not None and self._proxy.scheme != "http":
            raise AdapterError(
                "agent.bad-address",
                "`proxy` must be an http:// address; idumb does not use TLS to a proxy.",
                hint=_HINT,
            )
        hosts = [address_parts.hostname or "" for address_parts in (self._to, self._proxy) if address_parts is not None]
        if self._to.scheme == "http" and not plain and not all(map(_is_loopback, hosts)):
            through = " through a proxy" if self._proxy is not None else ""
            raise AdapterError(
                "agent.plain-http",
                f"{self.name}{through} does not use https, so others could read prompts and keys in transit.",
                hint="Use https. On a network that you trust, set `plain_http: true` under options.",
            )

    @property
    def name(self) -> str:
        """Return scheme, host and port, for messages."""
        return f"{self._to.scheme}://{self._to.netloc}"

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str], *, until: float | None, idle: float | None
    ) -> Answer:
        """POST a body and return the response. Raises NoAnswer.

        `until` is on the monotonic clock, `idle` in seconds.
        """
        return self._send("POST", path, body, headers, until, idle)

    def get(self, path: str, headers: Mapping[str, str], *, until: float) -> Answer:
        """GET a resource, with the same limits."""
        return self._send("GET", path, None, headers, until, None)

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        until: float | None,
        idle: float | None,
    ) -> Answer:
        remaining = None if until is None else until - time.monotonic()
        if remaining is not None and remaining <= 0:
            raise NoAnswer("the time limit expired before the request was sent", late=True)
        connection = self._connection(min(x for x in (_CONNECT, remaining) if x is not None))
        over = threading.Event()
        reached: list[socket.socket] = []
        timer = None if remaining is None else threading.Timer(remaining, _cut, (connection, reached, over))
        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            _connect(connection)
            if over.is_set():
                # The time limit expired during the name lookup, when there was no connection to cut.
                raise TimeoutError
            reached.append(connection.sock)
            return self._exchange(connection, method, path, body, headers, idle)
        except TimeoutError:
            if over.is_set() or (until is not None and time.monotonic() >= until):
                raise NoAnswer(f"{self.name} did not answer in time", late=True) from None
            raise NoAnswer(f"{self.name} was silent for too long", silent=True) from None
        except (OSError, ValueError, AttributeError, EOFError) as problem:
            # Cutting a connection raises various errors; the event shows that idumb cut it.
            late = over.is_set() or (until is not None and time.monotonic() >= until)
            raise self._no_answer(problem, late=late) from None
        finally:
            if timer is not None:
                timer.cancel()
            connection.close()

    def _no_answer(self, problem: Exception, *, late: bool) -> NoAnswer:
        if late:
            return NoAnswer(f"{self.name} did not answer in time", late=True)
        if isinstance(problem, NoAnswerSize):
            return NoAnswer(str(problem), malformed=True)
        reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        return NoAnswer(f"cannot connect to {self.name}, or the connection was lost: {reason}")

    def _exchange(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        idle: float | None,
    ) -> Answer:
        from http.client import HTTPException

        try:
            connection.sock.settimeout(idle)
            connection.request(method, self._target(path), body, dict(headers))
            with contextlib.closing(connection.getresponse()) as response:
                data = _taken(response)
        except HTTPException as problem:
            raise OSError(f"the response is not valid HTTP ({type(problem).__name__})") from None
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, data)

    def _target(self, path: str) -> str:
        own = self._to.path.rstrip("/") + path
        return f"{self.name}{own}" if self._proxy is not None and self._to.scheme == "http" else own

    def _connection(self, timeout: float) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        host, port = self._to.hostname or "", self._to.port
        via = self._proxy
        if self._to.scheme == "https":
            if via is None:
                return HTTPSConnection(host, port, timeout=timeout)
            secure = HTTPSConnection(via.hostname or "", via.port, timeout=timeout)
            secure.set_tunnel(host, port)
            return secure
        if via is not None:
            return HTTPConnection(via.hostname or "", via.port, timeout=timeout)
        return HTTPConnection(host, port, timeout=timeout)


class NoAnswerSize(OSError):
    """The response is larger than the limit."""


def _connect(connection: HTTPConnection) -> None:
    from http.client import HTTPException

    try:
        connection.connect()
    except TimeoutError:
        raise OSError("the connection timed out") from None
    except HTTPException as problem:
        raise OSError(f"the response is not valid HTTP ({type(problem).__name__})") from None


def _taken(response: HTTPResponse) -> bytes:
    parts, size = [], 0
    while part := response.read1(1 << 16):
        size += len(part)
        if size > LARGEST:
            raise NoAnswerSize(f"the response is larger than {LARGEST} bytes")
        parts.append(part)
    if response.length:
        raise OSError("the response is truncated")
    return b"".join(parts)


def _cut(connection: HTTPConnection, reached: Sequence[socket.socket], over: threading.Event) -> None:
    """Close a connection from another thread, which wakes the reader at once.

    The connection drops its socket if the server announces that it will close, so shut down the `reached` one, too.
    """
    over.set()
    for sock in (*reached, connection.sock):
        if sock is not None:
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                pass  # already closed


def _checked(address: str, name: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(c.isspace() or not c.isprintable() for c in address):
        raise AdapterError("agent.bad-address", f"`{name}` is not a server address: {address!r}", hint=_HINT)
    if parts.username is not None or parts.query or parts.fragment:
        raise AdapterError(
            "agent.bad-address",
            f"`{name}` must not contain a user name, a key or a query.",
            hint="List the variable that holds the key under `environment`.",
        )
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class ModelList:
    """Where an agent's server lists its models. `address` and `key` are names of variables.

    `usual` is the address if that variable is not set. The key is sent in `header`, after the prefix `before`.
    """

    address: str
    key: str
    usual: str = ""
    path: str = "/models"
    header: str = "Authorization"
    before: str = "Bearer "
    more: Mapping[str, str] | None = None

    def models(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the ids that the server lists, or none if the request fails."""
        key, address = environment.get(self.key, ""), environment.get(self.address) or self.usual
        if not address or not (key or self.address in environment):
            return ()
        headers = {**(self.more or {}), **({self.header: f"{self.before}{key}"} if key else {})}
        try:
            return listed_models(Endpoint(address.rstrip("/")), headers, self.path)
        except AdapterError:
            return ()


def listed_models(endpoint: Endpoint, headers: Mapping[str, str], path: str = "/models") -> tuple[str, ...]:
    """Return the ids of the models that a server lists, in any protocol; none if it does not answer."""
    try:
        answer = endpoint.get(path, {"Accept": "application/json", **headers}, until=time.monotonic() + _LIST_SECONDS)
        body = canonical_json.decode(answer.body) if answer.status == 200 else None
    except (NoAnswer, ValueError):
        return ()
    rows: Any = body.get("data", body.get("models")) if isinstance(body, dict) else None
    if not isinstance(rows, list):
        return ()
    ids = [row.get("id") or row.get("slug") or row.get("name") for row in rows if isinstance(row, dict)]
    return plain_ids(id.removeprefix("models/") for id in ids if isinstance(id, str))


def plain_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids that are one printable word."""
    return tuple(id for id in ids if 0 < len(id) <= _LONGEST_ID and id.isprintable() and " " not in id)


def described_models(ids: Sequence[str]) -> str:
    """Describe the accepted ids for the user."""
    if not ids:
        return "it does not list its models"
    return f"available models: {wording.listed(ids, _MOST_MODELS)}"
