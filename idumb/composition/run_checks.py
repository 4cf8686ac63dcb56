"""The checks of a run: in which tree they run, what they see of the user's environment, and what limits them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from idumb.app.core import run_lookup
from idumb.domain.settings import CONTROL_OFF
from idumb.gates import toolchains
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.checks import ShellChecks
from idumb.gates.controls import Controls
from idumb.gates.shell_command import Hints, Shell
from idumb.git import guarded_files
from idumb.git.checkouts import places
from idumb.git.checkouts.checkout import PROOF, PROVE, Checkout
from idumb.system import child_process, clock

if TYPE_CHECKING:
    from idumb.app.core.services import Workspace
    from idumb.composition.container import Container
    from idumb.composition.sandboxes import CheckSandbox
    from idumb.git.checkouts.pool import Checkouts


class RunChecks:
    """One environment per run, whatever workspace the checks are opened for. `close` removes them."""

    def __init__(self, services: Container, checkouts: Checkouts) -> None:
        self._services = services
        self._checkouts = checkouts
        self._chosen = services.settings.checks
        self._environments: dict[str, CheckEnvironment] = {}
        self._controls = Controls()

    def open(self, workspace: Workspace, run: str, *, continued: bool) -> ShellChecks:
        services = self._services
        if run not in self._environments:  # builders may change what it reads
            self._environments[run] = self._environment(run, continued=continued)
        return self._checks(workspace.trees.root, run, self._environments[run], self._checkouts.open(PROOF))(
            place=services.root,
            guard=services.owner.guard,
            head=lambda: services.history.head().commit,
            controls=self._controls,
            is_work=lambda tree, path: run_lookup.has_changed(services, run, tree, path),
            hints=Hints(services.settings, services.root, services.trees.ignored, self._variables),
        )

    def _variables(self) -> dict[str, str]:
        return child_process.environment(child_process.variables())

    @contextlib.contextmanager
    def fresh_clone(self, head: str | None, work: Collection[str]) -> Iterator[tuple[Checkout, ShellChecks]]:
        checkout = self._checkouts.open(PROVE, plain=True)
        with contextlib.closing(self._environment()) as private:
            checks = self._checks(checkout.root, PROVE, private, checkout)(
                head=lambda: head, is_work=lambda _, path: path in work
            )
            checks.end_processes()  # of a killed proof
            try:
                yield checkout, checks
            finally:
                checks.end_processes()

    def _checks(self, root: str, run: str, private: CheckEnvironment, proof: Checkout) -> Callable[..., ShellChecks]:
        """Return what makes checks as the configuration says."""
        services, settings = self._services, self._services.settings
        return partial(
            ShellChecks,
            root=root,
            allowed=settings.environment,
            run_id=run,
            shell=Shell(services.output_redactor.redact, settings.run.check_idle_timeout, settings.limits.chosen()),
            private=private,
            proof=proof,
            prepare=settings.checkout.prepare,
            timeout=float(settings.run.check_timeout),
            sandbox=self._sandbox(private),
            note=services.reporter.note,
        )

    def _sandbox(self, private: CheckEnvironment) -> CheckSandbox | None:
        """Return what limits the checks; None if the configuration limits nothing."""
        if self._services.settings.sandbox is None and self._chosen.network is None:
            return None
        from idumb.composition.sandboxes import CheckSandbox

        return CheckSandbox(self._services, self._chosen, private.caches)

    def _environment(self, run: str | None = None, *, continued: bool = False) -> CheckEnvironment:
        """Build it before the first builder starts; `run` is None for checks of no run.

        `continued`: an attempt of the run began in another process and has not ended.
        """
        repository, project, chosen = self._services.repository, self._services.project, self._chosen
        allowed = self._services.settings.environment
        above = places.folder_of(repository)
        inside = dict.fromkeys((project.root, repository.root, repository.common_dir, repository.git_dir))
        inputs = Inputs(
            child_process.environment((*allowed, *toolchains.VARIABLES)),
            allowed,
            os.path.expanduser("~"),
            tuple(inside),
            chosen.home,
            controlled=run is None or chosen.control != CONTROL_OFF,
            above=() if run is None else tuple(map(str, PurePosixPath(above, "x").parents[:-1])),
            since=0 if run is None else self._begun(run) if continued else clock.nanoseconds(),
        )
        return CheckEnvironment(inputs, partial(guarded_files.settings, repository))

    def _begun(self, run: str) -> int:
        """Return when the newest attempt of a run began, in nanoseconds."""
        from datetime import datetime

        for event in self._services.log.events(run=run, kind="attempt.started", limit=1, newest_first=True):
            return int(datetime.fromisoformat(event.at).timestamp() * 1_000_000) * 1_000
        return clock.nanoseconds()

    def close(self) -> None:
        self._controls.end(limit=0.0)
        for environment in self._environments.values():
            environment.close()
