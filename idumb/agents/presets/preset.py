"""The description of a command-line agent, and the parameters of one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from idumb.agents.answers import Report
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of an agent. `writes`: it may change files. `shell`: it may run any command.

    `project`: it reads the repository's instructions for agents. `schema` is the JSON Schema of the reply as text,
    `schema_file` the path of a file that contains it; both are "" for a plain reply. `home` is the agent's private
    home, None if it works in the user's home. `git_folder` is where a builder may commit, None for others.
    `environment` is the environment of the process. `version` is that of the installed program, "" if unknown.
    `judges`: its role judges work, so it must not start anything that another role could have changed.
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
    version: str = ""
    judges: bool = False


Files = Mapping[str, str]  # path below the agent's private home, and content


@dataclass(frozen=True, slots=True)
class Preset:
    """`name` is also the program, looked up on PATH. `login` is the fix if the agent is not logged in.

    `arguments` follow the program; the prompt is always on standard input. `read` parses standard output and standard
    error. `variables` are always set, and `files` are written into a private home; both depend on the call. `places`
    are variables that name the agent's folders in the user's home. `exits` maps exit codes to kinds of failure.
    `lists` are the arguments with which the agent lists its models, and `listed` parses that output.
    `shares` maps variables for unpacked files to the name of a folder that all private homes share; in a sandbox,
    judging roles have one of their own.
    `makes_folders` is false if the agent cannot write a file into a missing folder. `state` are the places of the
    agent's state below the user's home. `in_sandbox` changes the arguments for a start in idumb's sandbox.
    """

    name: str
    login: str
    arguments: Callable[[Invocation], tuple[str, ...]]
    read: Callable[[bytes, bytes], Report]
    variables: Callable[[Invocation], Mapping[str, str]] = lambda _: {}
    files: Callable[[Invocation], Files] = lambda _: {}
    places: tuple[str, ...] = ()
    exits: Mapping[int, str] = field(default_factory=dict)
    lists: tuple[str, ...] = ()
    shares: Mapping[str, str] = field(default_factory=dict)
    makes_folders: bool = True
    listed: Callable[[bytes], tuple[str, ...]] = lambda _: ()
    state: tuple[str, ...] = ()
    in_sandbox: Callable[[Sequence[str]], Sequence[str]] = lambda arguments: arguments
