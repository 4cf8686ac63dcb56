"""Plans and definitions of workflows as they were read from files."""

from __future__ import annotations

from idumb.domain.finding import Finding
from idumb.domain.plans.plan import Plan
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """`plan` is None if a finding is an error. `text` is the decoded file, for edits by span.

    `draft` is the readable part of a plan with errors, for checks only; None if there is none. `dialect` is the format
    in which it was read, or the name of the tool whose format idumb does not read as a plan.
    """

    plan: Plan | None
    findings: tuple[Finding, ...]
    text: str = ""
    draft: Plan | None = None
    dialect: str = "plan"


@dataclass(frozen=True, slots=True)
class DefinitionFile:
    """A file with the definition of a workflow. `origin` is `repository`, `user` or `program`.

    `path` is from the repository's root, or absolute if the file is outside. `problem` says why it cannot be read.
    """

    name: str
    origin: str
    path: str
    data: bytes
    problem: str = ""
