"""Git's own files that changed during a task are refused until a person accepts or reverts the change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from idumb.app.attempt import record
from tests.support import project as projects
from tests.support import seed, warm
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, making, shell, task, write

HOOK = ".git/hooks/pre-commit"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"README.md": "one\n"})
    steps = [write("b.txt", "b\n"), shell("sh ../actor")]
    project.plan([making("T1-01", "a.txt"), task("T1-02", files="create `b.txt`", after="T1-01", steps=steps)])
    return project


def actor(project: Project, *lines: str) -> Path:
    place = project.folder.parent / "actor"
    place.write_text("\n".join((*lines, "exit 0", "")))
    return place


def tmp_ran(project: Project) -> Path:
    """A file that every planted program makes."""
    return project.folder.parent / "ran"


def plants(project: Project, *more: str) -> None:
    """The second task is tampered with: a hook appears, which would tell that git ran it."""
    hook = project.folder / HOOK
    actor(
        project, f"mkdir -p {hook.parent}", f"echo 'touch {project.folder.parent}/ran' > {hook}; chmod +x {hook}", *more
    )


def refused(project: Project, *arguments: str, names: tuple[str, ...] = (HOOK,)) -> Answer:
    answer = project.quick(*arguments, "--json")
    assert answer.code == 4, answer
    assert answer.error["code"] == "git.guarded-changed", answer.error
    assert answer.error["details"]["paths"] == [*names]
    assert not tmp_ran(project).exists()
    return answer


def every_way(project: Project, *names: str) -> None:
    names = names or (HOOK,)
    hash_ = project.approval()
    refused(project, "resume", "1", names=names)
    refused(project, "execute-phase", "1", "--approve", hash_, names=names)
    refused(project, "rollback", "1", "--to", "start", "--yes", names=names)
    refused(project, "undo", "--yes", names=names)
    refused(project, "accept", "T1-02", "--why", "it is good", names=names)


def test_a_planted_hook_is_refused_until_a_person_accepts_it_and_that_is_recorded(project: Project) -> None:
    plants(project)
    hint = refused(project, "execute-phase", "1", "--approve", project.approval()).error["hint"]
    assert f"idumb resume 1 --accept-git {HOOK}" in hint
    every_way(project)
    refused(project, "resume", "1", "--accept-git", ".git/config")
    actor(project)
    answer = project.quick("resume", "1", "--accept-git", HOOK, "--no-verify", "--json")
    assert answer.data["outcome"] == "complete", answer
    (event,) = project.events("1", "--kind", "guarded.accepted")
    assert event["payload"]["paths"] == [HOOK]
    assert HOOK in event["payload"]["guarded"]


@pytest.mark.parametrize("number", seed.one_on_a_push(["INT", "KILL"], "planted before"))
def test_what_was_planted_before_an_interruption_does_not_run(project: Project, number: str) -> None:
    """The attempt's files are saved before anybody looks at git's own files, and resume compares those first."""
    filters = FILTER.replace("{ran}", str(tmp_ran(project)))
    plants(project, f"echo more >> README.md; {filters}", f"touch README.md; kill -{number} $(cat ../pid); sleep 60")
    started = warm.of_this_process().start(project.start, "execute-phase", "1", "--approve", project.approval())
    (project.folder.parent / "pid").write_text(str(started.pid))
    assert started.wait().code == (130 if number == "INT" else -9)
    every_way(project, HOOK, "~/config/git/attributes", "~/gitconfig")


def test_user_changes_between_two_commands_are_accepted(project: Project) -> None:
    actor(project, "exit 1")
    assert run(project, "--max-attempts", "1").code == 1
    project.repo.git("config", "alias.x", "y")
    actor(project)
    assert project.quick("resume", "1", "--retry-failed", "--no-verify", "--json").data["outcome"] == "complete"
    project.repo.git("config", "alias.z", "y")
    assert project.quick("rollback", "1", "--to", "start", "--yes", "--json").code == 0


RUNS = "printf '#!/bin/sh\\ntouch {ran}\\n' > {hook}; chmod +x {hook}"
HOOKS = "mkdir -p ~/hooks; " + RUNS.replace("{hook}", "~/hooks/pre-commit")
FILTER = """mkdir -p ~/config/git; echo '*.txt filter=x' > ~/config/git/attributes
git config --file ~/gitconfig filter.x.clean 'touch {ran}; cat'"""
ATTRIBUTES = '[core]\n\tattributesFile = ~/attributes\n[filter "x"]\n\tclean = ~/clean\n'
CLEANS = RUNS.replace("{hook}", "~/clean") + "; echo '*.txt filter=x' > ~/attributes"
WAYS = {
    "core.hooksPath": ("", f"{HOOKS}; git config core.hooksPath ~/hooks", [".git/config", "~/hooks/pre-commit"]),
    "worktree config": (
        "",
        f"{HOOKS}; git config extensions.worktreeConfig true; git config --worktree core.hooksPath ~/hooks",
        [".git/config", ".git/config.worktree", "~/hooks/pre-commit"],
    ),
    "included, global and of the system": (
        '[include]\n\tpath = more\n[includeIf "gitdir:**/.git"]\n\tpath = other\n',
        f"{HOOKS}; for f in gitconfig more other system; do git config --file ~/$f core.hooksPath ~/hooks; done",
        ["~/gitconfig", "~/hooks/pre-commit", "~/more", "~/other", "~/system"],
    ),
    "XDG": (
        None,
        f"{HOOKS}; mkdir -p ~/config/git; git config --file ~/config/git/config core.hooksPath ~/hooks",
        ["~/config/git/config", "~/hooks/pre-commit"],
    ),
    "a hook in hooksPath": ("[core]\n\thooksPath = ~/hooks\n", HOOKS, ["~/hooks/pre-commit"]),
    "husky": (
        "[core]\n\thooksPath = .husky/_\n",
        f"mkdir -p .husky/_; echo '*' > .husky/_/.gitignore; {RUNS.replace('{hook}', '.husky/_/pre-commit')}",
        [".husky/_/.gitignore", ".husky/_/pre-commit"],
    ),
    "filter": ("", FILTER, ["~/config/git/attributes", "~/gitconfig"]),
    "attributesFile and signing": (
        ATTRIBUTES + "[commit]\n\tgpgSign = true\n[user]\n\tsigningKey = x\n",
        f"{CLEANS}; {RUNS.replace('{hook}', '~/sign')}; git config --file ~/gitconfig gpg.program ~/sign",
        ["~/attributes", "~/gitconfig"],
    ),
}


@pytest.mark.parametrize("way", seed.one_on_a_push([*WAYS], "planted"))
def test_nothing_that_was_planted_anywhere_runs(
    sandbox: GitSandbox, home: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """R-GIT-6, F53, T12."""
    configured, script, names = WAYS[way]
    project = projects.create(sandbox, files={"README.md": "one\n"})
    if configured is None:
        monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    if "~/system" in names:
        monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
        monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(home / "system"))
    ran = tmp_ran(project)
    steps = [write("a.txt", "a\n"), shell(script.replace("{ran}", str(ran)))]
    project.plan([making("T1-01", "a.txt", steps=steps)])
    approval = project.approval()
    if configured:
        (home / "gitconfig").write_text(configured)
    for arguments in (("execute-phase", "1", "--approve", approval), ("resume", "1"), ("undo", "--yes")):
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (4, "git.guarded-changed"), answer
        assert answer.error["details"]["paths"] == names
        assert not ran.exists()


BUILDERS = {
    "clone": ("run: {workspace: clone}\n", ""),
    "builder": ("git: {commit: builder}\n", "git add a.txt; git commit -qm work"),
}


@pytest.mark.parametrize("work", seed.one_on_a_push([*BUILDERS], "planted from a clone"))
def test_what_a_builder_in_a_clone_plants_does_not_run(sandbox: GitSandbox, work: str) -> None:
    """R-GIT-6, F53: the builder reaches the user's own repository and home from its clone."""
    configuration, commits = BUILDERS[work]
    project = projects.create(sandbox, files={"README.md": "one\n"})
    own = f"mkdir -p {project.folder}/.git/hooks; " + RUNS.replace("{hook}", f"{project.folder}/{HOOK}")
    script = f"{own}\n{FILTER}".replace("{ran}", str(tmp_ran(project)))
    place = actor(project, "echo a > a.txt", commits, script)
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")])
    binding = f"bindings: {{b: {{adapter: command, argv: [sh, {place}]}}}}\n"
    project.configure(f"builder: b\n{configuration}{binding}environment: [GIT_CONFIG_GLOBAL]\n")
    for arguments in (("execute-phase", "1", "--approve", project.approval()), ("resume", "1")):
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (4, "git.guarded-changed"), answer
        assert answer.error["details"]["paths"] == [HOOK, "~/config/git/attributes", "~/gitconfig"]
    assert not tmp_ran(project).exists()


