"""Approvals in the state directory, and signatures over them by the user's own keys (R-LOCK-3)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from idumb.domain import grant as grants
from idumb.domain.errors import InputError, Refusal
from idumb.domain.grant import APPROVE, Grant
from idumb.store.consent import FileConsentStore
from idumb.store.signing import SshSignatures
from idumb.system import user_folders
from tests.support.cases import every

HASH = "a" * 64


def _approval(signature: str | None = None, **more: Any) -> Grant:
    fields: dict[str, Any] = {
        "place": "1",
        "parts": {"contract": grants.part(HASH), "plans": grants.part({"p": "1"})},
        "by": "pat",
        "at": "2026-01-02T03:04:05.000000Z",
        "how": APPROVE,
        "nonce": "0" * 32,
        **more,
    }
    return Grant(**fields, signature=signature)


@pytest.fixture
def store(common_dir: Path) -> FileConsentStore:
    return FileConsentStore(str(common_dir))


def _file() -> Path:
    (place,) = Path(user_folders.path()).rglob("*.json")
    return place


def test_an_approval_is_read_back_for_its_phase_only(store: FileConsentStore, common_dir: Path) -> None:
    kept = _approval("signed")
    store.record(kept)
    assert FileConsentStore(str(common_dir)).grants("1") == (kept,)
    assert store.grants("2") == ()
    assert store.places() == ("1",)


def test_the_newest_approval_comes_first_and_a_revocation_replaces_its_approval(store: FileConsentStore) -> None:
    old = _approval()
    new = _approval(nonce="1" * 32, at="2026-02-02T03:04:05.000000Z")
    for kept in (new, old):
        store.record(kept)
    assert [kept.nonce for kept in store.grants("1")] == ["1" * 32, "0" * 32]
    before = store.mark()
    store.record(replace(new, revoked={"by": "pat", "at": "then"}))
    assert [kept.revoked for kept in store.grants("1")] == [{"by": "pat", "at": "then"}, None]
    assert store.mark() != before


def test_each_nonce_is_new(store: FileConsentStore) -> None:
    assert len({store.nonce() for _ in range(100)}) == 100


@every("nonce", ["", "x", "../" + "0" * 32])
def test_only_a_nonce_becomes_a_file_name(store: FileConsentStore, nonce: str) -> None:
    with pytest.raises(ValueError, match="no nonce"):
        store.record(_approval(nonce=nonce))


@pytest.mark.parametrize(
    "change",
    [
        {"repository": "x"},
        {"grant": None},
        {"grant": _approval(place="2").as_dict()},
        {"grant": _approval(place="\ud800").as_dict()},
        {"grant": {**_approval().as_dict(), "parts": {"plans": {"digest": "0" * 64, "value": {}}}}},
    ],
)
def test_a_changed_or_moved_record_is_not_an_approval(store: FileConsentStore, change: dict[str, Any]) -> None:
    """S1, S2: neither another repository's nor a record whose name and content disagree."""
    store.record(_approval())
    place = _file()
    text = json.dumps({**json.loads(place.read_text()), **change}, default=asdict)
    place.write_text(text)
    assert store.grants("1") == ()


def test_an_unreadable_revocation_still_revokes(store: FileConsentStore) -> None:
    store.record(_approval())
    place = _file()
    place.write_text(json.dumps({**json.loads(place.read_text()), "revoked": "yes", "signature": 1}))
    (kept,) = store.grants("1")
    assert kept.revoked == {}
    assert kept.signature is None


def test_an_exported_file_has_an_approval_and_its_signature(store: FileConsentStore, tmp_path: Path) -> None:
    path = store.export(_approval("signed", revoked={"by": "x"}), str(tmp_path / "a.json"))
    assert store.read_file(path) == _approval("signed")
    with pytest.raises(Refusal) as caught:
        store.export(_approval("signed"), path)
    assert caught.value.code == "approval.file-exists"


