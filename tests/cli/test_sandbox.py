"""The sandbox of builders and checks at the command line: what is printed, recorded, refused and prevented."""

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

from idumb.composition import sandboxes
from idumb.composition.sandboxes import LocalSandboxes
from idumb.domain.permissions import SANDBOX_BWRAP, Support
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.project import IDUMB, Project, task, write

SUPPORT = LocalSandboxes().support()
NOTHING = Support(no_bwrap="bubblewrap is not installed", add="bubblewrap")

needs_bwrap = pytest.mark.skipif(not SUPPORT.bwrap, reason=SUPPORT.no_bwrap)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"src/a.txt": "one\n", "top.txt": "top\n", ".gitignore": "cache/\n"})


def builder(project: Project, script: str, files: str, check: str = "true", **settings: Any) -> None:
    """The builder runs a script, and nothing that it cannot write fails it."""
    place = project.folder.parent / "builder.sh"
    place.write_text(f"{script}\nexit 0\n")
    it = {"adapter": "command", "argv": ["/bin/sh", str(place)]}
    project.configure(json.dumps({"builder": "it", "bindings": {"it": it}, **settings}))
    project.plan([task("T1-01", files=files, check=check)])


def recorded(project: Project) -> list[str | None]:
    return [e["payload"]["builder"].get("sandbox") for e in project.events("--kind", "attempt.finished")]


@needs_bwrap
def test_a_builder_writes_in_its_checkout_only(project: Project, home: Path) -> None:
    level = SANDBOX_BWRAP
    mine = project.folder
    elsewhere = [f"{mine}/top.txt", f"{mine}/.git/config", f"{mine}/.idumb/config.yaml", "$HOME/mine", "../mine"]
    script = "\n".join(
        (
            "echo two > src/a.txt; mkdir -p src/deep; echo x > src/deep/new.txt",
            'echo x > "$TMPDIR/scratch" && cp "$TMPDIR/scratch" src/deep/copied.txt',
            *(f"echo x >> {path}" for path in elsewhere),
            f"rm -rf {mine}/.git {mine}/top.txt",
        )
    )
    builder(project, script, "modify `src/a.txt`, create `src/deep/**`", "test -f src/deep/copied.txt", sandbox=level)
    before = {*home.iterdir(), home / "state"}
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    assert answer.code == 0, answer
    assert answer.err.count(f"Sandbox: {level}.") == 1
    assert recorded(project) == [level]
    assert f"  sandbox: {level}\n" in project.quick("show", "T1-01").out
    [done] = project.quick("audit", "bundle", "1", "--json").data["bundle"]["tasks"]
    assert [row["sandbox"] for row in done["evidence"] if row["command"]] == [level]
    assert project.read("top.txt") == "top\n"
    assert project.repo.git("status", "--porcelain") == ""
    assert set(home.iterdir()) == before
    assert not (project.folder.parent / "mine").exists()