def test_git_configuration_in_variables_has_no_effect(
    sandbox: GitSandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """idumb's git sees no variables that set single settings, so nothing that they name can be planted."""
    project = projects.create(sandbox, files={"README.md": "one\n"})
    ran = tmp_ran(project)
    script = "mkdir -p ~/hooks; " + RUNS.format(ran=ran, hook="~/hooks/pre-commit")
    project.plan([making("T1-01", "a.txt", steps=[write("a.txt", "a\n"), shell(script)])])
    approval = project.approval()
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(home / "hooks"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.hookspath'='{home}/hooks'")
    assert (
        project.quick("execute-phase", "1", "--approve", approval, "--no-verify", "--json").data["outcome"]
        == "complete"
    )
    assert not ran.exists()


def test_the_refusal_says_what_changed_and_shows_no_value(project: Project, home: Path) -> None:
    (home / "gitconfig").write_text("[alias]\n\tx = y\n")
    actor(
        project,
        "git config --file ~/gitconfig url.https://t0ken@host/.insteadOf x",
        "git config --file ~/gitconfig alias.z y",
    )
    words = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify", "--json").error[
        "message"
    ]
    assert words.endswith("ran: ~/gitconfig (alias.z, url.*.insteadof)")


def test_a_hook_planted_just_before_the_commit_does_not_run(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the builder may outlive every comparison but the last."""
    project = projects.create(sandbox, files={"README.md": "one\n"})
    project.plan([making("T1-01", "a.txt")])
    ran, keep = project.folder.parent / "ran", record.keep_candidate

    def late(*arguments: Any) -> Any:
        hook = project.folder / HOOK
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
        return keep(*arguments)

    monkeypatch.setattr(record, "keep_candidate", late)
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify", "--json")
    assert answer.error["code"] == "git.guarded-changed", answer
    assert "just before T1-01 was committed" in answer.error["message"]
    assert project.quick("resume", "1", "--json").error["code"] == "git.guarded-changed"
    assert not ran.exists()
    (project.folder / HOOK).unlink()
    monkeypatch.setattr(record, "keep_candidate", keep)
    assert project.quick("resume", "1", "--no-verify", "--json").data["outcome"] == "complete"
    assert project.events("1", "--kind", "guarded.accepted") == []


@pytest.mark.parametrize("workspace", seed.one_on_a_push(["here", "clone"], "declared hook"))
def test_a_hook_that_a_task_declares_is_work_and_does_not_run_in_this_run(sandbox: GitSandbox, workspace: str) -> None:
    project = projects.create(sandbox, files={"README.md": "one\n"})
    project.repo.git("config", "core.hooksPath", ".husky")
    ran = project.folder.parent / "ran"
    steps = [shell("mkdir -p .husky; " + RUNS.format(ran=ran, hook=".husky/pre-commit"))]
    first = task("T1-01", files="create `.husky/pre-commit`", steps=steps)
    project.plan([first, making("T1-02", "b.txt", after="T1-01")])
    answer = run(project, "--workspace", workspace, "--no-verify")
    assert answer.data["outcome"] == "complete", answer
    said = "T1-01 wrote .husky/pre-commit, which git runs for commits. idumb's commits of this run run no hooks."
    assert answer.object["warnings"].count(said) == 1
    assert not ran.exists()
    project.repo.git("commit", "--quiet", "--allow-empty", "-m", "mine")
    assert ran.exists()


def test_a_hook_in_the_tree_that_no_task_declares_stops_the_run(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox, files={"README.md": "one\n"})
    project.repo.git("config", "core.hooksPath", ".husky")
    steps = [write("a.txt", "a\n"), shell("mkdir -p .husky; echo > .husky/pre-commit")]
    project.plan([making("T1-01", "a.txt", steps=steps)])
    answer = run(project)
    assert answer.error["details"]["paths"] == [".husky/pre-commit"]
    assert answer.error["message"].endswith(".husky/pre-commit (new)")


def test_configuration_in_the_tree_that_a_person_accepted_may_be_written_again(sandbox: GitSandbox) -> None:
    """The task starts over after the refusal, and writes the same bytes."""
    project = projects.create(sandbox, files={"shared.config": "[alias]\n\tx = y\n"})
    project.repo.git("config", "include.path", "../shared.config")
    steps = [write("shared.config", "[alias]\n\tx = z\n")]
    project.plan([task("T1-01", files="modify `shared.config`", steps=steps), making("T1-02", "b.txt", after="T1-01")])
    answer = run(project)
    assert answer.error["details"]["paths"] == ["shared.config"]
    assert answer.error["message"].endswith("shared.config (alias.x)")
    answer = project.quick("resume", "1", "--accept-git", "shared.config", "--no-verify", "--json")
    assert answer.data["outcome"] == "complete", answer
