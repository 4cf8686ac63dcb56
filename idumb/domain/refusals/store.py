"""Refusals about the event log, its lock, backups, and the operating system."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain.refusals.row import DOCTOR, FIX, HINT, STATUS, Row, look, row, way

_LOG = "Read and write the event log"
_WRITE = "Write in this working tree"
_BACKUP = "Write a backup"
_AGAIN = way("again", "run the command again", "it starts from the current state")
_STOP = way("stop", "stop the running command", "it stops at the next safe point and saves its state", "idumb stop")
_FORCE = way(
    "force",
    "if it is dead or does not respond, stop it by force",
    "it can no longer write; idumb resume then recovers its work",
    "idumb stop --force",
)
_ROOM = way("make-room", "free disk space", "everything recorded is kept; then run the command again")
_MINE = way("own", "make the folder private (owned by you, mode 0700)", "idumb can then read it")
_NAME = way("rename", "choose another name", "no existing file is replaced")
_SYSTEM = "Use that path"
_PERMIT = way("permit", "correct the owner and mode of that path and its folder")

ROWS: Mapping[str, Row] = {
    "store.busy": row(_LOG, _AGAIN),
    "store.corrupt": row(_LOG, DOCTOR, FIX),
    "store.diverged": row(_LOG, DOCTOR, way("choose", "move the log that you trust into place", "keep the other one")),
    "store.failed": row(_LOG, DOCTOR, FIX),
    "store.fence": row(_WRITE, STATUS, _AGAIN),
    "store.file": row(_LOG, _PERMIT, DOCTOR),
    "store.full": row(_LOG, _ROOM),
    "store.io": row(_LOG, way("check", "check the disk", "everything recorded is kept"), DOCTOR),
    "store.lost": row(
        _LOG, DOCTOR, way("restore", "restore store.db from a backup", "the log is as it was at that time")
    ),
    "store.missing": row(_LOG, DOCTOR, FIX),
    "store.network": row(
        _LOG,
        way("move", "keep the repository on a local disk", "locks and fsync are reliable there"),
        way("allow", "set git.network in .idumb/config.yaml", "the log stays on the network disk at your own risk"),
    ),
    "store.older": row(_LOG, DOCTOR, FIX),
    "store.pragma": row(_LOG, DOCTOR, _AGAIN),
    "store.read-only": row(_LOG, _PERMIT, DOCTOR),
    "store.refused": row(_LOG, DOCTOR, _AGAIN),
    "store.schema": row(_LOG, way("update", "install the version of idumb that wrote it", "it can read this log")),
    "store.segment": row("Read the archive", DOCTOR, FIX),
    "store.unsafe": row(_LOG, _MINE),
    "lock.elsewhere": row(_WRITE, STATUS, _FORCE),
    "lock.held": row(
        _WRITE, way("wait", "wait until it ends", "then run the command again", "idumb status"), _STOP, _FORCE
    ),
    "lock.lost": row(_WRITE, DOCTOR, STATUS),
    "lock.unsupported": row(
        _WRITE, way("move", "keep the repository on a local disk", "its file system has the locks that idumb needs")
    ),
    "stop.no-answer": row(
        "Stop the command that runs here", look("wait and check again", "idumb status", "wait"), _FORCE
    ),
    "stop.no-tasks": row("Stop the command that runs here", STATUS, _STOP),
    "stop.not-allowed": row(
        "Stop the command that runs here",
        way("other", "run idumb stop as the user who owns the process", "the process is stopped"),
    ),
    "backup.exists": row(_BACKUP, _NAME),
    "backup.incomplete": row(
        "Write a backup of all refs",
        DOCTOR,
        way(
            "without",
            "remove idumb without a backup",
            "its refs are deleted permanently",
            "idumb deinit --no-backup --yes",
        ),
    ),
    "backup.missing": row(
        "Check a backup", way("write", "write a backup", "the event log is copied", "idumb backup idumb-backup.db")
    ),
    "backup.no-folder": row(_BACKUP, way("make", "create the folder", "then run the command again", HINT)),
    "backup.broken": row(
        "Use this backup",
        way("write", "write another backup", "the event log is copied", "idumb backup idumb-backup.db"),
    ),
    "audit.broken": row(
        "Trust the event log",
        way("keep", "copy the .git folder before you do anything else", "the copy is evidence"),
        DOCTOR,
    ),
    "audit.not-intact": row("Trust the working tree", DOCTOR, STATUS),
    "doctor.problems": row("Trust the state that runs depend on", FIX, DOCTOR),
    "system.denied": row(_SYSTEM, _PERMIT),
    "system.disk": row(_SYSTEM, way("check", "check the disk", "everything recorded is kept"), STATUS),
    "system.files": row(_SYSTEM, way("raise", "raise the limit of open files, or close other programs")),
    "system.full": row(_SYSTEM, _ROOM),
    "system.memory": row(_SYSTEM, way("free", "close other programs")),
    "system.read-only": row(_SYSTEM, way("remount", "make the file system writable")),
    "system.refused": row(
        _SYSTEM, way("look", "check that path", "everything recorded is kept; then run the command again")
    ),
    "system.windows": row(
        "Run plans on Windows", way("elsewhere", "run them on Linux, macOS or WSL", "every command works there"), STATUS
    ),
    "internal": row("Finish this command", STATUS, DOCTOR),
    "usage": row("Run this command line", look("see the arguments and options of the command", "idumb --help", "help")),
    "log.unknown-kind": row("Show these events", look("show events of every kind", "idumb log", "all")),
}
