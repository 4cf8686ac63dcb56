"""The main job on the command line: init, check a plan, run a phase to its end, read status and log."""

from __future__ import annotations

import json

from tests.support import doctor as doctors
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making, shell, task


def test_init_writes_only_its_own_files_and_never_one_that_exists(sandbox: GitSandbox) -> None:
    """R-RUN-1: also beside the files of another tool; git's own files are left alone."""
    sandbox.write_all({"README.md": "x\n", ".planning/ROADMAP.md": "theirs\n", ".planning/STATE.md": "theirs\n"})
    sandbox.commit_with({".gitignore": "*.log\n", ".idumb/config.yaml": "run: {max_attempts: 2}\n"}, "first")
    before = sandbox.ledger()
    exclude = sandbox.git_dir / "info" / "exclude"
    assert not exclude.exists()
    project = Project(sandbox, sandbox.root)
    answer = project.quick("init", "--json")
    assert answer.code == 0
    assert {".planning/ROADMAP.md", ".idumb/config.yaml"} <= set(answer.data["kept"])
    after = sandbox.ledger()
    new = set(before.changed_paths(after))
    assert set(answer.data["created"]) <= new
    assert all(path not in before.entries or before.entries[path].type == "folder" for path in new)
    assert (after.index, after.refs, after.head, after.config) == (
        before.index,
        before.refs,
        before.head,
        before.config,
    )
    assert not exclude.exists()
    again = project.quick("init", "--json")
    assert again.data["created"] == []
    assert sandbox.ledger() == after
    assert project.quick("init").code == 0


def test_the_graph_is_drawn_in_two_formats(project: Project) -> None:
    """R-PLAN-6: topological order, waves."""
    project.plan([making("T1-02", "b", after="T1-01"), making("T1-01", "a"), making("T1-03", "c", after="T1-01")])
    data = project.json("graph", "1").data
    assert data["order"] == ["T1-01", "T1-02", "T1-03"]
    assert data["waves"] == [["T1-01"], ["T1-02", "T1-03"]]
    assert ["T1-01", "T1-02"] in data["edges"]
    assert "T1-02" in project.quick("graph", "1").out
    assert "T1-01" in project.quick("graph", "1", "--format", "mermaid").out


def test_roadmap_status_and_next_follow_the_phases(project: Project) -> None:
    """R-PLAN-11, R-LOG-4: what ROADMAP.md lists, with the status from the log."""
    project.repo.write(".planning/ROADMAP.md", "# Roadmap\n\n## Phase 1: First\n\n## Phase 2: Second\n")
    project.plan([making("T1-01", "a.txt")], folder="01-first")
    rows = project.json("roadmap").data["phases"]
    assert [(row["phase"], row["state"]) for row in rows] == [("1", "ready"), ("2", "not planned")]
    assert project.json("next").data["next"]["command"] == "idumb execute-phase 1"
    assert project.execute().code == 0
    rows = project.json("status").data["phases"]
    assert [(row["phase"], row["state"]) for row in rows] == [("1", "verified"), ("2", "not planned")]
    assert "phase 2" in project.json("next").data["next"]["why"]
    for command in ("roadmap", "status", "next"):
        words = project.quick(command)
        assert words.code == 0
        assert words.out
    state = json.loads(project.read(".idumb/brain/state.json"))
    assert state
    project.repo.remove(".idumb/brain/state.json")
    assert project.json("status").data["phases"] == rows


def test_a_phase_runs_to_its_end_and_is_verified(project: Project) -> None:
    """R-RUN-2, R-RUN-3, R-RUN-6, R-GIT-1, R-GIT-2, R-OPS-2, R-ADAPT-5, R-PLAN-1: reports."""
    tail = "\n## Success criteria\n\n- [ ] Both are there — check: `test -s a.txt -a -s b.txt`\n"
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")], tail=tail)
    words = project.idumb("execute-phase", "1", "--approve", project.approval())
    assert words.code == 0, words
    assert "T1-02" in words.out + words.err
    assert project.subjects()[-3:] == ["Task T1-01", "Task T1-02", "Phase 1: reports of run 1"]
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.repo.status() == []
    assert project.quick("status").code == 0
    shown = project.json("show", "T1-02").data
    assert (shown["status"], shown["attempts"][0]["verdict"]) == ("completed", "PASS")
    assert shown["attempts"][0]["evidence"][0]["command"] == "test -s b.txt"
    snapshot = shown["attempts"][0]["snapshot"]
    assert "worktree/a.txt" in project.repo.tree(snapshot)
    assert "worktree/b.txt" not in project.repo.tree(snapshot)
    assert any(ref.startswith("refs/idumb/") and ref.endswith("T1-02/1/base") for ref in project.repo.kept())
    diff = project.json("show", "T1-02", "--diff").data
    assert diff["files"] == [{"path": "b.txt", "added": 1, "removed": 0}]
    assert "+made" in diff["diff"]
    assert "+made" in project.quick("show", "T1-02", "--diff").out
    assert "passed AC-1" in project.quick("show", "T1-02").out
    for report in (".planning/phases/1/1-SUMMARY.md", ".planning/phases/1/1-VERIFICATION.md"):
        assert "T1-02" in project.read(report) or "Both are there" in project.read(report)
    assert project.read(".idumb/brain/execution/1/checkpoint-T1-01.md").startswith("---\n")
    again = project.execute()
    assert (again.code, again.error["code"]) == (4, "phase.verified")
    assert "idumb rollback 1 --to start" in again.error["hint"]


