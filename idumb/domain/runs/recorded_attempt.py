"""A recorded attempt, for replay."""

from __future__ import annotations

from idumb.domain.agent import AgentResult
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """One attempt of one task of a run.

    - `digest`: of the task at that time. `built`: the builder's result. `judged`: the validator's, None if there was
      none.
    - `trees`: the task base, and the tree that each attempt up to this one left; replay starts from any and ends with
      the last.
    - `paths`: all paths that these attempts changed.
    - `judged_tree`: the candidate that the validator judged, None if unknown.
    """

    digest: str
    built: AgentResult
    judged: AgentResult | None
    trees: tuple[str, ...]
    paths: tuple[str, ...]
    judged_tree: str | None = None
