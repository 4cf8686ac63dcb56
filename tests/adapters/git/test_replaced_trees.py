"""Trees of names that newer ones replaced are deleted, except the newest and all that anything names (R-GIT-1)."""

from __future__ import annotations

import itertools
import os
import shutil
import tracemalloc
import zlib
from pathlib import Path

import pytest

from idumb.git import discover
from idumb.git.kept import kept_names, kept_packs, kept_table, replaced_trees
from idumb.git.objects import object_writer
from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox
from tests.support.kept import MANY, ROOT, RUN, Run, all_packed, loose

pytestmark = pytest.mark.usefixtures("early_packs")


@pytest.fixture(autouse=True)
def few_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaced_trees, "RECENT", 2)


def unreachable(sandbox: GitSandbox) -> set[str]:
    rows = sandbox.git("fsck", "--unreachable", "--no-reflogs", "--no-progress").splitlines()
    return {row.split()[2] for row in rows}


def replaced(run: Run) -> dict[str, None]:
    """The trees of names that newer ones replaced, as idumb finds them when it packs."""
    kept_packs._note_replaced(run.trees.repository, run.trees.writer)
    return run.trees.writer.replaced


def committed_root(sandbox: GitSandbox) -> tuple[str, str]:
    """Keep the tree of names in a commit of the user's; return both."""
    root = sandbox.git("rev-parse", ROOT)
    commit = sandbox.git("commit-tree", root, "-m", "what idumb keeps")
    sandbox.git("update-ref", "refs/heads/backup", commit)
    return root, commit


