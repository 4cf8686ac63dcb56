"""What idumb keeps in repositories of all kinds, and in copies of them (R-GIT-1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.git import discover
from idumb.git.history import GitHistory
from tests.support.gitrepo import GitSandbox
from tests.support.kept import Run, loose, packs, strays

Copy = Callable[[GitSandbox], GitSandbox]
pytestmark = pytest.mark.usefixtures("early_packs")


@pytest.fixture
def source(sandbox: GitSandbox) -> GitSandbox:
    for number in range(3):
        sandbox.write(f"src/{number}.txt", f"{number}\n")
        sandbox.commit()
    sandbox.git("config", "uploadpack.allowFilter", "true")
    return sandbox


def cloned(*options: str) -> Copy:
    def clone(source: GitSandbox) -> GitSandbox:
        place, is_shared = source.root.with_name("clone"), "--shared" in options
        source.git("clone", "--quiet", *options, "." if is_shared else f"file://{source.root}", str(place))
        copy = GitSandbox(place)
        assert (copy.common_dir / "objects/info/alternates").exists() == is_shared
        return copy

    return clone


def worktree(source: GitSandbox) -> GitSandbox:
    source.git("worktree", "add", "--quiet", "../tree")
    return GitSandbox(source.root.with_name("tree"))


def configured(*words: str) -> Copy:
    def configure(source: GitSandbox) -> GitSandbox:
        source.git(*words)
        return source

    return configure


KINDS = {
    "shared clone": cloned("--shared"),
    "shallow clone": cloned("--depth=1"),
    "clone without trees": cloned("--filter=tree:0"),
    "worktree": worktree,
    "every ref has a log": configured("config", "core.logAllRefUpdates", "always"),
    "packed refs": configured("pack-refs", "--all"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_kept_and_packed_in_every_kind_of_repository(
    source: GitSandbox, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    before = loose(source)
    copy = KINDS[kind](source)
    run = Run(copy)
    run.tasks(*range(6))
    assert packs(copy)
    run.verify()
    copy.git("pack-refs", "--all", "--prune")
    copy.git("gc", "--quiet", "--prune=now")
    run.tasks(*range(6, 12))
    run.verify()
    assert not strays(copy)
    if copy.common_dir != source.common_dir:
        assert loose(source) == before, "a repository that lends objects is not written"
        source.git("fsck", "--full", "--strict")


def test_two_worktrees_have_a_ref_each_and_share_packs(source: GitSandbox) -> None:
    both = [Run(source), Run(worktree(source))]
    for number in range(9):
        for run in both:
            run.tasks(number)
    assert len(source.refs("refs/idumb/kept/")) == 2
    assert len(packs(source)) >= 2
    source.git("worktree", "remove", "--force", "../tree")
    source.git("gc", "--quiet", "--prune=now")
    both[0].verify()
    assert source.kept().items() >= both[1].kept.items()


@pytest.mark.parametrize(
    "options",
    [
        ["--shared"],
        ["--mirror"],
        ["--mirror", "--depth=1", "--no-single-branch"],
        ["--mirror", "--filter=tree:0"],
    ],
    ids=" ".join,
)
def test_a_copy_made_during_a_run_stays_whole_when_the_run_goes_on(source: GitSandbox, options: list[str]) -> None:
    """Objects move into packs, and git collects garbage, while another repository borrows them."""
    run = Run(source)
    run.tasks(*range(4))
    copy = cloned(*options)(source)
    kept = copy.refs("refs/idumb/")
    run.tasks(*range(4, 12))
    assert packs(source)
    source.git("gc", "--quiet")
    copy.git("fsck", "--full", "--strict")
    for root in kept.values():
        assert copy.git("rev-list", "--objects", "--no-walk", root)
    assert bool(kept) == ("--mirror" in options)
    run.verify()


def test_a_bundle_and_a_pushed_mirror_have_all_names(source: GitSandbox, tmp_path: Path) -> None:
    run = Run(source)
    run.tasks(*range(6))
    source.git("bundle", "create", "--quiet", "../all.bundle", "--all")
    source.git("init", "--quiet", "--bare", "../pushed")
    source.git("push", "--quiet", "--mirror", "../pushed")
    source.git("clone", "--quiet", "--mirror", "../all.bundle", "../unbundled")
    for name in ("pushed", "unbundled"):
        copy = GitSandbox(source.root.with_name(name))
        copy.git("fsck", "--full", "--strict")
        assert copy.kept().items() >= run.kept.items()


def test_no_commit_is_shown_for_what_is_kept(source: GitSandbox) -> None:
    Run(source).tasks(*range(6))
    assert len(source.git("log", "--all", "--format=%h").splitlines()) == 3
    assert GitHistory(discover.find(str(source.root))).kept("refs/idumb/kept/main")
