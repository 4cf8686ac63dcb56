"""The only caller of the git program: a scrubbed environment, no prompt, no helper that the repository could choose."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from idumb.domain import errors
from idumb.git import rule_pipes

# Variables by which users identify themselves or choose a configuration; any other GIT_* could redirect git.
_KEPT = frozenset(
    {
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
    }
)
_ALWAYS = (
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", "core.quotepath=false",
    "-c", "submodule.recurse=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "log.showSignature=false",  # it would start the program that the repository names for signatures
    "-c", "i18n.commitEncoding=UTF-8",  # the user's would be recorded for idumb's messages
)  # fmt: skip
NO_SUBMODULES = "--ignore-submodules=dirty"
"""git starts itself in a submodule to see whether its files changed, and would run the filters of its configuration."""
CHANGED_FILES = ("diff", "--no-ext-diff", "--name-only", "-z", NO_SUBMODULES)
_MOST_WORDS = 1 << 20
"""Bytes of what git and hooks say that are read."""
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL
_PATIENCE = 2.0  # seconds after which somebody looks what a command waits for
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
# `all` makes git force objects, index and refs; the caller forces folders.
_DURABLE = ("-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync")


class Result(NamedTuple):
    """Exit status (negative: ended by a signal) and raw output."""

    status: int
    out: bytes
    err: bytes

    @property
    def words(self) -> str:
        """Return git's message: standard error, or standard output if that is empty."""
        return (self.err.strip() or self.out.strip()).decode("utf-8", "replace")


@functools.cache
def path(root: str | None = None) -> str:
    """Return the absolute path of the git program, looked up once. Raises Refusal `git.program-missing`.

    Relative entries of PATH, and entries inside the working tree at `root`, are skipped: a repository could put its own
    git there.
    """
    for folder in _absolute(os.environ.get("PATH", os.defpath)):  # noqa: TID251 - where the user's programs are
        program = os.path.join(folder, "git")
        if os.path.isfile(program) and os.access(program, os.X_OK) and not _is_below(program, root):
            return program
    raise errors.Refusal("git.program-missing", "there is no git program on PATH", hint="install git 2.31 or newer")


def _absolute(path: str) -> list[str]:
    return [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]


def _is_below(program: str, root: str | None) -> bool:
    top = os.path.realpath(root) if root is not None else os.sep
    # Every program is below `/`; questions that concern no working tree are asked there.
    return top != os.sep and os.path.realpath(program).startswith(top + os.sep)


def environment(root: str) -> dict[str, str]:
    """Return this process's environment, scrubbed: git cannot be redirected, prompt, or look above `root`."""
    inherited = os.environ  # noqa: TID251 - git must see the user's HOME, PATH and agents; GIT_* is scrubbed here
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_") or name in _KEPT}
    return {
        **kept,
        "PATH": os.pathsep.join(_absolute(kept.get("PATH", os.defpath))),  # the working folder is the repository
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_EDITOR": ":",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CEILING_DIRECTORIES": os.path.dirname(root),
    }


