"""The files that decide what git runs, filters and ignores: its configuration, attributes, ignore rules and hooks.

git says which files its configuration consists of and what it names. It is asked again only after one of them changed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping

from idumb.domain.runs import guarded_names
from idumb.git import git_program
from idumb.git.discover import Repository

Digests = Mapping[str, str | None]
"""Path of each file to a hash of it; None if it is missing."""
Settings = frozenset[tuple[str, str]]
"""Names and values that one file of git's configuration sets."""

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
_INCLUDE, _INCLUDES = "include", ("include.", "includeif.")
_MOST_HOOKS = 1_000


class GuardedFiles:
    """The guarded files of one repository, and what git's configuration said about them when it was last asked.

    `settings` are those of each file of the configuration, by its name in `digests`. `hooks_within` are the folders of
    hooks in the working tree.
    """

    def __init__(self, repository: Repository) -> None:
        self._excludes = ""
        self.hooks_within: tuple[str, ...] = ()
        self.settings: Mapping[str, Settings] = {}
        self._place = repository
        self._own_attributes = ""
        self._named: frozenset[str] = frozenset()
        self._hooks: tuple[str, ...] = ()
        self._config: Digests = {}
        self._effective: Mapping[str, str] = {}

    def rules(self) -> Digests:
        """Return what shows a change of each file outside the working tree that decides what is ignored."""
        self._look()
        return {**self._config, **_digests((os.path.join(self._place.common_dir, "info", "exclude"), self._excludes))}

    def effective(self) -> Mapping[str, str]:
        """Return the settings in force: lower-case name to its last value."""
        self._look()
        return self._effective

    @property
    def excludes(self) -> str:
        """Return the path of the user's own file of ignore rules."""
        self._look()
        return self._excludes

    @property
    def attributes_in_force(self) -> tuple[str, ...]:
        """Return the files of attributes that git reads outside the repository: the system's, and the user's last."""
        self._look()
        return (*_system("gitattributes"), self._own_attributes)

    @property
    def has_attributes(self) -> bool:
        """Return whether any file of attributes outside the working tree is in force."""
        files = (os.path.join(self._place.common_dir, "info", "attributes"), *self.attributes_in_force)
        return any(map(has_content, files))

    @property
    def converts(self) -> bool:
        """Return whether a file outside the commit may decide which bytes a checkout writes."""
        return not self.effective().keys().isdisjoint(_CONVERTING) or self.has_attributes

    def digests(self) -> Mapping[str, str]:
        """Return name, such as `.git/hooks/pre-commit`, to a hash of mode and bytes; missing files are omitted."""
        self._look()
        place = self._place
        files = (
            *(os.path.join(place.common_dir, name) for name in _SHARED),
            *(os.path.join(place.git_dir, name) for name in _OWN),
            *self._named,
            *self._hook_files(),
        )
        by_path = {**_digests(files), **self._config}
        by_name = {self._name(path): value for path, value in by_path.items() if value is not None}
        if os.path.lexists(os.path.join(place.git_dir, "index")):
            # The user may change its bytes; without the file, everything that was staged is lost.
            by_name[guarded_names.INDEX] = "is there"
        return by_name

    def hooks(self) -> tuple[str, ...]:
        """Return the names of all hooks, and of what is in their folders outside the working tree."""
        self._look()
        return tuple(sorted({*map(self._name, self._hook_files())}))

    def hooks_in_tree(self) -> frozenset[str]:
        """Return the hooks that git runs from files of the working tree, as paths in it."""
        self._look()
        return frozenset(self._name(path) for folder in self.hooks_within for path in _hooks_within(folder))

    def _hook_files(self) -> Iterator[str]:
        for folder in self._hooks:
            yield from _hooks_below(folder)
        for folder in self.hooks_within:
            yield from _hooks_within(folder)

    def _name(self, path: str) -> str:
        """Return a path as people write it: `.git/config`, `~/.gitconfig`, or relative to the working tree."""
        place, path = self._place, os.path.normpath(path)
        home = os.path.expanduser("~")
        for folder, short in ((place.git_dir, ".git/"), (place.common_dir, ".git/"), (place.root, ""), (home, "~/")):
            if path.startswith(folder + os.sep):
                return short + path[len(folder) + 1 :]
        return path

    def _look(self) -> None:
        """Ask git again if a file of its configuration changed, even if size and times are as before."""
        if not self._config or _digests(self._config) != self._config:
            self._ask()

    def _ask(self) -> None:
        """Ask git for its configuration, and where it includes, ignores, filters and runs hooks from."""
        root, common_dir = self._place.root, self._place.common_dir
        variables = git_program.environment(root)
        home = _home(variables)
        xdg = os.path.join(variables.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
        own = (os.path.join(common_dir, "config"), os.path.join(self._place.git_dir, "config.worktree"))
        # Hash them before git reads them: a change during the read is noticed next time.
        config = _digests((*own, *_user_config(variables, xdg)))
        settings: dict[str, list[tuple[str, str]]] = {}
        paths: dict[str, list[str]] = {}
        rows = _rows(root)
        for file, key, value in rows:
            settings.setdefault(file, []).append((key, value))
            kind, base = (_INCLUDE, os.path.dirname(file)) if key.startswith(_INCLUDES) else (key, root)
            if value:
                paths.setdefault(kind, []).append(os.path.join(base, _expanded(value, home)))
        # Included files also if their condition does not hold: a branch or a folder can change.
        config |= _digests(path for path in (*settings, *paths.get(_INCLUDE, ())) if path not in config)
        attributes = [os.path.join(xdg, "attributes"), *paths.get("core.attributesfile", ())]
        ignores = [os.path.join(xdg, "ignore"), *paths.get("core.excludesfile", ())]
        hooks = dict.fromkeys((os.path.join(common_dir, "hooks"), *map(os.path.realpath, paths.get(HOOKS_PATH, ()))))
        self._effective = {key: value for _, key, value in rows}
        self._excludes, self._own_attributes = ignores[-1], attributes[-1]
        self._named = frozenset((*attributes, *_system("gitattributes"), *ignores))
        self.hooks_within = tuple(folder for folder in hooks if self._is_in_tree(folder))
        self._hooks = tuple(folder for folder in hooks if folder not in self.hooks_within)
        self.settings = {self._name(file): frozenset(own_rows) for file, own_rows in settings.items()}
        self._config = config

    def _is_in_tree(self, folder: str) -> bool:
        root, inner = self._place.root, self._place.common_dir
        return f"{folder}{os.sep}".startswith(root + os.sep) and not f"{folder}{os.sep}".startswith(inner + os.sep)


@functools.lru_cache(maxsize=4)
def of_repository(repository: Repository) -> GuardedFiles:
    """Return the instance of this repository that the process shares."""
    return GuardedFiles(repository)


def _home(variables: Mapping[str, str]) -> str:
    """Return the user's folder; without HOME git reads none of its files, and none can be below `/dev/null`."""
    return variables.get("HOME") or os.devnull


def _user_config(variables: Mapping[str, str], xdg: str) -> Iterator[str]:
    """Yield the configuration of the user and of the system, also where git would read it if it existed."""
    if variables.get("GIT_CONFIG_GLOBAL"):
        yield variables["GIT_CONFIG_GLOBAL"]
    else:
        yield os.path.join(_home(variables), ".gitconfig")
        yield os.path.join(xdg, "config")
    if variables.get("GIT_CONFIG_SYSTEM"):
        yield variables["GIT_CONFIG_SYSTEM"]
    elif not variables.get("GIT_CONFIG_NOSYSTEM"):
        yield from _system("gitconfig")


def _system(name: str) -> tuple[str, ...]:
    """Return where git may read a file of the system: in `/etc`, and in `etc` next to the `bin` of its program."""
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(git_program.path())))
    return tuple(dict.fromkeys((os.path.join("/etc", name), os.path.join(prefix, "etc", name))))


