"""Render recorded evidence as Markdown. An opinion is never shown as proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.domain.proof import evidence
from idumb.views import markup, quantities

_ANSWER_WIDTH = 120

Recorded = Mapping[str, Any]

_WORDS = {
    evidence.ERRORED: "errored (could not run)",
    evidence.TIMED_OUT: "timed out",
    evidence.WAITING: "waits for a person",
    evidence.OPINION: "opinion (no proof)",
    evidence.UNPROVEN: "unproven",
    evidence.TOLERATED: "failed, tolerated (continue_on_error)",
}


def render(events: Sequence[Recorded]) -> list[str]:
    """Return the lines of a table, or a sentence without evidence."""
    if not events:
        return ["No evidence recorded."]
    return markup.table(("Proves", "Result", "How", "Exit", "Took", "Output"), (_row(found) for found in events))


def _row(found: Recorded) -> tuple[str, ...]:
    subject = markup.prose(found["subject"]) + (f": {markup.prose(found['text'])}" if found.get("text") else "")
    return (
        subject,
        result_words(found["result"]),
        how(found),
        _exit(found),
        quantities.duration(found.get("seconds") or 0),
        _output(found),
    )


def result_words(result: str) -> str:
    return _WORDS.get(result, markup.prose(result))


def how(found: Recorded) -> str:
    """Return the command as a code span, else the answer of a person, else `no command`."""
    if found.get("command"):
        return markup.code(found["command"])
    answer = found.get("output") if found.get("exit_code") is None else ""
    return markup.prose(quantities.clip(answer, _ANSWER_WIDTH)) if answer else "no command"


def _exit(found: Recorded) -> str:
    code = found.get("exit_code")
    return "-" if code is None else str(code)


def _output(found: Recorded) -> str:
    digest = found.get("output_sha256")
    if not digest:
        return "none kept"
    return f"`sha256:{str(digest)[:12]}`" + (", shortened" if found.get("truncated") else "")


def failures(events: Sequence[Recorded]) -> tuple[Recorded, ...]:
    """Return the evidence that fails the task."""
    bad = {evidence.FAILED, evidence.ERRORED, evidence.TIMED_OUT}
    return tuple(found for found in events if found["result"] in bad)


def summed(events: Sequence[Recorded]) -> str:
    """Return `3 passed, 1 unproven`, in a fixed order of results."""
    results = [found["result"] for found in events]
    order = (
        evidence.PASSED,
        evidence.FAILED,
        evidence.ERRORED,
        evidence.TIMED_OUT,
        evidence.WAITING,
        evidence.OPINION,
        evidence.UNPROVEN,
        evidence.TOLERATED,
    )
    parts = [f"{results.count(r)} {_short_word(r)}" for r in order if r in results]
    return ", ".join(parts) or "no evidence"


def _short_word(result: str) -> str:
    return result_words(result).split(" (")[0]


def tail(found: Recorded, lines: int = 20) -> list[str]:
    """Return the last lines of a check's output as a fenced block."""
    kept = str(found.get("output") or "").rstrip("\n").split("\n")
    if kept == [""]:
        return ["No output."]
    shown = kept[-lines:]
    note = [f"The last {lines} of {len(kept)} kept lines:", ""] if len(kept) > lines else []
    return [*note, *markup.block("\n".join(shown), "text")]