def read(root: str, arguments: Sequence[str], stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> Result:
    """Run a reading command: no hook runs, no lock is taken, paths are literal, and no pipe is waited for."""
    variables = {**_reading(root), **(extra or {})}
    return _run(root, [*_ALWAYS, *_NO_HOOKS, *arguments], stdin, variables, watch=lambda: rule_pipes.refuse(root))


def between_trees(root: str, git_dir: str, arguments: Sequence[str]) -> bytes:
    """Return the output of a command that compares stored trees. It runs outside the working tree.

    Inside it, git would read the present .gitattributes: it would block on a pipe, and a task that writes one would
    decide how its own change is counted.
    """
    variables = {**_reading(root), "GIT_DIR": git_dir}
    return _required(arguments, _run(root, [*_ALWAYS, *_NO_HOOKS, *arguments], b"", variables, cwd=git_dir))


def write(
    root: str,
    arguments: Sequence[str],
    stdin: bytes = b"",
    *,
    hooks: bool = False,
    extra: Mapping[str, str] | None = None,
) -> Result:
    """Run a command that changes refs, index or objects, forced to disk. The user's hooks run only on request."""
    options = [*_ALWAYS, *_DURABLE, *(() if hooks else _NO_HOOKS)]
    watch = None if hooks else lambda: rule_pipes.refuse(root)
    return _run(root, [*options, *arguments], stdin, {**environment(root), **(extra or {})}, watch=watch)


def change(root: str, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> None:
    """Run a changing command that must succeed; otherwise Refusal `git.failed` with git's words."""
    _required(arguments, write(root, arguments, extra=extra))


def beside(
    root: str,
    arguments: Sequence[str],
    stdin: bytes,
    variables: Mapping[str, str],
    *,
    keep: Sequence[int],
    watch: Callable[[], None],
) -> Result:
    """Run a command in the user's working tree with a git folder of idumb's, which `variables` name.

    What it writes is forced to disk, no hook runs, and paths are literal. It inherits the descriptors `keep`. While it
    takes long, `watch` is called now and then; if that raises, the command is stopped.
    """
    options = [*_ALWAYS, *_DURABLE, *_NO_HOOKS]
    return _run(root, [*options, *arguments], stdin, {**_reading(root), **variables}, keep=keep, watch=watch)


def with_hooks(root: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Result:
    """Run a command in a checkout, with hooks. It is over when git ends, whatever a hook left running."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = _started(
            [path(root), *_ALWAYS, *_DURABLE, *arguments],
            cwd=root,
            env={**environment(root), **variables},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        with started as process:
            try:
                process.wait()
            except BaseException:
                _stop(process)
                raise
        out.seek(0)
        err.seek(0)
        return Result(process.returncode, out.read(_MOST_WORDS), err.read(_MOST_WORDS))


def output(root: str, arguments: Sequence[str], stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
    """Return the output of a reading command that must succeed; otherwise Refusal `git.failed` with git's words."""
    return _required(arguments, read(root, arguments, stdin, extra))


def settings(root: str) -> Mapping[str, str]:
    """Return git's settings in this working tree, with the user's and the system's: a program may have another home.

    The last value of each name, with section and variable in lower case; a name without a value is true.
    """
    words = output(root, ["config", "--list", "--show-scope", "-z"]).split(b"\0")
    rows = zip(words[::2], words[1::2], strict=False)
    parted = (os.fsdecode(row).partition("\n") for scope, row in rows if scope != b"command")  # that is idumb's own
    return {name: value if sign else "true" for name, sign, value in parted}


def stream(root: str, arguments: Sequence[str]) -> Iterator[bytes]:
    """Return the output in pieces, for output that need not fit into memory."""
    with _started(
        [path(root), *_ALWAYS, *_NO_HOOKS, *arguments],
        cwd=root,
        env=_reading(root),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            while piece := process.stdout.read(1 << 20):
                yield piece
        except BaseException:
            _stop(process)
            raise
    if process.returncode != 0:
        raise failure(arguments, Result(process.returncode, b"", b""))


def _reading(root: str) -> dict[str, str]:
    return {**environment(root), "GIT_OPTIONAL_LOCKS": "0", "GIT_LITERAL_PATHSPECS": "1"}


def _required(arguments: Sequence[str], result: Result) -> bytes:
    if result.status != 0:
        raise failure(arguments, result)
    return result.out


def failure(arguments: Sequence[str], result: Result) -> errors.Refusal:
    code = "git.ownership" if b"dubious ownership" in result.err else "git.failed"
    first = next((line for line in result.words.splitlines() if line), f"exit status {result.status}")
    return errors.Refusal(code, f"git {arguments[0]}: {first}", hint="git status", details={"words": result.words})


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop git and the hooks that it runs, politely first, so that git removes its locks."""
    for number, seconds in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue


@contextlib.contextmanager
def _whole(stdin: bytes) -> Iterator[IO[bytes]]:
    """Write git's whole input to a file.

    If idumb is killed, a pipe ends early and git continues with part of the input: a commit of some paths, or of none.
    """
    with _nameless() as stream:
        stream.write(stdin)
        stream.seek(0)
        yield stream


def _nameless() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stdin"), "w+b")
    return tempfile.TemporaryFile()


def _run(
    root: str,
    arguments: Sequence[str],
    stdin: bytes,
    variables: Mapping[str, str],
    cwd: str | None = None,
    keep: Sequence[int] = (),
    watch: Callable[[], None] | None = None,
) -> Result:
    with (
        _whole(stdin) as whole,
        _started(
            [path(root), *arguments],
            cwd=cwd or root,
            env=variables,
            stdin=whole,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=keep,
        ) as process,
    ):
        try:
            out, err = _outputs(process, watch)
        except BaseException:
            _stop(process)
            raise
    return Result(process.returncode, out, err)


def _outputs(process: subprocess.Popen[bytes], watch: Callable[[], None] | None) -> tuple[bytes, bytes]:
    patience = _PATIENCE
    while True:
        try:
            return process.communicate(timeout=patience if watch else None)
        except subprocess.TimeoutExpired:
            patience *= 2
            if watch is not None:
                watch()


@contextlib.contextmanager
def _started(words: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start git. While other threads run, a program that ends in one of them does not take this git along."""
    if threading.active_count() == 1:
        with subprocess.Popen(words, start_new_session=True, **options) as process:
            yield process
        return
    from idumb.system.processes import process_tree

    with process_tree.spawning:
        process = subprocess.Popen(words, start_new_session=True, **options)
        process_tree.running[f"git {process.pid}"] = process.pid
    try:
        with process:
            yield process
    finally:
        del process_tree.running[f"git {process.pid}"]
