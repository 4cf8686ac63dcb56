"""What a program in the sandbox cannot write, and what it can: real processes under bubblewrap."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from idumb.composition import sandboxes
from idumb.composition.sandboxes import LocalSandboxes
from idumb.domain.permissions import DETECTION, SANDBOX_BWRAP, Fence
from idumb.system import programs
from tests.support import python
from tests.support.cases import every
from tests.support.programs import script

USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
"""A user without capabilities, who still owns the files of the test."""


LEFT_TO_ROOT = 0b100_1111_1011
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE."""


@dataclass(frozen=True)
class Place:
    root: Path
    prefix: tuple[str, ...] = ()
    fence: Fence = field(default_factory=lambda: Fence(()))

    def sh(self, script: str) -> subprocess.CompletedProcess[str]:
        return self.run("/bin/sh", "-c", script)

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        words = LocalSandboxes().launcher(SANDBOX_BWRAP, self.fence)
        return subprocess.run(
            [*self.prefix, *words, *argv], cwd=self.root, capture_output=True, text=True, check=False, timeout=60
        )


def require(prefix: Sequence[str]) -> None:
    if reason := LocalSandboxes().support().no_bwrap:
        pytest.skip(reason)
    if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no user namespaces (unshare --user)")


CASES = {"root or the user of the tests": (), "a user without capabilities": USER}


