"""The conditions that a repository must meet before idumb works in it, and commits under the user's settings.

Files that decide what git runs are hooks, configuration and attributes: a program could reach them although it works
in a checkout.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.core import actions
from idumb.app.core.attempt import Attempt
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.app.ports import CommitAttempt, RepositoryState
from idumb.app.worktree import done_work
from idumb.domain import wording
from idumb.domain.action import REASON, Action, Choice
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal, WorkFailed
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs import project_key, run
from idumb.domain.runs.run import RunState
from idumb.domain.settings import BRANCH_PHASE, COMMIT_TASK

_ADDRESSED = frozenset({"credential", "http", "url"})


def require_initialised(services: Services) -> None:
    """Refuse a repository without idumb's configuration."""
    if not services.files.exists(".idumb/config.yaml"):
        if services.inner_projects:
            why, command = elsewhere(services)
            raise Refusal("project.elsewhere", f"idumb is not set up in {services.root}; {why}.", hint=command)
        raise Refusal(
            "state.not-initialised", f"idumb is not set up in this repository ({services.root}).", hint=Action("init")
        )


def require_reason(command: str, subject: str, why: str) -> None:
    """Refuse a command that goes into the record without a reason. `subject` is what it is about."""
    if not why.strip():
        raise InputError("task.no-reason", "A reason is needed.", hint=Action.of(command, subject, "--why", REASON))


def elsewhere(services: Services) -> tuple[str, str]:
    """Return in words where idumb is set up below, or was, and the command that goes there, from any folder."""
    known = tuple(services.inner_projects)
    present = [folder for folder in known if services.files.exists(f"{folder}/.idumb/config.yaml")]
    place = f"cd {shlex.quote(f'{services.root}/{(present or known)[0]}')}"
    if present:
        return f"it is set up in {wording.listed(present)}", place
    words = f"{wording.listed(known)} has no settings now: switch to its branch, or begin again"
    return words, f"{place} && {Action.of('init', '--here')}"


def require_repository(services: Services) -> None:
    """Refuse while a merge or a similar operation is in progress, or if commits are to be made without an identity."""
    try:
        services.history.require_usable()
    except Refusal as refusal:
        if refusal.code != "git.index-locked":
            raise
        _recover_stale_files(services)
        services.history.require_usable()
    problem = services.history.identity_problem() if services.settings.git.commit == COMMIT_TASK else None
    if problem is not None:
        raise Refusal(
            "git.no-identity",
            f"git cannot commit for you: {problem}",
            hint="git config user.name NAME; git config user.email ADDRESS",
        )


def require_settled(state: RunState) -> None:
    """Refuse while a rollback or undo is half done."""
    if state.restoring is not None:
        raise Refusal(
            "rollback.unfinished",
            f"{state.restoring['words']} was interrupted.",
            hint=actions.finishing(state),
            details={"phase": state.phase},
        )


# The branch of a run


def why_not_deliver(context: RunContext) -> str:
    """Return why nothing may be written to the user's branch now; "" if it may."""
    services, state = context.services, context.state
    operation, head = services.history.in_progress(), services.history.head()
    if head.branch != state.branch and not operation:
        there, here = state.branch or "a detached HEAD", head.branch or "no branch"
        return f"the run was started on {there}, and HEAD is on {here}"
    return operation or done_work.words_of_lost(state, done_work.lost(services, state))


def require_branch(services: Services, state: RunState) -> None:
    """Refuse to continue or roll back a run on another branch than its own."""
    back = way_back(services, state)
    if back is not None:
        services.history.require_usable()
        details: dict[str, Any] = {"back": back}
        if not state.verified and state.restoring is None:
            move = Action.of("execute-phase", state.phase, "--branch", services.history.head().branch or "NAME")
            words = "what this branch lacks of its work is asked about"
            details["choices"] = actions.choice_rows((Choice("move", "go on with the run here", words, move),))
        raise Refusal("git.other-branch", f"{back.consequence}.", hint=back, details=details)


