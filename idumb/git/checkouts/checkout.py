"""A checkout: a folder outside the repository in which programs work. It is brought to exactly one tree by git.

In `build` a builder works. In `proof` checks judge one tree: nothing is in it that the tree does not hold, except
provided, prepared and cached paths. Its folder stays between commands.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from idumb.domain import canonical_json, errors, project_files, wording
from idumb.domain import paths as paths_of
from idumb.domain.proof.ledger import Entry
from idumb.git import guarded_files, path_state, tree_objects
from idumb.git.checkouts import untracked, user_git
from idumb.git.checkouts.places import Pair, Tampered
from idumb.git.checkouts.provided import Provided
from idumb.git.checkouts.tree_files import ATTRIBUTES, SHOWN, CheckoutGitDir, Submodules, TreeFiles
from idumb.git.checkouts.untracked import Prepared
from idumb.git.checkouts.user_git import VisibleGit
from idumb.git.discover import Worktree
from idumb.git.git_dir import INDEX
from idumb.git.tree_objects import PROGRAM
from idumb.git.trees import CheckoutTrees, GitTrees
from idumb.system import child_process, clock, private_folders, process_end, process_tree

BUILD, PROOF, PROVE = "build", "proof", "prove"
"""The uses of a checkout: PROVE is for checks of a fresh clone."""
MARK = "attempt"
"""The file in idumb's git folder that says that an attempt works in a checkout."""
_MANY = 1000
_CHECKED = "checked"
_RUN = re.compile(r"/runs/([^/]+)/")
_REF = re.compile(r"refs/idumb(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+")
_FINAL = frozenset(
    {"git.object-missing", "system.full", "checkout.leads-back", "checkout.missing", "checkout.too-large"}
)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Additions(NamedTuple):
    """What a checkout has besides its tree.

    - `provided`: patterns of ignored paths to copy from the working tree `source`, at most `limit` bytes of them.
    - `is_cached` says which untracked paths of the project stay when the tree changes.
    - `plain`: files are as in a fresh clone, and the user's git settings take no part.
    - `needed`: those of them that must be there. `note` tells the user what took time.
    - `variables` of the user that programs see; none leads into his working tree. Checks have a PATH of their own.
    """

    provided: Sequence[str] = ()
    limit: int = 0
    is_cached: Callable[[str], bool] = lambda _: False
    source: Worktree | None = None
    plain: bool = False
    note: Callable[[str], None] = lambda _: None
    needed: Sequence[str] = ()
    variables: Mapping[str, str] = MappingProxyType({})


