"""Build the environment of checks from the user's environment and settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from idumb.domain.settings import CONTROL_ON, IN_COMMIT, CheckSettings
from idumb.gates import toolchains
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.git import git_program
from idumb.git.discover import Project, Repository
from idumb.system.processes import child_process

_RECORD = "entry-points.json"


def build(
    repository: Repository,
    allowed: Sequence[str],
    chosen: CheckSettings,
    run: str | None = None,
    *,
    continued: bool = False,
    proving: str = "",
    project: Project | None = None,
) -> CheckEnvironment:
    """Build it before the first builder starts. `allowed` are the variables that checks may see.

    `run` is None for checks of no run. `continued`: this process continues an attempt of the run. `proving` is the
    folder of the proving trees, `project` the one whose checks these are.
    """
    own = project or Project(repository)
    here = run is not None and chosen.tree != IN_COMMIT
    inside = dict.fromkeys((own.root, repository.root, repository.common_dir, repository.git_dir))
    inputs = Inputs(
        child_process.environment((*allowed, *toolchains.VARIABLES, "GIT_CONFIG_GLOBAL")),
        allowed,
        os.path.expanduser("~"),
        () if here else tuple(inside),
        (*chosen.provide, *chosen.share),
        chosen.home,
        here,
        controlled=run is None or chosen.control == CONTROL_ON,
        above=tuple(_and_above(proving)) if proving and not here else (),
    )
    record = None if run is None else os.path.join(own.state_dir, _RECORD)
    settings = partial(git_program.settings, repository.root)
    return CheckEnvironment(inputs, settings, record=record, run=run or "", continued=continued)


def _and_above(folder: str) -> Iterator[str]:
    """Yield an absolute folder and those above it, without the root."""
    while folder != "/":
        yield folder
        folder = os.path.dirname(folder)
