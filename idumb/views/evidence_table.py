"""Recorded checks as Markdown. A person's answer and a model's opinion are never shown as a passed check."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import evidence
from idumb.domain.event import Event
from idumb.views import amount, markup

_WORDS = {
    evidence.ERRORED: "errored (could not run)",
    evidence.TIMED_OUT: "timed out",
    evidence.WAITING: "waits for a person",
    evidence.OPINION: "opinion (no proof)",
    evidence.UNPROVEN: "unproven",
}


def of_attempt(events: Sequence[Event], attempt: int | None) -> tuple[Event, ...]:
    """The evidence of one attempt; of the newest one where `attempt` is None."""
    if attempt is None:
        attempt = max((event.attempt or 0 for event in events), default=0)
    return tuple(event for event in events if (event.attempt or 0) == attempt)


def render(events: Sequence[Event]) -> list[str]:
    """Table lines; a sentence where nothing was recorded."""
    if not events:
        return ["No evidence is recorded."]
    return markup.table(("Proves", "Result", "How", "Exit", "Took", "Output"), (_row(event) for event in events))


def _row(event: Event) -> tuple[str, ...]:
    p = event.payload
    subject = markup.prose(p["subject"]) + (f": {markup.prose(p['text'])}" if p.get("text") else "")
    return (
        subject,
        result_words(p["result"]),
        how(event),
        _exit(event),
        amount.duration(p.get("seconds") or 0),
        _output(event),
    )


def result_words(result: str) -> str:
    return _WORDS.get(result, markup.prose(result))


def how(event: Event) -> str:
    """The command that ran, as a code span; a word where none did."""
    command = event.payload.get("command")
    return markup.code(command) if command else "no command"


def _exit(event: Event) -> str:
    code = event.payload.get("exit_code")
    return "-" if code is None else str(code)


def _output(event: Event) -> str:
    digest = event.payload.get("output_sha256")
    if not digest:
        return "none kept"
    return f"`sha256:{str(digest)[:12]}`" + (", shortened" if event.payload.get("truncated") else "")


def failures(events: Sequence[Event]) -> tuple[Event, ...]:
    """Evidence that speaks against the task."""
    bad = {evidence.FAILED, evidence.ERRORED, evidence.TIMED_OUT}
    return tuple(event for event in events if event.payload["result"] in bad)


def summed(events: Sequence[Event]) -> str:
    """`3 passed, 1 unproven`, in a fixed order of results."""
    results = [event.payload["result"] for event in events]
    known = (
        evidence.PASSED,
        evidence.FAILED,
        evidence.ERRORED,
        evidence.TIMED_OUT,
        evidence.WAITING,
        evidence.OPINION,
        evidence.UNPROVEN,
    )
    parts = [f"{results.count(r)} {_short_word(r)}" for r in known if r in results]
    return ", ".join(parts) or "no evidence"


def _short_word(result: str) -> str:
    return result_words(result).split(" (")[0]


def tail(event: Event, lines: int = 20) -> list[str]:
    """The last lines of what the check printed, as a fenced block."""
    kept = str(event.payload.get("output") or "").rstrip("\n").split("\n")
    if kept == [""]:
        return ["It printed nothing."]
    shown = kept[-lines:]
    note = [f"The last {lines} of {len(kept)} kept lines:", ""] if len(kept) > lines else []
    return [*note, *markup.block("\n".join(shown), "text")]
