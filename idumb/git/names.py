"""The names of what idumb keeps: refs below `refs/idumb/`, most of them to trees.

A ref to a tree keeps everything in the tree, and `git log --all` does not show it. But git reads every ref when it
lists them. So refs are packed now and then, and the names of a finished run become the rows of one tree:

    refs/idumb/worktrees/KEY/runs/RUN/T1-01/1/base    while the run lives
    refs/idumb/worktrees/KEY/done/RUN                 afterwards; its row `T1-01:1:base` is that tree (no ref has a `:`)

Commits cannot be kept by a tree, so they keep their refs.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pygit2
from pygit2.enums import ObjectType

from idumb.domain import errors
from idumb.domain.action import Action
from idumb.domain.proof.ledger import Entry
from idumb.git import discover, git_program, refs, tree_objects
from idumb.git.discover import Repository
from idumb.git.tree_objects import FOLDER, Rows

_WORKTREE = rf"(?P<worktree>{discover.PREFIX}worktrees/[^/]+)"
_OF_RUN = re.compile(rf"{_WORKTREE}/runs/(?P<run>[^/]+)/(?P<name>.*)")
_OF_DONE = re.compile(rf"{_WORKTREE}/done/(?P<run>[^/]+)")
_MANY = 250
"""So many loose refs are worth packing."""
# New refs of this process since it last packed, by shared git folder.
_loose: dict[str, int] = {}


def find(repository: pygit2.Repository, name: str) -> str | None:
    """Return the object of a name, or None."""
    oid, of_run = refs.current(repository, name), _OF_RUN.fullmatch(name)
    if oid is None and of_run is not None:
        done = refs.current(repository, f"{of_run['worktree']}/done/{of_run['run']}")
        item = _rows(repository, done).get(of_run["name"].replace("/", ":"))
        return None if item is None else item.oid
    return oid


def below(repository: pygit2.Repository, place: Repository, prefix: str) -> dict[str, str]:
    """Return the names that start with a prefix of idumb's, with their objects."""
    folded: dict[str, str] = {}
    present = discover.listed(place.common_dir, discover.PREFIX)
    for ref, of_done in [(ref, match) for ref in present if (match := _OF_DONE.fullmatch(ref))]:
        run, done = f"{of_done['worktree']}/runs/{of_done['run']}/", present.pop(ref)
        if run.startswith(prefix) or prefix.startswith(run):
            folded |= {run + row.replace(":", "/"): item.oid for row, item in _rows(repository, done).items()}
    return {name: oid for name, oid in {**folded, **present}.items() if name.startswith(prefix)}


def put(repository: pygit2.Repository, place: Repository, name: str, oid: str, reason: str = "") -> None:
    """Give an object a name, durably. Refusal `git.ref-moved` if another process does so at the same time."""
    refs.move(repository, place, name, oid, reason)
    _loose[place.common_dir] = _loose.get(place.common_dir, 0) + 1
    if _loose[place.common_dir] >= _MANY:
        _loose[place.common_dir] = 0
        git_program.write(place.root, ["pack-refs", "--all"])  # a failure costs only time


def keep(repository: pygit2.Repository, place: Repository, name: str, oid: str) -> None:
    """Give an existing object a name. Refusal `git.ref-moved` if it is missing, or a tree with missing parts.

    `git gc` fails in a repository in which a ref reaches a missing object.
    """
    whole = ["rev-list", "--objects", "--no-walk", "--quiet", "--missing=allow-promisor", oid]
    if git_program.read(place.root, whole).status:  # libgit2 would answer from its memory
        words = f"{name} could not be kept: object {oid} does not exist, or not all of it"
        raise errors.Refusal("git.ref-moved", words, hint=Action("doctor"))
    put(repository, place, name, oid, "keep")


def fold(repository: pygit2.Repository, place: Repository, run: str) -> None:
    """Move the names of a finished run into one tree. `run` is their prefix. If it is killed, repeat it.

    The tree gets its name before the others are deleted.
    """
    trees = {ref: oid for ref, oid in discover.listed(place.common_dir, run).items() if _is_tree(repository, oid)}
    if not trees:
        return
    done = _done(run)
    rows = dict(_rows(repository, refs.current(repository, done)))
    rows |= {ref[len(run) :].replace("/", ":"): Entry(FOLDER, oid) for ref, oid in trees.items()}
    refs.move(repository, place, done, tree_objects.write(repository, rows), "a finished run")
    refs.delete_all(place, trees)


def free(repository: pygit2.Repository, place: Repository, run: str, is_kept: Callable[[str], bool]) -> None:
    """Drop the names of a finished run, except trees whose name below `run` is kept. If it is killed, repeat it.

    Refusal `git.ref-moved` if another process moved one meanwhile.
    """
    fold(repository, place, run)
    done, dropped = _done(run), dict(discover.listed(place.common_dir, run))
    tree = refs.current(repository, done)
    rows = _rows(repository, tree)
    kept = {row: item for row, item in rows.items() if is_kept(row.replace(":", "/"))}
    if tree is not None and not kept:
        dropped[done] = tree
    elif kept.keys() != rows.keys():
        refs.move(repository, place, done, tree_objects.write(repository, kept), "freed")
    if dropped:
        refs.delete_all(place, dropped)


def _done(run: str) -> str:
    """Return the ref of a finished run; `run` is the prefix of its names while it lives."""
    worktree, _, name = run.rstrip("/").rpartition("/runs/")
    return f"{worktree}/done/{name}"


def _is_tree(repository: pygit2.Repository, oid: str) -> bool:
    """Return whether a tree exists."""
    try:
        return repository.odb.read_header(pygit2.Oid(hex=oid))[0] == ObjectType.TREE
    except (KeyError, ValueError, pygit2.GitError):
        return False  # `doctor` reports it


def _rows(repository: pygit2.Repository, tree: str | None) -> Rows:
    """Return the rows of a finished run, none without a tree. Refusal `git.object-missing` if it cannot be read."""
    try:
        return {} if tree is None else tree_objects.rows(repository, tree)
    except (KeyError, ValueError, pygit2.GitError) as problem:
        words = f"tree {tree} with the names of a finished run is missing or damaged: {problem}"
        raise errors.Refusal("git.object-missing", words, hint=Action.of("doctor", "--fix")) from problem
