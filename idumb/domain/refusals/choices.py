"""The commands that a user can choose from after a refusal, by code. Other refusals offer their hint."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping
from typing import Any

from idumb.domain.action import Action
from idumb.domain.decision import Choice


def look(text: str, command: str, id: str = "look") -> Choice:
    """Return a choice that changes nothing."""
    return Choice(id, text, "this only reads", command)


def names(command: str) -> tuple[str, ...]:
    """Return the details that a command needs."""
    return tuple(name for _, name, _, _ in string.Formatter().parse(command) if name)


def filled(command: Action | str | None, details: Mapping[str, Any]) -> Action | str | None:
    """Return the command with its details filled in; None if one is unknown, so that nobody runs half a command."""
    if command is None or isinstance(command, Action):
        return command
    values = {name: details.get(name) for name in names(command)}
    if any(value is None for value in values.values()):
        return None
    words = [word.format_map(values) for word in command.split()]
    if command == f"{{{''.join(values)}}}":  # the detail is a whole command
        return next(iter(values.values()))
    return Action(words[1], tuple(words[2:])) if words[0] == "idumb" else shlex.join(words)


# fmt: off
STATUS = look("see the state of the run", "idumb status")
DOCTOR = look("see what is wrong and how to fix it", "idumb doctor", "examine")
GIT_STATUS = look("see the state of the repository", "git status")
CHECK = look("see every error with its line", "idumb check-plan {phase}", "check")
DIFF = look("see what changed", "idumb check-plan {phase} --diff")
LETTERS = look("list all dead letters", "idumb dlq list", "list")
HANDOFFS = look("list all handoffs", "idumb handoff list", "list")
QUESTIONS = look("list the open questions", "idumb decisions", "list")
WORKFLOWS = look("list the workflows", "idumb workflow list", "list")
ROADMAP = look("list the phases", "idumb roadmap", "list")
IMPORT = look("see the formats and options", "idumb import --help", "help")
HELP = look("see the commands", "idumb --help", "help")

_FIX = Choice("fix", "fix everything that is safe to fix", "idumb keeps a copy of every file it replaces",
              "idumb doctor --fix")
_FSCK = Choice("check", "check git's objects", "nothing is changed; git names damaged and missing objects", "git fsck")
_HERE = Choice("here", "set up this folder", "it is a project of its own", "idumb init --here")
_APPROVE = Choice("approve", "approve the phase as it is now",
                  "you see first what will run; strict runs follow this approval", "idumb approve {phase}")
_APPROVE_STEPS = Choice("edit", "change the step plan itself, then approve it", "its run adopts the change",
                        "idumb approve {path}")
_FROM_FILE = Choice("edit", "change the plan in an editor, then amend the run from the file",
                    "you see the difference first; the run continues under the next version",
                    "idumb amend {phase} --from-file")
_RESTORED = "a new commit restores the files; idumb undo brings the work back"
_TAKE_BACK = Choice("roll-back", "roll back the run", _RESTORED, "idumb rollback {phase} --to start")
_RESUME = Choice("resume", "continue the run", "completed tasks stay completed", "idumb resume {phase}")
_RETRY = Choice("retry", "retry the failed tasks", "each gets its full number of attempts",
                "idumb resume {phase} --retry-failed")
_NEXT = look("see what can run now", "idumb next", "next")
_SHOW = look("see what happened to the task", "idumb show {task}", "show")
_SKIP = Choice("skip", "skip the task", "tasks that depend on it stay blocked", "idumb skip {task} --why REASON")
_RUN = Choice("run", "run it as it is now", "you are asked for consent first", "{run}")
_STOP = Choice("stop", "stop the running command", "it stops at the next safe point and saves its state", "idumb stop")
_FORCE = Choice("force", "if it is dead or does not respond, stop it by force",
                "it can no longer write; idumb resume then recovers its work", "idumb stop --force")
_PAST = Choice("past", "restore only the files", "the effect of that task elsewhere stays", "{past}")
_APPROVAL = (CHECK, _APPROVE)
_FORBIDDEN = (DIFF, _TAKE_BACK)
_BACKUP = (Choice("write", "write a backup", "the event log is copied", "idumb backup idumb-backup.db"),)
_ACCEPT = "idumb accept {task} --why REASON"


def _abort(command: str, consequence: str = "files are as before it started") -> tuple[Choice, ...]:
    """Return the choices while a git operation is in progress, which the user finishes or aborts with git."""
    return GIT_STATUS, Choice("abort", "abort it with git", consequence, command)


ROWS: Mapping[str, tuple[Choice, ...]] = {
    "agent.no-package": (Choice("install", "install the package", "the binding then works as it is",
                                "pip install 'idumb[models]'"),),
    "mcp.not-installed": (Choice("install", "install the library", "idumb mcp then works",
                                 "pip install 'idumb[mcp]'"),),
    "checkout.busy": (Choice("wait", "wait until one of the other commands has ended", "its checkout is free again",
                             "idumb status"),),
    # git
    "git.am-in-progress": _abort("git am --abort"),
    "git.bisect-in-progress": _abort("git bisect reset", "HEAD is where it was before"),
    "git.cherry-pick-in-progress": _abort("git cherry-pick --abort"),
    "git.merge-in-progress": _abort("git merge --abort"),
    "git.rebase-in-progress": _abort("git rebase --abort"),
    "git.revert-in-progress": _abort("git revert --abort"),
    "git.sequence-in-progress": _abort("git cherry-pick --quit"),
    "git.broken-link": (Choice("repair", "repair the links of the working trees", "only links are changed",
                               "git worktree repair"),),
    "git.failed": (GIT_STATUS, _FSCK),
    "git.unreadable": (GIT_STATUS, _FSCK),
    "git.head-unreadable": (_FSCK, DOCTOR),
    "git.snapshot-unreadable": (_FSCK, DOCTOR),
    "git.object-missing": (Choice("fetch", "fetch the missing objects from the remote", "then run the command again",
                                  "git fetch --refetch"), _FSCK,
                           Choice("forget", "forget all runs, then: idumb init", "files, plans and commits stay",
                                  "idumb deinit")),
    "git.guarded-changed": (Choice("look", "inspect these files and restore them", "the run continues unchanged",
                                   "{go_on}"),
                            Choice("accept", "keep the changes",
                                   "from now on git uses them, also for idumb's own commits", "{accept}")),
    "git.no-identity": (Choice("name", "set your name", "git commits under that name", "git config user.name NAME"),
                        Choice("address", "set your email address", "git commits under that address",
                               "git config user.email ADDRESS")),
    "git.not-a-repository": (Choice("init", "create a repository here", "git keeps its data in .git", "git init"),),
    "git.other-branch": (Choice("switch", "switch to the run's branch", "the run continues there", "{back}"), STATUS),
    "git.work-tree-elsewhere": (Choice("here", "use this folder", "core.worktree is removed",
                                       "git config --unset core.worktree"),),
    # the event log, its lock, and the state of idumb
    "store.corrupt": (DOCTOR, _FIX),
    "store.failed": (DOCTOR, _FIX),
    "store.missing": (DOCTOR, _FIX),
    "store.older": (DOCTOR, _FIX),
    "doctor.problems": (_FIX, DOCTOR),
    "lock.elsewhere": (STATUS, _FORCE),
    "lock.held": (Choice("wait", "wait until it ends", "then run the command again", "idumb status"),
                  _STOP, _FORCE),
    "stop.no-answer": (look("wait and check again", "idumb status", "wait"), _FORCE),
    "stop.no-tasks": (STATUS, _STOP),
    "backup.broken": _BACKUP,
    "backup.missing": _BACKUP,
    "backup.incomplete": (DOCTOR, Choice("without", "remove idumb without a backup",
                                         "its refs are deleted permanently", "idumb deinit --no-backup --yes")),
    "deinit.projects": (Choice("all", "remove idumb from every project",
                               "the history of all projects is removed after a backup; their files stay",
                               "idumb deinit --all-projects"),),
    "init.nested": (_HERE,),
    "init.folder": (_HERE,),
    "init.not-confirmed": (_HERE,),
    "project.elsewhere": (_HERE,),
    # plans, consent and amendments
    "phase.not-found": (ROADMAP, Choice("add", "add a phase to the roadmap", "it is written to ROADMAP.md",
                                        "idumb roadmap --add TITLE")),
    "phase.step-plan": (ROADMAP,),
    "phase.created": (_TAKE_BACK, Choice("force", "then run the phase again", "a new run executes every task",
                                         "idumb execute-phase {phase} --force")),
    "mode.strict-plan": (Choice("strict", "omit --mode", "it runs after you approve it", "idumb approve {phase}"),),
    "plan.done-changed": (Choice("roll-back", "roll back the work first", _RESTORED,
                                 "idumb rollback {phase} --to {to}"), DIFF),
    "plan.approved": (Choice("add", "add it, then approve the phase again", "the present approval ends", "{command}"),
                      look("keep the approval", "idumb check-plan {phase}", "keep")),
    "plan.kept-gone": (DOCTOR, look("list the commits that no ref reaches", "git fsck --unreachable --no-reflogs")),
    "plan.step-plan": (_APPROVE_STEPS,),
    "research.own": (Choice("use", "plan with your file", "the planner reads it", "idumb plan-phase {phase}"),),
    "question.waiting": (Choice("answer", "answer each question in its file, or with --answer", "the answers are kept",
                                "idumb plan discuss {phase}"),),
    "consent.missing": (CHECK, Choice("agree", "consent to exactly this contract",
                                      "your consent is recorded; nothing runs",
                                      "idumb approve {phase} --hash {contract_hash}")),
    "consent.other-hash": (Choice("again", "review what would run now", "you are asked for consent", "{again}"),),
    **{f"approval.{why}": _APPROVAL for why in ("bad-signature", "expired", "missing", "revoked", "void")},
    "approval.other-contract": (CHECK,),
    **{f"amend.{part}": _FORBIDDEN
       for part in ("assumptions", "attempted", "mode", "phase", "plan", "done", "plan-removed")},
    "amend.changed-meanwhile": (DIFF, _FROM_FILE),
    "amend.foreign-plan": (_FROM_FILE,),
    "amend.link": (_FROM_FILE,),
    "amend.several-plans": (_FROM_FILE,),
    "amend.no-deviation": (_SHOW,),
    "amend.other-contract": (look("see what changes now", "{command}"),),
    "amend.step-plan": (_APPROVE_STEPS,),
    "amend.strict": (_APPROVE, _FROM_FILE),
    **{f"workflow.{what}-input": (look("see its inputs", "idumb workflow show {workflow}", "show"),)
       for what in ("missing", "unknown")},
    "workflow.other-handoff": (HANDOFFS,),
    "workflow.handoff-stale": (HANDOFFS,),
    "workflow.handoff-over": (look("see the handoff", "idumb handoff show {handoff}"),
                              Choice("reopen", "make it pending again", "it can be taken up",
                                     "idumb handoff update {handoff} pending")),
    # runs and tasks
    "run.interrupted": (_RESUME,),
    "lock.plan-changed": (CHECK, _RUN),
    "attempt.not-open": (Choice("start", "start the task", "this opens an attempt", "idumb start {task}"), _SHOW),
    "accept.secret": (Choice("take", "take the work, and remove the value", "idumb submit judges and commits it",
                             "idumb take {task}"), _SKIP),
    "accept.secret-name": (Choice("rename", "rename or remove the files, then accept the task again",
                                  "its files are committed", _ACCEPT), _SKIP),
    "task.already-done": (_SHOW, _NEXT),
    "task.changed-since": (Choice("move", "commit your changes or stash them (git stash push -- PATHS), then continue",
                                  "the task is retried", "idumb resume {phase}"), _SKIP),
    "task.failed": (Choice("retry", "start it again", "this opens a new attempt", "idumb start {task} --retry"), _SHOW),
    "task.not-ready": (_NEXT, _SHOW),
    "task.other-builder": (_RUN,),
    "task.other-unfinished": (Choice("start", "continue the other task", "this opens an attempt",
                                     "idumb start {other}"),
                              Choice("skip", "skip the other task", "tasks that depend on it stay blocked",
                                     "idumb skip {other} --why REASON")),
    "task.waiting": (QUESTIONS, _RESUME),
    "resume.nothing-to-judge": (_RETRY, STATUS),
    "resume.no-attempt": (_RETRY, STATUS),
    "prove.nothing-done": (_RESUME, STATUS),
    "verification.too-early": (_RESUME, _NEXT),
    # rollback and undo
    "rollback.command-failed": (_PAST,),
    "rollback.irreversible": (Choice("before", "stop before that task", "that task and all earlier ones stay",
                                     "idumb rollback {phase} --to {task}"), _PAST),
    "rollback.no-checkpoint": (_TAKE_BACK, STATUS),
    "rollback.unfinished": (_RESUME,),
    "snapshots.freed": (look("list the commits of the run", "git log --grep {run}"), STATUS),
    "undo.amended": (_RESUME, DIFF),
    "undo.no-such-operation": (Choice("newest", "undo the last operation",
                                      "you see its effect first and confirm it", "idumb undo"),
                               look("list the operations", "idumb log", "log")),
}
# fmt: on
