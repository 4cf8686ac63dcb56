"""The files that decide what git runs, filters and ignores: its configuration, attributes, ignore rules and hooks.

git says which files its configuration consists of and what it names. It is asked again only after one of them changed.
"""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from idumb.domain import errors
from idumb.domain.paths import is_below
from idumb.domain.runs import run
from idumb.git import git_program
from idumb.git.discover import Worktree
from idumb.system.private_folders import names_in

_SHARED = ("info/attributes", "info/exclude", "info/grafts", "objects/info/alternates")
_OWN = ("commondir", "gitdir")
HOOKS_PATH = "core.hookspath"
_HOOKS = frozenset(
    (
        "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit",
        "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch",
        "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg",
        "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
    )
)  # fmt: skip
_WRAPPERS = "_"
"""A folder of hooks with this name holds wrappers, which run the hooks in the folder above: husky makes it."""
_CONVERTING = frozenset({"core.autocrlf", "core.eol"})
_OFF = frozenset({"false", "no", "off", "0"})
_MOST_HOOKS = 1_000


class Configuration(Struct, frozen=True):
    """What git said when it was last asked, and the digest of each file of its configuration before that.

    - `settings`: names and values of each file, by its name in `digests`; `effective`: the last value of each name.
    - `attributes` and `ignores`: the files outside the repository that git may read, the user's own last.
    - `hooks`: folders of hooks outside the working tree; `hooks_within`: those in it.
    """

    files: Mapping[str, str | None]
    settings: Mapping[str, frozenset[tuple[str, str]]]
    effective: Mapping[str, str]
    attributes: tuple[str, ...]
    ignores: tuple[str, ...]
    hooks: tuple[str, ...]
    hooks_within: tuple[str, ...]


