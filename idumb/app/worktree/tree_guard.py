"""Guards the user's working tree while the agent of a role works in its copy: saves it before, compares it afterwards.

An agent runs as the user and can find the tree that its copy was made of. Nothing tells its changes from the user's
own, so idumb restores only its own refs, and names everything else with the way back. People edit files while an agent
works, so changed files do not discard an answer. Another HEAD, or changed files of git's own, do.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, role_ref
from idumb.app.ports.agents import Agent
from idumb.app.ports.repository import Head, RepositoryState, Snapshot
from idumb.app.worktree import drift, preconditions
from idumb.app.worktree.drift import Drift
from idumb.domain import wording
from idumb.domain.errors import AdapterError, IdumbError, Refusal
from idumb.domain.proof import ledger
from idumb.lazy_dataclass import dataclass

CODE = "role.changed-tree"
BACKUPS = "answers"


@dataclass(frozen=True, slots=True)
class Before:
    """The tree and the repository when the agent began; `name` is the folder of refs that keep what they need."""

    snapshot: Snapshot
    repository: RepositoryState
    name: str


@dataclass(frozen=True, slots=True)
class DriftReport:
    """What changed, in words, with the commands that show or restore what was; `rows` are for JSON.

    `stops` means that the agent's answer must not be used.
    """

    words: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    stops: bool = False


@dataclass(slots=True)
class Heard:
    """The agent's answer, once it has one."""

    reply: str = ""


@contextmanager
def watched(services: Services, journal: Journal, role: str, number: int, taking: str = "") -> Iterator[Heard]:
    """Report at the end what changed; Refusal `role.changed-tree` if that stops.

    The snapshot is kept then, as those of attempts are; otherwise it is removed. An answer that is not used is kept:
    `taking` is the command that uses it all the same, without its path.
    """
    heard = Heard()
    before = _save(services, journal, role, number)
    try:
        yield heard
    except IdumbError:
        report = _compare(services, before)
        if report.words:
            services.reporter.note(_words(role, report))
        raise
    report = _compare(services, before)
    if report.stops:
        data = heard.reply.encode("utf-8", "surrogateescape")
        kept = services.backups.keep(BACKUPS, f"{role}-{journal.operation}-{number}.md", data) if data else None
        use = f"; {taking} {shlex.quote(kept)} uses the answer that is kept" if kept and taking else ""
        raise Refusal(
            CODE,
            f"{_words(role, report)} The answer is not used{'' if kept is None else f', but kept ({kept})'}.",
            hint=f"idumb doctor; then the same command asks again{use}",
            details={"role": role, "snapshot": before.snapshot.commit, "changed": list(report.rows), "answer": kept},
        )
    if report.words:
        services.reporter.note(_words(role, report))
        return
    services.history.delete_ref(before.snapshot.ref, before.snapshot.commit)


def _save(services: Services, journal: Journal, role: str, number: int) -> Before:
    name = role_ref(services, journal.operation, f"{role}-{number}")
    repository = services.history.state()
    snapshot = services.trees.snapshot(f"{name}/base", f"before the {role} was asked")
    return Before(snapshot, dataclasses.replace(repository, kept=services.history.expected_refs()), name)


def _compare(services: Services, before: Before) -> DriftReport:
    expected, after = drift.observe(services.history, before.repository)
    changed = drift.compare(expected, after, services.history.descends)
    lost_refs = drift.restore_own(services.history, expected, changed)
    restored = [ref for ref in changed.own_refs if ref not in lost_refs]
    parts = (
        files(services, before.snapshot, services.trees.scan()),
        _refs(services, before, changed),
        _index(services, before, after.head),
        _head(changed),
        _stopping("files of git's own changed", _guarded(before.repository, after, changed)),
        _stopping("idumb's own refs were moved or deleted, and are restored", restored),
        _stopping("idumb's own refs and their commits were deleted", lost_refs),
    )
    return DriftReport(
        tuple(words for part in parts for words in part.words),
        tuple(back for part in parts for back in part.back),
        tuple(row for part in parts for row in part.rows),
        any(part.stops for part in parts),
    )


