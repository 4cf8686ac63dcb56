"""A parsed plan, as `docs/plan-format.md` describes it, with the position of every field.

`markdown/` makes these values; everything else only reads them. Durations are whole seconds. Paths are relative to the
workspace root, with `/` as separator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import asdict

from idumb.domain import paths, wording
from idumb.domain.finding import Finding

if TYPE_CHECKING:  # only plans of workflows need it
    from idumb.domain.plans.workflow import Flow, Workflow

GUIDED = "guided"
STRICT = "strict"

BUILD = "build"
HUMAN_KINDS = frozenset({"human-verify", "decision", "human-action"})
KINDS = ("build", "human-verify", "decision", "human-action")

CHECK = "check"
VERIFY = "verify"
HUMAN = "human"
OPINION = "opinion"
STEPS = "steps"
CHANGED = "changed"
UNPROVEN = "unproven"

CONTEXT = "context"
"""The kind of a condition that names a file for the agent to read."""
_REFERENCED = re.compile(r"`([^`\s]+)`|\]\(([^()\s]+)\)|(?:^|\s)@([^\s,;]+)")

REVERSIBLE = "reversible"
COMPENSATABLE = "compensatable"
IRREVERSIBLE = "irreversible"

GSD = "gsd"
FIRST_IDUMB = "idumb-1"
FOREIGN = frozenset({GSD, FIRST_IDUMB})
"""Dialects of other tools, and of the first iDumb."""

SOURCE_DONE = "x-source-done"
SOURCE_DIGEST = "x-source-digest"
"""What `import` writes for each task, and for one that the other tool calls done."""

FILE_VERBS = ("create", "modify", "delete", "read", "move")
DEFAULT_ESTIMATE = 30 * 60


class Span(Struct, frozen=True):
    """A half-open range of characters in the decoded text of the plan (a byte-order mark counts as one).

    `line` is the line on which it starts, from 1.
    """

    start: int
    end: int
    line: int


NOWHERE = Span(0, 0, 0)
"""The span of what no file has."""


class FileClaim(Struct, frozen=True):
    """What a task declares to do to one path or glob. `target` is set only for `move`.

    The verb `change`, which only step plans have, allows creating, changing and removing a path, and requires nothing.
    """

    verb: str
    path: str
    target: str | None = None

    @property
    def written(self) -> str:
        """The claim as it is in a plan: the verb, and the paths in backticks."""
        return f"{self.verb} {self.paths}"

    @property
    def paths(self) -> str:
        return wording.code(self.path) + (f" to {wording.code(self.target)}" if self.target else "")


class SymbolClaim(Struct, frozen=True):
    action: str  # add | remove
    name: str


class Interface(Struct, frozen=True):
    """A public name and its declared properties (inputs, outputs, errors, side effects, persistence, async)."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)


class Criterion(Struct, frozen=True):
    """`proof` is check, verify, human, opinion, steps (their own results), changed (a declared change) or unproven.

    `command` is set only for check. `keeps`: the check may pass before the work too, because it is about a property
    that must stay true.
    """

    id: str
    text: str
    proof: str
    command: str | None = None
    instructions: tuple[str, ...] = ()
    span: Span = NOWHERE
    keeps: bool = False


class TestIntent(Struct, frozen=True):
    """`before` and `after` are `fails` or `passes`."""

    __test__ = False  # test runners would collect this class because of its name

    command: str
    before: str
    after: str
    intent: str = ""


class Condition(Struct, frozen=True):
    """`kind` is file-exists, file-absent, file-contains, symbol, env, context or command.

    `subject` is the path, name or command; `text` is what the file contains; `path` is the file of the symbol.
    """

    kind: str
    subject: str
    text: str | None = None
    path: str | None = None


class Limits(Struct, frozen=True):
    files: int | None = None
    lines: int | None = None
    paths: tuple[str, ...] = ()


class RollbackClass(Struct, frozen=True):
    """`kind` is reversible, compensatable (with commands) or irreversible (with a reason)."""

    kind: str = REVERSIBLE
    commands: tuple[str, ...] = ()
    reason: str = ""


class Option(Struct, frozen=True):
    id: str
    text: str


class Handoff(Struct, frozen=True):
    agent: str
    type: str | None = None


class Step(Struct, frozen=True):
    """One tool call. `index` counts from 0 in the task; `line` is where it starts in the plan."""

    index: int
    tool: str
    intent: str
    arguments: Mapping[str, Any]
    scope: tuple[str, ...] = ()
    timeout: int | None = None
    continue_on_error: bool = False
    line: int = 0

    @property
    def command(self) -> str:
        """The command of the tool `run`."""
        return str(self.arguments.get("command") or " ".join(map(str, self.arguments.get("argv", ()))))


