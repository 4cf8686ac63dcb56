"""Adapters declare what they can do; nothing tests their names (R-ADAPT-1)."""

from __future__ import annotations

from idumb.agents.registry import AgentRegistry
from idumb.domain import agent
from idumb.domain.agent import Capabilities
from tests.support.cases import every
from tests.support.equipment import equipped


@every("name", agent.BUILT_IN)
def test_an_adapter_and_its_recorded_name_have_the_same_capabilities(name: str) -> None:
    made = AgentRegistry(equipped("/")).get(name)
    assert made.name == name
    assert agent.capabilities(made) == agent.capabilities_of(name) == agent.BUILT_IN[name]


def test_an_adapter_without_declarations_has_the_defaults() -> None:
    assert agent.capabilities(object()) == agent.capabilities_of("templater") == Capabilities()
