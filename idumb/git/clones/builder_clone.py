"""The private clone of a builder that commits: create it, read it after the attempt, copy its commits as objects.

When the builder has ended, its git folder is moved aside and replaced by one of idumb's own before git runs in the
clone: the builder's configuration, hooks, index and refs are never used.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping

import pygit2
from pygit2.enums import ObjectType

from idumb import lazy_pattern
from idumb.app.ports.repository import BuilderCommits
from idumb.domain.proof import builder_commits
from idumb.domain.proof.ledger import Change, Entry
from idumb.git import git_program, open_repository, refs
from idumb.git.clones import agent_repository, clone, clone_places, dry_run_clone
from idumb.git.clones.agent_repository import Objects, Unusable
from idumb.git.clones.clone import BRANCH, TAKEN, Clone
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.trees import GitTrees
from idumb.system.files import private_folders

_WHO = lazy_pattern.compile(r"(.*) <(.*)> [0-9]+ [+-][0-9]{4}")


class BuilderClone:
    """The clone of a run whose builders commit. Their commits are examined and copied as objects.

    Only the branch and the objects of the builder's git folder are used, and none of its hooks run. Refusal
    `git.clone-gone` if the folder of all clones was replaced. `redact` removes known secrets. `base` is the commit that
    the clone starts from; None without commits.

    Paths of the commits are those of the project; others begin with `../`.
    """

    def __init__(self, repository: Repository, user: GitTrees, copy: Clone, redact: Callable[[str], str]) -> None:
        self._repository = repository
        self._user = user
        self._copy = copy
        self._redact = redact
        self._folder = copy.top
        self._paths = user.paths
        self._aside = self._folder + TAKEN
        self.base: str | None = None

    def begin(self, commit: str | None) -> None:
        """Reset the clone's files, index and branch to this commit."""
        self._copy.renew(commit)
        self._configure()
        self.base = commit

    def take(self) -> BuilderCommits:
        """Replace the builder's git folder with idumb's own, and read the commits.

        Call it after the builder's processes ended and before any other method.
        """
        clone_places.require_plain(os.path.dirname(self._folder))
        if not os.path.isdir(self._folder) or os.path.islink(self._folder):
            self._copy.renew(self.base)
            self._configure()
            return self._refused("it removed its clone, or put something else in its place")
        self._repository.guard()
        problem = move_git_folder_aside(self._folder)
        clone.make_git_folder(self._repository, self._folder, self.base)
        self._copy.make_folder()
        self._configure()
        if problem:
            return self._refused(problem)
        try:
            agent_repository.require_plain(
                self._aside, open_repository.alternates(open_repository.lenders(self._repository))
            )
            last = agent_repository.tip(self._aside, BRANCH)
            if last is None and self.base is not None:
                return self._refused(f"its branch {BRANCH} is gone")
            commits = () if last is None else self._chain(last)
        except Unusable as unusable:
            return self._refused(str(unusable))
        wrong = builder_commits.problem(commits, self.base) or self._secret_in(commits)
        if not wrong and commits:
            wrong = self._fill_index(last)
        return BuilderCommits(self.base, None if wrong else last, commits, wrong)

    def _refused(self, problem: str) -> BuilderCommits:
        return BuilderCommits(self.base, None, problem=problem)

    def uncommitted(self, offered: BuilderCommits, base: str, candidate: str) -> tuple[str, ...]:
        """Paths that differ between the last commit and the candidate, after git's filters.

        Paths that neither the commits nor the attempt changed since the task base are omitted.
        """
        repo = pygit2.Repository(self._folder)
        repo.odb.add_disk_alternate(os.path.join(self._aside, "objects"))
        before = tree_objects.tree_of(self._user.repository, self.base)
        last = offered.commits[-1].tree if offered.commits else before
        differ: list[Change] = []
        for change in tree_objects.changes(repo, last, candidate):
            path = change.path
            committed = tree_objects.entry(repo, before, path) != tree_objects.entry(repo, last, path)
            if committed or tree_objects.entry(repo, base, path) != tree_objects.entry(repo, candidate, path):
                differ.append(change)
        filtered = self._filtered(change for change in differ if _same_kind(change))
        edited = (edit.path for edit in differ if edit.path not in filtered or filtered[edit.path] != edit.old)
        return self._paths.all_shown(edited)

    def keep(self, offered: BuilderCommits, ref: str) -> str:
        """Copy the objects to the user's repository, forced to disk and referenced by `ref`.

        Return why that failed, or "".
        """
        self._repository.guard()
        try:
            bring_home(self._user, Objects(odb_of(self._repository, self._aside)), offered)
        except Unusable as unusable:
            return str(unusable)
        if offered.tip is not None:
            refs.move(self._user.repository, self._repository, ref, offered.tip)
        self._settle(offered.tip)
        return ""

    def drop(self) -> None:
        """Drop the commits: move the clone to its base, and keep the files."""
        self._settle(self.base)

    def _configure(self) -> None:
        """Set what decides how git sees files, and the identity of commits."""
        git_dir = os.path.join(self._folder, ".git")
        settings = git_program.settings(self._repository.root)
        dry_run_clone.copy_settings(settings, git_dir)
        target = pygit2.Config(os.path.join(git_dir, "config"))
        target["core.hooksPath"] = os.path.join(git_dir, "hooks")  # disable any hooks that the user configured globally
        if any(name.startswith("filter.lfs.") for name in settings):
            # The commits outlive the clone; without the bytes of LFS files they could not be pushed.
            store = os.path.expanduser(settings.get("lfs.storage", "lfs"))
            target["lfs.storage"] = os.path.join(self._repository.common_dir, store)
        identity = git_program.read(self._repository.root, ["var", "GIT_COMMITTER_IDENT"])
        who = _WHO.fullmatch(identity.out.decode("utf-8", "replace").strip()) if identity.status == 0 else None
        if who is not None:
            target["user.name"], target["user.email"] = who[1], who[2]

    def _chain(self, last: str) -> tuple[builder_commits.Commit, ...]:
        objects = Objects(odb_of(self._repository, self._aside))
        commits = agent_repository.chain(objects, last, self.base)
        if builder_commits.problem(commits, self.base):
            return commits
        before, complete = tree_objects.tree_of(self._user.repository, self.base), []
        for commit in commits:
            changes = tree_objects.changed_files(objects.tree, before, commit.tree)
            complete.append(commit.with_changes(self._paths.rows(changes)))
            before = commit.tree
        return tuple(complete)

    def _secret_in(self, commits: tuple[builder_commits.Commit, ...]) -> str:
        """Return which commit holds a known secret, or nothing."""
        for commit in commits:
            text = f"{commit.author}\n{commit.committer}\n{commit.message}"
            if self._redact(text) != text:
                return f"commit {commit.id[:12]} holds a secret in its message or names"
        return ""

    def _fill_index(self, last: str | None) -> str:
        """Make git treat the committed files as tracked. Return why git cannot, or ""."""
        clone.borrow(self._folder, [*open_repository.lenders(self._repository), os.path.join(self._aside, "objects")])
        result = git_program.write(self._folder, ["read-tree", str(last)])
        return f"git cannot read its last commit: {result.words}" if result.status != 0 else ""

    def _filtered(self, changes: Iterable[Change]) -> Mapping[str, Entry]:
        """Return the bytes that git's filters (line endings, LFS) make of the files in the clone, as the user has them.

        The clone's attributes decide, because the task may have changed them. Files that a filter cannot read are
        missing.
        """
        files = [(c.path, c.new.mode) for c in changes if c.new is not None and not self._waits_for_attributes(c.path)]
        if not files:
            return {}
        names = b"".join(_line(path) for path, _ in files)
        ids = git_program.read(self._folder, ["hash-object", "--stdin-paths"], names).out.decode("ascii").split()
        return {path: Entry(mode, oid) for (path, mode), oid in zip(files, ids, strict=False)}

    def _waits_for_attributes(self, path: str) -> bool:
        """Return whether git would block, because the builder left a pipe where attributes are read."""
        above = [path[: at + 1] for at, letter in enumerate(path) if letter == "/"]
        return any(_is_special(os.path.join(self._folder, folder, ".gitattributes")) for folder in ("", *above))

    def _settle(self, commit: str | None) -> None:
        """Point branch and index of the clone to a commit of the user's repository; nothing is borrowed."""
        clone.borrow(self._folder, open_repository.lenders(self._repository))
        clone.put_head(self._folder, commit)
        private_folders.remove_tree(self._aside)