class Task(Struct, frozen=True):
    """One node of the graph. None means "not declared" wherever an empty value has another meaning.

    `flow` is set for the steps of workflows. `replaces` names criteria of earlier tasks, as `T1-01/AC-1`.
    """

    id: str
    title: str
    description: str = ""
    kind: str = BUILD
    requirements: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    files: tuple[FileClaim, ...] | None = None
    symbols: tuple[SymbolClaim, ...] | None = None
    interfaces: tuple[Interface, ...] = ()
    acceptance: tuple[Criterion, ...] = ()
    verify: tuple[str, ...] = ()
    tests: tuple[TestIntent, ...] = ()
    preconditions: tuple[Condition, ...] = ()
    postconditions: tuple[Condition, ...] = ()
    invariants: tuple[str, ...] | None = None
    change: str | None = None
    limits: Limits | None = None
    rollback: RollbackClass = RollbackClass()
    on_failure: str | None = None
    estimate: int | None = None
    timeout: int | None = None
    on_timeout: str | None = None
    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] | None = None
    owns: tuple[str, ...] | None = None
    parallel: bool = False
    builder: str | None = None
    validator: str | None = None
    handoff_to: tuple[Handoff, ...] = ()
    replaces: tuple[str, ...] = ()
    priority: str = "normal"
    options: tuple[Option, ...] = ()
    notes: str = ""
    references: str = ""
    tags: str = ""
    assigned_to: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    flow: Flow | None = None
    notation: str = "heading"  # heading | checklist | fence | list | step | tag
    span: Span = NOWHERE
    spans: Mapping[str, Span] = field(default_factory=dict)

    @property
    def is_human(self) -> bool:
        return self.kind in HUMAN_KINDS

    @property
    def is_history(self) -> bool:
        """Whether the other tool that it was imported from calls it done: nobody builds or proves it here."""
        return SOURCE_DONE in self.extra and SOURCE_DIGEST in self.extra

    @property
    def estimate_seconds(self) -> int:
        return DEFAULT_ESTIMATE if self.estimate is None else self.estimate

    @property
    def context_paths(self) -> tuple[str, ...]:
        """The paths that the agent is asked to read: those of `context` conditions, and those in the references."""
        names = [condition.subject for condition in self.preconditions if condition.kind == CONTEXT]
        names += [next(filter(None, groups)) for groups in _REFERENCED.findall(self.references)]
        plain = (name.removeprefix("./").rstrip("/") for name in names)
        return tuple(dict.fromkeys(name for name in plain if name and paths.problem(name) is None))

    def time_limit(self, attempt: int) -> float | None:
        """Return its own timeout, or twice the estimate (1.5 times as much on a retry); None for people."""
        if self.timeout is not None:
            return float(self.timeout)
        return None if self.is_human else self.estimate_seconds * (2.0 if attempt == 1 else 1.5)


class NonGoal(Struct, frozen=True):
    """`paths` are files, folders and globs; `symbols` names that files define, as `NAME` or `NAME in PATH`."""

    id: str
    text: str
    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


class Invariant(Struct, frozen=True):
    id: str
    text: str
    check: str


class Setup(Struct, frozen=True):
    """Something that a person must provide before the plan can run."""

    service: str
    why: str
    env: tuple[str, ...] = ()
    where: str = ""
    check: str | None = None


class Scope(Struct, frozen=True):
    """`root` None means the repository; `protected` None means only the configuration's list."""

    root: str | None = None
    protected: tuple[str, ...] = ()


class Plan(Struct, frozen=True):
    """One `*-PLAN.md` or step plan. `path` is relative to the repository, `sha256` is of the file's bytes.

    - `requirements`: id to text; the text is "" if the plan only lists ids of REQUIREMENTS.md.
    - `version`: the author's own; it has no effect.
    - `dialect`: `plan`; `workflow` for a run of a workflow; `steps` for a step plan
      (`idumb.domain.plans.phase_ids`), which has only steps; or a name of `FOREIGN` for a plan of another tool, whose
      file idumb never writes.
    - `wave`: plans of a lower wave run first; None if the plan has none.
    - `workflow`: the head of the definition and the inputs of a run; None for other plans.
    """

    path: str
    sha256: str
    phase: str
    plan: str
    title: str
    goal: str
    mode: str = GUIDED
    depends_on: tuple[str, ...] = ()
    requirements: Mapping[str, str] = field(default_factory=dict)
    scope: Scope = Scope()
    non_goals: tuple[NonGoal, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    success_criteria: tuple[Criterion, ...] = ()
    assumptions: tuple[str, ...] = ()
    setup: tuple[Setup, ...] = ()
    builder: str | None = None
    validator: str | None = None
    limits: Limits | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[Task, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict)
    dialect: str = "plan"
    version: str = ""
    wave: int | None = None
    workflow: Workflow | None = None

    @property
    def is_foreign(self) -> bool:
        return self.dialect in FOREIGN

    def invariants_of(self, task: Task) -> tuple[Invariant, ...]:
        """Return the invariants that must hold after a task: those that it names, or all."""
        named = task.invariants
        return self.invariants if named is None else tuple(each for each in self.invariants if each.id in named)

    def finding(
        self, code: str, field: str = "", found: str = "", *, task: Task | None = None, severity: str = "",
        line: int = 0, accepted: str = "", fix: str = "", words: Mapping[str, object] = MappingProxyType({}),
    ) -> Finding:  # fmt: skip
        """Return a finding at a field of a task, or of the frontmatter, with the texts of the catalog.

        What is given replaces what the catalog says. `line` replaces the line of the field, `words` fill in the texts.
        """
        from idumb.domain import catalog  # most plans have no finding

        row = catalog.ROWS[code]
        field, accepted = field or row.field, accepted or row.accepted
        span = self.spans.get(field, NOWHERE) if task is None else task.spans.get(field, task.span)
        line = line or span.line or 1
        whose = task.id if task else "The plan"
        known = {"task": whose, "field": field, "found": found, "accepted": accepted, "path": self.path}
        message, usual = row.said({**known, **words})
        severity = severity or (row.strict if self.mode == STRICT else row.guided)
        return Finding(code, severity, self.path, line, 1, field, found, accepted, message, fix or usual)


PLACES = frozenset({"span", "spans", "line", "notation"})
"""Fields that say where and how something is written."""


def plain(value: Any) -> Any:
    """Return a value of a plan as JSON, without its place in the file."""
    if isinstance(value, Struct):
        return {name: plain(item) for name, item in asdict(value).items() if name not in PLACES}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value
