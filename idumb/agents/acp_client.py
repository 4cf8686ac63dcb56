"""The client side of the Agent Client Protocol, version 1, as a function from bytes to bytes.

It runs one session with one prompt. It vetoes a write outside the allowed files when the agent asks; an agent can be
configured never to ask. It offers neither file access nor terminals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.agents import answers

VERSION = 1
LONGEST_LINE = 16 * 1024 * 1024
LONGEST_REPLY = 2 * 1024 * 1024
MOST_CALLS = 10_000
"""Each tool call is an event, and the log only grows."""
NO_METHOD = -32601
_AUTH_REQUIRED = -32000

_ONCE = "allow_once"
_CLAUDE = "claude-agent-acp"
_MODEL, _OPTION = "session/set_model", "session/set_config_option"
_METHODS = ("initialize", "session/new", "session/set_mode", "session/prompt", _MODEL, _OPTION)
"""An answer has the id of its request, its place here."""


class _UnusableError(Exception):
    """The dialogue cannot go on; the message is for the user."""


class ToolCall(Struct, frozen=True):
    """One tool call as the agent reported it. `kind` is edit, delete, move, execute, ...; `paths` are as it sent them.

    `allowed` is None if it did not ask. `writes` is true if it contains a file difference, whatever its kind says.
    """

    id: str
    kind: str
    title: str
    paths: tuple[str, ...]
    status: str = ""
    allowed: bool | None = None
    why: str = ""
    writes: bool = False


class Client(Struct):
    """One dialogue. `mode` and `model` use the agent's ids, None for its defaults.

    `permits` returns why a tool call is refused, or "". `tell` gets a short line for each thing that the agent does.

    At the end, `stop` is the agent's stop reason, or `error` the problem, and `problem` its structured error, if any.
    `refuses_model` is true if it rejects the chosen model.
    """

    cwd: str
    prompt: str
    permits: Callable[[ToolCall], str]
    version: str = ""
    mode: str | None = None
    model: str | None = None
    tell: Callable[[str], None] = lambda _: None
    over: bool = False
    stop: str | None = None
    error: str | None = None
    problem: Mapping[str, Any] | None = None
    last_chunk: str = ""
    refuses_model: bool = False
    session: str | None = None
    used: Mapping[str, Any] = field(default_factory=dict)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    _requests: Generator[bytes, Any] | None = None
    _asked: str = ""
    _reply: list[str] = field(default_factory=list)
    _reply_length: int = 0
    _rest: bytearray = field(default_factory=bytearray)

    @property
    def reply(self) -> str:
        """Return what the agent said after its last tool call."""
        return "".join(self._reply)

    def begin(self) -> bytes:
        self._requests = self._dialogue()
        return next(self._requests)

    def _dialogue(self) -> Generator[bytes, Any]:
        """Yield each request, and receive its result."""
        started = yield self._request(
            "initialize",
            protocolVersion=VERSION,
            clientCapabilities={"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
            clientInfo={"name": "idumb", "title": "idumb", "version": self.version},
        )
        if started.get("protocolVersion") != VERSION:
            version = started.get("protocolVersion")
            raise _UnusableError(f"it uses protocol version {version!r}; idumb supports version {VERSION}")
        session = yield self._request("session/new", cwd=self.cwd, mcpServers=[], **_chosen_by_claude(self.model))
        self.session = str(session["sessionId"])
        if self.model is not None:
            yield from self._choose_model(session, str(answers.inside(started, "agentInfo", "name")))
        if self.mode is not None:
            yield self._request("session/set_mode", sessionId=self.session, modeId=self.mode)
        blocks = [{"type": "text", "text": self.prompt}]
        ended = yield self._request("session/prompt", sessionId=self.session, prompt=blocks)
        self.stop = str(ended["stopReason"])
        if self._reply:
            self.tell(f"says: {self.reply}")
        # Gemini CLI has no `usage`.
        self._count(ended.get("usage") or answers.inside(ended, "_meta", "quota", "token_count"))

    def _choose_model(self, session: Mapping[str, Any], agent: str) -> Generator[bytes, Any]:
        """Choose the model in one of the two ways that an agent may offer; Claude Code got it with the session."""
        if session.get("models"):
            yield self._request(_MODEL, sessionId=self.session, modelId=self.model)
            return
        options = [o for o in session.get("configOptions") or () if "model" in (o.get("category"), o.get("id"))]
        option = next((o for o in options if not (listed := _ids(o.get("options"))) or self.model in listed), None)
        if option is not None:
            yield self._request(_OPTION, sessionId=self.session, configId=option["id"], value=self.model)
        elif not options or _CLAUDE not in agent:
            self.refuses_model = True
            why = "does not know" if options else "has no setting to choose"
            raise _UnusableError(f"it {why} the model {self.model}")

    def _request(self, method: str, **params: Any) -> bytes:
        self._asked = method
        return _message(_METHODS.index(method) + 1, method=method, params=params)

    def heard(self, data: bytes) -> bytes:
        """Return the reply to the agent's next bytes; skip lines that are not messages."""
        self._rest += data
        replies = b""
        while not self.over and (end := self._rest.find(b"\n")) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            replies += self._line(line)
        if len(self._rest) > LONGEST_LINE:
            self._fail(f"it sent a message of more than {LONGEST_LINE} bytes")
        return replies

    def _line(self, line: bytes) -> bytes:
        message = next(answers.objects(line), None)
        if message is None:
            return b""
        try:
            if "method" in message:
                return self._handle_request(message)
            return self._answered(message)
        except StopIteration:
            self.over = True
        except _UnusableError as problem:
            self._fail(str(problem))
        except (TypeError, KeyError, AttributeError, ValueError) as problem:
            self._fail(f"it sent an invalid protocol message ({type(problem).__name__})")
        return b""

    def _fail(self, words: str) -> None:
        self.over, self.error = True, words

    def _answered(self, message: Mapping[str, Any]) -> bytes:
        if self._requests is None or message.get("id") != _METHODS.index(self._asked) + 1:
            return b""
        if message.get("error") is not None:
            self._failed(message["error"])
            return b""
        return self._requests.send(message.get("result") or {})

    def _failed(self, error: Any) -> None:
        error_object = error if isinstance(error, dict) else {"message": str(error)}
        words = " ".join(str(part) for part in (error_object.get("message"), _detail(error_object.get("data"))) if part)
        self.refuses_model = self._asked in (_MODEL, _OPTION)
        self.problem = _structured(error_object, words)
        about = "choosing the model" if self.refuses_model else self._asked
        self._fail(f"{about} failed: {words or 'without a word'}")

    def _handle_request(self, message: Mapping[str, Any]) -> bytes:
        method, params = message["method"], message.get("params") or {}
        if method == "session/update":
            self._updated(params["update"])
            return b""
        if "id" not in message:
            return b""
        if method == "session/request_permission":
            return _message(message["id"], result={"outcome": self._permission(params)})
        return _message(message["id"], error={"code": NO_METHOD, "message": f"{method} is not offered"})

    def _permission(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Allow once or reject. Never allow always, because the agent would not ask about the next file."""
        call = params["toolCall"]
        record = self._note(call)
        offered = [option.get("kind") for option in params["options"]]
        why = self.permits(record) or ("" if _ONCE in offered else "it offers no option to allow this call once")
        self.calls[record.id] = replace(record, allowed=not why, why=why)
        kinds = ("reject_once", "reject_always") if why else (_ONCE,)
        fitting = (option for kind in kinds for option in params["options"] if option.get("kind") == kind)
        chosen = next(fitting, None)
        return {"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen["optionId"]}

    def _updated(self, update: Mapping[str, Any]) -> None:
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            content = update.get("content") or {}
            text = str(content.get("text", "")) if content.get("type") == "text" else ""
            self.last_chunk = text
            self._reply_length += len(text)
            if self._reply_length <= LONGEST_REPLY:
                self._reply.append(text)
        elif kind in {"tool_call", "tool_call_update"}:
            self._said()
            call = self._note(update)
            if call.status in {"completed", "failed"}:
                self.tell(f"{call.kind} {' '.join(call.paths) or call.title}: {call.status}")
        elif kind == "usage_update":
            self._count(update)
            if isinstance(update.get("used"), int):
                self.tell(f"{update['used']} tokens so far")

    def _said(self) -> None:
        """Begin another message."""
        if self._reply:
            self.tell(f"says: {self.reply}")
        self._reply.clear()
        self._reply_length = 0

    def _note(self, update: Mapping[str, Any]) -> ToolCall:
        """Update the record of a tool call; later messages add to earlier ones."""
        name = str(update["toolCallId"])
        if name not in self.calls and len(self.calls) >= MOST_CALLS:
            raise _UnusableError(f"it made more than {MOST_CALLS} tool calls")
        old = self.calls.get(name) or ToolCall(name, "other", "", ())
        kind, title, status = (str(update.get(k) or getattr(old, k)) for k in ("kind", "title", "status"))
        paths = tuple(dict.fromkeys((*old.paths, *_paths(update, kind))))
        writes = old.writes or bool(_differences(update))
        self.calls[name] = ToolCall(name, kind, title, paths, status, old.allowed, old.why, writes)
        return self.calls[name]

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.used = {**self.used, **usage}


def _chosen_by_claude(model: str | None) -> dict[str, Any]:
    """Return the model in the field of Claude Code's agent, which lists aliases only; others ignore `_meta`."""
    return {} if model is None else {"_meta": {"claudeCode": {"options": {"model": model}}}}


def _ids(listed: Any) -> list[str]:
    """Return the ids in a list of models, which may be grouped."""
    ids: list[str] = []
    for entry in listed or ():
        ids += _ids(entry["options"]) if "options" in entry else [str(entry["value"])]
    return ids


def _paths(update: Mapping[str, Any], kind: str) -> list[str]:
    """Return every path that a tool call names: locations, differences, and the usual argument names.

    Arguments of a command have other meanings, so they are skipped.
    """
    paths = [place.get("path") for place in update.get("locations") or ()]
    paths += [part.get("path") for part in _differences(update)]
    arguments = update.get("rawInput")
    if isinstance(arguments, dict) and kind != "execute":
        names = ("path", "file_path", "filePath", "filename", "from", "to", "source", "destination")
        paths += [arguments.get(name) for name in names]
    return [path for path in paths if isinstance(path, str) and path]


def _differences(update: Mapping[str, Any]) -> list[Any]:
    return [part for part in update.get("content") or () if part.get("type") == "diff"]


def _structured(error: Mapping[str, Any], words: str) -> dict[str, Any]:
    """Return an error as an HTTP error, which agents put into the code; the codes of the protocol are negative."""
    code = error.get("code")
    if code == _AUTH_REQUIRED:
        return {"message": words, "code": "authentication_error"}
    is_status = isinstance(code, int) and 400 <= code < 600 and code != 500  # Gemini CLI says 500 of anything else
    return {"message": words, **({"status": code} if is_status else {})}


def _detail(data: Any) -> str:
    if isinstance(data, dict):
        data = data.get("details") or data.get("message") or data
    return data if isinstance(data, str) else json.dumps(data) if data else ""


def _message(id: Any, **fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, **fields}, ensure_ascii=True).encode("ascii") + b"\n"
