"""Whether a builder that is asked again goes on in the conversation that it had about the same task."""

from __future__ import annotations

from idumb.app.core.run_context import Bench
from idumb.app.ports.agents import capabilities
from idumb.domain import contract, conversation
from idumb.domain.consent.envelope import key_of
from idumb.domain.conversation import Conversation
from idumb.domain.plans.plan import STRICT, Task

PUT_BACK = "The files are again as they were before the first attempt: nothing of what was written since is there."
"""What an agent must know that remembers what it wrote."""


def to_go_on_with(bench: Bench, task: Task) -> Conversation | None:
    """The conversation of the attempt before; None where the builder begins a new one.

    Only the same agent is asked so, about the same task of the same contract, where its binding says so. Strict and
    deterministic runs never do: what an agent remembers is in no tree.
    """
    state, plan = bench.journal.state, bench.plans[task.id]
    known = state.tasks[task.id].conversation
    if known is None or bench.deterministic or STRICT in (plan.mode, state.mode):
        return None
    builder = contract.builder_of(plan, task, bench.services.settings) or ""
    validator = contract.validator_of(plan, task, bench.services.settings)
    envelope = state.envelopes.get(key_of(builder, validator))
    if envelope is None or not capabilities(bench.agents.get(builder)).resumable:
        return None
    same = (known.speaker, known.contract) == (conversation.speaker(envelope), state.contract_hash)
    return known if same else None
