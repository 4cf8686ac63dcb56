"""Refusals and failures of runs: tasks, attempts, verification, rollback and undo."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import HINT, LOOK, STATUS, Row, row, way

_GO_ON = "Go on with the run"
_START = "Start the task"
_RESUME = way("resume", "go on with the run", "finished tasks stay finished", "idumb resume {phase}")
_RETRY = way("retry", "try failed tasks again", "each gets its attempts anew", "idumb resume {phase} --retry-failed")
_NEXT = way("next", "see what can run now", LOOK, "idumb next")
_SHOW = way("show", "see what happened to it", LOOK, "idumb show {task}")
_SKIP = way("skip", "leave the task out", "what depends on it stays blocked", "idumb skip {task} --why REASON")
_ACCEPT = way("accept", "take the task as it is", "it counts as done by your word", "idumb accept {task} --why REASON")
_AGAIN = "idumb accept {task} --why REASON"
_TASKS = way("list", "see the tasks of the phase", LOOK, "idumb graph {phase}")
_QUESTIONS = way("list", "see the questions that wait", LOOK, "idumb decisions")
_MOVE = way(
    "move", "commit your changes or move them away, then go on", "the task is tried again", "idumb resume {phase}"
)
_TAKE_BACK = way(
    "roll-back",
    "take the run's work back",
    "files are as before the run, in a new commit; idumb undo brings the work again",
    "idumb rollback {phase} --to start",
)
_DIRTY = row(
    _GO_ON,
    way("commit", "commit the files, then run the same command again", "the task changes them in a commit of its own"),
    way("move", "move them away, then run the same command again", "the task starts without them"),
)
_FAILED = row(_GO_ON, _RETRY, _TAKE_BACK, STATUS)
_STOPPED = row(_GO_ON, STATUS, _RESUME)
_UNVERIFIED = row(
    "Verify the phase",
    way("again", "judge it again", "every criterion is checked once more", "idumb verify-work {phase}"),
    _TAKE_BACK,
)
_NO_TASK = row("Find the task", _TASKS)
_LOCKED = row(_GO_ON)

ROWS: Mapping[str, Row] = {
    "accept.secret": row(
        "Accept the task",
        way("yes", "commit the value", "everybody who gets the repository has it", "idumb decide {decision} yes"),
        way("again", "take the value out, then accept the task again", "its files are committed", _AGAIN),
    ),
    "accept.secret-name": row(
        "Accept the task",
        way("rename", "rename or remove the files, then accept the task again", "its files are committed", _AGAIN),
        _SKIP,
    ),
    "run.contract-changed": _LOCKED,
    "run.failed": _FAILED,
    "run.halted": _FAILED,
    "run.in-editor": row(_GO_ON, way("start", "start the task in the editor", "its builder gets all it needs", HINT)),
    "run.interrupted": row("Finish this command", STATUS, _RESUME),
    "run.moved-on": row(_GO_ON, STATUS),
    "run.none": row("Find the run", way("run", "run the phase", "you are asked to consent first", "{run}")),
    "run.paused": row(_GO_ON),
    "skip.not-confirmed": row("Skip the task"),
    "run.unknown": row("Find the run", way("list", "see the runs of the phase", LOOK, HINT)),
    "run.waiting": row(_GO_ON, _QUESTIONS, _RESUME),
    "dry-run.failed": row("Finish the dry run"),
    "dry-run.waiting": row("Finish the dry run"),
    "lock.plan-changed": row(
        _GO_ON,
        way("check", "see every error with its line", LOOK, "idumb check-plan {phase}"),
        way("run", "run it as it is now", "you are asked to consent first", "{run}"),
    ),
    "lock.configuration-changed": _LOCKED,
    "lock.policy-changed": _LOCKED,
    "envelope.changed": row(_GO_ON),
    "commit.needs-clone": row(
        "Let builders commit in your own tree",
        way("clone", "leave --workspace out", "they commit in a private clone"),
        way("task", "say `git: {commit: task}` in .idumb/config.yaml", "idumb commits their work"),
    ),
    "pause.done": row(
        "Pause the run",
        way("verify", "verify the phase", "VERIFICATION.md is written", "idumb verify-work {phase}"),
        STATUS,
    ),
    "pause.other-work": row("Pause the run", STATUS),
    "attempt.not-open": row(
        "Submit or give up the attempt",
        way("start", "begin the task", "its attempt is open then", "idumb start {task}"),
        _SHOW,
    ),
    "attempt.open": row(_GO_ON),
    "task.already-done": row(_START, _SHOW, _NEXT),
    "task.bad-id": row("Find the task", STATUS),
    "task.changed-since": row(_GO_ON, _MOVE, _SKIP),
    "task.dirty-path": _DIRTY,
    "task.emptied-path": row(
        _GO_ON,
        way("put-back", "put the bytes of the checkpoint back", "the file is as the task left it", "{back}"),
        way("commit", "commit it as it is", "the empty file is your word then"),
        _RESUME,
    ),
    "task.failed": row(
        _START, way("retry", "start it once more", "a new attempt is open", "idumb start {task} --retry"), _SHOW
    ),
    "task.not-accepted": row(
        "Take the work",
        _SHOW,
        way("retry", "work on it and submit it again", "it is judged once more", "idumb submit {task}"),
    ),
    "task.no-attempt": row("Look at an attempt", _SHOW),
    "task.no-builder": row(
        "Build the task", way("bind", "name a builder in .idumb/config.yaml", "consent is asked for again"), STATUS
    ),
    "task.no-reason": row(
        "Record your word", way("why", "give a reason: --why 'the reason'", "it is kept with your word")
    ),
    "task.not-ready": row(_START, _NEXT, _SHOW),
    "task.other-builder": row(
        _START,
        way("run", "let its builder build it", "you are asked to consent first", "{run}"),
        way("editor", "name `editor` as its builder", "it is another contract, which needs your consent"),
    ),
    "task.other-unfinished": row(
        _START,
        way("start", "go on with the other task", "its attempt is open then", "idumb start {other}"),
        way("skip", "leave the other one out", "what depends on it stays blocked", "idumb skip {other} --why REASON"),
    ),
    "task.unfinished-path": row(
        _GO_ON,
        way("commit", "commit the file or take it back with git", "nobody's unfinished work is built on", "git status"),
        _RETRY,
    ),
    "task.unknown": _NO_TASK,
    "task.waiting": row(_START, _QUESTIONS, _RESUME),
    "undo.amended": row(
        "Undo it",
        way("resume", "let the run do the tasks anew", "they run under the amended plan", "idumb resume {phase}"),
        way("look", "see what the amendment changed", LOOK, "idumb plan-diff {phase}"),
    ),
    "undo.no-such-operation": row(
        "Undo it",
        way("newest", "undo what was done last", "its effect is shown first, and it asks", "idumb undo"),
        way("log", "see what was done", LOOK, "idumb log"),
    ),
    "undo.other-operation": row(
        "Undo it",
        way("undo", "take it back all the same", "its files go back, in a new commit", "{command}"),
        way("leave", "leave everything as it is", "nothing happens", "idumb next"),
    ),
    "undo.nothing": row("Undo", way("log", "see what was done", LOOK, "idumb log")),
    "resume.no-attempt": row("Say something to the next attempt", _RETRY, STATUS),
    "rollback.command-failed": row(
        "Roll back",
        way("correct", "correct what the command says, then roll back again", "no file was put back yet"),
        way("past", "leave the effect of that task", "only its files are put back", "{past}"),
    ),
    "rollback.conflict": row(
        "Roll back",
        way("keep", "keep your versions elsewhere and put the files back", "then run the same command again"),
        way("leave", "leave everything as it is", LOOK, "idumb status"),
    ),
    "rollback.irreversible": row(
        "Roll back",
        way("before", "stop before that task", "it and what came before it stay", "idumb rollback {phase} --to {task}"),
        way("past", "put only its files back", "its effect elsewhere stays", "{past}"),
    ),
    "secret.unknown-name": row(
        "Put files back",
        way("set", "set the variables that this run had, then run the same command again", "the names are found"),
        STATUS,
    ),
    "rollback.no-checkpoint": row(
        "Roll back",
        way(
            "start",
            "take all of the run's work back",
            "files are as before the run, in a new commit",
            "idumb rollback {phase} --to start",
        ),
        STATUS,
    ),
    "rollback.not-confirmed": row(
        "Put files back",
        way("yes", "put them back", "in a new commit; idumb undo brings the work again", HINT),
        way("no", "leave everything as it is", "nothing happens"),
    ),
    "rollback.unfinished": row(
        _GO_ON, way("resume", "finish it, then go on", "files are as it was to leave them", "idumb resume {phase}")
    ),
    "verification.failed": _UNVERIFIED,
    "verification.partial": row(
        "Call the phase verified",
        way(
            "gaps",
            "plan the proof that is missing",
            "a plan of the gaps is written",
            "idumb verify-work {phase} --gaps",
        ),
        way("again", "judge it again", "every criterion is checked once more", "idumb verify-work {phase}"),
    ),
    "verification.waiting": row(
        "Call the phase verified",
        _QUESTIONS,
        way(
            "again",
            "judge it, once they are answered",
            "every criterion is checked once more",
            "idumb verify-work {phase}",
        ),
    ),
    "verification.too-early": row("Verify the phase", _RESUME, _NEXT),
}