@pytest.fixture(params=CASES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    prefix = CASES[request.param]
    require(prefix)
    root = tmp_path / "repo"
    for name in ("src/a.txt", "doc/b.txt", "top.txt", ".git/config", ".git/idumb/papers/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("one\n")
    fence = Fence((str(root / "src"), str(root / ".git/idumb/papers")), (str(root / ".git"),), (str(root),))
    return Place(root, prefix, fence)


FORBIDDEN = [
    "echo x > new.txt",
    "echo x > top.txt",
    "echo x >> doc/b.txt",
    "rm top.txt",
    "mv top.txt src/top.txt",
    "mv src/a.txt doc/a.txt",
    "mkdir folder",
    "ln -s x link",
    "mkfifo pipe",
    "ln top.txt src/hard && echo x > src/hard",
    "echo x > .git/config",
    "echo x > .git/new",
    "echo x > .git/idumb/new",
    "mv .git elsewhere",
    "rm -rf .git/config",
    "ln -s ../top.txt src/link && echo x > src/link",
    "(cd src && echo x > ../top.txt)",
    "echo x > /proc/self/cwd/top.txt",
    "mount -t tmpfs none doc",
    "mount -o remount,rw,bind .git && echo x > .git/config",
    "umount .git && echo x > .git/config",
    "unshare --user --map-root-user --mount sh -c 'umount .git; mount -o remount,rw,bind . ; echo x > top.txt'",
    "mknod src/device b 7 0",
    f"{sys.executable} -I -S -c 'import os; os.truncate(\"top.txt\", 0)'",
    'same="$(cat /proc/sys/kernel/core_pattern)" && echo "$same" > /proc/sys/kernel/core_pattern',
]


def contents(root: Path) -> dict[str, str]:
    return {
        str(p.relative_to(root)): p.read_text() if p.is_file() else ""
        for p in sorted(root.rglob("*"))
        if "src" not in str(p.relative_to(root))
    }


def test_every_forbidden_write_fails(place: Place) -> None:
    before = contents(place.root)
    ended = place.sh("\n".join(f"({script}) && echo {n}" for n, script in enumerate(FORBIDDEN)) + "\necho end")
    assert [FORBIDDEN[int(n)] for n in ended.stdout.split()[:-1]] == []
    assert ended.stdout.split()[-1:] == ["end"]
    assert contents(place.root) == before
    made = {p.name for p in (place.root / "src").iterdir() if not p.is_symlink()}
    assert made <= {"a.txt", "top.txt"}  # `mv` may copy what it cannot move


ALLOWED = """set -e
echo two > src/a.txt
echo x > src/new && mv src/new src/renamed && rm src/renamed
mkdir -p src/deep/er && mv src/a.txt src/deep/er/ && mv src/deep/er/a.txt src/a.txt && rm -r src/deep
ln -s a.txt src/link && ln src/a.txt src/hard && mkfifo src/pipe && rm src/link src/hard src/pipe
echo x > .git/idumb/papers/y
echo x > /dev/null && head -c 1 /dev/zero > /dev/null
cat top.txt doc/b.txt .git/config > /dev/null
"""


def test_every_allowed_write_works(place: Place) -> None:
    ended = place.sh(ALLOWED)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (place.root / "src/a.txt").read_text() == "two\n"
    assert (place.root / ".git/idumb/papers/y").exists()


def test_a_program_cannot_reach_processes_outside(place: Place) -> None:
    outside = subprocess.Popen(["sleep", "60"])
    try:
        for script in (f"kill -9 {outside.pid}", f"echo x > /proc/{outside.pid}/root{place.root}/top.txt"):
            assert place.sh(script).returncode != 0, script
        assert outside.poll() is None
    finally:
        outside.kill()
        outside.wait()


TYPE = """import fcntl, os, sys, termios
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), termios.TIOCSTI, b"x")
"""


def test_a_program_cannot_type_into_a_terminal_of_the_user(place: Place) -> None:
    """Root could, on kernels that still know `TIOCSTI`: what it types runs outside of the sandbox."""
    outer, inner = os.openpty()
    try:
        assert place.run(sys.executable, "-I", "-S", "-c", TYPE, os.ttyname(inner)).returncode != 0
    finally:
        os.close(outer)
        os.close(inner)


def test_a_program_keeps_no_capability_that_leads_out(place: Place) -> None:
    ended = place.sh("grep CapEff /proc/self/status")
    assert int(ended.stdout.split()[1], 16) & ~LEFT_TO_ROOT == 0


SEMAPHORE = "import multiprocessing as m; print(m.get_context('fork').Semaphore(1).acquire())"


def test_a_program_has_semaphores(place: Place) -> None:
    # The tests' folder may be in /dev/shm: there is none of it without a fence, and with one the rest is read-only.
    anywhere = Place(Path("/"), place.prefix)
    ended = anywhere.run(sys.executable, "-I", "-S", "-c", SEMAPHORE)
    assert (ended.stdout, ended.stderr) == ("True\n", "")


def test_a_program_keeps_its_arguments_its_exit_code_and_a_terminal(place: Place) -> None:
    code = "import os, pty, sys; os.close(pty.openpty()[0]); print(sys.argv[1:]); sys.exit(7)"
    ended = place.run(sys.executable, "-I", "-S", "-c", code, "a b", "--", "-x")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "['a b', '--', '-x']\n", "")


def test_a_place_that_is_gone_starts_nothing(place: Place) -> None:
    gone = Place(place.root, place.prefix, Fence((str(place.root / "gone"),)))
    ended = gone.sh("echo ran")
    assert ended.returncode != 0
    assert "ran" not in ended.stdout


_ONE_NAMESPACE = "echo 1 > /proc/sys/user/max_user_namespaces"


def test_without_user_namespaces_there_is_no_sandbox(tmp_path: Path) -> None:
    """In a user namespace that may hold no further one, a user without capabilities cannot use bubblewrap."""
    require(USER)
    code = (
        "from idumb.composition.sandboxes import LocalSandboxes as L; s = L().support();"
        "print(s.bwrap or 'none', s.no_bwrap)"
    )
    inner = f'{_ONE_NAMESPACE}; exec {" ".join(USER)} {sys.executable} -c "$1"'
    argv = ["unshare", "--user", "--map-root-user", "--", "sh", "-c", inner, "sh", code]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert ended.stdout.startswith("none bubblewrap does not work here: "), ended


def test_other_systems_report_that_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    support = LocalSandboxes().support()
    assert support.no_bwrap == "idumb has no sandbox for macOS"
    assert LocalSandboxes().launcher(DETECTION, Fence(())) == ()


def test_a_bubblewrap_that_tasks_or_others_could_have_written_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script(tmp_path / "repo/bin/bwrap")
    monkeypatch.setenv("PATH", str(program.parent))
    assert programs.find_bubblewrap("") == os.path.realpath(program)
    assert programs.find_bubblewrap(str(tmp_path / "repo")) == ""
    program.chmod(0o775)
    assert programs.find_bubblewrap("") == ""
    assert sandboxes.LocalSandboxes(str(tmp_path)).support().add == "bubblewrap"


LISTED = """import subprocess, sys
from idumb.composition.sandboxes import LocalSandboxes
from idumb.system import programs
def networks():
    joined = ["nsenter", f"--net=/proc/{sys.argv[1]}/ns/net", "readlink", "/proc/self/ns/net"]
    alone = programs.without_network(programs.confined(LocalSandboxes().support().bwrap, {"/": True}))
    return subprocess.run([*alone, *joined], capture_output=True, text=True).stdout
print(networks() or "none")
"""


def test_root_without_a_network_cannot_join_another_one() -> None:
    require(())
    if os.geteuid() or subprocess.run(["nsenter", "--net=/proc/self/ns/net", "true"], check=False).returncode:
        pytest.skip("only root can join the network of another process (nsenter --net)")
    assert python.run(LISTED, str(os.getpid())) == "none\n"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """`work` is where a program may write."""
    (tmp_path / "work/deep").mkdir(parents=True)
    (tmp_path / "home/cache").mkdir(parents=True)
    (tmp_path / "work/planted").symlink_to(tmp_path / "home")
    (tmp_path / "work/deep/up").symlink_to("../../home")
    (tmp_path / "mine").symlink_to("home")
    (tmp_path / "indirect").symlink_to("work/planted")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@every(
    "path, real",
    [
        ("work/planted", None),
        ("work/planted/cache", None),
        ("work/deep/up", None),
        ("indirect/cache", None),
        ("mine/../work/planted", None),
        ("loop", None),
        ("mine/cache", "home/cache"),
        ("mine/./cache/missing", "home/cache/missing"),
        ("work/deep", "work/deep"),
        ("work/../mine", "home"),
    ],
)
def test_a_link_counts_only_where_no_program_could_have_made_it(path: str, real: str | None, top: Path) -> None:
    found = programs.real_path(f"{top}/{path}", [f"{top}/work"])
    assert found == (None if real is None else str(top / real))


def test_a_link_at_a_place_with_a_similar_name_counts(top: Path) -> None:
    (top / "work-2").mkdir()
    (top / "work-2/mine").symlink_to(top / "home")
    assert programs.real_path(f"{top}/work-2/mine", [f"{top}/work"]) == str(top / "home")
