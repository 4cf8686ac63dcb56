"""Refusals and failures of runs: tasks, attempts, verification, rollback and undo."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import HINT, STATUS, Row, look, row, way

_CONTINUE = "Continue the run"
_START = "Start the task"
_RESUME = way("resume", "continue the run", "completed tasks stay completed", "idumb resume {phase}")
_RETRY = way(
    "retry", "retry the failed tasks", "each gets its full number of attempts", "idumb resume {phase} --retry-failed"
)
_NEXT = look("see what can run now", "idumb next", "next")
_SHOW = look("see what happened to the task", "idumb show {task}", "show")
_SKIP = way("skip", "skip the task", "tasks that depend on it stay blocked", "idumb skip {task} --why REASON")
_AGAIN = "idumb accept {task} --why REASON"
_TASKS = look("list the tasks of the phase", "idumb graph {phase}", "list")
_QUESTIONS = look("list the open questions", "idumb decisions", "list")
_MOVE = way(
    "move",
    "commit your changes or stash them (git stash push -- PATHS), then continue",
    "the task is retried",
    "idumb resume {phase}",
)
_TAKE_BACK = way(
    "roll-back",
    "roll back the run",
    "a new commit restores the files as before the run; idumb undo brings the work back",
    "idumb rollback {phase} --to start",
)
_DIRTY = row(
    _CONTINUE,
    way("commit", "commit the files, then run the command again", "the task's changes get a commit of their own"),
    way(
        "move",
        "stash the tracked ones (git stash push -- PATHS), move the untracked ones away, then run the command again",
        "the task starts without them",
    ),
)
_FAILED = row(_CONTINUE, _RETRY, _TAKE_BACK, STATUS)
_UNVERIFIED = row(
    "Verify the phase",
    way("again", "verify it again", "every criterion is checked again", "idumb verify-work {phase}"),
    _TAKE_BACK,
)
_NO_TASK = row("Find the task", _TASKS)
_LOCKED = row(_CONTINUE)

ROWS: Mapping[str, Row] = {
    "accept.secret": row(
        "Accept the task",
        way(
            "yes",
            "commit the value",
            "everyone with access to the repository can read it",
            "idumb decide {decision} yes",
        ),
        way("again", "remove the value, then accept the task again", "its files are committed", _AGAIN),
    ),
    "sandbox.none": row(
        _CONTINUE,
        way(
            "configure",
            "set `sandbox: auto` in .idumb/config.yaml, and install bubblewrap if idumb doctor says so",
            "agents then write only in the scope of their task",
        ),
        way(
            "omit",
            "omit --require-sandbox",
            "idumb detects what agents write elsewhere, but does not stop it",
            "idumb execute-phase {phase}",
        ),
    ),
    "accept.secret-name": row(
        "Accept the task",
        way("rename", "rename or remove the files, then accept the task again", "its files are committed", _AGAIN),
        _SKIP,
    ),
    "run.contract-changed": _LOCKED,
    "run.failed": _FAILED,
    "run.halted": _FAILED,
    "run.in-editor": row(
        _CONTINUE, way("start", "start the task in the editor", "its builder receives the task", HINT)
    ),
    "run.interrupted": row("Finish this command", STATUS, _RESUME),
    "run.moved-on": row(_CONTINUE, STATUS),
    "run.none": row("Find the run", way("run", "run the phase", "you are asked for consent first", "{run}")),
    "run.paused": row(_CONTINUE),
    "skip.not-confirmed": row("Skip the task"),
    "run.unknown": row("Find the run", look("list the runs of the phase", HINT, "list")),
    "run.waiting": row(_CONTINUE, _QUESTIONS, _RESUME),
    "dry-run.failed": row("Finish the dry run"),
    "dry-run.waiting": row("Finish the dry run"),
    "lock.plan-changed": row(
        _CONTINUE,
        look("see every error with its line", "idumb check-plan {phase}", "check"),
        way("run", "run it as it is now", "you are asked for consent first", "{run}"),
    ),
    "lock.configuration-changed": _LOCKED,
    "lock.policy-changed": _LOCKED,
    "envelope.changed": row(_CONTINUE),
    "attempt.not-open": row(
        "Submit or give up the attempt",
        way("start", "start the task", "this opens an attempt", "idumb start {task}"),
        _SHOW,
    ),
    "attempt.open": row(_CONTINUE),
    "task.already-done": row(_START, _SHOW, _NEXT),
    "task.bad-id": row("Find the task", STATUS),
    "task.changed-since": row(_CONTINUE, _MOVE, _SKIP),
    "task.dirty-path": _DIRTY,
    "task.failed": row(
        _START, way("retry", "start it again", "this opens a new attempt", "idumb start {task} --retry"), _SHOW
    ),
    "task.not-accepted": row(
        "Accept the work",
        _SHOW,
        way("retry", "improve the work and submit it again", "it is judged again", "idumb submit {task}"),
    ),
    "task.no-attempt": row("Show an attempt", _SHOW),
    "task.no-builder": row(
        "Build the task", way("bind", "name a builder in .idumb/config.yaml", "you are asked for consent again"), STATUS
    ),
    "task.no-reason": row(
        "Record your decision", way("why", "give a reason: --why 'the reason'", "it is recorded with your decision")
    ),
    "task.not-ready": row(_START, _NEXT, _SHOW),
    "task.other-builder": row(
        _START,
        way("run", "let its own builder build it", "you are asked for consent first", "{run}"),
        way("editor", "make `editor` its builder", "this changes the contract, so it needs your consent"),
    ),
    "task.other-unfinished": row(
        _START,
        way("start", "continue the other task", "this opens an attempt", "idumb start {other}"),
        way("skip", "skip the other task", "tasks that depend on it stay blocked", "idumb skip {other} --why REASON"),
    ),
    "task.unknown": _NO_TASK,
    "task.waiting": row(_START, _QUESTIONS, _RESUME),
    "undo.amended": row(
        "Undo it",
        way("resume", "let the run redo the tasks", "they run under the amended plan", "idumb resume {phase}"),
        look("see what the amendment changed", "idumb plan-diff {phase}"),
    ),
    "undo.no-such-operation": row(
        "Undo it",
        way("newest", "undo the last operation", "you see its effect first and confirm it", "idumb undo"),
        look("list the operations", "idumb log", "log"),
    ),
    "undo.other-operation": row(
        "Undo it",
        way("undo", "undo it anyway", "a new commit restores its files", "{command}"),
        way("leave", "change nothing", "everything stays as it is", "idumb next"),
    ),
    "snapshots.freed": row(
        "Restore or compare the files of a run",
        look("list the commits of the run", "git log --grep {run}"),
        way("revert", "undo its commits with git revert", "the other commits stay"),
        STATUS,
    ),
    "undo.nothing": row("Undo", look("list the operations", "idumb log", "log")),
    "resume.nothing-to-judge": row("Judge the work of failed tasks again", _RETRY, STATUS),
    "resume.no-attempt": row("Give guidance to the next attempt", _RETRY, STATUS),
    "rollback.command-failed": row(
        "Roll back",
        way("correct", "fix what the command reports, then roll back again", "no file has been restored yet"),
        way("past", "leave the effect of that task in place", "only its files are restored", "{past}"),
    ),
    "rollback.conflict": row(
        "Roll back",
        way("keep", "save your versions elsewhere and restore the files"),
        look("change nothing", "idumb status", "leave"),
    ),
    "rollback.irreversible": row(
        "Roll back",
        way(
            "before",
            "stop before that task",
            "that task and all earlier ones stay",
            "idumb rollback {phase} --to {task}",
        ),
        way("past", "restore only its files", "its effect elsewhere stays", "{past}"),
    ),
    "secret.unknown-name": row(
        "Restore files",
        way(
            "set",
            "set the environment variables that this run had, then run the command again",
            "idumb can match the names",
        ),
        STATUS,
    ),
    "prove.mismatch": row(
        "Prove the work from its commit",
        look("see the recorded evidence, or keep a lost commit on a branch", HINT, "next"),
        way("verify", "judge the present files", "every criterion is checked again", "idumb verify-work {phase}"),
    ),
    "prove.nothing-done": row("Rerun the evidence", _RESUME, STATUS),
    "rollback.no-checkpoint": row(
        "Roll back",
        way(
            "start",
            "roll back the whole run",
            "a new commit restores the files as before the run",
            "idumb rollback {phase} --to start",
        ),
        STATUS,
    ),
    "rollback.not-confirmed": row(
        "Restore files",
        way("yes", "restore the files", "in a new commit; idumb undo brings the work back", HINT),
        way("no", "change nothing", "everything stays as it is"),
    ),
    "rollback.unfinished": row(
        _CONTINUE,
        way(
            "resume",
            "finish the rollback, then continue",
            "the files end as the rollback intended",
            "idumb resume {phase}",
        ),
    ),
    "verification.failed": _UNVERIFIED,
    "verification.partial": row(
        "Mark the phase as verified",
        way("gaps", "plan the missing proof", "a plan for the gaps is written", "idumb verify-work {phase} --gaps"),
        way("again", "verify it again", "every criterion is checked again", "idumb verify-work {phase}"),
    ),
    "verification.waiting": row(
        "Mark the phase as verified",
        _QUESTIONS,
        way(
            "again",
            "when they are answered, verify it again",
            "every criterion is checked again",
            "idumb verify-work {phase}",
        ),
    ),
    "verification.too-early": row("Verify the phase", _RESUME, _NEXT),
}
