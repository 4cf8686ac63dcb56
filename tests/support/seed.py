"""The seed of a commit: where tests take a few of many points, each commit takes others.

The report of a failed test names the seed; `TESTS_SEED=5 pytest …` chooses the same points again.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Generator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

VARIABLE = "TESTS_SEED"
_ROOT = Path(__file__).parents[2]

Thing = TypeVar("Thing")


def commit_seed() -> int:
    """The seed that the environment names, else that of the checkout's commit."""
    named = os.environ.get(VARIABLE)
    return int(named) if named else seed_of(_ROOT)


@cache
def seed_of(checkout: Path) -> int:
    """The first digits of the commit's id; 1 where there is no commit."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=False)
    return int(head.stdout[:7], 16) if head.returncode == 0 else 1


def one_of(things: Sequence[Thing], kind: str) -> Thing:
    """The one that this commit tries; the choice of one kind is independent of that of another."""
    return random.Random(f"{commit_seed()} {kind}").choice(things)


def one_on_a_push(things: Sequence[Any], kind: str) -> list[Any]:
    """Parameters of a test (a tuple is several): the one that this commit tries, and all of them in `make nightly`.

    The names of the tests are the same for each commit: processes that collect while HEAD moves agree.
    """
    return [
        pytest.param(*_values(one_of(things, kind)), id="of this commit"),
        *(pytest.param(*_values(thing), marks=pytest.mark.nightly) for thing in things),
    ]


def _values(thing: Any) -> tuple[Any, ...]:
    return thing if isinstance(thing, tuple) else (thing,)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """For the conftest: a failure says how to repeat it."""
    report = yield
    if report.failed:
        report.sections.append(("seed", f"{VARIABLE}={commit_seed()} pytest '{item.nodeid}'"))
    return report