def move_git_folder_aside(folder: str) -> str:
    """Move the builder's git folder aside. Return why nothing can be taken from it, or ""."""
    private_folders.remove_tree(folder + TAKEN)
    here = os.path.join(folder, ".git")
    try:
        os.chmod(folder, 0o700)
        if not stat.S_ISDIR(os.lstat(here).st_mode):
            os.unlink(here)
            return "its .git is no longer a folder"
        os.chmod(here, 0o700)  # a folder without owner permissions cannot be moved to another folder
        os.rename(here, folder + TAKEN)
    except FileNotFoundError:
        return "it removed the git folder of its clone"
    return ""


def odb_of(repository: Repository, aside: str) -> pygit2.Odb:
    """Return the objects of a builder's git folder, and the user's behind them."""
    odb = pygit2.Odb(os.path.join(aside, "objects"))
    odb.add_disk_alternate(os.path.join(repository.common_dir, "objects"))
    return odb


def bring_home(user: GitTrees, objects: Objects, offered: BuilderCommits) -> None:
    """Write the objects of the commits into the user's repository, forced to disk; Unusable if one is unsound."""
    before = tree_objects.tree_of(user.repository, offered.base)
    for commit in offered.commits:
        for kind, oid in agent_repository.new_objects(objects, before, commit.tree):
            _bring(user, objects, kind, oid)
        _bring(user, objects, ObjectType.COMMIT, bytes.fromhex(commit.id))
        before = commit.tree


def _bring(user: GitTrees, objects: Objects, kind: ObjectType, oid: bytes) -> None:
    if kind != ObjectType.COMMIT and user.writer.has(pygit2.Oid(oid)):
        return
    if user.writer.raw(kind, objects.read(oid, kind)) != oid:
        raise Unusable(f"object {oid.hex()[:12]} does not match its id")


def _same_kind(change: Change) -> bool:
    """Return whether it is a file before and after, of the same mode."""
    modes = {entry.mode if entry else 0 for entry in (change.old, change.new)}
    return len(modes) == 1 and modes <= {tree_objects.FILE, tree_objects.PROGRAM}


def _is_special(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _line(path: str) -> bytes:
    """Return a line with the path as git reads it, quoted if necessary."""
    data = os.fsencode(path)
    if b"\n" not in data and not data.startswith(b'"'):
        return data + b"\n"
    quoted = data.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + quoted + b'"\n'
