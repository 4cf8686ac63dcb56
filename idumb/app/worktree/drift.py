"""Is the repository unchanged? One comparison of two repository states, and what follows from it.

Three policies decide what follows: during an attempt and after a crash (both here), and around a role
(`worktree/tree_guard.py`). Nothing tells a builder's change from the user's own. So idumb keeps what would be lost,
reports everything with the way back, and restores only its own refs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections.abc import Callable, Iterable, Sequence

from idumb import lazy_pattern
from idumb.app.core import next_actions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services, attempt_ref, from_top, kept_at
from idumb.app.ports.repository import Head, History, RepositoryState, Trees
from idumb.app.worktree import preconditions, staged_changes
from idumb.domain import paths, wording
from idumb.domain.agent import capabilities
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof.ledger import Change
from idumb.domain.runs import guarded_names
from idumb.domain.runs.task_state import TaskState
from idumb.lazy_dataclass import dataclass

_OBJECT = lazy_pattern.compile(r"[0-9a-f]{40,64}")
Descends = Callable[[str, str], bool]
"""Whether the second commit descends from the first."""


@dataclass(frozen=True, slots=True)
class MovedRef:
    """A ref that is not as it was; None where it did not exist. `forward`: it is a branch that only gained commits."""

    name: str
    old: str | None
    new: str | None
    forward: bool = False

    @property
    def may_lose(self) -> bool:
        """Return whether something may be lost by it.

        A new ref and a branch that moved forward lose nothing: people and runs in other working trees make these. A
        fetch moves refs of remotes.
        """
        if self.name.startswith("refs/remotes/"):
            return False
        if self.old is None:
            return self.name.startswith("refs/replace/")
        return not self.forward

    @property
    def words(self) -> str:
        return f"{self.name} ({short(self.old)} -> {short(self.new)})"

    @property
    def back(self) -> str:
        """Return the command that restores it, and that does nothing if it has moved again."""
        name = "--no-deref HEAD" if self.name == "HEAD" else shlex.quote(self.name)
        if self.old is None:
            return f"git update-ref -d {name} {self.new}"
        if not _OBJECT.fullmatch(self.old):
            return f"git symbolic-ref {shlex.quote(self.name)} {shlex.quote(self.old)}"
        return f"git update-ref {name} {self.old}" + (f" {self.new}" if self.new else "")


@dataclass(frozen=True, slots=True)
class Drift:
    """What differs between two states of a repository.

    `guarded` are files that decide what git runs, `own_refs` those of idumb that moved or disappeared. `head` is HEAD
    itself, where it names another branch or, detached, another commit.
    """

    guarded: tuple[str, ...]
    refs: tuple[MovedRef, ...]
    own_refs: tuple[str, ...]
    head: MovedRef | None

    @property
    def loud(self) -> tuple[MovedRef, ...]:
        return tuple(ref for ref in self.refs if ref.may_lose)


def compare(before: RepositoryState, after: RepositoryState, descends: Descends, *, branch: str | None = None) -> Drift:
    """Return what differs between two states. `branch` is excluded, because HEAD covers it.

    Refs are compared only if they were read for the earlier state.
    """
    current = {f"refs/heads/{branch}"} if branch is not None else set()
    names = sorted({name for name, _ in before.refs.items() ^ after.refs.items()} - current) if before.refs else []
    old, new = (f"refs/heads/{h.branch}" if h.branch is not None else h.commit for h in (before.head, after.head))
    return Drift(
        guarded_names.changed(before.guarded, after.guarded) if before.guarded != after.guarded else (),
        tuple(_moved(name, before.refs.get(name), after.refs.get(name), descends) for name in names),
        tuple(name for name, commit in sorted(before.kept.items()) if after.kept.get(name) != commit),
        None if old == new else MovedRef("HEAD", old, new),
    )


def _moved(name: str, old: str | None, new: str | None, descends: Descends) -> MovedRef:
    branch = name.startswith(("refs/heads/", "refs/remotes/")) and old is not None and new is not None
    commits = branch and _OBJECT.fullmatch(old or "") and _OBJECT.fullmatch(new or "")
    return MovedRef(name, old, new, forward=bool(commits) and descends(old or "", new or ""))


def keep_old(history: History, place: str, refs: Iterable[MovedRef]) -> list[MovedRef]:
    """Keep what moved refs named, so that git does not collect it. Return the refs whose objects are gone."""
    lost_refs = []
    for ref in refs:
        if ref.old is None or not _OBJECT.fullmatch(ref.old) or ref.forward:
            continue
        if not keep(history, place, ref.old):
            lost_refs.append(ref)
    return lost_refs


def keep(history: History, place: str, commit: str) -> bool:
    """Keep a commit under `place`; return False if it is gone."""
    try:
        history.keep_ref(f"{place}/meanwhile/{commit[:16]}", commit)
    except Refusal:
        return False
    return True


def changes_anywhere(trees: Trees, old: str, new: str) -> tuple[Change, ...]:
    """Return the paths that differ, in the project and outside its folder."""
    return (*trees.changes(old, new), *trees.changes_outside(old, new))


def observe(history: History, before: RepositoryState) -> tuple[RepositoryState, RepositoryState]:
    """Return the earlier state with idumb's own refs as this process has moved them since, and the present state."""
    if not before.kept:
        return before, dataclasses.replace(history.state(), kept=before.kept)
    expected = dataclasses.replace(before, kept=history.expected_refs())
    return expected, dataclasses.replace(history.state(), kept=history.kept_refs())


