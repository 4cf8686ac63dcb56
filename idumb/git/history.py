"""HEAD, obstacles, uncommitted files, guarded files, and commits on the user's branch."""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pygit2
from msgspec.structs import replace
from pygit2.enums import SortMode

from idumb.app.ports import CommitAttempt, Head, RepositoryState
from idumb.domain.proof.ledger import Entry
from idumb.domain.runs import run
from idumb.git import git_program, guarded_files, open_repository, refs, stale_locks, status, tree_objects
from idumb.git.discover import OWN_REFS, Project, Worktree
from idumb.git.open_repository import CheckedRepository
from idumb.git.projects import ProjectPaths
from idumb.system.redaction import Redactor

if TYPE_CHECKING:
    from idumb.git.checkouts.checkout import Checkout

_PROJECT = "Idumb-Project"
_MOST_COMMITS = 1_000
_MOST_TRAILERS = 10_000
"""Commits of which the trailers are read."""
_TRAILER = re.compile(r"^(Idumb-[A-Za-z-]+): *(.*)$")


class GitHistory:
    """Reads with libgit2, commits with the git program."""

    def __init__(
        self,
        worktree: Worktree,
        redactor: Callable[[], Redactor] = Redactor,
        project: Project | None = None,
        proof: Callable[[], Checkout] | None = None,
    ) -> None:
        """`redactor` removes known secrets from commit messages. Paths, refs and commits are those of `project`.

        `proof` opens the checkout in which hooks of commits run.
        """
        self._proof = proof
        self._worktree = worktree
        self._project = project or Project(worktree)
        self._paths = ProjectPaths(self._project.folder)
        self._redactor = redactor
        self._guarded = guarded_files.of_repository(worktree)

    @functools.cached_property
    def repository(self) -> CheckedRepository:
        return open_repository.repository(self._worktree)

    def head(self) -> Head:
        name = open_repository.branch_of(self.repository)
        branch = None if name is None else name.removeprefix("refs/heads/")
        return Head(open_repository.head_of(self.repository), branch)

    def state(self) -> RepositoryState:
        def shown(name: str) -> str:
            return self._paths.to_project(name) if run.is_in_tree(name) else name

        guarded = {shown(name): digest for name, digest in self._guarded.digests().items()}
        rows = {shown(name): settings for name, settings in self._guarded.configuration.settings.items()}
        return RepositoryState(self.head(), guarded, rows)

    def hooks_in_tree(self) -> frozenset[str]:
        """Return the paths of hooks that git runs from the working tree."""
        return frozenset(self._paths.all_to_project(self._guarded.hooks_in_tree()))

    def descends(self, commit: str, tip: str | None = None) -> bool:
        """Return whether HEAD, or `tip`, is or descends from this commit."""
        present = tip or open_repository.head_of(self.repository)
        if present is None or commit not in self.repository or present not in self.repository:
            return False
        with open_repository.refusals(present):
            return present == commit or self.repository.descendant_of(present, commit)

    def is_head(self, name: str) -> bool:
        """Return whether a name that git knows, such as a tag, stands for the commit of HEAD."""
        arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        return git_program.read(self._worktree.root, arguments).out.decode().strip() == str(self.head().commit)

    def is_named(self, commit: str) -> bool:
        """Return whether HEAD, a branch or a tag reaches a commit, so that a clone has it."""
        arguments = ["for-each-ref", "--count=1", f"--contains={commit}", "refs/heads", "refs/remotes", "refs/tags"]
        return self.descends(commit) or bool(git_program.read(self._worktree.root, arguments).out)

    def staged(self, paths: Sequence[str]) -> Mapping[str, Entry | None]:
        """Return the paths that are staged, with their entries; None if the deletion is staged."""
        staged, asked = status.staged(self.repository), self._paths.all_to_repository(paths)
        return {self._paths.to_project(path): staged[path] for path in asked if path in staged}

    def committed(self, base: str | None, files: Mapping[str, Entry]) -> Mapping[str, Container[str]]:
        """Return the paths of these files that `base` or a later commit of HEAD has, with the ids of their blobs.

        For a file that `base` or HEAD has, other ids may be omitted.
        """
        head, stored = open_repository.head_of(self.repository), self._paths.all_to_repository(files)
        if head is None:
            return {}
        known = [base] if base is not None and base in self.repository else []
        found: dict[str, set[str]] = {}
        for tree in [tree_objects.tree_of(self.repository, commit) for commit in (head, *known)]:
            for path in stored:
                if (entry := tree_objects.entry(self.repository, tree, path)) is not None:
                    found.setdefault(path, set()).add(entry.oid)
        missing = [p for p, entry in zip(stored, files.values(), strict=True) if entry.oid not in found.get(p, ())]
        shown = ["--raw", "-z", "--no-abbrev", "--no-renames", "--diff-merges=separate", "--root", "--format="]
        revisions = [f"--max-count={_MOST_COMMITS}", head, *(f"^{commit}" for commit in known)]
        command = ["log", *shown, *revisions, "--", *missing]
        rows = iter(git_program.output(self._worktree.root, command).split(b"\0") if missing else ())
        for about in rows:
            if about.startswith(b":"):
                path, ids = os.fsdecode(next(rows)), about.split(b" ")[2:4]
                found.setdefault(path, set()).update(oid.decode("ascii") for oid in ids if oid.strip(b"0"))
        return {self._paths.to_project(path): found[path] for path in stored if path in found}

    def tree_of(self, commit: str | None) -> str:
        """Return the tree of a user's commit; the empty tree for None."""
        return tree_objects.tree_of(self.repository, commit)

    def tree_before(self, commit: str) -> str:
        """Return the tree of the first parent of a commit; the empty tree without one."""
        parents = self.repository[commit].peel(pygit2.Commit).parent_ids
        return self.tree_of(str(parents[0]) if parents else None)

    def require_usable(self) -> None:
        """Refuse a state in which nothing may run, such as a merge or unmerged entries."""
        status.require_usable(self._worktree)

    def in_progress(self) -> str:
        """Return which operation of git is in progress, such as a merge; "" if none is."""
        operation = open_repository.in_progress(self._worktree)
        return operation.message if operation else ""

    def require_supported(self) -> None:
        """Refuse a repository that idumb cannot use, because of its format, owner or working tree."""
        open_repository.require_supported(self._worktree)

    def identity_problem(self) -> str | None:
        """Return why git cannot commit for this user, or None."""
        for variable in ("GIT_COMMITTER_IDENT", "GIT_AUTHOR_IDENT"):
            result = git_program.read(self._worktree.root, ["var", variable])
            if result.status != 0:
                return result.words.rpartition("fatal: ")[2].partition("\n")[0]
        return None

    def head_tree(self) -> str:
        """Return the tree of HEAD's commit; the empty tree before the first commit."""
        return status.head_tree(self.repository)

    def ignored(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths that git ignores and does not track."""
        found = status.ignored(self._worktree, self._paths.all_to_repository(paths))
        return frozenset(self._paths.all_to_project(found))

    def repositories(self, places: Iterable[str]) -> tuple[str, ...]:
        """Return every submodule, and each of `places` and their parent folders that is a nested repository.

        A folder with tracked files is not one. Reads only.
        """
        return self._paths.all_to_project(status.repositories(self._worktree, self._paths.all_to_repository(places)))

    def added(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the paths of files that HEAD lacks, staged or untracked but not ignored."""
        head, stored = status.head_tree(self.repository), self._paths.to_repository
        missing = [path for path in paths if tree_objects.entry(self.repository, head, stored(path)) is None]
        return tuple(path for path in self.uncommitted(missing) if path in missing)

    def uncommitted(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the paths (globs allowed) with changes against HEAD in the working tree or index.

        Compare as git does, with filters applied, so that a CRLF checkout is no change.
        """
        return self._paths.all_to_project(status.changed(self._worktree, self._paths.all_to_repository(paths)))

    def make(
        self, tree: str, head: str | None, message: str, *, hooks: bool, wrote: Callable[[str], bool] = lambda _: False
    ) -> CommitAttempt:
        """Make a commit of `tree` on top of `head`, with the user's identity, signing and hooks. No branch moves.

        Hooks run in a checkout. None runs if this run `wrote` one of those in the tree.
        """
        from idumb.git.checkouts.commits import Commits

        if self._proof is None:
            raise AssertionError("nothing is committed without a checkout")
        unrun = tuple(sorted(filter(wrote, self.hooks_in_tree()))) if hooks else ()
        text = message.rstrip()
        if self._project.folder and _TRAILER.match(text.rpartition("\n")[2]):
            message = f"{text}\n{_PROJECT}: {self._project.folder}\n"  # two projects may have a phase 1
        message = self._redactor().redact(message)
        commits, own = Commits(self.repository, self._proof), _trailers(message)
        made = commits.make(tree, head, message, hooks=hooks and not unrun)
        said = message if made.commit is None else self.repository[made.commit].message
        if own.items() - _trailers(said).items():  # a hook removed them, or added a last paragraph
            text = f"{said.rstrip()}\n\n" + "".join(f"{name}: {value}\n" for name, value in own.items())
            again = commits.make(made.tree, head, text, hooks=False)
            made = again if again.commit is None else replace(again, words=made.words)
        return replace(made, unrun=unrun) if unrun else made

    def advance(
        self, name: str | None, commit: str, expected: str | None, message: str, own: Collection[str] = ()
    ) -> str:
        """Move the branch `name` from `expected` to a commit on top of it; return why, if HEAD or git refuses.

        Before it moves, the index follows where the user staged nothing, and for the paths `own`. `message` is for the
        reflog.
        """
        if (present := self.head().branch) != name:
            return f"HEAD is on {present or 'no branch'}, and no longer on {name or 'a detached commit'}"
        full = open_repository.branch_of(self.repository)
        return refs.advance(self.repository, full, commit, expected, message, own)

    def unfollow(self, tree: str) -> None:
        """Give the index HEAD's entries where it has those of `tree`: it followed a commit that was never reached."""
        status.follow(self.repository, tree, status.head_tree(self.repository))

    def begin_branch(self, name: str) -> None:
        """Create a branch at HEAD and switch to it; index and working tree do not change.

        Refusal `git.branch-name`, or `git.branch-exists` if it exists at another commit.
        """
        refs.begin(self.repository, name, open_repository.head_of(self.repository))

    def trailers_since(self, base: str | None) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """Return (commit, its Idumb-* trailers) from HEAD back to `base`, newest first, for commits that have any.

        If `base` was pruned after history was rewritten, go back to the first commit.
        """
        head = open_repository.head_of(self.repository)
        with open_repository.refusals(str(head)):
            walker = self.repository.walk(head, SortMode.TOPOLOGICAL)
            if base is not None and base in self.repository:  # otherwise it was pruned, and hides no commit
                walker.hide(base)
            commits = itertools.islice(walker, _MOST_TRAILERS)
            rows = [(str(c.id), _trailers(c.raw_message.decode("utf-8", "replace"))) for c in commits]
        return tuple(row for row in rows if row[1] and row[1].get(_PROJECT, "") == self._project.folder)

    def refs(self, prefix: str) -> Mapping[str, str]:
        """Return the refs, and below `refs/idumb/` the names of what idumb keeps, with their objects."""
        if prefix.startswith(OWN_REFS):
            return refs.below(self.repository, prefix)
        found = [name for name in self.repository.references if name.startswith(prefix)]
        return {name: str(self.repository.references[name].resolve().target) for name in found}

    def kept(self, name: str) -> str | None:
        """Return the object that idumb keeps under a name below `refs/idumb/`; None if there is none."""
        return refs.find(self.repository, name)

    def keep_ref(self, ref: str, oid: str) -> None:
        """Keep an existing object under a name below `refs/idumb/`, durably."""
        refs.keep(self.repository, ref, oid)

    def fold(self, run: str) -> None:
        """Move the names of trees of a finished run into one tree; `run` is their prefix. They are found as before."""
        refs.fold(self.repository, run)

    def free(self, run: str, is_kept: Callable[[str], bool]) -> None:
        """Drop the names below the prefix `run` of a finished run, except the trees whose name `is_kept`."""
        refs.free(self.repository, run, is_kept)

    def kept_bytes(self) -> int | None:
        """Return how many bytes on disk only `refs/idumb/` keeps; None if git cannot tell, as with missing objects."""
        return refs.bytes_on_disk(self._worktree)

    def remove_stale_files(self, since: str | None) -> tuple[str, ...]:
        """Remove locks and temporary files of a killed operation that started at `since`; return their paths.

        Files of a live process stay. With None, only idumb's own files are removed.
        """
        from idumb.git.checkouts import copies

        removed = stale_locks.clear(self._worktree, self.head().branch, since)
        return (*removed, *copies.clear(self._worktree))


def _trailers(text: str) -> Mapping[str, str]:
    if "Idumb-" not in text:
        return {}
    last = text.rstrip().rpartition("\n\n")[2]
    matches = (_TRAILER.match(line) for line in last.splitlines())
    return {match[1]: match[2].strip() for match in matches if match}
