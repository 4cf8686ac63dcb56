"""Ids of phases that are not those of the roadmap: quick plans, runs of workflows, and step plans.

idumb writes and numbers the plans of the first two: the phase of the third quick plan is `Q3`, its folder
`.planning/quick/003-fix-the-typo`. A step plan is a file of tool calls; each call is one task. Its phase is its path
with `+` for `/` and `@` for a leading dot, so that it is safe in file and ref names and can be reversed:
`deploy/web.yaml` is `deploy+web.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from idumb.domain.action import Action

_IN_FOLDER = re.compile(r"0*([1-9][0-9]{0,5})(?:-|$)")


class NumberedPhases(Struct, frozen=True):
    """`letter` begins their names, `parent` holds their folders, `words` name one of them in a message."""

    letter: str
    parent: str
    words: str

    def phase(self, number: int) -> str:
        return f"{self.letter}{number}"

    def number_of(self, phase: str) -> int | None:
        """Return 3 for `Q3`, `q3` and `Q003`; None for every other phase."""
        match = re.fullmatch(rf"[{self.letter}{self.letter.lower()}]0*([1-9][0-9]{{0,5}})", phase)
        return int(match[1]) if match else None

    def folder(self, number: int, name: str) -> str:
        """Return the folder of a plan, relative to the repository's root."""
        return f"{self.parent}/{number:03d}{'-' if name else ''}{name}"

    def number_in(self, folder: str) -> int | None:
        """Return the number in a folder name such as `003-fix-the-typo`, or None."""
        match = _IN_FOLDER.match(folder)
        return int(match[1]) if match else None

    def phase_of(self, path: str) -> str | None:
        """Return the phase of the plan at a path; None for other files."""
        if not path.startswith(f"{self.parent}/"):
            return None
        number = self.number_in(path.removeprefix(f"{self.parent}/").partition("/")[0])
        return None if number is None else self.phase(number)

    def next_number(self, phases: Iterable[str]) -> int:
        """Return the number after the highest one of these phases, of which others have no number."""
        return max((number for phase in phases if (number := self.number_of(phase)) is not None), default=0) + 1


QUICK = NumberedPhases("Q", ".planning/quick", "quick plan")
WORKFLOW_RUNS = NumberedPhases("W", ".planning/workflows", "workflow run")
NUMBERED = (QUICK, WORKFLOW_RUNS)


def is_numbered(phase: str) -> bool:
    return any(kind.number_of(phase) is not None for kind in NUMBERED)


def run_command(phase: str) -> Action:
    """Return the command that runs a phase or a step plan."""
    path = step_plan_path(phase)
    return Action.of("execute-phase", phase) if path is None else Action.of("execute", path)


# Step plans. Path, phase, folder of reports and ids of tasks can each be derived from another.

STEP_PLAN = "steps"
"""The dialect of a step plan."""
STEP_PLAN_SUFFIXES = (".yaml", ".yml", ".json")
_REPORTS = ".idumb/brain/execution"
_LONGEST = 200
_PART = re.compile(r"\.?\w[\w.-]*")
_TASK = re.compile(r"(.+\.(?:yaml|yml|json))-([0-9]{2,})")


def step_plan_phase(path: str) -> str | None:
    """Return the phase of the step plan at a path, relative to the repository; None if the path cannot be one."""
    parts = path.split("/")
    if not path.endswith(STEP_PLAN_SUFFIXES) or ".." in path or not all(_PART.fullmatch(part) for part in parts):
        return None
    phase = "+".join("@" + part[1:] if part[0] == "." else part for part in parts)
    return phase if len(phase.encode()) <= _LONGEST else None


def step_plan_path(phase: str) -> str | None:
    """Return the path of a step plan by its phase; None for every other phase."""
    path = "/".join("." + part[1:] if part[:1] == "@" else part for part in phase.split("+"))
    return path if step_plan_phase(path) == phase else None


def step_plan_reports(phase: str) -> str:
    """Return the folder of the reports on a step plan; idumb never writes in the plan's own folder."""
    return f"{_REPORTS}/{phase}"


def step_plan_of_reports(folder: str) -> str | None:
    """Return the path of the step plan whose reports are in a folder; None for a folder of `.planning/`."""
    root, _, phase = folder.rpartition("/")
    return step_plan_path(phase) if root == _REPORTS else None


def step_task_id(phase: str, number: int) -> str:
    """Return the id of the task of step `number`, counted from 1: `web.yaml-01`."""
    return f"{phase}-{number:02d}"


def step_plan_of_task(task: str) -> str | None:
    """Return the phase of the step plan that a task belongs to, or None."""
    match = _TASK.fullmatch(task)
    return match[1] if match is not None and step_plan_path(match[1]) is not None else None
