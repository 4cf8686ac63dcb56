"""The fields that events of a run always have, for tests that write events by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STARTED: Mapping[str, Any] = {
    "phase": "1", "number": 1, "contract_hash": "c" * 64, "plans": [], "mode": "guided", "policy": "task",
    "base_commit": None, "base_tree": "0" * 40, "base_snapshot": None, "branch": None,
    "reports": "branch", "guarded": {}, "tasks": [],
}  # fmt: skip
FINISHED: Mapping[str, Any] = {
    "outcome": "failed", "reason": "", "left": "0" * 40, "touched": [], "deviations": [], "accepted_paths": [],
    "symbols": [], "feedback": "", "seconds": 1.0, "builder": None,
}  # fmt: skip
CHECKPOINT: Mapping[str, Any] = {
    "status": "completed", "git_hash": "9" * 40, "snapshot": "5" * 40, "tree": "0" * 40, "files": [], "seconds": 1.0,
    "error": None, "commit": "9" * 40,
}  # fmt: skip