def restore_own(history: History, before: RepositoryState, changed: Drift) -> list[str]:
    """Restore idumb's own refs that changed; return those whose commits are gone."""
    lost = []
    for name in changed.own_refs:
        try:
            history.keep_ref(name, before.kept[name])
        except Refusal:
            lost.append(name)
    return lost


def refs_words(moved: Iterable[MovedRef], gone: Iterable[MovedRef]) -> str:
    """Return `refs moved: …`, with what they named if that is gone."""
    lost = [ref.name for ref in gone]
    words = f"refs moved: {wording.listed(ref.words for ref in moved)}"
    return words + (f"; their objects are gone: {wording.listed(lost)}" if lost else "")


def show_command(services: Services, snapshot: str, path: str) -> str:
    """Return the command that prints the bytes of a path as a snapshot, a commit or its ref, has them."""
    return f"git show {shlex.quote(kept_at(services, snapshot, path))}"


def show_commands(services: Services, snapshot: str, tree: str, paths: Sequence[str]) -> str:
    """Return such commands for the paths that `tree`, the tree of the snapshot, has; "" if it has none of them."""
    present = (path for path in paths if services.trees.entry(tree, path) is not None)
    return wording.listed((show_command(services, snapshot, path) for path in present), between="; ")


def nested_place(services: Services, snapshot: str, path: str) -> str:
    """Return git's name for the saved bytes of a path in a nested repository."""
    return f"{snapshot}:repositories/{from_top(services, path)}"


def short(value: str | None) -> str:
    if value is None:
        return "nothing"
    return value[:12] if _OBJECT.fullmatch(value) else value


_ADDRESSED = frozenset({"credential", "http", "url"})

ENDING = frozenset({"git.own-refs-changed", "git.refs-deleted", "git.refs-moved"})
"""Refusals of `require_unchanged` after which the attempt is recorded as interrupted."""


def require_unchanged(context: RunContext, attempt: Attempt) -> None:
    """Refuse if the repository is not as it was when the attempt began. What would be lost is kept first."""
    services, state, task, before = context.services, context.journal.state, attempt.task.id, attempt.before
    history, frozen = services.history, attempt.is_measured
    before, after = observe(history, before)
    changed = compare(before, after, history.descends, branch=state.branch)
    lost = restore_own(history, before, changed)
    lost_refs, loud = keep_old(history, attempt.ref, changed.refs), changed.loud
    if changed.guarded and (names := _undeclared(context, attempt, changed.guarded, after)):
        how = {name: guarded_words(name, before, after) for name in names}
        raise preconditions.guarded_changed(f"while {task} ran", state, how, names)
    if after.head.branch != state.branch:
        preconditions.require_branch(services, state)
    if changed.own_refs or loud:
        with contextlib.suppress(KeyError):  # the snapshot may be gone, with what else the refusal names
            _report_staging(context, attempt)
    if changed.own_refs:
        raise _own_refusal(context, task, changed.own_refs, lost)
    quiet = [ref for ref in changed.refs if not ref.may_lose]
    if quiet:
        words = wording.listed(ref.words for ref in quiet)
        services.reporter.note(f"While {task} ran, other refs were created or moved: {words}")
    if loud:
        raise _refs_refusal(context, task, loud, lost_refs)
    _require_head(context, attempt, before, after)
    if frozen:  # checks may stage files too
        _report_staging(context, attempt)


def _undeclared(
    context: RunContext, attempt: Attempt, changed: Sequence[str], after: RepositoryState
) -> tuple[str, ...]:
    """Return the names without the work of the task in the tree.

    That are hooks that it declares, which do not run, and files that a person accepted as they are now.
    """
    within = [name for name in changed if guarded_names.in_tree(name)]
    if not within:
        return tuple(changed)
    covers, hooks = paths.cover(attempt.written), context.services.history.hooks_in_tree()
    work = {name for name in within if covers(name) and (name in hooks or name not in after.guarded)}
    accepted = context.journal.state.guarded.accepted
    work |= {name for name in within if (name, after.guarded.get(name)) in accepted}
    return tuple(name for name in changed if name not in work)


