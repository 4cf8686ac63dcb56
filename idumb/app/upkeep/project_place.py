"""Which folder `idumb init` sets up: the one of the project around, the top of the repository, or a subfolder."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from idumb.app.core.services import Services, from_top
from idumb.app.worktree import preconditions
from idumb.domain import paths, wording
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal

CONFIGURATION = ".idumb/config.yaml"
HERE, TOP = "here", "top"
_LONGEST = 200


def choose(services: Services, current: str, *, here: bool) -> str:
    """Return the folder to set up, relative to that of `services`: `current`, or "" for the folder of `services`.

    `current` is the folder in which the command was started, "" if it is the one of `services`. With
    `here`, a project below that has no runs is no obstacle. Refusal `init.nested`, `init.not-confirmed`, `init.folder`
    or of a repository that idumb does not support.
    """
    preconditions.require_supported(services)
    if services.reports.exists(CONFIGURATION):
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
    chosen = HERE if here else _ask(services, current)
    if chosen == HERE:
        require_folder(services, current, [path for path in below if path.startswith(f"{current}/")])
        return current
    _refuse_around(services, top, tuple(below))
    return ""


def _ask(services: Services, current: str) -> str:
    """Return whether a person sets up the current folder or the one of `services`. Without a terminal, the latter."""
    if not services.asker.interactive:
        return TOP
    question = Decision(
        "init.place",
        "consent",
        f"Set up idumb in {current}, or in {services.root}?",
        f"You are in {current}. Plans and settings are in the folder of a project, and paths in plans begin there.",
        (),
        (
            Choice(HERE, f"set up {current} as a project of its own", "its tasks write only in this folder"),
            Choice(TOP, f"set up {services.root}", "one project for everything below"),
            Choice("no", "write nothing", "nothing happens"),
        ),
    )
    answer = services.asker.ask(question)
    if answer is None or answer.choice not in (HERE, TOP):
        raise Refusal(
            "init.not-confirmed",
            f"Nothing was written: you are in {current}, and the top of the repository is {services.root}.",
            hint="idumb init --here sets up this folder; idumb init in the top folder sets up the whole repository",
            details={"folder": current, "root": services.root},
        )
    return answer.choice


def require_folder(services: Services, folder: str, below: Sequence[str]) -> None:
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
