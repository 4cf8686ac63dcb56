"""The fixtures of every test: a separate home, a separate git configuration, no network."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
from pathlib import Path

import pytest

from tests import conftest


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)


def test_home_is_empty_and_not_the_user_s(home: Path) -> None:
    assert Path.home() == home
    assert str(home) != pwd.getpwuid(os.getuid()).pw_dir
    assert [entry.name for entry in home.iterdir()] == ["gitconfig"]


def test_git_identity_is_seen_by_git_and_libgit2(git_identity: tuple[str, str]) -> None:
    import pygit2

    conftest._tell_libgit2(Path.home())
    assert git("config", "--global", "--get", "user.email").stdout.strip() == git_identity[1]
    assert pygit2.Config.get_global_config()["user.name"] == git_identity[0]


def test_inherited_git_variables_are_removed() -> None:
    kept = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT"}
    assert {name for name in os.environ if name.startswith("GIT_")} == kept


def test_network_access_is_an_assertion_error() -> None:
    with socket.socket() as client, pytest.raises(AssertionError, match="may not use the network"):
        client.connect(("192.0.2.1", 80))
    with socket.socket(type=socket.SOCK_DGRAM) as client, pytest.raises(AssertionError, match="may not use"):
        client.sendto(b"x", ("192.0.2.1", 80))
    with pytest.raises(AssertionError, match="may not use the network"):
        socket.create_connection(("example.invalid", 80))


def test_loopback_and_unix_sockets_work(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname(), timeout=5):
            pass
    one_end, right = socket.socketpair()
    with one_end, right, socket.socket(socket.AF_UNIX) as named:
        named.bind(os.path.relpath(tmp_path / "s"))
        one_end.sendall(b"x")
        assert right.recv(1) == b"x"
