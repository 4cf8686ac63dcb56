"""A new run after a changed plan, while the files hold unfinished work of the last run (R-GIT-1).

`unit/app/test_unfinished_work.py` has what is a person's and what an agent left.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import choices, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, task, user_bytes, write

BEFORE, MINE, BUILT = "Teh fox\n", "The fox, by hand\n", "built\n"
FILES = "modify `README.md`, create `new.txt`"
CODE = "run.unfinished-work"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": BEFORE})


def script(project: Project, then: str = "") -> None:
    """The agent writes both files, and then does this."""
    (project.folder.parent / "agent").write_text(f"echo built > README.md; echo built > new.txt; {then}\n")


def by_agent(project: Project, then: str = "") -> None:
    """Plan a task for the agent, whose check fails."""
    script(project, then)
    binding = f"builder: agent\nbindings:\n  agent: {{adapter: command, argv: [sh, '{project.folder.parent}/agent']}}\n"
    project.configure(f"checks: here\nrun: {{max_attempts: 1}}\n{binding}")
    project.plan([task("T1-01", files=FILES, check="false")])


def _failed_by_agent(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"README.md": BEFORE})
    by_agent(project)
    assert project.execute().code == 1
    assert (project.read("README.md"), project.read("new.txt")) == (BUILT, BUILT)
    return project


@pytest.fixture
def agents(prepared: Prepared) -> Project:
    """An agent's attempt failed, and its files remain."""
    project = prepared.get(_failed_by_agent)
    script(project)
    return project


def _failed_by_hand(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"README.md": BEFORE})
    project.configure("checks: here\n")
    project.plan([task("T1-01", files=FILES, check="false", fields="- **Builder:** human\n")])
    assert project.execute().code == 5
    by_hand(project, "README.md", "new.txt")
    assert project.json("decide", "T1-01.work", "done").code == 0
    assert project.resume("--max-attempts", "1").code == 1
    return project


@pytest.fixture
def persons(prepared: Prepared) -> Project:
    """The work of a person failed its check, and its files remain."""
    return prepared.get(_failed_by_hand)


def by_hand(project: Project, *paths: str) -> None:
    project.repo.write_all(dict.fromkeys(paths, MINE))


def new_run(project: Project, *flags: str) -> Answer:
    """Change the plan, and start a run of it."""
    plan = project.folder / ".planning/phases/1/01-PLAN.md"
    plan.write_text(plan.read_text().replace("title: A plan of tests", "title: A better plan"))
    project.commit_own()
    return project.execute(*flags)


def leaves_all(project: Project, *flags: str) -> Answer:
    """Assert that a new run is refused, that no file changed and that no run began."""
    before, runs = project.repo.ledger(), len(project.events("--kind", "run.started"))
    refused = new_run(project, *flags)
    assert (refused.code, refused.error["code"]) == (4, CODE), refused
    assert user_bytes(before, project.repo.ledger()) == []
    assert len(project.events("--kind", "run.started")) == runs
    return refused


def test_a_new_run_is_refused_while_the_files_hold_what_a_person_built(persons: Project) -> None:
    refused = leaves_all(persons)
    assert refused.error["details"]["paths"] == ["README.md", "new.txt"]
    assert refused.error["details"]["evidence"] == ["T1-01: README.md, new.txt (a person built it)"]
    assert "git stash push -- README.md" in refused.error["hint"]
    assert leaves_all(persons, "--dry-run").error["details"]["paths"] == ["README.md", "new.txt"]


def test_a_new_run_restores_what_an_agent_left_when_its_attempt_failed(agents: Project) -> None:
    (agents.folder.parent / "agent").write_text("true\n")
    answer = new_run(agents)
    assert answer.code == 1, answer
    assert (agents.read("README.md"), agents.exists("new.txt")) == (BEFORE, False)
    assert any("reverted: README.md, new.txt" in words for words in answer.object["warnings"])


