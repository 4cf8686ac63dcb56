"""A new run after a changed plan, while the files hold unfinished work of the last run (R-GIT-1)."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.support import choices
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task, user_bytes, write

BEFORE, MINE, BUILT = "Teh fox\n", "The fox, by hand\n", "built\n"
FILES = "modify `README.md`, create `new.txt`"
CODE = "run.unfinished-work"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": BEFORE})


def by_agent(project: Project, then: str = "") -> None:
    """Plan a task for an agent that writes both files, and whose check fails."""
    script = project.folder.parent / "agent"
    script.write_text(f"echo built > README.md; echo built > new.txt; {then}\n")
    binding = f"builder: agent\nbindings:\n  agent: {{adapter: command, argv: [sh, '{script}']}}\n"
    project.configure(f"run: {{max_attempts: 1}}\n{binding}")
    project.plan([task("T1-01", files=FILES, check="false")])


def failed_by_agent(project: Project) -> None:
    by_agent(project)
    assert project.execute().code == 1
    assert (project.read("README.md"), project.read("new.txt")) == (BUILT, BUILT)


def interrupted_agent(project: Project) -> None:
    door = project.folder.parent / "door"
    os.mkfifo(door)
    by_agent(project, f"echo > {door}; sleep 600")
    with project.started("execute-phase", "1", "--approve", project.approval()) as process:
        door.read_text()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def failed_by_hand(project: Project) -> None:
    project.plan([task("T1-01", files=FILES, check="false", fields="- **Builder:** human\n")])
    assert project.execute().code == 5
    by_hand(project, "README.md", "new.txt")
    assert project.json("decide", "T1-01.work", "done").code == 0
    assert project.resume("--max-attempts", "1").code == 1


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


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_new_run_is_refused_while_the_files_hold_what_a_person_built(
    project: Project, flags: tuple[str, ...]
) -> None:
    failed_by_hand(project)
    refused = leaves_all(project, *flags)
    assert refused.error["details"]["paths"] == ["README.md", "new.txt"]
    assert refused.error["details"]["evidence"] == ["T1-01: README.md, new.txt (a person built it)"]
    assert "git stash push -- README.md" in refused.error["hint"]


def test_a_new_run_restores_nothing_if_a_person_fixed_one_file_of_a_failed_agent(project: Project) -> None:
    failed_by_agent(project)
    by_hand(project, "README.md")
    refused = leaves_all(project)
    assert refused.error["details"]["evidence"] == ["T1-01: README.md (changed since its last attempt)"]


def test_a_new_run_restores_nothing_if_a_person_went_on_after_ctrl_c(project: Project) -> None:
    interrupted_agent(project)
    by_hand(project, "README.md", "new.txt")
    leaves_all(project)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_new_run_restores_nothing_if_the_check_of_a_person_s_work_was_stopped(project: Project, number: int) -> None:
    door = project.folder.parent / "door"
    os.mkfifo(door)
    check = f"echo > {door}; sleep 600"
    project.configure("checks: here\n")
    project.plan([task("T1-01", files=FILES, check=check, fields="- **Builder:** human\n")])
    assert project.execute().code == 5
    by_hand(project, "README.md", "new.txt")
    assert project.json("decide", "T1-01.work", "done").code == 0
    with project.started("resume", "1") as process:
        door.read_text()
        process.send_signal(number)
        process.communicate(timeout=60)
    leaves_all(project)


def test_a_new_run_restores_what_an_agent_left_when_its_attempt_failed(project: Project) -> None:
    failed_by_agent(project)
    (project.folder.parent / "agent").write_text("true\n")
    answer = new_run(project)
    assert answer.code == 1, answer
    assert (project.read("README.md"), project.exists("new.txt")) == (BEFORE, False)
    assert any("reverted: README.md, new.txt" in words for words in answer.object["warnings"])


def test_a_file_that_a_person_restored_by_hand_holds_no_work(project: Project) -> None:
    failed_by_agent(project)
    project.repo.write("README.md", BEFORE)
    (project.folder / "new.txt").unlink()
    assert new_run(project).code == 1


@pytest.mark.parametrize("other", ["committed", "restored", "left"])
def test_a_new_run_is_not_refused_for_a_change_that_it_does_not_touch(project: Project, other: str) -> None:
    """Nothing would be restored, and the new plan does not declare the file."""
    failed_by_agent(project)
    if other == "committed":
        project.repo.commit("by hand", "README.md", "new.txt")
    elif other == "restored":
        (project.folder / "new.txt").unlink()
    by_hand(project, "README.md")
    project.plan([making("T1-05", "five.txt")])
    if other == "left":
        leaves_all(project)
        return
    assert project.execute().code == 0
    assert project.read("README.md") == MINE


def test_a_new_run_starts_from_committed_work(project: Project) -> None:
    failed_by_hand(project)
    leaves_all(project)
    project.repo.commit("by hand", "README.md", "new.txt")
    assert new_run(project).error["code"] == "run.waiting"
    assert (project.read("README.md"), project.read("new.txt")) == (MINE, MINE)


@pytest.mark.parametrize("begin", [failed_by_hand, failed_by_agent])
def test_every_offered_choice_can_be_taken(project: Project, begin: object) -> None:
    """R-ASK-1: what a rollback would refuse is not offered."""
    assert callable(begin)
    begin(project)
    if begin is failed_by_agent:
        by_hand(project, "new.txt")
    refused = leaves_all(project)
    offered = [row["id"] for row in refused.error["details"]["choices"]]
    assert offered == (["amend", "move"] if begin is failed_by_agent else ["amend", "commit", "roll-back"])
    assert choices.refused(project, refused) == {}


def test_after_a_rollback_the_new_run_starts_and_a_snapshot_has_the_work(project: Project) -> None:
    failed_by_hand(project)
    rows = leaves_all(project).error["details"]["choices"]
    (command,) = [row["command"] for row in rows if row["id"] == "roll-back"]
    rolled_back = project.json(*command.split()[1:], "--yes")
    assert new_run(project).error["code"] == "run.waiting"
    assert (project.read("README.md"), project.exists("new.txt")) == (BEFORE, False)
    for path in ("README.md", "new.txt"):
        assert project.repo.git("show", f"{rolled_back.data['kept']}:worktree/{path}") == MINE.strip()


def test_a_rollback_that_also_undoes_finished_tasks_says_so(project: Project) -> None:
    """R-ASK-1."""
    by_person = task("T1-01", files=FILES, check="false", fields="- **Builder:** human\n")
    project.plan([by_person, making("T1-02", "two.txt")])
    assert project.execute().code == 5
    by_hand(project, "README.md", "new.txt")
    assert project.json("decide", "T1-01.work", "done").code == 0
    assert project.resume("--max-attempts", "1").code == 1
    (back,) = [row for row in leaves_all(project).error["details"]["choices"] if row["id"] == "roll-back"]
    assert "as before T1-02 too, which must be done again" in back["consequence"]
    assert project.json(*back["command"].split()[1:], "--yes").data["tasks"] == ["T1-01", "T1-02"]


def shown(project: Project, words: str) -> list[str]:
    """Return what the commands print that a message lists after `kept: `."""
    commands = words.partition("kept: ")[2].removesuffix(")").split("; ")
    return [subprocess.check_output(["sh", "-ec", each], cwd=project.folder, text=True) for each in commands]


def warning(answer: Answer, part: str) -> str:
    (words,) = [words for words in answer.object["warnings"] if part in words]
    return str(words)


@pytest.mark.parametrize("way", ["resume", "new run"])
def test_the_printed_commands_show_every_file_of_a_killed_attempt(project: Project, way: str) -> None:
    """R-GIT-2: a file that the attempt deleted has nothing to show, and a name can have spaces."""
    door = project.folder.parent / "door"
    os.mkfifo(door)
    script = project.folder.parent / "agent"
    first = f"rm -f README.md; echo > 'my file'; echo > z.txt; test -p {door} || exit 0"
    script.write_text(f"{first}; rm {door}.once && echo > {door} && sleep 600; exit 0\n")
    (project.folder.parent / "door.once").touch()
    project.configure(f"builder: agent\nbindings:\n  agent: {{adapter: command, argv: [sh, '{script}']}}\n")
    project.plan([task("T1-01", files="delete `README.md`, create `my file`, create `z.txt`", check="true")])
    with project.started("execute-phase", "1", "--approve", project.approval()) as process:
        door.read_text()
        process.kill()
        process.communicate(timeout=60)
    by_hand(project, "my file", "z.txt")
    answer = project.resume() if way == "resume" else new_run(project)
    assert answer.code == 0, answer
    assert shown(project, warning(answer, "kept: git show ")) == [MINE, MINE]


def test_what_a_person_fixed_is_named_before_an_agent_continues_from_it(project: Project) -> None:
    """R-GIT-2: the agent may replace it."""
    failed_by_agent(project)
    by_hand(project, "README.md")
    answer = project.resume("--retry-failed")
    assert project.read("README.md") == BUILT
    words = warning(answer, "T1-01 continues from files that changed since attempt 1: README.md (kept: ")
    assert shown(project, words) == [MINE]


@pytest.mark.parametrize("work", ["committed", "unchanged"])
def test_what_is_committed_or_unchanged_is_not_named(project: Project, work: str) -> None:
    failed_by_agent(project)
    if work == "committed":
        by_hand(project, "README.md")
        project.repo.commit("by hand", "README.md")
    assert "continues from files" not in project.resume("--retry-failed").out


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


@pytest.mark.parametrize("way", ["clone", "steps"])
def test_what_a_person_built_is_not_restored_for_another_workspace_or_builder(project: Project, way: str) -> None:
    """R-GIT-1: once it is committed, the task starts from it."""
    failed_by_hand(project)
    flags = ("--retry-failed", "--max-attempts", "1", *(("--workspace", "clone") if way == "clone" else ()))
    if way == "steps":
        steps = [write("new.txt", BUILT)]
        amended(project, task("T1-01", files="modify `README.md`, change `new.txt`", check="false", steps=steps))
    refused = project.resume(*flags)
    assert (refused.code, refused.error["code"]) == (4, "task.changed-since"), refused
    assert refused.error["details"]["paths"] == ["README.md", "new.txt"]
    assert (project.read("README.md"), project.read("new.txt")) == (MINE, MINE)
    project.repo.commit("by hand", "README.md", "new.txt")
    answer = project.resume(*flags)
    assert answer.error["code"] == ("run.waiting" if way == "clone" else "run.failed"), answer
    assert project.read("README.md") == MINE


def test_what_a_person_built_is_named_before_an_agent_continues_from_it(project: Project) -> None:
    """R-GIT-2."""
    script = project.folder.parent / "agent"
    script.write_text("echo built > README.md\n")
    project.configure(f"bindings:\n  agent: {{adapter: command, argv: [sh, '{script}']}}\n")
    failed_by_hand(project)
    amended(project, task("T1-01", files=FILES, check="false", fields="- **Builder:** agent\n"))
    answer = project.resume("--retry-failed", "--max-attempts", "1")
    assert (project.read("README.md"), project.read("new.txt")) == (BUILT, MINE)
    words = warning(answer, "T1-01 continues from files that a person built in attempt 2: README.md, new.txt (kept: ")
    assert shown(project, words) == [MINE, MINE]


def continued_by_agent(project: Project, end: str = "") -> None:
    """Let a person's failed task go on with an agent that changes only new.txt, and `end` as it says."""
    script = project.folder.parent / "agent"
    script.write_text(f"echo built > new.txt; {end}\n")
    project.configure(f"bindings:\n  agent: {{adapter: command, argv: [sh, '{script}']}}\n")
    failed_by_hand(project)
    amended(project, task("T1-01", files=FILES, check="false", fields="- **Builder:** agent\n"))
    project.resume("--retry-failed", "--max-attempts", "1")
    assert (project.read("README.md"), project.read("new.txt")) == (MINE, BUILT)


def test_a_new_run_is_refused_while_an_agent_continued_from_what_a_person_built(project: Project) -> None:
    """R-GIT-1."""
    continued_by_agent(project)
    refused = leaves_all(project)
    assert refused.error["details"]["evidence"] == ["T1-01: README.md (a person built it)"]
    assert choices.refused(project, refused) == {}


@pytest.mark.parametrize(("end", "flags"), [("", ("--workspace", "clone")), ("kill -9 $$", ())])
def test_what_a_person_built_is_not_restored_after_an_agent_continued_from_it(
    project: Project, end: str, flags: tuple[str, ...]
) -> None:
    """R-GIT-1: neither for another workspace nor after a crash of the agent; once it is committed, it stays."""
    continued_by_agent(project, end)
    refused = project.resume("--retry-failed", "--max-attempts", "1", *flags)
    assert (refused.code, refused.error["code"]) == (4, "task.changed-since"), refused
    assert "built these files in attempt 2: README.md" in refused.error["message"]
    assert (project.read("README.md"), project.read("new.txt")) == (MINE, BUILT)
    project.repo.commit("by hand", "README.md")
    assert project.resume("--max-attempts", "1", *flags).error["code"] == "run.failed"
    assert project.read("README.md") == MINE
