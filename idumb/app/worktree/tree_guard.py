"""The user's work tree while the agent of a role works in its copy: saved before, compared afterwards, never written.

An agent runs as the user and can find the tree that its copy was made of. What changed there cannot be told from what
the user did at the same time, so nothing is put back but idumb's own refs: all is named, with the way back. People edit
files while an agent thinks, so that alone costs nobody an answer; another HEAD, or changed files of git's own, do.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, kept_at, role_ref
from idumb.app.ports.agents import Agent
from idumb.app.ports.repository import Head, RepositoryState, Snapshot
from idumb.app.worktree import moved_refs, nested_repositories, preconditions
from idumb.app.worktree.moved_refs import Moved
from idumb.domain import wording
from idumb.domain.errors import AdapterError, IdumbError, Refusal
from idumb.domain.proof import ledger

CODE = "role.changed-tree"
ATTIC = "answers"


@dataclass(frozen=True, slots=True)
class Before:
    """What was there when the agent began; `name` is the folder of refs that hold what it needs."""

    snapshot: Snapshot
    standing: RepositoryState
    name: str


@dataclass(frozen=True, slots=True)
class Found:
    """What is not as it was, as words, with the commands that show or bring back what was; `rows` are for JSON.

    `stops` where nothing may follow from the agent's answer.
    """

    words: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    stops: bool = False


@dataclass(slots=True)
class Heard:
    """What the agent answered, as soon as it has."""

    reply: str = ""


@contextmanager
def watched(services: Services, journal: Journal, role: str, number: int, taking: str = "") -> Iterator[Heard]:
    """Names, at the end, what is not as it was; Refusal `role.changed-tree` where that stops.

    The snapshot stays then, as those of attempts do; otherwise it goes. What was heard is kept where it is not used:
    `taking` is what a person says before its path to use it all the same.
    """
    heard = Heard()
    before = _look(services, journal, role, number)
    try:
        yield heard
    except IdumbError:
        found = _compared(services, before)
        if found.words:
            services.reporter.note(_told(role, found))
        raise
    found = _compared(services, before)
    if found.stops:
        data = heard.reply.encode("utf-8", "surrogateescape")
        kept = services.backups.keep(ATTIC, f"{role}-{journal.operation}-{number}.md", data) if data else None
        use = f"; {taking} {shlex.quote(kept)} takes the answer that is kept" if kept and taking else ""
        raise Refusal(
            CODE,
            f"{_told(role, found)} The answer is not used{'' if kept is None else f', but kept ({kept})'}.",
            hint=f"idumb doctor; then the same command asks again{use}",
            details={"role": role, "snapshot": before.snapshot.ref, "changed": list(found.rows), "answer": kept},
        )
    if found.words:
        services.reporter.note(_told(role, found))
        return
    services.history.delete_ref(before.snapshot.ref, before.snapshot.commit)


def _look(services: Services, journal: Journal, role: str, number: int) -> Before:
    name = role_ref(services, journal.operation, f"{role}-{number}")
    standing = services.history.state()
    snapshot = services.trees.snapshot(f"{name}/base", f"before the {role} was asked")
    kept = services.history.expected_refs()
    return Before(snapshot, RepositoryState(standing.head, standing.guarded, standing.refs, kept), name)


def _compared(services: Services, before: Before) -> Found:
    own, gone = moved_refs.own_again(services.history, before.standing)
    after = services.history.state()
    parts = (
        files(services, before.snapshot, services.trees.scan()),
        _refs(services, before, after),
        _index(services, before, after.head),
        _head(before, after.head),
        _stopping("files of git's own changed", preconditions.differing(before.standing.guarded, after.guarded)),
        _stopping(
            "idumb's own refs were moved or deleted, and are as they were again", [r for r in own if r not in gone]
        ),
        _stopping("idumb's own refs and their commits were deleted", gone),
    )
    return Found(
        tuple(words for part in parts for words in part.words),
        tuple(back for part in parts for back in part.back),
        tuple(row for part in parts for row in part.rows),
        any(part.stops for part in parts),
    )


def starts_a_program(who: Agent) -> bool:
    """What starts none cannot write in the user's tree, and is spared the looks."""
    try:
        return bool(who.describe())
    except AdapterError:  # the agent says so itself when it is asked
        return False