def test_a_required_sandbox_that_is_not_there_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the run says what would add a sandbox."""
    why = "bubblewrap is not installed"
    monkeypatch.setattr(sandboxes, "_support", lambda _: NOTHING)
    builder(project, "echo ran >> ../ran; echo x > src/x.txt", "create `src/x.txt`", sandbox="bwrap")
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--json")
    assert (answer.code, answer.error["code"]) == (4, "sandbox.none")
    assert answer.error["message"] == f"No sandbox is available: {why}."
    assert not (project.folder.parent / "ran").exists()
    builder(project, "echo ran >> ../ran; echo x > src/x.txt", "create `src/x.txt`", sandbox="auto")
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    assert answer.code == 0, answer
    assert f"Sandbox: detection only, because {why}; install the package bubblewrap.\n" in answer.err
    assert recorded(project) == [f"detection only: {why}"]


@needs_bwrap
def test_a_builder_never_writes_the_user_s_approvals_and_keys(project: Project, home: Path) -> None:
    """Even if the configuration opens the home around them."""
    (home / "config/idumb").mkdir(parents=True)
    script = f"echo x > src/x.txt; echo x > {home}/made; echo x > {home}/state/idumb/x; echo x > {home}/config/idumb/x"
    builder(project, script, "create `src/x.txt`", sandbox={"level": "auto", "write": [str(home)]})
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    assert answer.code == 0, answer
    assert recorded(project) == [SANDBOX_BWRAP]
    assert (home / "made").exists()
    assert list(home.glob("*/idumb/x")) == []


@needs_bwrap
def test_a_required_sandbox_is_also_required_of_the_validator(project: Project) -> None:
    bindings = {
        "it": {"adapter": "command", "argv": ["/bin/sh", "-c", "echo x > src/x.txt"]},
        "away": {"adapter": "handoff"},
    }
    project.configure(json.dumps({"builder": "it", "validator": "away", "bindings": bindings, "sandbox": "bwrap"}))
    project.plan([task("T1-01", files="create `src/x.txt`", check="test -f src/x.txt")])
    refused = project.quick("execute-phase", "1", "--approve", project.approval(), "--json")
    assert (refused.code, refused.error["code"]) == (4, "sandbox.none")
    assert not project.exists("src/x.txt")


USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")


@pytest.fixture
def provided(sandbox: GitSandbox) -> Project:
    files = {"src/a.txt": "one\n", ".gitignore": "deps/\nout/\n"}
    project = projects.create(sandbox, files=files)
    (project.folder / "deps").mkdir()
    (project.folder / "deps/lib.txt").write_text("mine\n")
    return project


def checks(project: Project, *commands: str, made: str = "new.txt", **settings: Any) -> None:
    project.configure(json.dumps(settings))
    criteria = "".join(f"  - [ ] it holds — check: `{command}`\n" for command in commands)
    project.plan([task("T1-01", files=f"create `{made}`", steps=[write(made, "x\n")], criteria=criteria)])


def levels(project: Project) -> set[str | None]:
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
def test_checks_write_in_their_tree_and_scratch_only(prefix: tuple[str, ...], provided: Project, home: Path) -> None:
    if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no user namespaces (unshare --user)")
    user = provided.folder
    places = (f"{user}/src/a.txt", f"{user}/.git/config", f"{user}/planted", f"{home}/planted", f"{user}/../planted")
    forbidden = [f"(echo x >> {place}) && exit 1" for place in places]
    checkout = {"provide": ["deps"]}
    checks(provided, " && ".join(HONEST), "; ".join((*forbidden, "true")), sandbox=SANDBOX_BWRAP, checkout=checkout)
    before = {*home.iterdir(), home / "state"}
    command = ("execute-phase", "1", "--approve", provided.approval(), "--no-verify")
    if prefix:
        argv = [*prefix, *IDUMB, *command]
        ended = subprocess.run(argv, cwd=user, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    else:
        answer = provided.quick(*command)
        assert answer.code == 0, answer
    assert levels(provided) == {SANDBOX_BWRAP}
    assert set(home.iterdir()) == before
    assert (provided.read("deps/lib.txt"), provided.read("src/a.txt")) == ("mine\n", "one\n")
    assert not (user / "deps/new.txt").exists()


CONNECT = """import socket, sys
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 5).close()
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).close()
except OSError:
    sys.exit(3)
"""


CLOSED = {"checks": {"network": "none"}}
NETWORKS = [({}, 0, None), (CLOSED, 3, "no network"), ({**CLOSED, "sandbox": "bwrap"}, 3, "bwrap, no network")]


@needs_bwrap
@pytest.mark.parametrize(("settings", "code", "words"), seed.one_on_a_push(NETWORKS, "a network"))
def test_checks_reach_the_network_only_if_it_is_open(
    settings: dict[str, Any], code: int, words: str | None, provided: Project
) -> None:
    script = provided.folder.parent / "connect.py"
    script.write_text(CONNECT)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        checks(provided, f"{sys.executable} -I {script} {port}; test $? = {code}", **settings)
        answer = provided.quick("execute-phase", "1", "--approve", provided.approval(), "--no-verify")
    assert answer.code == 0, answer
    assert levels(provided) == {words}


def test_a_check_that_cannot_have_no_network_does_not_run(provided: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [folder for folder in os.environ["PATH"].split(":") if not os.path.exists(f"{folder}/bwrap")]
    tools = provided.folder.parent / "tools"
    tools.mkdir()
    for name in ("git", "sh", "touch"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", ":".join([*folders, str(tools)]))
    ran = provided.folder.parent / "ran"
    checks(provided, f"touch {ran}", checks={"network": "none"})
    answer = provided.quick("execute-phase", "1", "--approve", provided.approval(), "--no-verify", "--json")
    assert answer.code == 1, answer
    assert "needs bubblewrap, and bubblewrap is not installed" in provided.quick("show", "T1-01").out
    assert not ran.exists()
