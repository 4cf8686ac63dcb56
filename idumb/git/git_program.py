"""The only caller of the git program: a scrubbed environment, no prompt, no helper that the repository could choose."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from idumb.domain import errors
from idumb.git import discover
from idumb.system import atomic_write, process_end, process_tree, programs

# Variables by which users identify themselves or choose a configuration; any other GIT_* could redirect git.
_KEPT = frozenset(
    (
        "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    )
)  # fmt: skip
# The program that a repository names for signatures is not started, and no encoding is recorded for our messages.
_ALWAYS = (
    "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false", "-c", "submodule.recurse=false",
    "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "log.showSignature=false",
    "-c", "i18n.commitEncoding=UTF-8",
)  # fmt: skip
NO_SUBMODULES = "--ignore-submodules=dirty"
"""git starts itself in a submodule to see whether its files changed, and would run the filters of its configuration."""
_MOST_WORDS = 1 << 20
"""Bytes of what git and hooks say that are read."""
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL
_PATIENCE = 2.0  # seconds after which somebody looks what a command waits for
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
# A remote that promises objects names the program that fetches a missing one. git before 2.45 knows no other way to
# refuse that than to allow no protocol.
_READING = {"GIT_OPTIONAL_LOCKS": "0", "GIT_LITERAL_PATHSPECS": "1", "GIT_ALLOW_PROTOCOL": "none"}
PATTERNS = {"GIT_LITERAL_PATHSPECS": "0"}
"""Lets a reading command take paths as patterns. `git check-ignore` does not support literal paths."""
_RULES = frozenset((".gitignore", ".gitattributes", "exclude", "attributes"))
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
    for program in programs.outside("git", root):
        return program
    raise errors.Refusal("git.program-missing", "there is no git program on PATH", hint="install git 2.36 or newer")


def environment(root: str) -> dict[str, str]:
    """Return this process's environment, scrubbed: git cannot be redirected, prompt, or look above `root`."""
    inherited = os.environ  # noqa: TID251 - git must see the user's HOME, PATH and agents; GIT_* is scrubbed here
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_") or name in _KEPT}
    return {
        **kept,
        # The working folder is the repository, so a relative entry would be in it.
        "PATH": os.pathsep.join(filter(os.path.isabs, kept.get("PATH", os.defpath).split(os.pathsep))),
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_EDITOR": ":",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CEILING_DIRECTORIES": os.path.dirname(root),
    }


def read(
    root: str,
    arguments: Sequence[str],
    stdin: bytes = b"",
    extra: Mapping[str, str] | None = None,
    *,
    cwd: str | None = None,
    keep: Sequence[int] = (),
) -> Result:
    """Run a command in the working tree at `root`: no hook, no optional lock, literal paths.

    It inherits the descriptors `keep`. Refusal `git.waits-for-pipe` if git waits for a pipe in the place of its rules.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": cwd or root, "pass_fds": keep}
    words, variables, patience = [*_ALWAYS, *_NO_HOOKS, *arguments], {**_READING, **(extra or {})}, _PATIENCE
    with (
        atomic_write.unnamed(stdin) if stdin else contextlib.nullcontext(subprocess.DEVNULL) as source,
        _started(root, words, variables, stdin=source, **options) as process,
    ):
        while True:
            try:
                out, err = process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                patience *= 2
                refuse_pipes(root)
            else:
                return Result(process.returncode, out, err)


def write(
    root: str,
    arguments: Sequence[str],
    stdin: bytes = b"",
    extra: Mapping[str, str] | None = None,
    *,
    keep: Sequence[int] = (),
) -> Result:
    """Run a command that changes refs, index or objects, forced to disk."""
    return read(root, [*_DURABLE, *arguments], stdin, extra, keep=keep)


def change(root: str, arguments: Sequence[str], stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
    """Run a changing command that must succeed; return its output. Otherwise Refusal `git.failed` with git's words."""
    return required(arguments, write(root, arguments, stdin, extra))


def output(
    root: str, arguments: Sequence[str], extra: Mapping[str, str] | None = None, *, cwd: str | None = None
) -> bytes:
    """Return the output of a reading command that must succeed; otherwise Refusal `git.failed` with git's words."""
    return required(arguments, read(root, arguments, extra=extra, cwd=cwd))


def version(root: str) -> str:
    """Return the version of git, such as `2.39.5`; `unknown` if it does not say."""
    words = output(root, ["version"]).decode("ascii", "replace").split()
    return words[2] if len(words) > 2 else "unknown"


def with_hooks(root: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Result:
    """Run a command in a checkout, with hooks. It is over when git ends; what a hook left running can be found."""
    process_end.adopt_orphans()
    variables = {**variables, process_tree.PROCESS_COOKIE: f"hooks-{os.getpid()}"}
    words = [*_ALWAYS, *_DURABLE, *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with _started(root, words, variables, stdout=out, stderr=err) as process:
            process.wait()
        out.seek(0)
        err.seek(0)
        return Result(process.returncode, out.read(_MOST_WORDS), err.read(_MOST_WORDS))


def stream(root: str, arguments: Sequence[str]) -> Iterator[bytes]:
    """Return the output in pieces, for output that need not fit into memory."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with _started(root, [*_ALWAYS, *_NO_HOOKS, *arguments], _READING, **options) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        while piece := process.stdout.read(1 << 20):
            yield piece
    required(arguments, Result(process.returncode, b"", b""))


def required(arguments: Sequence[str], result: Result) -> bytes:
    """Return the output of a command that succeeded; otherwise Refusal `git.failed` with git's words."""
    if result.status != 0:
        raise failure(arguments, result)
    return result.out


def failure(arguments: Sequence[str], result: Result) -> errors.Refusal:
    code = "git.ownership" if b"dubious ownership" in result.err else "git.failed"
    first = result.words.partition("\n")[0] or f"exit status {result.status}"
    return errors.Refusal(code, f"git {arguments[0]}: {first}", hint="git status", details={"words": result.words})


def refuse_pipes(root: str) -> None:
    """Refusal `git.waits-for-pipe` if a file of rules in the working tree, or in its git folder, is a pipe."""
    folders = [root]  # they can nest deeper than Python recurses
    with contextlib.suppress(errors.Refusal, OSError):
        folders.append(os.path.join(discover.at(root).common_dir, "info"))
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name in _RULES:
                    refuse_pipe(entry.path)
                elif entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                    folders.append(entry.path)


def refuse_pipe(path: str) -> None:
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.stat(path).st_mode):
            raise errors.Refusal(
                "git.waits-for-pipe",
                f"{path} is a pipe, and git would wait for it forever.",
                hint=f"rm {shlex.quote(path)}, then run the command again",
                details={"path": path},
            )


@contextlib.contextmanager
def _started(
    root: str, words: Sequence[str], variables: Mapping[str, str], **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start git, and end it if its user fails. A program that ends in another thread does not take it along."""
    command, options = [path(root), *words], {"stdin": subprocess.DEVNULL, "cwd": root, **options}
    options |= {"env": {**environment(root), **variables}, "start_new_session": True}
    with process_end.spawning:
        process = subprocess.Popen(command, **options)
        process_end.running[f"git {process.pid}"] = process.pid
    try:
        with process:
            try:
                yield process
            except BaseException:
                _stop(process)
                raise
    finally:
        process_end.running.pop(f"git {process.pid}", None)


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