def test_a_verified_phase_runs_again_only_with_force(project: Project) -> None:
    """R-RUN-1."""
    project.plan(
        [task("T1-01", files="modify `README.md`", check="grep -q x README.md", steps=[shell("echo x >> README.md")])]
    )
    assert run(project).code == 0
    forced = run(project, "--force", "--no-verify")
    assert forced.code == 0, forced.out
    assert project.read("README.md").count("x\n") == 2
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-01"]
    assert len(set(project.trailers("Idumb-Run"))) == 2


def test_no_verify_stops_after_the_tasks_and_verify_work_continues(project: Project) -> None:
    """R-RUN-13: the final state against the goals; a mismatch fails though every task passed."""
    tail = "\n## Success criteria\n\n- [ ] Nothing else is there — check: `test ! -e b.txt`\n"
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt")], tail=tail)
    answer = run(project, "--no-verify")
    assert answer.code == 0
    assert answer.data["verification"] is None
    assert answer.data["next"][0] == "idumb verify-work 1"
    judged = project.quick("verify-work", "1", "--json")
    assert judged.code == 1
    assert judged.data["status"] == "failed"
    assert project.quick("verify-work", "1").code == 1
    assert project.quick("status", "--json").data["phases"][0]["state"] != "verified"


def test_a_mismatch_at_the_end_fails_the_run(project: Project) -> None:
    """R-RUN-13: criteria, invariants and tests are judged again; each held after its own task."""
    tests = "- **Tests:**\n  - `test ! -e b.txt` — passes before and after: nothing else is there\n"
    invariants = "- **Invariants:** none\n"
    project.plan(
        [
            making("T1-01", "a.txt", fields=tests + invariants),
            making("T1-02", "b.txt", after="T1-01", fields=invariants),
        ],
        head='invariants: [{id: INV-1, text: no b, check: "test ! -s b.txt"}]\n',
        tail="\n## Success criteria\n\n- [ ] a.txt is alone — check: `! grep -q made b.txt`\n",
    )
    answer = run(project)
    assert (answer.code, answer.error["code"]) == (1, "verification.failed")
    assert {row["status"] for row in answer.data["tasks"]} == {"completed"}
    failed = {e["subject"] for e in answer.data["verification"]["evidence"] if e["result"] == "failed"}
    assert failed == {"AC-1", "invariant INV-1", "T1-01 test 1"}


def test_events_are_printed_as_compact_lines_and_match_the_log(project: Project) -> None:
    """R-LOG-1, R-LOG-3."""
    project.plan([making("T1-01", "a.txt"), failing_task("T1-02", "b.txt")])
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--events", "--max-attempts", "1")
    assert answer.code == 1
    events = [json.loads(line) for line in answer.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert answer.out.isascii()
    assert project.events("1")[-1]["kind"] in {"run.failed", "operation.finished", "reports.committed"}
    in_log = {event["seq"]: event for event in project.events("--run", events[-1]["run"])}
    assert all(in_log[event["seq"]] == event for event in events if event["seq"] in in_log)
    step = next(event for event in events if event["kind"] == "step.finished")
    assert {"plan_hash", "index", "tool", "arguments", "response"} <= set(step["payload"])


def test_log_filters(prepared: Prepared) -> None:
    """R-LOG-1, R-OPS-1: by run, type, task and time."""
    project = prepared.get(doctors.create)
    every = project.events("1")
    assert project.events("1", "--task", "T1-02") == [e for e in every if e["task"] == "T1-02"]
    assert project.events("1", "--kind", "task.completed") == [e for e in every if e["kind"] == "task.completed"]
    assert project.events("--run", every[0]["run"]) == every
    middle = every[len(every) // 2]["at"]
    assert project.events("1", "--since", middle) == [e for e in every if e["at"] >= middle]
    assert project.quick("log", "1", "--limit", "2", "--json").data["events"] == every[-2:]
    assert "task.completed" in project.quick("log", "1").out
    followed = project.quick("log", "1", "--follow", "--kind", "task.completed")
    assert (followed.code, followed.out.count("task.completed")) == (0, 2)
    unknown = project.quick("log", "--kind", "no.such", "--json")
    assert unknown.code in {2, 3} or unknown.data["events"] == []
