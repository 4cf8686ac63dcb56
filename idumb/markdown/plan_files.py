"""Find and open the phases and plans in `.planning/`, and the definitions of workflows."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from idumb.app.ports import DefinitionFile, ParsedPlan
from idumb.domain import paths
from idumb.domain.action import Action, Choice
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import Finding
from idumb.domain.plans import phase_ids
from idumb.domain.plans.phase_ids import WORKFLOW_RUNS, NumberedPhases
from idumb.markdown import phases, report_files
from idumb.markdown.phases import Phase
from idumb.system import named_files, shipped

if TYPE_CHECKING:
    from idumb.domain.amendment import Amendment
    from idumb.domain.plans.source_tasks import SourcePlan

_PLANNING = ".planning"
PHASES = f"{_PLANNING}/phases"
ROADMAP = f"{_PLANNING}/ROADMAP.md"
_LARGEST = 32 * 1024 * 1024 + 1  # one byte more than a plan may have, so that the parser reports the size
_LARGEST_ROADMAP = 1024 * 1024  # every `status` reads it
_LIKE_PLAN = re.compile(r"(?:.*[-_ .])?plan(?:[-_ ]?\d.*)?\.md", re.IGNORECASE)


class PlanningFolder:
    """Reads `.planning/` of the working tree at `root`; the only place where plan files are opened."""

    report = staticmethod(report_files.metadata)
    old_state = staticmethod(report_files.old_state)
    research = staticmethod(report_files.research)
    roadmap_section = staticmethod(phases.roadmap_section)
    with_phase = staticmethod(phases.with_phase)

    def __init__(self, root: str) -> None:
        self._root = root

    def phase_folder(self, phase: str) -> str:
        """`.planning/phases/01-name` for `1`. InputError `phase.not-found` or `phase.ambiguous`.

        For the path or phase of a step plan, the folder of its reports, even if the plan does not exist.
        """
        steps = _step_plan_phase(phase)
        if steps is not None:
            return phase_ids.step_plan_reports(steps)
        for kind in phase_ids.NUMBERED:
            if kind.number_of(phase) is not None:
                return self._numbered_folder(phase, kind)
        names = self._names(PHASES)
        if not phase.strip():
            raise InputError("phase.not-found", "No phase was given.", hint=Action("roadmap"))
        folders = phases.matching_folders(names, phase)
        if not folders:
            raise self._absent(phase, names)
        return _only(phase, [f"{PHASES}/{name}" for name in folders])

    def _absent(self, phase: str, names: Sequence[str]) -> InputError:
        """Return the error about a phase that no folder has, which may be the path of a file."""
        is_name = paths.problem(phase) is None and phase.isprintable()
        is_path = is_name and ("/" in phase or phase.endswith(".md"))
        if is_path and not os.path.lexists(os.path.join(self._root, phase)):
            return InputError("phase.not-found", f"There is no file {phase}.", hint=Action("roadmap"))
        if is_path and os.path.isfile(os.path.join(self._root, phase)):
            found = self.parse(self.read(phase), phase).findings
            if found and found[0].code == "plan.foreign-format":
                return InputError("phase.bad-name", f"{phase}: {found[0].message}.", hint=Action.of("import", phase))
        if is_path or not is_name:
            message = f"{phase!r} is not a valid phase name: a phase is one folder of {PHASES}."
            return InputError("phase.bad-name", message, hint=Action("roadmap"))
        words = f"There is no phase {phase}: {PHASES} contains {', '.join(names[:10]) if names else 'no folders'}."
        way = Choice("write", f"write {PHASES}/{phase}/01-PLAN.md", "it makes the phase")
        return InputError("phase.not-found", words, hint=Action("roadmap"), details={"choices": [way.row()]})

    def same_phase(self, name: str, other_name: str) -> bool:
        """Whether two spellings mean the same phase or step plan. Reads nothing, so neither needs to exist."""
        first, second = _step_plan_phase(name), _step_plan_phase(other_name)
        if first is not None or second is not None:
            return first == second
        if phases.same_phase(phases.number(name) or name, phases.number(other_name) or other_name):
            return True
        has_other_name = phases.other_number(name) or phases.other_number(other_name)
        return has_other_name is not None and self._folders(name) == self._folders(other_name) != []

    def _folders(self, phase: str) -> list[str]:
        return phases.matching_folders(self._names(PHASES), phase)

    def phases(self) -> tuple[tuple[str, str], ...]:
        """(number, folder) of every phase folder in order, then of quick plans."""
        numbered = phases.numbered(self._names(PHASES))
        return (
            *((number, f"{PHASES}/{name}") for number, name in numbered),
            *(row for kind in phase_ids.NUMBERED for row in self._numbered(kind)),
        )

    def _numbered(self, kind: NumberedPhases) -> tuple[tuple[str, str], ...]:
        """Return (phase, folder) of the plans that idumb itself numbered."""
        parent = kind.parent
        numbered = [(n, f"{parent}/{name}") for name in self._names(parent) if (n := kind.number_in(name))]
        planned = ((n, folder) for n, folder in sorted(numbered) if phases.plan_files(self._names(folder, files=True)))
        return tuple((kind.phase(n), folder) for n, folder in planned)

    def _numbered_folder(self, phase: str, kind: NumberedPhases) -> str:
        number = kind.number_of(phase)
        folders = [folder for name, folder in self._numbered(kind) if kind.number_of(name) == number]
        if not folders:
            words = f"There is no {kind.words} {phase} in {kind.parent}."
            raise InputError("phase.not-found", words, hint=Action("status"))
        return _only(phase, folders)

    def plans(self, folder: str) -> tuple[tuple[str, bytes], ...]:
        """(path, bytes) of every `*PLAN.md`, sorted by name, or of the step plan that reports in this folder."""
        steps = phase_ids.step_plan_of_reports(folder)
        if steps is not None:
            exists = os.path.isfile(os.path.join(self._root, steps))
            return ((steps, self.read(steps)),) if exists else ()
        return tuple((path, data) for path, data in self._named_plans(folder) if not _is_note(data))

    def notes(self, folder: str) -> Iterator[Finding]:
        """Yield what to know about the files of a folder beside the errors in its plans.

        Some are named as plans and are notes, without frontmatter and without anything like a task; others are plans by
        their text alone. Of some plans, GSD has written a summary.
        """
        names = self._names(folder, files=True)
        for path, data in self._named_plans(folder):
            summary = f"{path.rpartition('/')[2].removesuffix('PLAN.md')}SUMMARY.md"
            if _is_note(data):
                yield from _told("plan.note", path, path=path)
            elif summary in names and summary != f"{posixpath.basename(folder)}-SUMMARY.md":
                text = self.read(f"{folder}/{summary}").decode("utf-8", "replace")
                if report_files.unfinished(text) is None:
                    yield from _told("dialect.done", path, summary)
        nested = (f"plans/{name}" for name in self._names(f"{folder}/plans", files=True))
        for name in sorted({*names, *nested}.difference(phases.plan_files(names))):
            path = f"{folder}/{name}"
            if _LIKE_PLAN.fullmatch(posixpath.basename(name)) and not _is_note(self.read(path)):
                yield from _told("plan.misnamed", path, path=path)

    def named(self, folder: str) -> tuple[str, ...]:
        """The plans and the notes of a folder, which may become plans."""
        return tuple(dict.fromkeys((*dict(self.plans(folder)), *dict(self._named_plans(folder)))))

    def _named_plans(self, folder: str) -> Iterator[tuple[str, bytes]]:
        for name in phases.plan_files(self._names(folder, files=True)):
            yield f"{folder}/{name}", self.read(f"{folder}/{name}")

    def read(self, path: str) -> bytes:
        """The bytes of a file anywhere in the repository. InputError `plan.unreadable`."""
        try:
            return named_files.read(os.path.join(self._root, path), _LARGEST)
        except OSError as problem:
            raise _unreadable(path, problem) from problem

    def source(self, path: str, kind: str | None, tag: str = "") -> SourcePlan:
        """Read a file or folder of another tool; `tag` chooses one of several lists in a file.

        InputError `import.unknown-format` or `import.unreadable`.
        """
        from idumb.markdown.importers import registry

        try:
            files = registry.FilesOnDisk(self._root, path, self.read)
        except OSError as problem:
            raise _unreadable(os.path.relpath(str(problem.filename), self._root), problem) from problem
        return registry.read(path, files, kind, tag)

    def parse(self, data: bytes, path: str, others: Sequence[bytes] = ()) -> ParsedPlan:
        """Parse a plan. `others` are the other plans of the phase, whose ids are taken.

        If it is the file of another tool, that is the only finding: further errors would hide it.
        """
        parsed = self._parsed(data, path, others)
        is_text = _NO_TEXT.isdisjoint(finding.code for finding in parsed.findings)
        tool = _tool(parsed.text, path) if parsed.plan is None and is_text else None
        if tool is None:
            return parsed
        findings = _told("plan.foreign-format", path, parsed.text, tool=tool)
        return ParsedPlan(None, findings, parsed.text, dialect=tool)

    def _parsed(self, data: bytes, path: str, others: Sequence[bytes]) -> ParsedPlan:
        from idumb.markdown.plans import plan_parser

        if path.endswith(phase_ids.STEP_PLAN_SUFFIXES):
            return plan_parser.parse_steps(data, path)
        if WORKFLOW_RUNS.phase_of(path) is not None:
            from idumb.markdown.plans import workflow_parser

            return workflow_parser.parse(data, path)
        return plan_parser.parse(data, path, others)

    def amended(self, data: bytes, path: str, amendments: Sequence[Amendment]) -> bytes:
        """The plan's bytes with the amendments; every other byte stays.

        InputError `plan.invalid`, `amend.task-invalid`, `amend.no-dependency` or `amend.cannot-write`.
        Refusal `amend.step-plan` or `amend.foreign-plan` for plans that idumb never writes.
        """
        if path.endswith(phase_ids.STEP_PLAN_SUFFIXES):
            why = f"{path} is a step plan, which idumb never changes."
            way = f"Edit it, approve it again (idumb approve {path}), then run idumb execute {path}"
            raise Refusal("amend.step-plan", why, hint=way, details={"path": path})
        if WORKFLOW_RUNS.phase_of(path) is not None:
            why = f"{path} is the definition that a workflow runs under, which idumb never changes."
            way = "Change the definition, then start the workflow again: idumb workflow run"
            raise Refusal("amend.workflow", why, hint=way, details={"path": path})
        from idumb.markdown.plans import amendment_writer

        return amendment_writer.amend(data, path, amendments)

    def recorded(self, folder: str, word: str) -> Mapping[str, Any] | None:
        """The front matter of idumb's report in a phase folder, `SUMMARY` or `VERIFICATION`; None without one.

        It may be of a run on another machine. Other tools write files of such names too.
        """
        names = (name for name in self._names(folder, files=True) if name.endswith(f"-{word}.md"))
        reports = (self.report(self.read(f"{folder}/{name}"), word) for name in names)
        return next((report for report in reports if report is not None), None)

    def roadmap(self) -> tuple[Phase, ...]:
        """Every phase in ROADMAP.md."""
        try:
            text = self.read(ROADMAP)[:_LARGEST_ROADMAP].decode("utf-8", "replace")
        except InputError:
            return ()
        return phases.roadmap_phases(text)

    def _names(self, folder: str, *, files: bool = False) -> list[str]:
        try:
            with os.scandir(os.path.join(self._root, folder)) as entries:
                return sorted(e.name for e in entries if (e.is_file() if files else e.is_dir(follow_symlinks=False)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as problem:
            raise _unreadable(folder, problem) from problem


def _is_note(data: bytes) -> bool:
    if data.removeprefix(b"\xef\xbb\xbf").startswith(b"---") or b"\0" in data:  # NUL: UTF-16
        return False
    from idumb.markdown.plans import plan_parser

    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    return plan_parser.is_note(text.splitlines()) and _tool(text, "") is None


_NO_TEXT = frozenset({"plan.conflict", "plan.too-large", "plan.not-utf-8", "plan.nul"})


def _tool(text: str, path: str) -> str | None:
    """Return the tool whose file this is, and which idumb only imports; None for any other file."""
    from idumb.markdown.importers import registry
    from idumb.markdown.plans import plan_parser

    return None if plan_parser.is_ours(text.splitlines()) else registry.foreign_tool(path, text)


def _told(code: str, path: str, text: str = "", /, **words: str) -> tuple[Finding, ...]:
    """Return the only finding of a file."""
    from idumb.markdown.syntax.source import Source

    source = Source(text, path)
    source.report(code, 0, text.lstrip("\ufeff").partition("\n")[0].strip(), **words)
    return source.sorted()


def _only(phase: str, folders: Sequence[str]) -> str:
    if len(folders) > 1:
        words, hint = (
            f"Phase {phase} is ambiguous: {' and '.join(folders)}.",
            "Rename one of the folders, or merge them",
        )
        raise InputError("phase.ambiguous", words, hint=hint)
    return folders[0]


def _unreadable(path: str, problem: OSError) -> InputError:
    return InputError("plan.unreadable", f"{path} cannot be read: {problem.strerror}", hint=f"ls -ld {path}")


def _step_plan_phase(phase: str) -> str | None:
    """Return the phase of a step plan from its phase or path; None for a phase of `.planning/`."""
    return phase_ids.step_plan_phase(phase_ids.step_plan_path(phase) or posixpath.normpath(phase))


# The definitions of workflows

_REPOSITORY, _USER, _PROGRAM = "repository", "user", "program"
_LARGEST_DEFINITION = 1024 * 1024 + 1  # one byte more, too
_MOST_DEFINITIONS = 1000


class DefinitionFolders:
    """Reads the definitions of workflows: of the repository at `root`, of the user, of the program."""

    def __init__(self, root: str) -> None:
        self._root = root

    @cached_property
    def all(self) -> tuple[DefinitionFile, ...]:
        """Every definition by name; of one name, the repository's comes first, then the user's."""
        found = [definition for origin, folder in self._folders() for definition in self._in(origin, folder)]
        return tuple(sorted(found, key=lambda definition: definition.name))

    def _folders(self) -> Iterator[tuple[str, str]]:
        from idumb.domain.plans import workflow
        from idumb.system import user_folders

        yield _REPOSITORY, os.path.join(self._root, workflow.DEFINITIONS)
        yield _USER, os.path.join(user_folders.configuration(), "workflows")
        yield _PROGRAM, shipped.path("workflows")

    def _in(self, origin: str, folder: str) -> Iterator[DefinitionFile]:
        try:
            names = sorted(os.listdir(folder))[:_MOST_DEFINITIONS]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as problem:
            message = f"{folder} cannot be read: {problem.strerror or problem}"
            raise InputError("workflow.unreadable", message, hint=f"ls -ld {folder}") from problem
        for file in names:
            name = file.removesuffix(".md")
            if name == file or name.upper() == "README":
                continue
            path = os.path.join(folder, file)
            shown = os.path.relpath(path, self._root) if origin == _REPOSITORY else path
            try:
                yield DefinitionFile(name, origin, shown, named_files.read(path, _LARGEST_DEFINITION))
            except OSError as problem:  # it still hides others of its name, so that nothing else runs in its place
                yield DefinitionFile(name, origin, shown, b"", problem.strerror or str(problem))

    def parse(self, definition: DefinitionFile) -> ParsedPlan:
        """Parse a definition as a plan of phase `W0` with the default inputs."""
        if definition.problem:
            return ParsedPlan(None, _told("workflow.unreadable", definition.path, why=definition.problem))
        from idumb.markdown.plans import workflow_parser

        return workflow_parser.parse(definition.data, definition.path, definition.name)
