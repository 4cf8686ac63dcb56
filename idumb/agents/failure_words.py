"""Tells which kind of failure a vendor reports: by its status, then by its error code, then by its own phrases.

Agents quote the work, and work is full of numbers and words: `src/app.py:401` is no login, `503 tests passed` no
network, `billing.py` no budget. So only a whole phrase of a vendor counts, and a number only where it is called a
status.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

from idumb.domain import agent

_LONGEST = 4000  # characters of a message
_STATUS: Mapping[int, str] = {
    401: agent.NOT_LOGGED_IN,
    402: agent.OVER_BUDGET,
    403: agent.NOT_LOGGED_IN,
    404: agent.MISSING,
    405: agent.MISSING,
    408: agent.NETWORK,
    413: agent.CONTEXT_EXHAUSTED,
    425: agent.NETWORK,
    429: agent.RATE_LIMITED,
    501: agent.MISSING,
    529: agent.RATE_LIMITED,
}
_CODES_OF: Mapping[str, str] = {
    agent.NOT_LOGGED_IN: "authentication_error authentication_failed invalid_api_key permission_denied"
    " permission_error unauthenticated",
    agent.UNKNOWN_MODEL: "model_not_found model_not_supported",
    agent.CONTEXT_EXHAUSTED: "context_length_exceeded model_max_prompt_tokens_exceeded request_too_large",
    agent.OVER_BUDGET: "billing_error error_max_budget_usd error_max_turns insufficient_quota"
    " insufficient_user_quota quota_exceeded",
    agent.RATE_LIMITED: "overloaded_error rate_limit rate_limit_error rate_limit_exceeded rate_limited"
    " resource_exhausted usage_limit_reached",
    agent.NETWORK: "api_error internal server_error unavailable",
}
"""The error codes of the vendors' interfaces, in lower case."""
_CODES = {code: kind for kind, codes in _CODES_OF.items() for code in codes.split()}

_PHRASES: Mapping[str, str] = {
    agent.UNKNOWN_MODEL: r"""
        model_not_found | ModelNotFoundError | no\ such\ model$ | \bmodel\ not\ found:
        | \bmodel\s[`'"]?[\w./:-]+[`'"]?\s(does\ not\ exist\b|not\ found|is\ not\ supported\ when|may\ not\ exist)
        | ['"]\ model\ is\ not\ supported\ when | ^requested\ entity\ was\ not\ found
        | ^models/[\w.:-]+\ is\ not\ found | selected\ model\ \([^)]*\).{0,40}not\ exist | not\ a\ valid\ model\ id
        | \bmodel\ .{0,80}from\ --model\ flag\ is\ not\ available | requested\ model\ .{0,80}\ does\ not\ exist
        | requires\ a\ newer\ version\ of\ codex | \bis\ not\ available\ with\ the\ claude\ \w+\ plan
        | not_found_error.{0,30}model: | \binternal\ error:\ model:\ [\w./:-]+$
    """,
    agent.CONTEXT_EXHAUSTED: r"""
        prompt\ (is|as)\ too\ long | session\ too\ large\ to\ compact | ^context\ limit\ reached
        | input\ token\ count\ .{0,30}exceeds | prompt\ token\ count\ of\ .{0,20}exceeds | context_length_exceeded
        | maximum\ context\ length | \bexceeds?\ (the\ )?(model'?s?\ )?context\ (window|length|limit)
        | range\ of\ input\ length\ should\ be
        | ran\ out\ of\ room\ in\ the\ model's\ context\ window | reached\ its\ maximum\ length | output\ token\ maximum
    """,
    agent.OVER_BUDGET: r"""
        insufficient_quota | credit\ balance\ (is\ )?too\ low | exceeded\ your\ current\ quota | no\ payment\ method
        | reached\ maximum\ budget | insufficient\ balance | you\ have\ no\ quota | out\ of\ credits
        | quota\ is\ not\ enough | 额度不足 | token\ budget\ exhausted | quota\ exceeded\.\ check\ your\ plan
        | to\ use\ codex\ with\ your\ chatgpt\ plan | reached\ your\ specified\ API\ usage\ limits
    """,
    agent.NOT_LOGGED_IN: r"""
        please\ (run\ /login|login\ again) | please\ (log\ out\ and\ |try\ )?sign(ing)?\ in\ again | not\ logged\ in
        | invalid\ (x-)?api[ -]key | (incorrect|missing)\ api\ key | api\ key\ (not\ valid|expired|is\ missing)
        | no\ api\ key\ (found|provided|set) | authentication\ required | failed\ to\ authenticate
        | (set\ an|invalid|no)\ auth(entication)?\ (method|type|info|information) | authentication_error
        | no\ auth\ credentials\ found | OAuth\ token\ has\ (expired|been\ revoked)
        | could\ not\ load\ (the\ default\ )?credentials | security\ token\ included\ in\ the\ request
        | log\ in\ to\ .{0,40}first | organization\ has\ been\ disabled | invalid\ (access|bearer)\ token
    """,
    agent.RATE_LIMITED: r"""
        rate_limit_error | exceed(ed)?\ (the|your)\ rate\ limit | rate\ limit\ (exceeded|reached) | overloaded_error
        | too\ many\ requests | (^|API\ error:\ )overloaded$ | overloaded\ errors$ | usage\ limit\ reached
        | model\ is\ (overloaded|at\ capacity) | limit\ reached\ [·∙] | \bhit\ (your|a)\ ([\w.'’-]+\ ){0,3}limit\b
        | \byou(['’]ve|\ have)\ (reached|exceeded)\ your\ ([\w'’-]+\ ){0,3}(limit|quota)\b | experiencing\ high\ demand
        | \byou\ have\ been\ rate[- ]limited | temporarily\ limiting\ requests | quota\ exceeded\ for\ quota\ metric
        | resource\ has\ been\ exhausted | exceeded\ retry\ limit,\ last\ status:\ 429 | free\ usage\ exceeded
        | exhausted\ your\ (daily\ quota|capacity)\ on | no\ capacity\ available\ for\ model | daily\ quota\ has\ been
        | too\ many\ tokens(\ per|,\ please) | out\ of\ extra\ usage
    """,
    agent.MALFORMED: r"""
        failed\ to\ (parse\ json|decode\ response) | unexpected\ token\ .{1,40}\ json
        | is\ not\ valid\ json | invalid\ json\ response
    """,
    agent.NETWORK: r"""
        \bE(CONN(REFUSED|RESET|ABORTED)|NOTFOUND|TIMEDOUT|AI_AGAIN)\b | ConnectionRefused | \bfetch\ failed
        | socket\ hang\ up | (unable\ to|could\ not|cannot)\ connect\ to\ (the\ |local\ )?(API|server|model)
        | unable\ to\ connect\.\ is\ the\ computer | socket\ connection\ was\ closed | (first|signed)\ certificate
        | (^|[ (])connection\ error(\.|$) | error\ sending\ request | stream\ disconnected | stream\ closed\ before
        | stream\ idle\ timeout | stalled\ mid-stream | connection\ refused | no\ such\ host
        | failure\ in\ name\ resolution
        | network\ error:? | waiting\ for\ network | premature\ close | (^|error:\ )(terminated$|request\ timed\ out)
        | internal\ server\ error | server\ had\ an\ error | service\ unavailable | an\ internal\ error\ has\ occurred
        | connection\ to\ the\ API\ was\ lost | server-side\ issue | failed\ to\ get\ response\ from\ the\ AI\ model
    """,
    agent.DECLINED: r"""
        content[_ ]filter | violat(es?|ing)\ .{0,30}usage\ polic(y|ies) | blocked\ by\ .{0,20}safety\ (filter|settings)
        | content\ was\ flagged\ for
    """,
}
_KINDS = {kind: re.compile(phrases, re.IGNORECASE | re.VERBOSE | re.MULTILINE) for kind, phrases in _PHRASES.items()}
_SAID_STATUS = re.compile(
    r"(?:\bstatus(?:\ code)?[:=]?|\bHTTP(?:/[\d.]+)?|\bC?API\ ?Error:|\bserver\ answered|\bRequest\ rejected"
    r"|\bLast\ error:|^Error:|^Internal\ error:?|^(?:POST|GET)\ https?://\S+)\ ?[(<]?([45]\d\d)\b",
    re.IGNORECASE,
)


