"""Consent and approvals: one file each in the user's state directory, where no repository can put one."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.consent import approval as approvals
from idumb.domain.consent.approval import StoredApproval
from idumb.domain.errors import InputError, Refusal
from idumb.system.files import atomic_write, user_folders

SCHEMA = 1
_APPROVAL = re.compile(r"[0-9a-f]{40,128}\.[0-9a-f]{16,64}\.json")
_CONSENT = re.compile(r"[0-9a-f]{40,128}\.json")
_QUESTION = re.compile(r"consent\.[0-9a-f]{40,128}\.json")
_RECORD = re.compile(r"[0-9a-f]{40,128}(?:\.[0-9a-f]{16,64})?\.json")
_LARGEST = 64 * 1024 * 1024


def folder_of(common_dir: str) -> str:
    """Where consent, approvals and open consent questions of one repository are stored."""
    return os.path.join(user_folders.path(), "consent", user_folders.repository_id(common_dir))


class FileConsentStore:
    """Implements the port `ConsentStore` for the repository of one common dir."""

    def __init__(self, common_dir: str) -> None:
        self._common_dir = common_dir

    def given(self, contract_hash: str) -> bool:
        """Return whether consent is on record. Refusal `consent.unsafe` if others could have written the record."""
        return self._record(contract_hash) is not None

    def agreed(self, contract_hash: str) -> Mapping[str, Any]:
        """Return nothing without consent, and for records of an older version."""
        return _agreed(self._record(contract_hash) or {})

    def _record(self, contract_hash: str) -> dict[str, Any] | None:
        repository = user_folders.repository_id(self._common_dir)
        path = os.path.join(user_folders.path(), "consent", repository, _file_name(contract_hash))
        if not os.path.lexists(path):
            return None
        _require_safe(user_folders.problem("consent", repository) or user_folders.unsafe(path))
        known = _read(path)
        return known if known.get("contract") == contract_hash and known.get("repository") == repository else None

    def all_agreed(self, phase: str) -> tuple[Mapping[str, Any], ...]:
        repository = user_folders.repository_id(self._common_dir)
        found = [record for _, record in self._records(repository, _CONSENT) if record.get("phase") == phase]
        found.sort(key=lambda record: str(record.get("at")), reverse=True)
        return tuple(_agreed(record) for record in found)

    def record(
        self, contract_hash: str, *, phase: str, how: str, at: str, agreed: Mapping[str, Any] | None = None
    ) -> None:
        repository = user_folders.repository_id(self._common_dir)
        record = {
            "schema": SCHEMA,
            "contract": contract_hash,
            "repository": repository,
            "path": os.path.realpath(self._common_dir),
            "phase": phase,
            "how": how,
            "at": at,
            "agreed": dict(agreed or {}),
        }
        _require_safe(user_folders.problem("consent", repository))
        folder = user_folders.prepare("consent", repository)
        _require_safe(user_folders.problem("consent", repository))
        atomic_write.write(os.path.join(folder, _file_name(contract_hash)), _encoded(record), mode=0o600)

    def approvals(self, phase: str) -> tuple[StoredApproval, ...]:
        """Newest first; records that are damaged or of another repository are skipped.

        Refusal `consent.unsafe` as for `given`.
        """
        repository = user_folders.repository_id(self._common_dir)
        folder = os.path.join(user_folders.path(), "consent", repository)
        _require_safe(user_folders.problem("consent", repository))
        names = sorted(name for name in _names(folder) if _APPROVAL.fullmatch(name))
        found = [kept for name in names if (kept := _kept(os.path.join(folder, name), name, repository, phase))]
        return tuple(sorted(found, key=lambda kept: kept.approval.validated_at, reverse=True))

    def phases(self) -> tuple[str, ...]:
        """Records that are damaged or of another repository are skipped. Refusal `consent.unsafe` as for `given`."""
        repository, found = user_folders.repository_id(self._common_dir), set()
        for _, record in self._records(repository, _RECORD):
            approval = record.get("approval", record)
            found.add(approval.get("phase") if isinstance(approval, dict) else None)
        return tuple(sorted(phase for phase in found if isinstance(phase, str)))

    def withdraw(self, phase: str) -> int:
        repository = user_folders.repository_id(self._common_dir)
        found = [path for path, record in self._records(repository, _CONSENT) if record.get("phase") == phase]
        for path in found:
            os.unlink(path)
        return len(found)

    def _records(self, repository: str, names: re.Pattern[str]) -> list[tuple[str, dict[str, Any]]]:
        """Return (path, record) of this repository's files with such names."""
        folder = os.path.join(user_folders.path(), "consent", repository)
        _require_safe(user_folders.problem("consent", repository))
        found = []
        for path in (os.path.join(folder, name) for name in sorted(_names(folder)) if names.fullmatch(name)):
            _require_safe(user_folders.unsafe(path))
            record = _read(path)
            if record.get("repository") == repository:
                found.append((path, record))
        return found

    def approve(self, kept: StoredApproval) -> None:
        repository = user_folders.repository_id(self._common_dir)
        approval = kept.approval
        name = _file_name(approval.contract_hash).replace(".json", f".{approval.nonce}.json")
        if not _APPROVAL.fullmatch(name):
            raise ValueError(f"no nonce: {approval.nonce!r}")
        _require_safe(user_folders.problem("consent", repository))
        folder = user_folders.prepare("consent", repository)
        _require_safe(user_folders.problem("consent", repository))
        record = {"repository": repository, "path": os.path.realpath(self._common_dir), **_as_record(kept)}
        atomic_write.write(os.path.join(folder, name), _encoded(record), mode=0o600)

    def keep_question(self, question: str, record: Mapping[str, Any]) -> None:
        repository = user_folders.repository_id(self._common_dir)
        if not _QUESTION.fullmatch(f"{question}.json"):
            raise ValueError(f"no question about consent: {question!r}")
        _require_safe(user_folders.problem("consent", repository))
        folder = user_folders.prepare("consent", repository)
        _require_safe(user_folders.problem("consent", repository))
        known = {**record, "repository": repository}
        atomic_write.write(os.path.join(folder, f"{question}.json"), _encoded(known), mode=0o600)

    def questions(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(record for _, record in self._records(user_folders.repository_id(self._common_dir), _QUESTION))

    def forget_question(self, question: str) -> None:
        folder = folder_of(self._common_dir)
        if _QUESTION.fullmatch(f"{question}.json"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, f"{question}.json"))

    def mark(self) -> str:
        folder = folder_of(self._common_dir)
        try:
            found = os.stat(folder)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return f"{found.st_ino}.{found.st_mtime_ns}.{found.st_ctime_ns}"

    def nonce(self) -> str:
        return os.urandom(16).hex()

    def export(self, kept: StoredApproval, path: str) -> str:
        whole = os.path.abspath(os.path.expanduser(path))
        record = {"approval": kept.approval.as_dict(), "signature": kept.signature}
        try:
            atomic_write.create(whole, _encoded(record), mode=0o644)
        except FileExistsError:
            raise Refusal(
                "approval.file-exists", f"{path} is there already.", hint="Choose another name, or move it away"
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
            raise _unreadable(path, "it is no JSON") from None
        approval = approvals.from_dict(record.get("approval")) if isinstance(record, dict) else None
        if approval is None or not isinstance(record.get("signature"), str):
            raise _unreadable(path, "it is no signed approval of this version of idumb")
        return StoredApproval(approval, record["signature"])


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


def _agreed(record: Mapping[str, Any]) -> Mapping[str, Any]:
    found = record.get("agreed")
    return found if isinstance(found, dict) else {}


def _unreadable(path: str, why: str) -> InputError:
    return InputError(
        "approval.unreadable",
        f"The approval file {path} cannot be used: {why}.",
        hint="idumb approve N --sign KEY --file PATH makes one",
    )


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _kept(path: str, name: str, repository: str, phase: str) -> StoredApproval | None:
    """Return the approval in a file whose name, repository and phase match."""
    _require_safe(user_folders.unsafe(path))
    record = _read(path)
    approval = approvals.from_dict(record.get("approval"))
    if approval is None or record.get("repository") != repository or approval.phase != phase:
        return None
    if name != f"{approval.contract_hash}.{approval.nonce}.json":
        return None
    signature, revoked = record.get("signature"), record.get("revoked")
    if revoked is not None and not isinstance(revoked, dict):
        revoked = {}
    return StoredApproval(approval, signature if isinstance(signature, str) else None, revoked)


def _as_record(kept: StoredApproval) -> dict[str, Any]:
    return {"approval": kept.approval.as_dict(), "signature": kept.signature, "revoked": kept.revoked}


def _encoded(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, indent=2).encode("ascii") + b"\n"


def _file_name(contract_hash: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40,128}", contract_hash):
        raise ValueError(f"no contract hash: {contract_hash!r}")
    return f"{contract_hash}.json"


def _read(path: str) -> dict[str, Any]:
    """Return the record; None for a damaged one."""
    try:
        with open(path, "rb") as stream:
            known = canonical_json.decode(stream.read())
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def _require_safe(problem: str | None) -> None:
    if problem is not None:
        raise Refusal(
            "consent.unsafe",
            f"consent cannot be trusted: {problem}",
            hint="make the folder yours alone (owner you, mode 0700), then approve again",
        )
