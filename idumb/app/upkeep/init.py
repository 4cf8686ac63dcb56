"""`idumb init`: choose the folder of the project, create idumb's own files there, and import those of an old iDumb.

Existing files and git's files never change. Imported history never counts as proven, because this log did not record
it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from idumb.app.core import actions
from idumb.app.core.services import Result, Services, from_top
from idumb.app.session import operation, state_file
from idumb.domain import paths, project_files, wording
from idumb.domain.action import Action, Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.proof import gate_table, project_checkers
from idumb.domain.runs.run import RunState
from idumb.domain.runs.state_file import IMPORTED, OldFile

_IGNORED = """\
# Files that idumb can rebuild at any time. Commit the Markdown files next to them.
/brain/state.json
/brain/execution/*/progress.json
/displaced/
*.tmp
"""

_CONFIG = """\
# idumb's settings for this repository. Every key is optional.

# The agent that builds tasks without steps: the name of a binding below.
# builder: my-agent
# bindings:
#   my-agent: {adapter: command, argv: [my-agent, --print], prompt: stdin}

# Agents write only in their checkout, in temporary files, and where you add.
# sandbox: {level: auto, write: [~/.cache/pip]}

# More gates can fail a task; by default they only report. `idumb help gates` lists them.
# gates: {syntax: {level: 1}, non-goals: {level: 1}, change-class: {level: 1}}

git:
  commit: task            # task: one commit per completed task; none: hidden refs only
"""

_PROVIDED = """
checkout:
  provide: [{folders}]   # ignored folders that checks may use; otherwise they see only what is committed
"""

_PREPARED = "  # {line}   # or installed once per lock file, as a stranger would\n"
_PROPOSED = """
# checkout:
#   {line}   # installs what checks need, once per lock file
"""

_GATES = """
# {line}   # {checkers} after each task; only new errors count
"""

_BRAIN = """\
# What idumb writes here

Checkpoints and progress for you to read. idumb builds these files from the event log in the git folder, so you can
delete them without losing anything. Plans are in `.planning/phases/`.
"""

TOP = "."
CONFIGURATION = ".idumb/config.yaml"
_HERE, _AT_TOP = "here", "top"
_LONGEST = 200


def init(services: Services, templates: Mapping[str, str], folder: str = TOP) -> Result:
    """Create missing files and import those of an old iDumb. `templates` maps paths to texts. Safe to repeat.

    `folder` is the current folder, relative to the one that is set up.
    """
    provided = _dependencies(services)
    found = project_files.proposals(project_files.manifests(services.files.read))
    proposed = [command for proposal in found for command in proposal.commands]
    checks = _PROVIDED.format(folders=", ".join(provided)) if provided else ""
    if proposed:
        checks += (_PREPARED if provided else _PROPOSED).format(line=project_files.prepare_line(proposed))
    checkers = _checkers(services)
    line = f"gates: {{{', '.join(f'{name}: {{level: 1}}' for name in checkers)}}}"
    labels = ", ".join(label for names in checkers.values() for label in names)
    gates = _GATES.format(line=line, checkers=labels) if checkers else ""
    files = {
        CONFIGURATION: _CONFIG + checks + gates,
        ".idumb/.gitignore": _IGNORED,
        ".idumb/brain/README.md": _BRAIN,
        **templates,
    }
    created, kept = [], []
    for path, text in files.items():
        if services.files.exists(path):
            kept.append(path)
        else:
            services.files.write_source(path, text)
            created.append(path)
    report = _import_files(services)
    data: dict[str, Any] = {"created": created, "kept": kept, "taken_over": report, "next": [Action("next")]}
    data |= {"root": services.root, "folder": folder, "project": services.folder or TOP}
    if CONFIGURATION in kept:  # what it would propose is not in it
        return Result({**data, "provided": [], "proposed": [], "checkers": {}})
    checked = {name: list(labels) for name, labels in checkers.items()}
    return Result({**data, "provided": list(provided), "proposed": proposed, "checkers": checked})


def _checkers(services: Services) -> dict[str, tuple[str, ...]]:
    """Return the checkers that the project configures, by the gate that would run them."""
    by_gate = {
        gate: tuple(checker.label for checker, _ in project_checkers.configured(gate, services.files.read))
        for gate in (gate_table.TYPES, gate_table.LINT)
    }
    return {gate: labels for gate, labels in by_gate.items() if labels}


def _dependencies(services: Services) -> tuple[str, ...]:
    """Return the folders of installed dependencies that git ignores; without them, most checks could not run."""
    names, above = services.named_files, "../" * (services.folder.count("/") + 1) if services.folder else ""
    # Those of a workspace are above its projects: a plain name fits anywhere in the repository.
    places = {place: name for name in project_files.DEPENDENCIES for place in (name, f"{above}{name}")}
    found = {place.removesuffix("/") for place in names.existing(f"{place}/" for place in places)}  # and no files
    present = found.difference(names.links(places))
    ignored = services.history.ignored(present) if present else frozenset()
    return tuple(dict.fromkeys(name for place, name in places.items() if place in ignored))


def _pending_imports(services: Services) -> tuple[tuple[OldFile, bytes], ...]:
    """Return files whose history is not in the event log, with their bytes."""
    imported = {
        (f["path"], f["digest"]) for event in services.log.events(kind=IMPORTED) for f in event.payload["files"]
    }
    read = (state_file.of_path(services, path) for path in services.files.below(state_file.FOLDER))
    files = (file for file in read if file is not None)
    return tuple((old, data) for old, data in files if (old.path, old.digest) not in imported)


def _import_files(services: Services) -> Mapping[str, Any] | None:
    """Import pending files; return the report, or None if there are none. Backups are written before the event."""
    if not _pending_imports(services):
        return None
    with operation.owned(services, "init") as owned:
        files = _pending_imports(services)
        return state_file.write(services, owned.journal(RunState()), files) if files else None


def choose(services: Services, current: str, *, here: bool) -> str:
    """Return the folder to set up, relative to that of `services`: `current`, or "" for the folder of `services`.

    `current` is the folder in which the command was started, "" if it is the one of `services`. With
    `here`, a project below that has no runs is no obstacle. Refusal `init.nested`, `init.not-confirmed`, `init.folder`
    or of a repository that idumb does not support.
    """
    services.history.require_supported()
    if services.files.exists(CONFIGURATION):
        if current and here:
            raise Refusal(
                "init.nested",
                f"{from_top(services, current)} cannot be a project: it is inside the project in {services.root}.",
                hint=f"A plan of that project with `scope: {{root: {current}}}` writes in {current} alone",
                details={"folder": current, "root": services.root},
            )
        return ""
    below, top = services.inner_projects, services.folder or "The top of the repository"
    if not current:
        _refuse_around(services, top, [folder for folder, has_runs in below.items() if has_runs or not here])
        return ""
    chosen = _HERE if here else _ask(services, current)
    if chosen == _HERE:
        _require_folder(services, current, [path for path in below if path.startswith(f"{current}/")])
        return current
    _refuse_around(services, top, tuple(below))
    return ""


def _ask(services: Services, current: str) -> str:
    """Return whether a person sets up the current folder or the one of `services`. Without a terminal, the latter."""
    if not services.asker.interactive:
        return _AT_TOP
    question = Decision(
        "init.place",
        "consent",
        f"Set up idumb in {current}, or in {services.root}?",
        f"You are in {current}. Plans and settings are in the folder of a project, and paths in plans begin there.",
        (),
        (
            Choice(_HERE, f"set up {current} as a project of its own", "its tasks write only in this folder"),
            Choice(_AT_TOP, f"set up {services.root}", "one project for everything below"),
            Choice("no", "write nothing", "nothing happens"),
        ),
    )
    answer = services.asker.ask(question)
    if answer is None or answer.choice not in (_HERE, _AT_TOP):
        at_top = f"cd {shlex.quote(services.root)} && idumb init"
        here, top, _ = question.choices
        ways = (replace(top, command=at_top), replace(here, command=Action.of("init", "--here")))
        raise Refusal(
            "init.not-confirmed",
            f"Nothing was written: you are in {current}, and the top of the repository is {services.root}.",
            hint=Action.of("init", "--here"),
            details={"folder": current, "root": services.root, "choices": actions.choice_rows(ways)},
        )
    return answer.choice


def _require_folder(services: Services, folder: str, below: Sequence[str]) -> None:
    """Refuse a folder that cannot be a project."""
    _refuse_around(services, folder, below)
    why = paths.problem(folder)
    if paths.protecting_rule(folder, ()) is not None:
        why = "belongs to git, to idumb, or to the settings of a tool"
    elif services.history.ignored((f"{folder}/{CONFIGURATION}",)):
        why = "is ignored by git, so nothing in it could be committed"
    elif len(folder.encode("utf-8", "surrogateescape")) > _LONGEST:
        why = f"is longer than {_LONGEST} bytes"
    if why is not None:
        raise Refusal(
            "init.folder",
            f"{folder} cannot be a project: it {why}.",
            hint="Run idumb init --here in another folder",
            details={"folder": folder},
        )


def _refuse_around(services: Services, folder: str, below: Sequence[str]) -> None:
    inner = [from_top(services, path) for path in below]
    if inner:
        raise Refusal(
            "init.nested",
            f"{folder} cannot be a project: below it {'is' if len(inner) == 1 else 'are'} {wording.listed(inner)}.",
            hint=f"cd {shlex.quote(inner[0])} and use idumb there, or run idumb init --here in a folder beside it",
            details={"folder": services.folder or ".", "projects": inner},
        )
