"""The files of an old iDumb are imported once, with a report, and shown as not proven (R-LOG-9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from idumb.app.attempt import adoption
from tests.support import ended_runs
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, making, task

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
HASH = "0123456789012345678901234567890123456789"

STATE: dict[str, Any] = {
    "version": "0.2.0",
    "initialized": "2026-02-04T10:00:00+07:00",
    "framework": "bmad",
    "phase": "executed",
    "lastValidation": None,
    "validationCount": 3,
    "anchors": [{"id": "a1", "type": "decision", "content": "Use plain files", "priority": "critical"}],
    "history": [{"timestamp": "2026-02-04T11:00:00Z", "action": "execute-phase:1", "agent": "x", "result": "pass"}],
    "session": "ses_1",
}
PROGRESS = {"completed": ["T1-01"], "failed": ["T1-02"], "blocked": ["T1-03"], "started_at": "x", "git_hash": HASH}
CHECKPOINT = {
    "id": "checkpoint-T1-01",
    "timestamp": "2026-02-04T10:30:00Z",
    "task_id": "T1-01",
    "status": "completed",
    "git_hash": HASH,
    "files_modified": ["src/a.ts"],
    "validation_result": "pass",
    "retry_count": 0,
    "error_message": None,
    "duration_seconds": 45,
}
MARKDOWN = "---\nid: checkpoint-T1-02\ntask_id: T1-02\nstatus: failed\ngit_hash: no-git\n---\n\n# It failed\n"


def old_files() -> dict[str, str | bytes]:
    execution = ".idumb/brain/execution/1"
    return {
        "README.md": "# A project\n",
        ".idumb/brain/state.json": json.dumps(STATE),
        f"{execution}/progress.json": json.dumps(PROGRESS, indent=2),
        f"{execution}/checkpoint-T1-01.json": json.dumps(CHECKPOINT),
        f"{execution}/checkpoint-T1-02.md": MARKDOWN,
        f"{execution}/checkpoint-T1-03.json": '{"id": "checkpoint-T1-03", ',
        ".idumb/brain/context/notes.bin": b"\x00\xff\xfe",
    }


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    sandbox.write_all(old_files())
    sandbox.commit("before")
    return Project(sandbox, sandbox.root)


def imported(project: Project) -> list[dict[str, Any]]:
    return [e["payload"] for e in project.json("log", "--kind", "legacy.imported").data["events"]]


def test_init_migrates_state_progress_and_checkpoints_of_an_old_idumb(project: Project) -> None:
    """R-LOG-9, R-LOG-4: session, phase, tasks with their commits, anchors and history; once."""
    answer = project.json("init")
    migrated = answer.data["taken_over"]
    jsonschema.validate(answer.data, json.loads((SCHEMAS / "init.json").read_text(encoding="utf-8")))
    assert (migrated["session"], migrated["phase"]) == ("ses_1", "executed")
    assert (migrated["anchors"], migrated["history"]) == (STATE["anchors"], STATE["history"])
    phase = migrated["phases"][0]
    assert (phase["phase"], phase["completed"], phase["failed"]) == ("1", ["T1-01"], ["T1-02"])
    assert phase["tasks"]["T1-01"]["git_hash"] == HASH
    assert project.json("init").data["taken_over"] is None
    assert [migrated] == imported(project)


def test_unreadable_files_are_listed_and_kept_like_everything_else(project: Project) -> None:
    """R-LOG-9: the originals are kept byte for byte in the git folder."""
    before = project.repo.ledger()
    migrated = project.json("init").data["taken_over"]
    assert {row["path"].rpartition("/")[2] for row in migrated["not_understood"]} == {
        "checkpoint-T1-03.json",
        "notes.bin",
    }
    for file in migrated["files"]:
        assert Path(file["kept"]).read_bytes() == (project.folder / file["path"]).read_bytes()
        assert Path(file["kept"]).is_relative_to(project.repo.common_dir / "idumb/legacy")
    assert {f["path"] for f in migrated["files"]} == {name for name in old_files() if name != "README.md"}
    after = project.repo.ledger()
    assert [p for p in before.changed_paths(after) if p in before.entries and before.entries[p].type == "file"] == []


def test_a_project_without_old_files_has_nothing_to_migrate(prepared: Prepared) -> None:
    assert prepared.get(ended_runs.done).json("init").data["taken_over"] is None


def test_status_mentions_it_and_counts_nothing_as_completed(project: Project) -> None:
    """R-LOG-9: the task of the old checkpoint still has to run; `state.json` keeps its old lines."""
    assert project.quick("init").code == 0
    project.plan([making("T1-01", "a.txt")])
    row = project.json("status").data["phases"][0]
    jsonschema.validate(project.json("status").data, json.loads((SCHEMAS / "status.json").read_text(encoding="utf-8")))
    assert (row["state"], row["elsewhere"]["by"], row["tasks"]) == (
        "recorded",
        "an old iDumb",
        {"total": 1, "ready": 1},
    )
    text = project.quick("status").out
    assert "done elsewhere according to an old iDumb, not recorded here: 1 completed, 1 failed" in text
    assert project.execute().data["counts"]["completed"] == 1
    assert project.json("status").data["phases"][0]["state"] == "verified"
    assert project.json("init").data["taken_over"] is None  # what idumb wrote since
    state = json.loads(project.read(".idumb/brain/state.json"))
    assert (state["anchors"], state["history"][0]) == (STATE["anchors"], STATE["history"][0])


def test_a_damaged_state_file_does_not_stop_the_migration(tmp_path: Path) -> None:
    conflict = b"<<<<<<< a\n{}\n=======\n{}\n>>>>>>> b\n"
    damages = (b"", b"[]", b"{", b"\xff\xfe", conflict, b"[" * 100_000, b'{"history": 1e999}')
    for number, damage in enumerate(damages):
        sandbox = GitSandbox.create(tmp_path / str(number))
        sandbox.write(".idumb/brain/state.json", damage)
        answer = Project(sandbox, sandbox.root).json("init")
        assert answer.code == 0
        assert answer.data["taken_over"]["files"][0]["size"] == len(damage)


def test_a_clone_learns_from_its_commits_what_was_done_elsewhere(sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-LOG-9: history of another clone that was not rolled back."""
    project = projects.create(sandbox)
    project.configure("git: {reports: none}\n")
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    assert project.execute("--no-verify").code == 0
    assert project.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    sandbox.git("clone", "--quiet", ".", str(tmp_path / "clone"))
    clone = Project(GitSandbox(tmp_path / "clone"), tmp_path / "clone")
    row = clone.json("status").data["phases"][0]
    assert (row["state"], row["elsewhere"]["by"], row["elsewhere"]["counts"]) == (
        "recorded",
        "commits",
        {"total": 1, "completed": 1},
    )
    assert project.quick("undo", "--yes").code == 0
    clone.repo.git("pull", "--quiet")
    assert clone.json("status").data["phases"][0]["elsewhere"]["counts"]["completed"] == 2


