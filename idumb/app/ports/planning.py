"""Plans and the documents around them, as files that people write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from idumb.domain.finding import Finding, as_warnings_if_later, errors
from idumb.domain.plans.plan import Plan

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.amendment import Amendment
    from idumb.domain.plans.quick_plan import QuickRequest
    from idumb.domain.question import Question
    from idumb.domain.runs.legacy import OldFile


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """`plan` is None when a finding is an error; `text` is the decoded file, for edits by span.

    `draft` is what could be read of a plan with errors, for checks alone; None where nothing could.
    """

    plan: Plan | None
    findings: tuple[Finding, ...]
    text: str = ""
    draft: Plan | None = None

    @property
    def as_agreed(self) -> ParsedPlan:
        """What comes of the plan under the rules that earlier versions had."""
        findings = as_warnings_if_later(self.findings)
        return self if errors(findings) else ParsedPlan(self.plan or self.draft, findings, self.text, self.draft)


class PlanFiles(Protocol):
    """Reads `.planning/`; the only place where plan files are opened."""

    def phase_folder(self, phase: str) -> str:
        """`.planning/phases/01-name` for `1`; raises InputError phase.not-found or phase.ambiguous.

        For the path or id of a step plan, whether it is there or not, the folder that its reports go to.
        """

    def same_phase(self, one: str, other: str) -> bool:
        """Whether two spellings mean one phase or step plan; nothing is read, so neither need be there."""

    def phases(self) -> tuple[tuple[str, str], ...]:
        """(number, folder) of every phase folder, in order; then those of quick plans."""

    def quick_text(self, phase: str, wanted: QuickRequest) -> str:
        """The plan of one task, which is written nowhere yet."""

    def plans(self, folder: str) -> tuple[tuple[str, bytes], ...]:
        """(path, bytes) of every `*PLAN.md`, in order of name; of the step plan that reports in this folder."""

    def parse(self, data: bytes, path: str, others: Sequence[bytes] = ()) -> ParsedPlan:
        """`others` are the other plans of the phase, whose ids are not free."""

    def amended(self, data: bytes, path: str, amendments: Sequence[Amendment]) -> bytes:
        """The plan's bytes with the amendments written in; every other byte as it was.

        InputError `plan.invalid`, `task.unknown`, `amend.task-invalid`, `amend.no-dependency` or `amend.cannot-write`.
        """

    def recorded(self, folder: str) -> Mapping[str, Mapping[str, Any]]:
        """Frontmatter of the SUMMARY and VERIFICATION reports in a phase folder, by that word.

        They may tell of runs that this machine did not witness. What cannot be read is left out.
        """

    def report(self, data: bytes, word: str) -> Mapping[str, Any] | None:
        """The frontmatter of one such report; None for anything else, however broken."""

    def old_state(self, path: str, data: bytes) -> OldFile | None:
        """What a file of an old iDumb says; None for idumb's own files."""

    def roadmap(self) -> tuple[tuple[str, str, int], ...]:
        """(number, title, line) of every phase that ROADMAP.md names."""


class Texts(Protocol):
    """What stands in the texts around a phase, and how they are changed. Pure: takes texts, opens nothing."""

    def roadmap_section(self, text: str, phase: str) -> str:
        """What a roadmap says of a phase; "" where it does not name it."""

    def with_phase(self, text: str, number: str, title: str, goal: str, after: str = "") -> str:
        """A roadmap with one more phase, behind phase `after` or at its end."""

    def questions(self, text: str) -> tuple[Question, ...]:
        """Those of a context file, answered or not."""

    def without_open(self, text: str) -> str:
        """A context file without the questions that nobody answered; "" where nothing else is in it."""

    def with_questions(self, text: str, title: str, questions: Iterable[Question], answers: Mapping[str, str]) -> str:
        """A context file with more questions and answers; every other byte as it was."""

    def research(self, text: str) -> tuple[str | None, str]:
        """The digest of the bundle that a research file answers to, None where idumb did not make it; and its body."""

    def plans_in(self, reply: str) -> tuple[str, ...]:
        """Every plan in an answer of a model."""

    def stated_criteria(self, text: str) -> tuple[str, ...]:
        """What a text lists under "Success criteria" and the like."""
