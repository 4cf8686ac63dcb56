"""What checks in the sandbox can write and reach."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from idumb.composition.sandboxes import LocalSandboxes
from idumb.domain.settings import SANDBOX_BWRAP
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.project import IDUMB, Project, task, write

USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
SUPPORT = LocalSandboxes().support()
needs_bwrap = pytest.mark.skipif(not SUPPORT.bwrap, reason=SUPPORT.no_bwrap)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    files = {"src/a.txt": "one\n", ".gitignore": "deps/\nout/\n"}
    project = projects.create(sandbox, files=files)
    (project.folder / "deps").mkdir()
    (project.folder / "deps/lib.txt").write_text("mine\n")
    return project


def checks(project: Project, *commands: str, made: str = "new.txt", **settings: Any) -> None:
    project.configure(json.dumps(settings))
    criteria = "".join(f"  - [ ] it holds — check: `{command}`\n" for command in commands)
    project.plan([task("T1-01", files=f"create `{made}`", steps=[write(made, "x\n")], criteria=criteria)])


def recorded(project: Project) -> set[str | None]:
    rows = [e["payload"] for e in project.events("--kind", "evidence.recorded")]
    return {row.get("sandbox") for row in rows if row["command"]}


HONEST = (
    "mkdir out && echo x > out/y && rm -r out && echo y > build.log",
    "echo x > $TMPDIR/x && echo x > $HOME/x && echo x > /dev/null",
    "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x",
    "echo changed > deps/lib.txt && echo x > deps/new.txt && rm deps/new.txt",
)


@pytest.mark.parametrize("prefix", seed.one_on_a_push([((),), (USER,)], "the user of the tests or one without rights"))
@needs_bwrap
def test_checks_write_in_their_tree_and_scratch_only(prefix: tuple[str, ...], project: Project, home: Path) -> None:
    if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no user namespaces (unshare --user)")
    user = project.folder
    places = (f"{user}/src/a.txt", f"{user}/.git/config", f"{user}/planted", f"{home}/planted", f"{user}/../planted")
    forbidden = [f"(echo x >> {place}) && exit 1" for place in places]
    checkout = {"provide": ["deps"]}
    checks(project, " && ".join(HONEST), "; ".join((*forbidden, "true")), sandbox=SANDBOX_BWRAP, checkout=checkout)
    before = {*home.iterdir(), home / "state"}
    command = ("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    if prefix:
        argv = [*prefix, *IDUMB, *command]
        ended = subprocess.run(argv, cwd=user, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    else:
        answer = project.quick(*command)
        assert answer.code == 0, answer
    assert recorded(project) == {SANDBOX_BWRAP}
    assert set(home.iterdir()) == before
    assert (project.read("deps/lib.txt"), project.read("src/a.txt")) == ("mine\n", "one\n")
    assert not (user / "deps/new.txt").exists()


CONNECT = """import socket, sys
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 5).close()
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).close()
except OSError:
    sys.exit(3)
"""


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"checks": {"network": "none"}}, 3, "no network"),
        ({"checks": {"network": "none"}, "sandbox": "bwrap"}, 3, "bwrap, no network"),
    ],
)
def test_checks_reach_the_network_only_if_it_is_open(
    settings: dict[str, Any], code: int, words: str | None, project: Project
) -> None:
    if "checks" in settings and not SUPPORT.bwrap:
        pytest.skip(SUPPORT.no_bwrap)
    script = project.folder.parent / "connect.py"
    script.write_text(CONNECT)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        checks(project, f"{sys.executable} -I {script} {port}; test $? = {code}", **settings)
        answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    assert answer.code == 0, answer
    assert recorded(project) == {words}


def test_a_check_that_cannot_have_no_network_does_not_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [folder for folder in os.environ["PATH"].split(":") if not os.path.exists(f"{folder}/bwrap")]
    tools = project.folder.parent / "tools"
    tools.mkdir()
    for name in ("git", "sh", "touch"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", ":".join([*folders, str(tools)]))
    ran = project.folder.parent / "ran"
    checks(project, f"touch {ran}", checks={"network": "none"})
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify", "--json")
    assert answer.code == 1, answer
    assert "needs bubblewrap, and bubblewrap is not installed" in project.quick("show", "T1-01").out
    assert not ran.exists()
