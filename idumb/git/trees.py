"""Trees of a working tree: scan, snapshot, compare, restore. Also those of a checkout, and the workspace `here`."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from idumb.app.ports import Conflict, Snapshot
from idumb.domain import errors, paths
from idumb.domain.proof.ledger import Change, Entry
from idumb.domain.settings import SNAPSHOT_LIMIT
from idumb.git import disk, git_program, guarded_files, path_state, status, tree_objects, write_back
from idumb.git.discover import Worktree
from idumb.git.git_dir import INDEX, GitDir
from idumb.git.projects import ProjectPaths
from idumb.git.scanner import Scanner
from idumb.git.snapshot import Snapshots
from idumb.git.tree_objects import FOLDER

if TYPE_CHECKING:
    from idumb.git.checkouts.tree_files import CheckoutGitDir

_CHANGED = "was changed since"
_ATTRIBUTES = ".gitattributes"
_ABSOLUTE = re.compile(rb"(?<![\w./-])/[^\s\"'`()\[\]{}<>|;:,*?$\\\0]+")
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - nothing is written there
_PLAIN = ("-r", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index")


class GitTrees(Snapshots):
    """`folder` is that of the project, "" for the top. Trees and snapshots are of the whole repository.

    Nothing outside the folder is ever written: such a path raises ValueError.
    """

    def __init__(
        self,
        worktree: Worktree,
        store: Worktree | None = None,
        limit: Callable[[], int] = lambda: SNAPSHOT_LIMIT,
        folder: str = "",
    ) -> None:
        super().__init__(worktree, store or worktree, limit)
        self.paths = ProjectPaths(folder)
        self.root = self.paths.root(worktree.root)

    def scan(self, also: Iterable[str] = ()) -> str:
        """Store all tracked and untracked files that are not ignored; return the tree's id.

        `also` are literal paths to include even if they are ignored. What cannot be saved is left out: see `omitted`.
        """
        return self.scanner.scan(self.paths.all_to_repository(also))

    def save(self, paths: Iterable[str]) -> str:
        """Store these files as they are, byte for byte; return a tree that has them, and perhaps others."""
        root, names = self._worktree.root, self.paths.inside(paths)
        files = {path: path_state.entry_below(root, path) for path in names}
        self.repository.see_packs()
        new = {p: e.oid for p, e in files.items() if e and not tree_objects.is_stored(self.repository, e.oid)}
        if not any(e is None and os.path.lexists(os.path.join(root, path)) for path, e in files.items()):
            with contextlib.suppress(errors.Refusal):
                if tree_objects.store(functools.partial(git_program.change, root), [*new]) == [*new.values()]:
                    return tree_objects.put(self.repository, tree_objects.EMPTY_TREE, files)
        return self.scan(paths)  # there is a folder or a link, or one changes just now

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        """Store a `scan`, the index and HEAD under the name `ref`, and read it back."""
        return self.take(ref, reason, self.paths.all_to_repository(also))

    def repositories(self) -> tuple[str, ...]:
        """Return the submodules and nested repositories of the last scan."""
        return self.paths.of_project(self.scanner.repositories)

    def outside_target(self, link: str) -> str | None:
        """Return the target of a link that leads out of the workspace; None if it stays inside.

        An absolute link always leads out, because a checkout is elsewhere. A link into git's own folder leads out too.
        """
        root, place = self._worktree.root, os.path.join(self._worktree.root, self.paths.to_repository(link))
        if not os.path.islink(place):
            return None
        target, real = os.readlink(place), os.path.realpath(place)
        is_inside = paths.is_below(real, root) and not paths.is_below(real.lower(), f"{root}/.git".lower())
        return None if is_inside and not os.path.isabs(target) else target

    def places_of_machine(self, data: bytes) -> frozenset[str]:
        """Return the absolute paths in a file that exist now, and that only this machine is sure to have.

        These are the working tree and what is below it, below the home, or in a folder for temporary files.
        """
        root, temporary = self._worktree.root, (tempfile.gettempdir(), *_TEMPORARY)
        above = tuple(f"{folder.rstrip('/')}/" for folder in (os.path.expanduser("~"), *temporary))
        words = (re.sub("/+", "/", os.fsdecode(word)).rstrip("./") for word in _ABSOLUTE.findall(data))
        own = (path for path in words if paths.is_below(path, root) or path.startswith(above))
        return frozenset(filter(os.path.lexists, own))

    def omitted(self) -> Mapping[str, str]:
        """Return paths that the last scan omitted, and why. A folder of which all is ignored ends with `/`.

        Such paths are ignored, unreadable, too large and not tracked, or repositories.
        """
        dirty = (path for path in self.repositories() if status.is_dirty(self.root, path))
        own = ((path, why) for path, why in self.scanner.omitted.items() if self.paths.contains(path))
        return {
            **dict.fromkeys(self.ignored(), paths.IGNORED_BY_GIT),
            **dict.fromkeys(dirty, "uncommitted work in a submodule"),
            **{self.paths.to_project(path): why for path, why in own},
        }

    def ignored(self, *, above: bool = False) -> tuple[str, ...]:
        """Return the ignored paths of `omitted`, as they are now, without those inside submodules.

        With `above`, also the folders at the top of the repository, for a project in a folder of it.
        """
        listed = self.scanner.ignored()
        of_top = [path for path in listed if path.count("/") == 1 and not self.paths.contains(path)] if above else ()
        return (*self.paths.of_project(listed), *self.paths.all_to_project(of_top))

    def hidden_by(self, rules: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        """Return each path that one of these `.gitignore` files hides, with that file and its rule."""
        files, shown = frozenset(self.paths.all_to_repository(rules)), self.paths.to_project
        hidden = self.paths.all_to_repository(self.ignored()) if files else ()
        hiding = status.deciding(self._worktree.root, hidden, self._store)
        return {shown(path): (shown(file), rule) for path, (file, rule) in hiding.items() if file in files}

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return the paths that differ, sorted. A rename is a deletion and a creation."""
        return tree_objects.changes(self.repository, self._part(old), self._part(new))

    def _part(self, tree: str) -> str:
        """Return the project's own tree in a tree of the repository; the empty tree if there is no such folder."""
        found = tree_objects.at(self.repository, tree, self.paths.folder)
        return found.oid if found is not None and found.mode == FOLDER else tree_objects.EMPTY_TREE

    def changes_outside(self, old: str, new: str) -> tuple[Change, ...]:
        """Return the paths outside the project's folder that differ; each begins with `../`. None for the top."""
        changed = tree_objects.changes(self.repository, old, new)
        return self.paths.rows_to_project(change for change in changed if not self.paths.contains(change.path))

    def entry(self, tree: str, path: str) -> Entry | None:
        return tree_objects.entry(self.repository, tree, self.paths.to_repository(path))

    def differing(self, tree: str, others: Sequence[str], paths: Iterable[str]) -> tuple[str, ...]:
        """Return those of these paths that are in `tree` as in none of the `others`."""
        return tuple(p for p in paths if self.entry(tree, p) not in [self.entry(other, p) for other in others])

    def is_folder(self, tree: str, path: str) -> bool:
        found = tree_objects.at(self.repository, tree, self.paths.to_repository(path))
        return found is not None and found.mode == FOLDER

    def overlay(self, tree: str, source: str, paths: Iterable[str]) -> str:
        """Return `tree` with each of `paths` taken from `source`, or removed if `source` does not have it."""
        return self.overlay_each(tree, [(source, paths)])

    def overlay_each(self, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
        """Return `tree` after an overlay of each (source, paths), one after the other."""
        own = [(source, self.paths.inside(paths)) for source, paths in sources]
        return tree_objects.overlay(self.repository, tree, own)

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        """Return the tree that a commit of these paths, with their bytes of `source`, has on top of the commit `head`.

        Git's filters and line endings are applied. `source` is the present tree of the workspace. What the user's
        sparse checkout omits there is as in `head`.
        """
        tree = tree_objects.tree_of(self.repository, head)
        files = {path: tree_objects.entry(self.repository, source, path) for path in self.paths.inside(paths)}
        omitted = status.omitted(self._store, [path for path, file in files.items() if file is None])
        result = tree_objects.put(self.repository, tree, {p: file for p, file in files.items() if p not in omitted})
        present = [path for path, file in files.items() if file is not None]
        if present and self.may_convert(tree, present):
            # git would still apply attributes that this commit removes.
            before = self.overlay(tree, source, [path for path in paths if path.endswith(_ATTRIBUTES)])
            cleaned = status.cleaned(self._store, self._worktree.root, before, present)
            result = tree_objects.put(self.repository, result, cleaned)
        return result

    def may_convert(self, head: str, changed: Iterable[str]) -> bool:
        """Return whether git may commit other bytes, or another mode, than these files have.

        A setting or a file of attributes says so.
        """
        guarded = guarded_files.of_repository(self._store)
        if guarded.converts or guarded.ignores_modes:
            return True
        roots, folders = {self._worktree.root, self._store.root}, paths.folders_above(changed)
        names = [_ATTRIBUTES, *(f"{folder}/{_ATTRIBUTES}" for folder in folders)]
        committed = any(tree_objects.entry(self.repository, head, name) for name in names)
        return committed or any(os.path.lexists(os.path.join(root, name)) for root in roots for name in names)

    def read(self, oid: str) -> bytes:
        """Return an object's bytes. Refusal `git.object-missing` if it is missing or damaged."""
        return self.repository.read(oid)[1]

    def pieces(self, oid: str) -> Iterator[bytes]:
        """Return a blob's bytes, in pieces if it is large."""
        return tree_objects.pieces(self.repository, self._store.root, oid)

    def restore(self, target: str, expected: str, paths: Iterable[str], *, force: bool = False) -> tuple[Conflict, ...]:
        """Write each path as in `target` if its present bytes and mode are those in `expected`.

        All paths are compared first; with a conflict, none is written. If a path changes while paths are written, or
        on OSError, writing stops there: earlier paths are written, this one and the rest are not. It is safe to repeat:
        a path that is as in `target` is no conflict. `force` skips the comparison. All writes are durable. A save of
        another program at any moment stays at its path, or is displaced and named.
        """
        own = self.paths.inside(paths)
        return self.paths.rows_to_project(write_back.restore(self._writing(), target, expected, own, force=force))

    def conflicts(self, target: str, expected: str, paths: Iterable[str]) -> tuple[Conflict, ...]:
        """Return the conflicts that `restore` would find before it writes."""
        own = self.paths.inside(paths)
        return self.paths.rows_to_project(write_back.conflicts(self._writing(), target, expected, own))

    def _writing(self) -> write_back.Writing:
        shelf = write_back.shelf(self._worktree)
        return write_back.Writing(self.repository, self._worktree.root, shelf, self._store.guard)

    def release_displaced(self) -> tuple[str, ...]:
        """Remove the files that restores displaced; return the absolute paths of those that were written to since.

        Call it when the operation ends.
        """
        return write_back.shelf(self._worktree).release()

    def force(self, paths: Iterable[str]) -> None:
        """Flush these files and their parent folders to disk."""
        disk.force_below(self._worktree.root, self.paths.all_to_repository(paths))

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        """Return a unified diff with `a/` and `b/`; bytes that are not UTF-8 are surrogate escapes."""
        options = ["-p", "--binary", "--src-prefix=a/", "--dst-prefix=b/"]
        return self._compared(options, old, new, *paths).decode("utf-8", "surrogateescape")

    def line_counts(self, old: str, new: str, *paths: str) -> Mapping[str, tuple[int | None, int | None]]:
        listed = self._compared(["--numstat", "-z"], old, new, *paths).split(b"\0")
        rows = [row.split(b"\t", 2) for row in listed if row]
        return {os.fsdecode(path): (_number(added), _number(removed)) for added, removed, path in rows}

    def _compared(self, options: Sequence[str], old: str, new: str, *paths: str) -> bytes:
        # In the working tree, git would read the present .gitattributes: a task that writes one would decide how its
        # own change is counted.
        git_dir, parts = self._store.git_dir, (self._part(old), self._part(new))
        arguments = ["diff-tree", *_PLAIN, *options, *parts, "--", *paths]
        return git_program.output(self._store.root, arguments, extra={"GIT_DIR": git_dir}, cwd=git_dir)

    def apply_patch(self, patch: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
        """Apply it to a tree first, so that every path is judged before anything is written."""
        present = self.scan()
        patched, words = self._patched(present, patch)
        if words:
            return False, words
        if outside := self.changes_outside(present, patched):
            return False, f"{outside[0].path}: it is outside the project in {self.paths.folder}"
        changed = [change.path for change in self.changes(present, patched)]
        refused = next(((path, why) for path in changed if (why := allowed(path)) is not None), None)
        if refused is not None:
            return False, ": ".join(refused)
        conflicts = self.restore(patched, present, changed)
        return not conflicts, "; ".join(f"{conflict.path} {conflict.why}" for conflict in conflicts)

    def _patched(self, tree: str, patch: str) -> tuple[str, str]:
        """Return `tree` with the patch applied in the project's folder in a private index, or git's words."""
        root = self._store.root
        with status.private(self._store) as index:
            git_program.change(root, ["read-tree", tree], extra=index)
            where = [f"--directory={self.paths.folder}"] if self.paths.folder else []
            arguments = ["apply", "--cached", "--whitespace=nowarn", *where, "-"]
            result = git_program.write(root, arguments, patch.encode("utf-8", "surrogateescape"), index)
            if result.status != 0:
                return "", result.words
            return git_program.output(root, ["write-tree"], extra=index).decode("ascii").strip(), ""


def _number(text: bytes) -> int | None:
    """Return a count of lines; None for a binary file."""
    return None if text == b"-" else int(text)


class Here:
    """The user's own working tree as the workspace of a person, with the methods of a checkout."""

    in_place = True
    variables: Mapping[str, str] = MappingProxyType({})

    def __init__(self, trees: GitTrees) -> None:
        self.trees = trees

    def show(self, *_: object) -> NoReturn:
        raise AssertionError("no program works in the user's own working tree")

    begin = with_ignored = messages = cleaned = show

    def checked_out(self, tree: str, *_: object) -> str:
        return tree

    def keep(self) -> None:
        """Nothing was begun there, and nothing is lost."""

    end = keep


class CheckoutTrees(GitTrees):
    """The trees of a checkout: what `git add -A` would record there under the user's configuration.

    `user` are the trees of the user's working tree, `git` is idumb's git folder for the checkout at `top`.

    `checked_out` returns a tree with some of its files as git checks them out.
    Git reads only what differs from the tree that is shown. Names and objects are in the user's repository.
    """

    def __init__(
        self, user: GitTrees, git: CheckoutGitDir, top: str, name: str, checked_out: Callable[[str, Iterable[str]], str]
    ) -> None:
        checkout = Worktree(top, git.path, git.path, name)
        super().__init__(checkout, user.repository.worktree, user.limit, user.paths.folder)
        self._git = git
        self._checked_out = checked_out

    @functools.cached_property
    def scanner(self) -> Scanner:
        folder = GitDir(self._git.path, self._git.root, self._git.objects, self._git.lenient)
        return Scanner(self._worktree, self._store, self.limit(), folder, tracking=self._git)

    def begin(self) -> None:
        """Begin the next scan with the index of the tree that is shown."""
        copied = os.path.join(self._git.path, f"{INDEX}.new")
        shutil.copyfile(os.path.join(self._git.path, self._git.index), copied)
        os.replace(copied, os.path.join(self._git.path, INDEX))

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        """Keep the scanned tree alone: the index of a checkout is nobody's work."""
        return self.keep(ref, self.scan(also), reason)

    def restore(self, target: str, expected: str, paths: Iterable[str], *, force: bool = False) -> tuple[Conflict, ...]:
        """Compare what git would commit, and write what git checks out."""
        paths = tuple(paths)
        if not force and (wrong := self.differing(self.scan(paths), (expected, target), paths)):
            return tuple(Conflict(path, _CHANGED) for path in wrong)
        written = self._checked_out(target, paths)
        return super().restore(written, written, paths, force=True)

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        """Scans are what git commits already."""
        return self.overlay(tree_objects.tree_of(self.repository, head), source, paths)
