"""What idumb knows of one command-line agent, and what it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from idumb.agents.model_catalogue import Server
from idumb.agents.presets.reading import Said


@dataclass(frozen=True, slots=True)
class Wanted:
    """One call of an agent. `writes` is whether it may change files, `shell` whether it may run any command.

    `project` is whether it reads what the repository says about it. `schema` is the JSON Schema of the reply as text,
    `schema_file` the path of a file that holds it; both "" for a reply in words. `home` is the folder that is the
    agent's own, None where it works in the user's home. `git_folder` is where it is to commit, None where it is not to.
    `environment` is what it will see. `version` is that of the installed program, "" where it is not known.
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


Files = Mapping[str, str]  # path below the agent's own home, and content


@dataclass(frozen=True, slots=True)
class Preset:
    """`program` is looked up on PATH. `install` is a command, `login` what to do where it is not logged in.

    `arguments` follow the program; the prompt is always on standard input. `read` makes sense of what it printed on
    standard output and standard error. `variables` are always set, and `files` are written into an own home; both
    are by the call. `places` are variables that say where its files are in the user's home. `exits` are exit codes
    that tell a kind of failure by themselves. `server` is where models are listed, `lists` the arguments with which
    the agent lists them itself, and `listed` reads that. `shares` are variables for what it unpacks of itself, with
    the name of the folder that all its own homes share for it. `makes_folders` is false where it writes no file into
    a folder that is not there.
    """

    name: str
    program: str
    install: str
    login: str
    arguments: Callable[[Wanted], tuple[str, ...]]
    read: Callable[[bytes, bytes], Said]
    variables: Callable[[Wanted], Mapping[str, str]] = lambda _: {}
    files: Callable[[Wanted], Files] = lambda _: {}
    places: tuple[str, ...] = ()
    exits: Mapping[int, str] = field(default_factory=dict)
    server: Server | None = None
    lists: tuple[str, ...] = ()
    shares: Mapping[str, str] = field(default_factory=dict)
    makes_folders: bool = True
    listed: Callable[[bytes], tuple[str, ...]] = lambda _: ()
