"""Adapters declare what they can do; nothing tests their names (R-ADAPT-1)."""

from __future__ import annotations

from idumb.agents.handoff import EditorAgent, HumanAgent
from idumb.agents.steps import StepsAgent
from idumb.domain import agent
from idumb.domain.agent import Capabilities
from tests.support.cases import every


@every("adapter", [StepsAgent, HumanAgent, EditorAgent])
def test_an_adapter_and_its_recorded_name_have_the_same_capabilities(
    adapter: type[StepsAgent | HumanAgent | EditorAgent],
) -> None:
    assert agent.capabilities(adapter) == agent.capabilities_of(adapter.name) == agent.BUILT_IN[adapter.name]


def test_an_adapter_without_declarations_has_the_defaults() -> None:
    assert agent.capabilities(object()) == agent.capabilities_of("templater") == Capabilities()
