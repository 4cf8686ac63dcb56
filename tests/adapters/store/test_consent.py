"""Consent and approvals are stored in the user's state directory and never in a repository (R-LOCK-3, R-LOCK-4)."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import asdict, replace

from idumb.domain import grant as grants
from idumb.domain.errors import Refusal
from idumb.domain.grant import APPROVE, Grant
from idumb.store.consent import FileConsentStore, ForgetfulConsent
from idumb.system import user_folders
from tests.support.cases import every
from tests.support.errors import refusing


def agreed(signature: str | None = None, **more: Any) -> Grant:
    fields: dict[str, Any] = {
        "place": "1",
        "parts": {"contract": grants.part("a" * 64), "plans": grants.part({"p": "1"})},
        "by": "pat",
        "at": "2026-01-02T03:04:05.000000Z",
        "how": APPROVE,
        "nonce": "0" * 32,
        **more,
    }
    return Grant(**fields, signature=signature)


@pytest.fixture
def consent(common_dir: Path) -> FileConsentStore:
    return FileConsentStore(str(common_dir))


def give(consent: FileConsentStore) -> Path:
    """Record consent; return its file."""
    consent.record(agreed())
    (place,) = Path(user_folders.path()).rglob("*.json")
    return place


def test_there_is_no_consent_before_it_is_recorded_and_reading_creates_nothing(
    consent: FileConsentStore, home: Path
) -> None:
    assert (consent.grants("1"), consent.mark()) == ((), "")
    assert sorted(place.name for place in home.iterdir()) == ["gitconfig"]


def test_what_a_rehearsal_agrees_to_is_not_stored(consent: FileConsentStore, common_dir: Path) -> None:
    """R-RUN-11."""
    give(consent)
    rehearsal = ForgetfulConsent(str(common_dir))
    rehearsal.record(agreed(nonce="1" * 32))
    assert rehearsal.grants("1") == (agreed(nonce="1" * 32), agreed())
    assert consent.grants("1") == (agreed(),)


def test_folders_and_file_belong_to_the_user_alone(consent: FileConsentStore) -> None:
    before = os.umask(0)
    try:
        place = give(consent)
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    root = Path(user_folders.path())
    folders = [root, *(folder for folder in root.rglob("*") if folder.is_dir())]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_neither_a_copy_nor_another_repository_at_the_same_path_has_its_consent(
    consent: FileConsentStore, common_dir: Path
) -> None:
    """A link to the repository is the repository."""
    give(consent)
    copy, link = common_dir.with_name("copy"), common_dir.with_name("link")
    shutil.copytree(common_dir, copy)
    link.symlink_to(common_dir)
    assert [FileConsentStore(str(place)).grants("1") for place in (copy, link)] == [(), (agreed(),)]
    kept = common_dir.rename(common_dir.with_name("kept"))
    common_dir.mkdir()
    assert consent.grants("1") == ()
    common_dir.rmdir()
    kept.rename(common_dir)
    assert consent.grants("1") == (agreed(),)


def test_a_record_that_cannot_be_read_is_no_absent_one(consent: FileConsentStore) -> None:
    give(consent)
    with patch("builtins.open", side_effect=PermissionError), pytest.raises(PermissionError):
        consent.grants("1")


@pytest.mark.parametrize("level", range(4), ids=["file", "repository", "consent", "state"])
def test_a_record_that_others_could_have_written_is_refused(consent: FileConsentStore, level: int) -> None:
    place = give(consent)
    target = [place, *place.parents][level]
    target.chmod(target.stat().st_mode | (0o020 if level % 2 else 0o002))
    with refusing("consent.unsafe", "can be written by other users"):
        consent.grants("1")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_record_of_another_user_is_refused(consent: FileConsentStore) -> None:
    os.chown(give(consent), 12345, -1)
    with pytest.raises(Refusal, match="belongs to another user"):
        consent.grants("1")


def test_a_link_in_place_of_the_record_is_refused(consent: FileConsentStore, tmp_path: Path) -> None:
    place = give(consent)
    planted = place.rename(tmp_path / "planted.json")
    place.symlink_to(planted)
    with pytest.raises(Refusal, match="is not a file"):
        consent.grants("1")


def test_nothing_is_recorded_in_a_folder_that_others_own(consent: FileConsentStore) -> None:
    root = Path(user_folders.prepare())
    root.chmod(0o777)
    with pytest.raises(Refusal, match="can be written by other users"):
        consent.record(agreed())
    assert list(root.iterdir()) == []


def test_an_approval_is_read_back_for_its_phase_only(consent: FileConsentStore, common_dir: Path) -> None:
    kept = agreed("signed")
    consent.record(kept)
    assert FileConsentStore(str(common_dir)).grants("1") == (kept,)
    assert consent.grants("2") == ()
    assert consent.places() == ("1",)


def test_the_newest_approval_comes_first_and_a_revocation_replaces_its_approval(consent: FileConsentStore) -> None:
    old = agreed()
    new = agreed(nonce="1" * 32, at="2026-02-02T03:04:05.000000Z")
    for kept in (new, old):
        consent.record(kept)
    assert [kept.nonce for kept in consent.grants("1")] == ["1" * 32, "0" * 32]
    before = consent.mark()
    consent.record(replace(new, revoked={"by": "pat", "at": "then"}))
    assert [kept.revoked for kept in consent.grants("1")] == [{"by": "pat", "at": "then"}, None]
    assert consent.mark() != before


def test_each_nonce_is_new(consent: FileConsentStore) -> None:
    assert len({consent.nonce() for _ in range(100)}) == 100


@every("nonce", ["", "x", "../" + "0" * 32])
def test_only_a_nonce_becomes_a_file_name(consent: FileConsentStore, nonce: str) -> None:
    with pytest.raises(ValueError, match="no nonce"):
        consent.record(agreed(nonce=nonce))


@every(
    "change",
    [
        {"repository": "x"},
        {"grant": None},
        {"grant": agreed(place="2").as_dict()},
        {"grant": agreed(place="\ud800").as_dict()},
        {"grant": {**agreed().as_dict(), "parts": {"plans": {"digest": "0" * 64, "value": {}}}}},
        *("", "{", "[]", "null", "[" * 4000),
    ],
)
def test_a_changed_moved_or_damaged_record_is_no_consent(
    consent: FileConsentStore, change: dict[str, Any] | str
) -> None:
    """S1, S2: neither another repository's nor a record whose name and content disagree."""
    place = give(consent)
    if isinstance(change, dict):
        change = json.dumps({**json.loads(place.read_text()), **change}, default=asdict)
    place.write_text(change)
    assert consent.grants("1") == ()


def test_an_unreadable_revocation_still_revokes(consent: FileConsentStore) -> None:
    place = give(consent)
    place.write_text(json.dumps({**json.loads(place.read_text()), "revoked": "yes", "signature": 1}))
    (kept,) = consent.grants("1")
    assert kept.revoked == {}
    assert kept.signature is None


def test_an_exported_file_has_an_approval_and_its_signature(consent: FileConsentStore, tmp_path: Path) -> None:
    path = consent.export(agreed("signed", revoked={"by": "x"}), str(tmp_path / "a.json"))
    assert consent.read_file(path) == agreed("signed")
    with refusing("approval.file-exists"):
        consent.export(agreed("signed"), path)
    with refusing("approval.unreadable"):
        consent.read_file(consent.export(agreed(), str(tmp_path / "unsigned.json")))


@every("text", [None, "", "{", "[]", '{"grant": {}, "signature": "x"}', "[" * 100_000])
def test_a_file_that_is_not_a_signed_approval_is_named(
    consent: FileConsentStore, tmp_path: Path, text: str | None
) -> None:
    place = tmp_path / "a.json"
    if text is not None:
        place.write_text(text)
    with refusing("approval.unreadable") as caught:
        consent.read_file(str(place))
    assert str(place) in caught.value.message
