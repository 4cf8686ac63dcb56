"""Paths of the files that idumb writes for users to read."""

from __future__ import annotations

BRAIN = ".idumb/brain"
STATE_FILE = f"{BRAIN}/state.json"


def is_projection(path: str) -> bool:
    """Whether idumb builds this file, or all files of this folder (`path/`), from the log, and git ignores it."""
    return path == STATE_FILE or (path.startswith(f"{BRAIN}/execution/") and path.endswith(("/progress.json", "/")))


def execution_folder(phase: str) -> str:
    return f"{BRAIN}/execution/{phase}"


def checkpoint_path(phase: str, task: str) -> str:
    return f"{execution_folder(phase)}/checkpoint-{task}.md"


def report_path(folder: str, kind: str) -> str:
    """`.planning/phases/01-name/01-name-SUMMARY.md`."""
    return f"{folder}/{folder.rsplit('/', 1)[-1]}-{kind}.md"


def progress_path(phase: str) -> str:
    return f"{execution_folder(phase)}/progress.json"
