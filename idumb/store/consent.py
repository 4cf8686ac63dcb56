"""Consent and approvals: one file each in the user's state directory, where no repository can put one."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from typing import Any

from idumb import lazy_pattern
from idumb.domain import canonical_json
from idumb.domain.consent import approval as approvals
from idumb.domain.consent.approval import StoredApproval
from idumb.domain.errors import InputError, Refusal
from idumb.store import private_records
from idumb.store.private_records import PrivateRecords
from idumb.system.files import atomic_write

SCHEMA = 1
_APPROVAL = lazy_pattern.compile(r"[0-9a-f]{40,128}\.[0-9a-f]{16,64}\.json")
_CONSENT = lazy_pattern.compile(r"[0-9a-f]{40,128}\.json")
_QUESTION = lazy_pattern.compile(r"consent\.[0-9a-f]{40,128}\.json")
_RECORD = lazy_pattern.compile(r"[0-9a-f]{40,128}(?:\.[0-9a-f]{16,64})?\.json")
_LARGEST = 64 * 1024 * 1024


class FileConsentStore:
    """Consent in the user's state directory, for a repository or for the project in one of its folders.

    It is keyed by the hash of the contract.
    """

    def __init__(self, common_dir: str, project: str = "") -> None:
        self._common_dir = common_dir
        hint = "make the folder private (owned by you, mode 0700), then approve again"
        self._records = PrivateRecords("consent", common_dir, "consent", hint, project)

    @property
    def folder(self) -> str:
        """Where consent, approvals and open consent questions of the repository are stored."""
        return self._records.folder

    def has_consent(self, contract_hash: str) -> bool:
        """Return whether consent is on record. Refusal `consent.unsafe` if others could have written the record."""
        return self._record(contract_hash) is not None

    def agreed(self, contract_hash: str) -> Mapping[str, Any]:
        """Return nothing without consent."""
        return _agreed(self._record(contract_hash) or {})

    def _record(self, contract_hash: str) -> dict[str, Any] | None:
        record = self._records.read(_file_name(contract_hash))
        if record is None or record.get("contract") != contract_hash:
            return None
        return record if record.get("repository") == self._records.repository else None

    def all_agreed(self, phase: str) -> tuple[Mapping[str, Any], ...]:
        """The stored objects of all consents of a phase, newest first."""
        consents = [record for _, record in self._own(_CONSENT) if record.get("phase") == phase]
        consents.sort(key=lambda record: str(record.get("at")), reverse=True)
        return tuple(_agreed(record) for record in consents)

    def record(
        self, contract_hash: str, *, phase: str, how: str, at: str, agreed: Mapping[str, Any] | None = None
    ) -> None:
        """Record consent. `agreed` is a JSON object about what the hash does not cover."""
        record = {
            "schema": SCHEMA,
            "contract": contract_hash,
            "repository": self._records.repository,
            "path": os.path.realpath(self._common_dir),
            "phase": phase,
            "how": how,
            "at": at,
            "agreed": dict(agreed or {}),
        }
        self._records.write(_file_name(contract_hash), record)

    def approvals(self, phase: str) -> tuple[StoredApproval, ...]:
        """Newest first; records that are damaged or of another repository are skipped.

        Refusal `consent.unsafe` as for `given`.
        """
        stored = [kept for name, record in self._own(_APPROVAL) if (kept := _kept(name, record, phase))]
        return tuple(sorted(stored, key=lambda kept: kept.approval.validated_at, reverse=True))

    def phases(self) -> tuple[str, ...]:
        """Records that are damaged or of another repository are skipped. Refusal `consent.unsafe` as for `given`."""
        parts = (record.get("approval", record) for _, record in self._own(_RECORD))
        phases = {part.get("phase") for part in parts if isinstance(part, dict)}
        return tuple(sorted(phase for phase in phases if isinstance(phase, str)))

    def withdraw(self, phase: str) -> int:
        """Delete the plain consent to every contract of a phase; return the number."""
        names = [name for name, record in self._own(_CONSENT) if record.get("phase") == phase]
        for name in names:
            os.unlink(os.path.join(self.folder, name))
        return len(names)

    def _own(self, pattern: re.Pattern[str]) -> list[tuple[str, dict[str, Any]]]:
        """Return (name, record) of this repository's records with such names."""
        repository = self._records.repository
        return [(name, record) for name, record in self._records.all(pattern) if record.get("repository") == repository]

    def approve(self, kept: StoredApproval) -> None:
        """Store an approval; it replaces one with the same contract and nonce."""
        approval = kept.approval
        name = _file_name(approval.contract_hash).replace(".json", f".{approval.nonce}.json")
        if not _APPROVAL.fullmatch(name):
            raise ValueError(f"no nonce: {approval.nonce!r}")
        record = {
            "repository": self._records.repository,
            "path": os.path.realpath(self._common_dir),
            "approval": approval.as_dict(),
            "signature": kept.signature,
            "revoked": kept.revoked,
        }
        self._records.write(name, record)

    def keep_question(self, question: str, record: Mapping[str, Any]) -> None:
        """Store a question about consent until it is answered. Its id is `consent.` and a hash."""
        if not _QUESTION.fullmatch(f"{question}.json"):
            raise ValueError(f"no question about consent: {question!r}")
        self._records.write(f"{question}.json", {**record, "repository": self._records.repository})

    def questions(self) -> tuple[Mapping[str, Any], ...]:
        """The stored questions of this repository. Refusal `consent.unsafe`."""
        return tuple(record for _, record in self._own(_QUESTION))

    def forget_question(self, question: str) -> None:
        if _QUESTION.fullmatch(f"{question}.json"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, f"{question}.json"))

    def mark(self) -> str:
        """A text that changes whenever consent or an approval is given or revoked."""
        try:
            status = os.stat(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return f"{status.st_ino}.{status.st_mtime_ns}.{status.st_ctime_ns}"

    def nonce(self) -> str:
        """A new unique name for an approval."""
        return os.urandom(16).hex()

    def export(self, kept: StoredApproval, path: str) -> str:
        """Write a signed approval to a new file; return its absolute path. Refusal `approval.file-exists`."""
        whole = os.path.abspath(os.path.expanduser(path))
        record = {"approval": kept.approval.as_dict(), "signature": kept.signature}
        try:
            atomic_write.create(whole, private_records.encoded(record), mode=0o644)
        except FileExistsError:
            raise Refusal(
                "approval.file-exists", f"{path} already exists.", hint="Choose another name, or move it away"
            ) from None
        return whole

    def read_file(self, path: str) -> StoredApproval:
        """Return the approval of a signed file; other content is ignored."""
        try:
            with open(os.path.expanduser(path), "rb") as stream:
                record = canonical_json.decode(stream.read(_LARGEST + 1)[:_LARGEST])
        except OSError as problem:
            raise _unreadable(path, problem.strerror or str(problem)) from problem
        except ValueError:
            raise _unreadable(path, "it is not JSON") from None
        approval = approvals.from_dict(record.get("approval")) if isinstance(record, dict) else None
        if approval is None or not isinstance(record.get("signature"), str):
            raise _unreadable(path, "it is not a signed approval that this version of idumb can read")
        return StoredApproval(approval, record["signature"])


class ForgetfulConsent(FileConsentStore):
    """Knows the recorded consent; new consent counts for this process alone."""

    def __init__(self, common_dir: str, project: str = "") -> None:
        super().__init__(common_dir, project)
        self._now: dict[str, Mapping[str, Any]] = {}
        self._approved: list[StoredApproval] = []

    def has_consent(self, contract_hash: str) -> bool:
        return contract_hash in self._now or super().has_consent(contract_hash)

    def agreed(self, contract_hash: str) -> Mapping[str, Any]:
        return self._now[contract_hash] if contract_hash in self._now else super().agreed(contract_hash)

    def record(
        self,
        contract_hash: str,
        *,
        phase: str,  # noqa: ARG002 - only the process knows it
        how: str,  # noqa: ARG002
        at: str,  # noqa: ARG002
        agreed: Mapping[str, Any] | None = None,
    ) -> None:
        self._now[contract_hash] = agreed or {}

    def approvals(self, phase: str) -> tuple[StoredApproval, ...]:
        return (*(kept for kept in reversed(self._approved) if kept.approval.phase == phase), *super().approvals(phase))

    def approve(self, kept: StoredApproval) -> None:
        self._approved.append(kept)


def _agreed(record: Mapping[str, Any]) -> Mapping[str, Any]:
    agreed = record.get("agreed")
    return agreed if isinstance(agreed, dict) else {}


def _unreadable(path: str, why: str) -> InputError:
    return InputError(
        "approval.unreadable",
        f"The approval file {path} cannot be used: {why}.",
        hint="idumb approve N --sign KEY --file PATH makes one",
    )


def _kept(name: str, record: Mapping[str, Any], phase: str) -> StoredApproval | None:
    """Return the approval in a record whose name and phase match."""
    approval = approvals.from_dict(record.get("approval"))
    if approval is None or approval.phase != phase or name != f"{approval.contract_hash}.{approval.nonce}.json":
        return None
    signature, revoked = record.get("signature"), record.get("revoked")
    if revoked is not None and not isinstance(revoked, dict):
        revoked = {}
    return StoredApproval(approval, signature if isinstance(signature, str) else None, revoked)


def _file_name(contract_hash: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40,128}", contract_hash):
        raise ValueError(f"no contract hash: {contract_hash!r}")
    return f"{contract_hash}.json"