def guarded_words(name: str, before: RepositoryState, after: RepositoryState) -> str:
    """Return what changed in a guarded file: the names of the settings, or whether it is new or was removed."""
    how = guarded_names.how(name, before.guarded, after.guarded)
    rows = before.configuration.get(name, frozenset()) ^ after.configuration.get(name, frozenset())
    keys = wording.listed(sorted({_public(key) for key, _ in rows})) if before.configuration else ""
    return ": ".join(filter(None, (how, keys)))


def _public(key: str) -> str:
    """Return the name of a setting without a part that may be an address with a password in it."""
    section, _, rest = key.partition(".")
    return f"{section}.*.{rest.rpartition('.')[2]}" if section in _ADDRESSED and "." in rest else key


def report_beside_clone(
    services: Services, task: str, before: str, present: str, snapshot: str, *, outside: bool = False
) -> tuple[str, ...]:
    """Report and return what changed in the user's own tree while a task was built in a clone.

    `snapshot` has the tree `before`.
    With `outside`, no other project can have run since, so that changes outside the project are reported too.
    """
    changes = services.trees.changes(before, present)
    changes += services.trees.changes_outside(before, present) if outside else ()
    theirs = [change for change in changes if not paths.matches_any(change.path, paths.OWN_FILES)]
    if theirs:
        shown = wording.listed(change.path for change in theirs)
        services.reporter.note(
            f"While {task} was built in a clone, files of your own working tree changed: {shown}."
            " None of it is part of the task. If you did not change them, the builder did"
        )
    for change in [change for change in theirs if change.old is not None][: wording.MOST_LISTED]:
        shown = show_command(services, snapshot, change.path)
        services.reporter.note(f"{change.path} as it was before {task}: {shown}")
    return tuple(change.path for change in theirs)


def beside_clone(context: RunContext, attempt: Attempt) -> tuple[str, ...]:
    """Report and return the same about an attempt that was not interrupted."""
    snapshot, services = attempt.snapshot, context.services
    present = services.trees.scan(attempt.literal_paths)
    return report_beside_clone(services, attempt.task.id, snapshot.tree, present, snapshot.commit, outside=True)


def report_after_crash(context: RunContext, task: Task, task_state: TaskState) -> None:
    """Report what differs from the snapshot of an attempt that a crash ended, with the way back."""
    if task_state.work.snapshot is None or task.is_human or task_state.attempt.opened is not None:
        return
    services, history = context.services, context.services.history
    place = attempt_ref(services, context.run, task.id, task_state.attempt.number)
    try:
        after = history.state()
        head = Head(history.head_at(task_state.work.snapshot), after.head.branch)
        before = RepositoryState(head, after.guarded, services.trees.refs_at(task_state.work.snapshot))
        _report_new_commits(context, task, place, head.commit)
        changed = compare(before, after, history.descends, branch=context.journal.state.branch)
        if changed.loud:
            lost_refs = keep_old(history, place, changed.loud)
            ways = [ref.back for ref in changed.loud[: wording.MOST_LISTED] if ref not in lost_refs]
            words = f"Since {task.id} began, {refs_words(changed.loud, lost_refs)}"
            services.reporter.note(words + (f". Earlier state: {'; '.join(ways)}" if ways else ""))
        _report_index(context, task, task_state.attempt.number, task_state.work.snapshot)
    except (Refusal, KeyError, ValueError):
        return  # the snapshot is gone: `idumb doctor` reports that, and the run can continue


def _report_new_commits(context: RunContext, task: Task, place: str, was: str | None) -> None:
    history = context.services.history
    now = history.head().commit
    if now in (was, None):
        return
    if now in {c for c, trailers in history.trailers_since(was) if trailers.get("Idumb-Run") == context.run}:
        return
    trees, heads = context.services.trees, (history.tree_of(was), history.tree_of(now))
    if trees.changes_outside(*heads) and not trees.changes(*heads):
        return  # commits of other projects
    history.keep_ref(f"{place}/meanwhile/{now[:16]}", now)
    context.services.reporter.note(
        f"Since {task.id} began, HEAD went from {was or 'no commit'} to {now}, and idumb did not do that:"
        f" git log --stat {f'{was}..' if was else ''}{now}"
    )


def _report_staging(context: RunContext, attempt: Attempt) -> None:
    if program_works_here(context, attempt):
        _report_index(context, attempt.task, attempt.number, attempt.snapshot.commit, attempt.accepted_paths)


def _report_index(context: RunContext, task: Task, number: int, snapshot: str, accepted: Sequence[str] = ()) -> None:
    history = context.services.history
    if moved := history.index_changes(snapshot, history.index()):
        staged_changes.tell(context, task, number, snapshot, moved, accepted)


