"""A checkout has copies of what the user provides, and nothing in it leads back to the user's files (R-RUN-3)."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from msgspec.structs import replace

from idumb.git import discover
from idumb.git.checkouts import provided, untracked
from idumb.git.checkouts.provided import Provided
from idumb.system import clock, machine, private_folders
from tests.support import permissions
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox

_PLENTY = 1 << 30


class Checkout:
    """A repository of the user with ignored files, and a checkout of it."""

    def __init__(self, sandbox: GitSandbox) -> None:
        self.user = sandbox
        self.root, self.state = sandbox.root.parent / "checkout", sandbox.root.parent / "state"
        self.root.mkdir()
        sandbox.write(".gitignore", "node_modules\n/data/\n.env\n*.log\n")
        sandbox.write_all(
            {"node_modules/lib/index.js": "lib\n", "data/models/m": "m\n", "data/x": "x\n", ".env": "e\n"}
        )
        self.tracked: tuple[str, ...] = (".gitignore",)
        self.rules: tuple[str, ...] = ("node_modules", "/data/models")
        self.limit = _PLENTY
        self.provided = self.opened()

    def opened(self) -> Provided:
        """As the next command has it."""
        return Provided(discover.find(str(self.user.root)), self.rules, self.limit, str(self.state), "")

    def bring(self) -> tuple[str, ...]:
        self.provided = self.opened()
        return self.provided.bring(str(self.root), self.tracked)

    def restore(self) -> None:
        """Bring it again in the same command."""
        self.provided.bring(str(self.root), self.tracked)

    def files(self) -> dict[str, str]:
        """Return the content of its files, and `-> text` for its links."""
        paths = (path for path in sorted(self.root.rglob("*")) if path.is_symlink() or path.is_file())
        return {str(path.relative_to(self.root)): content(path) for path in paths}


def content(path: Path) -> str:
    return f"-> {path.readlink()}" if path.is_symlink() else path.read_text()


@pytest.fixture
def checkout(sandbox: GitSandbox) -> Checkout:
    return Checkout(sandbox)


def test_the_patterns_of_worktreeinclude_count_too(checkout: Checkout) -> None:
    checkout.user.write(".worktreeinclude", "# secrets of tests\n.env\n\n.gitignore\n")
    assert {*checkout.bring()} == {".env", "data/models", "node_modules"}


def test_only_ignored_paths_that_the_rules_name_are_copied(checkout: Checkout) -> None:
    checkout.user.write_all(
        {"new/node_modules/y/i": "y\n", "new/file": "new\n", "untracked": "u\n", "web/.env": "w\n", "only/.env": "o\n"}
    )
    checkout.rules = ("node_modules", "/data/models", "untracked", "new/file", ".env", "!web/.env", "# .gitignore")
    assert checkout.bring() == (".env", "data/models", "new/node_modules", "node_modules", "only/.env")
    assert checkout.files() == {
        ".env": "e\n",
        "data/models/m": "m\n",
        "new/node_modules/y/i": "y\n",
        "node_modules/lib/index.js": "lib\n",
        "only/.env": "o\n",
    }


def test_a_rule_for_a_folder_means_what_is_ignored_in_it(checkout: Checkout) -> None:
    checkout.user.write_all({"logs/a.log": "a\n", "logs/readme": "not ignored\n"})
    checkout.rules = ("logs/",)
    assert checkout.bring() == ("logs/a.log",)
    assert checkout.files() == {"logs/a.log": "a\n"}


def test_copies_have_modes_and_times_of_the_originals(checkout: Checkout) -> None:
    program = checkout.user.write("node_modules/.bin/run", "#!/bin/sh\n", mode=0o555)
    os.utime(program, ns=(1, 2))
    program.parent.chmod(0o750)
    checkout.bring()
    copy = checkout.root / "node_modules/.bin/run"
    assert (copy.stat().st_mode, copy.stat().st_mtime_ns) == (program.stat().st_mode, 2)
    assert copy.parent.stat().st_mode == program.parent.stat().st_mode
    assert copy.stat().st_ino != program.stat().st_ino


def test_copies_follow_the_originals(checkout: Checkout) -> None:
    """Pipes are not copied."""
    checkout.user.write("node_modules/old/index.js", "old\n")
    checkout.bring()
    checkout.user.write_all({"node_modules/lib/index.js": "changed\n", "node_modules/new": "new\n"})
    os.mkfifo(checkout.user.root / "node_modules/pipe")
    shutil.rmtree(checkout.user.root / "node_modules/old")
    checkout.user.remove("data/models/m")
    (checkout.root / "data/models/m").write_text("bad\n")
    checkout.bring()
    assert checkout.files() == {"node_modules/lib/index.js": "changed\n", "node_modules/new": "new\n"}


def test_what_is_no_longer_provided_is_removed(checkout: Checkout) -> None:
    checkout.bring()
    checkout.rules = ("/data/models",)
    assert checkout.bring() == ("data/models",)
    assert checkout.files() == {"data/models/m": "m\n"}
    checkout.rules = ()
    assert (checkout.bring(), checkout.files()) == ((), {})


def test_only_what_changed_is_copied_again(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "TICK", -_PLENTY)
    checkout.bring()
    copies = {path: path.stat().st_ino for path in checkout.root.rglob("*")}
    checkout.user.write("node_modules/lib/other.js", "other\n")
    checkout.bring()
    assert {path: path.stat().st_ino for path in copies} == copies


@pytest.mark.parametrize("command", ["the same command", "the next one"])
def test_what_a_program_changed_is_put_back(checkout: Checkout, command: str) -> None:
    """Without permissions, nobody but root can list a folder."""
    folders = ("edited", "gone", "mode", "file", "hiding")
    checkout.user.write_all({f"node_modules/{name}/index.js": "same\n" for name in folders})
    before = (checkout.bring(), checkout.files())[1]
    modules = checkout.root / "node_modules"
    with (modules / "edited/index.js").open("r+") as stream:
        stream.write("evil\n")
    os.utime(
        modules / "edited/index.js", ns=(1, (checkout.user.root / "node_modules/edited/index.js").stat().st_mtime_ns)
    )
    shutil.rmtree(modules / "gone")
    (modules / "mode/index.js").chmod(0o777)
    (modules / "mode").chmod(0o777)
    shutil.rmtree(modules / "file")
    (modules / "file").write_text("a file instead of a folder\n")
    (modules / ".cache/deep").mkdir(parents=True)
    (modules / ".cache/deep/result").write_text("added\n")
    (modules / "everything").symlink_to("/")
    (modules / "hiding/hidden.js").write_text("bad\n")
    (modules / "hiding").chmod(0)
    permissions.call_obeying(checkout.restore if command == "the same command" else checkout.bring)
    assert checkout.files() == before
    assert sorted(os.listdir(modules)) == ["edited", "file", "gone", "hiding", "lib", "mode"]
    assert (modules / "mode/index.js").stat().st_mode & 0o777 == 0o644
    assert (modules / "mode").stat().st_mode & 0o777 == 0o755


def test_a_link_of_the_tree_stays_where_a_folder_of_copies_was(checkout: Checkout) -> None:
    checkout.user.write_all({"web/node_modules/x": "x\n", "packages/web/node_modules/x": "x\n"})
    checkout.bring()
    shutil.rmtree(checkout.root / "web")
    (checkout.root / "web").symlink_to("packages/web")
    checkout.tracked = (".gitignore", "web")
    assert checkout.bring() == ("data/models", "node_modules", "packages/web/node_modules")
    assert os.readlink(checkout.root / "web") == "packages/web"
    assert content(checkout.root / "web/node_modules/x") == "x\n"


def test_what_is_mounted_in_a_copy_is_not_removed(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str) -> None:
        raise OSError(errno.EBUSY, "something is mounted here", folder)

    before = (checkout.bring(), checkout.files())[1]
    monkeypatch.setattr(private_folders, "require_no_mounts", refuse)
    checkout.rules = ()
    with pytest.raises(OSError, match="mounted"):
        checkout.bring()
    assert checkout.files() == before


def test_a_record_that_a_program_wrote_is_not_believed(checkout: Checkout) -> None:
    before = (checkout.bring(), checkout.files())[1]
    (checkout.root / "node_modules/lib/index.js").write_text("bad\n")
    record = str(checkout.state / "provided.json")
    present = untracked.present(str(checkout.root), ("data/models", "node_modules"))
    replace(untracked.load(record), copies=present).save(record)
    checkout.restore()
    assert checkout.files() == before


def test_a_folder_with_files_of_the_tree_is_not_provided(checkout: Checkout) -> None:
    """A builder may have added what the user ignores."""
    checkout.bring()
    tree = {"node_modules/lib/index.js": "of the tree\n", "data": "a file, too\n"}
    shutil.rmtree(checkout.root / "data")
    for path, text in tree.items():
        (checkout.root / path).write_text(text)
    checkout.tracked = (".gitignore", *tree)
    assert checkout.bring() == ()
    assert checkout.files() == tree


@pytest.mark.parametrize(
    "instead", ["node_modules", "node_modules/lib", "node_modules/lib/index.js", "web/node_modules"]
)
def test_a_link_that_a_program_placed_leads_to_no_file_of_the_user(checkout: Checkout, instead: str) -> None:
    """In the same command, in the next one, and where nothing is provided any more."""
    checkout.user.write("web/node_modules/lib/index.js", "web\n")
    checkout.bring()
    user, before = checkout.user.ledger(), checkout.files()
    place = checkout.root / instead
    for command in ("same", "next", "without rules"):
        place.unlink() if place.is_file() else shutil.rmtree(place)
        place.symlink_to(checkout.user.root / instead)
        if command == "same":
            checkout.restore()
        else:
            checkout.rules = () if command == "without rules" else checkout.rules
            checkout.bring()
        assert checkout.user.ledger() == user
        assert command == "without rules" or checkout.files() == before


def test_a_link_into_the_working_tree_leads_into_the_checkout(checkout: Checkout) -> None:
    """Packages of a workspace are such links; a program would load the user's source."""
    user = checkout.user
    (user.root.parent / "alias").symlink_to(user.root)
    (user.root.parent / "global").mkdir()
    (user.root.parent / "global/linked").symlink_to(user.root / "packages/lib")
    links = {
        "node_modules/@o/lib": "../../packages/lib",
        "node_modules/absolute": f"{user.root}/packages/lib",
        "node_modules/alias": f"{user.root.parent}/alias/packages/lib",
        "node_modules/linked": f"{user.root.parent}/global/linked",
        "node_modules/.bin/own": "../lib/index.js",
    }
    for path, text in links.items():
        user.link(path, text)
    user.write("packages/lib/index.js", "module.exports = 'user'\n")
    (checkout.root / "packages/lib").mkdir(parents=True)
    (checkout.root / "packages/lib/index.js").write_text("module.exports = 'checkout'\n")
    checkout.tracked = (".gitignore", "packages/lib/index.js")
    checkout.bring()
    assert {path: os.readlink(checkout.root / path) for path in links} == {
        **dict.fromkeys(links, "../packages/lib"),
        "node_modules/@o/lib": "../../packages/lib",
        "node_modules/.bin/own": "../lib/index.js",
    }
    if shutil.which("node"):
        argv = ("node", "-e", "console.log(require('@o/lib'), require.resolve('@o/lib'))")
        done = subprocess.run(argv, cwd=checkout.root, capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["checkout", str(checkout.root / "packages/lib/index.js")]


def test_a_link_that_leads_out_is_not_followed(checkout: Checkout, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("outside\n")
    checkout.user.link("node_modules/tool", "../../outside/file")
    checkout.user.link("all.log", "../outside")
    checkout.user.link("dangling.log", "nowhere")
    checkout.rules = ("node_modules", "*.log")
    assert checkout.bring() == ("dangling.log", "node_modules")
    assert os.readlink(checkout.root / "node_modules/tool") == str(outside / "file")
    assert os.readlink(checkout.root / "dangling.log") == "nowhere"
    checkout.rules = ()
    checkout.bring()
    assert content(outside / "file") == "outside\n"


def test_a_path_that_is_not_copied_is_refused_once_and_a_pattern_may_match_nothing(checkout: Checkout) -> None:
    checkout.user.write_all({"web/node_modules/x": "x\n", "new": "", "tracked": "t\n"})
    checkout.user.link("out.log", "/etc")
    user, rules = discover.find(str(checkout.user.root)), ("web/node_modules", "/data/models", "none/*", "/tracked")
    wrong = {
        "nowhere": "not in your working tree",
        "out.log": "a link that leads out",
        "new": "git does not ignore it",
    }
    for name, words in wrong.items():
        needed = (*rules, name)
        provided = Provided(user, needed, 1 << 30, str(checkout.state), "", needed=needed)
        with refusing("checkout.missing", rf"cannot be copied: {name} \({words}\)$"):
            provided.bring(str(checkout.root), ("tracked",))
        provided.bring(str(checkout.root), ("tracked",))


def _removed(path: Path) -> None:
    path.unlink()


def _linked(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("change", [_removed, _linked, _pipe])
def test_a_file_that_vanishes_while_it_is_copied_is_left_out(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    """A working tree is alive: the user may install something meanwhile."""
    checkout.bring()
    checkout.user.write("node_modules/lib/index.js", "newer\n")
    copy = provided.Copier.copy

    def copied(*arguments: object) -> object:
        place = checkout.user.root / "node_modules/lib/index.js"
        if place.is_file() and not place.is_symlink():
            change(place)
        return copy(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(provided.Copier, "copy", copied)
    checkout.bring()
    assert checkout.files() == {"data/models/m": "m\n"}
    checkout.restore()


def test_a_file_that_changes_while_it_is_copied_is_copied_again(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = provided._copy_bytes

    def copy_and_change(original: IO[bytes], target: IO[bytes], size: int) -> None:
        copy(original, target, size)
        checkout.user.write("node_modules/lib/index.js", "LIB\n")

    with monkeypatch.context() as patched:
        patched.setattr(provided, "_copy_bytes", copy_and_change)
        checkout.bring()
    checkout.bring()
    assert content(checkout.root / "node_modules/lib/index.js") == "LIB\n"


def test_a_file_that_changed_just_before_is_copied_again(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later change within the same tick of the clock leaves its stamp as it is."""
    monkeypatch.setattr(clock, "TICK", _PLENTY * 1000)
    checkout.bring()
    place = checkout.root / "node_modules/lib/index.js"
    with place.open() as before:  # as long as it is open, no other file gets its number
        checkout.bring()
        assert not os.path.samestat(os.fstat(before.fileno()), place.stat())


@pytest.mark.parametrize("copied", [0, 1, 2, 3])
def test_a_copy_that_a_kill_cut_is_not_taken_for_whole(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, copied: int
) -> None:
    checkout.user.write_all({"node_modules/lib/other.js": "other\n", "node_modules/lib/more.js": "more\n"})
    copy, numbers = provided._copy_bytes, iter(range(copied))

    def copy_or_die(original: IO[bytes], target: IO[bytes], size: int) -> None:
        if next(numbers, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        copy(original, target, size)

    with monkeypatch.context() as patched:
        patched.setattr(provided, "_copy_bytes", copy_or_die)
        process = os.fork()
        if process == 0:
            checkout.bring()
            os._exit(0)
        assert os.waitpid(process, 0)[1] == signal.SIGKILL
    assert not (checkout.root / "node_modules").exists()
    checkout.user.remove("node_modules/lib/other.js")
    checkout.bring()
    assert checkout.files() == {
        "data/models/m": "m\n",
        "node_modules/lib/index.js": "lib\n",
        "node_modules/lib/more.js": "more\n",
    }
    assert not (checkout.state / "aside").exists()


def test_a_file_system_that_shares_no_blocks_gets_the_bytes(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> int:
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)
    checkout.bring()
    assert content(checkout.root / "node_modules/lib/index.js") == "lib\n"


def test_the_limit_and_a_full_disk_refuse_before_the_first_byte(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.limit = len("m\nlib\n") - 1
    with refusing("checkout.too-large", r"checkout\.limit .*node_modules .*data/models") as refused:
        checkout.bring()
    assert refused.value.details["bytes"] == 6
    checkout.limit = len("m\nlib\n")
    with monkeypatch.context() as full:
        full.setattr(machine, "room", lambda _: machine.Room("/", 2 * 4096 - 1, None))
        with refusing("system.full", "Not enough disk space"):
            checkout.bring()
    assert list(checkout.root.iterdir()) == []
    assert checkout.bring() == ("data/models", "node_modules")


def test_what_the_first_use_copies_is_described(checkout: Checkout) -> None:
    checkout.user.write("node_modules/lib/other.js", "x" * 1000)
    checkout.bring()
    assert checkout.provided.copied == {"data/models": 2, "node_modules": 1004}
    checkout.user.write("node_modules/lib/other.js", "y")
    checkout.bring()
    assert not checkout.provided.copied
