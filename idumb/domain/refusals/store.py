"""Refusals about the event log, its lock, backups, and the system under them."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import DOCTOR, FIX, HINT, LOOK, STATUS, Row, row, way

_LOG = "Read and write the event log"
_WRITE = "Write in this work tree"
_BACKUP = "Write a backup"
_AGAIN = way("again", "run the same command again", "it starts from what is there now")
_CANCEL = way(
    "cancel", "stop the command that has it", "it stops at the next safe point and saves its state", "idumb cancel"
)
_FORCE = way(
    "force",
    "end it by force, once it has ended for good or does not answer",
    "it loses the right to write; idumb resume then recovers what it was at",
    "idumb cancel --force",
)
_ROOM = way("make-room", "make room on that disk", "what is recorded stands; then run the same command again")
_MINE = way("own", "make the folder yours alone (owner you, mode 0700)", "idumb reads it again")
_NAME = way("rename", "choose another name", "nothing that is there is replaced")
_SYSTEM = "Use that path"
_PERMIT = way("permit", "permit it: owner and mode of that path and its folder", "then run the same command again")

ROWS: Mapping[str, Row] = {
    "store.busy": row(_LOG, _AGAIN),
    "store.corrupt": row(_LOG, DOCTOR, FIX),
    "store.diverged": row(
        _LOG, DOCTOR, way("choose", "put the log that you trust in its place", "the other one is kept")
    ),
    "store.failed": row(_LOG, DOCTOR, FIX),
    "store.fence": row(_WRITE, STATUS, _AGAIN),
    "store.file": row(_LOG, _PERMIT, DOCTOR),
    "store.full": row(_LOG, _ROOM),
    "store.io": row(_LOG, way("check", "check the disk", "what is recorded stands"), DOCTOR),
    "store.lost": row(
        _LOG, DOCTOR, way("restore", "put a backup of store.db in its place", "the log is as it was then")
    ),
    "store.missing": row(_LOG, DOCTOR, FIX),
    "store.network": row(
        _LOG,
        way("move", "keep the repository on a local disk", "locks and forced writes are reliable there"),
        way("allow", "set git.network in .idumb/config.yaml", "the log is kept there at your own risk"),
    ),
    "store.newer": row(_LOG, way("update", "install a newer idumb", "the log is read as it is")),
    "store.older": row(_LOG, DOCTOR, FIX),
    "store.pragma": row(_LOG, DOCTOR, _AGAIN),
    "store.read-only": row(_LOG, _PERMIT, DOCTOR),
    "store.refused": row(_LOG, DOCTOR, _AGAIN),
    "store.segment": row("Read the archive", DOCTOR, FIX),
    "store.unsafe": row(_LOG, _MINE),
    "lock.elsewhere": row(_WRITE, STATUS, _FORCE),
    "lock.held": row(
        _WRITE, way("wait", "wait until it ends", "the same command works then", "idumb status"), _CANCEL, _FORCE
    ),
    "lock.lost": row(_WRITE, DOCTOR, STATUS),
    "lock.unsupported": row(
        _WRITE, way("move", "keep the repository on a local disk", "its file system has the locks that idumb needs")
    ),
    "cancel.no-answer": row("Stop what runs here", way("wait", "wait and look again", LOOK, "idumb status"), _FORCE),
    "cancel.not-allowed": row(
        "Stop what runs here", way("other", "run idumb cancel as the user whose process it is", "it is stopped")
    ),
    "backup.exists": row(_BACKUP, _NAME),
    "backup.incomplete": row(
        "Write a backup of all refs",
        DOCTOR,
        way("without", "remove idumb without a backup", "its refs are gone for good", "idumb deinit --no-backup --yes"),
    ),
    "backup.missing": row(
        "Check a backup", way("write", "write a backup", "the event log is copied", "idumb backup idumb-backup.db")
    ),
    "backup.no-folder": row(_BACKUP, way("make", "make the folder", "then run the same command again", HINT)),
    "backup.broken": row(
        "Use this backup", way("write", "write another one", "the event log is copied", "idumb backup idumb-backup.db")
    ),
    "audit.broken": row(
        "Trust the event log",
        way("keep", "keep a copy of the git folder before anything else", "the copy is evidence"),
        DOCTOR,
    ),
    "audit.not-intact": row("Trust the work tree", DOCTOR, STATUS),
    "doctor.problems": row("Trust what a run stands on", FIX, DOCTOR),
    "system.denied": row(_SYSTEM, _PERMIT),
    "system.disk": row(_SYSTEM, way("check", "check the disk", "what is recorded stands"), STATUS),
    "system.files": row(
        _SYSTEM, way("raise", "raise the limit of open files, or end other programs", "then run the same command again")
    ),
    "system.full": row(_SYSTEM, _ROOM),
    "system.memory": row(_SYSTEM, way("free", "end other programs", "then run the same command again")),
    "system.read-only": row(
        _SYSTEM, way("remount", "make the file system writable", "then run the same command again")
    ),
    "system.refused": row(
        _SYSTEM, way("look", "look at that path", "what is recorded stands; then run the same command again")
    ),
    "system.windows": row(
        "Run plans on Windows", way("elsewhere", "run them on Linux, macOS or WSL", "every command works there"), STATUS
    ),
    "internal": row("Finish this command", STATUS, DOCTOR),
    "usage": row("Run this command line", way("help", "see what the command takes", LOOK, "idumb --help")),
    "log.unknown-kind": row("Show these events", way("all", "show the events of every kind", LOOK, "idumb log")),
}
