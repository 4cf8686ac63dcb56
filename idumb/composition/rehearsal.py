"""The container of a dry run, which works on a temporary clone of the repository."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from idumb.composition.container import Container

if TYPE_CHECKING:
    from idumb.app.core.services import Services
    from idumb.git.discover import Repository
    from idumb.store.event_log import SqliteEventLog


class RehearsalContainer(Container):
    """Read plans, configuration, policy and consent of the user; write to the clone only.

    It asks no questions, because no answer would be kept.
    """

    def __init__(self, user: Container, repository: Repository) -> None:  # pylint: disable=super-init-not-called
        from idumb.views.terminal import ask

        self.repository = repository
        self._user_repository = user.repository
        self.root, self.worktree = repository.root, repository.worktree_id
        self.settings, self.policy, self.plans = user.settings, user.policy, user.plans
        self.consent, self.signatures = user.consent, user.signatures
        self.redactor, self.redaction = user.redactor, user.redaction
        # Approvals bind these files and agents, so they are read in the user's repository.
        self.files, self.adapters = user.files, user.adapters
        self.reporter, self.interrupts, self.toolchain = user.reporter, user.interrupts, user.toolchain
        self.asker = ask.Nobody()

    @property
    def user_repository(self) -> Repository:
        return self._user_repository

    @cached_property
    def log(self) -> SqliteEventLog:
        from idumb.store.event_log import SqliteEventLog

        return SqliteEventLog(
            self.repository.common_dir, self.worktree, self.clock, redactor=lambda: self.redaction, copied=False
        )

    def close(self) -> None:
        """Remove the working tree of the checks and close the log; a dry run saves no caches."""
        self.close_proving_tree()
        if "log" in self.__dict__:
            self.log.database.close()


class Rehearsals:
    """Opens dry runs for one user. From then on, the user's container records no consent."""

    def __init__(self, user: Container) -> None:
        from idumb.store.consent import ForgetfulConsent

        self._user = user
        user.consent = ForgetfulConsent(user.repository.common_dir)

    @contextlib.contextmanager
    def open(self, also: Iterable[str]) -> Iterator[Services]:
        """Clone HEAD, its branch, every file that is not ignored, and the ignored files in `also`."""
        from idumb.git.clones import dry_run_clone
        from idumb.markdown.settings import configuration

        with dry_run_clone.present_files(
            self._user.repository, self._user.history.head(), [*also, configuration.PATH]
        ) as repository:
            services = RehearsalContainer(self._user, repository)
            try:
                yield services
            finally:
                services.close()
