"""The container of a dry run, which works on a temporary clone of the repository."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from idumb.composition.container import Container
from idumb.git import discover

if TYPE_CHECKING:
    from idumb.git.discover import Repository
    from idumb.store.event_log import SqliteEventLog


class RehearsalContainer(Container):
    """Read plans, configuration, policy and consent of the user; write to the clone only.

    It asks no questions, because no answer would be kept.
    """

    def __init__(self, user: Container, repository: Repository) -> None:  # pylint: disable=super-init-not-called
        from idumb.views.terminal import ask

        self._open(discover.Project(repository, user.folder))
        self._user_repository = user.repository
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
            self.repository.common_dir,
            self.worktree,
            self.clock,
            owner=self.repository.worktree_id,
            redactor=lambda: self.redaction,
            copied=False,
        )

    def close(self) -> None:
        """Remove the working tree of the checks and close the log; a dry run saves no caches."""
        self.close_proving_tree()
        if "log" in self.__dict__:
            self.log.database.close()


@contextlib.contextmanager
def opened(user: Container, also: Iterable[str]) -> Iterator[Container]:
    """Clone HEAD, its branch, every file that is not ignored, and the ignored files in `also`."""
    from idumb.git.clones import dry_run_clone
    from idumb.markdown.settings import configuration

    copied = [f"{user.folder}/{path}" if user.folder else path for path in (*also, configuration.PATH)]
    with dry_run_clone.present_files(user.repository, user.history.head(), copied) as repository:
        os.makedirs(discover.Project(repository, user.folder).root, exist_ok=True)
        with contextlib.closing(RehearsalContainer(user, repository)) as services:
            yield services
