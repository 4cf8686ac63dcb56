"""Which kind of failure an agent's words report, and which words report none (R-ADAPT-2, R-ADAPT-6)."""

from __future__ import annotations

import json
from typing import Any

from idumb.agents import claude, failure_words
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
    "the buffer has reached its size limit",
    "users who exceeded their quota get an email",
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
        ({"status": 404, "message": "no such path"}, agent.MALFORMED),
        ({"status": 503, "message": ""}, agent.NETWORK),
        ("text", None),
    ],
)
def test_a_structured_error_is_read_before_its_words(error: Any, kind: str | None) -> None:
    assert failure_words.of_error(error) == kind


REPORTED = {
    agent.RATE_LIMITED: """
        You've hit your session limit · resets 8:30pm (Asia/Tokyo)
        You've hit your limit · resets 3pm (UTC)
        5-hour limit reached ∙ resets 2pm
        You've hit your org's monthly spend limit · run /usage-credits to raise it
        You've reached your weekly rate limit. Please wait for your limit to reset on April 20, 2026 at 2:00 AM.
        Sorry, you have been rate-limited. Please wait 2 minutes before trying again.
        API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited
        API Error: Overloaded
        Quota exceeded for quota metric 'Gemini 2.5 Pro Requests' and limit 'Requests per day per user per tier'
        ThrottlingException: Too many tokens, please wait before trying again.
        API Error: Repeated 529 Overloaded errors
        You've hit your usage limit for gpt-5.3-codex-spark. Switch to another model now, or try again at 2:57 PM.
        Selected model is at capacity. Please try a different model.
        You have exhausted your capacity on this model. Your quota will reset after 8h44m7s.
        Internal error No capacity available for model gemini-3-flash-preview on the server
        Internal error Qwen OAuth quota exceeded: Your free daily quota has been reached.
        Internal error 429 Throttling: TPM(1000000/1000000).
        Error: Sorry, you've hit a rate limit that restricts the number of Copilot model requests. Try again in 2 hours.
        Error: Model call failed: {"message":"Sorry, you have exceeded your token usage.","code":"rate_limited"}
        Internal error Free usage exceeded, add credits
    """,
    agent.OVER_BUDGET: """
        API Error: 400 {"error":{"type":"x","message":"You have reached your specified API usage limits."}}
        Quota exceeded. Check your plan and billing details.
        shared rollout token budget exhausted
        Credit balance too low · Add funds: https://example.org/billing
        API Error: 403 {"error":{"code":"insufficient_user_quota","message":"remaining: $0.000000"}}
        API Error: 403 user quota is not enough
        API Error: 403 用户额度不足
        No payment method. Add a payment method here: https://example.org/billing
        Error: CAPIError: 402 {"error":{"message":"You have no quota","code":"quota_exceeded"}}
        Internal error Insufficient balance. Manage your billing here: https://example.org
    """,
    agent.NOT_LOGGED_IN: """
        Failed to authenticate: OAuth session expired and could not be refreshed
        Your access token could not be refreshed. Please log out and sign in again.
        OAuth token has been revoked. Please obtain a new token.
        Error: AI_APICallError: No auth credentials found
        Error: Could not load the default credentials. Browse to https://example.org for more information.
        The security token included in the request is expired
        Internal error 401 invalid access token or token expired
        [{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}]
        Error: 401 unauthorized: AuthenticateToken authentication failed
    """,
    agent.UNKNOWN_MODEL: """
        unexpected status 400 Bad Request: {"detail":"The 'gpt-9' model is not supported when using Codex with it."}
        Error: CAPIError: 400 {"error":{"message":"The requested model is not it.","code":"model_not_supported"}}
        The 'gpt-9' model requires a newer version of Codex. Please upgrade to the latest app or CLI and try again.
        unexpected status 404 Not Found: The model `o9` does not exist
        Claude Opus is not available with the Claude Pro plan.
        {"error":{"code":404,"message":"Requested entity was not found.","status":"NOT_FOUND"}}
    """,
    agent.CONTEXT_EXHAUSTED: """
        API Error: 400 {"error":{"message":"input length and `max_tokens` exceed context limit: 190000 + 32000"}}
        Internal error <400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]
        API Error: Claude's response exceeded the 32000 output token maximum.
        Error: CAPIError: 400 {"error":{"message":"prompt token count of 130000 exceeds the limit of 128000"}}
    """,
    agent.DECLINED: """
        Your prompt was flagged as potentially violating our usage policy.
        This content was flagged for possible cybersecurity risk. If this seems wrong, try rephrasing your request.
    """,
    agent.NETWORK: """
        API Error: Request timed out. Check your internet connection and proxy settings
        API Error: The socket connection was closed unexpectedly.
        API Error: terminated
        API Error: Stream idle timeout - partial response received
        API Error: Response stalled mid-stream. The response above may be incomplete.
        httpx.ConnectError: [Errno -3] Temporary failure in name resolution
        dial tcp: lookup api.example.com: no such host
        [Errno 111] Connection refused
        API Error: unable to verify the first certificate
        Internal error 503 status code (no body)
        Error: Failed to get response from the AI model; retried 5 times. Last error: Unknown error
        Error: CAPIError: 503 {"error":{"message":"It has issues.","code":"model_degraded"}}
    """,
}


@every("words, kind", [(line.strip(), kind) for kind, text in REPORTED.items() for line in text.strip().splitlines()])
def test_what_users_of_the_agents_saw_names_the_kind(words: str, kind: str) -> None:
    assert failure_words.of_words(words) == kind


def test_a_status_of_a_server_does_not_say_that_the_agent_is_missing() -> None:
    assert failure_words.of_words("unexpected status 404 Not Found: /v1/responses") == agent.MALFORMED
    assert failure_words.of_status(404) == agent.MISSING  # without a program between


def claude_said(*events: dict[str, Any]) -> str | None:
    return claude.read("\n".join(map(json.dumps, events)).encode(), b"").failure


def spoken(words: str, **more: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": words}]}, **more}


@every("words", ["I retry after ECONNRESET now.", "The user sees: not logged in.", "Internal server error is handled."])
def test_what_claude_says_about_the_work_is_no_failure_of_its_own(words: str) -> None:
    assert claude_said(spoken(words)) is None
    errors = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["No conversation"]}
    assert claude_said(spoken(words), errors) is None


def test_the_error_code_of_a_message_of_claude_counts_before_its_words() -> None:
    assert claude_said(spoken("New words for it.", error="rate_limit")) == agent.RATE_LIMITED
    assert claude_said(spoken("It is over.", error="rate_limit"), spoken("On I go.")) is None
    rejected = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}}
    assert claude_said(rejected) == agent.RATE_LIMITED
    assert claude_said(rejected, spoken("On I go.")) is None
    failed = {"type": "result", "subtype": "success", "is_error": True, "result": "New words for it."}
    assert claude_said(spoken("New words for it.", error="billing_error"), failed) == agent.OVER_BUDGET
