"""Makes the golden database of the present schema: `python -m tests.adapters.store.make_golden FOLDER`.

Run it once when a schema version is new, and never again for that version: what it made then is what users have.
"""

from __future__ import annotations

import sys
from pathlib import Path

from idumb.domain.runs.event import NewEvent
from idumb.store import schema
from tests.adapters.store.opened import OpenedLog

RUN = "0123456789abcdef"
TREE = "a" * 40
CONTRACT = "c" * 64


def story() -> list[NewEvent]:
    """A run of two tasks: the first completed, the second interrupted in its first attempt."""
    return [
        NewEvent("operation.started", {"command": "execute-phase", "arguments": ["1"]}),
        NewEvent("run.started", {
            "phase": "1", "number": 1, "contract_hash": CONTRACT, "plans": [["01-01-PLAN.md", "d" * 64]],
            "mode": "guided", "policy": "task", "base_commit": "b" * 40, "base_tree": TREE, "branch": "main",
            "tasks": [["T1-01", "1" * 64], ["T1-02", "2" * 64]],
        }, run=RUN),
        NewEvent("attempt.started", {"base": TREE, "snapshot": "e" * 40}, run=RUN, task="T1-01", attempt=1),
        NewEvent("evidence.recorded", {"subject": "AC-1", "text": "umlaut ü", "result": "passed"},
                 run=RUN, task="T1-01", attempt=1),
        NewEvent("attempt.finished", {"outcome": "completed", "left": "f" * 40, "touched": ["a.txt"], "seconds": 1.5},
                 run=RUN, task="T1-01", attempt=1),
        NewEvent("checkpoint.recorded", {
            "status": "completed", "git_hash": "9" * 40, "snapshot": "8" * 40, "tree": "f" * 40, "files": ["a.txt"],
            "seconds": 1.5, "commit": "9" * 40,
        }, run=RUN, task="T1-01", attempt=1),
        NewEvent("task.completed", {}, run=RUN, task="T1-01"),
        NewEvent("attempt.started", {"base": "f" * 40, "snapshot": "7" * 40}, run=RUN, task="T1-02", attempt=1),
        NewEvent("attempt.interrupted", {"left": "6" * 40, "touched": ["b.txt"], "reason": "SIGINT"},
                 run=RUN, task="T1-02", attempt=1),
        NewEvent("run.interrupted", {"reason": "SIGINT"}, run=RUN),
    ]  # fmt: skip


def make(folder: Path) -> Path:
    """`folder` stands for a repository's common dir; the path of the database."""
    opened = OpenedLog(folder)
    fence = opened.owner.acquire("idumb execute-phase 1")
    for event in story():
        opened.log.append([event], operation="op1", fence=fence)
    opened.owner.release()
    opened.close()
    return opened.path


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    golden = Path(__file__).parent / "golden" / f"v{schema.CURRENT}.db"
    golden.parent.mkdir(exist_ok=True)
    golden.write_bytes(made.read_bytes())
