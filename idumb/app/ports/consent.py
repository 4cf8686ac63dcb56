"""Approvals, saved answers and signatures, stored outside the repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # types that only some commands use; those commands import them
    from idumb.domain.consent.approval import StoredApproval
    from idumb.domain.runs.saved_answers import SavedAnswer


class ConsentStore(Protocol):
    """Consent in the user's state directory, keyed by repository and contract hash."""

    def has_consent(self, contract_hash: str) -> bool: ...

    def record(
        self, contract_hash: str, *, phase: str, how: str, at: str, agreed: Mapping[str, Any] | None = None
    ) -> None:
        """Record consent. `agreed` is a JSON object about what the hash does not cover."""

    def agreed(self, contract_hash: str) -> Mapping[str, Any]:
        """The object that `record` stored; empty without consent."""

    def all_agreed(self, phase: str) -> tuple[Mapping[str, Any], ...]:
        """The stored objects of all consents of a phase, newest first."""

    def approvals(self, phase: str) -> tuple[StoredApproval, ...]:
        """All approvals of a phase in this repository, newest first."""

    def approve(self, kept: StoredApproval) -> None:
        """Store an approval; it replaces one with the same contract and nonce."""

    def phases(self) -> tuple[str, ...]:
        """The phases, as they were spelled, that have an approval or consent in this repository."""

    def withdraw(self, phase: str) -> int:
        """Delete the plain consent to every contract of a phase; return the number."""

    def keep_question(self, question: str, record: Mapping[str, Any]) -> None:
        """Store a question about consent until it is answered. Its id is `consent.` and a hash."""

    def questions(self) -> tuple[Mapping[str, Any], ...]:
        """The stored questions of this repository. Refusal `consent.unsafe`."""

    def forget_question(self, question: str) -> None: ...

    def mark(self) -> str:
        """A text that changes whenever consent or an approval is given or revoked."""

    def nonce(self) -> str:
        """A new unique name for an approval."""

    def export(self, kept: StoredApproval, path: str) -> str:
        """Write a signed approval to a new file; return its absolute path. Refusal `approval.file-exists`."""

    def read_file(self, path: str) -> StoredApproval:
        """Read a signed approval. InputError `approval.unreadable`."""


class SavedAnswers(Protocol):
    """Answers that the user asked to save, in the user's state directory, for this repository alone."""

    def all(self) -> tuple[SavedAnswer, ...]: ...

    def get(self, question: str) -> SavedAnswer | None: ...

    def keep(self, answer: SavedAnswer) -> None: ...

    def forget(self, question: str) -> bool:
        """Delete a saved answer; return whether there was one."""


class Signatures(Protocol):
    """Signatures of approvals."""

    def sign(self, data: bytes, key: str, *, interactive: bool) -> str:
        """Sign with a key file; return the armored signature. Refusal `approval.not-signed`."""

    def signer(self, data: bytes, signature: str) -> str | None:
        """The signer, by the user's list of allowed signers; None if the signer is not on it.

        Refusal `approval.no-signers` if there is no such list, or if other users can write it.
        """

    def intact(self, data: bytes, signature: str) -> bool:
        """Whether this is a valid signature of these bytes by any key."""

    def has_list(self) -> bool:
        """Whether there is a list of allowed signers."""
