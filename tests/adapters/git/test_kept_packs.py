"""Loose objects of idumb are moved into few packs, and nothing is lost whenever that ends (R-GIT-1)."""

from __future__ import annotations

import itertools
import json
import os
import signal
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idumb.git import discover, git_program, open_repository
from idumb.git.kept import kept_names, kept_packs
from idumb.git.objects import durable_files, object_writer
from idumb.git.trees import GitTrees
from idumb.system.files import atomic_write
from tests.support.gitrepo import GitSandbox
from tests.support.kept import MANY, ROOT, RUN, Run, all_packed, loose, packs, strays

NEVER = -1
pytestmark = pytest.mark.usefixtures("early_packs")


def test_a_run_leaves_a_pack_and_few_loose_objects(sandbox: GitSandbox, run: Run) -> None:
    users = loose(sandbox)
    roots: set[str] = set()
    for number in range(20):
        run.tasks(number)
        roots.add(sandbox.git("rev-parse", ROOT))
    assert packs(sandbox)
    run.verify()
    roots -= set(sandbox.git("ls-tree", "-r", "-t", "--format=%(objectname)", ROOT).split())  # one became a chunk
    assert not all_packed(sandbox) & (users | roots), "a user's object, or a tree that the next name replaced"
    assert users <= loose(sandbox)
    assert not all_packed(sandbox) & loose(sandbox)
    assert len(loose(sandbox) - users - roots) < 2 * MANY
    names = {path.suffix for path in (sandbox.common_dir / "objects/pack").iterdir()}
    assert names <= {".pack", ".idx", ".rev"}
    sandbox.git("gc", "--quiet", "--prune=now")
    run.verify()


def test_a_short_run_packs_nothing(sandbox: GitSandbox, run: Run) -> None:
    run.tasks(1)
    run.trees.close()
    assert packs(sandbox) == set()


def test_many_short_commands_leave_a_pack(sandbox: GitSandbox, run: Run) -> None:
    for number in range(6):
        run.tasks(number)
        run.trees.close()
        run.trees = GitTrees(discover.find(str(sandbox.root)))
        kept_names._tables.clear()
    run.verify()
    assert packs(sandbox)
    assert not all_packed(sandbox) & loose(sandbox)


def test_there_are_never_more_than_ten_packs(sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_packs, "MOST", 3)
    early = open_repository.repository(discover.find(str(sandbox.root)))
    counts = []
    for number in range(20):
        run.tasks(number)
        counts.append(len(packs(sandbox)))
        assert run.kept[f"{RUN}/T{number // 2}/1/base"] in early, "another process finds what has moved"
    assert max(counts) == 3
    assert counts.count(3) > 3
    noted = json.loads((sandbox.common_dir / "idumb/packs.json").read_text())
    assert noted.keys() == packs(sandbox)
    assert not strays(sandbox)
    for oid in run.kept.values():
        assert early[oid].id
    run.verify()