def of_status(status: int, message: str = "", code: str = "") -> str:
    """Return the kind of an answer with this HTTP status, whose body has this message and code."""
    kind = _CODES.get(code.lower()) or _of_phrase(message)
    if kind == agent.OVER_BUDGET:
        return kind
    if status in {400, 404, 422}:
        of_body = {agent.CONTEXT_EXHAUSTED, agent.UNKNOWN_MODEL, agent.NOT_LOGGED_IN, agent.DECLINED}
        return kind if kind in of_body else _STATUS.get(status, agent.MALFORMED)
    return _STATUS.get(status) or (agent.NETWORK if status >= 500 else agent.MALFORMED)


def of_error(value: Any) -> str | None:
    """Return the kind of a structured error: an object with `code`, `type`, `status`, `message` or `error`, or None."""
    fields = _fields(value)
    if not fields:
        return None
    words = str(fields.get("message") or "")
    numbers = [v for v in (fields.get("status"), fields.get("code"), fields.get("statusCode")) if type(v) is int]
    status = next((number for number in numbers if 400 <= number < 600), None)
    if status is not None:
        return _of_program(status, words, code(value))
    return _CODES.get(code(value).lower()) or of_words(words)


def of_words(words: str) -> str | None:
    """Return the kind of failure that the message of an error names, or None."""
    words = words[:_LONGEST]
    begin = words.find("{")
    if begin >= 0:
        with contextlib.suppress(ValueError, RecursionError):
            value, _ = json.JSONDecoder().raw_decode(words[begin:])
            if (kind := of_error(value)) is not None:
                return kind
    kind = _of_phrase(words)
    said = _SAID_STATUS.search(words)
    return kind or (_of_program(int(said[1]), words) if said is not None else None)


def _of_program(status: int, message: str, code: str = "") -> str:
    """Return the kind of a status that a program passes on: it runs, so what is missing is at its server."""
    kind = of_status(status, message, code)
    return agent.MALFORMED if kind == agent.MISSING else kind


def message(value: Any) -> str:
    """Return code, type and message of a structured error, or the beginning of any other body."""
    if not isinstance(value, Mapping):
        return str(value or "")
    fields = _fields(value)
    return " ".join(str(fields[k]) for k in ("code", "type", "message") if fields.get(k)) or json.dumps(value)


def code(value: Any) -> str:
    """Return the code of a structured error that says most, or ""."""
    fields = _fields(value)
    names = [name for key in ("code", "type", "status") if isinstance(name := fields.get(key), str)]
    return next((name for name in names if name.lower() in _CODES), "")


def _fields(value: Any) -> Mapping[str, Any]:
    """Return the fields of an error, which vendors put below `error` or into a string of JSON."""
    for _ in range(3):
        if isinstance(value, Mapping) and isinstance(value.get("error"), Mapping):
            value = value["error"]
    return value if isinstance(value, Mapping) else {}


def _of_phrase(words: str) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(words)), None)
