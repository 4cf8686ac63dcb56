"""The helpers with which tests take cases, compare growth and choose points."""

from __future__ import annotations

import pytest

from tests.support import seed
from tests.support.cases import every
from tests.support.gitrepo import GitSandbox
from tests.support.growth import assert_linear


def test_each_case_that_fails_is_named() -> None:
    @every("number", [3, 30, 2, "x"])
    def is_small(number: int) -> None:
        if number == 2:
            pytest.fail("not this one")
        assert number < 10

    with pytest.raises(BaseExceptionGroup, match="3 of 4 cases fail") as caught:
        is_small()
    assert [failure.__notes__ for failure in caught.value.exceptions] == [
        ["case 1: 30"],
        ["case 2: 2"],
        ["case 3: 'x'"],
    ]


@pytest.mark.nightly
def test_quadratic_work_is_detected() -> None:
    with pytest.raises(AssertionError, match="times as long"):
        assert_linear(compare_all, lambda n: list(range(n)))


def compare_all(items: list[int]) -> int:
    return sum(1 for one in items for other in items if one == other)


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
