"""What moves the user's branch: a commit of exactly the given paths, a fast-forward, and a new branch for a run.

The git program does it, so the user's filters, hooks and signing apply. `git commit --only` builds the commit from HEAD
and the paths under the index lock, and leaves every other index entry unchanged. Tested with files that become folders
and the reverse, odd names, a dirty index and an empty repository.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pygit2

from idumb.app.ports.repository import CommitAttempt
from idumb.domain import errors
from idumb.domain import paths as path_rules
from idumb.git import git_program, index_file, open_repository
from idumb.git.discover import Repository
from idumb.git.objects import durable_files, tree_objects
from idumb.system.files import file_systems

_NOTHING = "0" * 40


def commit(
    place: Repository,
    repository: pygit2.Repository,
    paths: Sequence[str],
    message: str,
    *,
    hooks: bool,
    allow_empty: bool,
    branch: str | None,
) -> CommitAttempt:
    """Commit the paths. If git refuses, return git's words and leave the index as it was."""
    committable = _committable(place.root, paths)
    if isinstance(committable, str):
        return CommitAttempt(None, committable)
    entries = index_file.entries(place.root, committable)
    tree = tree_objects.tree_of(repository, open_repository.head_of(repository))
    chosen = [
        path
        for path in committable
        if entries[path] or _exists(place.root, path) or tree_objects.entry(repository, tree, path)
    ]
    if not chosen and not allow_empty:
        return CommitAttempt(None, "nothing to commit: git knows none of the paths, and none of them exists")
    new = [path for path in chosen if not entries[path] and _exists(place.root, path)]
    place.guard()
    index = index_file.announce(place, repository, new)
    if isinstance(index, str):
        return CommitAttempt(None, index)
    names, arguments = index_file.literal_pathspecs(chosen), _arguments(chosen, message, allow_empty=allow_empty)
    before = open_repository.head_of(repository)
    # Outside the `try`: after a takeover, the index belongs to the new owner, who may have announced the same files.
    place.guard()
    try:
        result = git_program.write(place.root, arguments, names, hooks=hooks)
    except BaseException:
        index_file.take_back(place, index)
        raise
    words = result.words
    if result.status != 0 and not (
        _was_made(repository, message, before) and index_file.set_to_head(place, repository, chosen)
    ):
        index_file.take_back(place, index)
        refused = words or _wordless(result.status, hooks=hooks)
        # git does not always report a full disk.
        return CommitAttempt(None, refused + file_systems.nearly_full(place.common_dir))
    if hooks:
        _follow_hooks(place, repository, chosen)
    _force(place, branch)
    return CommitAttempt(str(repository.head.target), words)


def _wordless(status: int, *, hooks: bool) -> str:
    """Return git's reason for the refusal. A silent refusal comes from a hook."""
    who = "; perhaps a hook such as pre-commit refused it without a message" if hooks else ""
    return f"git commit ended with status {status}{who}"


def _arguments(paths: Sequence[str], message: str, *, allow_empty: bool) -> list[str]:
    empty = ["--allow-empty"] if allow_empty else []
    source = index_file.FROM_STDIN if paths else ()
    return ["commit", "--quiet", "--only", "--cleanup=verbatim", *empty, f"--message={message}", *source]


def _was_made(repository: pygit2.Repository, message: str, before: str | None) -> bool:
    """Return whether git failed after it had made the commit: it moves the branch first and writes the index last.

    The message alone proves nothing: the commit `before` may have the same one.
    """
    made = open_repository.head_of(repository)
    if made is None:
        return False
    head = repository[made].peel(pygit2.Commit)
    parents = [str(oid) for oid in head.parent_ids]
    return parents == ([] if before is None else [before]) and bool(head.message.strip() == message.strip())


def _follow_hooks(place: Repository, repository: pygit2.Repository, paths: Sequence[str]) -> None:
    """Refresh the index after a hook that reformats: git leaves the entries from before the hook.

    Only for files that equal the commit, so that nothing is lost that the user stages meanwhile.
    """
    stale = [*index_file.staged(place, repository, paths)]
    if stale:
        other = git_program.output(place.root, [*git_program.CHANGED_FILES, "HEAD", "--", *stale])
        index_file.set_to_head(
            place, repository, [path for path in stale if os.fsencode(path) not in other.split(b"\0")]
        )


def _committable(root: str, paths: Sequence[str]) -> list[str] | str:
    """Omit paths that are folders now: a folder's name would include everything in it.

    So would a name below a link. With the link itself, git takes it out.
    """
    unique_paths = sorted(set(paths))
    links = {path for path in unique_paths if os.path.islink(os.path.join(root, path))}
    unique_paths = [path for path in unique_paths if links.isdisjoint(path_rules.folders_above(path))]
    places = {path: os.path.join(root, path) for path in unique_paths}
    folders = {path for path, place in places.items() if os.path.isdir(place) and not os.path.islink(place)}
    present = [path for path in unique_paths if path not in folders and _exists(root, path)]
    for folder in folders:
        if not any(path.startswith(folder + "/") for path in present):
            return f"{folder} is a folder now, and the commit includes none of its files"
    return [path for path in unique_paths if path not in folders]


def _exists(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path))


def begin(place: Repository, repository: pygit2.Repository, name: str, commit: str | None) -> None:
    """Create a branch at `commit` and put HEAD on it. Index and files stay. If it was killed, repeat it.

    Refusal `git.branch-name`, `git.branch-exists` or `git.failed`.
    """
    if git_program.read(place.root, ["check-ref-format", "--branch", name]).status != 0:
        raise errors.Refusal(
            "git.branch-name", f"{name!r} is not a valid branch name.", hint="Correct git.branch_name or --branch"
        )
    ref = f"refs/heads/{name}"
    if commit is not None:
        _create(place, repository, name, ref, commit)
    place.guard()
    git_program.change(place.root, ["symbolic-ref", "-m", f"idumb: on to {name}", "HEAD", ref])
    durable_files.force([os.path.join(place.git_dir, "HEAD"), place.git_dir])


def _create(place: Repository, repository: pygit2.Repository, name: str, ref: str, commit: str) -> None:
    present = repository.references.get(ref)
    if present is not None and (str(present.resolve().target) != commit or _is_elsewhere(repository, name)):
        raise errors.Refusal(
            "git.branch-exists",
            f"Branch {name} already exists, and it is not where HEAD is.",
            hint=f"git switch {name}, or choose another name: --branch NAME",
        )
    if present is None:
        place.guard()
        git_program.change(place.root, ["update-ref", ref, commit, _NOTHING])
        _force(place, ref)


def _is_elsewhere(repository: pygit2.Repository, name: str) -> bool:
    branch = repository.branches.local.get(name)
    return branch is not None and bool(branch.is_checked_out())


def _force(place: Repository, branch: str | None) -> None:
    """Force index and branch, then their folders: git forces the branch's file only, and a power cut would lose it.

    For a commit of given paths, git does not even force the index, whose rename must not precede its bytes.
    """
    files = [os.path.join(place.git_dir, index_file.INDEX)]
    folders = [place.git_dir]
    if branch is not None:
        files.append(os.path.join(place.common_dir, branch))
        folder = os.path.dirname(files[-1])
        while len(folder) >= len(place.common_dir):
            folders.append(folder)
            folder = os.path.dirname(folder)
    durable_files.force(path for path in files if os.path.exists(path))
    durable_files.force(folder for folder in folders if os.path.exists(folder))
