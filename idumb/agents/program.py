"""Runs a program as an agent: finds it, prepares its home, its input files and its variables, and limits it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from idumb.agents.adapter import Adapter, Equipment, sandboxed
from idumb.agents.answers import StateFileWatch
from idumb.app.ports import Hear
from idumb.domain import agent, failures, outcome
from idumb.domain.agent import AgentRequest, AgentResult, Readiness
from idumb.domain.errors import AdapterError
from idumb.domain.paths import is_below
from idumb.domain.settings import Binding
from idumb.system import child_process, named_files

STATE_FILE = "IDUMB_STATE_FILE"
HOME, OWN_HOME, USER_HOME = "home", "own", "user"
HOMES = (OWN_HOME, USER_HOME)

IDLE_TIMEOUT = 15 * 60
"""Default seconds without progress before an agent is stopped; longer than models think."""

_HOME_FOLDERS = {
    "XDG_CONFIG_HOME": "config",
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "TMPDIR": "tmp",
}
JUDGING = frozenset({agent.VALIDATOR, agent.VERIFIER, agent.SKEPTIC, agent.PLAN_CHECKER})
_DEEPEST = 6  # folders between a program and its npm package


class ProgramAgent(Adapter):
    """An agent that is a program. The program must be outside the repository.

    `needs_login`: idumb knows of this agent that it works only with a login.
    """

    needs_login = False

    def __init__(self, binding: Binding, equipment: Equipment) -> None:
        super().__init__(binding, equipment)
        self._environment: Mapping[str, str] = equipment.variables(binding)
        self._resolved: dict[str, str] = {}

    def _resolve(self, name: str) -> str:
        """Return the absolute path of a program. Raises AdapterError if it must not be started.

        It is resolved once, so the approved program is started.
        """
        if name not in self._resolved:
            self._resolved[name] = resolve(name, self._environment.get("PATH", ""), self._equipment.repository)
        return self._resolved[name]

    def run(self, request: AgentRequest, hear: Hear | None = None) -> AgentResult:
        try:
            argv = self.describe()
            try:
                return self._run(request, hear)
            except OSError as problem:
                return AgentResult(outcome.ERRORED, not_started(argv, problem), failure=agent.MISSING)
        except AdapterError as problem:
            return agent.unusable(problem)

    def _run(self, request: AgentRequest, hear: Hear | None) -> AgentResult:
        """Answer a request. AdapterError or OSError says why the program could not be started."""
        raise NotImplementedError

    def ready(self) -> Readiness:
        self.describe()
        keys = [name for name in self._binding.environment if self._environment.get(name)]
        version = self.version.partition(" ")[2]
        if keys:
            return Readiness(version, logged_in=True, how=f"with {keys[0]}")
        if self._binding.options.get(HOME, OWN_HOME) == USER_HOME:
            logged_in = self._says_login()
            return Readiness(version, logged_in, "it says so" if logged_in is False else "with your login")
        return Readiness(version, False if self.needs_login else None, "it has no key, and a home of its own")

    def _says_login(self) -> bool | None:
        """Return whether the agent says that it is logged in, in the user's home; None if it does not say."""
        return None

    def _start(
        self,
        argv: Sequence[str],
        request: AgentRequest,
        environment: Mapping[str, str],
        inputs: InputFiles,
        hear: Hear | None,
        *state: str,
        in_sandbox: Callable[[Sequence[str]], Sequence[str]] = lambda arguments: arguments,
        **how: Any,
    ) -> child_process.Finished:
        """Run the program in the workspace, with the request's limits and in the sandbox, if one is configured.

        `hear` gets what it claims meanwhile. `state` are folders of the agent. `in_sandbox` changes the arguments
        for a sandbox. Raises OSError if the program cannot start, AdapterError if it must not start without a sandbox.
        """
        level = ""
        if self._equipment.settings.sandboxed:
            place = sandboxed(request, self._equipment, inputs.folder, state)
            argv = (*place.argv, *in_sandbox(argv)) if place.argv else argv
            environment, level = {**environment, **place.variables}, place.level
        finished = child_process.run(
            argv,
            cwd=request.workspace,
            environment=environment,
            timeout=request.deadline,
            idle_timeout=request.idle_timeout,
            limits=request.limits,
            agent=True,
            watch=StateFileWatch(inputs.state, self._redact, hear),
            **how,
        )
        return replace(finished, sandbox=level)

    @contextlib.contextmanager
    def _inputs(self, request: AgentRequest) -> Iterator[InputFiles]:
        """Write the input files of a request; remove them afterwards."""
        with scratch(self._equipment.inputs) as folder:
            state = os.path.join(folder, "state.json")
            variables = {STATE_FILE: state}
            if request.feedback:
                variables["IDUMB_FEEDBACK_FILE"] = write_input(folder, "feedback.md", request.feedback)
            yield InputFiles(folder, state, variables)

    def _home(self, inputs: InputFiles) -> str | None:
        """Return the private home of one request; None if the agent works in the user's home.

        It goes with the request: what an agent leaves in a home would act as instructions for the next one.
        """
        own = self._binding.options.get(HOME, OWN_HOME) == OWN_HOME
        return os.path.join(inputs.folder, "home") if own else None