@pytest.mark.parametrize("owner", [".keep", ".promisor", ".bitmap", "multi-pack-index"])
def test_a_pack_that_git_has_taken_over_stays(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    monkeypatch.setattr(kept_packs, "MOST", 2)
    run.tasks(*range(5))
    (first,) = packs(sandbox)
    folder = sandbox.common_dir / "objects/pack"
    if owner.startswith("."):
        (folder / f"{first}{owner}").touch()
    else:
        sandbox.git("multi-pack-index", "write")
    run.tasks(*range(5, 20))
    assert first in packs(sandbox)
    assert len(packs(sandbox)) == 2
    if owner == ".bitmap":
        (folder / f"{first}{owner}").unlink()  # git refuses an empty one
    run.verify()


def test_a_wrong_record_of_packs_is_no_reason_to_remove_one(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new pack contains everything in the packs it replaces, no matter who wrote them."""
    monkeypatch.setattr(kept_packs, "MOST", 1)
    (sandbox.common_dir / "objects/pack/pack-x.idx").touch()
    sandbox.write("theirs", "unreferenced")
    theirs = sandbox.git("hash-object", "-w", "theirs")
    name = sandbox.git("pack-objects", "-q", ".git/objects/pack/pack", given=theirs.encode())
    (sandbox.common_dir / f"objects/{theirs[:2]}/{theirs[2:]}").unlink()
    (sandbox.common_dir / "objects/pack/pack-x.idx").unlink()
    state = sandbox.common_dir / "idumb/packs.json"
    state.parent.mkdir(exist_ok=True)
    state.write_text(json.dumps({f"pack-{name}": [1, False], "../../mine": [1, True]}))
    mine = sandbox.common_dir / "mine.pack"
    mine.touch()
    run.tasks(*range(5))
    assert mine.exists()
    assert f"pack-{name}" not in packs(sandbox)
    assert theirs in all_packed(sandbox)
    run.verify()


def fail(*_: object, **__: object) -> Any:
    raise OSError(28, "No space left on device")


def failing_at(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Let one step of packing fail."""
    if where == "pack-objects":
        monkeypatch.setattr(kept_packs, "_OPTIONS", ("--no-such-option",))
    elif where == "verify":
        monkeypatch.setattr(kept_packs._Git, "is_whole", lambda *_: False)
    elif where == "fsync":
        monkeypatch.setattr(durable_files, "force", only(durable_files.force, lambda paths: "/pack/" in paths[0]))
    elif where == "rename of the index":
        monkeypatch.setattr(os, "rename", only(os.rename, lambda path: path.endswith(".idx")))
    elif where == "fsync of the folder":
        monkeypatch.setattr(durable_files, "force", only(durable_files.force, lambda paths: paths[0].endswith("/pack")))
    elif where == "note":
        monkeypatch.setattr(atomic_write, "write", fail)
    elif where == "unlink":
        monkeypatch.setattr(os, "unlink", only(os.unlink, lambda path: "/objects/" in str(path)))


def only(real: Callable[..., Any], chosen: Callable[[Any], bool]) -> Callable[..., Any]:
    def call(first: Any, *rest: Any, **options: Any) -> Any:
        first = list(first) if not isinstance(first, (str, os.PathLike)) else first
        return fail() if first and chosen(first) else real(first, *rest, **options)

    return call


@pytest.mark.parametrize(
    "where", ["pack-objects", "verify", "fsync", "rename of the index", "fsync of the folder", "note", "unlink"]
)
def test_a_step_that_fails_loses_nothing_and_stops_no_run(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    before = loose(sandbox)
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "failed", set())
        failing_at(patch, where)
        run.tasks(*range(5))
    assert not strays(sandbox)
    unreplaced = {oid for oid in run.kept.values() if oid in loose(sandbox)}
    assert unreplaced == set(run.kept.values()), "a loose object was deleted"
    assert before <= loose(sandbox)
    run.verify()
    run.tasks(*range(5, 10))
    assert packs(sandbox)
    run.verify()


def test_a_damaged_pack_is_never_trusted(sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = kept_packs._Git.pack

    def damaged(self: kept_packs._Git, names: Any) -> str:
        made = real(self, names)
        file = Path(self.folder, "pack", f"{made}.pack")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.chmod(0o600)
        file.write_bytes(data)
        return made

    monkeypatch.setattr(kept_packs._Git, "pack", damaged)
    run.tasks(*range(5))
    assert packs(sandbox) == set()
    assert set(run.kept.values()) <= loose(sandbox)
    run.verify()


STEPS = (
    (durable_files, "force"),
    (atomic_write, "write"),
    (git_program, "in_temporary_folder"),
    (os, "rename"),
    (os, "unlink"),
)


def at_each_step(act: Callable[[int], None], patch: pytest.MonkeyPatch) -> None:
    """Call `act` with the number of each step of packing, before it. Of loose objects, two deletions count."""
    count = itertools.count()
    deletions = itertools.count()

    def watch(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def step(*arguments: Any, **options: Any) -> Any:
            if name != "unlink" or next(deletions) in (0, 10) or "/pack/" in str(arguments[0]):
                act(next(count))
            return real(*arguments, **options)

        patch.setattr(owner, name, step)

    for owner, name in STEPS:
        watch(owner, name)


def test_a_process_killed_at_any_step_of_packing_loses_nothing(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_packs, "MOST", 1)
    run.tasks(*range(4))
    assert packs(sandbox)
    monkeypatch.setattr(object_writer, "MANY", 10_000)
    for at in itertools.count():
        run.tasks(10 + at)
        if not killed_at(run, at):
            break
        sandbox.git("fsck", "--full", "--strict")
        run.tasks(100 + at)
        assert not killed_at(run, NEVER)
        assert (strays(sandbox), len(packs(sandbox)), all_packed(sandbox) & loose(sandbox)) == ([], 1, set()), at
    assert at >= 15, "all steps"
    run.verify()


def killed_at(run: Run, at: int) -> bool:
    """Pack in another process that is killed at a step. Return False if there is no such step."""

    def kill(number: int) -> None:
        if number == at:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        with pytest.MonkeyPatch.context() as patch:
            at_each_step(kill, patch)
            place = discover.find(str(run.sandbox.root))
            kept_packs.pack(place, open_repository.repository(place), run.trees.writer)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize(
    "command", [["repack", "-a", "-d", "-q"], ["gc", "--quiet", "--prune=now"], ["prune-packed", "--quiet"]]
)
def test_git_may_repack_and_prune_between_any_two_steps(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr(kept_packs, "MOST", 2)

    def interfere() -> None:
        sandbox.git(*command)

    real = kept_packs.pack

    def pack(*arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            at_each_step(lambda _: interfere(), patch)
            real(*arguments)

    monkeypatch.setattr(kept_packs, "pack", pack)
    run.tasks(*range(10))
    run.verify()
    sandbox.git("gc", "--quiet", "--prune=now")
    run.verify()


def test_a_repack_that_began_before_a_pack_and_ends_after_it_loses_nothing(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git repack` removes the packs that it saw at its start, after it has written what refs reach."""
    run.tasks(*range(4))
    real = durable_files.force

    def forced(paths: Any) -> None:
        paths = list(paths)
        real(paths)
        if paths[0].endswith("objects/pack"):  # the pack has just come
            sandbox.git("repack", "-a", "-d", "-q")

    monkeypatch.setattr(durable_files, "force", forced)
    run.tasks(*range(4, 10))
    run.verify()


def test_loose_objects_stay_if_the_pack_is_gone(sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = durable_files.force

    def forced(paths: Any) -> None:
        paths = list(paths)
        real(paths)
        if paths[0].endswith("objects/pack"):
            for path in (sandbox.common_dir / "objects/pack").iterdir():
                path.unlink()

    monkeypatch.setattr(durable_files, "force", forced)
    run.tasks(*range(10))
    assert set(run.kept.values()) <= loose(sandbox)
    run.verify()


def test_an_object_that_another_process_packs_is_no_failure(
    sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer forces the objects that existed before; meanwhile, `git gc` may move them into a pack."""
    run.tasks(1)
    writer, real = run.trees.writer, durable_files.force
    oid = run.kept[f"{RUN}/T1/1/base"]
    assert writer.existing(oid)

    def forced(paths: Any) -> None:
        monkeypatch.setattr(durable_files, "force", real)
        sandbox.git("gc", "--quiet")
        real(paths)

    monkeypatch.setattr(durable_files, "force", forced)
    writer.flush()
    assert oid not in loose(sandbox)


def test_large_files_stay_loose(sandbox: GitSandbox, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_packs, "_LARGE", 2_000)
    data = os.urandom(3_000)
    sandbox.write("large", data)
    large = sandbox.git("hash-object", "large")
    run.tasks(*range(5))
    assert large in loose(sandbox)
    assert packs(sandbox)
    assert zlib.decompress((sandbox.common_dir / f"objects/{large[:2]}/{large[2:]}").read_bytes()).endswith(data)
    run.verify()


def test_only_one_process_packs_at_a_time(sandbox: GitSandbox, run: Run) -> None:
    run.tasks(0)
    with kept_packs._alone(str(sandbox.common_dir / "idumb/packs.lock")) as is_alone:
        assert is_alone
        run.tasks(*range(1, 6))
        assert packs(sandbox) == set()
    run.verify()


def test_an_object_that_gets_its_name_only_after_idumb_packed_is_packed_later(sandbox: GitSandbox, run: Run) -> None:
    sandbox.write("late.txt", "named at the end\n")
    late = run.trees.scan()
    sandbox.remove("late.txt")
    run.tasks(*range(12))
    assert packs(sandbox)
    assert late in loose(sandbox)
    run.trees.keep(f"{RUN}/late", late, "late")
    run.trees.close()
    assert {late, sandbox.git("rev-parse", f"{late}:late.txt")} <= all_packed(sandbox) - loose(sandbox)


def test_notes_that_are_a_link_are_not_followed(sandbox: GitSandbox, run: Run, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("mine\n")
    run.tasks(1)
    (sandbox.common_dir / "idumb/loose-objects").symlink_to(users)
    run.tasks(*range(2, 10))
    run.trees.close()
    assert users.read_text() == "mine\n"
    run.verify()


def test_damaged_notes_are_replaced(sandbox: GitSandbox, run: Run) -> None:
    run.tasks(1)
    noted = sandbox.common_dir / "idumb/loose-objects"
    noted.write_bytes(b"\xff\0 replaced\r\nABC\n" + b"F" * 40 + b"\n" + b"\xfe" * 100)
    run.tasks(*range(2, 10))
    run.trees.close()
    assert set(map(len, noted.read_text("ascii").splitlines())) == {len(f"{'0' * 40} replaced")}
    run.verify()
