"""A temporary event log and consent store: for a dry run, which leaves no trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from idumb.app.ports.host import Clock
from idumb.domain.consent.approval import StoredApproval
from idumb.store import connection
from idumb.store.consent import FileConsentStore
from idumb.store.event_log import SqliteEventLog

if TYPE_CHECKING:
    from idumb.system.redaction import Redactor


class ThrowAwayLog(SqliteEventLog):
    """An event log without a copy in the user's state directory; it is removed with its folder."""

    def __init__(
        self, common_dir: str, worktree: str, clock: Clock, redactor: Callable[[], Redactor] | None = None
    ) -> None:
        super().__init__(common_dir, worktree, clock, redactor=redactor)
        self.database = connection.Database(common_dir, copied=False)


class ForgetfulConsent(FileConsentStore):
    """Knows the recorded consent; new consent counts for this process alone."""

    def __init__(self, common_dir: str) -> None:
        super().__init__(common_dir)
        self._now: dict[str, Mapping[str, Any]] = {}
        self._approved: list[StoredApproval] = []

    def given(self, contract_hash: str) -> bool:
        return contract_hash in self._now or super().given(contract_hash)

    def agreed(self, contract_hash: str) -> Mapping[str, Any]:
        return self._now[contract_hash] if contract_hash in self._now else super().agreed(contract_hash)

    def record(
        self,
        contract_hash: str,
        *,
        phase: str,  # noqa: ARG002 - the port's signature
        how: str,  # noqa: ARG002
        at: str,  # noqa: ARG002
        agreed: Mapping[str, Any] | None = None,
    ) -> None:
        self._now[contract_hash] = agreed or {}

    def approvals(self, phase: str) -> tuple[StoredApproval, ...]:
        return (*(kept for kept in reversed(self._approved) if kept.approval.phase == phase), *super().approvals(phase))

    def approve(self, kept: StoredApproval) -> None:
        self._approved.append(kept)
