"""Signatures over approvals by the user's own keys (R-LOCK-3)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from idumb.domain.errors import Refusal
from idumb.store.signing import SshSignatures
from tests.support.errors import refusing
from tests.support.programs import script
from tests.support.ssh_keys import allow, make_key


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path / "key")


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


def test_a_signature_for_another_purpose_does_not_count(signatures: SshSignatures, key: Path) -> None:
    allow(key)
    command = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", "git"]
    signature = subprocess.run(command, input=b"words", capture_output=True, check=True).stdout.decode()
    assert signatures.signer(b"words", signature) is None
    assert not signatures.intact(b"words", signature)


def test_a_key_with_a_passphrase_is_refused_without_a_prompt(signatures: SshSignatures, key: Path) -> None:
    name = make_key(key.with_name("locked"), "secret words")
    with refusing("approval.not-signed") as caught:
        signatures.sign(b"words", str(name), interactive=False)
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
    shim = script(tmp_path / "repo/bin/ssh-keygen")
    monkeypatch.setenv("PATH", str(shim.parent), prepend=":")
    allow(key)
    assert signatures.signer(b"words", "no signature") is None
    monkeypatch.setenv("PATH", str(shim.parent))
    with refusing("approval.no-ssh-keygen"):
        signatures.intact(b"words", "x")
