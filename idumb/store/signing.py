"""Make and verify signatures with `ssh-keygen -Y`, so that people use the keys they have."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence

from idumb.domain.errors import Refusal
from idumb.system import child_process, private_folders, programs, user_folders

NAMESPACE = "idumb-approval"
LIST = "allowed_signers"
_SECONDS = 60
_LARGEST = 64 * 1024
_KEPT = ("HOME", "PATH", "LANG", "TERM", "SSH_AUTH_SOCK", "USER", "LOGNAME")


class SshSignatures:
    """Signatures of approvals. `root` is the repository, in which neither signers' list nor program may be."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)

    def sign(self, data: bytes, key: str, *, interactive: bool, namespace: str = NAMESPACE) -> str:
        """Sign with a key file; return the armored signature. Refusal `approval.not-signed`."""
        path = os.path.abspath(os.path.expanduser(key))
        arguments = ["-Y", "sign", "-f", path, "-n", namespace]
        try:
            # If nobody can be asked, the session has no terminal for a passphrase prompt.
            done = self._run(arguments, data, limit=None if interactive else _SECONDS, apart=not interactive)
        except subprocess.TimeoutExpired:
            done = None
        if done is None or done.returncode != 0:
            words = "" if done is None else done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise Refusal(
                "approval.not-signed",
                f"The key {key} did not sign: {words or 'ssh-keygen did not finish'}",
                hint="Name a private key file of yours, or a public one whose private key ssh-agent holds",
            )
        return done.stdout.decode("ascii", "replace")

    def signer(self, data: bytes, signature: str) -> str | None:
        """The signer, by the user's list of allowed signers; None if the signer is not on it.

        Refusal `approval.no-signers` if there is no such list, or if other users can write it.
        """
        path = self._list()
        with _as_file(signature) as file:
            principals = self._run(["-Y", "find-principals", "-s", file, "-f", path], b"")
            for name in principals.stdout.decode("utf-8", "replace").splitlines() if principals.returncode == 0 else ():
                arguments = ["-Y", "verify", "-f", path, "-I", name, "-n", NAMESPACE, "-s", file]
                if self._run(arguments, data).returncode == 0:
                    return name
        return None

    def intact(self, data: bytes, signature: str) -> bool:
        """Whether this is a valid signature of these bytes by any key."""
        with _as_file(signature) as file:
            return self._run(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", file], data).returncode == 0

    def has_list(self) -> bool:
        """Whether there is a list of allowed signers."""
        return os.path.lexists(_list_path())

    def _list(self) -> str:
        """Return the list of allowed signers; Refusal if it is missing, in the repository, or writable by others."""
        path = _list_path()
        hint = f"Write the signer's line (name and public key, as in man ssh-keygen, ALLOWED SIGNERS) to {path}"
        if not os.path.isfile(path):
            raise Refusal("approval.no-signers", f"There is no list of allowed signers at {path}.", hint=hint)
        real = os.path.realpath(path)
        if real.startswith(self._root + os.sep):
            raise Refusal(
                "approval.no-signers",
                f"The list of allowed signers {real} is in the repository, which cannot vouch for itself.",
                hint="Set XDG_CONFIG_HOME to a folder outside the repository",
            )
        problem = private_folders.unsafe(real) or private_folders.unsafe(os.path.dirname(real), folder=True)
        if problem is not None:
            raise Refusal(
                "approval.no-signers", f"The list of allowed signers cannot be trusted: {problem}", hint=f"ls -l {real}"
            )
        return real

    def _run(
        self, arguments: Sequence[str], data: bytes, *, limit: float | None = _SECONDS, apart: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [_program(self._root), *arguments],
            input=data,
            capture_output=True,
            check=False,
            timeout=limit,
            cwd="/",
            env={**child_process.environment(_KEPT), "SSH_ASKPASS_REQUIRE": "never"},
            start_new_session=apart,
        )


def _program(root: str) -> str:
    for program in programs.outside("ssh-keygen", root):
        return program
    raise Refusal(
        "approval.no-ssh-keygen",
        "There is no ssh-keygen on PATH, which makes and verifies signatures.",
        hint="Install OpenSSH 8.2 or newer",
    )


def _list_path() -> str:
    return os.path.join(user_folders.configuration(), LIST)


@contextlib.contextmanager
def _as_file(signature: str) -> Iterator[str]:
    """Write a signature to a private file for the length of a block; ssh-keygen reads no signature from a pipe."""
    with tempfile.NamedTemporaryFile(prefix="idumb-", suffix=".sig", dir=user_folders.prepare("signatures")) as file:
        file.write(signature.encode("ascii", "replace")[:_LARGEST])
        file.flush()
        yield file.name
