"""Which kind of failure an agent's words report, and which words report none (R-ADAPT-2, R-ADAPT-6)."""

from __future__ import annotations

from typing import Any

from idumb.agents import failure_words
from idumb.domain import agent
from tests.support.cases import every

HARMLESS = (
    "src/app.py:401: undefined name 'user'",
    "503 tests passed",
    "expected 429 rows, got 431",
    "the network module has a bug",
    "billing.py does not compile",
    "test_safety.py fails",
    "/srv/jobs/529/tool: 1: no-such-program: not found",
    "sh: 3: /home/me/billing/refusals/run.sh: Permission denied",
    "Error: exit code 2 (/opt/network/tool.py:401)",
    "ModuleNotFoundError: No module named 'models.user'",
    "models/user.py not found",
    "the login page has no tests yet",
    "AssertionError: 500 != 200",
    "quota.rs: the borrow checker refuses this",
    "I declined the second approach because it needs a migration.",
    "timeout.py: 3 warnings",
    "the parser of JSON files is missing",
    "rate limiter: 12 passed in 0.4s",
    "the context manager is never closed, see src/context/window.py",
    "unauthorized access is now rejected by the new middleware",
    "credit_card.py:402: E501 line too long",
    "Database migration complete.",
    "Error: model: required",
)


@every("words", HARMLESS)
def test_words_about_the_work_report_no_failure(words: str) -> None:
    assert failure_words.of_words(words) is None
    assert failure_words.of_error({"message": words}) is None


@every(
    "words, kind",
    [
        ('{"type":"error","url":"https://api.example.com/v1/messages","status":529}', agent.RATE_LIMITED),
        ("POST https://api.example.com/v1/messages 429", agent.RATE_LIMITED),
        ("HTTP/1.1 429 Too Many Requests", agent.RATE_LIMITED),
        ("unexpected status 429", agent.RATE_LIMITED),
        ("session/prompt failed: Internal error: model: that-one", agent.UNKNOWN_MODEL),
    ],
)
def test_a_status_or_a_model_without_a_code_names_the_kind(words: str, kind: str) -> None:
    assert failure_words.of_words(words) == kind


@every(
    "error, kind",
    [
        ({"error": {"type": "authentication_error", "message": "no"}}, agent.NOT_LOGGED_IN),
        ({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x"}}, agent.RATE_LIMITED),
        ({"error": {"code": "insufficient_quota", "type": "x", "message": "x"}}, agent.OVER_BUDGET),
        ({"code": -32603, "message": "expected 429 rows"}, None),
        ({"status": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"}, agent.CONTEXT_EXHAUSTED),
        ({"status": 400, "message": "Your credit balance is too low to access the API"}, agent.OVER_BUDGET),
        ({"status": 404, "message": "no such model"}, agent.UNKNOWN_MODEL),
        ({"status": 404, "message": "no such path"}, agent.MISSING),
        ({"status": 503, "message": ""}, agent.NETWORK),
        ("text", None),
    ],
)
def test_a_structured_error_is_read_before_its_words(error: Any, kind: str | None) -> None:
    assert failure_words.of_error(error) == kind
