"""Refs of idumb: names of what it keeps, in all repositories, moved by compare-and-swap. R-GIT-1, R-LOG-5, F38."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable

import pytest

from idumb.domain.errors import Refusal
from idumb.git import discover, disk, open_repository, refs
from idumb.git.discover import Worktree
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from idumb.system import clock
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox
from tests.support.seed import one_on_a_push

WORKTREE = "refs/idumb/worktrees/main"
RUN = f"{WORKTREE}/runs/r/"


class Run:
    """A run of tasks without an engine: each makes a file, and keeps what was before and after."""

    def __init__(self, sandbox: GitSandbox) -> None:
        self.sandbox = sandbox
        place = discover.find(str(sandbox.root))
        self.trees, self.history = GitTrees(place), GitHistory(place)
        self.run = RUN.replace("/main/", f"/{place.name}/")
        self.kept: dict[str, str] = {}

    def tasks(self, *numbers: int) -> None:
        for number in numbers:
            base = self.trees.snapshot(f"{self.run}T{number}/1/base", "before")
            self.sandbox.write(f"made/{number}.txt", f"made by {number}\n")
            done = self.trees.keep(f"{self.run}T{number}/1/checkpoint", self.trees.scan(), "after")
            self.kept |= {base.ref: base.commit, done.ref: done.commit}

    def fold(self) -> None:
        self.history.fold(self.run)

    def objects(self, git: GitSandbox) -> str:
        """Every tree and blob below the names, a line each."""
        return git.git("rev-list", "--objects", "--no-object-names", *self.kept.values())

    def verify(self, copy: GitSandbox | None = None) -> None:
        """Assert that git and idumb find every name, and that git has every object below them."""
        git = copy or self.sandbox
        git.git("fsck", "--full", "--strict")
        assert git.kept().items() >= self.kept.items()
        require(git, self.objects(git))
        if copy is None:
            history = GitHistory(discover.find(str(git.root)))
            assert history.refs(self.run).items() >= self.kept.items()
            assert {name: history.kept(name) for name in self.kept} == self.kept


def require(git: GitSandbox, objects: str) -> None:
    assert "missing" not in git.git("cat-file", "--batch-check", given=f"{objects}\n".encode())


@pytest.fixture
def source(sandbox: GitSandbox) -> GitSandbox:
    for number in range(3):
        sandbox.write(f"src/{number}.txt", f"{number}\n")
        sandbox.commit()
    sandbox.git("config", "uploadpack.allowFilter", "true")
    return sandbox


@pytest.fixture
def run(source: GitSandbox) -> Run:
    return Run(source)


def test_a_finished_run_is_one_ref_and_its_names_are_found_as_before(source: GitSandbox, run: Run) -> None:
    run.tasks(1, 2)
    commit = source.git("rev-parse", "HEAD")
    run.history.keep_ref(f"{RUN}T1/1/meanwhile/x", commit)
    run.fold()
    assert source.refs("refs/idumb/").keys() == {
        f"{WORKTREE}/done/r",
        f"{WORKTREE}/head",
        f"{RUN}T1/1/meanwhile/x",
    }
    run.verify()
    assert run.history.kept(f"{RUN}T3/1/base") is run.history.kept(f"{WORKTREE}/runs/none/x") is None
    assert run.history.refs(f"{RUN}T2/").keys() == {f"{RUN}T2/1/base", f"{RUN}T2/1/checkpoint"}


def test_a_run_that_goes_on_after_it_was_folded_keeps_all_names_and_the_newest_object_counts(
    source: GitSandbox, run: Run
) -> None:
    run.tasks(1, 2)
    run.fold()
    run.tasks(2, 3)
    run.verify()
    run.fold()
    run.verify()
    run.fold()
    assert len(source.refs(f"{WORKTREE}/done/")) == 1
    assert source.refs(RUN) == {}


def test_a_fold_that_was_killed_before_it_deleted_the_names_is_repeated(
    source: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.tasks(1)
    with monkeypatch.context() as killed:
        killed.setattr(refs, "delete_all", lambda *_: None)
        run.fold()
    run.verify()
    run.tasks(2)
    run.fold()
    run.verify()
    assert source.refs(RUN) == {}


def test_no_name_is_deleted_if_another_process_moved_one_meanwhile(
    source: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.tasks(1)
    other = source.git("mktree", given=b"")
    move = refs.move

    def moved(*arguments: object) -> None:
        move(*arguments)  # type: ignore[arg-type]
        source.git("update-ref", f"{RUN}T1/1/base", other)

    with monkeypatch.context() as racing:
        racing.setattr(refs, "move", moved)
        with refusing("git.ref-moved"):
            run.fold()
    assert source.kept(RUN) == {**run.kept, f"{RUN}T1/1/base": other}


def test_refs_are_packed_now_and_then(source: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refs, "_MANY", 6)
    run.tasks(1, 2, 3)
    assert f"{RUN}T1/1/base" in (source.common_dir / "packed-refs").read_text()
    run.tasks(4)
    run.verify()
    run.fold()
    run.verify()


def test_git_shows_no_commit_of_ours(source: GitSandbox, run: Run) -> None:
    run.tasks(1, 2)
    assert len(source.git("log", "--all", "--format=%h").splitlines()) == 3
    run.fold()
    assert len(source.git("log", "--all", "--format=%h").splitlines()) == 3


CARE = {
    "gc": ["gc", "--quiet"],
    "gc now": ["gc", "--quiet", "--prune=now"],
    "repack": ["repack", "-adbq"],
    "pack refs": ["pack-refs", "--all", "--prune"],
    "commit graph": ["commit-graph", "write", "--reachable"],
}


def test_everything_survives_what_git_does_to_a_repository(source: GitSandbox, run: Run) -> None:
    for number, arguments in enumerate(CARE.values()):
        run.tasks(2 * number)
        source.git(*arguments)
        source.git("prune", "--expire=now")
        run.verify()
        run.tasks(2 * number + 1)
        run.fold()
        source.git(*arguments)
        source.git("prune", "--expire=now")
        run.verify()


def cloned(*options: str) -> Callable[[GitSandbox], GitSandbox]:
    def clone(source: GitSandbox) -> GitSandbox:
        place = source.root.with_name("clone")
        source.git("clone", "--quiet", *options, "." if "--shared" in options else f"file://{source.root}", str(place))
        return GitSandbox(place)

    return clone


def worktree(source: GitSandbox) -> GitSandbox:
    source.git("worktree", "add", "--quiet", "../tree")
    return GitSandbox(source.root.with_name("tree"))


def logged(source: GitSandbox) -> GitSandbox:
    source.git("config", "core.logAllRefUpdates", "always")
    return source


KINDS = {
    "shared clone": cloned("--shared"),
    "shallow clone": cloned("--depth=1"),
    "clone without trees": cloned("--filter=tree:0"),
    "worktree": worktree,
    "every ref has a log": logged,
}


@pytest.mark.parametrize("kind", one_on_a_push([*KINDS], "kind of repository"))
def test_a_run_is_kept_in_every_kind_of_repository(source: GitSandbox, kind: str) -> None:
    copy = KINDS[kind](source)
    run = Run(copy)
    run.tasks(0, 1)
    run.fold()
    copy.git("gc", "--quiet", "--prune=now")
    run.tasks(2)
    run.verify()
    if copy.common_dir != source.common_dir:
        source.git("fsck", "--full", "--strict")


def mirror(source: GitSandbox) -> None:
    source.git("clone", "--quiet", "--mirror", ".", "../copy")


def push(source: GitSandbox) -> None:
    source.git("init", "--quiet", "--bare", "../copy")
    source.git("push", "--quiet", "--mirror", "../copy")


def bundle(source: GitSandbox) -> None:
    source.git("bundle", "create", "--quiet", "../all.bundle", "--all")
    source.git("clone", "--quiet", "--mirror", "../all.bundle", "../copy")


COPIES = {"mirror": mirror, "push": push, "bundle": bundle}


@pytest.mark.parametrize("copy", one_on_a_push([*COPIES], "copy of a repository"))
def test_a_copy_of_the_repository_has_every_name_and_object(source: GitSandbox, run: Run, copy: str) -> None:
    run.tasks(1, 2)
    run.fold()
    run.tasks(3)
    COPIES[copy](source)
    run.verify(GitSandbox(source.root.with_name("copy")))


@pytest.mark.nightly
@pytest.mark.parametrize("tasks", [30, pytest.param(500, marks=pytest.mark.nightly)])
def test_after_many_tasks_no_care_and_no_copy_loses_a_file_of_a_named_tree(
    source: GitSandbox, run: Run, tasks: int
) -> None:
    """R-GIT-1."""
    run.tasks(*range(tasks // 2))
    run.fold()
    run.tasks(*range(tasks // 2, tasks))
    objects = run.objects(source)
    assert len(objects.split()) > 3 * tasks
    for arguments in CARE.values():
        source.git(*arguments)
        source.git("prune", "--expire=now")
        require(source, objects)
    run.verify()
    for make_copy in COPIES.values():
        make_copy(source)
        copy = GitSandbox(source.root.with_name("copy"))
        run.verify(copy)
        require(copy, objects)
        shutil.rmtree(copy.root)


def is_record(name: str) -> bool:
    return name in {"plans", "reports"}


def test_a_freed_run_keeps_what_it_must_and_git_removes_the_rest(source: GitSandbox, run: Run) -> None:
    run.tasks(1)
    run.trees.keep_blobs(f"{RUN}plans", {"PLAN.md": run.trees.store(b"plan")}, "plans")
    run.history.keep_ref(f"{RUN}T1/1/meanwhile/x", source.git("rev-parse", "HEAD"))
    run.fold()
    run.tasks(2)
    run.trees.keep_blobs(f"{RUN}reports", {"1.md": run.trees.store(b"report")}, "reports")
    for _ in range(2):
        run.history.free(RUN, is_record)
        assert run.history.refs(RUN).keys() == {f"{RUN}plans", f"{RUN}reports"}
        assert source.refs("refs/idumb/").keys() == {f"{WORKTREE}/done/r", f"{WORKTREE}/head"}
    source.git("gc", "--quiet", "--prune=now")
    assert source.try_git("cat-file", "-e", run.kept[f"{RUN}T1/1/base"]).returncode == 1
    assert run.trees.kept_blobs(f"{RUN}plans").keys() == {"PLAN.md"}


def test_a_freed_run_without_plans_leaves_no_name(source: GitSandbox, run: Run) -> None:
    run.tasks(1)
    run.history.free(RUN, is_record)
    assert source.refs("refs/idumb/").keys() == {f"{WORKTREE}/head"}


def test_a_run_that_another_process_changes_while_it_is_freed_keeps_that_name(
    source: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.tasks(1)
    run.fold()
    commit = source.git("rev-parse", "HEAD")
    run.history.keep_ref(f"{RUN}T1/1/meanwhile/x", commit)
    delete, other = refs.delete_all, source.git("commit-tree", "-m", "x", "HEAD^{tree}")

    def moved(*arguments: object) -> None:
        source.git("update-ref", f"{RUN}T1/1/meanwhile/x", other)
        delete(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(refs, "delete_all", moved)
    with refusing("git.ref-moved"):
        run.history.free(RUN, is_record)
    assert source.refs(RUN) == {f"{RUN}T1/1/meanwhile/x": other}
    assert run.history.kept(f"{RUN}T1/1/base") is not None


def test_the_commit_of_head_is_kept(source: GitSandbox, run: Run) -> None:
    run.tasks(1)
    second = source.commit()
    run.tasks(2)
    assert source.refs(f"{WORKTREE}/head") == {f"{WORKTREE}/head": second}


def test_a_lock_that_git_holds_for_a_moment_is_waited_for(
    source: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git pack-refs --prune` locks each ref while it removes its file."""
    run.tasks(1)
    name, tree = f"{RUN}T1/1/base", run.trees.scan()
    lock = source.common_dir / f"{name}.lock"
    lock.touch()
    waits = itertools.count(1)
    monkeypatch.setattr(clock.SystemClock, "pause", lambda *_: lock.unlink() if next(waits) == 3 else None)
    kept = run.trees.keep(name, tree, "again").commit
    assert (run.history.kept(name), next(waits)) == (kept, 4)
    lock.touch()
    monkeypatch.setattr(clock.SystemClock, "pause", lambda *_: None)
    source.write("new", "")
    with refusing("git.ref-moved"):
        run.trees.keep(name, run.trees.scan(), "locked")