def way_back(services: Services, state: RunState) -> Action | None:
    """Return the command that leads back to the branch of a run, which may be gone, or to its detached HEAD."""
    head, branch = services.history.head(), state.branch
    if head.branch == branch:
        return None
    if operation := services.history.in_progress():  # HEAD is on no branch during a rebase
        return Action.of("status", consequence=operation, program="git")
    words = f"The run was started on {branch or 'a detached HEAD'}; HEAD is on {head.branch or 'no branch'} now"
    if branch and f"refs/heads/{branch}" in services.history.refs(f"refs/heads/{branch}"):
        return Action.of("switch", branch, consequence=words, program="git")
    commits = [e.payload.get("commit") or e.payload.get("git_hash") for e in services.log.events(run=state.id)]
    newest = next((commit for commit in reversed(commits) if commit), state.base.commit)
    if branch is None:
        return Action.of("switch", "--detach", newest or "HEAD", consequence=words, program="git")
    words += f". If that branch was renamed: git branch -m {shlex.quote(branch)}; if it was deleted, make it again"
    return Action.of("switch", "-c", branch, newest or "HEAD", consequence=words, program="git")


def begin_branch(services: Services, contract: Contract, requested: str | None) -> None:
    """Switch to the branch that was requested, or to that of a new run, unless HEAD is on it."""
    settings = services.settings.git
    configured = settings.branch_name.replace("{phase}", contract.phase) if settings.branch == BRANCH_PHASE else None
    name = requested or configured
    if name and services.history.head().branch != name:
        branches = [ref.removeprefix("refs/heads/") for ref in services.history.refs("refs/heads/")]
        inside = next((b for b in branches if name.startswith(f"{b}/") or b.startswith(f"{name}/")), None)
        if inside is not None:
            words = f"Branch {inside} exists, and git cannot also have {name}: one would be a folder of the other."
            raise Refusal("git.branch-exists", words, hint="Choose another name: --branch NAME")
        services.history.begin_branch(name)
        services.reporter.note(f"on the new branch {name}")


# Files that decide what git runs


def require_guarded_files(services: Services, state: RunState | None, accepted: Sequence[str] = ()) -> tuple[str, ...]:
    """Refuse if git's own files changed since the last attempt of a strict run began.

    Return the changed ones that a person accepts. Call it before git is asked anything.
    """
    if state is None or state.mode != STRICT or not state.guarded.unchecked or state.guarded.digests is None:
        return ()
    before, after = state.guarded.digests, services.history.state().guarded
    changed = run.guarded_changes(before, after)
    rest = [name for name in changed if name not in accepted]
    if rest:
        how = {name: run.guarded_change(name, before, after) for name in rest}
        raise _guarded_refusal(f"since the last attempt in run {state.number} began", state, how, changed)
    return changed


def accept_guarded_files(services: Services, journal: Journal, accepted: Sequence[str]) -> None:
    """Record that a person accepts changed files of git's own; refuse if others changed too."""
    changed = require_guarded_files(services, journal.state, accepted)
    if changed:
        now = dict(services.history.state().guarded)
        journal.append("guarded.accepted", paths=list(changed), guarded=now)


def changed_guarded_files(services: Services, state: RunState) -> tuple[str, ...]:
    """Return which of git's own files changed since the last attempt began."""
    before = state.guarded.digests
    return () if before is None else run.guarded_changes(before, services.history.state().guarded)


def _guarded_refusal(when: str, state: RunState, how: Mapping[str, str], changed: Sequence[str]) -> Refusal:
    """Return the refusal for changed files of git's own; `how` has those that nobody accepted, and what changed."""
    flags = " ".join(f"--accept-git {shlex.quote(name)}" for name in changed)
    go_on = actions.continuing(state)
    return Refusal(
        "git.guarded-changed",
        f"Files of git's own changed {when}: {wording.listed(_each_with_change(how))}",
        hint=f"Check and restore them, then {go_on}. To keep them: {go_on} {flags}",
        details={"go_on": go_on, "accept": f"{go_on} {flags}", "paths": list(how)},
    )


def _each_with_change(how: Mapping[str, str]) -> list[str]:
    """Return each name with what changed, in parentheses."""
    return [f"{name} ({words})" if words else name for name, words in how.items()]


def check_guarded_files(context: RunContext, attempt: Attempt) -> None:
    """Name what changed while the builder worked. Refusal `git.guarded-changed` in a strict run."""
    how = changed_since(context.services, attempt.before)
    if how and context.strict:
        raise _guarded_refusal(f"while {attempt.task.id} ran", context.state, how, tuple(how))
    note_guarded_files(context.services, f"While {attempt.task.id} ran", how)


