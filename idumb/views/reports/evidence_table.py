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
    """Return the lines of a table with what weakens its evidence, or a sentence without evidence."""
    if not events:
        return ["No evidence recorded."]
    table = markup.table(("Proves", "Result", "How", "Exit", "Took", "Output"), (_row(row) for row in events))
    weaker = [*weakened(events), *controls(events)]
    return [*table, "", *(f"- {line}" for line in weaker)] if weaker else table


def weakened(events: Sequence[Recorded]) -> list[str]:
    """Return one line for each reason why evidence proves less, with its subjects."""
    subjects: dict[str, list[str]] = {}
    for row in events:
        for reason in row.get("weaker", ()):
            subjects.setdefault(reason, []).append(row["subject"])
    return [f"Weaker: {markup.prose(reason)} ({markup.prose(', '.join(s))})" for reason, s in subjects.items()]


def controls(events: Sequence[Recorded]) -> list[str]:
    """Return one line for the checks that passed before the work, and one for each reason why a control did not run."""
    subjects: dict[str, list[str]] = {}
    for row in events:
        result = str(row.get("control") or "")
        if result == evidence.PASSED or result.startswith(evidence.NOT_RUN):
            subjects.setdefault(result, []).append(row["subject"])
    return [f"{_control_words(result)}: {markup.prose(', '.join(s))}" for result, s in subjects.items()]


def _control_words(result: str) -> str:
    if result == evidence.PASSED:
        return "Passed before the work, and so does not show that the work was done"
    return f"Its control before the work was {markup.prose(result)}"


def _row(row: Recorded) -> tuple[str, ...]:
    subject = markup.prose(row["subject"]) + (f": {markup.prose(row['text'])}" if row.get("text") else "")
    return (
        subject,
        result_words(row["result"]),
        how(row),
        _exit(row),
        quantities.duration(row.get("seconds") or 0),
        _output(row),
    )


def result_words(result: str) -> str:
    return _WORDS.get(result, markup.prose(result))


def how(row: Recorded) -> str:
    """Return the command as a code span, else the answer of a person, else `no command`."""
    if row.get("command"):
        return markup.code(row["command"])
    answer = row.get("output") if row.get("exit_code") is None else ""
    return markup.prose(quantities.clip(answer, _ANSWER_WIDTH)) if answer else "no command"


def _exit(row: Recorded) -> str:
    code = row.get("exit_code")
    return "-" if code is None else str(code)


def _output(row: Recorded) -> str:
    digest = row.get("output_sha256")
    if not digest:
        return "none kept"
    return f"`sha256:{str(digest)[:12]}`" + (", shortened" if row.get("truncated") else "")


def failures(events: Sequence[Recorded]) -> tuple[Recorded, ...]:
    """Return the evidence that fails the task."""
    bad = {evidence.FAILED, evidence.ERRORED, evidence.TIMED_OUT}
    return tuple(row for row in events if row["result"] in bad)


def summed(events: Sequence[Recorded]) -> str:
    """Return `3 passed, 1 unproven`, in a fixed order of results."""
    results = [row["result"] for row in events]
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


def tail(row: Recorded, lines: int = 20) -> list[str]:
    """Return the last lines of a check's output as a fenced block."""
    kept = str(row.get("output") or "").rstrip("\n").split("\n")
    if kept == [""]:
        return ["No output."]
    shown = kept[-lines:]
    note = [f"The last {lines} of {len(kept)} kept lines:", ""] if len(kept) > lines else []
    return [*note, *markup.block("\n".join(shown), "text")]