def test_a_damaged_tree_of_names_is_a_refusal_that_says_what_to_do(source: GitSandbox, run: Run) -> None:
    run.tasks(1)
    run.fold()
    tree = source.refs(f"{WORKTREE}/done/")[f"{WORKTREE}/done/r"]
    source.object_file(tree).unlink()
    history = GitHistory(discover.find(str(source.root)))
    with pytest.raises(Refusal, match="missing or damaged") as caught:
        history.kept(f"{RUN}T1/1/base")
    assert (caught.value.code, caught.value.hint) == ("git.object-missing", "idumb doctor --fix")


REF = "refs/idumb/worktrees/main/runs/r/base"


@pytest.fixture
def place(sandbox: GitSandbox) -> Worktree:
    for name in ("one", "two", "three"):
        sandbox.write("a.txt", name)
        sandbox.commit(name)
        sandbox.git("tag", name)
    return discover.at(str(sandbox.root))


def commit(sandbox: GitSandbox, name: str) -> str:
    return sandbox.git("rev-parse", name)


@pytest.mark.parametrize("before", ["one", ""])
def test_a_ref_that_another_process_moved_or_created_keeps_its_value(
    sandbox: GitSandbox, place: Worktree, before: str
) -> None:
    if before:
        sandbox.git("update-ref", REF, before)
    place.guard = lambda: (sandbox.git("update-ref", REF, "two"), None)[1]  # between the check and the write
    with refusing("git.ref-moved"):
        refs.move(open_repository.repository(place), REF, commit(sandbox, "three"))
    assert sandbox.kept("refs/idumb/") == {REF: commit(sandbox, "two")}