def test_every_offered_choice_can_be_taken(prepared: Prepared) -> None:
    """R-ASK-1: what a rollback would refuse is not offered."""
    for begin, ways in ((_failed_by_hand, ["amend", "commit", "roll-back"]), (_failed_by_agent, ["amend", "move"])):
        project = prepared.get(begin)
        script(project)
        by_hand(project, "new.txt")
        refused = leaves_all(project)
        assert [row["id"] for row in refused.error["details"]["choices"]] == ways
        assert choices.refused(project, refused) == {}


def test_after_a_rollback_the_new_run_starts_and_a_snapshot_has_the_work(persons: Project) -> None:
    rows = leaves_all(persons).error["details"]["choices"]
    (command,) = [row["command"] for row in rows if row["id"] == "roll-back"]
    rolled_back = persons.json(*command.split()[1:], "--yes")
    assert new_run(persons).error["code"] == "run.waiting"
    assert (persons.read("README.md"), persons.exists("new.txt")) == (BEFORE, False)
    for path in ("README.md", "new.txt"):
        assert persons.repo.git("show", f"{rolled_back.data['kept']}:worktree/{path}") == MINE.strip()


def shown(project: Project, words: str) -> list[str]:
    """Return what the commands print that a message lists after `kept: `."""
    commands = words.partition("kept: ")[2].removesuffix(")").split("; ")
    return [subprocess.check_output(["sh", "-ec", each], cwd=project.folder, text=True) for each in commands]


def warning(answer: Answer, part: str) -> str:
    (words,) = [words for words in answer.object["warnings"] if part in words]
    return str(words)


def _killed(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"README.md": BEFORE})
    door, script = project.folder.parent / "agent-door", project.folder.parent / "killed-agent"
    os.mkfifo(door)
    first = f"rm -f README.md; echo > 'my file'; echo > z.txt; test -p {door} || exit 0"
    script.write_text(f"{first}; rm {door}.once && echo > {door} && sleep 600; exit 0\n")
    Path(f"{door}.once").touch()
    project.configure(f"builder: agent\nbindings:\n  agent: {{adapter: command, argv: [sh, '{script}']}}\n")
    project.plan([task("T1-01", files="delete `README.md`, create `my file`, create `z.txt`", check="true")])
    with project.beside("execute-phase", "1", "--approve", project.approval()):
        door.read_text()
    return project


@pytest.mark.parametrize("way", seed.one_on_a_push(["resume", "new run"], "after a killed attempt"))
def test_the_printed_commands_show_every_file_of_a_killed_attempt(prepared: Prepared, way: str) -> None:
    """R-GIT-2: a file that the attempt deleted has nothing to show, and a name can have spaces."""
    project = prepared.get(_killed)
    by_hand(project, "my file", "z.txt")
    answer = project.resume("--no-verify") if way == "resume" else new_run(project, "--no-verify")
    assert answer.code == 0, answer
    assert shown(project, warning(answer, "kept: git show ")) == [MINE, MINE]


def test_what_a_person_fixed_is_named_before_an_agent_continues_from_it(agents: Project) -> None:
    """R-GIT-2: the agent may replace it. What is as the attempt left it is not named."""
    assert "continues from files" not in agents.resume("--retry-failed").out
    by_hand(agents, "README.md")
    answer = agents.resume("--retry-failed")
    assert agents.read("README.md") == BUILT
    words = warning(answer, "T1-01 continues from files that changed since attempt 2: README.md (kept: ")
    assert shown(agents, words) == [MINE]


def test_a_declared_ignored_file_is_not_called_unsaved(project: Project) -> None:
    """R-GIT-1: the snapshot before the task has it, and a rollback restores it."""
    project.repo.write_all({".gitignore": "*.log\n", "a.log": MINE, "b.log": MINE})
    project.repo.commit("ignore", ".gitignore")
    project.plan([task("T1-01", files="modify `a.log`", check="false", steps=[write("a.log", BUILT)])])
    answer = project.execute("--max-attempts", "1")
    assert "a.log" not in warning(answer, "Not in any snapshot")
    assert "b.log" in warning(answer, "Not in any snapshot")
    assert project.read("a.log") == BUILT
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.read("a.log") == MINE


