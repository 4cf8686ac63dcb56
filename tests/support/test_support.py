"""The measures of other tests, measured: homes, networks, ledgers, prepared projects, tables, growth and seeds."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.cases import every
from tests.support.gitrepo import GitSandbox
from tests.support.growth import assert_linear
from tests.support.prepared import Prepared
from tests.support.project import Project, making


def test_home_is_empty_and_not_the_user_s_and_git_variables_are_not_inherited(home: Path) -> None:
    assert Path.home() == home
    assert str(home) != pwd.getpwuid(os.getuid()).pw_dir
    assert [entry.name for entry in home.iterdir()] == ["gitconfig"]
    kept = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT"}
    assert {name for name in os.environ if name.startswith("GIT_")} == kept


def test_network_access_is_an_assertion_error() -> None:
    with socket.socket() as client, pytest.raises(AssertionError, match="may not use the network"):
        client.connect(("192.0.2.1", 80))
    with socket.socket(type=socket.SOCK_DGRAM) as client, pytest.raises(AssertionError, match="may not use"):
        client.sendto(b"x", ("192.0.2.1", 80))
    with pytest.raises(AssertionError, match="may not use the network"):
        socket.create_connection(("example.invalid", 80))


CHANGES = {
    "content": ("a.txt", "echo A > a.txt"),
    "mode": ("a.txt", "chmod 755 a.txt"),
    "link": ("link", "ln -sf b.txt link"),
    "untracked": ("new.txt", "touch new.txt"),
    "ignored": ("new.log", "touch new.log"),
    "gone": ("a.txt", "rm a.txt"),
    "type": ("a.txt", "ln -sf b.txt a.txt"),
    "empty folder": ("folder", "mkdir folder"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_ledger_sees_a_change_of(sandbox: GitSandbox, change: str) -> None:
    sandbox.write_all({"a.txt": "a", "b.txt": "b", ".gitignore": "*.log\n"})
    sandbox.link("link", "a.txt")
    sandbox.commit()
    before = sandbox.ledger()
    sandbox.git("update-ref", "refs/idumb/snapshots/1", "HEAD")
    assert sandbox.ledger() == before
    path, script = CHANGES[change]
    subprocess.run(["sh", "-ec", script], cwd=sandbox.root, check=True)
    after = sandbox.ledger()
    assert before.changed_paths(after) == [path]
    assert (after.index, after.refs, after.head) == (before.index, before.refs, before.head)


def test_ledger_sees_index_refs_head_and_configuration(sandbox: GitSandbox) -> None:
    sandbox.commit_with({"a.txt": "a"})
    before = sandbox.ledger()
    sandbox.write("b.txt")
    sandbox.git("add", "b.txt")
    sandbox.git("branch", "other")
    sandbox.git("symbolic-ref", "HEAD", "refs/heads/other")
    sandbox.git("config", "core.hooksPath", "elsewhere")
    after = sandbox.ledger()
    assert after.index != before.index
    assert after.refs.keys() - before.refs.keys() == {"refs/heads/other"}
    assert after.head == "ref: refs/heads/other\n"
    assert "elsewhere" in after.config


BUILT: list[str] = []


def verified(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    BUILT.append("once")
    return project


def other(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def test_a_prepared_project_is_built_once_and_restored_with_its_log_and_consent(prepared: Prepared) -> None:
    first = prepared.get(verified)
    before, operations = first.repo.ledger(), first.events()
    first.repo.write_all({"a.txt": "spoiled", ".git/refs/heads/other": first.repo.head() + "\n"})
    assert prepared.get(other).events() == []
    again = prepared.get(verified)
    assert BUILT == ["once"]
    assert again.repo.ledger() == before
    assert again.events() == operations
    assert again.repo.status() == []
    again.plan([making("T2-01", "b.txt")], phase="2")
    assert again.execute(phase="2").code == 0
    assert again.quick("audit", "verify").code == 0


def test_each_case_that_fails_is_named() -> None:
    @every("number", [3, 30, 2, "x"])
    def is_small(number: int) -> None:
        if number == 2:
            pytest.fail("not this one")
        assert number < 10

    with pytest.raises(BaseExceptionGroup, match="3 of 4 cases fail") as caught:
        is_small()
    notes = [failure.__notes__ for failure in caught.value.exceptions]
    assert notes == [["case 1: 30"], ["case 2: 2"], ["case 3: 'x'"]]


@pytest.mark.nightly
def test_quadratic_work_is_detected() -> None:
    with pytest.raises(AssertionError, match="times as long"):
        assert_linear(compare_all, lambda n: list(range(n)))


def compare_all(items: list[int]) -> int:
    return sum(1 for one in items for other in items if one == other)


def test_a_push_has_one_of_many_cases_and_the_night_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(seed.VARIABLE, "5")
    first, *others = seed.one_on_a_push([1, (2, 3)], "numbers")
    assert (first.id, first.marks) == ("of this commit", ())
    assert [other.values for other in others] == [(1,), (2, 3)]
    assert {mark.name for other in others for mark in other.marks} == {"nightly"}


def test_a_failure_says_how_to_repeat_it(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(seed.VARIABLE, "5")
    report = pytest.TestReport("a.py::test", ("a.py", 1, "test"), {}, "failed", None, "call")
    making = seed.pytest_runtest_makereport(request.node)
    next(making)
    with pytest.raises(StopIteration):
        making.send(report)
    assert report.sections == [("seed", f"TESTS_SEED=5 pytest '{request.node.nodeid}'")]
