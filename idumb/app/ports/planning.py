"""Plans and the documents around them, which users write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from idumb.domain.finding import Finding
from idumb.domain.plans.plan import Plan
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:  # types that only some commands use; those commands import them
    from idumb.domain.amendment import Amendment
    from idumb.domain.plans.imported import Marked, SourcePlan
    from idumb.domain.runs.legacy import OldFile


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


class Definitions(Protocol):
    """Reads the definitions of workflows: of the repository, of the user, of the program."""

    def all(self) -> tuple[DefinitionFile, ...]:
        """Every definition by name; of one name, the repository's comes first, then the user's."""

    def parse(self, definition: DefinitionFile) -> ParsedPlan:
        """Parse a definition as a plan of phase `W0` with the default inputs."""


class PlanFiles(Protocol):
    """Reads `.planning/`; the only place where plan files are opened."""

    def phase_folder(self, phase: str) -> str:
        """`.planning/phases/01-name` for `1`. InputError `phase.not-found` or `phase.ambiguous`.

        For the path or id of a step plan, the folder of its reports, even if the plan does not exist.
        """

    def same_phase(self, first: str, second: str) -> bool:
        """Whether two spellings mean the same phase or step plan. Reads nothing, so neither needs to exist."""

    def phases(self) -> tuple[tuple[str, str], ...]:
        """(number, folder) of every phase folder in order, then of quick plans.

        Without a file, quick plans are listed until their run is verified.
        """

    def plans(self, folder: str) -> tuple[tuple[str, bytes], ...]:
        """(path, bytes) of every `*PLAN.md`, sorted by name, or of the step plan that reports in this folder.

        Without a file, those that the newest run of the phase keeps (`git.reports: ref`).
        """

    def hold(self, phase: str, folder: str, sources: Sequence[tuple[str, bytes]]) -> None:
        """Give these plans of a folder from now on, although no file has them: a run is about to keep them."""

    def is_kept(self, path: str) -> bool:
        """Whether only a run keeps this plan, and no file has it."""

    def plan(self, path: str) -> bytes:
        """The bytes of a file anywhere in the repository. InputError `plan.unreadable`."""

    def source(self, path: str, kind: str | None, tag: str = "") -> SourcePlan:
        """Read a file or folder of another tool; `tag` chooses one of several lists in a file.

        InputError `import.unknown-format` or `import.unreadable`.
        """

    def marked(self, path: str, kind: str, done: Mapping[str, Mapping[str, str]]) -> Marked:
        """A source with tasks marked as done, given by tag ("" if there is none) and id with the imported digest.

        InputError as for `source`, or `export.outside` or `export.unclear-marks` if it must not be changed.
        """

    def parse(self, data: bytes, path: str, others: Sequence[bytes] = ()) -> ParsedPlan:
        """Parse a plan. `others` are the other plans of the phase, whose ids are taken."""

    def amended(self, data: bytes, path: str, amendments: Sequence[Amendment]) -> bytes:
        """The plan's bytes with the amendments; every other byte stays.

        InputError `plan.invalid`, `task.unknown`, `amend.task-invalid`, `amend.no-dependency` or `amend.cannot-write`.
        Refusal `amend.step-plan` or `amend.foreign-plan` for plans that idumb never writes.
        """

    def recorded(self, folder: str) -> Mapping[str, Mapping[str, Any]]:
        """Front matter of the reports in a phase folder, by `SUMMARY` and `VERIFICATION`.

        The reports may be of runs on another machine. Unreadable ones are omitted.
        """

    def report(self, data: bytes, word: str) -> Mapping[str, Any] | None:
        """The front matter of such a report; None for anything else."""

    def old_state(self, path: str, data: bytes) -> OldFile | None:
        """The content of a file of an old iDumb; None for idumb's own files."""

    def roadmap(self) -> tuple[tuple[str, str, int], ...]:
        """(number, title, line) of every phase in ROADMAP.md."""

    def roadmap_section(self, text: str, phase: str) -> str:
        """The section of a phase in the text of a roadmap; "" if there is none."""

    def with_phase(self, text: str, number: str, title: str, goal: str, after: str = "") -> str:
        """The text of a roadmap with a new phase, after phase `after` or at its end."""

    def research(self, text: str) -> tuple[str | None, str]:
        """The digest of a research file's input (None if idumb did not write the file) and its body."""
