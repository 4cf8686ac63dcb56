"""The services of a rehearsal: those of `bootstrap`, on a throw-away copy of the work tree."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from idumb.bootstrap import Wired

if TYPE_CHECKING:
    from idumb.app.core.services import Services
    from idumb.git.discover import Repository
    from idumb.store.event_log import SqliteEventLog


class Rehearsal(Wired):
    """What is read, plans, configuration, policy, consent, is the user's; what is written is the copy's.

    Nobody is asked anything: an answer would be of no use afterwards.
    """

    def __init__(self, user: Wired, place: Repository) -> None:  # pylint: disable=super-init-not-called
        from idumb.views import ask

        self.place = place
        place.guard = self._guard
        self.settings, self.policy, self.plans = user.settings, user.policy, user.plans
        self.consent, self.signatures = user.consent, user.signatures
        self.redactor, self.secrets = user.redactor, user.secrets
        # What an approval is bound to is looked at where it was given.
        self.files, self.adapters = user.files, user.adapters
        self.reporter, self.interrupts, self.surroundings = user.reporter, user.interrupts, user.surroundings
        self.asker = ask.Nobody()

    @cached_property
    def log(self) -> SqliteEventLog:
        from idumb.store.temporary_log import ThrowAwayLog

        return ThrowAwayLog(self.place.common_dir, self.worktree, self.clock, lambda: self.secrets)

    def close(self) -> None:
        """Nothing is saved for a next command."""
        if "log" in self.__dict__:
            self.log.database.close()


class Rehearsals:
    """Opens rehearsals with one user's services, in which consent is not kept from then on."""

    def __init__(self, user: Wired) -> None:
        from idumb.store.temporary_log import ForgetfulConsent

        self._user = user
        user.consent = ForgetfulConsent(user.place.common_dir)

    @contextlib.contextmanager
    def open(self, also: Iterable[str]) -> Iterator[Services]:
        """A copy of HEAD, branch and every file that is not ignored, and of ignored ones that are named."""
        from idumb.git.clones import dry_run_clone
        from idumb.markdown.settings import configuration

        with dry_run_clone.made(self._user.place, self._user.history.head(), [*also, configuration.PATH]) as place:
            copy = Rehearsal(self._user, place)
            try:
                yield copy
            finally:
                copy.close()