def test_a_process_that_lost_ownership_moves_no_ref(sandbox: GitSandbox, place: Worktree) -> None:
    def lost() -> None:
        raise Refusal("lock.lost", "taken over")

    place.guard = lost
    with refusing("lock.lost"):
        refs.move(open_repository.repository(place), REF, commit(sandbox, "three"))
    assert sandbox.kept("refs/idumb/") == {}


def test_a_new_ref_syncs_itself_and_only_the_folders_that_changed(
    sandbox: GitSandbox, place: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders above the repository are not opened: an unlistable one would stop every task."""
    forced: list[str] = []
    force = disk.force

    def noted(paths: Iterable[str]) -> None:
        synced = list(paths)
        forced.extend(os.path.relpath(path, place.common_dir) for path in synced)
        force(synced)

    monkeypatch.setattr(disk, "force", noted)
    refs.move(open_repository.repository(place), REF, commit(sandbox, "one"))
    folders = ["refs", *(f"refs/idumb{rest}" for rest in ("", "/worktrees", "/worktrees/main", "/worktrees/main/runs"))]
    assert sorted(set(forced)) == sorted([*folders, "refs/idumb/worktrees/main/runs/r", REF])
    forced.clear()
    refs.move(open_repository.repository(place), f"{REF}2", commit(sandbox, "one"))
    assert sorted(set(forced)) == ["refs/idumb/worktrees/main/runs/r", f"{REF}2"]


def test_refs_are_listed_whether_loose_or_packed(sandbox: GitSandbox, place: Worktree) -> None:
    names = [f"refs/idumb/worktrees/main/runs/{run}/base" for run in ("packed", "moved", "loose")]
    for name in names[:2]:
        sandbox.git("update-ref", name, "one")
    sandbox.git("pack-refs", "--all", "--prune")
    for name in names[1:]:
        sandbox.git("update-ref", name, "two")
    one, two = commit(sandbox, "one"), commit(sandbox, "two")
    assert discover.refs_in(place, "refs/idumb/") == dict(zip(names, (one, two, two), strict=True))
    (sandbox.common_dir / f"{names[2]}.lock").touch()
    sandbox.git("tag", "four", "one")
    assert discover.refs_in(place, "refs/tags/").keys() == {f"refs/tags/{n}" for n in ("one", "two", "three", "four")}
    assert refs.of_user(place) == sandbox.refs("refs/heads/") | sandbox.refs("refs/tags/")


def test_a_folder_that_libgit2_could_not_force_to_disk_takes_no_ref_from_this_process(
    sandbox: GitSandbox, place: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOG-5: the system drops what it could not write, so a second fsync would falsely succeed."""
    monkeypatch.setattr(disk, "failed", set())
    repository = open_repository.repository(place)
    folder = os.path.join(place.common_dir, os.path.dirname(REF))

    def fail(*_: object, **__: object) -> None:
        raise OSError(f"failed to fsync directory '{folder}': Disk quota exceeded")

    with monkeypatch.context() as broken:
        broken.setattr(type(repository), "create_reference_direct", fail)
        with pytest.raises(OSError, match="Disk quota exceeded"):
            refs.move(repository, REF, commit(sandbox, "one"))
    with pytest.raises(OSError, match="could not be forced to disk before"):
        refs.move(repository, REF, commit(sandbox, "one"))