def files(services: Services, snapshot: Snapshot, present: str) -> Found:
    """The files of the user's own tree that are not as a snapshot has them, with the commands that show its bytes."""
    rows = []
    for one in services.trees.changes(snapshot.tree, present):
        held = one.old is not None and one.old.mode != ledger.SUBMODULE
        back = f"git show {shlex.quote(kept_at(snapshot.ref, one.path))}" if held else None
        rows.append({"path": one.path, "what": _what(one), "back": back})
    for inner in services.trees.inner_changes(snapshot):
        shown = f"git show {shlex.quote(nested_repositories.place(snapshot.ref, inner.path))}" if inner.kept else None
        rows.append({"path": inner.path, "what": f"changed in the repository {inner.repository}", "back": shown})
    rows += [{"path": path, "what": "deleted, ignored, in no snapshot", "back": None} for path in services.trees.gone()]
    if not rows:
        return Found()
    named = wording.listed(f"{row['path']} ({row['what']})" for row in rows)
    ways = tuple(row["back"] for row in rows if row["back"] is not None)
    return Found((f"files changed in your own work tree: {named}",), ways, tuple(rows))


def _what(one: ledger.Change) -> str:
    if one.old is None:
        return "new"
    return "deleted" if one.new is None else "changed"


def _refs(services: Services, before: Before, after: RepositoryState) -> Found:
    moved = moved_refs.moved(before.standing.refs, after.refs)
    loud = [one for one in moved if moved_refs.is_loud(services.history, one)]
    lost = [one.name for one in moved if not moved_refs.keep(services.history, before.name, one)]
    if not loud:
        return Found()
    words = f"refs moved: {wording.listed(one.words for one in loud)}"
    words += f"; what they named is gone: {wording.listed(lost)}" if lost else ""
    rows = tuple({"ref": one.name, "old": one.old, "new": one.new, "back": one.back} for one in loud)
    return Found((words,), tuple(one.back for one in loud if one.name not in lost), rows)


def _head(before: Before, now: Head) -> Found:
    """Where HEAD itself is another one: what is written would come elsewhere. Its branch stands with the refs."""
    old, new = (f"refs/heads/{h.branch}" if h.branch is not None else h.commit for h in (before.standing.head, now))
    if old == new:
        return Found()
    one = Moved("HEAD", old, new)
    row = {"ref": one.name, "old": old, "new": new, "back": one.back}
    return Found((f"HEAD moved: {one.words}",), (one.back,), (row,), stops=True)


def _index(services: Services, before: Before, now: Head) -> Found:
    """Entries that changed otherwise than by commits, which people make at the same time."""
    history, snapshot = services.history, before.snapshot.commit
    old, new = (history.tree_of(commit) for commit in (before.standing.head.commit, now.commit))
    committed = {change.path for change in services.trees.changes(old, new)} if old != new else set()
    changed = [path for path in history.index_changes(snapshot, history.index()) if path not in committed]
    if not changed:
        return Found()
    back = history.index_command(snapshot)
    row = {"index": list(changed), "back": back}
    return Found(
        (f"the index changed: {wording.listed(changed)}",), (f"{back}  (the index, in the top folder)",), (row,)
    )


def _stopping(words: str, names: Sequence[str]) -> Found:
    if not names:
        return Found()
    return Found((f"{words}: {wording.listed(names)}",), (), ({"what": words, "names": list(names)},), stops=True)


def _told(role: str, found: Found) -> str:
    """All of it in words, with the ways back, which are for a person to choose: it may have been them."""
    words = f"While the {role} worked in its copy, {'; '.join(found.words)}. It may have been you."
    return f"{words} As it was before: {wording.listed(found.back, between='; ')}." if found.back else words
