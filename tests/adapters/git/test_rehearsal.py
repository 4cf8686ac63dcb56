"""The temporary repository of a dry run equals the working tree and changes nothing of the user (R-RUN-11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.app.ports import Head
from idumb.git import discover
from idumb.git.checkouts import copies, places
from idumb.git.history import GitHistory
from tests.support.gitrepo import Entry, GitSandbox, work_tree


def place_of(sandbox: GitSandbox) -> discover.Worktree:
    return discover.find(str(sandbox.root))


def head_of(sandbox: GitSandbox) -> Head:
    return GitHistory(place_of(sandbox)).head()


def files(root: Path) -> dict[str, Entry]:
    return {path: entry for path, entry in work_tree(root).items() if not path.startswith(".git/") and path != ".git"}


def test_the_copy_has_the_current_bytes_modes_and_links_and_a_clean_index_of_head(sandbox: GitSandbox) -> None:
    """R-RUN-11: uncommitted files are included; ignored files only if they are named."""
    sandbox.write_all({"a": "1\r\n", "d/gone": "1", ".gitignore": "*.log\nkept.cfg\n"})
    sandbox.write("run", "x", mode=0o755)
    sandbox.link("link", "a")
    sandbox.commit()
    sandbox.write_all({"a": "2\r\n", "new/x": "n", "x.log": "ignored", "kept.cfg": "wanted"})
    sandbox.remove("d/gone")
    sandbox.git("add", "new/x")
    user, before = place_of(sandbox), work_tree(sandbox.root)
    with copies.copy_of(user, head_of(sandbox), ["kept.cfg"]) as copy:
        expected = {p: e for p, e in files(sandbox.root).items() if p not in {"x.log", "d"}}
        assert files(Path(copy.root)) == expected
        inside = GitSandbox(Path(copy.root))
        assert inside.head() == sandbox.head()
        assert inside.git("symbolic-ref", "HEAD") == "refs/heads/main"
        assert sorted(inside.status()) == [" D d/gone", " M a", "?? new/x"]
        assert inside.git("config", "user.name") == "Pat Tester"
    assert work_tree(sandbox.root) == before


def test_a_copy_is_detached_or_without_a_commit_as_the_user_s_repository_is(sandbox: GitSandbox) -> None:
    """R-RUN-11, R-GIT-7."""
    sandbox.write("a", "1\n")
    with copies.copy_of(place_of(sandbox), head_of(sandbox)) as copy:
        inside = GitSandbox(Path(copy.root))
        assert (inside.head(), inside.status()) == ("", ["?? a"])
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "--detach")
    with copies.copy_of(place_of(sandbox), head_of(sandbox)) as copy:
        inside = GitSandbox(Path(copy.root))
        assert inside.try_git("symbolic-ref", "--quiet", "HEAD").returncode == 1
        assert inside.head() == sandbox.head()


@pytest.fixture
def top(sandbox: GitSandbox) -> Path:
    sandbox.commit_with({"a": "1\n"})
    return Path(places.folder_of(place_of(sandbox)), "rehearsals")


def test_copies_of_killed_processes_are_removed_and_live_ones_are_kept(sandbox: GitSandbox, top: Path) -> None:
    """R-RUN-11: a lock tells them apart, also a folder or a lock that a kill left alone."""
    for name in ("7", "8"):
        (top / name / "deep").mkdir(parents=True)
    for name in ("7", "9"):
        (top / f"{name}.lock").touch()
    user = place_of(sandbox)
    with copies.copy_of(user, head_of(sandbox)) as live:
        assert sorted(entry.name for entry in top.iterdir()) == ["1", "1.lock"]
        assert copies.clear(user) == ()
        with copies.copy_of(user, head_of(sandbox)) as second:
            assert Path(second.root).parent.name == "2"
        assert Path(live.root, "a").exists()
    assert not top.exists()
