"""Checks that the receiver and the type of each handoff exist."""

from __future__ import annotations

from collections.abc import Iterator

from idumb.domain.finding import ERROR, WARNING, Finding, nearest
from idumb.domain.intake.rule import Case, Example, Rule
from idumb.domain.runs import handoff

_TASK = (
    "### T1-01: Greet\n\n- **Files:** create `hello.txt`\n- **Acceptance:**\n"
    "  - [ ] It is there — check: `test -s hello.txt`\n{field}"
    "\n```yaml steps\n- {{tool: write_file, intent: greet, arguments: {{path: hello.txt, content: hello}}}}\n```\n"
)


def receivers(case: Case) -> Iterator[Finding]:
    """Find undefined receivers. During a run it would be too late: no handoff could be made."""
    names = handoff.agents(case.settings)
    for plan, task in case.pairs:
        for receiver in task.handoff_to:
            if receiver.agent not in names and handoff.type_of(receiver.type) != handoff.NEVER:
                near = nearest(receiver.agent, names)
                yield case.at(
                    "handoff.unknown-agent",
                    plan,
                    task,
                    "handoff_to",
                    found=receiver.agent,
                    accepted=near or "a binding of .idumb/config.yaml, a role or human",
                    message=f"{task.id} hands its work to {receiver.agent}, which is neither a binding nor a role.",
                    mend=f"Did you mean {near}?" if near else "Define it under `bindings`, or name a role or `human`.",
                )


def types(case: Case) -> Iterator[Finding]:
    accepted = (*handoff.TYPES, handoff.NEVER)
    for plan, task in case.pairs:
        for receiver in task.handoff_to:
            meant = handoff.type_of(receiver.type)
            if meant not in accepted:
                near = nearest(meant, accepted)
                yield case.at(
                    "handoff.unknown-type",
                    plan,
                    task,
                    "handoff_to",
                    found=receiver.type or "",
                    accepted=near or ", ".join(accepted),
                    message=f"{task.id}: {receiver.type} is not a type of handoff.",
                    mend=f"Did you mean {near}?" if near else f"Write one of {', '.join(accepted)}.",
                )


RULES = (
    Rule(
        "handoff.unknown-agent",
        WARNING,
        ERROR,
        receivers,
        "The receiver of a task's work is neither a binding nor a role nor `human`, so no handoff is made.",
        Example(_TASK.format(field="- **Handoff to:** auditor\n")),
    ),
    Rule(
        "handoff.unknown-type",
        WARNING,
        ERROR,
        types,
        "The type of a handoff is unknown, so no handoff is made.",
        Example(_TASK.format(field="- **Handoff to:** human (review)\n")),
    ),
)
