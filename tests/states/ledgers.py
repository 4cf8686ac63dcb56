"""A record of a repository before an action, and assertions about it afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.states.state import TOUCHED
from tests.support.gitrepo import ByteLedger, Entry, GitSandbox, work_tree

OWN = (".idumb", ".planning")


@dataclass(frozen=True, slots=True)
class Record:
    """The byte ledger, and git's status and index entries with their flags, without idumb's own."""

    ledger: ByteLedger
    status: Mapping[str, str]
    index: Mapping[str, str]

    @property
    def user(self) -> dict[str, Entry]:
        return {path: entry for path, entry in self.ledger.entries.items() if path.split("/")[0] not in OWN}


def record(repo: GitSandbox) -> Record:
    return Record(repo.ledger(), _status(repo), _index(repo))


def _rows(repo: GitSandbox, *arguments: str) -> list[str]:
    done = GitSandbox(repo.root, {"GIT_OPTIONAL_LOCKS": "0"}).try_git(*arguments)
    return [os.fsdecode(row) for row in done.stdout.split(b"\0") if row]


def _status(repo: GitSandbox) -> dict[str, str]:
    """Return a mapping from path to row; empty if git itself fails."""
    rows = _rows(repo, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--ignored")
    fields = {"1": 8, "u": 10, "?": 1, "!": 1}
    rows_by_path = {row.split(" ", fields[row[0]])[-1]: row for row in rows if row[0] in fields}
    return {path: row for path, row in rows_by_path.items() if path.split("/")[0] not in OWN}


def _index(repo: GitSandbox) -> dict[str, str]:
    staged = [row.partition("\t")[::2] for row in _rows(repo, "ls-files", "--stage", "-z")]
    flags = {row[2:]: row[0] for row in _rows(repo, "ls-files", "-v", "-z")}
    entries = {f"{path}\0{meta.split()[2]}": f"{flags.get(path)} {meta}" for meta, path in staged}
    return {key: row for key, row in entries.items() if key.split("/")[0] not in OWN}


def everything(root: Path) -> dict[str, Entry]:
    """Return every file of the user and of git, by bytes, except idumb's own."""
    entries = {f"{folder}/{path}": entry for folder in (".git",) for path, entry in work_tree(root / folder).items()}
    entries |= work_tree(root)
    own = (*OWN, ".git/idumb", ".git/refs/idumb", ".git/objects", ".git/refs", ".git/logs")
    return {
        path: entry for path, entry in entries.items() if not any(path == o or path.startswith(o + "/") for o in own)
    }


def equal(subject: str, before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """An AssertionError that names what differs, whether or not assertions are rewritten."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    differences = [f"{name!r}: {before.get(name)} -> {after.get(name)}" for name in names[:5]]
    assert not names, f"{subject}: {'; '.join(differences)}"


def kept(before: Record, after: Record, but: tuple[str, ...] = TOUCHED, *, moves: bool = True) -> None:
    """Only the paths `but` differ, in the files as in the index; no ref but the branch of HEAD moved, if it `moves`."""
    equal("files", _without(before.user, but), _without(after.user, but))
    equal("index", _without(before.index, but), _without(after.index, but))
    equal("status", _without(before.status, but), _without(after.status, but))
    assert before.ledger.config == after.ledger.config, after.ledger.config
    head = before.ledger.head.strip().removeprefix("ref: ")
    detached = not before.ledger.head.startswith("ref: ")
    refs = [{**one.ledger.refs, "HEAD": one.ledger.head} for one in (before, after)]
    for one in refs if moves else ():
        one.pop("HEAD" if detached else head, None)
    equal("refs", *refs)


def _without(entries: Mapping[str, object], but: tuple[str, ...]) -> dict[str, object]:
    """Without the paths, and without folders that only they need."""
    above = {"/".join(path.split("/")[:count]) for path in but for count in range(1, path.count("/") + 1)}
    return {
        path: value
        for path, value in entries.items()
        if path.partition("\0")[0] not in but and path.rstrip("/") not in above
    }