def _rows(root: str) -> list[tuple[str, str, str]]:
    """Return the file, key and value of each setting that git reads from a file."""
    listed = git_program.read(root, ["config", "--includes", "--list", "--show-origin", "-z"]).out.split(b"\0")
    rows = []
    for origin, row in zip(listed[::2], listed[1::2], strict=False):
        key, _, value = os.fsdecode(row).partition("\n")
        kind, _, place = os.fsdecode(origin).partition(":")
        if kind == "file" and place:
            rows.append((os.path.join(root, place), key, value))
    return rows


def _expanded(path: str, home: str) -> str:
    """Parse a path as written in git's configuration."""
    return os.path.join(home, path[2:]) if path.startswith("~/") else os.path.expanduser(path)


def _hooks_below(folder: str) -> Iterator[str]:
    """Yield the files in a folder of hooks outside the working tree, and in its folders: hooks may call them."""
    pending, count = [folder], 0
    while pending and count < _MOST_HOOKS:
        place = pending.pop()
        try:
            with os.scandir(place) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif not entry.name.endswith(".sample"):
                        count += 1
                        yield entry.path
        except OSError:
            continue


def _hooks_within(folder: str) -> Iterator[str]:
    """Yield the hooks in a folder of the working tree, where other files may be too."""
    wrappers = os.path.basename(folder) == _WRAPPERS
    yield from (os.path.join(folder, name) for name in _names(folder) if wrappers or name in _HOOKS)
    if wrappers:
        above = os.path.dirname(folder)
        yield from (os.path.join(above, name) for name in _names(above) if name in _HOOKS)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def has_content(path: str) -> bool:
    status = stat_key(path)
    return status is not None and status[2] > 0


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
    """Return a file's bytes; `open` would take most of the time, because these files are small and read often."""
    number, pieces = os.open(path, os.O_RDONLY | os.O_CLOEXEC), []
    try:
        while piece := os.read(number, 1 << 16):
            pieces.append(piece)
    finally:
        os.close(number)
    return b"".join(pieces)


def _digests(paths: Iterable[str]) -> dict[str, str | None]:
    return {path: digest(path) for path in paths}


def stat_key(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
