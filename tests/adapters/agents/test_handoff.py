"""Handoff answers: which are accepted, which are waited for, and which fail the attempt (R-ADAPT-2)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from idumb.agents import registry
from idumb.app.ports import Agent
from idumb.domain import agent, outcome
from idumb.domain.agent import BUILDER, PLANNER, VALIDATOR, AgentRequest
from idumb.domain.plans import plan
from idumb.domain.settings import Binding
from idumb.system.redaction import Redactor
from tests.support.cases import every
from tests.support.equipment import equipped

EDITS = '```json\n{"edits": [{"tool": "write_file", "path": "%s", "content": "x\\n", "intent": "make"}]}\n```'
DEEP = f'```json\n{{"edits": [{{"tool": {"[" * 9999}{"]" * 9999}}}]}}\n```'
TICKET = "5f0c"
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def away(root: Path, **options: Any) -> Agent:
    return answering(root, lambda text: text.replace("sk-secret", "[key]"), options)


def answering(root: Path, redact: Callable[[str], str], options: Mapping[str, Any]) -> Agent:
    binding = Binding("away", "handoff", options=options)
    equipment = equipped(root / "work", binding, redact=redact, handoffs=str(root / "handoffs"))
    return registry.build(equipment).get("away")


def a_request(root: Path, role: str = BUILDER, **more: Any) -> AgentRequest:
    (root / "work").mkdir(exist_ok=True)
    task = plan.Task("T1-01", "Work", files=(plan.FileClaim("create", "a.txt"),))
    return replace(AgentRequest(role, task, "the prompt", str(root / "work"), ("a.txt",), ticket=TICKET), **more)


def request_file(root: Path, index: int = -1) -> Path:
    return [p for p in sorted((root / "handoffs").glob("*.md")) if not p.name.endswith(".answer.md")][index]


def answer(request: Path, body: str, ending: str = "done") -> None:
    text = f"---\ntype: answer\nhandoff: {request.stem}\noutcome: {ending}\n---\n{body}\nEND OF ANSWER\n"
    request.with_name(f"{request.stem}.answer.md").write_text(text, encoding="utf-8")


@every(
    "role, body, ending, ended, words",
    [
        (BUILDER, EDITS % "a.txt", "done", outcome.COMPLETED, ""),
        (BUILDER, EDITS % "b.txt", "done", outcome.FAILED, "not a file of this task"),
        (BUILDER, EDITS % "../a.txt", "done", outcome.FAILED, "not a file of this task"),
        (BUILDER, "```diff\nx\n```", "done", outcome.FAILED, "no patch expected"),
        (BUILDER, "I did it.", "done", outcome.COMPLETED, "holds no edits"),
        (BUILDER, DEEP, "done", outcome.COMPLETED, "holds no edits"),
        (BUILDER, "It cannot be done.", "failed", outcome.FAILED, "It cannot be done."),
        (VALIDATOR, '```json\n{"verdict": "PASS", "findings": []}\n```', "done", outcome.COMPLETED, ""),
        (VALIDATOR, '```json\n{"verdict": "FAIL", "findings": ["no"]}\n```', "done", outcome.FAILED, "FAIL: no"),
        (VALIDATOR, "It is fine.", "done", outcome.ERRORED, "no verdict"),
        (PLANNER, "A plan with sk-secret.", "done", outcome.COMPLETED, ""),
        (PLANNER, "", "done", outcome.FAILED, "empty"),
    ],
)
def test_an_answer_is_judged_by_its_content(
    tmp_path: Path, role: str, body: str, ending: str, ended: str, words: str
) -> None:
    who, request = away(tmp_path), a_request(tmp_path, role)
    assert who.run(request).outcome == outcome.WAITING
    answer(request_file(tmp_path), body, ending)
    result = who.run(request)
    assert result.outcome == ended
    assert words in result.message
    assert "sk-secret" not in repr(result)
    assert (tmp_path / "work/a.txt").exists() == (body == EDITS % "a.txt")
    assert not (tmp_path / "a.txt").exists()


@every(
    "text, words",
    [
        ("done", "does not begin with a head"),
        ("", "does not begin with a head"),
        ("---\nhandoff: NAME\noutcome: done\n---\n", "END OF ANSWER"),
        ("---\nhandoff: other\noutcome: done\n---\nEND OF ANSWER\n", "must contain `handoff"),
        ("---\nhandoff: NAME\noutcome: great\n---\nEND OF ANSWER\n", "and `outcome"),
    ],
)
def test_an_unreadable_answer_is_reported_and_the_task_keeps_waiting(tmp_path: Path, text: str, words: str) -> None:
    who, request = away(tmp_path), a_request(tmp_path)
    who.run(request)
    place = request_file(tmp_path)
    place.with_name(f"{place.stem}.answer.md").write_text(text.replace("NAME", place.stem), encoding="utf-8")
    result = who.run(request)
    assert result.outcome == outcome.WAITING
    assert words in result.message


def test_an_answer_is_never_read_through_a_link(tmp_path: Path) -> None:
    who, request = away(tmp_path), a_request(tmp_path)
    who.run(request)
    place = request_file(tmp_path)
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    place.with_name(f"{place.stem}.answer.md").symlink_to(tmp_path / "secret")
    assert "does not follow it" in who.run(request).message


def test_the_same_question_reuses_its_handoff_and_new_feedback_makes_another(tmp_path: Path) -> None:
    who = away(tmp_path)
    for request in (
        a_request(tmp_path),
        a_request(tmp_path, attempt=2),
        a_request(tmp_path, attempt=3, feedback="AC-1 failed"),
        a_request(tmp_path, VALIDATOR),
        a_request(tmp_path, PLANNER, task=None, about="phase-2"),
    ):
        who.run(request)
    assert len(list((tmp_path / "handoffs").glob("*.md"))) == 4


def test_an_answer_counts_for_one_attempt_and_a_verdict_for_one_candidate(tmp_path: Path) -> None:
    """R-ADAPT-2: what failed before is not taken again, however alike the questions are."""
    who, first = away(tmp_path), a_request(tmp_path, feedback="AC-1 failed", settled=1)
    who.run(first)
    answer(request_file(tmp_path), EDITS % "a.txt")
    assert who.run(first).outcome == outcome.COMPLETED
    assert who.run(replace(first, attempt=3, settled=2)).outcome == outcome.WAITING

    judge = a_request(tmp_path, VALIDATOR, candidate="1" * 40)
    who.run(judge)
    answer(request_file(tmp_path), '```json\n{"verdict": "PASS", "findings": []}\n```')
    assert who.run(judge).outcome == outcome.COMPLETED
    assert who.run(replace(judge, candidate="2" * 40)).outcome == outcome.WAITING


@every("options", [{"folder": "/a\0b"}, {"wait": float("nan")}, {"wait": 10**400}])
def test_options_that_no_system_supports_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    """R-ADAPT-2."""
    result = away(tmp_path, **options).run(a_request(tmp_path))
    assert (result.outcome, result.message.partition(" (handoff)")[0]) == (outcome.ERRORED, "The binding away")


def test_waiting_lasts_as_long_as_binding_and_deadline_allow(tmp_path: Path) -> None:
    request = a_request(tmp_path)
    assert away(tmp_path, wait=60).run(replace(request, deadline=0.05)).outcome == outcome.WAITING
    timer = threading.Timer(0.1, answer, (request_file(tmp_path), EDITS % "a.txt"))
    timer.start()
    result = away(tmp_path, wait=60).run(replace(request, deadline=30.0))
    timer.join()
    assert result.outcome == outcome.COMPLETED


def test_usage_is_unknown_and_a_task_without_files_accepts_no_edit(tmp_path: Path) -> None:
    who, request = away(tmp_path), a_request(tmp_path, allowed_paths=())
    who.run(request)
    for body in (EDITS % "a.txt", "```diff\nx\n```"):
        answer(request_file(tmp_path), body)
        result = who.run(request)
        assert (result.outcome, result.usage) == (outcome.FAILED, agent.Usage())
        assert "is not a file of this task; its files are: none" in result.message


def test_an_answer_without_a_ticket_is_not_read(tmp_path: Path) -> None:
    """R-ADAPT-2: an answer written before the request does not count, even if the request was predictable."""
    who, request = away(tmp_path), a_request(tmp_path, VALIDATOR)
    (tmp_path / "handoffs").mkdir()
    for foreseen in ("T1-01-validator-{}", "T1-01-validator-{}-0000"):
        name = foreseen.format(who.question(request).rpartition("-")[2])  # type: ignore[attr-defined]
        answer(tmp_path / f"handoffs/{name}.md", '```json\n{"verdict": "PASS", "findings": []}\n```')
    result = who.run(request)
    assert result.outcome == outcome.WAITING
    answer(request_file(tmp_path), '```json\n{"verdict": "PASS", "findings": []}\n```')
    assert who.run(request).outcome == outcome.COMPLETED


def test_nothing_is_handed_off_without_a_ticket(tmp_path: Path) -> None:
    result = away(tmp_path).run(a_request(tmp_path, ticket=""))
    assert (result.outcome, (tmp_path / "handoffs").exists()) == (outcome.ERRORED, False)


def test_a_handoff_contains_no_secret_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    """R-ADAPT-2."""
    request = a_request(tmp_path)
    (tmp_path / "work/a.txt").write_text(f"{TOKEN} a\n", encoding="utf-8")
    assert answering(tmp_path, Redactor().redact, {}).run(request).outcome == outcome.WAITING
    (paper,) = (tmp_path / "handoffs").iterdir()
    assert paper.stat().st_mode & 0o777 == 0o600
    text = paper.read_text(encoding="utf-8")
    assert "[redacted:github:" in text
    assert TOKEN not in text
