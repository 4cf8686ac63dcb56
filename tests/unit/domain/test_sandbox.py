"""Which sandbox can do what, and which folders a task's scope means."""

from __future__ import annotations

from idumb.domain.paths import fixed_folders
from idumb.domain.runs import sandbox
from idumb.domain.runs.sandbox import DETECTION, Fence, Support
from idumb.domain.settings import SANDBOX_BWRAP

BWRAP = Support("/usr/bin/bwrap")
NONE = Support("", "bubblewrap is not installed", "bubblewrap")


def test_the_level_in_force() -> None:
    assert sandbox.choose(Fence(("/r",), ("/r/.git",)), BWRAP) == (SANDBOX_BWRAP, "")
    assert sandbox.choose(Fence(("/r/src",)), NONE) == (DETECTION, "bubblewrap is not installed")
    level, why = sandbox.choose(Fence(("/r",), ("/r/.git",), links=("/r/.git",)), BWRAP)
    assert (level, why) == (DETECTION, "no sandbox can protect /r/.git, which is a link")


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
    assert sandbox.description(BWRAP) == "bubblewrap"
    assert sandbox.description(NONE) == "bubblewrap is not installed; the package bubblewrap adds one"
