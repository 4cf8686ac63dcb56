"""Keys that definitions of other workflow engines have, with what to write instead."""

from __future__ import annotations

from typing import Any

from idumb.markdown.syntax.record import Keys

_STEP_HEADING = "write it in the heading: ### step-id: Title"
_NO_LOOP = "a workflow has a fixed number of steps: write a step for each item, or a loop in one script"
_STATE = "remove it: the state of a step is in the event log"
_FIXES = {
    "workflow_id": "write name:",
    "metadata": "write its keys in the frontmatter itself",
    "phases": "write each phase as a heading of level 2, and its steps below it",
    "jobs": "write each step as a heading of level 3 with a fence",
    "step_id": _STEP_HEADING,
    "id": _STEP_HEADING,
    "phase_id": "write the phase as a heading of level 2 above the step",
    "step_type": "write kind:",
    "type": "write kind:",
    "agent_id": "write agent:",
    "uses": "write agent:, or a command under run:",
    "command": "write run:",
    "script": "write run:",
    "depends_on": "write needs:",
    "condition": "write a step of kind condition, with if: and then:",
    "when": "write a step of kind condition, with if: and then:",
    "timeout_seconds": "write timeout: with a unit, such as 90s",
    "retry_count": "write retries:",
    "max_retries": "write retries:",
    "handoff_type": "write it behind the receiver: handoff_to: [NAME (escalation)]",
    "acceptance_criteria": "write acceptance:",
    "deliverables": "write files:",
    "status": _STATE,
    "outcome": _STATE,
    "for_each": _NO_LOOP,
    "foreach": _NO_LOOP,
    "loop": _NO_LOOP,
    "repeat": _NO_LOOP,
    "matrix": _NO_LOOP,
    "with_items": _NO_LOOP,
}


def hint(name: str, _: Keys) -> dict[str, Any]:
    """Return what to write instead of an unknown key."""
    return {"near": (), "fix": _FIXES[name]} if name in _FIXES else {"fix": f"remove it, or rename it to x-{name}"}
