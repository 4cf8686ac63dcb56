"""States of the working tree and the index: F1 to F5, F11, F12, F16, F19 to F21."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from tests.states.state import Scene, identified, state
from tests.support.gitrepo import GitSandbox


@state("F1")
def edits_that_are_not_committed(scene: Scene) -> None:
    scene.repo.write("first.txt", "mine\n")
    scene.repo.remove("second.txt")
    scene.repo.write("tool.sh", "#!/bin/sh\necho mine\n", mode=0o755)


@state("F1", ends="refused:run.waiting")
def edits_in_a_file_that_a_task_edits(scene: Scene) -> None:
    scene.repo.write("app.txt", "one\ntwo\nthree\nmine\n")


@state("F2")
def untracked_files_beside_those_of_a_task(scene: Scene) -> None:
    scene.repo.write_all({"mine.txt": "mine\n", "out/mine.txt": "mine\n", "out/deep/mine.txt": "mine\n"})


@state("F2", ends="refused:task.dirty-path")
def an_untracked_file_where_a_task_makes_one(scene: Scene) -> None:
    scene.repo.write("out/one.txt", "mine\n")


@state("F3")
def ignored_files(scene: Scene) -> None:
    scene.repo.write_all({".secret": "key\n", "build/big.bin": bytes(5000), "run.log": "log\n", "out/x.log": "log\n"})


@state("F3", ends="refused:task.dirty-path")
def an_ignored_file_where_a_task_makes_one(scene: Scene) -> None:
    scene.repo.write_all({".git/info/exclude": "out/\n", "out/one.txt": "mine\n"})


@state("F4")
def ignore_rules_that_are_not_committed(scene: Scene) -> None:
    scene.repo.write(".gitignore", "*.log\nbuild/\n.secret\ndata/\n")
    scene.repo.write_all({"data/model.bin": bytes(1000), "data/.gitignore": "*\n", "new/.gitignore": "x\n"})


@state("F4")
def rules_that_ignore_what_tasks_make(scene: Scene) -> None:
    scene.repo.write(".git/info/exclude", "out/\n")


@state("F5")
def staged_and_edited_again(scene: Scene) -> None:
    scene.repo.write("first.txt", "staged\n")
    scene.repo.git("add", "first.txt")
    scene.repo.write("first.txt", "edited again\n")


@state("F5")
def one_hunk_staged(scene: Scene) -> None:
    scene.repo.write("first.txt", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    staged = scene.repo.git("hash-object", "-w", "--stdin", given=b"one\n2\n3\n4\n5\n6\n7\n8\n9\n")
    scene.repo.git("update-index", "--cacheinfo", f"100644,{staged},first.txt")


@state("F5")
def staged_and_then_deleted(scene: Scene) -> None:
    scene.repo.write("new.txt", "staged\n")
    scene.repo.git("add", "new.txt")
    scene.repo.remove("new.txt")


@state("F5")
def removed_from_the_index_and_kept(scene: Scene) -> None:
    scene.repo.git("rm", "--quiet", "--cached", "second.txt")


@state("F5")
def a_staged_rename(scene: Scene) -> None:
    scene.repo.git("mv", "second.txt", "docs/renamed.txt")


@state("F5")
def intent_to_add(scene: Scene) -> None:
    scene.repo.write("later.txt", "later\n")
    scene.repo.git("add", "--intent-to-add", "later.txt")


@state("F5")
def edits_under_assume_unchanged(scene: Scene) -> None:
    scene.repo.git("update-index", "--assume-unchanged", "first.txt")
    scene.repo.write("first.txt", "hidden from git\n")


@state("F5")
def edits_under_skip_worktree(scene: Scene) -> None:
    scene.repo.git("update-index", "--skip-worktree", "first.txt")
    scene.repo.write("first.txt", "hidden from git\n")


@state("F5")
def a_split_index(scene: Scene) -> None:
    scene.repo.git("update-index", "--split-index")
    scene.repo.write("first.txt", "staged\n")
    scene.repo.git("add", "first.txt")


@state("F11")
def a_dirty_submodule(scene: Scene) -> None:
    _submodule(scene)
    scene.repo.git("config", "submodule.recurse", "true")
    scene.repo.write("sub/inner.txt", "mine\n")
    scene.repo.write("sub/new.txt", "mine\n")


@state("F11")
def a_submodule_on_another_commit(scene: Scene) -> None:
    _submodule(scene)
    inner = identified(GitSandbox(scene.repo.root / "sub"))
    inner.write("inner.txt", "next\n")
    inner.commit("next")


def _submodule(scene: Scene) -> None:
    inner = GitSandbox.create(scene.case / "inner")
    inner.write("inner.txt", "inner\n")
    inner.commit("inner")
    scene.repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub")
    scene.repo.git("commit", "--quiet", "-m", "a submodule", "--", ".gitmodules", "sub")


@state("F12")
def a_repository_inside(scene: Scene) -> None:
    inner = GitSandbox.create(scene.repo.root / "nested")
    inner.write("inner.txt", "inner\n")
    inner.commit("inner")
    inner.write("mine.txt", "mine\n")


@state("F16")
def odd_names(scene: Scene) -> None:
    names = ["na\udcff", "new\nline", "-rf", ":(top)x", "dot.", "space ", "x" * 255, "na\u00efve", "nai\u0308ve", "*"]
    for name in names:
        scene.repo.write(f"odd/{name}", "kept\n")
    scene.repo.write("odd/:!x/--help", "kept\n")
    scene.repo.git("add", "--", "odd")
    scene.repo.git("commit", "--quiet", "-m", "odd names", "--", "odd")
    for name in names:
        scene.repo.write(f"odd/{name}", os.fsencode(name) + b" mine\n")
        scene.repo.write(f"new/{name}", os.fsencode(name) + b" mine too\n")


@state("F19")
def links_of_every_kind(scene: Scene) -> None:
    scene.outside.joinpath("file").write_text("outside\n", encoding="ascii")
    scene.repo.link("links/outside", str(scene.outside / "file"))
    scene.repo.link("links/folder", str(scene.outside))
    scene.repo.link("links/dangling", "nowhere")
    scene.repo.link("links/loop", "loop")
    scene.repo.link("links/inside", "../docs")
    scene.repo.git("add", "links")
    scene.repo.git("commit", "--quiet", "-m", "links", "--", "links")
    scene.repo.remove("links/dangling")
    scene.repo.link("links/dangling", "elsewhere")
    scene.repo.remove("links/inside")
    scene.repo.write("links/inside", "a file now\n")


@state("F19", ends="refused:plan.invalid")
def a_link_where_a_task_makes_a_folder(scene: Scene) -> None:
    if (scene.repo.root / "out").exists():
        (scene.repo.root / "out").rename(scene.case / "moved")
    scene.repo.link("out", str(scene.outside))


@state("F20")
def modes_that_git_does_not_know(scene: Scene) -> None:
    for name, mode in (("first.txt", 0o600), ("second.txt", 0o640), ("tool.sh", 0o700), ("third.txt", 0o444)):
        (scene.repo.root / name).chmod(mode)
    scene.repo.write("setuid", "x\n", mode=0o4755)
    (scene.repo.root / "app.txt").chmod(0o600)  # not old.txt: a file that a task deletes comes back as git makes it
    (scene.repo.root / "docs").chmod(0o700)


@state("F20")
def empty_folders(scene: Scene) -> None:
    (scene.repo.root / "empty/deep/er").mkdir(parents=True)


@state("F20")
def hard_links_and_sparse_files(scene: Scene) -> None:
    scene.repo.write("one-name", "shared\n")
    os.link(scene.repo.root / "one-name", scene.repo.root / "other-name")
    os.link(scene.repo.root / "first.txt", scene.outside / "first.txt")
    with open(scene.repo.root / "holes", "wb") as file:
        file.truncate(3 << 20)


@state("F20")
def old_and_future_times(scene: Scene) -> None:
    for name, seconds in (("first.txt", 1), ("second.txt", 4_000_000_000), ("mine.txt", 0)):
        scene.repo.write(name, "mine\n")
        os.utime(scene.repo.root / name, (seconds, seconds))


@state("F21")
def pipes_and_sockets(scene: Scene) -> None:
    os.mkfifo(scene.repo.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(scene.repo.root, os.O_RDONLY)
        try:
            # A socket's whole path may have no more than about a hundred bytes.
            listener.bind(f"/proc/self/fd/{folder}/socket" if os.path.isdir("/proc") else _short(scene.repo.root))
        finally:
            os.close(folder)


def _short(root: Path) -> str:
    return os.path.relpath(root / "socket")


@state("F21")
def deep_folders_and_many_files(scene: Scene) -> None:
    scene.repo.write("/".join(["d"] * 200) + "/deep.txt", "deep\n")
    for number in range(400):
        scene.repo.write(f"many/{number % 7}/{number}.txt", f"{number}\n")


@state("F21")
def a_file_of_five_gigabytes(scene: Scene) -> None:
    with open(scene.repo.root / "huge.bin", "wb") as file:
        file.truncate(5 << 30)
