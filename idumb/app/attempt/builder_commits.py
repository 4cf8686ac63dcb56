"""The commit policy `builder`: whoever builds a task commits it, in a clone, and the commits are taken as they are.

Before an attempt the clone is made anew where HEAD is. When the builder has ended, its commits are read as objects
and held against the task; what holds is brought home, and `recording` moves the branch to it. Steps commit nothing,
so idumb does it for them; a person and an editor work in the user's own tree, as under the policy `task`.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from idumb.app.core.run_context import Attempt, Bench
from idumb.app.core.services import attempt_ref, kept_at
from idumb.app.ports.agents import capabilities
from idumb.app.ports.repository import BuilderCommits
from idumb.app.ports.workspace import CommittingClone
from idumb.domain import contract as contracts
from idumb.domain import outcome, paths, wording
from idumb.domain.agent import BUILT_IN, HUMAN, Capabilities
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.proof import builder_commits, ledger
from idumb.domain.proof.builder_commits import Commit
from idumb.domain.proof.ledger import Change
from idumb.domain.runs.task_state import TaskState
from idumb.domain.settings import COMMIT_BUILDER, Settings

CLONE = "clone"
HERE = "here"
_REF = "commits"


def require_clone(settings: Settings, workspace: str | None) -> None:
    """Builders commit in a clone; Refusal where a person asks for another place."""
    if settings.git.commit == COMMIT_BUILDER and workspace == HERE:
        raise Refusal(
            "commit.needs-clone",
            "`git.commit: builder` lets builders commit in a private clone; --workspace here would let them commit"
            " on your own branch.",
            hint="Leave --workspace away, or say `git: {commit: task}` in .idumb/config.yaml",
        )


def workspace_of(policy: str, usual: str) -> str:
    """Where tasks run under a policy, if no command says otherwise."""
    return CLONE if policy == COMMIT_BUILDER else usual


def bench_of(bench: Bench, task: Task) -> Bench:
    """People and editors work in the user's own tree, whatever the others do."""
    if bench.commits is None or not _builder(bench, task).works_in_place:
        return bench
    place = bench.services.open_workspace(HERE, bench.run)
    agents, checks = bench.services.open_agents(place, bench.run), bench.services.open_checks(place, bench.run)
    return dataclasses.replace(bench, workspace=place, agents=agents, checks=checks, commits=None)


def by_builder(bench: Bench, task: Task) -> bool:
    """Whether this task's builder is to commit its own work."""
    return bench.commits is not None and _builder(bench, task).calls_model


def _builder(bench: Bench, task: Task) -> Capabilities:
    name = contracts.builder_of(bench.plans[task.id], task, bench.services.settings)
    return BUILT_IN[HUMAN] if task.is_human or name is None else capabilities(bench.agents.get(name))


def stands(bench: Bench) -> bool:
    """Whether the clone still stands where HEAD is, so that an attempt can go on in it from its own work."""
    return bench.commits is not None and bench.commits.base == bench.services.history.head().commit


def begin(bench: Bench, attempt: Attempt) -> Attempt:
    """The same attempt in a clone that is made anew, as HEAD is."""
    if bench.commits is None:
        return attempt
    bench.commits.begin(bench.services.history.head().commit)
    return dataclasses.replace(attempt, base="")


def take(bench: Bench, attempt: Attempt) -> Attempt:
    """What the builder committed is read, and its git folder put out of the way, before anything else is looked at."""
    if bench.commits is None or attempt.result is None or not by_builder(bench, attempt.task):
        return attempt
    return dataclasses.replace(attempt, offered=bench.commits.take())


def judge(bench: Bench, attempt: Attempt) -> Attempt:
    """Commits that hold are brought home; with others the attempt has failed, and nothing of them is taken."""
    offered, clone = attempt.offered, bench.commits
    if offered is None or clone is None:
        return attempt
    strayed = _strayed(bench, attempt)
    why = ""
    if attempt.outcome is None:
        why = _why_not(bench, attempt, offered, clone) or _worked_elsewhere(attempt, offered, strayed)
        if not why and offered.made:
            ref = attempt_ref(bench.services, bench.run, attempt.task.id, attempt.number, _REF)
            why = clone.keep(offered, ref)
    if why or attempt.outcome is not None or not offered.made:
        clone.drop()
    return attempt.ended(outcome.FAILED, why) if why else attempt


