"""Step plans: their ids, and what each step can change. A step plan is a file of tool calls; each call is one task.

The id is the path with `+` for `/` and `@` for a leading dot, so that it is safe in file and ref names and can be
reversed: `deploy/web.yaml` is `deploy+web.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from idumb.domain import whole_numbers
from idumb.domain.action import Action
from idumb.domain.plans.plan import FileClaim, Step

SUFFIXES = (".yaml", ".yml", ".json")
DIALECT = "steps"
REPORTS = ".idumb/brain/execution"
LONGEST = 200
_PART = re.compile(r"\.?\w[\w.-]*")
_TASK = re.compile(r"(.+\.(?:yaml|yml|json))-([0-9]{2,})")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NAMING = ("--- ", "+++ ", "rename from ", "rename to ", "copy to ")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def phase_of(path: str) -> str | None:
    """Return the id of the step plan at a path, relative to the repository; None if the path cannot be one."""
    parts = path.split("/")
    if not path.endswith(SUFFIXES) or ".." in path or not all(_PART.fullmatch(part) for part in parts):
        return None
    phase = "+".join("@" + part[1:] if part[0] == "." else part for part in parts)
    return phase if len(phase.encode()) <= LONGEST else None


def path_of(phase: str) -> str | None:
    """Return the path of a step plan by its id, or None."""
    path = "/".join("." + part[1:] if part[:1] == "@" else part for part in phase.split("+"))
    return path if phase_of(path) == phase else None


def run_command(phase: str) -> Action:
    """Return the command that runs a phase or a step plan."""
    path = path_of(phase)
    return Action.of("execute-phase", phase) if path is None else Action.of("execute", path)


def folder_of(phase: str) -> str:
    """Return the folder of the reports on a step plan; idumb never writes in the plan's own folder."""
    return f"{REPORTS}/{phase}"


def path_in(folder: str) -> str | None:
    """Return the step plan whose reports are in a folder; None for a folder of `.planning/`."""
    root, _, phase = folder.rpartition("/")
    return path_of(phase) if root == REPORTS else None


def task_id(phase: str, number: int) -> str:
    """Return the id of step `number`, counted from 1: `web.yaml-01`."""
    return f"{phase}-{number:02d}"


def phase_of_task(task: str) -> str | None:
    """Return the step plan of a task id, or None."""
    match = _TASK.fullmatch(task)
    return match[1] if match is not None and path_of(match[1]) is not None else None


def claims(step: Step) -> tuple[FileClaim, ...] | None:
    """Return what a step can change, from its arguments and scope; None if a patch does not name it."""
    if step.tool == "make_directory":
        return ()
    if step.tool == "move_file":
        written: tuple[str, ...] | None = (step.arguments["from"], step.arguments["to"])
    elif step.tool == "run":
        written = step.scope
    elif step.tool == "apply_patch":
        written = patched(step.arguments["patch"])
    else:
        written = (step.arguments["path"],)
    return None if written is None else tuple(FileClaim("change", path) for path in dict.fromkeys(written))


def patched(patch: str) -> tuple[str, ...] | None:
    """Return the paths that a git patch names, in order; None if it names none."""
    return tuple(dict.fromkeys(_names(patch))) or None


def _names(patch: str) -> Iterator[str]:
    old = new = 0  # remaining lines of the hunk, which can look like headers
    for line in patch.split("\n"):
        if old > 0 or new > 0:
            old -= line[:1] in {" ", "-", ""}
            new -= line[:1] in {" ", "+", ""}
        elif (hunk := _HUNK.match(line)) is not None:
            old, new = (
                whole_numbers.LARGEST if (n := whole_numbers.parse(lines or "1")) is None else n
                for lines in hunk.groups()
            )
        else:
            yield from _header(line.removesuffix("\r"))


def _header(line: str) -> Iterator[str]:
    if line.startswith("diff --git "):
        # both names are equal unless another line names them
        rest = line.removeprefix("diff --git ")
        half = len(rest) // 2
        old_name, new_name = _bare(rest[:half]), _bare(rest[half + 1 :])
        if old_name is not None and old_name == new_name:
            yield old_name
        return
    prefix = next((p for p in _NAMING if line.startswith(p)), None)
    if prefix is None:
        return
    name = line.removeprefix(prefix)
    path = _bare(name) if prefix in _NAMING[:2] else _unquoted(name)
    if path is not None:
        yield path


def _bare(name: str) -> str | None:
    """Return `src/x.py` for `a/src/x.py`, also quoted; None for other names."""
    name = _unquoted(name.partition("\t")[0])
    _, slash, path = name.partition("/")
    return path if slash and path and name != "/dev/null" else None


def _unquoted(name: str) -> str:
    """Decode a quoted name: git writes special characters as octal bytes."""
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name
    return _ESCAPE.sub(_byte, name[1:-1].encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _byte(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    return bytes([int(escaped, 8) & 255]) if escaped[:1].isdigit() else _LETTERS.get(escaped, escaped)
