"""Refs below `refs/idumb/`: created or moved with the expected old value, their files and folders forced to disk."""

from __future__ import annotations

import os

import pygit2

from idumb.domain import errors
from idumb.git.discover import Repository
from idumb.git.objects import durable_files

PREFIX = "refs/idumb/"
# What this process made of refs of ours since somebody asked, by shared git folder; None where it deleted one.
_written: dict[str, dict[str, str | None]] = {}


def written(place: Repository) -> dict[str, str | None]:
    """What was written since this was asked last."""
    return _written.pop(place.common_dir, {})


def current(repository: pygit2.Repository, ref: str) -> str | None:
    found = repository.references.get(ref)
    return None if found is None else str(found.target)


def move(repository: pygit2.Repository, place: Repository, ref: str, commit: str) -> None:
    """Create `ref`, or move it from the value that it has now. Refusal `git.ref-moved` when another was faster."""
    if not ref.startswith(PREFIX):
        message = f"idumb writes below {PREFIX} only, not {ref}"
        raise ValueError(message)
    missing = _missing_folders(place.common_dir, ref)
    try:
        found = repository.references.get(ref)
        # Looked at after the old value was read: who takes over between guard and write changes that value.
        place.guard()
        if found is None:
            repository.references.create(ref, commit)
        elif str(found.target) != commit:
            found.set_target(commit)
    except (pygit2.GitError, ValueError) as problem:
        raise errors.Refusal(
            "git.ref-moved", f"{ref} could not be moved to {commit[:12]}: {problem}", hint="idumb status"
        ) from problem
    _written.setdefault(place.common_dir, {})[ref] = commit
    path = os.path.join(place.common_dir, ref)
    durable_files.force([path, os.path.dirname(path), *missing] if os.path.exists(path) else missing)


def delete(repository: pygit2.Repository, place: Repository, ref: str, expected: str) -> None:
    """Delete a ref of ours that still has the expected value. Refusal `git.ref-moved` otherwise."""
    if not ref.startswith(PREFIX):
        message = f"idumb deletes below {PREFIX} only, not {ref}"
        raise ValueError(message)
    found = repository.references.get(ref)
    if found is None:
        return
    if str(found.target) != expected:
        raise errors.Refusal("git.ref-moved", f"{ref} is {found.target}, not {expected}", hint="idumb status")
    place.guard()
    try:
        found.delete()
    except (pygit2.GitError, ValueError) as problem:
        words = f"{ref} could not be deleted: {problem}"
        raise errors.Refusal("git.ref-moved", words, hint="idumb status") from problem
    _written.setdefault(place.common_dir, {})[ref] = None
    folder = os.path.dirname(os.path.join(place.common_dir, ref))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    durable_files.force([folder])


def sync(place: Repository, ref: str) -> None:
    """Force a ref that the git program wrote, and the folders that lead to it."""
    path = os.path.join(place.common_dir, ref)
    folders: list[str] = []
    folder = os.path.dirname(path)
    while len(folder) >= len(place.common_dir):
        folders.append(folder)
        folder = os.path.dirname(folder)
    durable_files.force(existing for existing in (path, *folders) if os.path.exists(existing))


def _missing_folders(common_dir: str, ref: str) -> list[str]:
    """The folders of the ref that are not there yet, and the one in which the first of them is made."""
    found: list[str] = []
    folder = os.path.dirname(os.path.join(common_dir, ref))
    while not os.path.isdir(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return [*found, folder] if found else []
