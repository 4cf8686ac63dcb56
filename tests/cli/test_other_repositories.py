"""Submodules and nested repositories are left alone, and an agent that does not leave them alone does not pass."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from idumb.app.attempt import build
from tests.support import acp_agent, chat_server, seed, warm
from tests.support import project as projects
from tests.support.chat_server import ChatServer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run, run_killed_before
from tests.support.prepared import Prepared
from tests.support.project import Project

SUB = "vendor/sub"
IN_A_CLONE = {
    "clone": ("run: {max_attempts: 1, workspace: clone}\n", ""),
    "builder": ("run: {max_attempts: 1}\ngit: {commit: builder}\n", "; git add a.txt; git commit -qm work"),
}
"""Settings with which an agent works in a clone, and how it commits there."""


def _with_submodule(sandbox: GitSandbox) -> Project:
    library = GitSandbox.create(sandbox.root.parent / "library")
    library.write("lib.txt", "lib\n")
    library.write("other.txt", "other\n")
    library.commit()
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), SUB)
    sandbox.commit()
    project = projects.create(sandbox)
    sandbox.write(f"{SUB}/lib.txt", "lib\nmine\n")
    sandbox.write(f"{SUB}/new.txt", "new and mine\n")
    return project


@pytest.fixture
def project(prepared: Prepared) -> Project:
    """A project with a submodule that has uncommitted work of its own."""
    return prepared.get(_with_submodule)


def command(project: Project, script: str, more: str = "run: {max_attempts: 1}\n") -> None:
    """Build with this script; `$ONCE` is a file that does not exist at first."""
    script = f"ONCE=$HOME/once; {script}"
    agent = f"{{adapter: command, argv: [sh, -c, {json.dumps(script)}]}}"
    project.configure(f"builder: agent\n{more}bindings:\n  agent: {agent}\n")


def files(project: Project) -> dict[str, str]:
    below = project.folder / SUB
    return {p.name: p.read_text() for p in below.iterdir() if p.is_file() and p.name != ".git"}


def test_a_plan_that_writes_in_another_repository_is_refused(project: Project) -> None:
    """R-GIT-7: each claim, where it stands."""
    GitSandbox.create(project.folder / "in")
    claims = (f"modify `{SUB}/lib.txt`", f"modify `{SUB}/**`", f"delete `{SUB}`", "create `in/a`")
    path = project.plan([projects.task(f"T1-0{n}", files=claim) for n, claim in enumerate(claims, 1)])
    answer = project.quick("execute-phase", "1", "--json")
    assert answer.code == 3
    findings = [f for f in answer.error["details"]["findings"] if f["code"] == "path.other-repository"]
    lines = path.read_text().split("\n")
    assert [(f["line"], f["severity"]) for f in findings] == [
        (lines.index(f"- **Files:** {claim}") + 1, "error") for claim in claims
    ]
    assert project.quick("check-plan", "1").code == 3


def test_steps_and_quick_tasks_that_write_in_a_submodule_are_refused(project: Project) -> None:
    """R-GIT-7."""
    before = files(project)
    step = projects.write(f"{SUB}/lib.txt", "gone\n")
    project.plan([projects.task("T1-01", files="modify `vendor/**`", steps=[step])])
    answer = project.quick("check-plan", "1", "--json")
    assert "path.other-repository" in {f["code"] for f in answer.data["findings"]}
    quick = project.quick("quick", "Fix it", "--files", f"{SUB}/lib.txt", "--check", "true", "--json")
    assert quick.code == 3
    assert "path.other-repository" in quick.out
    assert files(project) == before


@pytest.mark.parametrize(
    ("script", "changed", "kept"),
    [
        ("git -C vendor/sub checkout -q .; rm vendor/sub/new.txt vendor/sub/other.txt",
         [f"{SUB}/lib.txt", f"{SUB}/new.txt", f"{SUB}/other.txt"], 2),
        ("git -C vendor/sub -c user.name=a -c user.email=a@b commit -qam x", [SUB, "vendor/sub/lib.txt"], 1),
    ],
)  # fmt: skip
def test_an_agent_that_changes_a_submodule_fails(project: Project, script: str, changed: list[str], kept: int) -> None:
    """R-GIT-7: whatever is declared; the earlier content is kept with the snapshot."""
    command(project, f"echo a > vendor/a.txt; {script}")
    project.plan([projects.task("T1-01", files="create `vendor/**`, modify `vendor/**`, delete `vendor/**`")])
    before = files(project)
    answer = run(project, "--no-verify")
    assert answer.code == 1, answer
    lines = project.quick("show", "T1-01", "--json").data["attempts"][-1]
    strays = {line["path"]: line for line in lines["ledger"] if line["status"] == "protected"}
    assert sorted(strays) == changed
    assert project.statuses() == {"T1-01": "failed"}
    shown = [c for c in lines["bring_back"] if ":repositories/" in c]
    assert len(shown) == kept
    for line in shown:
        words = line.split(" > ")
        assert project.repo.git(*words[0].split()[1:]) + "\n" == before[Path(words[1]).name]
    assert "vendor/sub is a submodule or a nested repository" in answer.out
    assert "--accept-deviation" not in answer.out


def test_an_agent_that_does_not_touch_a_dirty_submodule_passes(project: Project) -> None:
    """R-GIT-7: a glob does not reach into it; a warning says first that its uncommitted work cannot be restored."""
    before = files(project)
    command(project, "echo a > vendor/a.txt; touch vendor/sub/lib.txt")
    project.plan([projects.task("T1-01", files="create `vendor/**`")])
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer
    assert "(uncommitted work in a submodule): vendor/sub" in answer.out
    assert project.read("vendor/a.txt") == "a\n"
    assert files(project) == before


def test_model_tools_refuse_a_path_in_another_repository_even_if_declared(project: Project) -> None:
    """R-GIT-7: the agent only reads it."""
    GitSandbox.create(project.folder / "vendor/in").write("a.txt", "mine\n")
    before = files(project)
    intent = {"intent": "try"}
    tried = chat_server.calls(
        ("write_file", {"path": f"{SUB}/lib.txt", "content": "gone\n", **intent}),
        ("edit_file", {"path": f"{SUB}/lib.txt", "find": "mine", "replace": "gone", **intent}),
        ("delete_file", {"path": f"{SUB}/new.txt", **intent}),
        ("move_file", {"from": f"{SUB}/new.txt", "to": "vendor/new.txt", **intent}),
        ("write_file", {"path": "vendor/in/a.txt", "content": "gone\n", **intent}),
        ("read_file", {"path": f"{SUB}/lib.txt"}),
        ("write_file", {"path": "vendor/a.txt", "content": "made\n", **intent}),
    )
    project.plan([projects.task("T1-01", files="create `vendor/**`, modify `vendor/**`, delete `vendor/**`")])
    with ChatServer(tried, chat_server.text("Done.")).serving() as server:
        project.configure(
            f"builder: one\nbindings: {{one: {{adapter: http, options: {{base_url: '{server.url}'}}}}}}\n"
        )
        answer = run(project, "--no-verify")
        results = [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
    assert answer.code == 0, answer
    assert ["is protected by vendor/" in words for words in results] == [True] * 5 + [False] * 2
    assert "mine" in results[5]
    assert files(project) == before
    assert project.read("vendor/in/a.txt") == "mine\n"
    assert project.read("vendor/a.txt") == "made\n"


def test_an_acp_agent_s_write_into_a_submodule_is_refused(project: Project) -> None:
    """R-GIT-7."""
    before = files(project)
    script = json.dumps([sys.executable, acp_agent.__file__, "write", f"{SUB}/lib.txt", "write", "vendor/a.txt"])
    project.configure(f"builder: one\nbindings: {{one: {{adapter: acp, argv: {script}}}}}\n")
    project.plan([projects.task("T1-01", files="create `vendor/**`, modify `vendor/**`")])
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer
    assert files(project) == before
    assert project.read("vendor/a.txt") == "made\n"


def test_an_agent_that_changes_a_nested_repository_or_an_uninitialized_submodule_fails(project: Project) -> None:
    """R-GIT-7."""
    project.repo.git("submodule", "--quiet", "deinit", "--force", SUB)
    GitSandbox.create(project.folder / "in").write("a.txt", "mine\n")
    command(project, f"echo a > vendor/a.txt; echo lost > {SUB}/lost.txt; rm in/a.txt")
    project.plan([projects.task("T1-01", files="create `vendor/**`")])
    answer = run(project, "--no-verify")
    assert answer.code == 1, answer
    ledger = project.quick("show", "T1-01", "--json").data["attempts"][-1]["ledger"]
    assert [line["path"] for line in ledger if line["status"] == "protected"] == ["in/a.txt", f"{SUB}/lost.txt"]


@pytest.mark.parametrize("kind", seed.one_on_a_push([*IN_A_CLONE], "repository in a clone"))
def test_a_repository_that_an_agent_made_in_a_clone_is_not_lost_silently(sandbox: GitSandbox, kind: str) -> None:
    """R-GIT-5."""
    project = projects.create(sandbox)
    settings, commit = IN_A_CLONE[kind]
    command(project, f"echo a > a.txt; git init -q lib; echo x > lib/x{commit}", more=settings)
    project.plan([projects.task("T1-01", files="create `a.txt`, create `lib/**`", check="test -s a.txt")])
    ended = project.execute("--no-verify")
    assert ended.code == 1
    assert "it created repositories in its clone, which cannot be delivered: lib" in ended.data["tasks"][0]["reason"]


def test_an_amendment_that_adds_a_path_in_a_submodule_is_refused(project: Project, tmp_path: Path) -> None:
    """R-GIT-7."""
    project.plan([projects.making("T1-01", "a.txt", content="")])
    assert run(project, "--max-attempts", "1").code == 1
    more = tmp_path / "more.md"
    more.write_text(projects.making("T1-02", f"{SUB}/more.txt"), encoding="utf-8")
    answer = project.quick("amend", "1", "--add-task", str(more), "--why", "more", "--yes", "--json")
    assert answer.code == 3, answer
    assert "path.other-repository" in answer.out


def test_changes_of_a_killed_attempt_in_a_submodule_are_decided_and_left(project: Project) -> None:
    """R-GIT-7: no task may take them, and the next attempt starts from it."""
    command(project, f"test -e $ONCE || echo gone > {SUB}/lib.txt; touch $ONCE; echo a > vendor/a.txt")
    project.plan([projects.task("T1-01", files="create `vendor/**`, modify `vendor/**`")])
    run_killed_before(project, build.agent_failure, "execute-phase", "1", "--approve", project.approval())
    answer = project.resume()
    assert f"T1-01 was interrupted; also changed since then, left as it is: {SUB}/lib.txt" in answer.out, answer
    assert answer.code == 5, answer
    (question,) = answer.data["decisions"]
    assert (question["evidence"], [c["id"] for c in question["choices"]]) == ([f"{SUB}/lib.txt"], ["retry", "halt"])
    assert project.json("decide", question["id"], "retry").code == 0
    assert project.resume("--no-verify").code == 0
    assert files(project)["lib.txt"] == "gone\n"


def test_what_a_cancelled_attempt_changed_in_a_submodule_is_decided(project: Project, tmp_path: Path) -> None:
    """R-GIT-7: the command that resumes has seen no repository yet."""
    door = tmp_path / "door"
    os.mkfifo(door)
    command(project, f"test -e $ONCE || {{ touch $ONCE; echo gone > {SUB}/lib.txt; echo > {door}; sleep 600; }}")
    project.plan([projects.task("T1-01", files="create `a.txt`")])
    started = warm.of_this_process().start(project.start, "execute-phase", "1", "--approve", project.approval())
    door.read_text()
    os.kill(started.pid, signal.SIGINT)
    started.wait()
    answer = project.quick("resume", "1", "--json")
    assert answer.code == 5, answer
    assert answer.data["decisions"][0]["evidence"] == [f"{SUB}/lib.txt"]
