"""Outcomes of attempts and statuses of tasks. The event log, JSON and documents use these words."""

from __future__ import annotations

COMPLETED = "completed"
FAILED = "failed"
ERRORED = "errored"
TIMED_OUT = "timed_out"
CANCELLED = "cancelled"
REFUSED = "refused"
WAITING = "waiting"

PENDING = "pending"
READY = "ready"
RUNNING = "running"
ACCEPTED = "accepted"
BLOCKED = "blocked"
SKIPPED = "skipped"
OMITTED = "omitted"
DONE_BEFORE = "done before idumb"
"""What people read of an omitted task that was imported as done."""

DONE = frozenset({COMPLETED, ACCEPTED})
"""Statuses of a task whose work counts."""

UNBLOCKING = DONE | {OMITTED}
"""Statuses that unblock dependents. A skipped task blocks them; one that a workflow's condition omits does not."""

ENDED = UNBLOCKING | {SKIPPED}
"""Statuses of a task that needs no more work."""

NOT_RUN = (PENDING, READY, RUNNING)
"""Statuses of a task without a result that waits for no answer."""

PASS = "PASS"
PARTIAL = "PARTIAL"
FAIL = "FAIL"
