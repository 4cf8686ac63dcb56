"""Consent: one file for each approved contract, in the user's state directory, where no repository can put one."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any

from idumb.domain.errors import Refusal
from idumb.system import atomic, state_dir

SCHEMA = 1


class FileConsentStore:
    """Implements the port `ConsentStore` for the repository of one common dir."""

    def __init__(self, common_dir: str) -> None:
        self._common_dir = common_dir

    def given(self, contract_hash: str) -> bool:
        """Whether consent is on record. Refusal `consent.unsafe` when others could have written the record."""
        repository = repository_id(self._common_dir)
        path = os.path.join(state_dir.path(), "consent", repository, _file_name(contract_hash))
        if not os.path.lexists(path):
            return False
        _require_safe(state_dir.problem("consent", repository) or state_dir.unsafe(path))
        known = _read(path)
        return known.get("contract") == contract_hash and known.get("repository") == repository

    def record(self, contract_hash: str, *, phase: str, how: str, at: str) -> None:
        repository = repository_id(self._common_dir)
        record = {
            "schema": SCHEMA,
            "contract": contract_hash,
            "repository": repository,
            "path": os.path.realpath(self._common_dir),
            "phase": phase,
            "how": how,
            "at": at,
        }
        _require_safe(state_dir.problem("consent", repository))
        folder = state_dir.prepare("consent", repository)
        _require_safe(state_dir.problem("consent", repository))
        data = json.dumps(record, sort_keys=True, indent=2).encode("ascii") + b"\n"
        atomic.write(os.path.join(folder, _file_name(contract_hash)), data, mode=0o600)


def repository_id(common_dir: str) -> str:
    """SHA-256 of real path, device and inode: a copy, and another repository put at the same path, are strangers."""
    real = os.path.realpath(common_dir)
    found = os.stat(real)
    return hashlib.sha256(f"{real}\0{found.st_dev}\0{found.st_ino}".encode("utf-8", "surrogateescape")).hexdigest()


def _file_name(contract_hash: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40,128}", contract_hash):
        raise ValueError(f"no contract hash: {contract_hash!r}")
    return f"{contract_hash}.json"


def _read(path: str) -> dict[str, Any]:
    """The record; a damaged one is as good as none."""
    try:
        with open(path, "rb") as stream:
            known = json.loads(stream.read())
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