class Checkout:
    """The checkout of a `pair` for one `use`. `user` are the trees of the user's working tree.

    - `top` is the checkout, `root` the project's folder in it.
    - `trees` are its files as trees.
    - What is there besides the tree: `provided`, `prepared`, and `cached`, which stayed from earlier trees. `missing`
      has a sentence for each submodule without files.

    Show a tree, then let programs work. Call `renew` before a program that must not see what earlier ones left.
    """

    in_place = False

    def __init__(self, user: GitTrees, pair: Pair, use: str, additions: Additions) -> None:
        worktree = self._user = user.repository.worktree
        self._use = use
        self._is_cached, self._note = additions.is_cached, additions.note
        folder = self._folder = pair.folder(use)
        self.top = folder.path
        self.root, self._home = user.paths.root(self.top), user.paths.root(worktree.root)
        self._paths = user.paths
        settings = user_git.of_fresh_clone(worktree) if additions.plain else user_git.read(worktree)
        trusts = use == BUILD
        self._git = CheckoutGitDir(folder.git_dir, folder.require, worktree.objects, settings, trusts_index=trusts)
        self._files = TreeFiles(self._git, user.repository)
        self._submodules = Submodules(self._git, worktree)
        self._visible = VisibleGit(user.repository, settings)
        source = additions.source or worktree
        rules, needed = ([*map(self._paths.rule, each)] for each in (additions.provided, additions.needed))
        seen = {name: value for name, value in additions.variables.items() if use == BUILD or name != "PATH"}
        self._provided = Provided(source, rules, additions.limit, self._git.path, needed=needed, variables=seen)
        self._prepared = Prepared(self._git.path)
        self.trees = CheckoutTrees(user, self._git, self.top, f"{use}-{pair.number}", self.checked_out)
        self._shown: tuple[str, str | None] | None = None  # the tree, and the commit below it
        self._clean: dict[str, untracked.Clean] = {}
        self._is_prepared = False  # for what is shown
        self._is_control = False  # see `renew`
        self._is_stale = use == BUILD  # programs left something; a command begins without what git ignores
        self.provided: tuple[str, ...] = ()
        self.prepared = self._prepared.paths
        self.cached: tuple[str, ...] = ()
        self._keep_left()

    @property
    def git_dir(self) -> str:
        """Return idumb's own git folder for it, which no program uses."""
        return self._git.path

    @property
    def index(self) -> str:
        """Return the path of the index of the tree that is shown."""
        return os.path.join(self._git.path, SHOWN)

    @property
    def missing(self) -> tuple[str, ...]:
        return self._submodules.missing

    def show(self, tree: str, head: str | None) -> Mapping[str, str]:
        """Make the files those of `tree`, on top of the commit `head`. Return the variables that programs need.

        For the same tree as before, what programs left stays, unless `renew` was called. Whatever a program did to the
        folder, another one takes its place. Refusal `git.object-missing`, `system.full` or `git.failed`.
        """
        if self._is_stale or (tree, head) != self._shown or not self._is_refreshed():
            self._user.guard()
            self._shown, self._is_prepared = None, False
            is_new, began = not self._folder.is_known, clock.SystemClock().monotonic()
            try:
                self._show(tree, head)
            except (OSError, errors.Refusal) as problem:
                if _is_final(problem):
                    raise
                self._make()
                self._show(tree, head)
            self._shown, self._is_stale = (tree, head), False
            self._tell(clock.SystemClock().monotonic() - began, is_new=is_new)
        os.makedirs(self.root, exist_ok=True)
        return self.variables

    @property
    def variables(self) -> Mapping[str, str]:
        return self._provided.variables(self.top)

    def _tell(self, seconds: float, *, is_new: bool) -> None:
        """Say what a first use copied, and how long it took; a small tree takes no time to mention."""
        copied = wording.listed(f"{path} ({size / 1e6:.1f} MB)" for path, size in self._provided.copied.items())
        if copied or (is_new and seconds > 1 and len(self._files.tracked) > _MANY):
            words = f", with copies of your {copied}" if copied else ""
            self._note(f"The {self._use} checkout was made in {seconds:.1f} s{words}")

    def _is_refreshed(self) -> bool:
        """Write the `.git` that programs see. Return False if the folder was moved."""
        try:
            self.refresh()
        except (Tampered, OSError):
            return False
        return True

    def _make(self) -> None:
        """Make the folder anew."""
        self._folder.make()
        self._clean.clear()
        self._git.remove(SHOWN)
        self._submodules.forget()
        self.prepared = ()

    def _show(self, tree: str, head: str | None) -> None:
        private_folders.require_no_mounts(self._folder.require())
        self._folder.clear_beside()
        if self._files.show(tree):
            self._clean.clear()
        if "info/sparse-checkout" in self._git.user.files:
            before = tree_objects.tree_of(self.trees.repository, head)
            changed = (each.path for each in tree_objects.changes(self.trees.repository, before, tree))
            there = (path for path in self._files.tracked if os.path.lexists(os.path.join(self._user.root, path)))
            self._files.show_sparse({*changed, *there})
        if self._submodules.show(self._files.submodules()):
            self._clean.clear()
        self.provided = self._provided.bring(self.top, self._tracked())
        rules = self._git.hide((*self.provided, *self.prepared))
        removed, caches = self._sweep()
        if any(path.rpartition("/")[2] == ATTRIBUTES for path in removed):
            self._files.show_again(tree)  # they decided how git checked out the others
        self.cached = self._paths.all_to_project(caches)
        self._visible.show(self.top, head, rules)
        self.trees.begin()
        self.refresh()
        self._note_checked()

    def _sweep(self) -> tuple[list[str], tuple[str, ...]]:
        """Remove what is not in the tree. Between the tasks of a run, a build keeps what git ignores."""
        with self._folder.opened() as opened:
            others = [*untracked.found(self.top, self._kept(), self._clean)]
            if others and self._use == BUILD and not self._is_stale:
                listing = ["ls-files", "-z", "-o", "-i", "--directory", "--exclude-standard"]
                ignored = [os.fsdecode(path.rstrip(b"/")) for path in self._git.required(listing).split(b"\0") if path]
                others = [*untracked.found(self.top, self._kept(ignored), self._clean)]
            return untracked.remove_all(opened, others)

    def _kept(self, paths: Iterable[str] = ()) -> untracked.Kept:
        def is_cached(path: str) -> bool:
            return self._paths.contains(path) and self._is_cached(self._paths.to_project(path))

        kept = frozenset((*paths, *self.provided, *self.prepared))
        folders = self._files.folders | paths_of.folders_above(self._submodules.tracked())
        return untracked.Kept(self._tracked(), folders, kept, is_cached, self._checked())

    def _tracked(self) -> Mapping[str, Entry]:
        inner = self._submodules.tracked()
        return {**self._files.tracked, **inner} if inner else self._files.tracked

    def refresh(self) -> None:
        """Write the `.git` that programs see. Raises Tampered if the folder was moved."""
        with self._folder.opened() as opened:
            self._visible.write(opened, self.index)

    def prepare(self, identity: str, run: Callable[[], None]) -> None:
        """Add what `run` makes of the tree shown, unless it is there from an earlier time.

        That is so if `identity` and the lock files are the same; without lock files, the whole tree counts. Refusal
        `checkout.prepare` if `run` changes files of the tree.
        """
        if self._is_prepared or self._shown is None:
            return

        def install() -> None:
            self.prepared = ()  # if it fails or is killed, the next `show` removes what it made
            run()
            if changed := self.restore():
                raise errors.Refusal(
                    "checkout.prepare",
                    f"checkout.prepare changed {wording.listed(changed)}, which the commit holds",
                    hint="Use a command that installs exactly what the lock file says, such as `npm ci`",
                )

        tracked = self._files.tracked
        locks = [f"{name} {tracked[name].oid}" for name in project_files.install_files(tracked)] or [self._shown[0]]
        key = canonical_json.digest([identity, self.root, *locks])
        self._is_stale = True
        self.prepared = self._prepared.ensure(self.top, key, self._untracked, install, self._shown[0])
        self._is_stale, self._is_prepared = False, True
        self._visible.show(self.top, self._shown[1], self._git.hide((*self.provided, *self.prepared)))
        self.refresh()

    def _untracked(self) -> set[str]:
        kept = self._kept()._replace(paths=frozenset(self.provided))
        others = untracked.found(self._folder.require(), kept, self._clean)
        return {other.path for other in others if not other.cache}

    def renew(self, *, control: bool = False) -> None:
        """Make the next `show` remove what programs left even for the same tree, and in a build what git ignores.

        Until the next call, what a check of a `control` writes in a cache is removed as what a builder writes there.
        """
        self._is_stale, self._is_control = True, control

    def restore(self) -> tuple[str, ...]:
        """Restore the files that a check changed or removed; return those of the tree, as paths of the project."""
        try:
            private_folders.require_no_mounts(self._folder.require())
            changed = [*self._files.restore(), *self._submodules.restore()]
        except (Tampered, OSError):  # a check moved the folder, or removed permissions
            changed, self._shown = [*self._tracked()], None
            self._git.remove(SHOWN)
            self._clean.clear()
        self._note_checked()
        return self._paths.all_to_project(sorted(changed))

    def cleaned(self, path: str, data: bytes) -> str:
        """Return the object that git stores for a file with these bytes."""
        self._require_folder()
        return self._files.cleaned(self._paths.to_repository(path), data)

    def _require_folder(self) -> None:
        """Make the folder anew if a program, or the user, removed or replaced it."""
        try:
            self._folder.require()
        except Tampered:
            self._make()

    def with_ignored(self, tree: str, paths: Iterable[str]) -> str:
        """Return the tree that was just shown, with those of these paths that are there although it lacks them."""
        own = ((path, self._paths.to_repository(path)) for path in paths)
        there, lent = list[str](), tuple(f"{path}/" for path in (*self.provided, *self.prepared))
        for path, stored in own:
            is_in_tree = stored in self._files.tracked or stored in self._files.folders
            if is_in_tree or not os.path.lexists(os.path.join(self.top, stored)):
                continue
            if self._is_cached(path) or f"{stored}/".startswith(lent):
                there.append(path)
            else:  # an earlier attempt left it, and git ignores it
                untracked.remove(self.top, stored)
        return self.trees.scan(there) if there else tree

    def checked_out(self, tree: str, paths: Iterable[str], seen: Sequence[str] = ()) -> str:
        """Return `tree` with these files as git checks them out: what belongs in the user's working tree.

        `seen` are trees that his files had: where git calls one of those unmodified, its bytes count. If git ignores
        modes (`core.fileMode=false`), a file of his stays executable.
        """
        paths = tuple(paths)
        if not self.trees.may_convert(tree, paths):
            return tree
        self._require_folder()
        entries = self._files.checked_out(tree, self._paths.inside(paths), seen)
        if guarded_files.of_repository(self._user).ignores_modes:
            present = {path: path_state.entry_below(self._user.root, path) for path in entries}
            programs = (path for path, entry in present.items() if entry is not None and entry.mode == PROGRAM)
            entries |= {path: Entry(PROGRAM, entries[path].oid) for path in programs}
        return tree_objects.put(self.trees.repository, tree, entries)

    def committed(self, head: str | None, kept: str, paths: Sequence[str]) -> str:
        """Return the tree that a commit of these paths on top of `head` has, with their bytes from the tree `kept`."""
        base = tree_objects.tree_of(self.trees.repository, head)
        self.show(base, head)
        GitTrees.restore(self.trees, kept, base, paths, force=True)  # with these bytes, whatever git checks out
        self._is_stale = True
        return self.trees.overlay(base, self.trees.scan(paths), paths)

    def begin(self, ref: str) -> None:
        """Record that an attempt works here. If it is killed, the next user of the checkout keeps its files as `ref`.

        The next `show` removes what it left, also for the same tree.
        """
        self._git.write(MARK, os.fsencode(ref))
        self._shown = None

    def messages(self, head: str | None) -> tuple[str, ...]:
        """Return the messages of the commits that programs made here on top of `head`, the oldest first."""
        with contextlib.suppress(Tampered, OSError), self._folder.opened() as opened:
            return user_git.messages(opened, head)
        return ()

    def keep(self) -> None:
        """Keep the files of an attempt that was begun and has not ended."""
        if ref := self._git.read(MARK):
            self.trees.snapshot(_kept_as(ref), "what an attempt left that did not end")
            self.end()

    def end(self) -> None:
        """Note that the attempt has ended, and its files are not needed any more: the next `show` removes them."""
        self._git.remove(MARK)
        self._git.remove(INDEX)  # it has the names of files that failed, perhaps with a secret
        self._shown = None

    def _keep_left(self) -> None:
        """Keep the files of an attempt whose command was killed, after its programs ended."""
        ref = self._git.read(MARK)
        if not ref:
            return
        if (run := _RUN.search(ref)) is not None:
            cookies = child_process.run_cookies(run[1], self._home)
            process_end.end_all(process_tree.PLACE_COOKIE, cookies[process_tree.PLACE_COOKIE], folder=self.top)
        if self._folder.is_same:
            self._folder.accept()
            self.trees.snapshot(_kept_as(ref), "what a killed attempt left")
        self.end()

    def _checked(self) -> int:
        """Return when the last check ended, by the time with which the system stamps changes (ns); 0 if none has."""
        try:
            return os.lstat(os.path.join(self._git.path, _CHECKED)).st_mtime_ns
        except OSError:
            return 0

    def _note_checked(self) -> None:
        if not self._is_control:
            self._git.write(_CHECKED, b"x")


def _kept_as(mark: str) -> str:
    """Return the ref to keep files under: that of the mark, or one of its own if the mark was damaged."""
    whole = _REF.fullmatch(mark) and ".." not in mark and ".lock" not in mark
    return mark if whole else f"refs/idumb/left/{canonical_json.digest(mark)[:12]}"


def _is_final(problem: OSError | errors.Refusal) -> bool:
    """Return whether another folder does not help."""
    return problem.code in _FINAL if isinstance(problem, errors.Refusal) else problem.errno in _FULL
