"""What a check is, and its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from idumb.domain.contract import Contract
from idumb.domain.finding import Finding
from idumb.domain.plans.plan import Plan, Span, Task
from idumb.domain.settings import NO_POLICY, Policy, Settings

SILENT = "none"


@dataclass(frozen=True, slots=True)
class StartState:
    """The state where the run starts, as far as the contract refers to it.

    - `requirements`: the text of REQUIREMENTS.md, "" without one.
    - `base`: the declared paths in the tree that the run starts from. `on_disk`: those in the working tree.
    - `links`: written paths that are links or behind one, and their targets.
    - `protected`: protected files, collected only if the contract has globs.
    - `no_programs`: programs of its checks that cannot be started.
    - `done`: its completed tasks. `claimed`: tasks that an old iDumb recorded as done, whose files can exist.
    """

    requirements: str = ""
    base: frozenset[str] = frozenset()
    on_disk: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    protected: tuple[str, ...] = ()
    no_programs: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """One contract under one configuration and policy; `severities` is the severity of each code in this mode.

    - `links`: folders of written paths that are links, and their targets: relative to the root of the workspace, or
      absolute outside of it.
    - `repositories`: folders of the workspace that are submodules or nested repositories.
    - `present`: None if the state was not read; checks that need it then report nothing.
    """

    contract: Contract
    settings: Settings
    policy: Policy = NO_POLICY
    severities: Mapping[str, str] | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    repositories: tuple[str, ...] = ()
    present: StartState | None = None

    @cached_property
    def pairs(self) -> tuple[tuple[Plan, Task], ...]:
        """Every task with its plan, in the order of the documents."""
        return tuple((plan, task) for plan in self.contract.plans for task in plan.tasks)

    def at(
        self,
        code: str,
        plan: Plan,
        task: Task | None,
        where: str,
        *,
        found: str,
        accepted: str,
        message: str,
        mend: str,
        line: int = 0,
    ) -> Finding:
        """Return a finding at a field of a task, or of the frontmatter if `task` is None; `line` overrides its line."""
        span: Span | None = plan.spans.get(where) if task is None else task.spans.get(where) or task.span
        severity = (self.severities or {}).get(code, SILENT)
        place = line or (span.line if span else 1)
        return Finding(code, severity, plan.path, place, 1, where, found, accepted, message, mend)


def short(text: str) -> str:
    """Return the text, truncated for a finding."""
    return text if len(text) <= 120 else text[:117] + "..."


def is_declaration(plan: Plan) -> bool:
    """Whether a plan can declare more than steps; a step plan has no field for requirements."""
    return plan.path.lower().endswith(".md")
