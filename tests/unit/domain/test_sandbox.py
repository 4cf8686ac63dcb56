"""Which sandbox can do what, and which folders a task's scope means."""

from __future__ import annotations

import pytest

from idumb.domain.paths import fixed_folders
from idumb.domain.runs import sandbox
from idumb.domain.runs.sandbox import DETECTION, Fence, Support
from idumb.domain.settings import SANDBOX_AUTO, SANDBOX_BWRAP, SANDBOX_LANDLOCK

BOTH = Support(7, "/usr/bin/bwrap")
KERNEL = Support(7, "", "", "bubblewrap is not installed", "bubblewrap")
PROGRAM = Support(0, "/usr/bin/bwrap", "the kernel has no Landlock")
NONE = Support(no_landlock="no fence", no_bwrap="no fence")
IN_FOLDER = Fence(("/r/src", "/r/.git/idumb/papers"), ("/r/.git",))
BESIDE_GIT = Fence(("/r",), ("/r/.git",))


@pytest.mark.parametrize(
    ("level", "fence", "support", "in_force"),
    [
        (SANDBOX_AUTO, IN_FOLDER, BOTH, SANDBOX_BWRAP),
        (SANDBOX_AUTO, IN_FOLDER, KERNEL, SANDBOX_LANDLOCK),
        (SANDBOX_AUTO, IN_FOLDER, PROGRAM, SANDBOX_BWRAP),
        (SANDBOX_AUTO, IN_FOLDER, NONE, DETECTION),
        (SANDBOX_AUTO, BESIDE_GIT, BOTH, SANDBOX_BWRAP),
        (SANDBOX_AUTO, BESIDE_GIT, KERNEL, DETECTION),
        (SANDBOX_LANDLOCK, BESIDE_GIT, BOTH, DETECTION),
        (SANDBOX_LANDLOCK, IN_FOLDER, PROGRAM, DETECTION),
        (SANDBOX_BWRAP, IN_FOLDER, BOTH, SANDBOX_BWRAP),
        (SANDBOX_BWRAP, IN_FOLDER, KERNEL, DETECTION),
    ],
)
def test_the_level_in_force(level: str, fence: Fence, support: Support, in_force: str) -> None:
    chosen, why = sandbox.choose(level, fence, support)
    assert chosen == in_force
    assert bool(why) == (in_force == DETECTION)


@pytest.mark.parametrize("around", ["/", "/r", "/r/.git"])
def test_landlock_never_allows_a_folder_around_what_is_guarded(around: str) -> None:
    assert sandbox.choose(SANDBOX_LANDLOCK, Fence((around,), ("/r/.git",)), BOTH)[0] == DETECTION


def test_the_folders_of_a_glob() -> None:
    cases: list[tuple[str, tuple[str, ...]]] = [
        ("src/a.py", ("src",)),
        ("README.md", ("",)),
        ("*.md", ("",)),
        ("**/*.py", ("",)),
        ("src/**", ("src",)),
        ("src/*/x.py", ("src",)),
        ("src/a/*.py", ("src/a",)),
        ("docs/", ("docs",)),
        ("docs/api/", ("docs/api",)),
        ("src/[ab]/x", ("src",)),
        ("{src,tests}/**", ("src", "tests")),
        ("a/{b,c}.py", ("a",)),
    ]
    assert not [(glob, folders) for glob, folders in cases if sorted(fixed_folders(glob)) != sorted(folders)]


def test_what_a_task_must_not_write_at_the_top() -> None:
    entries = [("README.md", False), ("a.md", False), ("b.txt", False), ("src", True), ("docs", True), ("lib", True)]
    outside = sandbox.outside_scope(entries, ("*.md", "src/**", "d*/x.txt"), lambda name: name == "a.md")
    assert outside == ("a.md", "b.txt", "lib")
    assert sandbox.outside_scope(entries, ("**/*.py",), lambda _: False) == ("README.md", "a.md", "b.txt")


def test_a_support_is_described() -> None:
    assert sandbox.description(BOTH) == "Landlock (version 7); bubblewrap"
    assert "the package bubblewrap would also protect .git" in sandbox.description(KERNEL)
    assert "can still be emptied" in sandbox.description(Support(2, "/usr/bin/bwrap"))
    assert sandbox.description(NONE) == "no fence"
