"""The files of one tree in one folder: git writes them, and git says which of them a program changed.

git works there in a folder of idumb's own, which no program uses: it never searches for one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

import pygit2

from idumb.domain import errors, paths
from idumb.domain.proof.ledger import Entry
from idumb.git import discover, disk, git_program, guarded_files, open_repository, path_state, tree_objects
from idumb.git.checkouts.places import Tampered
from idumb.git.checkouts.user_git import UserGit
from idumb.git.discover import Worktree
from idumb.git.git_dir import EXCLUDE, NO_BRANCH, PLAIN, RAW, GitDir
from idumb.git.open_repository import CheckedRepository
from idumb.git.tree_objects import FILE, LINK, PROGRAM, SUBMODULE
from idumb.system import clock, escaping, private_folders

ATTRIBUTES = ".gitattributes"
_IN_ROW = (b"\t.gitattributes", b"/.gitattributes")
SHOWN = "shown"
"""The index of the tree that is shown."""
_CRYPT = "git-crypt"
_OPTIONAL = frozenset(
    ("info/attributes", "info/sparse-checkout", "info/user-attributes", "info/user-excludes", "shallow")
)
_TREE = "tree"
_UNFORCED = ("-c", "core.fsync=none")
"""Nothing is forced to disk, because after a power cut the folder is made again."""
_MISSING = re.compile(rb"unable to read sha1 file of (.*) \(([0-9a-f]+)\)|unable to read tree \(?([0-9a-f]+)")
_FETCH = "git fetch --refetch --no-filter brings everything"
_WRITES = ("-f", "-q", "-u")
_AS_STORED = {
    "core.autocrlf": ("false", "input"),
    "core.eol": ("lf", "native"),
    "core.filemode": ("true",),
    "core.symlinks": ("true",),
}
_CONVERTS = re.compile(rb"filter|ident|crlf|encoding")
"""In attributes: git may check out other bytes than it stores."""
_SETTLED = 2_000_000_000  # nanoseconds


class CheckoutGitDir(GitDir):
    """`root` returns the working tree once it has made sure that it is the right folder; otherwise it raises Tampered.

    `user` is what counts of the user's configuration, read before the first program started. With `trusts_index`,
    the index of an earlier command stays. A builder could have written there that a file is as in the tree.
    """

    index = SHOWN

    def __init__(self, path: str, root: Callable[[], str], objects: str, user: UserGit, *, trusts_index: bool) -> None:
        super().__init__(path, root, objects, user.optional_filters)
        self.user = user
        self.trusts_index = trusts_index
        self._written: tuple[int, ...] | None = None
        self.prepare()
        if not trusts_index:
            self.remove(SHOWN)

    def without_required_filters(self, arguments: Sequence[str], stdin: bytes = b"") -> git_program.Result:
        """Run a command on the files of the tree that is shown. If a filter fails, a file is as in the commit.

        Raises Tampered.
        """
        self.remove(f"{SHOWN}.lock")  # of a git that was killed
        present = self.stamp()
        if present is not None and self._written not in (None, present):
            raise Tampered(SHOWN)  # a program wrote the index: it could say that a file is as in the tree
        result = self.git([*_UNFORCED, *self.lenient, *arguments], stdin)
        self._written = self.stamp()
        return result

    def hide(self, paths: Sequence[str]) -> bytes:
        """Let git ignore untracked paths; return all rules of that file."""
        rules = self.user.files.get(EXCLUDE, b"")
        escaped = (re.sub(r"([\\*?[ ])", r"\\\1", path) for path in paths if "\n" not in path)
        rules += b"".join(b"\n/%b" % os.fsencode(path) for path in escaped) + b"\n"
        self.write(EXCLUDE, rules)
        return rules

    @property
    def is_unknown(self) -> bool:
        """Whether there is no index, and this process made none: the files are those of an earlier command."""
        return self._written is None and self.stamp() is None

    def raw(self) -> GitDir:
        """Return a folder in which git compares the files with what it stores, byte for byte."""
        folder = GitDir(os.path.join(self.path, "raw"), self.root, self.objects)
        for name in ("info", "refs"):
            private_folders.make(os.path.join(folder.path, name))
        files = {"HEAD": NO_BRANCH, "config": escaping.git_configuration(PLAIN), "info/attributes": RAW}
        folder.put(folder.differing(files))
        return folder

    def prepare(self) -> None:
        """Write what git needs, unless it is there. If any of it changed, every file is checked out again.

        What a killed command had not written to its end is removed.
        """
        for name in os.listdir(self.path):
            if name.endswith(".tmp"):
                private_folders.remove_tree(os.path.join(self.path, name))
        for name in ("info", "refs"):
            private_folders.make(os.path.join(self.path, name))
        files = {"HEAD": NO_BRANCH, **self.user.in_folder(self.path, {"core.safecrlf": "false"})}
        files.pop(EXCLUDE, None)  # `hide` writes it
        if wrong := self.differing({**dict.fromkeys(_OPTIONAL), **files}):
            self.remove(SHOWN)
            self.put(wrong)
        keys = os.path.join(os.path.dirname(self.objects), _CRYPT)
        if os.path.isdir(keys) and not os.path.lexists(os.path.join(self.path, _CRYPT)):
            os.symlink(keys, os.path.join(self.path, _CRYPT))


class TreeFiles:
    """`folder` is idumb's own git folder for the files; `repository` has their objects.

    `tracked` are the files of the tree, with those that the user's sparse checkout omits; `folders` are those of the
    tree and the submodules.
    """

    def __init__(self, folder: CheckoutGitDir, repository: pygit2.Repository) -> None:
        self._folder = folder
        self._repository = repository
        self._listed = tree_objects.EMPTY_TREE
        self.tracked: dict[str, Entry] = {}
        self.folders: set[str] = set()

    def show(self, tree: str) -> bool:
        """Make the tracked files those of `tree`; return whether each was written, and none of another tree removed.

        Refusal `git.object-missing`, `system.full` or `git.failed`. If it is killed, the next call writes every file.
        """
        self._folder.prepare()
        before = self._folder.read(_TREE)
        self._folder.remove(_TREE)
        if not before:
            self._require_space(tree)
        if anew := not before or self._attributes_differ(before, tree):
            self._folder.remove(SHOWN)
        elif self._folder.is_unknown:
            self._compare(tree)
        self._check_out(tree)
        self._list(tree)
        self._folder.write(_TREE, tree.encode("ascii"))
        return anew

    def show_sparse(self, needed: Iterable[str]) -> None:
        """Write those of these files that the user's sparse checkout omits."""
        root = self._folder.root()
        missing = [path for path in needed if path in self.tracked and not os.path.lexists(os.path.join(root, path))]
        if missing:
            names = b"".join(os.fsencode(path) + b"\0" for path in missing)
            command = ["checkout-index", *_WRITES, "--ignore-skip-worktree-bits", "-z", "--stdin"]
            git_program.required(command, self._folder.without_required_filters(command, names))

    def show_again(self, tree: str) -> None:
        """Write every file."""
        self._folder.remove(SHOWN)
        self._check_out(tree)

    def _attributes_differ(self, old: str, new: str) -> bool:
        """Return whether files may have other bytes although the tree has the same object for them."""
        try:
            changes = tree_objects.changes(self._repository, old, new)
        except (errors.Refusal, KeyError, ValueError, pygit2.GitError):
            return True
        return any(change.path.rpartition("/")[2] == ATTRIBUTES for change in changes)

    def _compare(self, tree: str) -> None:
        """Make an index that says which files have the bytes of the tree: git then writes only the others.

        An index of an earlier command would say it without a look, but a program could have written it. What git would
        write in another way is written too, and what changed just now: git compares times in seconds, and would not see
        it change again.
        """
        index = {"GIT_INDEX_FILE": os.path.join(self._folder.path, SHOWN)}
        raw, since = self._folder.raw(), clock.nanoseconds() - _SETTLED
        raw.git([*_UNFORCED, "read-tree", tree], variables=index)
        rows = [row for row in raw.git(["ls-files", "-s", "-z"], variables=index).out.split(b"\0") if row]
        if not self._stores_as_checked_out(row for row in rows if row.endswith(_IN_ROW)):
            self._folder.remove(SHOWN)
            return
        raw.git([*_UNFORCED, "update-index", "-q", "--refresh"], variables=index)
        top, names = os.fsencode(raw.root()), [row.partition(b"\t")[2] for row in rows]
        bits = os.stat(index["GIT_INDEX_FILE"]).st_mode & 0o666
        modes = (bits, bits | (bits & 0o444) >> 2)  # of files and programs, as git writes them here
        others = (name for name in names if not _is_as_written(os.path.join(top, name), since, modes))
        command = [*_UNFORCED, "update-index", "--force-remove", "-z", "--stdin"]
        raw.required(command, b"".join(name + b"\0" for name in others), variables=index)

    def _stores_as_checked_out(self, attributes: Iterable[bytes]) -> bool:
        """Return whether git writes each file as it stores it. `attributes` are the index rows of such files."""
        user, rows = self._folder.user, [*attributes]
        if any(user.settings.get(name, good[0]) not in good for name, good in _AS_STORED.items()):
            return False
        if "info/sparse-checkout" in user.files:
            return False
        try:
            texts = [self._repository[row.split()[1].decode("ascii")].read_raw() for row in rows]
        except (KeyError, ValueError, pygit2.GitError):
            return False
        texts += [data for name, data in user.files.items() if name.endswith("attributes")]
        texts += map(guarded_files.content, guarded_files.of_system("gitattributes"))
        return not any(map(_CONVERTS.search, texts))

    def _check_out(self, tree: str) -> None:
        result = self._folder.without_required_filters(["read-tree", "--reset", "-u", tree])
        if result.status == 0:
            return
        if (missing := _MISSING.search(result.err)) is not None:
            path, oid = os.fsdecode(missing[1] or b"its tree"), (missing[2] or missing[3]).decode("ascii")
            words = f"object {oid} of {path} is not in this repository (a partial clone?)"
            raise errors.Refusal("git.object-missing", words, hint=_FETCH)
        disk.explain(result.words, self._folder.root())
        raise git_program.failure(["read-tree"], result)

    def _require_space(self, tree: str) -> None:
        rows = self._folder.git(["ls-tree", "-r", "-l", "-z", tree]).out.split(b"\0")
        sizes = (row.split(None, 4)[3] for row in rows if row)
        disk.require_room((int(size) for size in sizes if size.isdigit()), self._folder.root())

    def _list(self, tree: str) -> None:
        """Note the files and folders of a tree: only what differs from the tree noted before is looked at."""
        changes = tree_objects.changes(self._repository, self._listed, tree)
        removed = [change.path for change in changes if change.new is None]
        for path in removed:
            del self.tracked[path]
        added = {change.path: change.new for change in changes if change.new is not None}
        self.tracked |= added
        if removed:
            self.folders.clear()
        self.folders |= paths.folders_above(self.tracked if removed else added)
        self._listed = tree

    def submodules(self) -> dict[str, str]:
        """Return path to commit."""
        return {path: item.oid for path, item in self.tracked.items() if item.mode == SUBMODULE}

    def restore(self) -> list[str]:
        """Write the files again that a program changed, touched or removed; return those that differed.

        Raises Tampered if that is impossible.
        """
        touched = self._touched()
        if not touched:
            return []
        root = self._folder.root()
        before = {path: path_state.entry_below(root, path) for path in touched}
        self._remove_foreign_attributes(touched)
        names = b"".join(os.fsencode(path) + b"\0" for path in touched)
        result = self._folder.without_required_filters(["checkout-index", *_WRITES, "-z", "--stdin"], names)
        if result.status != 0:
            raise Tampered(result.words)
        return [path for path in touched if path_state.entry_below(root, path) != before[path]]

    def _touched(self) -> list[str]:
        """Return the files whose times are not those that git wrote, and those that are missing."""
        arguments = ["diff-files", "--name-only", "--no-renames", git_program.NO_SUBMODULES, "-z"]
        listed = self._folder.without_required_filters(arguments)
        if listed.status != 0:
            raise Tampered(listed.words)
        return [os.fsdecode(name) for name in listed.out.split(b"\0") if name]

    def _remove_foreign_attributes(self, touched: Iterable[str]) -> None:
        """Remove attributes that are not in the tree: they would decide how files are checked out."""
        folders = {"", *paths.folders_above(touched)}
        root = self._folder.root()
        for path in (os.path.join(folder, ATTRIBUTES) for folder in sorted(folders)):
            place = os.path.join(root, path)
            if path not in self.tracked and os.path.lexists(place) and os.path.realpath(place) == place:
                private_folders.remove_tree(place)

    def cleaned(self, path: str, data: bytes) -> str:
        """Return the object that git stores for these bytes at a path of the tree."""
        return self._folder.required(["hash-object", f"--path={path}", "--stdin"], data).decode("ascii").strip()

    def checked_out(self, tree: str, names: Sequence[str], seen: Sequence[str] = ()) -> dict[str, Entry]:
        """Return these files of a tree as git checks them out, stored as they are. Others are omitted.

        A file that one of the trees `seen` has in a form that git calls unmodified is returned as in the first of them.
        """
        entries = {path: tree_objects.entry(self._repository, tree, path) for path in names}
        files = {
            path: entry for path, entry in entries.items() if entry is not None and entry.mode not in {LINK, SUBMODULE}
        }
        if not files:
            return {}
        with tempfile.TemporaryDirectory(".tmp", dir=self._folder.path) as folder:
            variables = {
                "GIT_INDEX_FILE": os.path.join(folder, "index"),
                "GIT_WORK_TREE": os.path.join(folder, "files"),
            }
            os.mkdir(variables["GIT_WORK_TREE"])
            self._folder.required(["read-tree", tree], variables=variables)
            rows = b"".join(os.fsencode(path) + b"\0" for path in files)
            self._folder.required(["checkout-index", "-q", "-z", "--stdin"], rows, variables=variables)
            oids = tree_objects.store(self._folder.required, [os.path.join(folder, "files", path) for path in files])
            written = {path: Entry(files[path].mode, oid) for path, oid in zip(files, oids, strict=True)}
            for other in reversed(seen):
                written |= self._unmodified(other, written, variables)
        return written

    def _unmodified(self, seen: str, written: Mapping[str, Entry], variables: Mapping[str, str]) -> dict[str, Entry]:
        """Return those of these files as the tree `seen` has them that git calls unmodified in a private index."""
        top, found = variables["GIT_WORK_TREE"], dict[str, Entry]()
        for path in written:
            entry = tree_objects.entry(self._repository, seen, path)
            if entry is not None and entry.mode in {FILE, PROGRAM}:
                found[path] = entry
                with open(os.path.join(top, path), "wb") as stream:
                    stream.writelines(tree_objects.pieces(self._repository, top, entry.oid))
                os.chmod(os.path.join(top, path), entry.mode & 0o777)
        listed = self._folder.git([*self._folder.lenient, "ls-files", "-m", "-z"], variables=variables)
        modified = set(map(os.fsdecode, listed.out.split(b"\0"))) if listed.status == 0 else found.keys()
        return {path: entry for path, entry in found.items() if path not in modified}


