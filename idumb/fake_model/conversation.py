"""Requests and replies in one form for both protocols, and the calls of tools that an agent offers."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from idumb.domain import model_script as script
from idumb.domain.model_script import Call

_FOLDER = re.compile(
    r"(?:working (?:in the )?director(?:y|ies)|workspace (?:folder|directory|root)s?|current directory|cwd)"
    r"[^\n/]{0,60}?[:>=\s][`'\"\s\-]*(/[^\s`'\"<>,;]*)",
    re.IGNORECASE,
)


class _Entry(Struct, frozen=True):
    """A message, a part of one, or what is beside messages: Responses has calls of tools there."""

    role: str = ""
    type: str = ""
    text: str | None = None
    content: _Content = None


_Content = str | list[_Entry] | dict[str, Any] | None  # an object in blocks that a script has no use for


class Schema(Struct, frozen=True):
    """What is used of the JSON Schema of a tool's arguments."""

    properties: dict[str, Any] | None = None
    required: tuple[str, ...] | None = None


class Tool(Struct, frozen=True):
    """A tool that the client offers. Each protocol has its own name for the schema."""

    name: str = ""
    input_schema: Schema | None = None
    parameters: Schema | None = None


class _Body(Struct, frozen=True):
    """What is used of a request, under the names of both protocols."""

    model: str = ""
    system: _Content = None
    instructions: str | None = None
    messages: tuple[_Entry, ...] = ()
    input: str | tuple[_Entry, ...] = ()
    tools: tuple[Tool, ...] | None = None
    stream: bool | None = None


class Conversation(Struct, frozen=True):
    """`prompt` is the user's newest text, `answered` the number of model messages after it.

    `text` is everything that people and the client wrote to the model.
    """

    model: str
    prompt: str
    answered: int
    tools: tuple[Tool, ...] = ()
    text: str = ""
    stream: bool = False

    @property
    def folder(self) -> str:
        """Return the working folder that the client names, or ""."""
        match = _FOLDER.search(self.text)
        return match[1].rstrip("./") or "/" if match else ""


class ToolCall(Struct, frozen=True):
    """`arguments` are JSON."""

    id: str
    name: str
    arguments: str


class Reply(Struct, frozen=True):
    """One message of the model, in terms of the client's tools."""

    id: int
    model: str
    text: str
    calls: tuple[ToolCall, ...]
    tokens_in: int
    tokens_out: int
    refused: bool = False


Event = tuple[str | None, Mapping[str, Any]]
"""Name and data; a name is the `type` in the data too."""
Errors = Mapping[str, tuple[int, str, str]]
"""For each fault, the status, the code and the words of a provider."""


def error(status: int, code: str, message: str) -> tuple[int, Mapping[str, Any]]:
    """Return status and body in a form that clients of both protocols read."""
    return status, {"type": "error", "error": {"type": code, "message": message, "param": None, "code": code}}


def read(data: bytes, _path: str = "") -> Conversation:
    """Return a request of either protocol. Raises msgspec.DecodeError if it is none.

    The newest prompt is that of one or more messages in a row, and a message of the model may be several entries.
    """
    body = msgspec.json.decode(data, type=_Body)
    given = (_Entry("user", content=body.input),) if isinstance(body.input, str) else body.messages + body.input
    said = [_text(body.system), body.instructions or ""]
    prompt: list[str] = []
    answered, speaks = 0, False
    for message in given:
        spoke, speaks = speaks, message.role == "assistant" or message.type.endswith("_call")
        if speaks:
            answered += not spoke
            continue
        said.append(_text(message.content))
        if message.role == "user" and not _is_result(message.content):
            if answered:
                prompt, answered = [], 0
            prompt.append(said[-1])
    text = "\n".join(filter(None, said))
    return Conversation(body.model, "\n".join(prompt), answered, body.tools or (), text, body.stream is True)


def _text(content: _Content) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if part.text) if isinstance(content, list) else ""


def _is_result(content: _Content) -> bool:
    return isinstance(content, list) and any(part.type == "tool_result" for part in content)


_NAMES: Mapping[str, tuple[str, ...]] = {
    script.WRITE: ("write", "write_file", "create_file", "create"),
    script.EDIT: ("edit", "replace", "edit_file", "str_replace"),
    script.READ: ("read", "read_file", "view"),
    script.RUN: ("bash", "run_shell_command", "exec_command", "shell_command", "shell", "local_shell"),
}
"""Tool names for each action, in order of preference."""
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "path": ("file_path", "filePath", "absolute_path", "path"),
    "content": ("content", "file_text", "contents", "text"),
    "old": ("old_string", "oldString", "old_str", "find"),
    "new": ("new_string", "newString", "new_str", "replace"),
    "command": ("command", "cmd"),
}
"""Argument names."""
_SHELL: Mapping[str, str] = {
    script.WRITE: "mkdir -p {folder} && printf %s {content} > {path}",
    script.EDIT: "OLD={old} NEW={new} perl -0pi -e 's/\\Q$ENV{{OLD}}\\E/$ENV{{NEW}}/' {path}",
    script.READ: "cat {path}",
}
"""The shell command of each action, for clients that offer only a shell."""
_STRUCTURED = ("StructuredOutput", "structured_output", "final_result")
_FILLER: Mapping[str, Any] = {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}

Wanted = tuple[str, Mapping[str, Any]]  # the name of a tool and its arguments


def structured_call(data: Any, conversation: Conversation) -> Wanted | None:
    """Return the call with which a client requests a structured reply, or None for plain text."""
    name = next((tool.name for tool in conversation.tools if tool.name in _STRUCTURED), None)
    return (name, data) if name is not None and isinstance(data, dict) else None


def offered_calls(call: Call, conversation: Conversation) -> list[Wanted]:
    """Return the tool calls for an action of the script; none if the client has no tool for it."""
    values = call.values
    if call.action == script.TOOL:
        return [(values["name"], values["arguments"])]
    offered = {tool.name.lower(): tool for tool in reversed(conversation.tools)}
    for tool in (offered[name] for name in _NAMES[call.action] if name in offered):
        if (arguments := _arguments(tool, values, conversation.folder)) is not None:
            return [(tool.name, arguments)]
    if call.action == script.RUN:
        return []
    quoted = {name: shlex.quote(value) for name, value in values.items()}
    folder = shlex.quote(posixpath.dirname(values["path"]) or ".")
    command = _SHELL[call.action].format(folder=folder, **quoted)
    return offered_calls(Call(script.RUN, {"command": command}), conversation)


def _arguments(tool: Tool, values: Mapping[str, str], folder: str) -> dict[str, Any] | None:
    """Return the values under the tool's own names, with filler for other required fields; None if they do not fit."""
    schema = tool.input_schema or tool.parameters or Schema()
    properties, arguments = schema.properties or {}, dict[str, Any]()
    for name, value in values.items():
        own = next((candidate for candidate in _ARGUMENTS[name] if candidate in properties), None)
        if own is None:
            return None
        is_list = name == "command" and _kind(properties[own]) == "array"
        absolute = posixpath.join(folder, value) if name == "path" else value
        arguments[own] = ["bash", "-lc", value] if is_list else absolute
    for name in schema.required or ():
        arguments.setdefault(name, _filler(properties.get(name)))
    return arguments


def _filler(schema: Any) -> Any:
    choices = schema.get("enum") if isinstance(schema, dict) else None
    return choices[0] if choices else _FILLER.get(_kind(schema), "as the script says")


def _kind(schema: Any) -> str:
    """Return the type of a field, the first of several that is not null."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return str(next((name for name in kind if name != "null"), "") if isinstance(kind, list) else kind)
