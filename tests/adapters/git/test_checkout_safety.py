"""Whatever a program does in a checkout, idumb follows it nowhere, and a killed command's work is kept (R-RUN-3)."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest

from idumb.domain.errors import Refusal
from idumb.git import discover
from idumb.git.checkouts import places, pool
from idumb.git.checkouts.checkout import BUILD, Checkout
from idumb.system import clock, machine
from tests.support.checkouts import close, create, names, opened, show, shown, tree
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox
from tests.support.seed import one_of, one_on_a_push

FILES = {"a.txt": b"a\n", "d/b.txt": b"b\n"}


@pytest.fixture
def repository(sandbox: GitSandbox) -> GitSandbox:
    """Return a repository with uncommitted and untracked work of the user."""
    sandbox.commit_with(FILES)
    sandbox.write_all({"a.txt": "edited\n", "precious.txt": "mine\n", "d/own.txt": "mine\n"})
    sandbox.git("add", "a.txt")
    return sandbox


@pytest.fixture(params=one_on_a_push(["proof", BUILD], "use of a checkout"))
def checkout(request: pytest.FixtureRequest, repository: GitSandbox) -> Iterator[Checkout]:
    taken = create(repository, request.param)
    yield taken
    close(taken)


def everything(checkout: Checkout, repository: GitSandbox) -> None:
    """Do all that idumb does in a checkout; at the end it holds the tree again."""
    checkout.restore()
    checkout.renew()
    show(checkout, repository)
    checkout.trees.scan()
    checkout.restore()
    assert shown(checkout) == FILES
    assert [*Path(checkout.top).rglob(".git")] == [Path(checkout.top, ".git")]
    assert checkout.trees.scan() == tree(repository)


LEADING_AWAY = [
    "git config core.worktree {user}",
    "rm -r .git && echo 'gitdir: {user}/.git' > .git",
    "rm -r .git && ln -s {user}/.git .git",
    "rm -r .git",
    "rm -r d && ln -s {user}/d d",
    "git config filter.x.clean 'touch {user}/x' && echo '* filter=x' > d/.gitattributes",
    "git init -q d && git -C d add b.txt",
    "chmod 0 d",
]


def test_what_a_program_does_with_git_in_a_checkout_leads_nowhere(repository: GitSandbox, checkout: Checkout) -> None:
    before = repository.ledger()
    for command in LEADING_AWAY:
        root = show(checkout, repository)
        subprocess.run(command.format(user=repository.root), cwd=root, shell=True, check=True)
        everything(checkout, repository)
        assert repository.ledger() == before, command


def test_below_a_home_that_is_a_repository_git_never_works_there(
    repository: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = GitSandbox.create(tmp_path / "home-of-user")
    home.commit_with({"a.txt": "dotfile\n", "precious": "mine\n"})
    monkeypatch.setenv("IDUMB_CHECKOUTS", str(home.root / "state/copies"))
    before = home.ledger()
    checkout = create(repository)
    root = show(checkout, repository)
    assert root.is_relative_to(home.root)
    subprocess.run(["rm", "-r", str(root / ".git")], check=True)
    everything(checkout, repository)
    close(checkout)
    subprocess.run(["rm", "-r", str(home.root / "state")], check=True)
    assert home.ledger() == before


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_folder_that_is_replaced_by_files_of_the_user_is_left_alone(
    repository: GitSandbox, checkout: Checkout, tmp_path: Path, depth: int, kind: str
) -> None:
    root = show(checkout, repository)
    at, users = [root, root.parent][depth], tmp_path / "user"
    own = {"a.txt": "mine\n", "precious.txt": "mine\n", ".git/config": "mine\n"}
    for path, text in own.items():
        place = users / root.relative_to(at) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    at.rename(tmp_path / "moved")
    at.symlink_to(users) if kind == "link" else users.rename(at)
    assert set(checkout.restore()) == set(FILES)
    if depth and kind == "link":
        with pytest.raises(Refusal, match="something else is in its place"):
            everything(checkout, repository)
        at.unlink()
    everything(checkout, repository)
    found = [*users.rglob("precious.txt"), *root.parent.parent.rglob("precious.txt")]
    places_of_user = [path.parent for path in found]
    assert [{path: (place / path).read_text() for path in own} for place in places_of_user] == [own]


def test_a_place_that_leads_to_files_of_the_user_is_left_alone(
    repository: GitSandbox, checkout: Checkout, tmp_path: Path
) -> None:
    root, users = show(checkout, repository), tmp_path / "user"
    users.mkdir()
    (users / "precious.txt").write_text("mine\n")
    root.rename(users / root.name)
    root.parent.rename(tmp_path / "moved")
    root.parent.symlink_to(users)
    checkout.renew()
    with pytest.raises(Refusal, match="something else is in its place"):
        show(checkout, repository)
    assert (users / "precious.txt").read_text() == "mine\n"


def test_a_builder_that_moves_its_checkout_is_a_refusal(
    repository: GitSandbox, checkout: Checkout, tmp_path: Path
) -> None:
    show(checkout, repository).rename(tmp_path / "moved")
    with pytest.raises(Refusal) as caught:
        checkout.trees.scan()
    assert (caught.value.code, caught.value.hint) == ("checkout.moved", "idumb status")
    show(checkout, repository)
    assert shown(checkout) == FILES


FORGING = [
    "git commit -q --allow-empty -m forged",
    "git config core.hooksPath planted",
    "mkdir -p .git/hooks && echo exit 1 > .git/hooks/pre-commit",
    "git update-index --assume-unchanged a.txt",
    "echo '*.txt -text' > .git/info/attributes",
    "echo /nowhere > .git/objects/info/alternates",
    "git tag forged",
    "rm -r .git",
    "chmod 0 .git/refs/heads",
]


def test_git_s_folder_is_as_new_for_the_next_check(repository: GitSandbox, checkout: Checkout) -> None:
    folder = show(checkout, repository) / ".git"
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    for command in FORGING:
        subprocess.run(command, cwd=folder.parent, shell=True, check=True, capture_output=True)
        show(checkout, repository)
        assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before, command


def forge(root: Path, own: Path, objects: Path) -> None:
    """Change a file, and let the index say that it is as in the tree."""
    (root / "a.txt").write_text("forged\n")
    environment = {**os.environ, "GIT_DIR": str(own), "GIT_INDEX_FILE": str(own / "shown"), "GIT_WORK_TREE": str(root)}
    environment["GIT_OBJECT_DIRECTORY"] = str(objects)
    subprocess.run(["git", "update-index", "a.txt"], cwd=root, env=environment, check=True)
    other, right = (pygit2.hash(data).raw for data in (b"forged\n", FILES["a.txt"]))
    data = (own / "shown").read_bytes()[:-20].replace(other, right)
    (own / "shown").write_bytes(data + hashlib.sha1(data, usedforsecurity=False).digest())
    later = (own / "shown").stat().st_mtime + 5
    os.utime(own / "shown", (later, later))  # otherwise git compares the bytes


@pytest.mark.parametrize("command", ["the same command", "the next one"])
def test_what_a_program_writes_into_idumb_s_own_index_is_not_believed(
    repository: GitSandbox, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    checkout = create(repository)
    root, own = show(checkout, repository), repository.git_dir / "idumb/checkouts/proof-1"
    forge(root, own, root / ".git/objects")
    if command == "the same command":
        assert set(checkout.restore()) == set(FILES)
    else:
        close(checkout)
        checkout = create(repository)
    show(checkout, repository)
    assert shown(checkout) == FILES
    close(checkout)


def test_a_later_command_writes_only_the_files_of_which_the_bytes_or_the_mode_differ(
    repository: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(".gitattributes", "* text=auto\n")
    repository.commit_with(dict.fromkeys(("same.txt", "open.txt", "twice.txt"), "s\n"), "text", ".")
    checkout = create(repository)
    root, expected = show(checkout, repository), shown(checkout)
    close(checkout)
    same, status = (root / "same.txt").stat(), (root / "a.txt").stat()
    (root / "a.txt").write_bytes(b"A\n")
    os.utime(root / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    (root / "d/b.txt").write_bytes(b"b\r\n")  # git would store it as it is in the commit
    (root / ".gitattributes").chmod(0o755)
    (root / "open.txt").chmod(0o666)
    os.link(root / "twice.txt", root.parent / "other-name")
    later = clock.nanoseconds() + 10**10
    monkeypatch.setattr(clock, "nanoseconds", lambda: later)  # what changed just now is written anyway
    checkout = create(repository)
    show(checkout, repository)
    assert shown(checkout) == expected
    assert not os.access(root / ".gitattributes", os.X_OK)
    assert (root / "open.txt").stat().st_mode == same.st_mode
    assert (root / "twice.txt").stat().st_nlink == 1
    assert (root / "same.txt").stat().st_ctime_ns == same.st_ctime_ns
    close(checkout)


@pytest.mark.parametrize("command", ["the same command", "the next one"])
def test_what_a_program_writes_into_idumb_s_index_of_a_submodule_is_not_believed(
    repository: GitSandbox, command: str
) -> None:
    repository.add_submodule("sub", FILES)
    repository.commit("sub", "sub", ".gitmodules")
    checkout = create(repository)
    root = show(checkout, repository)
    (own,) = (repository.git_dir / "idumb/checkouts/proof-1/modules").iterdir()
    forge(root / "sub", own, root / ".git/objects")
    if command == "the next one":
        close(checkout)
        checkout = create(repository)
    checkout.renew()
    show(checkout, repository)
    assert shown(checkout)["sub/a.txt"] == FILES["a.txt"]
    close(checkout)


def test_what_idumb_knows_of_a_checkout_may_be_lost(repository: GitSandbox) -> None:
    content = one_of([None, b"", b"damaged"], "damage of a record")
    for name in ("shown", "index", "folder", "tree", "config"):
        checkout = create(repository)
        everything(checkout, repository)
        close(checkout)
        place = repository.git_dir / "idumb/checkouts/proof-1" / name
        place.unlink() if content is None else place.write_bytes(content)


def test_after_a_restart_of_the_machine_every_file_is_written_again(
    repository: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A power cut may have truncated files that were never forced to disk."""
    checkout = create(repository, BUILD)
    os.link(show(checkout, repository) / "a.txt", tmp_path / "before")
    close(checkout)
    monkeypatch.setattr(machine, "boot_id", lambda: "another")
    checkout = create(repository, BUILD)
    assert not os.path.samefile(show(checkout, repository) / "a.txt", tmp_path / "before")
    assert names(Path(checkout.top).parent) == [Path(checkout.top).name, "repository"]
    close(checkout)