def amended(project: Project, to: str) -> None:
    project.plan([to])
    assert project.json("amend", "1", "--from-file", "--yes").code == 0


@pytest.mark.parametrize("way", seed.one_on_a_push(["clone", "steps"], "another workspace or builder"))
def test_what_a_person_built_is_not_restored_for_another_workspace_or_builder(persons: Project, way: str) -> None:
    """R-GIT-1: once it is committed, the task starts from it."""
    flags = ("--retry-failed", "--max-attempts", "1", *(("--workspace", "clone") if way == "clone" else ()))
    if way == "steps":
        steps = [write("new.txt", BUILT)]
        amended(persons, task("T1-01", files="modify `README.md`, change `new.txt`", check="false", steps=steps))
    refused = persons.resume(*flags)
    assert (refused.code, refused.error["code"]) == (4, "task.changed-since"), refused
    assert refused.error["details"]["paths"] == ["README.md", "new.txt"]
    assert (persons.read("README.md"), persons.read("new.txt")) == (MINE, MINE)
    persons.repo.commit("by hand", "README.md", "new.txt")
    answer = persons.resume(*flags)
    assert answer.error["code"] == ("run.waiting" if way == "clone" else "run.failed"), answer
    assert persons.read("README.md") == MINE


def test_what_a_person_built_is_named_before_an_agent_continues_from_it(persons: Project) -> None:
    """R-GIT-2."""
    answer = continued_by_agent(persons, "echo built > README.md")
    assert (persons.read("README.md"), persons.read("new.txt")) == (BUILT, MINE)
    words = warning(answer, "T1-01 continues from files that a person built in attempt 2: README.md, new.txt (kept: ")
    assert shown(persons, words) == [MINE, MINE]


def continued_by_agent(project: Project, does: str) -> Answer:
    """Let a person's failed task continue with an agent that does this."""
    (project.folder.parent / "agent").write_text(f"{does}\n")
    binding = f"agent: {{adapter: command, argv: [sh, '{project.folder.parent}/agent']}}"
    project.configure(f"checks: here\nbindings:\n  {binding}\n")
    amended(project, task("T1-01", files=FILES, check="false", fields="- **Builder:** agent\n"))
    return project.resume("--retry-failed", "--max-attempts", "1")


def test_a_new_run_is_refused_while_an_agent_continued_from_what_a_person_built(persons: Project) -> None:
    """R-GIT-1."""
    continued_by_agent(persons, "echo built > new.txt")
    refused = leaves_all(persons)
    assert refused.error["details"]["evidence"] == ["T1-01: README.md (a person built it)"]
    assert choices.refused(persons, refused) == {}


@pytest.mark.parametrize(
    ("end", "flags"), seed.one_on_a_push([("", ("--workspace", "clone")), ("kill -9 $$", ())], "after an agent")
)
def test_what_a_person_built_is_not_restored_after_an_agent_continued_from_it(
    persons: Project, end: str, flags: tuple[str, ...]
) -> None:
    """R-GIT-1: neither for another workspace nor after a crash of the agent; once it is committed, it stays."""
    continued_by_agent(persons, f"echo built > new.txt; {end}")
    assert (persons.read("README.md"), persons.read("new.txt")) == (MINE, BUILT)
    refused = persons.resume("--retry-failed", "--max-attempts", "1", *flags)
    assert (refused.code, refused.error["code"]) == (4, "task.changed-since"), refused
    assert "built these files in attempt 2: README.md" in refused.error["message"]
    assert (persons.read("README.md"), persons.read("new.txt")) == (MINE, BUILT)
    persons.repo.commit("by hand", "README.md")
    assert persons.resume("--max-attempts", "1", *flags).error["code"] == "run.failed"
    assert persons.read("README.md") == MINE
