"""One ref for each working tree names everything that idumb keeps but commits (R-GIT-1)."""

from __future__ import annotations

import itertools

import pytest

from idumb.domain.errors import Refusal
from idumb.git import discover, open_repository, refs
from idumb.git.history import GitHistory
from idumb.git.kept import kept_names
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FILE, Item
from idumb.git.trees import GitTrees
from idumb.system import clock
from tests.adapters.git.conftest import REF
from tests.support.gitrepo import GitSandbox

ROOT = "refs/idumb/kept/main"
WORKTREE = "refs/idumb/worktrees/main"


class Names:
    """The names of a sandbox. Each reads what the last one wrote, as another process does."""

    def __init__(self, sandbox: GitSandbox) -> None:
        self.place = discover.find(str(sandbox.root))
        self.repository = open_repository.repository(self.place)
        self.writer = Writer(self.place, self.repository)

    def put(self, name: str, text: str) -> str:
        oid = self.writer.blob(text.encode())
        kept_names.put(self.repository, self.place, self.writer, f"{WORKTREE}/{name}", Item(FILE, oid))
        return oid.hex()

    def find(self, name: str) -> str | None:
        return kept_names.find(self.repository, self.place, f"{WORKTREE}/{name}")

    def below(self, prefix: str = "") -> dict[str, str]:
        return kept_names.below(self.repository, self.place, f"{WORKTREE}/{prefix}")


