"""Refusals about the repository."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import DOCTOR, HINT, STATUS, Row, look, row, way

_RUN = "Work in this repository"
_READ = "Read this repository"
_CONTINUE = "Continue the run"
_GIT_STATUS = look("see the state of the repository", "git status")
_FSCK = way("check", "check git's objects", "nothing is changed; git names damaged and missing objects", "git fsck")
_FETCH = way(
    "fetch",
    "fetch the missing objects from the remote",
    "git fetches every object that the remote has; then run the command again",
    "git fetch --refetch",
)
_WORKTREES = look("list the working trees", "git worktree list")


def _finish(name: str, done: str, dropped: str, abort: str) -> tuple[str, Row]:
    """Return the row of a git operation in progress, which the user finishes or aborts with git."""
    return (
        f"git.{name}",
        row(
            _RUN,
            _GIT_STATUS,
            way("finish", "finish it with git", f"{done}; then run the command again"),
            way("abort", "abort it with git", dropped, abort),
        ),
    )


_PREPARE = way("prepare", "install it by checkout.prepare in .idumb/config.yaml", "it is made in each checkout")
ROWS: Mapping[str, Row] = {
    "checkout.leads-back": row("Run programs in a checkout", _PREPARE),
    "checkout.missing": row(
        "Copy what checkout.provide names",
        way("install", "install it in your working tree", "it is copied into each checkout"),
        _PREPARE,
    ),
    "checkout.too-large": row(
        "Copy what checkout.provide names",
        _PREPARE,
        way("limit", "set a higher checkout.limit in .idumb/config.yaml", "it is copied into each checkout"),
    ),
    "checkout.prepare": row(
        "Install what the checks need",
        way("correct", "correct checkout.prepare in .idumb/config.yaml, or the files that it reads", "the checks run"),
        way(
            "provide",
            "name the installed folders in checkout.provide instead",
            "checks use those of your working tree; the evidence is weaker",
        ),
    ),
    "checks.network": row(
        "Run the phase in strict mode",
        way("none", "set `checks: {network: none}` in .idumb/config.yaml", "checks reach nothing but themselves"),
        way("open", "set `checks: {network: open}` in .idumb/config.yaml", "checks have your network, as before"),
    ),
    "checkout.busy": row(
        "Use a checkout of the repository",
        way("wait", "wait until one of the other commands has ended", "its checkout is free again", "idumb status"),
        way("stop", "stop one of the other commands", "its checkout is free again"),
    ),
    "checkout.unusable": row(
        "Use a checkout of the repository",
        way(
            "elsewhere",
            "set IDUMB_CHECKOUTS to a folder that you own, outside the repository",
            "checkouts are made there",
        ),
        way("own", "make yourself the only owner of that folder, with write permission", "checkouts are made in it"),
    ),
    "git.bare": row(_RUN, _WORKTREES, way("make", "add a working tree: git worktree add PATH", "then run idumb there")),
    "git.branch-exists": row(
        "Start the run on that branch",
        way("rename", "choose another name: --branch NAME", "the run starts on a new branch"),
        look("list the branches", "git branch --list"),
    ),
    "git.branch-name": row(
        "Start the run on that branch",
        way("rename", "choose another name: --branch NAME, or git.branch_name", "the run starts on a new branch"),
    ),
    "git.broken-link": row(
        _RUN,
        _WORKTREES,
        way("repair", "repair the links of the working trees", "only links are changed", "git worktree repair"),
    ),
    "git.commit-refused": row(
        "Commit the work",
        _GIT_STATUS,
        way("correct", "fix what git reports, then run the command again", "the same work is committed"),
    ),
    "git.failed": row(_READ, _GIT_STATUS, _FSCK),
    "git.guarded-changed": row(
        _CONTINUE,
        way("look", "inspect these files and restore them", "the run continues unchanged", "{go_on}"),
        way("accept", "keep the changes", "from now on git uses them, also for idumb's own commits", "{accept}"),
    ),
    "git.head-unreadable": row(_READ, _FSCK, DOCTOR),
    "git.holds-state": row(_RUN, way("ignore", "add the folder to .gitignore, or set XDG_STATE_HOME to another one")),
    "git.index-locked": row(
        _RUN,
        _GIT_STATUS,
        way("wait", "wait until the other git ends", "it removes its lock; then run the command again"),
        way("remove", "if no git is running, remove the lock", "git can write the index again"),
    ),
    "git.inside-git-folder": row(_RUN, way("leave", "go to the working tree", "then run the command there", HINT)),
    "git.no-identity": row(
        "Commit in your name",
        way("name", "set your name", "git commits under that name", "git config user.name NAME"),
        way("address", "set your email address", "git commits under that address", "git config user.email ADDRESS"),
        way(
            "none", "set `git: {commit: none}` in .idumb/config.yaml", "idumb makes no commits; work stays uncommitted"
        ),
    ),
    "git.not-a-repository": row(
        _RUN,
        way("init", "create a repository here", "git keeps its data in .git", "git init"),
        way("move", "go to a folder in a repository", "then run the command there"),
    ),
    "git.object-missing": row(
        _READ,
        _FETCH,
        _FSCK,
        way("forget", "forget all runs, then: idumb init", "files, plans and commits stay", "idumb deinit"),
    ),
    "git.other-branch": row(
        _CONTINUE,
        way("switch", "switch to the run's branch", "the run continues there", "{back}"),
        STATUS,
    ),
    "git.ownership": row(
        _READ,
        look("see which entry git requires", "git status"),
        way("own", "take ownership of the folder, or add it to safe.directory", "git then trusts it"),
    ),
    "git.program-missing": row(_RUN, way("install", "install git 2.36 or newer, or add it to PATH")),
    "git.ref-moved": row(
        "Move one of idumb's refs",
        STATUS,
        way(
            "again", "when no other git or idumb is running, run the command again", "it starts from the current state"
        ),
    ),
    "git.snapshot-unreadable": row("Read a snapshot", _FSCK, DOCTOR),
    "git.unmerged": row(_RUN, _GIT_STATUS, way("settle", "resolve the conflicts and git add each file")),
    "git.unreadable": row(_READ, _GIT_STATUS, _FSCK),
    "git.unsupported-format": row(_RUN, look("list the settings of the repository", "git config --list --local")),
    "git.unusable-path": row(_RUN, way("rename", "rename the folder, or move the repository to another one")),
    "git.scanning": row(_RUN, way("wait", "wait until the other command ends, then run this one again")),
    "git.waits-for-pipe": row(_RUN, way("remove", "remove the pipe", "then run the command again")),
    "git.work-tree-elsewhere": row(
        _RUN,
        way("here", "use this folder", "core.worktree is removed", "git config --unset core.worktree"),
        way("there", "in that working tree, write `gitdir: ` and the path of git's folder to a file .git"),
    ),
    **dict(
        (
            _finish(
                "merge-in-progress", "the merge is committed", "files are as before the merge", "git merge --abort"
            ),
            _finish(
                "rebase-in-progress",
                "the commits are rebased",
                "the branch is as before the rebase",
                "git rebase --abort",
            ),
            _finish(
                "cherry-pick-in-progress",
                "the commit is applied",
                "files are as before it started",
                "git cherry-pick --abort",
            ),
            _finish(
                "revert-in-progress", "the commit is reverted", "files are as before it started", "git revert --abort"
            ),
            _finish("bisect-in-progress", "the commit is found", "HEAD is where it was before", "git bisect reset"),
            _finish(
                "sequence-in-progress",
                "all commits are applied",
                "files are as before it started",
                "git cherry-pick --quit",
            ),
            _finish(
                "am-in-progress", "the patches are applied", "the branch is as before it started", "git am --abort"
            ),
        )
    ),
}