AGENT = 'cat >> "$HOME/asked"; printf "\\0" >> "$HOME/asked"; echo made > a.txt'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


STRICT = (
    "mode: strict\nrequirements: {REQ-1: files}\nnon_goals: [{id: N-1, text: nothing else}]\n"
    "success_criteria: [{text: all is there, check: 'true'}]\n"
)
JUDGE = "  judge: {adapter: command, argv: ['true']}\nvalidator: judge\n"


def calls(home: Path) -> list[str]:
    """The prompts of the builder, call by call."""
    prompts = home / "asked"
    return prompts.read_text(encoding="utf-8").split("\0")[:-1] if prompts.exists() else []


def taken_over(
    project: Project, home: Path, *tasks: str, content: str = "made\n", head: str = "", settings: str = ""
) -> Project:
    """A phase whose T1-01 an old iDumb completed, with its file committed."""
    project.repo.write("a.txt", content)
    project.repo.write("kept.txt", "kept\n")
    project.repo.commit("work of the old one")
    assert project.quick("init").code == 0
    argv = json.dumps(["sh", "-c", AGENT])
    project.configure(f"builder: coder\nbindings:\n  coder: {{adapter: command, argv: {argv}}}\n{settings}")
    project.plan(tasks or [task("T1-01", files="create `a.txt`", check="grep -q made a.txt")], head=head)
    return project


