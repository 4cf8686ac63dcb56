"""Requests and responses in one form for both protocols, and the calls of tools that an agent offers."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from idumb.domain import model_script as script
from idumb.domain.model_script import Call

_FOLDER = re.compile(
    r"(?:working (?:in the )?director(?:y|ies)|workspace (?:folder|directory|root)s?|current directory|cwd)"
    r"[^\n/]{0,60}?[:>=\s][`'\"\s\-]*(/[^\s`'\"<>,;]*)",
    re.IGNORECASE,
)


class Tool(Struct, frozen=True):
    """A tool that the client offers. `schema` is the JSON Schema of its arguments."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)

    @property
    def properties(self) -> Mapping[str, Any]:
        return mapping(self.schema.get("properties"))


class Conversation(Struct, frozen=True):
    """`prompt` is the user's newest text, `answered` the number of model messages after it.

    `text` is everything that people and the client wrote to the model, `forced` the tool that the model must call.
    """

    model: str
    prompt: str
    answered: int
    tools: tuple[Tool, ...] = ()
    text: str = ""
    forced: str | None = None

    @property
    def folder(self) -> str:
        """Return the working folder that the client names, or ""."""
        match = _FOLDER.search(self.text)
        return match[1].rstrip("./") or "/" if match else ""


class ToolCall(Struct, frozen=True):
    id: str
    name: str
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.arguments)


class Reply(Struct, frozen=True):
    """One message of the model, in terms of the client's tools."""

    id: str
    model: str
    text: str
    calls: tuple[ToolCall, ...]
    tokens_in: int
    tokens_out: int
    refused: bool = False


Event = tuple[str | None, Any]  # name and data
Errors = Mapping[str, tuple[int, str, str]]
"""For each fault, the status, the code and the words of a provider."""


def of_turns(
    model: Any, turns: Sequence[str | None], system: Iterable[str], tools: Iterable[Tool], forced: Any
) -> Conversation:
    """Return a request in the common form. A turn is the text of a prompt, or None for a message of the model.

    `system` are the texts that precede the conversation. The newest prompt is that of one or more messages in a row.
    """
    prompt: list[str] = []
    answered = 0
    for text in turns:
        if text is None:
            answered += 1
            continue
        if answered:
            prompt, answered = [], 0
        prompt.append(text)
    said = "\n".join((*system, *filter(None, turns)))
    chosen = forced if isinstance(forced, str) else None
    return Conversation(str(model), "\n".join(prompt), answered, tuple(tools), said, chosen)


def joined(parts: Any) -> str:
    """Return the text of a message or of its parts."""
    texts = [parts] if isinstance(parts, str) else [part.get("text") for part in objects(parts)]
    return "\n".join(text for text in texts if isinstance(text, str))


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the entries of a list that are objects."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
_STRUCTURED = ("StructuredOutput", "structured_output", "final_result")
_EMPTY: Mapping[str, Any] = {"string": "", "boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}

Wanted = tuple[str, Mapping[str, Any]]  # the name of a tool and its arguments


def offered_calls(actions: Sequence[Call], conversation: Conversation) -> list[Wanted]:
    """Return the tool calls for the script's actions; skip actions that the client has no tool for."""
    translated = (_call(action, conversation) for action in actions)
    return [call for call in translated if call is not None]


def structured_call(data: Any, conversation: Conversation) -> Wanted | None:
    """Return the call with which a client requests a structured reply, or None for plain text."""
    names = {tool.name for tool in conversation.tools}
    forced = conversation.forced if conversation.forced in names else None
    name = forced or next((candidate for candidate in _STRUCTURED if candidate in names), None)
    return (name, data) if name is not None and isinstance(data, dict) else None


def _call(call: Call, conversation: Conversation) -> Wanted | None:
    if call.action == script.TOOL:
        return call.values["name"], call.values["arguments"]
    values = {name: str(value) for name, value in call.values.items()}
    for tool in _offered(_NAMES[call.action], conversation):
        if (arguments := _arguments(tool, values, conversation)) is not None:
            return tool.name, arguments
    command = _SHELL[call.action](values)
    return _call(Call(script.RUN, {"command": command}), conversation) if call.action != script.RUN else None


def _offered(names: Sequence[str], conversation: Conversation) -> list[Tool]:
    by_name = {tool.name.lower(): tool for tool in reversed(conversation.tools)}
    return [by_name[name] for name in names if name in by_name]


def _arguments(tool: Tool, values: Mapping[str, str], conversation: Conversation) -> dict[str, Any] | None:
    """Return the values under the tool's own names, with filler for other required fields; None if they do not fit."""
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        own = next((candidate for candidate in _ARGUMENTS[name] if candidate in tool.properties), None)
        if own is None:
            return None
        kind = _type(tool.properties[own])
        absolute = posixpath.join(conversation.folder, value) if name == "path" else value
        arguments[own] = ["bash", "-lc", value] if name == "command" and kind == "array" else absolute
    required = tool.schema.get("required")
    for name in required if isinstance(required, list) else ():
        arguments.setdefault(name, _filler(tool.properties.get(name)))
    return arguments


def _filler(schema: Any) -> Any:
    choices = schema.get("enum") if isinstance(schema, dict) else None
    if isinstance(choices, list) and choices:
        return choices[0]
    kind = _type(schema)
    return "as the script says" if kind == "string" else _EMPTY.get(kind, "")


def _type(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list):
        kind = next((type_name for type_name in kind if type_name != "null"), None)
    return kind if isinstance(kind, str) else "string"


def _perl(values: Mapping[str, str]) -> str:
    """Return a program that replaces the text; both texts are in hexadecimal, so no byte of them is code."""
    old, new = (values[name].encode().hex() for name in ("old", "new"))
    return f"my $old = pack 'H*', '{old}'; my $new = pack 'H*', '{new}'; s/\\Q$old\\E/$new/"


def _write(values: Mapping[str, str]) -> str:
    path = values["path"]
    folder = posixpath.dirname(path)
    create_folder = f"mkdir -p {shlex.quote(folder)} && " if folder else ""
    return f"{create_folder}printf %s {shlex.quote(values['content'])} > {shlex.quote(path)}"


_SHELL: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    script.WRITE: _write,
    script.EDIT: lambda values: f"perl -0pi -e {shlex.quote(_perl(values))} {shlex.quote(values['path'])}",
    script.READ: lambda values: f"cat {shlex.quote(values['path'])}",
    script.RUN: lambda values: values["command"],
}
"""The shell command of each action, for clients that offer only a shell."""
