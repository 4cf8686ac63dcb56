"""The checks of a run: in which tree they run, what they see of the user's environment, and what limits them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from idumb.app.worktree import work_of_run
from idumb.domain import paths
from idumb.domain.settings import CONTROL_OFF, CheckoutSettings, CheckSettings
from idumb.gates import toolchains
from idumb.gates.base_checks import BaseChecks
from idumb.gates.check_environment import CheckEnvironment, Inputs
from idumb.gates.check_words import Hints
from idumb.gates.checks import ShellChecks
from idumb.gates.proving import Proving
from idumb.git import git_program, proving_folders
from idumb.git.clones import fresh_clone
from idumb.git.proving_tree import ProvingTree
from idumb.system import clock
from idumb.system.processes import child_process

if TYPE_CHECKING:
    from idumb.app.ports.workspace import Workspace
    from idumb.composition.check_sandbox import CheckSandbox
    from idumb.composition.container import Container


class RunChecks:
    """One environment and one proving tree per run, whatever workspace they are opened for. `close` removes them."""

    def __init__(self, services: Container) -> None:
        self._services = services
        self._chosen = services.settings.checks or CheckSettings()
        self._checkout = services.settings.checkout or CheckoutSettings()
        self._environments: dict[str, CheckEnvironment] = {}
        self._trees: dict[str, ProvingTree] = {}
        self._before: dict[str, BaseChecks[Proving]] = {}

    def open(self, workspace: Workspace, run: str, *, continued: bool) -> ShellChecks:
        services = self._services
        if run not in self._environments:  # builders may change what it reads
            self._environments[run] = self._environment(run, continued=continued)
        return self._checks(workspace.trees.root, run, self._environments[run], self._tree())(
            place=services.root,
            guard=services.owner.guard,
            head=lambda: services.history.head().commit,
            base=lambda: self._base(run),
            is_work=lambda tree, path: work_of_run.has_changed(services, run, tree, path),
            hints=Hints(services.settings.checks, services.settings.checkout, services.trees.ignored),
        )

    @contextlib.contextmanager
    def in_fresh_clone(self, work: Collection[str]) -> Iterator[tuple[fresh_clone.FreshClone, ShellChecks]]:
        services = self._services
        opened = fresh_clone.opened(services.repository, self._checkout.provide, services.folder)
        with opened as clone, contextlib.closing(self._environment()) as private:
            checks = self._checks(clone.root, fresh_clone.RUN, private, clone)
            yield clone, checks(is_work=lambda _, path: path in work)

    def _checks(self, root: str, run: str, private: CheckEnvironment, proving: Proving) -> Callable[..., ShellChecks]:
        """Return what makes checks as the configuration says."""
        services, settings = self._services, self._services.settings
        return partial(
            ShellChecks,
            root,
            settings.environment,
            services.redactor.redact,
            run,
            idle_timeout=settings.run.check_idle_timeout,
            limits=settings.limits.chosen(),
            private=private,
            proving=proving,
            prepare=self._checkout.prepare,
            prepare_timeout=float(settings.run.check_timeout),
            sandbox=self._sandbox(private),
            note=services.reporter.note,
        )

    def _sandbox(self, private: CheckEnvironment) -> CheckSandbox | None:
        """Return what limits the checks; None if the configuration limits nothing."""
        if self._services.settings.sandbox is None and self._chosen.network is None:
            return None
        from idumb.composition.check_sandbox import CheckSandbox

        return CheckSandbox(self._services, self._chosen, private.caches)

    def _environment(self, run: str | None = None, *, continued: bool = False) -> CheckEnvironment:
        """Build it before the first builder starts; `run` is None for checks of no run.

        `continued`: an attempt of the run began in another process and has not ended.
        """
        repository, project, chosen = self._services.repository, self._services.project, self._chosen
        allowed = self._services.settings.environment
        inside = dict.fromkeys((project.root, repository.root, repository.common_dir, repository.git_dir))
        inputs = Inputs(
            child_process.environment((*allowed, *toolchains.VARIABLES)),
            allowed,
            os.path.expanduser("~"),
            tuple(inside),
            chosen.home,
            controlled=run is None or chosen.control != CONTROL_OFF,
            above=() if run is None else tuple(map(str, PurePosixPath(self._proving_folder, "x").parents[:-1])),
            since=0 if run is None else self._begun(run) if continued else clock.nanoseconds(),
        )
        return CheckEnvironment(inputs, partial(git_program.settings, repository.root))

    def _begun(self, run: str) -> int:
        """Return when the newest attempt of a run began, in nanoseconds."""
        from datetime import datetime

        for event in self._services.log.events(run=run, kind="attempt.started", limit=1, newest_first=True):
            return int(datetime.fromisoformat(event.at).timestamp() * 1_000_000) * 1_000
        return clock.nanoseconds()

    @cached_property
    def _proving_folder(self) -> str:
        return proving_folders.place(self._services.user_repository)

    def _tree(self, suffix: str = "") -> ProvingTree:
        if suffix not in self._trees:
            services, top = self._services, self._proving_folder + suffix
            cached, lender = paths.cover(self._checkout.cache), services.user_repository.root
            self._trees[suffix] = ProvingTree(
                services.repository, top, cached, self._checkout.provide, lender, services.folder
            )
        return self._trees[suffix]

    def _base(self, run: str) -> BaseChecks[Proving]:
        """Return the checks of a run before the work, which share one working tree."""
        if run not in self._before:
            record = os.path.join(self._services.project.state_dir, "controls.json")
            self._before[run] = BaseChecks(lambda: self._tree("-base"), record=record, run=run)
        return self._before[run]

    def close(self) -> None:
        for checks in self._before.values():
            checks.close()
        for tree in self._trees.values():
            tree.close()
        for environment in self._environments.values():
            environment.close()