def home_variables(home: str) -> dict[str, str]:
    """Return the variables that point to this home."""
    return {"HOME": home, **{name: os.path.join(home, folder) for name, folder in _HOME_FOLDERS.items()}}


def make_home(home: str, files: Mapping[str, str], folders: Sequence[str]) -> None:
    """Create a private home with these folders and files, by their paths in it. Raises OSError."""
    for folder in (*_HOME_FOLDERS.values(), *folders, *map(os.path.dirname, files)):
        os.makedirs(os.path.join(home, folder), 0o700, exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(home, name), "w", encoding="utf-8") as file:
            file.write(content)


def of_process(finished: child_process.Finished) -> dict[str, Any]:
    """Return the fields of a result that say how the program ended."""
    return {
        "exit_code": finished.exit_code,
        "output_sha256": finished.output.sha256,
        "truncated": finished.output.truncated,
        "seconds": finished.seconds,
        "cause": finished.cause,
        "crashed": finished.crashed,
        "sandbox": finished.sandbox,
    }


def with_request(environment: Mapping[str, str], request: AgentRequest) -> dict[str, str]:
    """Return the allow-listed environment, plus the variables that identify the task to the process."""
    return {
        **environment,
        **request.variables,
        **child_process.run_cookies(request.run_id, request.repository or request.workspace),
    }


def not_started(argv: Sequence[str], problem: OSError) -> str:
    """Say why a program could not be started, and where to look."""
    return f"{argv[0]} could not be started: {problem.strerror or problem}; check that it is installed and on PATH"


def last_words(output: str) -> str:
    """Return the end of the output, short enough for a message."""
    text = "\n".join(output.strip().splitlines()[-5:])
    return text if len(text) <= 400 else f"...{text[-400:]}"


def resolve(program: str, path: str, repository: str) -> str:
    """Return the absolute path of a program with links resolved. Raises AdapterError if it must not be started.

    `path` is a PATH. Relative entries and entries inside the repository are ignored, because tasks can write there.
    """
    inside = os.path.realpath(repository)
    place = _search(program, path, inside)
    if place is None:
        raise AdapterError(
            "agent.not-found",
            f"Program {program} not found.",
            hint=f"Install it{_how(program)}, put its folder on PATH, or set its absolute path in .idumb/config.yaml.",
        )
    real = os.path.realpath(place)
    if is_below(real, inside):
        raise AdapterError(
            "agent.inside-repository",
            f"Program {program} is inside the repository ({real}), where tasks can change it.",
            hint="Start it with an interpreter outside the repository, for example [python3, tools/builder.py].",
        )
    if os.stat(real).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise AdapterError(
            "agent.writable-by-others",
            f"Program {real} is writable by other users of this machine.",
            hint="Remove write permission for group and others, or install it for your user only.",
        )
    return real if os.path.basename(real) == os.path.basename(place) else os.path.abspath(place)


def _how(program: str) -> str:
    command = failures.install_command(program)
    return f" ({command})" if command else ""


def _search(program: str, path: str, inside: str) -> str | None:
    import shutil

    if "/" in program:
        # A relative name is relative to the repository; the caller refuses it and says why.
        return shutil.which(os.path.join(inside, os.path.expanduser(program)))
    folders = [each for each in path.split(os.pathsep) if each.startswith("/")]
    outside = [each for each in folders if not is_below(os.path.realpath(each), inside)]
    return shutil.which(program, path=os.pathsep.join(outside)) if outside else None


def installed_version(program: str) -> str:
    """Return the version of the npm package that contains the program, else the start of its SHA-256, else ""."""
    real = folder = os.path.realpath(program)
    for _ in range(_DEEPEST):
        folder = os.path.dirname(folder)
        version = named_files.read_object(os.path.join(folder, "package.json")).get("version")
        if version and isinstance(version, str):
            return version
        if os.path.basename(folder) == "node_modules":
            break  # above it is the project that uses the package
    with contextlib.suppress(OSError), open(real, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
    return ""


class InputFiles(Struct, frozen=True):
    """Files of one request, in a folder outside the workspace that only this user can read.

    `state` is the path of the state file.
    """

    folder: str
    state: str
    variables: dict[str, str]


@contextlib.contextmanager
def scratch(place: str | None) -> Iterator[str]:
    """Yield a private folder below `place`; remove it afterwards."""
    import tempfile

    if place is not None:
        os.makedirs(place, 0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="idumb-", dir=place, ignore_cleanup_errors=True) as folder:
        yield folder


def write_input(folder: str, name: str, text: str) -> str:
    """Write one file of a request, and return its path."""
    path = os.path.join(folder, name)
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    return path
