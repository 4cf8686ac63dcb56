"""Render a plan that closes gaps. Its tasks are YAML, so that no text of a criterion becomes syntax."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import wording
from idumb.domain.contract import Contract
from idumb.domain.runs.gap import Gap
from idumb.views import markup, quantities

_TITLE = 60


def render(
    contract: Contract, gaps: Sequence[Gap], *, identity: str, first: int, builder: str | None, reach: Sequence[str]
) -> str:
    """Return the plan. `first` is the number of its first task; `reach` are globs of files that tasks may change."""
    phase = contract.plans[0].phase
    head = {
        "type": "plan",
        "phase": phase,
        "plan": identity,
        "title": f"Gaps of phase {phase}",
        "goal": f"Close what the verification of phase {phase} left open",
        "mode": contract.mode,
    }
    lines = [*markup.frontmatter(head), "", "## Tasks"]
    for number, gap in enumerate(gaps, first):
        lines += ["", "```yaml task", *_task(f"T{phase}-{number:02d}", gap, builder, reach), "```"]
    return "\n".join(lines) + "\n"


def _task(identity: str, gap: Gap, builder: str | None, reach: Sequence[str]) -> list[str]:
    text = wording.one_line(gap.text)
    lines = [f"id: {identity}", f"title: {_quoted('Close ' + gap.subject + ': ' + quantities.clip(text, _TITLE))}"]
    lines += [f"description: {_quoted(f'{gap.subject}, {text}: {gap.why}. Find the cause and fix it.')}"]
    lines += [] if builder else ["kind: human-action"]
    if reach:
        lines += ["files:"]
        for verb in ("create", "modify"):
            lines += [f"  {verb}:", *(f"    - {_quoted(path)}" for path in reach)]
    proof = f"check: {_quoted(gap.check)}" if gap.check else "human: true"
    return [*lines, "acceptance:", f"  - text: {_quoted(text)}", f"    {proof}"]


def _quoted(text: str) -> str:
    """Return a quoted scalar; YAML could read a plain word as another type."""
    plain = wording.one_line(text)
    found = markup.yaml_scalar(plain)
    return found if found.startswith('"') else f'"{found}"'
