"""Gaps: results that a phase should deliver and its verification did not find."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from idumb.domain import paths
from idumb.domain.plans.plan import FileClaim
from idumb.domain.proof import evidence
from idumb.lazy_dataclass import dataclass

_MOST = 50
_CLOSED = frozenset({evidence.PASSED, evidence.TOLERATED})


@dataclass(frozen=True, slots=True)
class Gap:
    """`subject` names it in the verification, `text` says what must hold, `why` what is missing.

    `check` is the command that proves it; None if a person must judge it.
    """

    subject: str
    text: str
    why: str
    check: str | None = None


def from_verification(record: Mapping[str, Any]) -> tuple[Gap, ...]:
    """Return every gap of a verification, criteria first; one gap for each command and each text."""
    partial = record.get("status") == "partial"
    gaps = [
        Gap(e["subject"], e["text"], _why(e), e.get("command"))
        for e in record["evidence"]
        if e["result"] not in _CLOSED and (partial or e["result"] != evidence.OPINION)
    ]
    gaps += [
        Gap("files", f"{text}: fixed", "the files are not as the tasks left them") for text in record["mismatches"]
    ]
    for row in record["requirements"]:
        if not row["met"]:
            words = f"{row['id']}: {row['text']}" if row["text"] else row["id"]
            gaps.append(Gap(row["id"], f"{words} is met", "no task that is done serves it"))
    if partial and not any(e["result"] == evidence.PASSED for e in record["evidence"]):
        gaps += [
            Gap(t, f"The work of {t} is proven", f"accepted by a person: {w}") for t, w in record["accepted"].items()
        ]
        gaps += [Gap(t, f"The work of {t} is done and proven", "it was skipped") for t in record["skipped"]]
    subjects = {gap.subject for gap in gaps}
    gaps += [gap for gap in _refuted(record) if gap.subject not in subjects]
    one_each = {(gap.check or gap.text): gap for gap in reversed(gaps)}
    return tuple(reversed(one_each.values()))[:_MOST]


def _why(criterion: Mapping[str, Any]) -> str:
    code = "" if criterion.get("exit_code") is None else f", exit {criterion['exit_code']}"
    return f"{str(criterion['result']).replace('_', ' ')}{code}"


def _refuted(record: Mapping[str, Any]) -> list[Gap]:
    texts = {e["subject"]: (e["text"], e.get("command")) for e in record["evidence"]}
    gaps = []
    for opinion in record.get("judged_by", ()):
        for judgement in opinion["judgements"]:
            places = [f"{c['file']}:{c['line']}" for c in judgement["citations"] if c["resolves"]]
            if not judgement["holds"] and places:
                text, _ = texts.get(judgement["criterion"], (judgement["criterion"], None))
                # its check passed for wrong work, so the check cannot close the gap
                gaps.append(Gap(judgement["criterion"], text, f"{judgement['why']} ({', '.join(places[:3])})"))
    return gaps


def reachable(claims: Collection[FileClaim]) -> tuple[str, ...]:
    """Return globs around the files that a phase's tasks write, for a task that may change any of them."""
    globs = []
    for claim in claims:
        path = claim.target or claim.path
        folder, slash, name = path.rpartition("/")
        if paths.has_wildcard(path):
            globs.append(path)
        elif slash:
            globs.append(f"{folder}/**")
        else:
            _, dot, ending = name.rpartition(".")
            globs.append(f"*.{ending}" if dot and ending else f"{name}*")
    return tuple(dict.fromkeys(globs))
