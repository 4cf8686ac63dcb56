"""What `idumb status` compares to see whether commits must be read again."""

from __future__ import annotations

import pytest

from idumb.git import discover
from tests.support import seed
from tests.support.gitrepo import GitSandbox


@pytest.mark.parametrize(
    "change",
    [
        ("commit", "--quiet", "--allow-empty", "-m", "new"),
        ("commit", "--quiet", "--amend", "--allow-empty", "-m", "other"),
        ("switch", "--quiet", "other"),
        ("checkout", "--quiet", "--detach", "other"),
        ("update-ref", "refs/heads/main", "other"),
    ],
)
@pytest.mark.parametrize("packed", seed.one_on_a_push([False, True], "a moved HEAD"))
def test_another_history_of_head_has_another_state(
    sandbox: GitSandbox, change: tuple[str, ...], *, packed: bool
) -> None:
    sandbox.git("branch", "other", sandbox.commit("one"))
    sandbox.commit("two")
    if packed:
        sandbox.git("pack-refs", "--all")
    before = discover.find(str(sandbox.root)).history_state()
    assert before == discover.find(str(sandbox.root)).history_state()
    sandbox.git(*change)
    moved = discover.find(str(sandbox.root)).history_state()
    assert moved != before
    (sandbox.common_dir / "shallow").write_text(sandbox.git("rev-parse", "HEAD") + "\n")
    assert discover.find(str(sandbox.root)).history_state() not in (before, moved)


def test_a_branch_that_is_another_name_of_one_is_unknown(sandbox: GitSandbox) -> None:
    sandbox.commit("one")
    sandbox.git("branch", "other")
    sandbox.git("symbolic-ref", "refs/heads/main", "refs/heads/other")
    assert discover.find(str(sandbox.root)).history_state() is None


def test_a_repository_without_a_commit_has_a_state(sandbox: GitSandbox) -> None:
    before = discover.find(str(sandbox.root)).history_state()
    sandbox.commit("one")
    assert None is not before != discover.find(str(sandbox.root)).history_state()
