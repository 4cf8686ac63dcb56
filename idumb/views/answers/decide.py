"""Output of the commands that decide: questions, approvals, amendments, overrides, handoffs and dead letters."""

from __future__ import annotations

from idumb.views import forms, phrases

FORMS = {
    "approve": """
Phase {phase}: {revoked:#approval} and {withdrawn:#consent} withdrawn.
shown* {above.asked:!}{}
{plan_hash:?Phase} {phase} approved by {by}[, until {expires}].
  phase hash {plan_hash}
  contract   {contract_hash}
  accepted, although they cannot be undone: {accepted}
  no longer accepted: {no_longer_accepted}
  signed copy: {file}
else {signed:?  signed}
""",
    "decide": """
{decision}: {choice} is recorded.
- Recorded in the plan, as version {version} of the contract
- Verification of the phase: {verification}
""",
    "drop": """
Dropped {task}: {tasks:5} will not run.
else Dropped phase {phase}: {tasks:5} will not run.
""",
    "list_handoffs": """
handoffs* {handoff_id:short} | {task} | {from_agent} to {to_agent} | {status:spoken} | {priority} | {title:60}
else No handoffs match.
stats*   {above.handoffs:?}{name:spoken}: {value}
failed* Not handed off: {task} to {to_agent}: {reason}
""",
    "show_handoff": "{handoff:outline}",
    "list_letters": """
dead_letters* {task or id} | {kind} | {class} | {attempts:#attempt} | {reason:80}
else There are no dead letters.
{dead_letters:?Next: idumb dlq show ID}
""",
    "settled": f"""
{{task.id}} {{task.title}} is {{task.status}}[: {{task.reason}}]
commit {{commit:short}}
else Its changes stay uncommitted in the working tree: {{left:5}}
{phrases.BLOCKED}
""",
}


def decisions(data: phrases.Data) -> phrases.Lines:
    """Return the questions, with an empty line between them."""
    return forms.fill(phrases.QUESTIONS, data)[1:] or ["No questions are waiting for an answer."]


def show_letter(data: phrases.Data) -> phrases.Lines:
    facts = {name: value for name, value in data["dead_letter"].items() if name != "next"}
    return [*phrases.outline(facts), *phrases.commands(data["dead_letter"])]
