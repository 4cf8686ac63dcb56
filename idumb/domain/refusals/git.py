"""Refusals about the repository."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import DOCTOR, HINT, LOOK, STATUS, Row, row, way

_RUN = "Work in this repository"
_READ = "Read this repository"
_GO_ON = "Go on with the run"
_GIT_STATUS = way("look", "see what git says", LOOK, "git status")
_FSCK = way(
    "check", "let git check its objects", "nothing is changed; damaged and missing objects are named", "git fsck"
)
_FETCH = way(
    "fetch",
    "fetch what is missing from the remote",
    "git brings every object that the remote has; then run the same command again",
    "git fetch --refetch",
)
_WORKTREES = way("look", "see which work trees there are", LOOK, "git worktree list")


def _finish(name: str, done: str, dropped: str, abort: str) -> tuple[str, Row]:
    """A git operation that is in the middle: it is finished or given up by git itself."""
    return (
        f"git.{name}",
        row(
            _RUN,
            _GIT_STATUS,
            way("finish", "finish it with git", f"{done}; then run the same command again"),
            way("abort", "give it up with git", dropped, abort),
        ),
    )


ROWS: Mapping[str, Row] = {
    "clones.unusable": row(
        "Make a private copy of the repository",
        way("elsewhere", "set IDUMB_CLONES to a folder of yours outside the repository", "copies are made there"),
        way("own", "make the folder that is named yours alone and writable", "copies are made where they were to be"),
    ),
    "git.bare": row(_RUN, _WORKTREES, way("make", "make a work tree with git worktree add", "idumb runs there")),
    "git.branch-exists": row(
        "Begin the run on that branch",
        way("rename", "choose another name: --branch NAME", "the run begins on a new branch"),
        way("look", "see which branches there are", LOOK, "git branch --list"),
    ),
    "git.branch-name": row(
        "Begin the run on that branch",
        way("rename", "choose another name: --branch NAME, or git.branch_name", "the run begins on a new branch"),
    ),
    "git.branch-rewritten": row(
        _GO_ON,
        way("look", "see what happened to the branch", LOOK, "git reflog"),
        way("keep", "keep the old commits under a name", "nothing else is moved", "git branch idumb-before {was}"),
        way("go-on", "go on from where HEAD is now", "the task is tried again on top of it", "{go_on}"),
    ),
    "git.broken-link": row(
        _RUN,
        _WORKTREES,
        way("repair", "let git repair the links of its work trees", "only links are changed", "git worktree repair"),
    ),
    "git.clone-gone": row(
        "Build the task in its private clone",
        way("look", "see where the run is", LOOK, "idumb status"),
        way("move", "move away what was put in its place, then resume", "the task begins again in a new clone"),
    ),
    "git.clone-stays": row(
        "Remove a private copy",
        way("remove", "remove it yourself", "what only it held is kept under a ref already", "rm -rf {path}"),
        way("leave", "leave it", "it takes room, and nothing else"),
    ),
    "git.commit-refused": row(
        "Commit the work",
        _GIT_STATUS,
        way("correct", "correct what git names, then run the same command again", "the same work is committed"),
    ),
    "git.committed-meanwhile": row(
        _GO_ON,
        way("look", "see the commits", LOOK, "git log --stat {is}"),
        way("go-on", "let them stay and go on", "the task is tried again on top of them", "{go_on}"),
        way("accept", "take the task as it is", "it counts as done by your word", "idumb accept {task} --why REASON"),
        way("take-back", "take the commits off the branch", "no file changes; they stay under a ref", "{undo}"),
    ),
    "git.failed": row(_READ, _GIT_STATUS, _FSCK),
    "git.file-too-large": row(
        "Save the work tree before a task",
        way("ignore", "let git ignore the file", "it is in no snapshot, and idumb never touches it"),
        way("move", "move it out of the work tree", "everything else is saved"),
    ),
    "git.guarded-changed": row(
        _GO_ON,
        way("look", "look at the named files and put them back", "the run goes on as it was", "{go_on}"),
        way("accept", "let them stay", "git runs under them from now on, with idumb's commits too", "{accept}"),
    ),
    "git.head-unreadable": row(_READ, _FSCK, DOCTOR),
    "git.index-locked": row(
        _RUN,
        _GIT_STATUS,
        way("wait", "let the other git end", "it removes its lock; then run the same command again"),
        way("remove", "remove the lock, once no git runs", "git can write the index again"),
    ),
    "git.inside-git-folder": row(_RUN, way("leave", "go to the work tree", "the same command works there", HINT)),
    "git.no-identity": row(
        "Make commits for you",
        way("name", "tell git who you are", "git commits under that name", "git config user.name NAME"),
        way("address", "tell git your address", "git commits under that address", "git config user.email ADDRESS"),
        way("none", "make no commits: `git: {commit: none}` in .idumb/config.yaml", "work stays uncommitted"),
    ),
    "git.not-a-repository": row(
        _RUN,
        way("init", "make a repository here", "git keeps its data in .git from now on", "git init"),
        way("move", "go to a folder of a repository", "the same command works there"),
    ),
    "git.object-missing": row(_READ, _FETCH, _FSCK),
    "git.other-branch": row(
        _GO_ON,
        way("switch", "go back to the run's branch", "the run goes on there", "{back}"),
        way("look", "see where everything is", LOOK, "idumb status"),
    ),
    "git.own-refs-changed": row(
        _GO_ON,
        DOCTOR,
        way("go-on", "go on", "refs that can be made again are made; what is lost stays named by doctor", "{go_on}"),
    ),
    "git.ownership": row(
        _READ,
        way("look", "see which entry git misses", LOOK, "git status"),
        way("own", "make the folder yours, or name it in safe.directory", "git trusts it from then on"),
    ),
    "git.program-missing": row(
        _RUN, way("install", "install git 2.31 or newer, or put it on PATH", "run the same command again")
    ),
    "git.ref-moved": row(
        "Move a ref of idumb's",
        STATUS,
        way("again", "run the same command again, once no other git or idumb runs", "it starts from what is there now"),
    ),
    "git.refs-deleted": row(
        _GO_ON,
        way("bring-back", "bring the refs back", "only these refs are written", "{back}"),
        way("go-on", "leave them and go on", "the task is tried again", "{go_on}"),
    ),
    "git.refs-moved": row(
        _GO_ON,
        way("bring-back", "bring the refs back", "only these refs are written", "{back}"),
        way("go-on", "leave them and go on", "the task is tried again", "{go_on}"),
    ),
    "git.snapshot-unreadable": row("Read a snapshot", _FSCK, DOCTOR),
    "git.unmerged": row(
        _RUN,
        _GIT_STATUS,
        way("settle", "settle the conflicts and git add each file", "then run the same command again"),
    ),
    "git.unreadable": row(_READ, _GIT_STATUS, _FSCK),
    "git.unreadable-file": row(
        "Save the work tree before a task",
        way("permit", "make the file readable", "it is saved with all others"),
        way("ignore", "let git ignore it", "it is in no snapshot, and idumb never touches it"),
    ),
    "git.unsafe-tree": row(_READ, _FSCK, DOCTOR),
    "git.unsupported-format": row(
        _RUN, way("look", "see the repository's settings", LOOK, "git config --list --local")
    ),
    "git.work-tree-elsewhere": row(
        _RUN,
        way("here", "let git use this folder", "core.worktree is removed", "git config --unset core.worktree"),
        way("there", "run idumb in that work tree", "the same command works there"),
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
                "the commit is picked",
                "files are as before it began",
                "git cherry-pick --abort",
            ),
            _finish(
                "revert-in-progress", "the commit is reverted", "files are as before it began", "git revert --abort"
            ),
            _finish("bisect-in-progress", "the commit is found", "HEAD is where it was before", "git bisect reset"),
            _finish(
                "sequence-in-progress",
                "all commits are picked",
                "files are as before it began",
                "git cherry-pick --quit",
            ),
            _finish("am-in-progress", "the patches are applied", "the branch is as before it began", "git am --abort"),
        )
    ),
}
