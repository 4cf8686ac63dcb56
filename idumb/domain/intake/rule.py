"""What a check of a plan is, and its input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.domain import catalog, wording
from idumb.domain.contract import Contract
from idumb.domain.finding import BY_FIELD, ERROR, Finding, nearest
from idumb.domain.permissions import NO_POLICY, Policy
from idumb.domain.plans.plan import STRICT, Criterion, Plan, Task
from idumb.domain.proof import gate_table
from idumb.domain.settings import Settings

GATE_OF_FIELD: Mapping[str, str] = {
    "acceptance": gate_table.CRITERIA,
    "verify": gate_table.CRITERIA,
    "tests": gate_table.TEST_INTENT,
    "preconditions": gate_table.CONDITIONS,
    "postconditions": gate_table.CONDITIONS,
    "invariants": gate_table.INVARIANTS,
    "success_criteria": gate_table.COMPLETION,
}
"""The gate that runs the commands of a field."""


class StartState(Struct, frozen=True):
    """The state where the run starts, as far as the contract refers to it.

    - `requirements`: the text of REQUIREMENTS.md, "" without one.
    - `base`: the declared paths in the tree that the run starts from. `on_disk`: those in the
      working tree, and the files there in which checks want to find nothing.
    - `no_programs`: programs of its checks that cannot be started.
    - `done`: its completed tasks.
    """

    requirements: str = ""
    base: frozenset[str] = frozenset()
    on_disk: frozenset[str] = frozenset()
    no_programs: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()


class Case(Struct, frozen=True, dict=True):
    """One contract under one configuration and policy.

    - `mode`: strict judges a guided contract as if it were strict.
    - `links`: written paths and their folders that are links or behind one, and their targets: relative to the root
      of the workspace, or absolute outside of it.
    - `repositories`: folders of the workspace that are submodules or nested repositories.
    - `present`: None if the state was not read; checks that need it then report nothing.
    """

    contract: Contract
    settings: Settings
    policy: Policy = NO_POLICY
    mode: str | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    repositories: tuple[str, ...] = ()
    present: StartState | None = None

    @property
    def strict(self) -> bool:
        return STRICT in (self.contract.mode, self.mode)

    @cached_property
    def pairs(self) -> tuple[tuple[Plan, Task], ...]:
        """Every task that may run with its plan, in the order of the documents."""
        return tuple((plan, task) for plan in self.contract.plans for task in plan.tasks if not task.is_history)

    @cached_property
    def criteria(self) -> tuple[tuple[Plan, Task | None, Criterion], ...]:
        """Every criterion with its plan and task, then every success criterion, without a task."""
        of_tasks = ((plan, task, criterion) for plan, task in self.pairs for criterion in task.acceptance)
        of_plans = ((plan, None, criterion) for plan in self.contract.plans for criterion in plan.success_criteria)
        return (*of_tasks, *of_plans)

    def severity(self, code: str, field: str = "", *, certain: bool = True) -> str:
        """Return the severity of a finding with this code in the mode of the case.

        It is an error if its gate has level 2 and certainly cannot hold.
        """
        row = catalog.ROWS[code]
        gate = GATE_OF_FIELD.get(field, "") if row.gate == BY_FIELD else row.gate
        if gate and certain and gate_table.rule(self.settings, gate).level == gate_table.CRITICAL:
            return ERROR
        return row.strict if self.strict else row.guided

    def finding(self, code: str, plan: Plan, task: Task | None, hit: Hit) -> Finding:
        """Return what a check found."""
        field = hit.field or catalog.ROWS[code].field
        severity = hit.severity or self.severity(code, field, certain=hit.certain)
        finding = plan.finding(
            code, field, wording.short(hit.found), task=task, severity=severity, line=hit.line, accepted=hit.accepted,
            fix=hit.fix, words=hit.words,
        )  # fmt: skip
        return replace(finding, path=".idumb/config.yaml") if field.startswith("gates.") else finding


class Hit(NamedTuple):
    """What a check found. `words` fill in the texts of the catalog, as do `task` and `found`.

    - `code`: if the check has several. `field`, `accepted`, `fix` and `severity` replace those of the catalog.
    - `line`: replaces the line of the field. `certain`: the gate cannot hold.
    """

    found: str
    words: Mapping[str, object] = MappingProxyType({})
    code: str = ""
    field: str = ""
    line: int = 0
    accepted: str = ""
    fix: str = ""
    certain: bool = True
    severity: str = ""


Hits = Iterator[tuple[Plan, Task | None, Hit]]
Check = Callable[[Case], Hits]
TaskCheck = Callable[[Case, Plan, Task], Iterable[Hit | str]]


def each_task(find: TaskCheck) -> Check:
    """Return the check that asks about each task of the phase."""
    return lambda case: ((plan, task, _hit(one)) for plan, task in case.pairs for one in find(case, plan, task))


def each_plan(find: Callable[[Case, Plan], Iterable[Hit | str]]) -> Check:
    """Return the check that asks about each plan of the phase."""
    return lambda case: ((plan, None, _hit(one)) for plan in case.contract.plans for one in find(case, plan))


def _hit(found: Hit | str) -> Hit:
    return Hit(found) if isinstance(found, str) else found


def near(word: str, names: Iterable[str], otherwise: str = "") -> Hit:
    """Return the hit for an unknown name, with the nearest known one."""
    known = nearest(word, names)
    return Hit(word, accepted=known or otherwise, fix=f"Did you mean {known}?" if known else "")


def field_of(task: Task | None) -> str:
    """Return the field of criteria: of a task, or of the plan."""
    return "acceptance" if task else "success_criteria"


def is_declaration(plan: Plan) -> bool:
    """Whether a plan can declare more than steps; a step plan has no field for requirements."""
    return plan.path.lower().endswith(".md")


# fmt: off
_SAYS_NOTHING = frozenset({
    "a", "above", "acceptance", "all", "an", "apply", "as", "change", "complete", "completed", "correctly", "create",
    "criterion", "delete", "described", "description", "directory", "do", "done", "edit", "everything", "exec",
    "execute", "expected", "feature", "file", "files", "fine", "finished", "fix", "good", "in", "intent", "is", "it",
    "make", "misc", "move", "n", "na", "next", "none", "of", "ok", "okay", "pass", "passed", "passes", "patch",
    "properly", "run", "same", "see", "step", "stuff", "success", "successful", "task", "that", "the", "thing",
    "things", "this", "title", "to", "true", "update", "work", "works", "write", "x", "yes",
})
# fmt: on


def says_nothing(text: str) -> bool:
    """Return whether a criterion or an intent has only words that fit any work."""
    return len(text) <= 40 and _SAYS_NOTHING.issuperset(re.findall("[^\\W_]+", text.casefold()))
