"""Consent is stored in the user's state directory and never in a repository (R-LOCK-3, R-LOCK-4)."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from unittest.mock import patch

import pytest

from idumb.domain import grant as grants
from idumb.domain.errors import Refusal
from idumb.domain.grant import Grant
from idumb.store.consent import FileConsentStore, ForgetfulConsent
from idumb.system import user_folders
from idumb.system.user_folders import repository_id
from tests.support.cases import every

HASH = "a" * 64


@pytest.fixture
def consent(common_dir: Path) -> FileConsentStore:
    return FileConsentStore(str(common_dir))


def agreed(nonce: str = "0" * 32) -> Grant:
    at = "2026-01-02T03:04:05.000000Z"
    return Grant("1", {"contract": grants.part(HASH)}, "pat", at, "--approve", nonce, HASH)


def give(consent: FileConsentStore) -> Path:
    """Record consent to HASH; its file."""
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
    rehearsal.record(agreed("1" * 32))
    assert rehearsal.grants("1") == (agreed("1" * 32), agreed())
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


def test_another_repository_at_the_same_path_has_no_consent(consent: FileConsentStore, common_dir: Path) -> None:
    give(consent)
    kept = common_dir.rename(common_dir.with_name("kept"))
    common_dir.mkdir()
    assert consent.grants("1") == ()
    common_dir.rmdir()
    kept.rename(common_dir)
    assert consent.grants("1") == (agreed(),)


def test_a_copy_of_the_repository_has_no_consent(consent: FileConsentStore, common_dir: Path) -> None:
    give(consent)
    copy = common_dir.with_name("copy")
    shutil.copytree(common_dir, copy)
    assert FileConsentStore(str(copy)).grants("1") == ()


def test_a_link_to_the_repository_shares_its_consent(common_dir: Path) -> None:
    link = common_dir.with_name("link")
    link.symlink_to(common_dir)
    assert repository_id(str(link)) == repository_id(str(common_dir))


@every("text", ["", "{", "[]", "null", "[" * 4000])
def test_a_damaged_record_is_not_consent(consent: FileConsentStore, text: str) -> None:
    give(consent).write_text(text)
    assert consent.grants("1") == ()


def test_a_record_that_cannot_be_read_is_no_absent_one(consent: FileConsentStore) -> None:
    give(consent)
    with patch("builtins.open", side_effect=PermissionError), pytest.raises(PermissionError):
        consent.grants("1")


@pytest.mark.parametrize("level", range(4), ids=["file", "repository", "consent", "state"])
def test_a_record_that_others_could_have_written_is_refused(consent: FileConsentStore, level: int) -> None:
    place = give(consent)
    target = [place, *place.parents][level]
    target.chmod(target.stat().st_mode | 0o020)
    with pytest.raises(Refusal, match="can be written by other users") as caught:
        consent.grants("1")
    assert caught.value.code == "consent.unsafe"


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