@every("text", [None, "", "{", "[]", '{"grant": {}, "signature": "x"}', "[" * 100_000])
def test_a_file_that_is_not_a_signed_approval_is_named(
    store: FileConsentStore, tmp_path: Path, text: str | None
) -> None:
    place = tmp_path / "a.json"
    if text is not None:
        place.write_text(text)
    with pytest.raises(InputError) as caught:
        store.read_file(str(place))
    assert caught.value.code == "approval.unreadable"
    assert str(place) in caught.value.message


def test_an_unsigned_approval_in_a_file_does_not_count(store: FileConsentStore, tmp_path: Path) -> None:
    path = store.export(_approval(), str(tmp_path / "a.json"))
    with pytest.raises(InputError):
        store.read_file(path)


# Signatures


@pytest.fixture
def key(tmp_path: Path) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    return make_key(tmp_path / "key")


def make_key(place: Path, passphrase: str = "") -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(place)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return place


def allow(key: Path, name: str = "pat@example.invalid") -> Path:
    place = Path(user_folders.configuration()) / "allowed_signers"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{name} {key.with_suffix('.pub').read_text()}")
    return place


@pytest.fixture
def signatures(tmp_path: Path) -> SshSignatures:
    (tmp_path / "repo").mkdir(exist_ok=True)
    return SshSignatures(str(tmp_path / "repo"))


def test_a_signature_names_its_signer(signatures: SshSignatures, key: Path) -> None:
    assert not signatures.has_list()
    allow(key)
    assert signatures.has_list()
    signature = signatures.sign(b"words", str(key), interactive=False)
    assert signatures.signer(b"words", signature) == "pat@example.invalid"
    assert signatures.intact(b"words", signature)


def test_a_signature_of_other_bytes_or_by_another_key_has_no_signer(
    signatures: SshSignatures, key: Path, tmp_path: Path
) -> None:
    allow(make_key(tmp_path / "other"))
    signature = signatures.sign(b"words", str(key), interactive=False)
    assert signatures.signer(b"words", signature) is None
    allow(key)
    assert signatures.signer(b"word", signature) is None
    assert not signatures.intact(b"word", signature)
    assert signatures.signer(b"words", signature.replace("A", "B")) is None
    assert signatures.signer(b"words", "no signature") is None


def test_a_signature_for_another_purpose_does_not_count(signatures: SshSignatures, key: Path) -> None:
    allow(key)
    command = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", "git"]
    signature = subprocess.run(command, input=b"words", capture_output=True, check=True).stdout.decode()
    assert signatures.signer(b"words", signature) is None
    assert not signatures.intact(b"words", signature)


def test_a_key_with_a_passphrase_is_refused_without_a_prompt(signatures: SshSignatures, key: Path) -> None:
    name = make_key(key.with_name("locked"), "secret words")
    with pytest.raises(Refusal) as caught:
        signatures.sign(b"words", str(name), interactive=False)
    assert caught.value.code == "approval.not-signed"
    assert str(name) in caught.value.message


def test_a_list_that_others_may_write_is_refused(signatures: SshSignatures, key: Path) -> None:
    allow(key).chmod(0o666)
    with pytest.raises(Refusal, match="cannot be trusted"):
        signatures.signer(b"words", signatures.sign(b"words", str(key), interactive=False))


def test_a_list_inside_the_repository_is_refused_also_behind_a_link(
    signatures: SshSignatures, key: Path, tmp_path: Path
) -> None:
    """S1: a repository cannot grant itself trust."""
    place = allow(key)
    planted = place.rename(tmp_path / "repo" / "allowed_signers")
    place.symlink_to(planted)
    with pytest.raises(Refusal, match="is in the repository"):
        signatures.signer(b"words", signatures.sign(b"words", str(key), interactive=False))


def test_a_signing_program_inside_the_repository_is_not_used(
    signatures: SshSignatures, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4."""
    shim = tmp_path / "repo" / "bin" / "ssh-keygen"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexit 0\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent), prepend=":")
    allow(key)
    assert signatures.signer(b"words", "no signature") is None
    monkeypatch.setenv("PATH", str(shim.parent))
    with pytest.raises(Refusal) as caught:
        signatures.intact(b"words", "x")
    assert caught.value.code == "approval.no-ssh-keygen"
