"""Approvals, saved answers and signatures, kept where no repository can put one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.consent.approval import StoredApproval
    from idumb.domain.runs.saved_answers import SavedAnswer


class ConsentStore(Protocol):
    """Consent in the user's state directory, keyed by repository and contract hash."""

    def given(self, contract_hash: str) -> bool: ...

    def record(
        self, contract_hash: str, *, phase: str, how: str, at: str, agreed: Mapping[str, Any] | None = None
    ) -> None:
        """`agreed` is what the hash does not tell of what was agreed to, any JSON object."""

    def agreed(self, contract_hash: str) -> Mapping[str, Any]:
        """What `record` was given with it; empty where there is no consent."""

    def all_agreed(self, phase: str) -> tuple[Mapping[str, Any], ...]:
        """The same of every consent under a phase, the newest first."""

    def approvals(self, phase: str) -> tuple[StoredApproval, ...]:
        """Every approval of a phase that was given for this repository, the newest first."""

    def approve(self, kept: StoredApproval) -> None:
        """Keep an approval; one of the same contract and nonce is replaced."""

    def phases(self) -> tuple[str, ...]:
        """Every phase, as it was spelled, of which this repository has an approval or consent."""

    def withdraw(self, phase: str) -> int:
        """Forget the plain consent to every contract of a phase; how many there were."""

    def keep_question(self, question: str, record: Mapping[str, Any]) -> None:
        """Keep a question about consent until it is answered; `question` is `consent.` and a hash."""

    def questions(self) -> tuple[Mapping[str, Any], ...]:
        """What `keep_question` was given for this repository; Refusal `consent.unsafe` as elsewhere."""

    def forget_question(self, question: str) -> None: ...

    def mark(self) -> str:
        """Another text as soon as consent or an approval was given or taken back."""

    def nonce(self) -> str:
        """A name that no approval had before."""

    def export(self, kept: StoredApproval, path: str) -> str:
        """Write a signed approval to a new file; its absolute path. Refusal `approval.file-exists`."""

    def read_file(self, path: str) -> StoredApproval:
        """A signed approval from a file; InputError `approval.unreadable`."""


class SavedAnswers(Protocol):
    """Answers that a person asked to be remembered: in the user's state directory, for this repository alone."""

    def all(self) -> tuple[SavedAnswer, ...]: ...

    def get(self, question: str) -> SavedAnswer | None: ...

    def keep(self, answer: SavedAnswer) -> None: ...

    def forget(self, question: str) -> bool:
        """Whether there was one."""


class Signatures(Protocol):
    """Signatures over approvals, by the user's own keys."""

    def sign(self, data: bytes, key: str, *, interactive: bool) -> str:
        """Armoured signature of a key file. Refusal `approval.not-signed` with the signer's words."""

    def signer(self, data: bytes, signature: str) -> str | None:
        """Who signed, by the user's list of allowed signers; None where nobody on it did.

        Refusal `approval.no-signers` where there is no such list, or others could have written it.
        """

    def intact(self, data: bytes, signature: str) -> bool:
        """Whether a signature is one over these bytes, whoever made it."""

    def has_list(self) -> bool:
        """Whether there is a list of allowed signers."""