def test_what_is_mounted_in_a_checkout_is_not_removed(repository: GitSandbox, tmp_path: Path) -> None:
    """It may be files of the user: a bind mount, or a disk of another machine."""
    checkout, mine = create(repository), tmp_path / "mine"
    root = show(checkout, repository)
    (root / "m").mkdir()
    mine.mkdir()
    (mine / "file").write_text("mine\n")
    if subprocess.run(["mount", "--bind", mine, root / "m"], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount")
    try:
        everything(checkout, repository)
        (aside,) = [place for place in root.parent.iterdir() if place.is_dir() and place != root]
        assert (aside / "m/file").read_text() == "mine\n"
    finally:
        subprocess.run(["umount", aside / "m"], check=True)
    assert (mine / "file").read_text() == "mine\n"
    close(checkout)
    close(create(repository))
    assert names(root.parent) == [root.name, "repository"]


def test_what_programs_put_beside_a_checkout_and_in_folders_of_any_depth_goes(
    repository: GitSandbox, checkout: Checkout
) -> None:
    """Tools search upward, and a path of the work may begin with `../`."""
    root = show(checkout, repository)
    (root.parent / "node_modules/impl").mkdir(parents=True)
    (root.parent / "impl.py").touch()
    subprocess.run(["mkdir", "-p", "/".join(["d"] * 1200)], cwd=root, check=True)
    (root / "d/x").touch()
    everything(checkout, repository)
    assert names(root.parent) == [root.name, "repository"]
    assert names(root / "d") == ["b.txt"]


def test_a_file_that_is_linked_elsewhere_is_a_file_of_its_own_again(
    repository: GitSandbox, checkout: Checkout, tmp_path: Path
) -> None:
    """Otherwise the next check could write through it into another file, or another program into the tree."""
    root = show(checkout, repository)
    os.link(root / "a.txt", tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("through the link\n")
    assert checkout.restore() == ("a.txt",)
    assert (root / "a.txt").stat().st_nlink == 1
    assert (tmp_path / "a.txt").read_text() == "through the link\n"


def test_a_full_disk_is_one_clear_line_and_nothing_of_the_user_changes(
    repository: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The tree is written again as soon as there is room."""
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "x", small], check=False).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        monkeypatch.setenv("IDUMB_CHECKOUTS", str(small / "copies"))
        checkout, before = create(repository), repository.ledger()
        show(checkout, repository)
        (Path(checkout.top) / "big").write_bytes(b"x" * 300_000)
        repository.write("c.bin", b"y" * 200_000)
        repository.commit("with a large file", "c.bin")
        with refusing("system.full", r"unable to write file c\.bin .*has 0 bytes"):
            show(checkout, repository)
        subprocess.run(["mount", "-o", "remount,size=1m", small], check=True)
        show(checkout, repository)
        assert shown(checkout).keys() == {*FILES, "c.bin"}
        close(checkout)
        assert repository.ledger().changed_paths(before) == ["c.bin"]
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_a_command_uses_a_pair_and_the_fifth_is_refused_with_the_holders(repository: GitSandbox) -> None:
    command = opened(repository)
    build, proof = (command.open(use) for use in (BUILD, "proof"))
    show(build, repository)
    show(proof, repository)
    others = [create(repository) for _ in range(pool.MOST - 1)]
    assert len({build.top, proof.top, *(other.top for other in others)}) == pool.MOST + 1
    assert [Path(each.top).name.rpartition("-")[0] for each in (build, proof)] == ["repo-build", "repo-proof"]
    with refusing("checkout.busy", str(os.getpid())):
        create(repository)
    command.close()
    again = create(repository)
    assert again.top == proof.top, "it stays for the next command"
    assert shown(again) == FILES
    for checkout in (*others, again):
        close(checkout)


def build_and_die(repository: GitSandbox, state: str) -> None:
    checkout = create(repository, BUILD)
    root = show(checkout, repository)
    checkout.begin("refs/idumb/worktrees/main/runs/r1/T1/1/interrupted")
    (root / "a.txt").write_text("the only copy\n")
    (root / "new.txt").write_text("new\n")
    if state == "ended":
        checkout.end()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("state", ["running", "ended"])
def test_what_a_killed_attempt_left_is_kept_before_the_checkout_is_used_again(
    repository: GitSandbox, state: str
) -> None:
    if (process := os.fork()) == 0:
        build_and_die(repository, state)
    os.waitpid(process, 0)
    expected = ["refs/idumb/worktrees/main/runs/r1/T1/1/interrupted"] if state == "running" else []
    assert list(opened(repository).left().values()) == expected
    close(create(repository))
    kept = repository.kept("refs/idumb/worktrees/main/runs/")
    if state == "ended":
        assert kept == {}
    else:
        (oid,) = kept.values()
        assert repository.git("cat-file", "blob", f"{oid}:worktree/a.txt") == "the only copy"
        assert repository.git("cat-file", "blob", f"{oid}:worktree/new.txt") == "new"
    assert not opened(repository).left()
    checkout = create(repository, BUILD)
    everything(checkout, repository)
    close(checkout)


def test_a_place_that_others_can_write_or_that_is_in_the_tree_is_refused(
    repository: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared, link, taken = tmp_path / "shared", tmp_path / "link", tmp_path / "taken"
    shared.mkdir()
    shared.chmod(0o777)
    link.symlink_to(tmp_path)
    monkeypatch.setenv("IDUMB_CHECKOUTS", str(taken))
    taken.mkdir()
    Path(places.folder_of(discover.find(str(repository.root)))).touch()
    for place in ("relative", str(repository.root / "inside"), str(shared), str(taken), str(link / "x")):
        monkeypatch.setenv("IDUMB_CHECKOUTS", place)
        if place == str(link / "x"):
            close(create(repository))  # only the folder itself may not be a link
            continue
        with refusing("checkout.unusable"):
            create(repository)


def test_a_checkout_is_outside_the_repository_and_below_no_manifest(
    repository: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Node, pytest and cargo search the folders above."""
    place = discover.find(str(repository.root))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert places.folder_of(place).startswith(f"{tmp_path}/state/")
    (tmp_path / "package.json").write_text("{}\n")
    assert places.folder_of(place).startswith("/var/tmp/idumb-")
    (tmp_path / "package.json").unlink()
    monkeypatch.setenv("XDG_STATE_HOME", str(repository.root / "state"))
    assert places.folder_of(place).startswith("/var/tmp/idumb-")


def test_checkouts_of_a_deleted_repository_go_a_month_after_their_last_use(
    repository: GitSandbox, tmp_path: Path
) -> None:
    """Not those of one that still exists, however old they are, and not beside what is not ours."""
    other = GitSandbox.create(tmp_path / "other")
    kept, left = (Path(places.folder_of(discover.find(str(each.root)))) for each in (repository, other))
    for each in (repository, other):
        pool.take(discover.find(str(each.root))).close()
    shutil.rmtree(other.root)
    for days, beside, exists in ((29, [], True), (31, ["mine.txt"], True), (32, [], False)):
        for name in beside:
            (left / name).touch()
        for place in (kept, left):
            os.utime(place / "repository", (0, clock.nanoseconds() / 1e9 - days * 24 * 3600))
        pool.take(discover.find(str(GitSandbox.create(tmp_path / f"third{days}").root))).close()
        assert (kept.exists(), left.exists()) == (True, exists)
        for name in beside:
            (left / name).unlink()
