"""Words for recorded evidence in reports. An opinion is never shown as proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from idumb.domain.proof import evidence
from idumb.views import markup, quantities

_ANSWER_WIDTH = 120
_OUTPUT_LINES = 20

Recorded = Mapping[str, Any]
Grouped = list[tuple[str, list[str]]]
"""Words with the subjects that they are about."""

_WORDS = {
    evidence.PASSED: "passed",
    evidence.FAILED: "failed",
    evidence.ERRORED: "errored (could not run)",
    evidence.TIMED_OUT: "timed out",
    evidence.WAITING: "waits for a person",
    evidence.OPINION: "opinion (no proof)",
    evidence.UNPROVEN: "unproven",
    evidence.TOLERATED: "failed, tolerated (continue_on_error)",
}
"""Each result in words, in the order of sums."""


def weakened(events: Sequence[Recorded]) -> Grouped:
    """Return the reasons why evidence proves less, with its subjects."""
    return _grouped((reason, row["subject"]) for row in events for reason in row.get("weaker", ()))


def controls(events: Sequence[Recorded]) -> Grouped:
    """Return the checks that passed before the work, and the reasons why a control did not run."""
    results = ((str(row.get("control") or ""), row["subject"]) for row in events)
    return _grouped(
        (_control_words(result), subject)
        for result, subject in results
        if result == evidence.PASSED or result.startswith(evidence.NOT_RUN)
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> Grouped:
    subjects: dict[str, list[str]] = {}
    for words, subject in pairs:
        subjects.setdefault(words, []).append(subject)
    return list(subjects.items())


def _control_words(result: str) -> str:
    if result == evidence.PASSED:
        return "Passed before the work, and so does not show that the work was done"
    return f"Its control before the work was {result}"


def result_words(result: str) -> str:
    return _WORDS.get(result) or markup.prose(result)


def how(row: Recorded) -> str:
    """Return the command as a code span, else the answer of a person, else `no command`, as Markdown."""
    if row.get("command"):
        return markup.code(row["command"])
    answer = row.get("output") if row.get("exit_code") is None else ""
    return markup.prose(quantities.clip(answer, _ANSWER_WIDTH)) if answer else "no command"


def output_digest(row: Recorded) -> str:
    digest = row.get("output_sha256")
    if not digest:
        return "none kept"
    return f"`sha256:{str(digest)[:12]}`" + (", shortened" if row.get("truncated") else "")


def failures(events: Sequence[Recorded]) -> list[Recorded]:
    """Return the evidence that fails the task."""
    return [row for row in events if row["result"] in evidence.BROKEN]


def summed(events: Sequence[Recorded]) -> str:
    """Return `3 passed, 1 unproven`."""
    results = [row["result"] for row in events]
    parts = [f"{results.count(r)} {words.split(' (')[0]}" for r, words in _WORDS.items() if r in results]
    return ", ".join(parts) or "no evidence"


def output_end(row: Recorded) -> str:
    """Return the last lines of a check's output as a fenced block."""
    kept = str(row.get("output") or "").rstrip("\n").split("\n")
    if kept == [""]:
        return "No output."
    head = [f"The last {_OUTPUT_LINES} of {len(kept)} kept lines:", ""] if len(kept) > _OUTPUT_LINES else []
    return "\n".join([*head, *markup.block("\n".join(kept[-_OUTPUT_LINES:]), "text")])
