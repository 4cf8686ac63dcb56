"""The description of a command-line agent, and the parameters of one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from idumb.agents.answers import Report
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of an agent. `writes`: it may change files. `shell`: it may run any command.

    `project`: it reads the repository's instructions for agents. `schema` is the JSON Schema of the reply as text,
    `schema_file` the path of a file that contains it; both are "" for a plain reply. `home` is the agent's private
    home, None if it works in the user's home. `git_folder` is where a builder may commit, None for others.
    `environment` is the environment of the process.
    """

    writes: bool
    shell: bool = False
    project: bool = False
    model: str | None = None
    session: str | None = None
    schema: str = ""
    schema_file: str = ""
    home: str | None = None
    git_folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preset:
    """`name` is also the program, looked up on PATH.

    `arguments` follow the program; the prompt is always on standard input. `read` parses standard output and standard
    error, `lines` says in short lines what one event of the output tells. `variables` are always set. `places` are
    variables that name the agent's folders in the user's home. `lists` are the arguments with which the agent lists its
    models, and `listed` parses that output. With the arguments `status` its exit code says whether it is logged in.
    `state` are the places of
    the agent's state below the user's home. `in_sandbox` changes the arguments for a start in idumb's sandbox.
    """

    name: str
    arguments: Callable[[Invocation], tuple[str, ...]]
    read: Callable[[bytes, bytes], Report]
    lines: Callable[[Mapping[str, Any]], Iterator[str]]
    variables: Callable[[Invocation], Mapping[str, str]] = lambda _: {}
    places: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    listed: Callable[[bytes], tuple[str, ...]] = lambda _: ()
    status: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    in_sandbox: Callable[[Sequence[str]], Sequence[str]] = lambda arguments: arguments
