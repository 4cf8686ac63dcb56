"""Guarded git files compared with their recorded state, including files that cannot be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from idumb.domain.runs import run
from idumb.git import discover, guarded_files
from tests.support.gitrepo import GitSandbox


def digests(sandbox: GitSandbox) -> dict[str, str]:
    """Read the guarded files as a process does that begins now."""
    return dict(guarded_files.GuardedFiles(discover.find(str(sandbox.root))).digests())


def refuse(monkeypatch: pytest.MonkeyPatch, *, readable: bool) -> None:
    """Root can read everything, so the system would refuse nothing here."""

    def refused(path: Any, *_: Any) -> Any:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(guarded_files, "_read", refused)
    monkeypatch.setattr(os, "access", lambda *_: readable)


def test_an_unreadable_file_is_recorded_as_such_and_one_that_becomes_readable_is_not_a_change(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOG-5: the system error is reported as such and not as a change."""
    before = digests(sandbox)
    refuse(monkeypatch, readable=False)
    first = digests(sandbox)
    assert first.keys() == before.keys()
    assert first[".git/config"] != before[".git/config"]
    assert digests(sandbox) == first
    refuse(monkeypatch, readable=True)
    with pytest.raises(PermissionError, match=r"\.git/config"):
        digests(sandbox)


SETTING = "[alias]\n\tx = y\n"


def changed(sandbox: GitSandbox, home: Path, path: str, *, setup: str = "", data: str = SETTING) -> list[str]:
    """Return what one process reports that reads the guarded files before and after a file appears."""
    if setup:
        (home / "gitconfig").write_text(setup)
    files = guarded_files.GuardedFiles(discover.find(str(sandbox.root)))
    before = files.digests()
    assert files.digests() == before
    place = Path(path.replace("~", str(home), 1)) if path.startswith(("~", "/")) else sandbox.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(data)
    return list(run.guarded_changes(before, files.digests()))


INCLUDED = "[include]\n\tpath = ~/more\n"
BY_BRANCH = '[includeIf "onbranch:other"]\n\tpath = more\n'
BY_FOLDER = '[includeIf "gitdir:/nowhere/"]\n\tpath = ~/more\n'


@pytest.mark.parametrize(
    ("path", "setup"),
    [
        ("~/gitconfig", ""),
        ("~/more", INCLUDED),
        ("~/more", BY_BRANCH),
        ("~/more", BY_FOLDER),
        (".shared-config", "[include]\n\tpath = {root}/.shared-config\n"),
        ("~/config/git/attributes", ""),
        ("~/mine", "[core]\n\tattributesFile = ~/mine\n"),
        ("~/config/git/ignore", ""),
        ("~/mine", "[core]\n\texcludesFile = ~/mine\n"),
        (".git/info/attributes", ""),
        (".git/hooks/pre-commit", ""),
        (".git/hooks/pre-commit.d/1", ""),
        ("~/hooks/pre-commit", "[core]\n\thooksPath = ~/hooks\n"),
        ("~/hooks/lib/any", "[core]\n\thooksPath = ~/hooks\n"),
        (".husky/pre-commit", "[core]\n\thooksPath = .husky\n"),
        (".husky/_/h", "[core]\n\thooksPath = .husky/_\n"),
        (".husky/pre-commit", "[core]\n\thooksPath = .husky/_\n"),
    ],
)
def test_a_file_that_git_would_read_is_guarded_before_it_exists(
    sandbox: GitSandbox, home: Path, path: str, setup: str
) -> None:
    """R-GIT-6, F53."""
    assert changed(sandbox, home, path, setup=setup.format(root=sandbox.root)) == [path]


def test_the_files_of_git_s_own_default_places_are_guarded(
    sandbox: GitSandbox, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "system"))
    assert changed(sandbox, home, "~/.gitconfig") == ["~/.gitconfig"]
    assert changed(sandbox, home, "~/.config/git/config") == ["~/.config/git/config"]
    assert changed(sandbox, home, str(tmp_path / "system")) == [str(tmp_path / "system")]


def test_what_an_included_file_includes_and_names_is_guarded(sandbox: GitSandbox, home: Path) -> None:
    (home / "more").write_text("[include]\n\tpath = last\n[core]\n\thooksPath = ~/hooks\n")
    assert changed(sandbox, home, "~/last", setup=INCLUDED) == ["~/last"]
    assert changed(sandbox, home, "~/hooks/pre-push") == ["~/hooks/pre-push"]


def test_a_new_setting_names_what_git_reads_because_of_it(sandbox: GitSandbox, home: Path) -> None:
    (home / "hooks").mkdir()
    (home / "hooks/pre-commit").write_text("#!/bin/sh\n")
    data = "[core]\n\thooksPath = ~/hooks\n"
    assert changed(sandbox, home, "~/gitconfig", data=data) == ["~/gitconfig", "~/hooks/pre-commit"]


def test_a_change_is_noticed_though_size_time_and_inode_are_as_before(sandbox: GitSandbox, home: Path) -> None:
    """F57."""
    (home / "gitconfig").write_text("[core]\n\thooksPath = ~/one\n")
    (home / "two").mkdir()
    (home / "two/pre-commit").write_text("#!/bin/sh\n")
    files = guarded_files.GuardedFiles(discover.find(str(sandbox.root)))
    before, was = files.digests(), (home / "gitconfig").stat()
    (home / "gitconfig").write_text("[core]\n\thooksPath = ~/two\n")
    os.utime(home / "gitconfig", ns=(was.st_atime_ns, was.st_mtime_ns))
    assert run.guarded_changes(before, files.digests()) == ("~/gitconfig", "~/two/pre-commit")


def test_a_hook_that_is_a_link_changes_with_its_target(sandbox: GitSandbox, home: Path) -> None:
    sandbox.link(".git/hooks/pre-commit", str(home / "hook"))
    files = guarded_files.GuardedFiles(discover.find(str(sandbox.root)))
    for text in ("true", "false"):
        before = files.digests()
        (home / "hook").write_text(text)
        assert run.guarded_changes(before, files.digests()) == (".git/hooks/pre-commit",)


def test_other_files_beside_hooks_in_the_tree_are_ordinary_files(sandbox: GitSandbox, home: Path) -> None:
    assert changed(sandbox, home, "tools/build.sh", setup="[core]\n\thooksPath = tools\n") == []
    assert changed(sandbox, home, "tools/pre-commit.sample") == []
    assert changed(sandbox, home, "tools/commit-msg") == ["tools/commit-msg"]


def test_git_is_not_asked_again_while_nothing_changes(
    sandbox: GitSandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "gitconfig").write_text(f"{INCLUDED}{BY_BRANCH}[core]\n\thooksPath = ~/hooks\n")
    files = guarded_files.GuardedFiles(discover.find(str(sandbox.root)))
    before = files.digests()
    monkeypatch.setattr(subprocess, "Popen", None)
    (home / "hooks").mkdir()
    (home / "hooks/pre-commit").write_text("")
    assert run.guarded_changes(before, files.digests()) == ("~/hooks/pre-commit",)


def test_without_a_home_the_user_has_no_files(sandbox: GitSandbox, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.chdir(sandbox.root)
    assert changed(sandbox, home, ".gitconfig") == []
    assert changed(sandbox, home, ".config/git/ignore") == []
