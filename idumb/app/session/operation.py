"""One writing command: it owns the working tree, is recorded in the log, and updates the documents at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.app.attempt import projections
from idumb.app.core import kept_runs, open_attempt
from idumb.app.core.journal import Journal, operation_id
from idumb.app.core.services import Services, run_ref
from idumb.app.worktree import preconditions
from idumb.domain.errors import IdumbError
from idumb.domain.runs import run
from idumb.domain.runs.run import RunState


class Owned(Struct, frozen=True):
    """The right to write: an operation's id and a fencing token. `opened` are the journals in use."""

    services: Services
    operation: str
    fence: int
    command: str
    opened: list[Journal] = field(default_factory=list)

    def journal(self, state: RunState) -> Journal:
        """Return a journal whose first entry is the operation. `state` may have been read before.

        Refusal `run.moved-on` if another command has continued its run since.
        """
        journal = Journal(
            self.services.log, self.services.reporter, operation=self.operation, fence=self.fence, state=state
        )
        journal.append("operation.started", command=self.command, worktree=self.services.worktree)
        self.opened.append(journal)
        return journal

    def close(self, error: str | None) -> None:
        """Record how the operation ended. Operations that never started record nothing."""
        for journal in self.opened:
            self._project(journal)
            if journal.state.state == run.COMPLETED:
                with suppress(IdumbError):  # then the next command does it
                    self.services.history.fold(run_ref(self.services, journal.state.id, ""))
                    if outdated := kept_runs.outdated(self.services):
                        journal.write(replace(kept_runs.freed_event(outdated), run=journal.state.id))
                        kept_runs.free(self.services, outdated)
            journal.append("operation.finished", command=self.command, error=error)

    def _project(self, journal: Journal) -> None:
        """Update progress.json and state.json."""
        from idumb.app.contract import loading
        from idumb.app.session import state_file

        state = journal.state
        if state.id and projections.is_behind(self.services, state):
            with suppress(IdumbError):  # a command that needs the contract reports that it cannot be read
                projections.write_progress(self.services, loading.locked_contract(self.services, state), state)
        state_file.record(self.services, journal)


@contextmanager
def owned(services: Services, command: str, *, force: bool = False) -> Iterator[Owned]:
    """Own the working tree for one command. A command that lost it ends quietly: the new owner records it.

    `force` takes it from an owner that cannot be proven dead.
    """
    fence = services.owner.acquire(command, force=force)
    try:
        operation = operation_id(services.log, services.worktree, command, services.clock.now())
        holder = Owned(services, operation, fence, command)
        try:
            preconditions.remove_stale_files(services)
            open_attempt.refuse_command(services, command)
            yield holder
            holder.close(None)
        except IdumbError as problem:
            services.owner.guard()
            with suppress(IdumbError):  # the problem itself matters more than its record
                holder.close(problem.code)
            raise
        finally:
            _release_displaced(services)
    finally:
        services.owner.release()


@contextmanager
def recorded(services: Services, command: str, state: RunState | None = None) -> Iterator[Journal]:
    """Own the working tree for a command of a run, or of none, and record it: the log has every writing command."""
    with owned(services, command) as holder:
        yield holder.journal(state or RunState())


def _release_displaced(services: Services) -> None:
    """Name the files that a restore of this command, or of a killed one, displaced and that somebody wrote to since."""
    try:
        services.owner.guard()
    except IdumbError:
        return  # the new owner does it
    for path in services.trees.release_displaced():
        services.reporter.note(
            f"A file was saved while idumb replaced it. What was saved is in {path}; move or remove it"
        )
