"""Whether refs/idumb has any ref, in every storage format of git (R-LOG-2)."""

from __future__ import annotations

from idumb.git import discover
from tests.support.gitrepo import GitSandbox


def test_only_refs_of_idumb_count_loose_or_packed(sandbox: GitSandbox) -> None:
    sandbox.write("a.txt", "one\n")
    sandbox.git("add", "a.txt")
    sandbox.git("commit", "-q", "-m", "one")
    place = discover.find(str(sandbox.root))
    assert not place.has_own_refs()
    sandbox.git("update-ref", "refs/idumb/worktrees/main/x", "HEAD")
    assert place.has_own_refs()
    sandbox.git("pack-refs", "--all", "--prune")
    assert not (sandbox.common_dir / "refs" / "idumb" / "worktrees" / "main" / "x").exists()
    assert place.has_own_refs()
    sandbox.git("update-ref", "-d", "refs/idumb/worktrees/main/x")
    assert not place.has_own_refs()