class GuardedFiles:
    """The guarded files of one repository."""

    def __init__(self, worktree: Worktree) -> None:
        self._worktree = worktree
        self._known: Configuration | None = None

    @property
    def configuration(self) -> Configuration:
        """Return what git says now: it is asked again if a file changed, even if size and times are as before."""
        if self._known is None or _digests(self._known.files) != self._known.files:
            self._known = self._asked()
        return self._known

    @property
    def converts(self) -> bool:
        """Return whether a file outside the commit may decide which bytes a checkout writes."""
        known = self.configuration
        files = (os.path.join(self._worktree.common_dir, "info", "attributes"), *known.attributes)
        sizes = (key[2] for path in files if (key := stat_key(path)) is not None)
        return not known.effective.keys().isdisjoint(_CONVERTING) or any(sizes)

    @property
    def ignores_modes(self) -> bool:
        """Return whether git takes the mode of a file from its index (`core.fileMode`)."""
        return self.configuration.effective.get("core.filemode", "").lower() in _OFF

    def digests(self) -> Mapping[str, str]:
        """Return name, such as `.git/hooks/pre-commit`, to a hash of mode and bytes; missing files are omitted."""
        worktree, known = self._worktree, self.configuration
        files = [os.path.join(worktree.common_dir, name) for name in _SHARED]
        files += [os.path.join(worktree.git_dir, name) for name in _OWN]
        by_path = {**_digests((*files, *known.attributes, *known.ignores, *_hook_files(known))), **known.files}
        by_name = {self._name(path): value for path, value in by_path.items() if value is not None}
        if os.path.lexists(os.path.join(worktree.git_dir, "index")):
            # The user may change its bytes; without the file, everything that was staged is lost.
            by_name[run.GIT_INDEX] = "is there"
        return by_name

    def hooks(self) -> tuple[str, ...]:
        """Return the names of all hooks, and of what is in their folders outside the working tree."""
        return tuple(sorted(set(map(self._name, _hook_files(self.configuration)))))

    def hooks_in_tree(self) -> frozenset[str]:
        """Return the hooks that git runs from files of the working tree, as paths in it."""
        return frozenset(self._name(path) for path in _hooks_within(self.configuration.hooks_within))

    def _name(self, path: str) -> str:
        """Return a path as people write it: `.git/config`, `~/.gitconfig`, or relative to the working tree."""
        own, path, home = self._worktree, os.path.normpath(path), os.path.expanduser("~")
        for folder, short in ((own.git_dir, ".git/"), (own.common_dir, ".git/"), (own.root, ""), (home, "~/")):
            if path.startswith(folder + os.sep):
                return short + path[len(folder) + 1 :]
        return path

    def _asked(self) -> Configuration:
        """Ask git for its configuration, and where it includes, ignores, filters and runs hooks from."""
        root, common_dir = self._worktree.root, self._worktree.common_dir
        variables = git_program.environment(root)
        home = variables.get("HOME") or os.devnull  # without it git reads no file of the user, and none can be there
        xdg = os.path.join(variables.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
        own = (os.path.join(common_dir, "config"), os.path.join(self._worktree.git_dir, "config.worktree"))
        # Hash them before git reads them: a change during the read is noticed next time.
        files = _digests((*own, *_user_config(variables, home, xdg)))
        settings: dict[str, set[tuple[str, str]]] = {}
        named: dict[str, list[str]] = {}
        effective: dict[str, str] = {}
        for file, key, value in _rows(root):
            settings.setdefault(file, set()).add((key, value))
            effective[key] = value
            includes = key.startswith(("include.", "includeif."))
            path = os.path.join(home, value[2:]) if value.startswith("~/") else os.path.expanduser(value)
            # An empty value is no file, and git does not read the usual one either.
            place = os.path.join(os.path.dirname(file) if includes else root, path) if value else os.devnull
            named.setdefault("include" if includes else key, []).append(place)
        # Included files also if their condition does not hold: a branch or a folder can change.
        files |= _digests(path for path in (*settings, *named.get("include", ())) if path not in files)
        hooks = dict.fromkeys((os.path.join(common_dir, "hooks"), *map(os.path.realpath, named.get(HOOKS_PATH, ()))))
        within = tuple(folder for folder in hooks if is_below(folder, root) and not is_below(folder, common_dir))
        return Configuration(
            files,
            {self._name(file): frozenset(rows) for file, rows in settings.items()},
            effective,
            (*of_system("gitattributes"), os.path.join(xdg, "attributes"), *named.get("core.attributesfile", ())),
            (os.path.join(xdg, "ignore"), *named.get("core.excludesfile", ())),
            tuple(folder for folder in hooks if folder not in within),
            within,
        )


@functools.lru_cache(maxsize=4)
def of_repository(worktree: Worktree) -> GuardedFiles:
    """Return the instance of this repository that the process shares."""
    return GuardedFiles(worktree)


def settings(worktree: Worktree) -> Mapping[str, str]:
    """Return git's settings in this working tree, with the user's and the system's: a program may have another home.

    The last value of each name, with section and variable in lower case; a name without a value is true.
    """
    return of_repository(worktree).configuration.effective


def _user_config(variables: Mapping[str, str], home: str, xdg: str) -> Iterator[str]:
    """Yield the configuration of the user and of the system, also where git would read it if it existed."""
    own = variables.get("GIT_CONFIG_GLOBAL")
    yield from [own] if own else [os.path.join(home, ".gitconfig"), os.path.join(xdg, "config")]
    system = variables.get("GIT_CONFIG_SYSTEM")
    if system:
        yield system
    elif not variables.get("GIT_CONFIG_NOSYSTEM"):
        yield from of_system("gitconfig")


def of_system(name: str) -> tuple[str, ...]:
    """Return where git may read a file of the system: in `/etc`, and in `etc` next to the `bin` of its program."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(git_program.path())))
    return tuple(dict.fromkeys((os.path.join("/etc", name), os.path.join(prefix, "etc", name))))


def _rows(root: str) -> Iterator[tuple[str, str, str]]:
    """Yield the file, key and value of each setting that git reads from a file."""
    listed = git_program.read(root, ["config", "--includes", "--list", "--show-origin", "-z"]).out.split(b"\0")
    for origin, row in zip(listed[::2], listed[1::2], strict=False):
        key, sign, value = os.fsdecode(row).partition("\n")
        kind, _, place = os.fsdecode(origin).partition(":")
        if kind == "file":
            yield os.path.join(root, place), key, value if sign else "true"


def _hook_files(known: Configuration) -> Iterator[str]:
    for folder in known.hooks:  # with the files in folders below, which hooks may call
        files = (os.path.join(here, name) for here, _, names in os.walk(folder) for name in names)
        yield from itertools.islice((path for path in files if not path.endswith(".sample")), _MOST_HOOKS)
    yield from _hooks_within(known.hooks_within)


def _hooks_within(folders: Iterable[str]) -> Iterator[str]:
    """Yield the hooks in folders of the working tree, where other files may be too."""
    for folder in folders:
        wrappers = os.path.basename(folder) == _WRAPPERS
        yield from (os.path.join(folder, name) for name in names_in(folder) if wrappers or name in _HOOKS)
        if wrappers:
            above = os.path.dirname(folder)
            yield from (os.path.join(above, name) for name in names_in(above) if name in _HOOKS)


def digest(path: str) -> str | None:
    """Return a hash of a file's mode, link target and bytes; None if it is missing."""
    mode, link, data = 0, "", b""
    try:
        mode = os.lstat(path).st_mode
        link = os.readlink(path) if stat.S_ISLNK(mode) else ""
        # Open regular files only: a pipe would block until a writer comes.
        if stat.S_ISREG(mode) or (link and os.path.isfile(path)):
            data = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        # git cannot read it either. No other failure may look like a change.
        if os.access(path, os.R_OK):
            raise
        data = b"unreadable"
    return hashlib.sha256(f"{mode:o} {link}\0".encode("utf-8", "surrogateescape") + data).hexdigest()


def _read(path: str) -> bytes:
    with io.FileIO(path) as stream:  # without a buffer: these files are small and read often
        return stream.readall()


def content(path: str) -> bytes:
    """Return the bytes of a file; nothing if there is none, or it cannot be read. A pipe is not opened."""
    try:
        return _read(path) if os.path.isfile(path) else b""
    except OSError:
        return b""


def rules(path: str) -> bytes:
    """Return the rules of what git ignores in a file; nothing without one. Refusal `git.rules-unreadable`.

    git goes on without rules that it cannot read, and ignored files, perhaps with a secret, would be saved.
    """
    git_program.refuse_pipe(path)
    try:
        return b"" if stat.S_ISCHR(os.stat(path).st_mode) else _read(path)  # such as /dev/null
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as problem:
        raise errors.Refusal(
            "git.rules-unreadable",
            f"{path} says what git ignores, and cannot be read: {problem.strerror}.",
            hint=f"ls -ld {shlex.quote(path)}; make it readable, or move it away",
            details={"path": path},
        ) from problem


def user_rules(known: Configuration) -> bytes:
    """Return the user's own rules; nothing if they are in a folder that may not be read, as in another one's home."""
    path = known.ignores[-1]
    return rules(path) if os.path.lexists(path) else b""


def _digests(paths: Iterable[str]) -> dict[str, str | None]:
    return {path: digest(path) for path in paths}


def stat_key(path: str) -> tuple[int, ...] | None:
    """Return what shows that a file changed; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