def changed_since(services: Services, before: RepositoryState) -> dict[str, str]:
    """Return what changed in git's own files since `before`, by their names."""
    after = services.history.state()
    return {name: _how(name, before, after) for name in run.guarded_changes(before.guarded, after.guarded)}


def note_guarded_files(services: Services, when: str, how: Mapping[str, str]) -> None:
    """Name what changed in git's own files, if anything did."""
    if how:
        words = f"{when}, files changed that decide what git runs: {wording.listed(_each_with_change(how))}"
        services.reporter.note(f"{words}. Look at them before you use git")


def _how(name: str, before: RepositoryState, after: RepositoryState) -> str:
    """Return what changed in a guarded file: the names of the settings, or whether it is new or was removed."""
    how = run.guarded_change(name, before.guarded, after.guarded)
    rows = before.configuration.get(name, frozenset()) ^ after.configuration.get(name, frozenset())
    keys = wording.listed(sorted({_public_name(key) for key, _ in rows})) if before.configuration else ""
    return ": ".join(filter(None, (how, keys)))


def _public_name(key: str) -> str:
    """Return the name of a setting without a part that may be an address with a password in it."""
    section, _, rest = key.partition(".")
    return f"{section}.*.{rest.rpartition('.')[2]}" if section in _ADDRESSED and "." in rest else key


# Commits of what is in the user's tree


def message_of_run(services: Services, state: RunState, subject: str) -> str:
    """Return the message of a commit of a run that is no task's, in the user's template. More trailers can follow."""
    values = {"title": subject, "id": state.phase, "phase": state.phase}
    return services.settings.git.commit_message(values, {"Idumb-Run": state.id})


def commit(services: Services, state: RunState, paths: Sequence[str], message: str) -> CommitAttempt:
    """Commit these paths, as they are in the user's tree, on HEAD. Nothing to commit is no refusal."""
    if not paths:
        return CommitAttempt(None)
    head = services.history.head().commit
    tree = services.trees.committed(head, services.trees.save(paths), paths)
    if tree == services.history.tree_of(head):
        return CommitAttempt(None)
    made = services.history.make(tree, head, message, hooks=services.settings.git.hooks, wrote=state.wrote)
    if made.commit is not None and made.tree != tree:  # nothing proves what a hook makes of documents and restores
        made = services.history.make(tree, head, message, hooks=False, wrote=state.wrote)
    if made.commit is None:
        return made
    words = services.history.advance(state.branch, made.commit, head, message.partition("\n")[0])
    return CommitAttempt(None if words else made.commit, words)


def commit_or_fail(services: Services, state: RunState, paths: Sequence[str], message: str, failed: str) -> str | None:
    """Return the commit, None if there is nothing to commit; WorkFailed with git's words if it refuses."""
    committed = commit(services, state, paths, message)
    if committed.words:
        raise WorkFailed(
            "git.commit-refused", f"{failed}: {committed.words}", hint="Fix what git names, then run the command again"
        )
    return committed.commit


# The owner of the working tree, and what a killed one left


def shown_owner(holder: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the owner as answers show it."""
    names = ("pid", "host", "since", "command", "standing")
    return None if holder is None else {name: holder.get(name) for name in names}


def killed_operation_start(services: Services) -> str | None:
    """Return when the newest operation in this working tree, of any project, began if it never finished; else None.

    Call this as the owner, or before acquiring ownership: a running operation looks the same as a killed one.
    """
    here, _ = project_key.parts(services.worktree)
    for started in services.log.events(kind="operation.started", newest_first=True):
        if project_key.parts(started.payload.get("worktree", here))[0] == here:
            ended = services.log.events(
                operation=started.operation, kind="operation.finished", after=started.seq, limit=1
            )
            return None if any(ended) else started.at
    return None


def remove_stale_files(services: Services) -> None:
    """Remove locks and temporary files of a killed operation. Only for the owner of the working tree."""
    removed = services.history.remove_stale_files(killed_operation_start(services))
    if removed:
        services.reporter.note(
            f"The previous command was killed; its leftover files were removed: {wording.listed(removed)}"
        )


def _recover_stale_files(services: Services) -> None:
    """Remove stale files for a command that is not the owner yet. Refusal `lock.held` if another process is."""
    if killed_operation_start(services) is None:
        return
    services.owner.acquire("recovery")
    try:
        remove_stale_files(services)
    finally:
        services.owner.release()
