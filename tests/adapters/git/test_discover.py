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


def test_find_walks_up_to_the_real_working_tree(sandbox: GitSandbox, tmp_path: Path) -> None:
    folder = sandbox.root / "a/b"
    folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    place = discover.find(str(tmp_path / "link"))
    assert (place.root, place.worktree_id) == (str(sandbox.root), "main")
    assert place.git_dir == place.common_dir == str(sandbox.git_dir)


def test_find_names_a_linked_worktree_and_shares_the_common_folder(sandbox: GitSandbox, tmp_path: Path) -> None:
    """One that is called `main` is not the main one."""
    sandbox.commit()
    for name, worktree in (("side", "side"), ("main", "main-linked")):
        sandbox.git("worktree", "add", "-q", "-b", f"branch-{name}", str(tmp_path / name))
        place = discover.find(str(tmp_path / name))
        assert (place.worktree_id, place.common_dir) == (worktree, str(sandbox.git_dir))
        assert place.git_dir == str(sandbox.git_dir / "worktrees" / name)


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