def _is_as_written(place: bytes, since: int, modes: Collection[int]) -> bool:
    """Return whether a file has one name and one of these modes, and has not changed since then (ns)."""
    try:
        status = os.lstat(place)
    except OSError:
        return True  # git sees that it is missing
    is_plain = not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) in modes
    return is_plain and status.st_ctime_ns < since and (status.st_nlink == 1 or stat.S_ISDIR(status.st_mode))


class Submodules:
    """Those of the checkout whose git folder is `git`, with objects of the submodules of the user's working tree.

    `missing` has a sentence for each submodule without files.
    """

    def __init__(self, git: CheckoutGitDir, user: Worktree) -> None:
        self._git = git
        self._user = user
        self._opened: dict[tuple[str, str], TreeFiles] = {}
        self._shown: dict[str, TreeFiles] = {}
        self.missing: tuple[str, ...] = ()

    def show(self, links: Mapping[str, str]) -> bool:
        """Check out each submodule, path to commit, and those in it; return whether `TreeFiles.show` is true of any."""
        self._shown, missing, waiting, is_anew = {}, dict[str, str](), [*links.items()], False
        for path, commit in waiting:
            repository = self._repository(path, commit)
            if repository is None:
                outermost = next((each for each in self._shown if paths.is_below(path, each)), path)
                line = f"git submodule update --init --recursive {shlex.quote(outermost)}"
                missing[path] = f"submodule {path}: this machine does not have its commit {commit[:10]}; {line}"
                continue
            name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
            place = os.path.join(self._git.path, "modules", name)
            private_folders.make(place)
            objects = repository.worktree.objects
            if (path, objects) not in self._opened:  # it knows whether a program wrote the index since
                root, trusts = partial(self._root, path), self._git.trusts_index
                folder = CheckoutGitDir(place, root, objects, self._git.user, trusts_index=trusts)
                self._opened[path, objects] = TreeFiles(folder, repository)
            files = self._shown[path] = self._opened[path, objects]
            is_anew |= files.show(tree_objects.tree_of(repository, commit))
            waiting += [(f"{path}/{inner}", oid) for inner, oid in files.submodules().items()]
        self.missing = tuple(missing[path] for path in sorted(missing))
        return is_anew

    def forget(self) -> None:
        """Expect that the checkout is empty."""
        private_folders.remove_tree(os.path.join(self._git.path, "modules"))

    def tracked(self) -> dict[str, Entry]:
        return {f"{path}/{name}": item for path, files in self._shown.items() for name, item in files.tracked.items()}

    def restore(self) -> list[str]:
        return [f"{path}/{name}" for path, files in self._shown.items() for name in files.restore()]

    def _root(self, path: str) -> str:
        """Return the folder of a submodule. Raises Tampered if a program put a link there."""
        place = os.path.join(self._git.root(), path)
        if os.path.realpath(place) != place or not os.path.isdir(place):
            raise Tampered(place)
        return place

    def _repository(self, path: str, commit: str) -> CheckedRepository | None:
        """Return the user's repository of a submodule, or of a working tree committed as one, if it has the commit."""
        for place in (os.path.join(self._user.root, path), os.path.join(self._user.common_dir, "modules", path)):
            try:
                is_tree = os.path.lexists(os.path.join(place, ".git"))
                worktree = discover.at(place) if is_tree else Worktree(place, place, place, discover.MAIN)
                repository = open_repository.repository(worktree)
                tree_objects.tree_of(repository, commit)
            except (errors.Refusal, KeyError, ValueError, pygit2.GitError, OSError):
                continue
            return repository
        return None
