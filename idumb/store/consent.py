"""What a person agreed to: one file for each grant in the user's state directory, where no repository can put one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

from idumb.domain import canonical_json
from idumb.domain import grant as grants
from idumb.domain.action import Action
from idumb.domain.errors import InputError, Refusal
from idumb.domain.grant import Grant
from idumb.system import atomic_write, private_folders, user_folders

_GRANT = re.compile(r"[0-9a-f]{16}\.[0-9a-f]{16,64}\.json")
_QUESTION = re.compile(r"consent\.[0-9a-f]{40,128}\.json")
_FOLDER = "consent"
_LARGEST = 64 * 1024 * 1024


class FileConsentStore:
    """Grants in the user's state directory, for a repository or for the project in one of its folders.

    Records that are damaged or of another repository are skipped. Refusal `consent.unsafe` if others could have
    written one.
    """

    def __init__(self, common_dir: str, project: str = "") -> None:
        self._common_dir = common_dir
        self._project = project

    @property
    def _repository(self) -> str:
        return user_folders.repository_id(self._common_dir, self._project)

    @property
    def folder(self) -> str:
        """Where grants and open consent questions of the repository are stored."""
        return os.path.join(user_folders.path(), _FOLDER, self._repository)

    def grants(self, place: str) -> tuple[Grant, ...]:
        """The grants of a phase, or those of roles, newest first."""
        stored = (_grant(name, record) for name, record in self._own(re.compile(f"{_prefix(place)}\\..*")))
        of_place = [grant for grant in stored if grant is not None and grant.place == place]
        return tuple(sorted(of_place, key=lambda grant: grant.at, reverse=True))

    def places(self) -> tuple[str, ...]:
        stored = (_grant(name, record) for name, record in self._own(_GRANT))
        return tuple(sorted({grant.place for grant in stored if grant is not None}))

    def _own(self, pattern: re.Pattern[str]) -> list[tuple[str, dict[str, Any]]]:
        """Return (name, record) of this repository's records with such names, sorted; damaged ones are skipped."""
        repository = self._repository
        _require(user_folders.problem(_FOLDER, repository))
        try:
            names = sorted(name for name in os.listdir(self.folder) if pattern.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):
            return []
        read = [(name, _read(os.path.join(self.folder, name))) for name in names]
        return [(name, record) for name, record in read if record.get("repository") == repository]

    def _write(self, name: str, record: Mapping[str, Any]) -> None:
        _require(user_folders.problem(_FOLDER, self._repository))
        folder = user_folders.prepare(_FOLDER, self._repository)
        _require(user_folders.problem(_FOLDER, self._repository))
        atomic_write.write(os.path.join(folder, name), _encoded(record), mode=0o600)

    def record(self, grant: Grant) -> None:
        """Store a grant; it replaces one with the same place and nonce."""
        name = _file_name(grant)
        if not _GRANT.fullmatch(name):
            raise ValueError(f"no nonce: {grant.nonce!r}")
        record = {
            "repository": self._repository,
            "path": os.path.realpath(self._common_dir),
            "grant": grant.as_dict(),
            "signature": grant.signature,
            "revoked": grant.revoked,
        }
        self._write(name, record)

    def keep_question(self, question: str, record: Mapping[str, Any]) -> None:
        """Store a question about consent until it is answered. Its id is `consent.` and a hash."""
        self._write(f"{question}.json", {**record, "repository": self._repository})

    def questions(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """The id and the record of each stored question."""
        return tuple((name.removesuffix(".json"), record) for name, record in self._own(_QUESTION))

    def forget_question(self, question: str) -> None:
        """Remove a question that `questions` returned."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, f"{question}.json"))

    def mark(self) -> str:
        """A text that changes whenever something is agreed to or revoked."""
        try:
            status = os.stat(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return f"{status.st_ino}.{status.st_mtime_ns}.{status.st_ctime_ns}"

    def nonce(self) -> str:
        """A new unique name for a grant."""
        return os.urandom(16).hex()

    def person(self) -> str:
        """The name of the user who agrees."""
        return user_folders.user_name()

    def export(self, grant: Grant, path: str) -> str:
        """Write a signed approval to a new file; return its absolute path. Refusal `approval.file-exists`."""
        whole = os.path.abspath(os.path.expanduser(path))
        record = {"grant": grant.as_dict(), "signature": grant.signature}
        try:
            atomic_write.create(whole, _encoded(record), mode=0o644)
        except FileExistsError:
            raise Refusal(
                "approval.file-exists", f"{path} already exists.", hint="Choose another name, or move it away"
            ) from None
        return whole

    def read_file(self, path: str) -> Grant:
        """Return the approval of a signed file; other content is ignored."""
        try:
            with open(os.path.expanduser(path), "rb") as stream:
                record = canonical_json.decode(stream.read(_LARGEST))
        except OSError as problem:
            raise _unreadable(path, problem.strerror or str(problem)) from problem
        except ValueError:
            raise _unreadable(path, "it is not JSON") from None
        grant = grants.from_dict(record.get("grant"), record.get("signature")) if isinstance(record, dict) else None
        if grant is None or grant.signature is None:
            raise _unreadable(path, "it is not a signed approval that this version of idumb can read")
        return grant


class ForgetfulConsent(FileConsentStore):
    """Knows what was recorded; what is agreed to now counts for this process alone."""

    def __init__(self, common_dir: str, project: str = "") -> None:
        super().__init__(common_dir, project)
        self._now: list[Grant] = []

    def grants(self, place: str) -> tuple[Grant, ...]:
        return (*(grant for grant in reversed(self._now) if grant.place == place), *super().grants(place))

    def record(self, grant: Grant) -> None:
        self._now.append(grant)


def _unreadable(path: str, why: str) -> InputError:
    return InputError(
        "approval.unreadable",
        f"The approval file {path} cannot be used: {why}.",
        hint=Action.of("help", "approval"),
    )


def _grant(name: str, record: Mapping[str, Any]) -> Grant | None:
    """Return the grant in a record whose name and content agree."""
    grant = grants.from_dict(record.get("grant"), record.get("signature"), record.get("revoked"))
    return grant if grant is not None and name == _file_name(grant) else None


def _file_name(grant: Grant) -> str:
    return f"{_prefix(grant.place)}.{grant.nonce}.json"


def _prefix(place: str) -> str:
    return hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _require(problem: str | None) -> None:
    if problem is not None:
        hint = "make the folder private (owned by you, mode 0700), then approve again"
        raise Refusal("consent.unsafe", f"consent cannot be trusted: {problem}", hint=hint)


def _read(path: str) -> dict[str, Any]:
    """Return the record of a file; an empty one if it is damaged. OSError if it cannot be read: it may hold consent."""
    _require(private_folders.unsafe(path))
    try:
        with open(path, "rb") as stream:
            record = canonical_json.decode(stream.read())
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _encoded(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, indent=2).encode("ascii") + b"\n"
