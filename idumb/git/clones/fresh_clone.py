"""A fresh clone of the user's repository, as a stranger would make it, in a private temporary folder.

The user's repository is only read. Hooks, templates and the user's git settings take no part; the one exception is the
filter of Git LFS, without which a clone has no contents.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from idumb.domain import wording
from idumb.domain.errors import Refusal
from idumb.git import git_program, provided_paths
from idumb.git.discover import Repository
from idumb.git.projects.project_paths import ProjectPaths
from idumb.system.files import private_folders, user_folders
from idumb.system.processes import child_process, process_tree

_PLACE = "idumb-proofs"
RUN = "proof"
"""The run of which the processes in a fresh clone carry the mark."""
_CLONE = "clone"
_HOME = "home"
_WITHOUT_DELTAS = "--upload-pack=git -c pack.window=0 upload-pack"  # deltas of loose objects cost many seconds
_RAW = "* -text -eol -filter -ident -working-tree-encoding\n"
"""Attributes with which git takes the bytes of a hidden checkpoint as they are: its blobs went through no filter."""
_SUBMODULE = b"160000"
_MOST_SUBMODULES = 1000
_LINE_ENDINGS = frozenset({"core.autocrlf", "core.eol"})
_OWN = ".idumb/"


@contextlib.contextmanager
def opened(user: Repository, rules: Sequence[str] = (), project: str = "") -> Iterator[FreshClone]:
    """Yield an empty folder for one clone, and remove it with everything that still runs there.

    `rules` are ignored paths of the user's working tree that are copied for its checks.
    `project` is the folder of the project, to which all paths are relative; it exists also if the commit lacks it.
    """
    clear()
    top, manifest = private_folders.place(places(), [user.root])
    folder, lock = private_folders.lock(top)
    try:
        for name in ("", _HOME):
            private_folders.make(os.path.join(folder, name))
        yield FreshClone(user, folder, manifest, rules, project)
    finally:
        _end_processes(folder)
        private_folders.unlock(folder, lock)
        private_folders.remove_empty(top)


def places() -> tuple[str, ...]:
    """Return the folders that may hold fresh clones, the preferred one first."""
    return (*private_folders.temporary(_PLACE), os.path.join(os.path.realpath(user_folders.path()), _PLACE))


def clear() -> tuple[str, ...]:
    """Remove the fresh clones that killed processes left, of any repository. Return their folders."""
    removed = []
    for top in places():
        if private_folders.unsafe(top, folder=True) is not None:
            continue
        for folder in private_folders.abandoned(top):
            _end_processes(folder)
            if private_folders.remove(folder):
                removed.append(folder)
        private_folders.remove_empty(top)
    return tuple(removed)


def _end_processes(folder: str) -> None:
    cookies = child_process.run_cookies(RUN, os.path.join(folder, _CLONE))
    process_tree.end_all(child_process.PLACE_COOKIE, cookies[child_process.PLACE_COOKIE])


class CheckedOut(NamedTuple):
    """`missing` says why a fresh clone does not have what was asked for, or is empty; `notes` name what it lacks."""

    missing: str
    notes: tuple[str, ...] = ()


class FreshClone:
    """A clone as a stranger would make it, and the working tree of its checks. It is cloned at the first check-out.

    It is used for one commit, then removed. Nothing of the user's repository changes.
    """

    def __init__(
        self,
        user: Repository,
        folder: str,
        manifest: str | None,
        rules: Sequence[str],
        project: str,
    ) -> None:
        self._user = user
        self._folder = folder
        self._manifest = manifest
        self._paths = ProjectPaths(project)
        self._rules = tuple(self._paths.all_stored(rules))
        self._is_shown = False
        self._tree = ""
        self._prepared = ""
        self._differing: frozenset[str] = frozenset()
        self._top = os.path.join(folder, _CLONE)
        self.root = self._paths.root(self._top)
        self._home = os.path.join(folder, _HOME)
        self._provided = provided_paths.ProvidedCopies(user.root, self._top)

    def check_out(self, commit: str) -> CheckedOut:
        self._clone(self._user.root, self._top)
        if self._git(self._top, ["cat-file", "-e", f"{commit}^{{commit}}"]).status != 0:
            return CheckedOut(f"commit {commit[:10]} is on no branch and no tag, so a clone does not have it")
        self._required(self._top, ["checkout", "--quiet", "--detach", commit])
        return self._checked_out(commit)

    def check_out_tree(self, snapshot: str, top: str, head: str | None, paths: Sequence[str]) -> CheckedOut:
        """Check out the commit `head` with these paths as in a hidden ref of the user's repository, at `top` in it.

        The result is what a commit of them would hold, after git's filters.
        """
        self._clone(self._user.root, self._top)
        # The second version of the protocol, git's default, gives any object that is asked for.
        fetch = ["-c", "protocol.version=2", "fetch", "--quiet", "--no-tags", _WITHOUT_DELTAS, "origin", snapshot]
        if self._git(self._top, fetch).status != 0:
            return CheckedOut(f"checkpoint {snapshot[:10]} no longer exists")
        if head is not None:
            if self._git(self._top, ["cat-file", "-e", f"{head}^{{commit}}"]).status != 0:
                return CheckedOut(f"commit {head[:10]} is on no branch and no tag, so a clone does not have it")
            self._required(self._top, ["update-ref", "--no-deref", "HEAD", head])
        tree = self._tree_with(f"{snapshot}:{top}", head, self._paths.all_own(paths))
        self._required(self._top, ["read-tree", "--reset", "-u", tree])
        return self._checked_out(tree)

    def _checked_out(self, tree: str) -> CheckedOut:
        self._tree = tree
        missing = self._submodules(self._user.root, self._top, tree)
        self._differing = frozenset(self._changed())
        os.makedirs(self.root, exist_ok=True)
        return CheckedOut("", (*self._above(), *self._borrows(), *missing))

    def _tree_with(self, source: str, head: str | None, paths: Sequence[str]) -> str:
        """Return the tree of a commit of these paths on top of `head`, as git would make it. Leave no file."""
        attributes = os.path.join(self._top, ".git", "info", "attributes")
        os.makedirs(os.path.dirname(attributes), exist_ok=True)
        with open(attributes, "w", encoding="ascii") as stream:
            stream.write(_RAW)
        self._required(self._top, ["read-tree", source])
        self._required(self._top, ["checkout-index", "--quiet", "--all"])
        os.unlink(attributes)
        self._required(self._top, ["read-tree", head or "--empty"])
        if paths:
            names = "\0".join(paths).encode("utf-8", "surrogateescape")
            add = ["add", "--force", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"]
            self._required(self._top, [*self._line_endings(), *add], names)
        tree = self._required(self._top, ["write-tree"]).decode("ascii").strip()
        self._required(self._top, ["read-tree", "--empty"])
        for name in os.listdir(self._top):
            if name != ".git":
                private_folders.remove_tree(os.path.join(self._top, name))
        return tree

    def show(self, tree: str, head: str | None) -> Mapping[str, str]:  # noqa: ARG002
        """Copy the paths that the configuration provides; what is checked out is shown already."""
        if not self._is_shown:
            self._provided.bring(self._rules)
            self._is_shown = True
        os.makedirs(self.root, exist_ok=True)
        folders = provided_paths.python_path(self._user.root, self._top, self._rules)
        return {"PYTHONPATH": os.pathsep.join(folders)} if folders else {}

    def prepare(self, identity: str, run: Callable[[], None]) -> None:  # noqa: ARG002
        """Run what prepares the checks, once for what is checked out."""
        if self._prepared == self._tree:
            return
        run()
        if changed := self.restore():
            raise Refusal(
                "checkout.prepare",
                f"checkout.prepare changed {wording.listed(changed)}, which the commit holds.",
                hint="Use a command that installs exactly what the lock file says, such as `npm ci`",
            )
        self._prepared = self._tree

    def renew(self) -> None:
        """Keep what earlier checks left."""

    def close(self) -> None:
        """The folder is removed with everything in it."""

    @property
    def provided(self) -> tuple[str, ...]:
        return self._paths.all_shown(self._provided.provided)

    @property
    def prepared(self) -> tuple[str, ...]:
        return ()

    @property
    def missing(self) -> tuple[str, ...]:
        return ()

    @property
    def cached(self) -> tuple[str, ...]:
        return ()

    def restore(self) -> tuple[str, ...]:
        changed = [path for path in self._changed() if path not in self._differing]
        if changed:
            names = "\0".join(changed).encode("utf-8", "surrogateescape")
            arguments = ["restore", f"--source={self._tree}", "--staged", "--worktree", "--pathspec-from-file=-"]
            self._required(self._top, [*arguments, "--pathspec-file-nul"], names)
        return self._paths.all_shown(changed)

    def stored(self, path: str, data: bytes) -> bool:
        """Return whether the commit has these bytes at this path, after git's filters."""
        place, path = os.path.join(self.root, path), self._paths.stored(path)
        if os.path.islink(place):
            return os.fsencode(os.readlink(place)) == data
        entry = self._git(self._top, ["rev-parse", "--verify", "--quiet", f"{self._tree}:{path}"])
        same = self._git(self._top, [*self._line_endings(), "hash-object", f"--path={path}", "--stdin"], data)
        return entry.status == 0 and entry.out.strip() == same.out.strip()

    def _line_endings(self) -> list[str]:
        """Return the user's own setting of line endings as options: it decides what the user commits."""
        settings = [f"{name}={text}" for name, text in _settings(self._user).items() if name in _LINE_ENDINGS]
        return [word for setting in settings for word in ("-c", setting)]

    def has(self, path: str) -> bool:
        """Return whether the commit has this path."""
        name = f"{self._tree}:{self._paths.stored(path)}"
        return self._git(self._top, ["rev-parse", "--verify", "--quiet", name]).status == 0

    def ignored(self) -> tuple[str, ...]:
        """Return what git ignores in the user's working tree, which a clone does not have. Folders end with `/`."""
        listed = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"]
        found = filter(None, git_program.read(self._user.root, listed).out.split(b"\0"))
        return tuple(path for path in self._paths.kept(map(os.fsdecode, found)) if not path.startswith(_OWN))

    def _above(self) -> tuple[str, ...]:
        words = "programs in the clone may load it, because every temporary folder is below a project"
        return (f"{self._manifest}: {words}; set TMPDIR to a folder that is not",) if self._manifest else ()

    def _borrows(self) -> tuple[str, ...]:
        found = [path for path in self._rules if os.path.lexists(os.path.join(self._user.root, path))]
        words = "is copied from your working tree (checkout.provide); another clone does not have it"
        return (f"{', '.join(found)} {words}",) if found else ()

    def _changed(self) -> list[str]:
        """Return the tracked paths whose files differ from what was checked out."""
        options = ["--name-only", "-z", "--no-renames", "--diff-filter=a", "--ignore-submodules=dirty"]
        output = self._required(self._top, ["diff", *options, self._tree, "--"])
        return [os.fsdecode(name) for name in output.split(b"\0") if name]

    def _clone(self, source: str, target: str) -> None:
        if os.path.lexists(os.path.join(target, ".git")):
            return
        options = ["--quiet", "--no-local", "--no-hardlinks", "--no-checkout", "--template=", _WITHOUT_DELTAS]
        self._required(self._folder, ["clone", *options, "--", source, target])

    def _submodules(self, source: str, target: str, tree: str) -> list[str]:
        """Fill the submodules from the user's own copies. Return a sentence for each that has none."""
        missing, waiting = list[str](), [(source, target, tree, "")]
        for number, (origin, copy, treeish, prefix) in enumerate(waiting):
            if number > _MOST_SUBMODULES:
                break
            for path, commit in self._links(copy, treeish):
                place, shown = os.path.join(copy, path), f"{prefix}{path}"
                local = next((at for at in self._copies(origin, copy, treeish, path) if self._has(at, commit)), None)
                if local is None or os.path.realpath(place) != place:
                    missing.append(f"submodule {shown}: this machine does not have its commit {commit[:10]}")
                    continue
                self._clone(local, place)
                if self._git(place, ["checkout", "--quiet", "--detach", commit]).status != 0:
                    missing.append(f"submodule {shown}: its commit {commit[:10]} is on no branch of {local}")
                    continue
                waiting.append((local, place, commit, f"{shown}/"))
        return missing

    def _links(self, copy: str, tree: str) -> list[tuple[str, str]]:
        """Return path and commit of each submodule in a tree."""
        listed = self._required(copy, ["ls-tree", "-r", "-z", tree])
        rows = (row.partition(b"\t") for row in listed.split(b"\0") if row.startswith(_SUBMODULE))
        return [(os.fsdecode(path), facts.split()[2].decode("ascii")) for facts, _, path in rows]

    def _copies(self, origin: str, copy: str, tree: str, path: str) -> Iterator[str]:
        """Yield where the user may have a submodule: in the working tree, or in the git folder."""
        yield os.path.join(origin, path)
        listed = ["config", "--blob", f"{tree}:.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$"]
        for row in self._git(copy, listed).out.split(b"\0"):
            name, _, value = row.partition(b"\n")
            if value == os.fsencode(path) and b".." not in name.split(b"/"):
                name = name[len(b"submodule.") : -len(b".path")]
                modules = self._user.common_dir if origin == self._user.root else os.path.join(origin, ".git")
                yield os.path.join(modules, "modules", os.fsdecode(name))

    def _has(self, repository: str, commit: str) -> bool:
        """Return whether a folder is a repository of its own that has a commit."""
        if not any(os.path.lexists(os.path.join(repository, name)) for name in (".git", "HEAD")):
            return False
        return self._git(repository, ["cat-file", "-e", f"{commit}^{{commit}}"]).status == 0

    def _git(self, folder: str, arguments: Sequence[str], stdin: bytes = b"") -> git_program.Result:
        return git_program.in_temporary_folder(self._user.root, folder, arguments, stdin, self._variables())

    def _required(self, folder: str, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
        result = self._git(folder, arguments, stdin)
        if result.status != 0:
            raise git_program.failure(arguments, result)
        return result.out

    def _variables(self) -> Mapping[str, str]:
        """Return the variables that replace the user's git settings by those of the clone."""
        path = os.path.join(self._folder, "gitconfig")
        variables = {
            "HOME": self._home,
            "GIT_CONFIG_GLOBAL": path,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
        }
        if not os.path.exists(path):
            settings = {name: text for name, text in _settings(self._user).items() if name.startswith("filter.lfs.")}
            with open(path, "w", encoding="utf-8"):
                pass
            for name, text in {"safe.directory": "*", "init.defaultBranch": "main", **settings}.items():
                arguments = ["config", "--file", path, name, text]
                git_program.in_temporary_folder(self._user.root, self._folder, arguments, b"", variables)
        return variables


def _settings(user: Repository) -> Mapping[str, str]:
    try:
        return git_program.settings(user.root)
    except Refusal:
        return {}
