"""Agent conversations as data: what is recorded, and which ids may be passed on (R-ADAPT-2)."""

from __future__ import annotations

from typing import Any

from idumb.domain import agent
from idumb.domain.agent import Conversation
from tests.support.cases import every

KNOWN = Conversation("s-1", 1, "who", "k")


def after(saved: Conversation | None, **finished: Any) -> Conversation | None:
    return agent.continue_conversation(saved, finished, attempt=2, speaker="who", contract="k")


@every("session", ["a220e3cf-8155-4e2f-812d-56b3f961fe7e", "ses_dfbb9a529ffe95iiOm35m9fBME", "a.b:c"])
def test_a_conversation_id_is_one_plain_word(session: str) -> None:
    assert agent.session_id(session) == session


def test_nothing_else_is_a_conversation_id() -> None:
    cases: list[object] = [
        None,
        7,
        "",
        "--yolo",
        "-r",
        "a b",
        "a\n",
        "../x",
        "a/b",
        "[redacted:token:1]",
        "$(id)",
        "a" * 129,
        "é",
    ]
    assert not [session for session in cases if agent.session_id(session) is not None]


def test_the_next_attempt_continues_the_reported_conversation() -> None:
    assert after(None, builder={"session": "s-2"}) == Conversation("s-2", 2, "who", "k")
    assert after(KNOWN, builder={"session": "s-2"}, resumed=True) == Conversation("s-2", 2, "who", "k")


def test_a_conversation_continued_by_a_killed_agent_is_still_known() -> None:
    assert after(KNOWN, builder={"session": None}, resumed=True) == Conversation("s-1", 2, "who", "k")
    assert after(KNOWN, builder={"session": None}, resumed=False) is None
    assert after(KNOWN, builder=None) is None


@every("failure", [agent.CONTEXT_EXHAUSTED, agent.DECLINED, agent.MALFORMED])
def test_some_conversations_cannot_be_continued(failure: str) -> None:
    """R-RUN-10: a full context above all."""
    assert after(KNOWN, builder={"session": "s-2", "failure": failure}, resumed=True) is None


@every("part", ["adapter", "adapter_version", "program", "binding", "model"])
def test_another_version_program_or_model_is_another_agent(part: str) -> None:
    fields = {"adapter": "claude", "adapter_version": "1 2.1", "program": "p", "binding": "b", "model": None}
    assert agent.speaker_digest(fields) != agent.speaker_digest({**fields, part: "other"})
    assert agent.speaker_digest(fields) == agent.speaker_digest({**fields, "context": "other"})
