"""Finding the repository from files alone. R-GIT-7, F9, F10."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from idumb.domain import errors
from idumb.git import discover
from tests.support.gitrepo import GitSandbox


def test_find_walks_up_to_the_working_tree(sandbox: GitSandbox) -> None:
    folder = sandbox.root / "a/b"
    folder.mkdir(parents=True)
    place = discover.find(str(folder))
    assert (place.root, place.git_dir, place.common_dir) == (
        str(sandbox.root),
        str(sandbox.git_dir),
        str(sandbox.git_dir),
    )
    assert place.worktree_id == "main"


def test_find_names_a_linked_worktree_and_shares_the_common_folder(sandbox: GitSandbox, tmp_path: Path) -> None:
    sandbox.commit()
    sandbox.git("worktree", "add", "-q", str(tmp_path / "side"))
    place = discover.find(str(tmp_path / "side"))
    assert place.worktree_id == "side"
    assert place.common_dir == str(sandbox.git_dir)
    assert place.git_dir == str(sandbox.git_dir / "worktrees/side")


def test_a_linked_worktree_called_main_is_not_the_main_one(sandbox: GitSandbox, tmp_path: Path) -> None:
    sandbox.commit()
    sandbox.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "main"))
    assert discover.find(str(tmp_path / "main")).worktree_id != discover.find(str(sandbox.root)).worktree_id


def test_find_ignores_git_environment_variables(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GitSandbox.create(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.git_dir))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    assert discover.find(str(sandbox.root)).root == str(sandbox.root)


def test_find_follows_a_link_to_the_real_folder(sandbox: GitSandbox, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(sandbox.root)
    assert discover.find(str(tmp_path / "link")).root == str(sandbox.root)


def test_a_folder_in_which_nothing_can_run_is_refused_in_one_line(sandbox: GitSandbox, tmp_path: Path) -> None:
    GitSandbox.create(tmp_path / "bare.git", options=("--bare",))
    rows = {
        tmp_path: "git.not-a-repository",
        tmp_path / "bare.git": "git.bare",
        tmp_path / "bare.git/refs": "git.bare",
        sandbox.git_dir / "refs": "git.inside-git-folder",
    }
    for number, link in enumerate((b"", b"nonsense", b"gitdir: /nowhere/at/all\n")):
        (tmp_path / f"link{number}").mkdir()
        (tmp_path / f"link{number}/.git").write_bytes(link)
        rows[tmp_path / f"link{number}"] = "git.broken-link"
    for start, code in rows.items():
        with pytest.raises(errors.Refusal) as caught:
            discover.find(str(start))
        assert caught.value.code == code
        assert "\n" not in caught.value.message
        assert caught.value.hint


def test_find_loads_neither_libgit2_nor_subprocess() -> None:
    code = (
        "import sys; from idumb.git import discover; discover.find('.');"
        "print([m for m in ('pygit2', 'subprocess', 'dataclasses', 'pathlib') if m in sys.modules])"
    )
    root = Path(__file__).parents[3]
    repository = GitSandbox.create(Path(os.environ["HOME"]) / "repo")
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(root)!r}); {code}"],
        cwd=repository.root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
