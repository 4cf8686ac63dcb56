"""The sandbox of builders at the command line: what is printed, recorded, refused and prevented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from idumb.composition import sandboxes
from idumb.composition.sandboxes import LocalSandboxes
from idumb.domain.runs.sandbox import Support
from idumb.domain.settings import SANDBOX_BWRAP
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

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