def program_works_here(context: RunContext, attempt: Attempt) -> bool:
    """Return whether a program works in the user's own tree. People may commit and stage there what they like."""
    opened = context.journal.state.tasks[attempt.task.id].attempt.opened
    if context.workspace.kind != "here" or opened is not None or attempt.awaits_verdict:
        return False
    return not capabilities(context.agents.get(attempt.builder)).asks_person


def _own_refusal(context: RunContext, task: str, changed: Sequence[str], lost: Sequence[str]) -> Refusal:
    count = f"{len(changed)} ref{'s' * (len(changed) != 1)}"
    words = f"While {task} ran, {count} of idumb's own were deleted or moved: {wording.listed(changed)}. "
    words += f"Their commits are gone too: {wording.listed(lost)}" if lost else "idumb has restored them."
    way = next_actions.command(context.journal.state)
    hint = f"idumb doctor, then {way}" if lost else f"See what the builder did, then {way}"
    details = {"go_on": way, "task": task, "refs": list(changed), "lost": list(lost)}
    return Refusal("git.own-refs-changed", words, hint=hint, details=details)


def _refs_refusal(context: RunContext, task: str, moved: Sequence[MovedRef], gone: Sequence[MovedRef]) -> Refusal:
    deleted = all(ref.new is None for ref in moved)
    way = next_actions.command(context.journal.state)
    back = "; ".join(ref.back for ref in moved[: wording.MOST_LISTED])
    return Refusal(
        "git.refs-deleted" if deleted else "git.refs-moved",
        f"While {task} ran, {refs_words(moved, [ref for ref in gone if ref in moved])}",
        hint=f"{back}  (restores them). Then {way}",
        details={
            "go_on": way,
            "back": back,
            "task": task,
            "refs": {ref.name: ref.old for ref in moved},
            "moved": [{"ref": ref.name, "old": ref.old, "new": ref.new, "back": ref.back} for ref in moved],
        },
    )


def _require_head(context: RunContext, attempt: Attempt, before: RepositoryState, after: RepositoryState) -> None:
    """Refuse if HEAD moved, except forward where a person works, or by commits of declared files only."""
    was, now, task = before.head.commit, after.head.commit, attempt.task.id
    if was == now:
        return
    history, way = context.services.history, next_actions.command(context.journal.state)
    if was is not None and not history.descends(was):
        keep(history, attempt.ref, was)
        raise Refusal(
            "git.branch-rewritten",
            f"While {task} ran, HEAD went from {was} to {now or 'no commit'}, which does not contain it.",
            hint=f"git reflog shows what happened; git branch NAME {was} keeps it. Then {way}",
            details={"go_on": way, "task": task, "was": was, "is": now},
        )
    if now is None or not program_works_here(context, attempt):
        return
    changes = changes_anywhere(context.services.trees, history.tree_of(was), history.tree_of(now))
    changed = [change.path for change in changes]
    covers = paths.cover(attempt.written)
    strays = [path for path in changed if not covers(path)]
    if strays:
        # Recorded after the user decided about the commits: what stays committed is never put back.
        raise _committed(context, attempt, (was, now), changed, strays)
    words = f"While {task} ran, commits of its declared files were made: {short(was)} -> {short(now)}"
    context.services.reporter.note(words)


def _committed(
    context: RunContext, attempt: Attempt, heads: tuple[str | None, str], changed: list[str], strays: list[str]
) -> Refusal:
    """Return the refusal that names the commits on the branch, and how to restore the branch and the index."""
    services, state, task = context.services, context.journal.state, attempt.task
    was, now = heads
    history, way = services.history, next_actions.command(state)
    keep(history, attempt.ref, now)
    name = "--no-deref HEAD" if state.branch is None else shlex.quote(f"refs/heads/{state.branch}")
    back = f"git update-ref {name} {was} {now}" if was else f"git update-ref -d {name} {now}"
    index = f"; {history.index_command(attempt.snapshot.commit)}"
    added = f", with {wording.listed(strays)}, which {task.id} does not declare"
    return Refusal(
        "git.committed-meanwhile",
        f"While {task.id} ran, commits were made on {state.branch or 'HEAD'}: {short(was)} -> {short(now)}{added}.",
        hint=f"git log --stat {f'{was}..' if was else ''}{now} shows them. To keep them:"
        f" {way} (idumb accept {task.id} --why REASON, if that says that nothing changed)."
        f" Otherwise, first run in the top folder (it changes no file): {back}{index}."
        " With `git.commit: builder` agents commit in a clone, and idumb judges what they commit.",
        details={
            "go_on": way,
            "task": task.id,
            "was": was,
            "is": now,
            "paths": changed,
            "undeclared": strays,
            "back": [back, index.removeprefix("; ")],
            "undo": f"{back}{index}",
        },
    )
