"""Every test gets a home of its own and no network; what this file promises is tested in `tests/support/`."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# Before anything imports them.
pytest.register_assert_rewrite(
    "tests.support.project", "tests.crash.harness", "tests.states.ledgers", "tests.states.matrix"
)

from tests.support.gitrepo import GitSandbox  # noqa: E402
from tests.support.prepared import Prepared  # noqa: E402
from tests.support.processor_time import ProcessorTime  # noqa: E402
from tests.support.seed import pytest_runtest_makereport  # noqa: E402, F401 - a failure names the commit's seed

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=False, database=None)
hypothesis.settings.load_profile("repeatable")

# A test that a git hook, an editor or idumb itself starts inherits these, and they change what git does.
_DROPPED_PREFIXES = ("GIT_", "IDUMB_")
_DROPPED = ("EDITOR", "VISUAL", "PAGER", "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "NO_COLOR", "FORCE_COLOR", "CLICOLOR")


def home_environment(home: Path) -> dict[str, str]:
    """Return the variables that place a user's files below `home`, and git without any configuration."""
    return {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def dropped(environment: Mapping[str, str]) -> list[str]:
    return [name for name in environment if name.startswith(_DROPPED_PREFIXES) or name in _DROPPED]


def _without_shims(path: str) -> str:
    """Return PATH without the scripts of version managers: they start slowly, and lead idumb to all versions."""
    folders = dict.fromkeys(path.split(os.pathsep))
    return os.pathsep.join(folder for folder in folders if not folder.endswith("/shims"))


def pytest_configure(config: pytest.Config) -> None:
    """Change HOME before collection: libgit2 remembers the home in which it was first loaded."""
    # In the background of a shell without job control Ctrl-C is ignored, and so it would be in all that is started.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    home = Path(tempfile.mkdtemp(prefix="idumb-tests-home-"))
    (home / "gitconfig").touch()
    for name in dropped(os.environ):
        del os.environ[name]
    os.environ.update(home_environment(home), PATH=_without_shims(os.environ["PATH"]))
    config.pluginmanager.register(ProcessorTime(config))
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those who speak to models come first, one after the other: one process then imports the large libraries."""
    items.sort(key=lambda item: "test_model.py" not in item.nodeid and "[model" not in item.nodeid)


def pytest_collection_finish() -> None:
    """Thousands of tests are kept until the end; the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


_PURE = ("tests/format/", "tests/unit/")
"""Folders whose tests touch neither a home nor a network; those that do ask for the fixture."""


@pytest.fixture(autouse=True)
def isolated(request: pytest.FixtureRequest) -> None:
    if not request.node.nodeid.startswith(_PURE):
        request.getfixturevalue("home")
        request.getfixturevalue("no_network")


@pytest.fixture(scope="session")
def _new_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.getbasetemp()
    return (base / str(number) for number in itertools.count())


@pytest.fixture
def tmp_path(_new_places: Iterator[Path]) -> Path:
    """An empty folder, as pytest's own fixture gives; that one looks through the folders of all tests for a name."""
    place = next(_new_places)
    place.mkdir(0o700)
    return place


@pytest.fixture
def home(_new_places: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of this test's own, in the environment of this process and of all that it starts."""
    place = next(_new_places)
    place.mkdir(0o700)
    (place / "gitconfig").touch()
    for name in dropped(os.environ):
        monkeypatch.delenv(name)
    for name, value in home_environment(place).items():
        monkeypatch.setenv(name, value)
    _tell_libgit2(place)
    return place


def _tell_libgit2(home: Path) -> None:
    # libgit2 knows neither GIT_CONFIG_GLOBAL nor a HOME that changed after it was loaded.
    pygit2 = sys.modules.get("pygit2")
    if pygit2 is None:
        return
    level = pygit2.enums.ConfigLevel
    for search_path in (level.GLOBAL, level.XDG, level.SYSTEM):
        pygit2.settings.search_path[search_path] = str(home)


@pytest.fixture
def sandbox(tmp_path: Path, home: Path) -> GitSandbox:
    """A repository without commits on branch `main`, with an identity of its own, at `tmp_path/repo`."""
    return GitSandbox.create(tmp_path / "repo")


@pytest.fixture(scope="session")
def _prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def prepared(home: Path, _prepared: Prepared) -> Prepared:
    """Projects that are built once for all tests of this process."""
    return _prepared


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only AF_UNIX and loopback addresses can be reached from this process (programs it starts are on their honour)."""
    for method in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, method, _guarded(getattr(socket.socket, method)))
    monkeypatch.setattr(socket, "getaddrinfo", _guarded_lookup(socket.getaddrinfo))


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: socket.socket, *arguments: Any) -> Any:
        # The address is always the last argument; sendto may have flags before it.
        _require_loopback(self.family, arguments[-1])
        return method(self, *arguments)

    return guarded


def _guarded_lookup(lookup: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(host: Any, *arguments: Any, **options: Any) -> Any:
        _require_loopback(socket.AF_INET, (host,))
        return lookup(host, *arguments, **options)

    return guarded


def _require_loopback(family: int, address: Any) -> None:
    if family == socket.AF_UNIX:
        return
    host = address[0] if isinstance(address, tuple) else address
    text = host.decode() if isinstance(host, bytes) else str(host or "")
    if text not in {"localhost", "::1"} and not text.startswith("127."):
        message = f"a test may not use the network: {host!r}"
        raise AssertionError(message)