def starts_a_program(who: Agent) -> bool:
    """Return whether an agent starts a program; one that starts none cannot write in the user's tree."""
    try:
        return bool(who.describe())
    except AdapterError:  # the agent reports that itself when it is called
        return False


def files(services: Services, snapshot: Snapshot, present: str) -> DriftReport:
    """Report files of the user's tree that differ from a snapshot, with the commands that show their bytes."""
    rows = []
    for change in drift.changes_anywhere(services.trees, snapshot.tree, present):
        saved = change.old is not None and change.old.mode != ledger.SUBMODULE
        back = drift.show_command(services, snapshot.commit, change.path) if saved else None
        rows.append({"path": change.path, "what": _kind_of_change(change), "back": back})
    for inner in services.trees.nested_changes(snapshot):
        shown = (
            f"git show {shlex.quote(drift.nested_place(services, snapshot.commit, inner.path))}" if inner.kept else None
        )
        rows.append({"path": inner.path, "what": f"changed in the repository {inner.repository}", "back": shown})
    if not rows:
        return DriftReport()
    listed = wording.listed(f"{row['path']} ({row['what']})" for row in rows)
    ways = tuple(row["back"] for row in rows if row["back"] is not None)
    return DriftReport((f"files changed in your own working tree: {listed}",), ways, tuple(rows))


def _kind_of_change(change: ledger.Change) -> str:
    if change.old is None:
        return "new"
    return "deleted" if change.new is None else "changed"


def _refs(services: Services, before: Before, changed: Drift) -> DriftReport:
    lost_refs = drift.keep_old(services.history, before.name, changed.refs)
    if not changed.loud:
        return DriftReport()
    rows = tuple({"ref": ref.name, "old": ref.old, "new": ref.new, "back": ref.back} for ref in changed.loud)
    back = tuple(ref.back for ref in changed.loud if ref not in lost_refs)
    return DriftReport((drift.refs_words(changed.loud, lost_refs),), back, rows)


def _head(changed: Drift) -> DriftReport:
    """Report that HEAD names another branch or commit: idumb would write to the wrong place."""
    if changed.head is None:
        return DriftReport()
    ref = changed.head
    row = {"ref": ref.name, "old": ref.old, "new": ref.new, "back": ref.back}
    return DriftReport((f"HEAD moved: {ref.words}",), (ref.back,), (row,), stops=True)


def _index(services: Services, before: Before, now: Head) -> DriftReport:
    """Report index entries that changed other than by commits, which people make at the same time."""
    history, snapshot = services.history, before.snapshot.commit
    old, new = (history.tree_of(commit) for commit in (before.repository.head.commit, now.commit))
    changes = drift.changes_anywhere(services.trees, old, new) if old != new else ()
    committed = {change.path for change in changes}
    changed = [path for path in history.index_changes(snapshot, history.index()) if path not in committed]
    if not changed:
        return DriftReport()
    back = history.index_command(snapshot)
    row = {"index": list(changed), "back": back}
    return DriftReport((f"the index changed: {wording.listed(changed)}",), (f"{back}  (the index)",), (row,))


def _guarded(before: RepositoryState, after: RepositoryState, changed: Drift) -> list[str]:
    return preconditions.guarded_words({name: drift.guarded_words(name, before, after) for name in changed.guarded})


def _stopping(words: str, names: Sequence[str]) -> DriftReport:
    if not names:
        return DriftReport()
    row = {"what": words, "names": list(names)}
    return DriftReport((f"{words}: {wording.listed(names)}",), (), (row,), stops=True)


def _words(role: str, report: DriftReport) -> str:
    """Return all of it in words, with the commands that restore it.

    A person chooses, because the changes may be theirs.
    """
    words = f"While the {role} worked in its copy, {'; '.join(report.words)}. It may have been you."
    return f"{words} Earlier state: {wording.listed(report.back, between='; ')}." if report.back else words
