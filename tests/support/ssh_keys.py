"""Keys for signatures, and the list of those who may sign."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from idumb.system import user_folders


def make_key(place: Path, passphrase: str = "") -> Path:
    """Without ssh-keygen, the test is skipped."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(place)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return place


def allow(key: Path, name: str = "pat@example.invalid") -> Path:
    place = Path(user_folders.configuration()) / "allowed_signers"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{name} {key.with_suffix('.pub').read_text()}")
    return place
