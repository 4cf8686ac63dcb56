"""What a check is, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from idumb.domain.contract import Contract
from idumb.domain.finding import Finding
from idumb.domain.plans.plan import STRICT, Plan, Span, Task
from idumb.domain.settings import NO_POLICY, Policy, Settings

SILENT = "none"


@dataclass(frozen=True, slots=True)
class StartState:
    """What is there where the run begins, as far as the contract names it.

    `requirements` is the text of REQUIREMENTS.md, "" without one. Of the declared paths `base` are those in the tree
    that the run begins from, `on_disk` those in the work tree. `links` are written paths that are links or lie behind
    one, and where they lead. `protected` are protected files, looked for where the contract has globs. `no_programs`
    are those of its checks that cannot be started, `done` its completed tasks. `claimed` are tasks that
    an old iDumb calls done: their files may be there.
    """

    requirements: str = ""
    base: frozenset[str] = frozenset()
    on_disk: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    protected: tuple[str, ...] = ()
    no_programs: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Example:
    """The smallest plan that shows a finding: `task` is Markdown below `## Tasks`, `head` more lines of frontmatter.

    `policy` and `config` are the text of `.idumb/policy/tools.yaml` and `.idumb/config.yaml`; "" where there is none.
    `repositories` are folders that are repositories of their own.
    """

    task: str
    head: str = ""
    policy: str = ""
    config: str = ""
    repositories: tuple[str, ...] = ()
    present: StartState | None = None


@dataclass(frozen=True)
class Case:
    """One contract under one configuration and policy; `severities` says for each code what it is in this mode.

    `links` are folders of written paths that are not what their names say, and where they lead: from the root of the
    workspace, or absolute where that is outside. `repositories` are folders of the workspace that are submodules or
    repositories of their own. `present` is None where nobody looked: what leans on it says nothing then.
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
        """A finding at a field of a task, or of the frontmatter where `task` is None; `line` says it more exactly."""
        span: Span | None = plan.spans.get(where) if task is None else task.spans.get(where) or task.span
        severity = (self.severities or {}).get(code, SILENT)
        place = line or (span.line if span else 1)
        return Finding(code, severity, plan.path, place, 1, where, found, accepted, message, mend)


Check = Callable[[Case], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One code: what it is in guided and in strict mode (error, warning or none), what it means, and who finds it."""

    code: str
    guided: str
    strict: str
    check: Check
    means: str
    example: Example

    def severity(self, mode: str) -> str:
        return self.strict if mode == STRICT else self.guided


def short(text: str) -> str:
    """As much of a text as a finding shows."""
    return text if len(text) <= 120 else text[:117] + "..."


def is_declaration(plan: Plan) -> bool:
    """Whether a plan can declare more than its steps; a file of bare steps has no place for requirements."""
    return plan.path.lower().endswith(".md")
