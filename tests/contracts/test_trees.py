"""What the trees of a working tree promise, asked of git's and of those in memory (R-GIT-2, R-GIT-3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pytest

from idumb.app.ports import Conflict
from idumb.domain.errors import Refusal
from idumb.git import discover
from idumb.git.checkouts.checkout import Checkout
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox
from tests.support.memory_repository import MemoryHistory, MemoryRepository, MemoryTrees

Changes = Mapping[str, bytes | None]
"""What each file becomes; one that is None is removed."""
REF = "refs/idumb/worktrees/main/runs/r1/T1/1/base"


class Folder(Protocol):
    """A working tree with its two ports."""

    trees: GitTrees | MemoryTrees
    history: GitHistory | MemoryHistory

    def change(self, files: Changes) -> None: ...
    def files(self) -> dict[str, bytes]: ...
    def ignore(self, path: str) -> None: ...
    def commit(self) -> str: ...


class MemoryFolder:
    def __init__(self, _: GitSandbox | None = None) -> None:
        self.repository = MemoryRepository()
        self.trees = MemoryTrees(self.repository)
        self.history: GitHistory | MemoryHistory = MemoryHistory(self.repository)

    def change(self, files: Changes) -> None:
        for path, data in files.items():
            if data is None:
                del self.repository.files[path]
            else:
                self.repository.files[path] = data

    def files(self) -> dict[str, bytes]:
        return dict(self.repository.files)

    def ignore(self, path: str) -> None:
        self.repository.ignored.add(path)

    def commit(self) -> str:
        return self.repository.commit_all()


def not_opened() -> Checkout:
    raise AssertionError("only hooks need a checkout")


class GitFolder:
    def __init__(self, sandbox: GitSandbox) -> None:
        self.sandbox = sandbox
        repository = discover.find(str(sandbox.root))
        self.trees = GitTrees(repository)
        self.history: GitHistory | MemoryHistory = GitHistory(repository, proof=not_opened)

    def change(self, files: Changes) -> None:
        self.sandbox.change(files)

    def files(self) -> dict[str, bytes]:
        tree = self.sandbox.root
        paths = (p for p in tree.rglob("*") if p.is_file() and ".git" not in p.relative_to(tree).parts)
        return {p.relative_to(tree).as_posix(): p.read_bytes() for p in paths}

    def ignore(self, path: str) -> None:
        with (self.sandbox.git_dir / "info/exclude").open("a") as rules:
            rules.write(f"/{path}\n")

    def commit(self) -> str:
        return self.sandbox.commit()


class ProjectFolder(GitFolder):
    """A project in a subfolder, beside a file of its neighbour that is never touched."""

    NAME = "apps/api"

    def __init__(self, sandbox: GitSandbox) -> None:
        sandbox.write("apps/web/page.txt", "page\n")
        (sandbox.root / self.NAME).mkdir()
        project = discover.Project(discover.find(str(sandbox.root)), self.NAME)
        project.key = "main"  # as in REF
        self.sandbox, self.root = sandbox, sandbox.root / self.NAME
        self.trees = GitTrees(project.worktree, folder=self.NAME)
        self.history: GitHistory | MemoryHistory = GitHistory(project.worktree, project=project, proof=not_opened)

    def change(self, files: Changes) -> None:
        super().change({f"{self.NAME}/{path}": data for path, data in files.items()})

    def files(self) -> dict[str, bytes]:
        assert self.sandbox.read("apps/web/page.txt") == "page\n"
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}

    def ignore(self, path: str) -> None:
        super().ignore(f"{self.NAME}/{path}")

    def commit(self) -> str:
        return self.sandbox.commit("work", self.NAME)


@pytest.fixture(params=[MemoryFolder, GitFolder, ProjectFolder], ids=["memory", "git", "project"])
def folder(request: pytest.FixtureRequest, sandbox: GitSandbox) -> Folder:
    (sandbox.git_dir / "info").mkdir(exist_ok=True)
    implementation: Folder = request.param(sandbox)
    return implementation


def scanned(folder: Folder, files: Changes) -> str:
    folder.change(files)
    return folder.trees.scan()


def committed(folder: Folder, files: Changes) -> str:
    folder.change(files)
    return folder.commit()


def kinds(folder: Folder, old: str, new: str) -> dict[str, str]:
    return {change.path: change.kind for change in folder.trees.changes(old, new)}


def test_a_scan_of_the_same_files_is_the_same_tree(folder: Folder) -> None:
    first = scanned(folder, {"a": b"1"})
    assert scanned(folder, {"a": b"2"}) != first
    assert scanned(folder, {"a": b"1"}) == first


def test_changes_name_what_was_created_modified_and_deleted_in_the_order_of_paths_with_both_entries(
    folder: Folder,
) -> None:
    old = scanned(folder, dict.fromkeys(("b", "a/kept", "c"), b"1"))
    new = scanned(folder, {"z": b"new", "b": b"2", "c": None})
    assert list(kinds(folder, old, new).items()) == [("b", "modified"), ("c", "deleted"), ("z", "created")]
    assert kinds(folder, new, old) == {"b": "modified", "c": "created", "z": "deleted"}
    entries = [(folder.trees.entry(old, path), folder.trees.entry(new, path)) for path in ("b", "c", "z")]
    assert [(change.old, change.new) for change in folder.trees.changes(old, new)] == entries
    contents = [tuple(entry and folder.trees.read(entry.oid) for entry in pair) for pair in entries]
    assert contents == [(b"1", b"2"), (b"1", None), (None, b"new")]
    assert folder.trees.changes(new, new) == ()


def test_an_ignored_file_is_scanned_only_by_its_name(folder: Folder) -> None:
    folder.ignore("secret")
    without = scanned(folder, {"secret": b"1", "a": b"1"})
    assert folder.trees.ignored() == ("secret",)
    assert folder.trees.entry(without, "secret") is None
    assert kinds(folder, without, folder.trees.scan(["secret"])) == {"secret": "created"}


def test_a_tree_tells_files_from_folders_and_from_nothing(folder: Folder) -> None:
    tree = scanned(folder, {"src/a": b"1"})
    assert folder.trees.is_folder(tree, "src")
    assert not folder.trees.is_folder(tree, "src/a")
    assert not folder.trees.is_folder(tree, "sr")
    assert folder.trees.entry(tree, "none") is None


def test_an_overlay_takes_named_paths_from_the_other_tree_and_no_others(folder: Folder) -> None:
    old = scanned(folder, {"a": b"1", "gone": b"1"})
    new = scanned(folder, {"a": b"2", "other": b"2", "gone": None})
    mixed = folder.trees.overlay(new, old, ["a", "gone"])
    assert kinds(folder, old, mixed) == {"other": "created"}
    assert folder.trees.overlay(new, old, ["a", "gone", "other"]) == old
    assert folder.trees.overlay(new, old, []) == new


def test_overlays_of_several_trees_apply_one_after_the_other(folder: Folder) -> None:
    first, second = (scanned(folder, {"a": data, "b": data}) for data in (b"1", b"2"))
    third = scanned(folder, {"a": None})
    mixed = folder.trees.overlay_each(third, [(second, ["a"]), (first, ["a", "b"]), (second, ["b"])])
    assert mixed == folder.trees.overlay(second, first, ["a"])
    assert folder.trees.overlay_each(mixed, [(first, ["b"]), (third, ["a"])]) == folder.trees.overlay(
        first, third, ["a"]
    )
    assert folder.trees.overlay_each(third, []) == third


def test_a_snapshot_is_kept_under_its_ref_and_has_the_scanned_tree(folder: Folder) -> None:
    folder.change({"a": b"1"})
    kept = folder.trees.snapshot(REF, "before T1")
    assert (kept.tree, kept.ref) == (folder.trees.scan(), REF)
    assert folder.history.refs("refs/idumb/") == {REF: folder.history.kept(REF)} == {REF: kept.commit}
    folder.change({"a": b"2"})
    assert folder.trees.tree_at(kept.commit) == kept.tree


def test_after_a_snapshot_and_changes_restore_brings_every_byte_back(folder: Folder) -> None:
    folder.change({"a": b"1\r\n\xff", "gone/deep": b"2"})
    before, base = folder.files(), folder.trees.snapshot(REF, "before T1").tree
    tree = scanned(folder, {"a": b"9", "new/deep": b"n", "gone/deep": None})
    assert folder.trees.restore(base, tree, [c.path for c in folder.trees.changes(base, tree)]) == ()
    assert folder.files() == before
    assert folder.trees.scan() == base


def test_restore_writes_nothing_if_one_path_is_not_as_expected(folder: Folder) -> None:
    base = scanned(folder, dict.fromkeys(("a", "again", "b", "c"), b"1"))
    tree = scanned(folder, {"again": None, **dict.fromkeys(("a", "b", "c", "new"), b"2")})
    folder.change({"c": None, **dict.fromkeys(("again", "b", "new"), b"mine")})
    before = folder.files()
    assert folder.trees.restore(base, tree, ["a", "again", "b", "c", "new"]) == (
        Conflict("again", "was created since"),
        Conflict("b", "was changed since"),
        Conflict("c", "was deleted since"),
        Conflict("new", "was changed since"),
    )
    assert folder.files() == before


def test_restore_can_be_repeated_and_a_path_that_is_restored_is_no_conflict(folder: Folder) -> None:
    base, tree = (scanned(folder, {"a": data, "b": data}) for data in (b"1", b"2"))
    folder.change({"a": b"1"})
    assert folder.trees.restore(base, tree, ["a", "b"]) == ()
    assert folder.trees.restore(base, tree, ["a", "b"]) == ()
    assert folder.files() == {"a": b"1", "b": b"1"}


def test_restore_writes_only_the_named_paths_and_by_force_whatever_is_there(folder: Folder) -> None:
    base = scanned(folder, {"a": b"1"})
    tree = scanned(folder, {"a": b"2", "other": b"2"})
    assert folder.trees.restore(base, tree, ["a"]) == ()
    assert folder.files() == {"a": b"1", "other": b"2"}
    folder.change({"a": b"mine"})
    assert folder.trees.restore(base, tree, ["a"], force=True) == ()
    assert folder.files() == {"a": b"1", "other": b"2"}


def test_blobs_are_kept_by_name_under_a_ref(folder: Folder) -> None:
    blob = folder.trees.store(b"a plan")
    folder.trees.keep_blobs(REF, {"01-PLAN.md": blob}, "plans")
    assert folder.trees.kept_blobs(REF) == {"01-PLAN.md": blob}
    assert folder.trees.read(blob) == b"a plan"
    assert b"".join(folder.trees.pieces(blob)) == b"a plan"
    assert folder.trees.kept_blobs(f"{REF}/none") == {}


def test_an_object_that_is_missing_is_a_refusal(folder: Folder) -> None:
    with refusing("git.object-missing"):
        folder.trees.read("0" * 39 + "1")


def test_before_the_first_commit_head_has_a_branch_and_no_commit(folder: Folder) -> None:
    assert (folder.history.head().commit, folder.history.head().branch) == (None, "main")
    assert folder.trees.changes(folder.history.head_tree(), folder.history.tree_of(None)) == ()
    folder.change({"a": b"1"})
    assert folder.history.uncommitted(["**"]) == ("a",)


def test_uncommitted_paths_are_those_that_differ_from_head_and_fit_the_globs(folder: Folder) -> None:
    folder.ignore("ignored")
    committed(folder, dict.fromkeys(("a", "src/b", "src/c", "gone"), b"1"))
    folder.change({"src/b": b"2", "src/new": b"2", "ignored": b"2", "gone": None})
    assert folder.history.uncommitted(["a", "src/**", "ignored"]) == ("src/b", "src/new")
    assert folder.history.uncommitted(["gone", "src/b"]) == ("gone", "src/b")


def commit(folder: Folder, *paths: str, head: str | None, message: str = "T1") -> str | None:
    """Make a commit of these paths, and move the branch to it."""
    tree = folder.trees.committed(head, folder.trees.scan(), paths)
    made = folder.history.make(tree, head, message, hooks=False)
    assert made.commit is not None
    assert made.tree == folder.history.tree_of(made.commit)
    assert folder.history.head().commit == head
    assert folder.history.advance(folder.history.head().branch, made.commit, head, "T1") == ""
    return made.commit


def test_a_commit_has_exactly_the_named_paths_as_they_are_in_the_working_tree(folder: Folder) -> None:
    head = committed(folder, dict.fromkeys(("a", "b", "gone"), b"1"))
    folder.change({"a": b"2", "b": b"2", "gone": None})
    result = commit(folder, "a", "gone", head=head)
    assert result is not None
    assert kinds(folder, folder.history.tree_of(head), folder.history.tree_of(result)) == {
        "a": "modified",
        "gone": "deleted",
    }
    assert folder.history.head().commit == result
    assert folder.history.uncommitted(["**"]) == ("b",)


def test_the_branch_does_not_move_if_head_is_not_the_expected_one(folder: Folder) -> None:
    old, head = (committed(folder, {"a": data}) for data in (b"1", b"2"))
    folder.change({"a": b"3"})
    made = folder.history.make(folder.history.tree_of(head), old, "T1", hooks=False)
    assert folder.history.advance(folder.history.head().branch, str(made.commit), old, "T1")
    assert folder.history.head().commit == head


def test_trailers_are_read_from_head_back_to_a_commit_newest_first(folder: Folder) -> None:
    """Ours alone, and only in the last paragraph of a message."""
    assert folder.history.trailers_since(None) == ()
    start = committed(folder, {"a": b"1"})
    base = commit(folder, head=start, message="start\n\nIdumb-Task: T0\n")
    first = commit(folder, head=base, message="one\n\nReviewed-by: Pat\nIdumb-Run: r1\nIdumb-Task: T1\n")
    other = commit(folder, head=first, message="words of the user about Idumb-Run: r9")
    second = commit(folder, head=other, message="two\n\nbody\n\nIdumb-Run: r1\nIdumb-Task: T2\n")

    def rows(base: str | None) -> list[tuple[str, dict[str, str]]]:
        """Return the trailers without that of a project."""
        found = folder.history.trailers_since(base)
        return [(at, {name: text for name, text in ours.items() if name != "Idumb-Project"}) for at, ours in found]

    rows_of_run = [(at, {"Idumb-Run": "r1", "Idumb-Task": task}) for at, task in ((second, "T2"), (first, "T1"))]
    assert rows(base) == rows_of_run
    assert rows(None) == [*rows_of_run, (base, {"Idumb-Task": "T0"})]


def test_head_descends_from_its_ancestors_alone(folder: Folder) -> None:
    first, second = (committed(folder, {"a": data}) for data in (b"1", b"2"))
    assert folder.history.descends(first)
    assert folder.history.descends(second)
    assert folder.history.descends(first, second)
    assert not folder.history.descends(second, first)


def test_a_ref_is_kept_for_an_existing_commit_only(folder: Folder) -> None:
    head = committed(folder, {"a": b"1"})
    folder.history.keep_ref(REF, head)
    assert folder.history.refs(REF) == {REF: head}
    assert folder.history.kept(REF) == head
    with pytest.raises(Refusal):
        folder.history.keep_ref(f"{REF}-gone", "0" * 39 + "1")