def test_of_the_trees_that_newer_ones_replaced_only_the_newest_stay(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GIT-1."""
    monkeypatch.setattr(replaced_trees, "RECENT", 5)
    roots = []
    for number in range(60):
        run.tasks(number)
        roots.append(sandbox.git("rev-parse", ROOT))
    run.trees.close()
    run.verify()
    left = unreachable(sandbox)
    # Of 119. The first 16 have rows of one kind only.
    assert len(left) <= 5 + 16
    assert set(roots[-3:-1]) <= left, "the newest stay"


def test_of_many_short_runs_only_the_newest_replaced_trees_stay(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GIT-1."""
    monkeypatch.setattr(replaced_trees, "RECENT", 5)
    for number in range(20):
        run.begin(f"r{number}")
        run.tasks(number)
        run.trees.close()
        run.trees = GitTrees(discover.find(str(sandbox.root)))
        kept_names._tables.clear()
    run.verify()
    ours = {oid for oid in unreachable(sandbox) if "runs:" in sandbox.git("cat-file", "-p", oid)}
    assert len(ours) < 20, "20 runs replaced 59 trees, and as many of closed runs"
    sandbox.git("gc", "--quiet", "--prune=now")
    run.verify()


def test_a_tree_of_names_that_is_in_use_again_is_not_deleted(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaced_trees, "RECENT", 0)
    for name in ("r1", "r2"):
        run.begin(name)
        run.tasks(1, 2)
    used = [sandbox.git("rev-parse", f"{ROOT}{path}") for path in ("", ":closed")]
    used += [row.split()[2] for row in sandbox.git("ls-tree", used[1]).splitlines()]
    writer = run.trees.writer
    writer.replaced, writer.packed = dict.fromkeys([*writer.replaced, *used]), True
    kept_packs.settle(discover.find(str(sandbox.root)), run.trees.repository, writer)
    assert set(used) <= loose(sandbox)
    run.verify()


def test_a_chunk_that_was_the_whole_tree_of_names_stays(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaced_trees, "RECENT", 0)
    monkeypatch.setattr(object_writer, "MANY", 10**6)
    roots = set()
    for number in range(10):
        run.tasks(number)
        roots.add(sandbox.git("rev-parse", ROOT))
    chunk = {row.split()[2] for row in sandbox.git("ls-tree", ROOT).splitlines() if "chunk" in row}
    assert chunk & roots
    assert not chunk & replaced(run).keys()
    assert roots & replaced(run).keys()
    run.trees.writer.packed = True
    run.trees.close()
    run.verify()


def test_no_object_of_the_user_is_deleted_whatever_the_notes_of_idumb_say(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaced_trees, "RECENT", 0)
    users = loose(sandbox)
    run.tasks(1)
    kept = loose(sandbox) - {sandbox.git("rev-parse", ROOT)}
    lines = [f"{name} replaced" for name in (*kept, "../../config", "0" * 40)]
    (sandbox.common_dir / "idumb/loose-objects").write_text("\n".join(lines) + "\n")
    run.trees.writer.packed = True
    run.trees.close()
    assert users <= loose(sandbox)
    run.verify()


@pytest.mark.parametrize(
    ("save", "refs"),
    [
        (("tag", "mine"), "loose"),
        (("tag", "-a", "-m", "mine", "mine"), "packed"),
        (("update-ref", "refs/backup/names"), "packed"),
        (("update-ref", "refs/idumb/backup"), "loose"),
    ],
)
def test_a_tree_of_names_that_a_ref_of_the_user_names_is_not_deleted(
    sandbox: GitSandbox, run: Run, save: tuple[str, ...], refs: str
) -> None:
    run.tasks(*range(10))
    root = sandbox.git("rev-parse", ROOT)
    sandbox.git(*save, root)
    if refs == "packed":
        sandbox.git("pack-refs", "--all")
    run.tasks(*range(10, 22))
    run.trees.close()
    assert root in loose(sandbox)
    run.verify()


def test_a_tree_of_names_in_a_commit_or_a_tree_of_the_user_is_not_deleted(sandbox: GitSandbox, run: Run) -> None:
    run.tasks(*range(10))
    committed, _ = committed_root(sandbox)
    run.tasks(10)
    inside = sandbox.git("rev-parse", ROOT)
    tree = sandbox.git("mktree", given=f"040000 tree {inside}\tkept\n".encode())
    sandbox.git("tag", "mine", tree)
    run.tasks(*range(11, 22))
    run.trees.close()
    assert {committed, inside} <= loose(sandbox)
    run.verify()


def test_a_tree_of_names_stays_if_a_pack_that_came_later_may_name_it(sandbox: GitSandbox, run: Run) -> None:
    run.tasks(*range(10))
    root, commit = committed_root(sandbox)
    sandbox.git("pack-objects", "-q", str(sandbox.common_dir / "objects/pack/pack"), given=f"{commit}\n".encode())
    (sandbox.common_dir / f"objects/{commit[:2]}/{commit[2:]}").unlink()
    run.tasks(*range(10, 22))
    run.trees.close()
    assert root in loose(sandbox)
    run.verify()


def test_no_tree_of_names_is_deleted_where_git_notes_the_history_of_refs(sandbox: GitSandbox, run: Run) -> None:
    sandbox.git("config", "core.logAllRefUpdates", "always")
    run.trees = GitTrees(discover.find(str(sandbox.root)))
    run.tasks(*range(30))
    run.trees.close()
    noted = [line.split()[1] for line in (sandbox.common_dir / "logs" / ROOT).read_text().splitlines()]
    assert len(noted) > 50
    assert set(noted) <= loose(sandbox) | all_packed(sandbox)
    run.verify()


@pytest.mark.parametrize("content", [b"", zlib.compress(b"tree 5\0")[:-3], b"pipe"])
def test_a_damaged_object_of_the_user_stops_no_run_and_nothing_is_deleted(
    sandbox: GitSandbox, run: Run, content: bytes
) -> None:
    """A power cut leaves empty objects. Nobody knows what a damaged object names."""
    run.tasks(*range(10))
    path = sandbox.common_dir / "objects/ab" / ("0" * 38)
    path.parent.mkdir(exist_ok=True)
    if content == b"pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    before = loose(sandbox) | all_packed(sandbox)
    run.tasks(*range(10, 22))
    run.trees.close()
    path.unlink()
    assert before <= loose(sandbox) | all_packed(sandbox) | {"ab" + "0" * 38}
    run.verify()


@pytest.mark.parametrize("name", ["tmp_obj_a", "0" * 37])
def test_a_file_that_is_no_object_changes_nothing(sandbox: GitSandbox, run: Run, name: str) -> None:
    (sandbox.common_dir / "objects/ab").mkdir(exist_ok=True)
    run.tasks(*range(12))
    (sandbox.common_dir / "objects/ab" / name).write_bytes(b"git begins to write")
    run.tasks(*range(12, 26))
    run.trees.close()
    assert len(unreachable(sandbox)) <= 2 + 16
    run.verify()


def test_of_a_large_file_only_the_start_is_read(sandbox: GitSandbox) -> None:
    sandbox.write("large", os.urandom(4 << 20))
    large = sandbox.git("hash-object", "-w", "large")
    tracemalloc.start()
    assert not list(replaced_trees._names(f"{sandbox.common_dir}/objects/{large[:2]}/{large[2:]}"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_an_object_that_vanishes_does_not_hide_another(sandbox: GitSandbox, run: Run) -> None:
    run.tasks(*range(10))
    root, commit = committed_root(sandbox)
    for number in range(50):  # as a file that is listed, and gone when it is opened
        (sandbox.common_dir / f"objects/{commit[:2]}/tmp_obj_{number}").symlink_to("nothing")
    run.tasks(*range(10, 22))
    run.trees.close()
    assert root in loose(sandbox)
    run.verify()


def test_a_tree_that_is_gone_already_does_not_save_the_others(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_writer, "MANY", 10**6)
    run.tasks(*range(20))
    noted, real = replaced(run), os.unlink
    old = set(list(noted)[:-2])
    assert old

    def unlink(path: str) -> None:
        real(path)
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "unlink", unlink)
    run.trees.writer.packed = True
    replaced_trees.delete(discover.find(str(sandbox.root)), run.trees.repository, noted, ())
    monkeypatch.setattr(os, "unlink", real)
    assert not old & loose(sandbox)
    run.verify()


@pytest.mark.parametrize("known", [True, False])
def test_an_early_tree_of_names_that_is_a_chunk_now_stays_if_an_agent_sets_the_ref_back_to_it(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    monkeypatch.setattr(object_writer, "MANY", 10**6)
    roots = set()
    for number in range(10):
        run.tasks(number)
        roots.add(sandbox.git("rev-parse", ROOT))
    chunks = {row.split()[2] for row in sandbox.git("ls-tree", ROOT).splitlines() if "chunk" in row}
    (early,) = chunks & roots
    if known:
        run.trees.close()
        run.trees = GitTrees(discover.find(str(sandbox.root)))
    sandbox.git("update-ref", ROOT, early)
    run.tasks(10)
    assert early not in replaced(run)
    assert replaced(run)
    monkeypatch.setattr(object_writer, "MANY", MANY)
    run.tasks(*range(11, 22))
    run.trees.close()
    run.verify()


def copy_into(sandbox: GitSandbox, folder: Path, tree: str) -> None:
    sandbox.git("worktree", "add", "--quiet", "--no-checkout", "--detach", str(folder))
    sandbox.git("-C", str(folder), "read-tree", "-u", "--reset", tree)
    (folder / ".git").unlink()
    sandbox.git("worktree", "prune")


@pytest.mark.parametrize("packs", ["during", "later"])
def test_a_tree_of_names_stays_if_a_folder_of_the_user_is_a_copy_of_it(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch, packs: str
) -> None:
    """Then a snapshot, which idumb writes, names the tree."""
    run.tasks(*range(10))
    root = sandbox.git("rev-parse", ROOT)
    run.trees.close()
    run.trees = GitTrees(discover.find(str(sandbox.root)))
    backup = sandbox.root / "backup"
    copy_into(sandbox, backup, root)
    if packs == "later":
        monkeypatch.setattr(object_writer, "MANY", 10**6)
    run.tasks(10)
    assert sandbox.git("rev-parse", f"{run.kept[f'{RUN}/T10/1/checkpoint']}:worktree/backup") == root
    shutil.rmtree(backup)
    run.tasks(*range(11, 22))
    run.trees.writer.packed = True
    run.trees.close()
    assert root in loose(sandbox) | all_packed(sandbox)
    run.verify()


def test_a_tree_of_names_stays_if_another_working_tree_has_a_copy_of_it(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The process that packs the copy does not know which trees of names another process will delete."""
    sandbox.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "other"))
    other = Run(GitSandbox(tmp_path / "other"))
    run.tasks(*range(10))
    root = sandbox.git("rev-parse", ROOT)
    with monkeypatch.context() as patch:
        patch.setattr(object_writer, "MANY", 10**6)
        run.tasks(10, 11)
    copy_into(sandbox, tmp_path / "other/backup", root)
    other.tasks(1)
    shutil.rmtree(tmp_path / "other/backup")
    other.tasks(*range(2, 12))
    other.trees.writer.packed = True
    other.trees.close()
    run.tasks(*range(12, 24))
    run.trees.close()
    other.verify()
    run.verify()


def test_a_tree_of_names_stays_while_git_has_it_among_packed_refs(sandbox: GitSandbox, run: Run) -> None:
    """If an agent removes the file of the ref, that is what the ref names."""
    run.tasks(*range(12))
    sandbox.git("pack-refs", "--all")
    run.tasks(*range(12, 26))
    (sandbox.common_dir / ROOT).unlink()
    run.tasks(40)
    run.verify()


@pytest.mark.parametrize("save", ["tag", "commit"])
def test_what_a_tree_of_names_has_stays_with_it(sandbox: GitSandbox, run: Run, save: str) -> None:
    names = (f"r{number}" for number in itertools.count() if kept_table._fan(f"runs:r{number}") == "00")
    alike = list(itertools.islice(names, 8))
    for name in alike[:3]:
        run.begin(name)
        run.tasks(1, 2)
    root = sandbox.git("rev-parse", ROOT)
    if save == "tag":
        sandbox.git("tag", "mine", root)
    else:
        sandbox.git("update-ref", "refs/heads/backup", sandbox.git("commit-tree", root, "-m", "what idumb keeps"))
    for name in alike[3:]:
        run.begin(name)
        run.tasks(1, 2)
    run.trees.close()
    assert sandbox.git("ls-tree", "-r", root)
    run.verify()


def test_a_tree_of_names_that_a_ref_of_another_working_tree_names_is_not_deleted(
    sandbox: GitSandbox, run: Run, tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    sandbox.git("worktree", "add", "--quiet", "--detach", other)
    run.tasks(*range(10))
    root = sandbox.git("rev-parse", ROOT)
    sandbox.git("-C", other, "update-ref", "refs/worktree/names", root)
    run.tasks(*range(10, 22))
    run.trees.close()
    assert root in loose(sandbox)
    run.verify()


def test_a_tree_of_names_stays_if_a_commit_names_it_that_is_older_by_the_clock(sandbox: GitSandbox, run: Run) -> None:
    """The clock was set back, or git refreshed the time of the tree when it was to write the same again."""
    run.tasks(*range(10))
    root, commit = committed_root(sandbox)
    os.utime(sandbox.common_dir / f"objects/{commit[:2]}/{commit[2:]}", (1, 1))
    run.tasks(*range(10, 22))
    run.trees.close()
    assert root in loose(sandbox)
    run.verify()