@pytest.fixture
def names(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> Names:
    monkeypatch.setattr(kept_names, "_tables", {})
    sandbox.write("a", "1")
    sandbox.commit()
    return Names(sandbox)


def other_process(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> Names:
    monkeypatch.setattr(kept_names, "_tables", {})
    return Names(sandbox)


def depth(sandbox: GitSandbox) -> int:
    rows = sandbox.git("ls-tree", "-r", "--name-only", ROOT).splitlines()
    return max(row.count("/") + 1 for row in rows)


def test_hundreds_of_names_of_many_runs_are_found_by_another_process(
    sandbox: GitSandbox, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"scan": names.put("scan", "scan")}
    wanted = [
        f"runs/{run}/T{task}/1/base"
        for run, number in (("one", 300), ("two", 20), ("three", 1), ("one", 305), ("four", 1))
        for task in range(number)
    ]
    for name in (*wanted, *(f"roles/{role}/planner/base" for role in range(3))):
        kept[name] = names.put(name, name)
    again = other_process(sandbox, monkeypatch)
    expected = {f"{WORKTREE}/{name}": oid for name, oid in kept.items()}
    assert again.below() == sandbox.kept() == expected
    assert {name: again.find(name) for name in kept} == kept
    assert again.find("runs/one/T306/1/base") is again.find("runs/none/x") is again.find("roles/9/x/y") is None
    assert again.below("runs/two/") == {n: oid for n, oid in expected.items() if "/two/" in n}
    assert depth(sandbox) == 4
    assert list(sandbox.refs("refs/idumb/")) == [ROOT]


def test_git_shows_no_commit_and_keeps_every_object(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write("a", "1")
    sandbox.commit()
    sandbox.write("a", "2")
    snapshot = trees.snapshot(REF, "before T1")
    assert len(sandbox.git("log", "--all", "--format=%h").splitlines()) == 1
    sandbox.git("config", "core.logAllRefUpdates", "always")
    trees.keep(f"{REF}2", trees.scan(), "after")
    sandbox.git("pack-refs", "--all", "--prune")
    trees.keep(f"{REF}3", trees.scan(), "after")
    sandbox.git("gc", "--quiet", "--prune=now")
    sandbox.git("fsck", "--full", "--strict")
    assert set(sandbox.kept()) == {REF, f"{REF}2", f"{REF}3", f"{WORKTREE}/head"}
    assert sandbox.git("cat-file", "blob", f"{snapshot.commit}:worktree/a") == "2"
    assert len(sandbox.git("log", "--all", "--format=%h").splitlines()) == 1


@pytest.mark.parametrize(
    "copy",
    [
        ["clone", "--quiet", "--mirror", ".", "../copy"],
        ["clone", "--quiet", "--mirror", "--filter=tree:0", "file://{top}", "../copy"],
        ["clone", "--quiet", "--mirror", "--filter=blob:none", "file://{top}", "../copy"],
        ["push", "--quiet", "--mirror", "../copy"],
        ["bundle", "create", "--quiet", "../copy.bundle", "--all"],
    ],
)
def test_copies_of_the_repository_have_what_is_kept(sandbox: GitSandbox, trees: GitTrees, copy: list[str]) -> None:
    sandbox.write("a", "1")
    sandbox.commit()
    snapshot = trees.snapshot(REF, "a tree that a commit has too")
    if copy[0] == "push":
        sandbox.git("init", "--quiet", "--bare", "../copy")
    sandbox.git("config", "uploadpack.allowFilter", "true")
    sandbox.git(*(word.format(top=sandbox.root) for word in copy))
    if copy[0] == "bundle":
        sandbox.git("clone", "--quiet", "--mirror", "../copy.bundle", "../copy")
    assert sandbox.git("-C", "../copy", "cat-file", "-t", f"{snapshot.commit}:worktree/a") == "blob"
    sandbox.git("-C", "../copy", "fsck", "--full", "--strict")


def test_the_newest_object_of_a_name_counts_wherever_the_older_one_is(
    sandbox: GitSandbox, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        names.put(f"runs/r/T{number}/1/base", str(number))
    newest = names.put("runs/r/T0/1/base", "again")
    newer = names.put("runs/r/T39/1/base", "again too")
    names.put("runs/other/base", "closes the first run")
    again = other_process(sandbox, monkeypatch)
    assert (again.find("runs/r/T0/1/base"), again.find("runs/r/T39/1/base")) == (newest, newer)
    order = list(kept_names.newest_first(again.repository, again.place, "main"))
    assert order[1:3] == [newer, newest]


def test_a_name_costs_one_small_tree_however_many_there_are(sandbox: GitSandbox, names: Names) -> None:
    def objects() -> int:
        return len(list(sandbox.common_dir.glob("objects/??/*")))

    for number in range(256):
        names.put(f"runs/r/T{number}/1/base", "the same")
    before = objects()
    for number in range(256, 512):
        names.put(f"runs/r/T{number}/1/base", "the same")
    assert objects() - before == 256 + 256 // 16 + 1
    assert sum(int(row.split()[3]) for row in sandbox.git("ls-tree", "-l", "-t", ROOT).splitlines() if " blob " in row)
    assert int(sandbox.git("cat-file", "-s", ROOT)) < 4_000


def test_a_ref_that_was_set_back_or_deleted_loses_nothing_that_this_process_knows(
    sandbox: GitSandbox, names: Names
) -> None:
    names.put("runs/old/base", "old")
    first = sandbox.git("rev-parse", ROOT)
    kept = {f"{WORKTREE}/runs/r/{n}/1/base": names.put(f"runs/r/{n}/1/base", str(n)) for n in range(40)}
    for tamper in (["update-ref", ROOT, first], ["update-ref", ROOT, "HEAD"], ["update-ref", "-d", ROOT]):
        sandbox.git(*tamper)
        kept[f"{WORKTREE}/runs/new/base"] = names.put("runs/new/base", " ".join(tamper))
        assert sandbox.kept().items() >= kept.items(), tamper


def test_a_ref_that_was_deleted_does_not_come_back_with_objects_that_are_gone(
    sandbox: GitSandbox, names: Names
) -> None:
    """`git gc` fails in a repository in which a ref reaches a missing object."""
    for number in range(20):
        names.put(f"runs/old/{number}/1/base", f"old {number}")
    for number in range(20):
        names.put(f"runs/r/{number}/1/base", f"new {number}")
    still = {f"{WORKTREE}/{name}": names.find(name) or "" for name in ("runs/old/3/1/base", "runs/r/3/1/base")}
    for number, oid in enumerate(still.values()):
        sandbox.git("update-ref", f"refs/other/{number}", oid)
    sandbox.git("update-ref", "-d", ROOT)
    sandbox.git("gc", "--quiet", "--prune=now")
    still[f"{WORKTREE}/runs/new/base"] = names.put("runs/new/base", "new")
    sandbox.git("fsck", "--full", "--strict")
    sandbox.git("gc", "--quiet")
    assert sandbox.kept().items() <= still.items()
    assert {f"{WORKTREE}/runs/r/3/1/base", f"{WORKTREE}/runs/new/base"} <= sandbox.kept().keys()


@pytest.mark.parametrize("part", ["chunk1", "closed"])
def test_what_remains_of_a_damaged_tree_keeps_its_names(
    sandbox: GitSandbox, names: Names, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    names.put("scan", "scan")
    names.put("runs/old/base", "old")
    for number in range(20):
        names.put(f"runs/r/{number}/1/base", str(number))
    before, root = sandbox.kept(), sandbox.git("rev-parse", ROOT)
    rows = [row.split(maxsplit=3) for row in sandbox.git("ls-tree", root).splitlines()]
    oid = next(row[2] for row in rows if row[3].startswith(part))
    (sandbox.common_dir / "objects" / oid[:2] / oid[2:]).unlink()
    again = other_process(sandbox, monkeypatch)
    with pytest.raises(Refusal, match=f"tree {oid} .* is missing or damaged") as caught:
        again.below()
    assert caught.value.code == "git.object-missing"
    kept_names.keep(again.repository, again.place, again.writer, ROOT, root)
    gone = {"runs/old/base"} if part == "closed" else {f"runs/r/{number}/1/base" for number in range(16)}
    assert sandbox.kept() == {n: at for n, at in before.items() if n.removeprefix(f"{WORKTREE}/") not in gone}
    again.put("runs/new/base", "new")
    sandbox.git("fsck", "--full", "--strict")


def test_a_ref_that_was_set_back_gets_the_names_of_a_later_tree_and_keeps_its_own(
    sandbox: GitSandbox, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = sandbox.kept
    for name in ("scan", "runs/old/base", "runs/older/base"):
        names.put(name, name)
    first = sandbox.git("rev-parse", ROOT)
    for number in range(40):
        names.put(f"runs/r/{number}/1/base", str(number))
    for name in ("scan", "runs/old/T1/1/base", "roles/1/planner/base", "runs/older/base", "note"):
        names.put(name, f"{name}, later")
    later, root = kept(), sandbox.git("rev-parse", ROOT)
    sandbox.git("update-ref", ROOT, first)
    again = other_process(sandbox, monkeypatch)
    for name in ("runs/r/7/1/base", "runs/new/base"):
        again.put(name, f"{name}, meanwhile")
    before = kept()
    expected = {n: oid for n, oid in later.items() if n not in before}
    assert len(expected) == 42
    assert kept_names.missing(again.repository, again.place, ROOT, root) == expected
    kept_names.keep(again.repository, again.place, again.writer, ROOT, root)
    assert kept() == {**later, **before}
    assert kept_names.missing(again.repository, again.place, ROOT, root) == {}
    same = sandbox.git("rev-parse", ROOT)
    kept_names.keep(again.repository, again.place, again.writer, ROOT, root)
    assert sandbox.git("rev-parse", ROOT) == same
    sandbox.git("fsck", "--full", "--strict")


def test_names_of_another_process_stay(sandbox: GitSandbox, names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = names.put("runs/r/1/base", "mine")
    tables = kept_names._tables
    theirs = other_process(sandbox, monkeypatch).put("runs/r/2/base", "theirs")
    monkeypatch.setattr(kept_names, "_tables", tables)
    also_mine = names.put("runs/r/3/base", "also mine")
    assert sandbox.kept() == {
        f"{WORKTREE}/runs/r/{number}/base": oid for number, oid in enumerate((mine, theirs, also_mine), 1)
    }


def test_names_are_dropped_by_their_expected_object(sandbox: GitSandbox, names: Names) -> None:
    for number in range(20):
        names.put(f"runs/r/{number}/base", str(number))
    gone = {name: names.put(name, name) for name in ("scan", "roles/1/planner/base", "runs/r/3/base")}
    before = sandbox.kept()
    for name, oid in gone.items():
        with pytest.raises(Refusal, match="not 1111"):
            kept_names.drop(names.repository, names.place, names.writer, f"{WORKTREE}/{name}", "1" * 40)
        kept_names.drop(names.repository, names.place, names.writer, f"{WORKTREE}/{name}", oid)
        assert names.find(name) is None
    assert sandbox.kept() == {n: oid for n, oid in before.items() if n.removeprefix(f"{WORKTREE}/") not in gone}
    newest = names.put("runs/r/4/base", "after a name was dropped")
    assert names.find("runs/r/4/base") == sandbox.kept()[f"{WORKTREE}/runs/r/4/base"] == newest


def test_a_commit_has_a_ref_of_its_own_that_says_what_it_is(sandbox: GitSandbox, history: GitHistory) -> None:
    name, head = f"{WORKTREE}/runs/r/T1/1/meanwhile/x", sandbox.commit()
    history.keep_ref(name, head)
    history.keep_ref(f"{WORKTREE}/runs/r/T1/1/base", sandbox.git("rev-parse", f"{head}^{{tree}}"))
    assert sandbox.refs("refs/idumb/").keys() == {name, ROOT}
    assert history.refs(f"{WORKTREE}/runs/r/").keys() == {name, f"{WORKTREE}/runs/r/T1/1/base"}
    history.delete_ref(name, head)
    assert sandbox.refs("refs/idumb/").keys() == {ROOT}


def test_a_project_in_a_subfolder_watches_the_refs_of_head_too(sandbox: GitSandbox) -> None:
    sandbox.write("sub/a", "1")
    first = sandbox.commit()
    place = discover.find(str(sandbox.root))
    project = discover.Project(place, "sub")
    history, trees = GitHistory(place, project=project), GitTrees(place, key=project.key)
    name = f"refs/idumb/worktrees/{project.key}/runs/r/T1/1/base"
    trees.snapshot(name, "before T1")
    sandbox.git("commit", "--quiet", "--amend", "-m", "rewritten")
    trees.snapshot(name, "before T2")
    refs = history.kept_refs()
    head, former = f"{WORKTREE}/head", f"{WORKTREE}/former/{first[:16]}"
    assert refs.keys() == {f"refs/idumb/kept/{project.key}", head, former}
    for ref in (head, former):
        sandbox.git("update-ref", "-d", ref)
        assert history.kept_refs() == {n: at for n, at in history.expected_refs().items() if n != ref}
        sandbox.git("update-ref", ref, refs[ref])


def test_a_head_that_moved_forward_needs_no_second_ref(sandbox: GitSandbox, trees: GitTrees) -> None:
    """Each commit keeps the ones before it, so that a ref for each of them would only slow git down."""
    sandbox.commit()
    trees.snapshot(f"{WORKTREE}/runs/r/T1/1/base", "before T1")
    second = sandbox.commit()
    trees.snapshot(f"{WORKTREE}/runs/r/T2/1/base", "before T2")
    assert sandbox.refs("refs/idumb/").keys() == {ROOT, f"{WORKTREE}/head"}
    assert sandbox.git("rev-parse", f"{WORKTREE}/head") == second


def test_a_lock_that_git_holds_for_a_moment_is_waited_for(
    sandbox: GitSandbox, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git pack-refs --prune` locks each ref while it removes its file."""
    names.put("runs/r/1/base", "1")
    lock = sandbox.common_dir / f"{ROOT}.lock"
    lock.touch()
    waits = itertools.count(1)
    monkeypatch.setattr(clock.SystemClock, "pause", lambda *_: lock.unlink() if next(waits) == 3 else None)
    kept = names.put("runs/r/2/base", "2")
    assert (names.find("runs/r/2/base"), next(waits)) == (kept, 4)
    lock.touch()
    monkeypatch.setattr(clock.SystemClock, "pause", lambda *_: None)
    with pytest.raises(Refusal) as caught:
        names.put("runs/r/3/base", "3")
    assert caught.value.code == "git.ref-moved"


def test_the_ref_moves_only_when_every_object_can_be_read_back(sandbox: GitSandbox, names: Names) -> None:
    names.put("runs/r/1/base", "1")
    root = sandbox.git("rev-parse", ROOT)
    oid = names.writer.blob(b"2")
    with pytest.raises(Refusal, match="missing or damaged"):
        kept_names.put(
            names.repository,
            names.place,
            names.writer,
            f"{WORKTREE}/runs/r/2/base",
            Item(FILE, oid),
            damaged=lambda *, trusting: "1" * 40,
        )
    assert sandbox.git("rev-parse", ROOT) == root == refs.current(names.repository, ROOT)
    assert names.find("runs/r/2/base") is None
