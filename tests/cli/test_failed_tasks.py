"""Tasks that fail: attempts, feedback, blocked dependents, halting, `--retry-failed`, `accept` and `skip`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, failing_task, making, shell, task, write


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def bind(project: Project, *argv: str, more: str = "") -> None:
    project.configure(f"bindings:\n  agent: {{adapter: command, argv: {json.dumps(argv)}}}\n{more}")


def test_each_of_three_attempts_gets_the_feedback_of_the_previous_one(project: Project, tmp_path: Path) -> None:
    """R-RUN-5, R-RUN-4: the third attempt succeeds; attempts are counted and distinguished."""
    calls = tmp_path / "calls"
    agent = (
        "import os,pathlib,sys\n"
        "prompt = sys.stdin.read()\n"
        "calls = pathlib.Path(sys.argv[1])\n"
        "number = len(calls.read_text().split()) + 1 if calls.exists() else 1\n"
        "calls.open('a').write(os.environ['IDUMB_ATTEMPT'] + '\\n')\n"
        "file = os.environ.get('IDUMB_FEEDBACK_FILE')\n"
        "told = pathlib.Path(file).read_text() if file else ''\n"
        "assert bool(told) == (number > 1), 'no feedback'\n"
        "assert number == 1 or 'it says three' in told and 'it says three' in prompt\n"
        "pathlib.Path('n.txt').open('a').write(str(number) + '\\n')\n"
    )
    project.repo.write("tools/agent.py", agent)
    project.repo.commit("agent", "tools")
    bind(project, "python3", "tools/agent.py", str(calls))
    criteria = "  - [ ] it says three — check: `tail -n 1 n.txt | grep -qx 3 || { tail -n 1 n.txt; exit 1; }`\n"
    project.plan([task("T1-01", files="create `n.txt`", criteria=criteria, fields="- **Builder:** agent\n")])
    answer = project.execute()
    assert answer.code == 0, answer.out
    assert calls.read_text().split() == ["1", "2", "3"]
    assert project.read("n.txt") == "1\n2\n3\n"  # a retry after failed validation goes on from its own work
    attempts = project.json("show", "T1-01").data["attempts"]
    assert [row["outcome"] for row in attempts] == ["failed", "failed", "completed"]
    assert project.trailers("Idumb-Attempt") == ["3"]


def test_a_failed_task_blocks_its_dependents_and_the_others_continue(project: Project) -> None:
    """R-RUN-5, R-RUN-6, R-RUN-7: blocked with reason and way out, a structured failure."""
    project.plan([failing_task("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"), making("T1-03", "c.txt")])
    answer = project.execute()
    assert answer.code == 1
    assert answer.data["outcome"] == "partial"
    assert project.statuses() == {"T1-01": "failed", "T1-02": "blocked", "T1-03": "completed"}
    rows = {row["id"]: row for row in answer.data["tasks"]}
    assert rows["T1-01"]["attempts"] == 3
    assert rows["T1-02"]["blocked_by"] == ["T1-01"]
    failure = answer.data["failure"]
    assert {"status", "step_id", "tool", "error", "plan_hash", "audit_trail"} <= set(failure)
    assert failure["status"] == "failed"
    assert failure["step_id"].startswith("T1-01")
    assert "idumb resume 1 --retry-failed" in answer.data["next"]
    assert any(command.startswith("idumb accept T1-01 --why") for command in answer.data["next"])
    assert any(command.startswith("idumb skip T1-01 --why") for command in answer.data["next"])
    assert project.read("a.txt") == "x\n"  # kept for a person to see
    assert "T1-01" in project.idumb("next").out
    assert project.json("status").data["next"]["command"] == "idumb decisions"  # which has these ways, and more


def test_max_attempts_is_respected(project: Project) -> None:
    """R-RUN-5, R-OPS-4."""
    project.plan([failing_task("T1-01", "a.txt")])
    answer = project.execute("--max-attempts", "2")
    assert answer.data["tasks"][0]["attempts"] == 2
    assert answer.data["outcome"] == "failed"


@pytest.mark.parametrize(
    ("policy", "attempts", "status"), [("block", 1, "failed"), ("retry", 3, "failed"), ("ask", 1, "waiting")]
)
def test_the_severity_of_a_task_decides_what_happens_when_it_fails(
    project: Project, policy: str, attempts: int, status: str
) -> None:
    """R-PLAN-3: block, retry or ask; R-RUN-5: with `retry` it asks once its attempts are used up."""
    failing = task("T1-01", files="create `a.txt`", steps=[shell("false")], fields=f"- **On failure:** {policy}\n")
    project.plan([failing])
    answer = project.execute()
    (row,) = answer.data["tasks"]
    assert (row["attempts"], row["status"]) == (attempts, status)
    kinds = {"block": [], "retry": ["exhausted"], "ask": ["failure"]}
    assert [one["kind"] for one in project.json("decisions").data["decisions"]] == kinds[policy]


def test_three_consecutive_failures_halt_the_run_and_offer_a_rollback(project: Project) -> None:
    """R-RUN-5."""
    project.plan(
        [making("T1-01", "a.txt"), *(failing_task(f"T1-0{n}", f"{n}.txt") for n in (2, 3, 4)), making("T1-05", "e.txt")]
    )
    answer = project.execute("--max-attempts", "1")
    assert answer.code == 1
    assert answer.error["code"] == "run.halted"
    assert "idumb rollback 1 --to start" in answer.data["next"]
    assert project.statuses()["T1-05"] == "ready"
    assert not project.exists("e.txt")
    assert project.resume("--max-attempts", "1").code == 1
    assert project.statuses()["T1-05"] == "completed"


def test_retry_failed_runs_the_task_again_and_the_run_completes(project: Project, tmp_path: Path) -> None:
    """R-RUN-5, R-ADAPT-2: fix and `resume --retry-failed`."""
    door = tmp_path / "open"
    project.plan(
        [making("T1-01", "a.txt", fields=f"- **Verify:** `test -e {door}`\n"), making("T1-02", "b.txt", after="T1-01")]
    )
    assert project.execute("--max-attempts", "1").code == 1
    unchanged = project.resume()
    assert unchanged.code == 1
    assert project.statuses()["T1-01"] == "failed"
    door.touch()
    assert project.resume("--retry-failed").code == 0
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]


def test_accept_commits_the_remaining_work_with_its_reason_and_unblocks(project: Project) -> None:
    """R-RUN-5, R-RUN-14: accepted by a person, with a reason, in the record."""
    project.plan([failing_task("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    assert project.execute("--max-attempts", "1").code == 1
    answer = project.json("accept", "t1-01", "--why", "good enough for now")
    assert answer.code == 0
    assert answer.data["commit"] == project.repo.head()
    assert "Accepted: good enough for now" in project.repo.git("log", "-1", "--format=%B")
    assert project.repo.tree()["a.txt"]
    assert project.statuses() == {"T1-01": "accepted", "T1-02": "ready"}
    assert project.resume().code == 0
    assert "good enough for now" in project.read(".planning/phases/1/1-SUMMARY.md")
    assert project.json("accept", "T1-01", "--why", "again").error["code"] == "task.already-done"


def test_accept_keeps_partly_staged_changes_and_names_the_command_that_stages_them(project: Project) -> None:
    """R-GIT-6: the commit has the file as it is; no byte that only the index had is lost."""
    project.plan([failing_task("T1-01", "a.txt")])
    assert project.execute("--max-attempts", "1").code == 1
    project.repo.write("a.txt", "staged\n")
    project.repo.git("add", "a.txt")
    project.repo.write("a.txt", "third\n")
    answer = project.json("accept", "T1-01", "--why", "good")
    assert answer.code == 0, answer.out
    assert project.repo.git("show", "HEAD:a.txt") == "third"
    (warning,) = [words for words in answer.object["warnings"] if "was staged with other content" in words]
    project.repo.git("gc", "--quiet", "--prune=now")
    command = warning.partition("To stage it again: ")[2]
    subprocess.run(["sh", "-c", command], cwd=project.folder, check=True)
    assert project.repo.git("show", ":a.txt") == "staged"


def test_a_halted_run_names_the_task_that_halted_it(project: Project) -> None:
    """R-RUN-6, R-RUN-7: another task had failed before."""
    strays = shell("echo a > b.txt; echo c > c.txt")
    project.plan([failing_task("T1-01", "a.txt"), making("T1-02", "b.txt", steps=[strays])])
    flags = ("--on-deviation", "halt", "--max-attempts", "1")
    answer = project.execute(*flags)
    assert answer.error["code"] == "run.halted"
    assert str(answer.data["failure"]["step_id"]).startswith("T1-02")
    assert answer.data["next"][0] == answer.error["hint"] == "idumb debug 1 --task T1-02"
    words = project.idumb("resume", "1", "--retry-failed", *flags).out
    assert "Critical task T1-02 failed" in words


@pytest.mark.parametrize("workspace", ["here", "clone"])
@pytest.mark.parametrize("path", [".idumb/config.yaml", ".planning/notes.md", ".env", "keep.txt"])
def test_a_task_s_write_to_a_protected_path_is_not_committed_by_accept(
    project: Project, path: str, workspace: str
) -> None:
    """R-LOCK-5, R-RUN-5: a person accepts the task; the file stays as it is and is named."""
    project.configure(f"run: {{workspace: {workspace}}}\n")
    steps = [write("a.txt", "made\n"), shell(f"echo '# x' >> {path}")]
    project.plan([making("T1-01", "a.txt", steps=steps)], head="scope: {protected: [keep.txt]}\n")
    assert project.execute("--on-deviation", "halt", "--max-attempts", "1").code == 1
    before = project.read(path) if project.exists(path) else None
    answer = project.json("accept", "T1-01", "--why", "good enough")
    assert answer.code == 0, answer
    assert project.repo.git("show", "--format=", "--name-only").split() == ["a.txt"]
    assert (project.read(path) if project.exists(path) else None) == before
    assert [line for line in answer.object["warnings"] if path in line] or workspace == "clone"


def test_skip_omits_a_task_and_its_dependents_stay_blocked(project: Project) -> None:
    """R-RUN-5."""
    project.plan([failing_task("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"), making("T1-03", "c.txt")])
    assert project.execute("--max-attempts", "1").code == 1
    answer = project.idumb("skip", "T1-01", "--why", "not needed")
    assert answer.code == 0
    assert project.statuses() == {"T1-01": "skipped", "T1-02": "blocked", "T1-03": "completed"}
    assert project.resume().code == 1
    assert project.read("a.txt") == "x\n"
