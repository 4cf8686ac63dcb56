"""`idumb init`: create idumb's own files where they are missing, and import those of an old iDumb.

Existing files and git's files never change. Imported history never counts as proven, because this
log did not record it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.engine import state_file
from idumb.app.session import operation
from idumb.app.upkeep.project_place import CONFIGURATION
from idumb.domain import check_lines
from idumb.domain.action import Action
from idumb.domain.proof import gate_table, project_checkers
from idumb.domain.runs.run import RunState
from idumb.domain.runs.state_file import IMPORTED, OldFile

IGNORED = """\
# Files that idumb can rebuild at any time. Commit the Markdown files next to them.
/brain/state.json
/brain/execution/*/progress.json
/displaced/
*.tmp
"""

CONFIG = """\
# idumb's settings for this repository. Every key is optional.

# The agent that builds tasks without steps: the name of a binding below.
# builder: my-agent
# bindings:
#   my-agent: {adapter: command, argv: [my-agent, --print], prompt: stdin}

# Agents write only in the folders of their task's files, in temporary files, and where you add.
# sandbox: {level: auto, write: [build]}

# More gates can fail a task; by default they only report. `idumb help gates` lists them.
# gates: {syntax: {level: 1}, non-goals: {level: 1}, change-class: {level: 1}}

git:
  commit: task            # task: one commit per completed task; none: hidden refs only
"""

PROVIDED = """
checkout:
  provide: [{folders}]   # ignored folders that checks may use; otherwise they see only what is committed
"""

PREPARED = "  # {line}   # or installed once per lock file, as a stranger would\n"
PROPOSED = """
# checkout:
#   {line}   # installs what checks need, once per lock file
"""

GATES = """
# {line}   # {checkers} after each task; only new errors count
"""

TOP = "."


def init(services: Services, templates: Mapping[str, str], folder: str = TOP) -> Result:
    """Create missing files and import those of an old iDumb. `templates` maps paths to texts. Safe to repeat.

    `folder` is the current folder, relative to the one that is set up.
    """
    provided = _dependencies(services)
    proposed = [command for proposal in installations(services) for command in proposal.commands]
    checks = PROVIDED.format(folders=", ".join(provided)) if provided else ""
    if proposed:
        checks += (PREPARED if provided else PROPOSED).format(line=check_lines.preparing(proposed))
    checkers = _checkers(services)
    line = f"gates: {{{', '.join(f'{name}: {{level: 1}}' for name in checkers)}}}"
    labels = ", ".join(label for names in checkers.values() for label in names)
    gates = GATES.format(line=line, checkers=labels) if checkers else ""
    files = {
        CONFIGURATION: CONFIG + checks + gates,
        ".idumb/.gitignore": IGNORED,
        ".idumb/brain/README.md": BRAIN,
        **templates,
    }
    created, kept = [], []
    for path, text in files.items():
        if services.reports.exists(path):
            kept.append(path)
        else:
            services.reports.write_source(path, text)
            created.append(path)
    report = import_files(services)
    data: dict[str, Any] = {"created": created, "kept": kept, "taken_over": report, "next": [Action("next")]}
    data |= {"root": services.root, "folder": folder, "project": services.folder or TOP}
    is_new = CONFIGURATION in created
    found = {"provided": list(provided), "proposed": proposed, "checkers": {n: list(c) for n, c in checkers.items()}}
    return Result({**data, **{name: value if is_new else type(value)() for name, value in found.items()}})


def installations(services: Services) -> tuple[check_lines.Proposal, ...]:
    """Return how the dependencies can be installed that the manifests in the working tree name."""
    present = services.files.existing(check_lines.FILES)
    return check_lines.proposals(present, lambda path: services.reports.read(path) or "")


def _checkers(services: Services) -> dict[str, tuple[str, ...]]:
    """Return the checkers that the project configures, by the gate that would run them."""
    present = services.files.existing(project_checkers.FILES)

    def read(path: str) -> str | None:
        return services.reports.read(path) if path in present else None

    by_gate = {
        gate: tuple(checker.label for checker, _ in project_checkers.configured(gate, read))
        for gate in (gate_table.TYPES, gate_table.LINT)
    }
    return {gate: labels for gate, labels in by_gate.items() if labels}


def _dependencies(services: Services) -> tuple[str, ...]:
    """Return the folders of installed dependencies that git ignores; without them, most checks could not run."""
    present = services.trees.present_folders(check_lines.DEPENDENCIES)
    ignored = services.history.ignored(present) if present else frozenset()
    return tuple(folder for folder in check_lines.DEPENDENCIES if folder in ignored)


BRAIN = """\
# What idumb writes here

Checkpoints and progress for you to read. idumb builds these files from the event log in the git folder, so you can
delete them without losing anything. Plans are in `.planning/phases/`.
"""


def pending_imports(services: Services) -> tuple[tuple[OldFile, bytes], ...]:
    """Return files whose history is not in the event log, with their bytes."""
    imported = {
        (f["path"], f["digest"]) for event in services.log.events(kind=IMPORTED) for f in event.payload["files"]
    }
    read = (state_file.of_path(services, path) for path in services.reports.files(state_file.FOLDER))
    files = (file for file in read if file is not None)
    return tuple((old, data) for old, data in files if (old.path, old.digest) not in imported)


def import_files(services: Services) -> Mapping[str, Any] | None:
    """Import pending files; return the report, or None if there are none. Backups are written before the event."""
    if not pending_imports(services):
        return None
    with operation.owned(services, "init") as owned:
        files = pending_imports(services)
        return state_file.write(services, owned.journal(RunState()), files) if files else None
