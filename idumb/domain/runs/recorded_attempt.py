"""What a recorded attempt left and said, for playing it again."""

from __future__ import annotations

from dataclasses import dataclass

from idumb.domain.agent import AgentResult


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """One attempt of one task of a finished or unfinished run.

    `digest` is that of the task as it read then. `built` is what the builder answered, `judged` what the validator
    did, None where there was none. `trees` are the trees that the paths may be in before it is played: the task base
    and what each attempt up to this one left; the last is the one it leaves. `paths` are all that these attempts
    changed. `judged_tree` is the candidate that the validator judged, None where that is not known.
    """

    digest: str
    built: AgentResult
    judged: AgentResult | None
    trees: tuple[str, ...]
    paths: tuple[str, ...]
    judged_tree: str | None = None
