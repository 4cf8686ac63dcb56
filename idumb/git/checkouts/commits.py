"""Commits, made beside the user's working tree: with his hooks, identity and signing, and without moving his branch.

Without hooks, git makes the commit from the tree alone. Hooks run in the proof checkout, which then shows the tree:
they change the commit, but not the user's files. They are those that the user has now.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pygit2
from msgspec.structs import replace

from idumb.app.ports import CommitAttempt
from idumb.git import disk, git_program, guarded_files, refs
from idumb.git.checkouts import user_git
from idumb.git.git_dir import EXCLUDE, GitDir
from idumb.system import escaping, machine, private_folders

if TYPE_CHECKING:
    from idumb.git.checkouts.checkout import Checkout
    from idumb.git.open_repository import CheckedRepository

_OF_MESSAGE = ("prepare-commit-msg", "commit-msg")
_HOOKS = ("pre-commit", *_OF_MESSAGE, "post-commit", "reference-transaction")
_TRUE = frozenset({"true", "yes", "on", "1"})
_BY_HOOK = 1
"""git's exit status if a hook refused; git itself fails with another one."""
_OWN = ("core.worktree", "core.bare", "core.repositoryformatversion", "core.fsmonitor", "index.")
_OWN_SECTIONS = ("extensions.", "include.", "includeif.", "gc.", "maintenance.")
_FILES = (EXCLUDE, "info/attributes", "info/sparse-checkout", "shallow")


class Commits:
    """Those of a repository; `proof` opens the checkout in which hooks run."""

    def __init__(self, repository: CheckedRepository, proof: Callable[[], Checkout]) -> None:
        self._worktree = repository.worktree
        self._repository = repository
        self._proof = proof

    def make(self, tree: str, head: str | None, message: str, *, hooks: bool) -> CommitAttempt:
        """Make a commit of `tree` on top of `head`. The objects are on disk; no branch is moved."""
        known = guarded_files.settings(self._worktree).items()
        settings = {name: value for name, value in known if not name.startswith((*_OWN, *_OWN_SECTIONS))}
        folder = self._hooks(settings) if hooks else ""
        if folder:
            made = self._with_hooks(tree, head, message, settings, folder)
        else:
            signs = settings.get("commit.gpgsign", "").lower() in _TRUE
            made = self._plain(tree, head, message, signs=signs)
        if made.commit is None and not made.by_hook:
            words = made.words + machine.nearly_full(self._worktree.common_dir)
            return replace(made, words=words)
        return made

    def _plain(self, tree: str, head: str | None, message: str, *, signs: bool) -> CommitAttempt:
        parent = ["-p", head] if head else []
        arguments = ["commit-tree", *parent, *(["-S"] if signs else []), "-F", "-", tree]
        result = git_program.write(self._worktree.root, arguments, message.encode("utf-8", "surrogateescape"))
        if result.status != 0:
            disk.explain(result.words, self._worktree.common_dir)
            return CommitAttempt(None, result.words or f"git commit-tree ended with status {result.status}", tree)
        commit = result.out.decode("ascii").strip()
        disk.force_objects(self._worktree.objects, {commit})
        return CommitAttempt(commit, tree=tree)

    def _hooks(self, settings: Mapping[str, str]) -> str:
        """Return the folder of the user's hooks; "" if it has none that a commit runs."""
        chosen = settings.get(guarded_files.HOOKS_PATH, os.path.join(self._worktree.common_dir, "hooks"))
        folder = os.path.join(self._worktree.root, os.path.expanduser(chosen))
        return folder if _has(folder, _HOOKS) else ""

    def _with_hooks(
        self, tree: str, head: str | None, message: str, settings: Mapping[str, str], hooks: str
    ) -> CommitAttempt:
        proof = self._proof()
        proof.renew()
        proof.show(tree, head)
        # A hook may call `git gc`, and this folder has no names of what idumb keeps.
        own = {**settings, guarded_files.HOOKS_PATH: hooks, "gc.pruneexpire": "never"}
        folder = self._folder(proof, head, own)
        words = os.path.join(folder.path, "message")  # an argument of a program has at most 128 KiB
        folder.write("message", message)
        arguments = ["commit", "--quiet", "--allow-empty", "--cleanup=verbatim", f"--file={words}"]
        result = git_program.with_hooks(proof.top, arguments, folder.variables())
        if result.status == 0:
            return self._made(folder, tree, head, result.words)
        silent = f"git commit ended with status {result.status}; perhaps a hook such as pre-commit refused it silently"
        said, by_hook = result.words or silent, result.status == _BY_HOOK
        left = (_left(folder) if by_hook else "") or tree
        perhaps, again = by_hook and _has(hooks, _OF_MESSAGE), ["hook", "run", "--ignore-missing", "pre-commit"]
        if perhaps and left == tree and git_program.with_hooks(proof.top, again, folder.variables()).status == 0:
            words = f"{said}\n[a hook refused the message, which git.message in .idumb/config.yaml forms]"
            return CommitAttempt(None, words, tree)  # no change of the work corrects it
        return CommitAttempt(None, said, left, by_hook=by_hook)

    def _made(self, folder: GitDir, tree: str, head: str | None, words: str) -> CommitAttempt:
        commit = _asked(folder, ["rev-parse", "HEAD"])
        made = self._repository[commit].peel(pygit2.Commit)
        parents = [str(oid) for oid in made.parent_ids]
        if parents != ([head] if head else []):
            said = f"a hook made other commits: the parent of {commit} is {', '.join(parents) or 'missing'}"
            return CommitAttempt(None, said, tree)
        before = [f"^{known}" for known in (tree, head) if known]
        new = _asked(folder, ["rev-list", "--objects", "--no-object-names", commit, *before])
        disk.force_objects(self._worktree.objects, new.split())
        return CommitAttempt(commit, words, str(made.tree_id))

    def _folder(self, proof: Checkout, head: str | None, settings: Mapping[str, str]) -> GitDir:
        """Make the git folder that git and the hooks use: the user's settings and refs, and the index of the tree."""
        folder = GitDir(os.path.join(proof.git_dir, "commit"), lambda: proof.top, self._worktree.objects)
        private_folders.remove_tree(folder.path)
        for name in ("info", "refs", "objects"):
            private_folders.make(os.path.join(folder.path, name))
        folder.put(user_git.ref_files(self._repository, head, refs.of_user(self._worktree)))
        folder.write("config", escaping.git_configuration(settings))
        for name in filter(lambda name: os.path.isfile(os.path.join(proof.git_dir, name)), _FILES):
            shutil.copyfile(os.path.join(proof.git_dir, name), os.path.join(folder.path, name))
        shutil.copyfile(proof.index, os.path.join(folder.path, "index"))
        return folder


def _has(folder: str, hooks: Sequence[str]) -> bool:
    return any(os.access(os.path.join(folder, name), os.X_OK) for name in hooks)


def _left(folder: GitDir) -> str:
    """Return the tree with what hooks that refused changed in the files and the index; "" if git cannot."""
    _asked(folder, ["add", "--update"])
    return _asked(folder, ["write-tree"])


def _asked(folder: GitDir, arguments: Sequence[str]) -> str:
    """Return what git says without hooks; "" if it fails."""
    result = folder.git(arguments)
    return "" if result.status != 0 else result.out.decode("ascii").strip()