def _why_not(bench: Bench, attempt: Attempt, offered: BuilderCommits, clone: CommittingClone) -> str:
    if offered.problem:
        return f"its commits cannot be taken: {offered.problem}"
    task = attempt.task
    strays = builder_commits.undeclared(
        offered.commits, task.files, bench.protected(attempt.plan), attempt.accepted_paths
    )
    if strays:
        return strays
    inner = sorted(set(bench.work.repositories()) - set(bench.services.trees.repositories()))
    if inner:
        return f"it made other repositories in its clone, of which nothing can be taken: {wording.listed(inner)}"
    left = clone.uncommitted(offered, attempt.base, attempt.candidate or attempt.base)
    if not left:
        return ""
    named = wording.listed(left)
    if offered.made:
        return f"its last commit and its files differ: {named}; everything that is to be kept must be committed"
    return (
        f"it changed {named} and committed nothing. `git.commit: builder` leaves that to the builder: commit on the"
        " current branch (`git: {commit: task}` in .idumb/config.yaml lets idumb commit)"
    )


def _strayed(bench: Bench, attempt: Attempt) -> tuple[str, ...]:
    """Paths of the user's own tree that changed meanwhile, by a person or by a builder that left its clone; told."""
    snapshot, services, task = attempt.snapshot, bench.services, attempt.task.id
    if snapshot is None:
        return ()
    changes = services.trees.changes(snapshot.tree, services.trees.scan(attempt.literal_paths))
    theirs = [change for change in changes if not paths.matches_any(change.path, paths.OWN_FILES)]
    if theirs:
        named = wording.listed(change.path for change in theirs)
        services.reporter.note(
            f"While {task} was built in a clone, files of your own work tree changed: {named}."
            " Nothing of that is part of the task; where you did not do it, the builder did"
        )
    for change in [change for change in theirs if change.old is not None][: wording.MOST_LISTED]:
        kept = shlex.quote(kept_at(snapshot.ref, change.path))
        services.reporter.note(f"{change.path} as it was before {task}: git show {kept}")
    return tuple(change.path for change in theirs)


def _worked_elsewhere(attempt: Attempt, offered: BuilderCommits, strayed: tuple[str, ...]) -> str:
    """Why an attempt has failed that made in the user's tree what it should make in its clone; empty otherwise."""
    covers = paths.cover(ledger.written_paths(attempt.task.files))
    found = [path for path in strayed if covers(path)]
    if not found or offered.made or attempt.ledger.changed:
        return ""
    return (
        f"it changed nothing in its clone, and meanwhile {wording.listed(found)} changed in the user's own work tree;"
        " what it makes belongs below the folder in which it is started"
    )


def payload(offered: BuilderCommits) -> dict[str, object]:
    """What `attempt.finished` says of it, and `recorded` reads."""
    return {
        "base": offered.base,
        "tip": offered.tip,
        "problem": offered.problem,
        "commits": [one.as_dict() for one in offered.commits[: builder_commits.MOST]],
    }


def recorded(bench: Bench, known: TaskState) -> BuilderCommits | None:
    """The commits of a task's last attempt, as the log tells them; None where its builder made none."""
    events = bench.services.log.events(
        run=bench.run, task=known.id, kind="attempt.finished", newest_first=True, limit=1
    )
    found = next((e.payload.get("committed") for e in events if e.attempt == known.attempt.number), None)
    if found is None:
        return None
    return BuilderCommits(found["base"], found["tip"], tuple(map(_told, found["commits"])), found["problem"])


def _told(row: Mapping[str, Any]) -> Commit:
    """A commit as far as it was recorded; enough to be recorded again."""
    files = tuple(Change(path, "", None, None) for path in row["files"])
    return Commit(row["commit"], "", (), row["author"], row["committer"], row["subject"], changes=files)
