"""The seed of a commit."""

from __future__ import annotations

import pytest

from tests.support import seed
from tests.support.gitrepo import GitSandbox


def test_each_commit_has_its_own_seed(sandbox: GitSandbox) -> None:
    sandbox.write("a.txt", "a\n")
    head = sandbox.commit()
    assert seed.seed_of(sandbox.root) == int(head[:7], 16)


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