def begun(project: Project) -> list[tuple[str, bool | None]]:
    """The tasks of all attempts, and whether each only judged what was there."""
    return [(event["task"], event["payload"].get("adopted")) for event in project.events("--kind", "attempt.started")]


def test_completed_work_is_proven_once_by_its_checks_and_nothing_is_built(project: Project, home: Path) -> None:
    """R-LOG-9, R-RUN-8: no builder, no commit of its own, no failed attempt; a dry run does the same."""
    taken_over(project, home)
    codes = [one["code"] for one in project.json("check-plan", "1").data["findings"]]
    assert "path.exists" not in codes
    before = project.repo.head()
    assert (project.execute("--dry-run").code, calls(home), begun(project)) == (0, [], [])
    answer = project.execute()
    assert (answer.code, calls(home)) == (0, [])
    row = answer.data["tasks"][0]
    assert (row["status"], row["attempts"]) == ("completed", 0)
    assert project.trailers("Idumb-Task") == []
    assert project.repo.git("diff", "--name-only", before, "HEAD", "--", "a.txt") == ""
    (proof,) = (e["payload"] for e in project.events("--kind", "evidence.recorded") if e["task"] == "T1-01")
    assert (proof["subject"], proof["result"], proof["command"]) == ("AC-1", "passed", "grep -q made a.txt")
    shown = project.quick("show", "T1-01").out
    assert "an old iDumb says that it is done, and its checks hold" in shown
    assert project.json("metrics", "1").data["calls"] == []
    project.plan([task("T1-01", files="create `a.txt`", check="grep -q made a.txt"), making("T1-02", "b.txt")])
    assert project.execute("--no-verify").code == 0
    assert begun(project) == [("T1-01", True), ("T1-02", None)]


def test_completed_work_that_fails_its_checks_waits_while_other_tasks_continue(project: Project, home: Path) -> None:
    """R-LOG-9: the user can accept it or build on the present files; no attempt of the builder is used.

    Checks judge the commit, and the question says what it lacks; they prove no criterion for a person.
    """
    project.repo.write_all({"d.txt": "d\n", "e.txt": "e\n"})
    done = {**PROGRESS, "completed": ["T1-01", "T1-04", "T1-05"]}
    project.repo.write(".idumb/brain/execution/1/progress.json", json.dumps(done))
    both = "  - [ ] it is there — check: `test -s e.txt`\n  - [ ] it reads well — human\n"
    taken_over(
        project, home,
        task("T1-01", files="create `a.txt`, create `kept.txt`", check="grep -q made a.txt"),
        making("T1-02", "b.txt"),
        making("T1-03", "c.txt", after="T1-01"),
        task("T1-04", files="create `d.txt`", check="test -s mine.txt"),
        task("T1-05", files="create `e.txt`", criteria=both),
        content="no\n",
    )  # fmt: skip
    project.repo.write("mine.txt", "x\n")
    answer = project.execute()
    assert (answer.code, calls(home)) == (5, [])
    waiting = dict.fromkeys(("T1-01", "T1-04", "T1-05"), "waiting")
    assert project.statuses() == {**waiting, "T1-02": "completed", "T1-03": "pending"}
    failed, lacking, human = sorted(project.json("decisions").data["decisions"], key=lambda one: str(one["id"]))
    jsonschema.validate(failed, json.loads((SCHEMAS / "decision.json").read_text(encoding="utf-8")))
    assert [choice["id"] for choice in failed["choices"]] == ["accept", "build"]
    assert "AC-1 failed: grep -q made a.txt" in failed["evidence"]
    assert lacking["evidence"][0].endswith("AC-1 needs your uncommitted mine.txt. Commit it")
    assert human["id"] == "T1-05.taken-over.1"
    assert project.quick("accept", "T1-05", "--why", "I read it").code == 0
    assert project.quick("decide", lacking["id"], "accept").code == 0
    assert project.quick("decide", failed["id"], "build").code == 0
    ended = project.resume("--no-verify")
    assert ended.code == 0, ended
    completed = dict.fromkeys(("T1-01", "T1-02", "T1-03"), "completed")
    assert project.statuses() == {**completed, "T1-04": "accepted", "T1-05": "accepted"}
    assert ended.data["tasks"][0]["attempts"] == 1
    (prompt,) = calls(home)
    assert "grep -q made a.txt" in prompt


def test_completed_work_without_a_check_is_offered_for_acceptance(project: Project, home: Path) -> None:
    """R-LOG-9: an accepted task stays done, also in a later run."""
    unproven = task("T1-01", files="create `a.txt`", criteria="  - [ ] it reads well\n")
    taken_over(project, home, unproven, making("T1-02", "b.txt", after="T1-01"), settings=JUDGE)
    assert project.execute().code == 5
    (decision,) = project.json("decisions").data["decisions"]
    before = project.repo.head()
    assert project.json("decide", decision["id"], "accept").code == 0
    assert project.resume("--no-verify").code in (0, 1)
    assert project.statuses() == {"T1-01": "accepted", "T1-02": "completed"}
    assert calls(home) == []
    assert project.repo.git("diff", "--name-only", before, "HEAD", "--", "a.txt") == ""
    project.plan([unproven, making("T1-02", "b.txt", after="T1-01"), making("T1-03", "c.txt")])
    project.execute("--no-verify")
    assert project.statuses() == {"T1-01": "accepted", "T1-02": "completed", "T1-03": "completed"}
    assert calls(home) == []


def test_tasks_whose_file_is_missing_or_that_a_person_does_run_normally(project: Project, home: Path) -> None:
    """R-LOG-9."""
    done = {**PROGRESS, "completed": ["T1-01", "T1-02"], "failed": []}
    project.repo.write(".idumb/brain/execution/1/progress.json", json.dumps(done))
    missing = task("T1-01", files="create `b/a.txt`", check="test -s a.txt")
    taken_over(project, home, missing, task("T1-02", fields="- **Kind:** human-action\n", check="test -s a.txt"))
    project.execute("--max-attempts", "1", "--no-verify")
    assert begun(project) == [("T1-01", None), ("T1-02", None)]


def test_tasks_of_a_strict_plan_run_normally(project: Project, home: Path) -> None:
    """R-LOG-9."""
    fields = "- **Requirements:** REQ-1\n- **Change:** extending\n"
    proven = task("T1-01", files="create `a.txt`", check="grep -q made a.txt", fields=fields)
    taken_over(project, home, proven, head=STRICT)
    assert project.quick("approve", "1", *project.answers(), "--hash", project.approval()).code == 0
    project.execute("--max-attempts", "1", "--no-verify")
    assert begun(project) == [("T1-01", None)]


def test_a_rollback_removes_the_proof_and_keeps_the_work(project: Project, home: Path) -> None:
    """R-GIT-3: idumb does not remove what it did not create; the proof is repeated."""
    taken_over(project, home)
    assert project.execute("--no-verify").code == 0
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.read("a.txt") == "made\n"
    assert project.resume("--no-verify").code == 0
    assert (project.statuses(), calls(home)) == ({"T1-01": "completed"}, [])


def test_a_kill_before_the_question_loses_neither_the_question_nor_an_attempt(
    project: Project, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-LOG-6, R-LOG-9."""

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    taken_over(project, home, content="no\n")
    with monkeypatch.context() as ended:
        ended.setattr(adoption, "question_events", killed)
        with pytest.raises(Killed):
            project.quick("execute-phase", "1", "--approve", project.approval())
    assert project.json("decisions").data["decisions"] == []
    assert (project.resume().code, calls(home)) == (5, [])
    assert [decision["id"] for decision in project.json("decisions").data["decisions"]] == ["T1-01.taken-over.1"]


def test_start_reports_that_the_task_is_already_completed(project: Project, home: Path) -> None:
    """R-LOG-9: `start` proves it as a run does, without opening an attempt."""
    wrong = task("T1-02", files="create `kept.txt`", check="false")
    taken_over(project, home, task("T1-01", files="create `a.txt`", check="grep -q made a.txt"), wrong)
    project.configure("builder: editor\n")
    execution = ".idumb/brain/execution/1/progress.json"
    assert json.loads(project.read(execution))["completed"] == ["T1-01"]
    answer = project.json("start", "T1-01", "--by", "me", "--approve", project.approval())
    assert (answer.code, answer.error["code"]) == (4, "task.already-done")
    assert project.statuses()["T1-01"] == "completed"
    assert project.json("start", "T1-02", "--by", "me").data["task"]["id"] == "T1-02"
