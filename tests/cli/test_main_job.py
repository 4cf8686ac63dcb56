"""The main job on the command line: every command on real projects, as text and JSON."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, delete, making, shell, task, write


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def bad(id: str, path: str, after: str = "none", **more: str) -> str:
    """A task whose check never holds."""
    return task(id, files=f"create `{path}`", check="false", after=after, steps=[write(path, "x\n")], **more)


def bind(project: Project, *argv: str, more: str = "") -> None:
    project.configure(f"bindings:\n  agent: {{adapter: command, argv: {json.dumps(argv)}}}\n{more}")


# -- init ---------------------------------------------------------------------------------------------------------


def test_init_writes_only_its_own_files_and_never_one_that_exists(sandbox: GitSandbox) -> None:
    """R-RUN-1: also beside the files of another tool; git's own files are left alone."""
    sandbox.write_all({"README.md": "x\n", ".planning/ROADMAP.md": "theirs\n", ".planning/STATE.md": "theirs\n"})
    sandbox.write_all({".gitignore": "*.log\n", ".idumb/config.yaml": "run: {max_attempts: 2}\n"})
    sandbox.commit("first")
    before = sandbox.ledger()
    exclude = sandbox.git_dir / "info" / "exclude"
    assert not exclude.exists()
    project = Project(sandbox, sandbox.root)
    answer = project.json("init")
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
    again = project.json("init")
    assert again.data["created"] == []
    assert sandbox.ledger() == after
    assert project.idumb("init").code == 0


# -- reading ------------------------------------------------------------------------------------------------------


def test_check_plan_prints_hashes_the_next_free_id_and_warnings(project: Project) -> None:
    """R-LOCK-1, R-LOCK-2: the hash of a plan is the one sha256sum gives."""
    place = project.plan([making("T1-01", "a.txt"), making("T1-07", "b.txt", criteria="  - it is there\n",
                          fields="- **Verify:** `test -s b.txt`\n")])  # fmt: skip
    checked = project.json("check-plan", "1").data
    assert checked["next_free_id"] == "T1-08"
    assert checked["warnings"] == 1
    assert checked["errors"] == 0
    assert checked["plan_hashes"] == {".planning/phases/1/01-PLAN.md": _sha256(place)}
    words = project.idumb("check-plan", "1")
    assert words.code == 0
    assert checked["contract_hash"][:12] in words.out
    assert "01-PLAN.md:" in words.out


def _sha256(place: Path) -> str:
    import hashlib

    return hashlib.sha256(place.read_bytes()).hexdigest()


def test_the_graph_is_drawn_in_three_formats(project: Project) -> None:
    """R-PLAN-6: topological order, waves."""
    project.plan([making("T1-02", "b", after="T1-01"), making("T1-01", "a"), making("T1-03", "c", after="T1-01")])
    data = project.json("graph", "1").data
    assert data["order"] == ["T1-01", "T1-02", "T1-03"]
    assert data["waves"] == [["T1-01"], ["T1-02", "T1-03"]]
    assert ["T1-01", "T1-02"] in data["edges"]
    assert "T1-02" in project.idumb("graph", "1").out
    assert "T1-01" in project.idumb("graph", "1", "--format", "mermaid").out
    svg = project.idumb("graph", "1", "--format", "svg").out
    assert ET.fromstring(svg).tag.endswith("svg")


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
        words = project.idumb(command)
        assert words.code == 0
        assert words.out
    state = json.loads(project.read(".idumb/brain/state.json"))
    assert state
    project.repo.remove(".idumb/brain/state.json")
    assert project.json("status").data["phases"] == rows


# -- running ------------------------------------------------------------------------------------------------------


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
    assert project.idumb("status").code == 0
    shown = project.json("show", "T1-02").data
    assert (shown["status"], shown["attempts"][0]["verdict"]) == ("completed", "PASS")
    assert shown["attempts"][0]["evidence"][0]["command"] == "test -s b.txt"
    snapshot = shown["attempts"][0]["snapshot"]
    assert "worktree/a.txt" in project.repo.tree(snapshot)
    assert "worktree/b.txt" not in project.repo.tree(snapshot)
    assert any(ref.startswith("refs/idumb/") and ref.endswith("T1-02/1/base") for ref in project.repo.refs())
    diff = project.json("diff", "T1-02").data
    assert diff["files"] == [{"path": "b.txt", "added": 1, "removed": 0}]
    assert "+made" in diff["diff"]
    assert "+made" in project.idumb("diff", "T1-02").out
    assert "passed AC-1" in project.idumb("show", "T1-02").out
    for report in (".planning/phases/1/1-SUMMARY.md", ".planning/phases/1/1-VERIFICATION.md"):
        assert "T1-02" in project.read(report) or "Both are there" in project.read(report)
    assert project.read(".idumb/brain/execution/1/checkpoint-T1-01.md").startswith("---\n")
    again = project.execute()
    assert (again.code, again.error["code"]) == (4, "phase.verified")
    assert "--force" in again.error["hint"]


def test_a_verified_phase_runs_again_only_with_force(project: Project) -> None:
    """R-RUN-1."""
    project.plan(
        [task("T1-01", files="modify `README.md`", check="grep -q x README.md", steps=[shell("echo x >> README.md")])]
    )
    assert project.execute().code == 0
    forced = project.execute("--force")
    assert forced.code == 0, forced.out
    assert project.read("README.md").count("x\n") == 2
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-01"]
    assert len(set(project.trailers("Idumb-Run"))) == 2


def test_no_verify_stops_after_the_tasks_and_verify_work_continues(project: Project) -> None:
    """R-RUN-13: the final state against the goals; a mismatch fails though every task passed."""
    tail = "\n## Success criteria\n\n- [ ] Nothing else is there — check: `test ! -e b.txt`\n"
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt")], tail=tail)
    answer = project.execute("--no-verify")
    assert answer.code == 0
    assert answer.data["verification"] is None
    assert answer.data["next"][0] == "idumb verify-work 1"
    judged = project.json("verify-work", "1")
    assert judged.code == 1
    assert judged.data["status"] == "failed"
    assert project.idumb("verify-work", "1").code == 1
    assert project.json("status").data["phases"][0]["state"] != "verified"


def test_a_mismatch_at_the_end_fails_the_run(project: Project) -> None:
    """R-RUN-13: a later task may break the result of an earlier one."""
    project.plan(
        [
            making("T1-01", "a.txt"),
            task("T1-02", files="delete `a.txt`", check="true", after="T1-01", steps=[delete("a.txt")]),
        ],
        tail="\n## Success criteria\n\n- [ ] a.txt is there — check: `test -s a.txt`\n",
    )
    answer = project.execute()
    assert answer.code == 1
    assert answer.error["code"] == "verification.failed"
    assert {row["status"] for row in answer.data["tasks"]} == {"completed"}


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
    project.plan([bad("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"), making("T1-03", "c.txt")])
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
    project.plan([bad("T1-01", "a.txt")])
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
        [making("T1-01", "a.txt"), *(bad(f"T1-0{n}", f"{n}.txt") for n in (2, 3, 4)), making("T1-05", "e.txt")]
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
    project.plan([bad("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
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
    project.plan([bad("T1-01", "a.txt")])
    assert project.execute("--max-attempts", "1").code == 1
    project.repo.write("a.txt", "staged\n")
    project.repo.git("add", "a.txt")
    project.repo.write("a.txt", "third\n")
    answer = project.json("accept", "T1-01", "--why", "good")
    assert answer.code == 0, answer.out
    assert project.repo.git("show", "HEAD:a.txt") == "third"
    (warning,) = [words for words in answer.object["warnings"] if "was staged otherwise" in words]
    project.repo.git("gc", "--quiet", "--prune=now")
    command = warning.partition("To stage again what was staged: ")[2]
    subprocess.run(["sh", "-c", command], cwd=project.folder, check=True)
    assert project.repo.git("show", ":a.txt") == "staged"


def test_a_halted_run_names_the_task_that_halted_it(project: Project) -> None:
    """R-RUN-6, R-RUN-7: another task had failed before."""
    strays = shell("echo a > b.txt; echo c > c.txt")
    project.plan([bad("T1-01", "a.txt"), making("T1-02", "b.txt", steps=[strays])])
    flags = ("--on-deviation", "halt", "--max-attempts", "1")
    answer = project.execute(*flags)
    assert answer.error["code"] == "run.halted"
    assert str(answer.data["failure"]["step_id"]).startswith("T1-02")
    assert answer.data["next"][0] == answer.error["hint"] == "idumb debug 1 --task T1-02"
    words = project.idumb("resume", "1", "--retry-failed", *flags).out
    assert "Critical task T1-02 failed" in words


def test_invariants_and_tests_run_again_after_the_last_task(project: Project) -> None:
    """R-RUN-13: each held after its own task."""
    tests = "- **Tests:**\n  - `test ! -e b.txt` — passes before and after: nothing else is there\n"
    invariants = "- **Invariants:** none\n"
    project.plan(
        [
            making("T1-01", "a.txt", fields=tests + invariants),
            making("T1-02", "b.txt", after="T1-01", fields=invariants),
        ],
        head='invariants: [{id: INV-1, text: no b, check: "test ! -s b.txt"}]\n',
    )
    answer = project.execute()
    assert (answer.code, answer.error["code"]) == (1, "verification.failed")
    assert {row["status"] for row in answer.data["tasks"]} == {"completed"}
    failed = {e["subject"] for e in answer.data["verification"]["evidence"] if e["result"] == "failed"}
    assert failed == {"invariant INV-1", "T1-01 test 1"}


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
    project.plan([bad("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01"), making("T1-03", "c.txt")])
    assert project.execute("--max-attempts", "1").code == 1
    answer = project.idumb("skip", "T1-01", "--why", "not needed")
    assert answer.code == 0
    assert project.statuses() == {"T1-01": "skipped", "T1-02": "blocked", "T1-03": "completed"}
    assert project.resume().code == 1
    assert project.read("a.txt") == "x\n"


# -- deviations ---------------------------------------------------------------------------------------------------


def straying() -> list[str]:
    return [
        task(
            "T1-01",
            files="create `a.txt`",
            check="test -s a.txt",
            steps=[write("a.txt", "a\n"), write("stray.txt", "s\n")],
        ),
        making("T1-02", "b.txt"),
    ]


def test_an_undeclared_change_stops_the_run_and_is_named_kept_and_never_committed(project: Project) -> None:
    """R-GIT-5, R-GIT-6, R-RUN-2, R-GATE-4."""
    project.plan(straying())
    answer = project.execute()
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    assert "stray.txt" in answer.error["message"]
    assert project.read("stray.txt") == "s\n"
    assert project.read("a.txt") == "a\n"
    assert project.trailers("Idumb-Task") == []
    assert "stray.txt" not in project.repo.tree()
    assert project.statuses()["T1-02"] == "ready"
    shown = project.json("show", "T1-01").data["attempts"][0]
    assert shown["deviations"] == ["stray.txt"]
    assert {(line["path"], line["status"]) for line in shown["ledger"]} >= {("stray.txt", "undeclared")}
    halted = project.execute("--on-deviation", "halt", command="resume")
    assert halted.code == 1
    accepted = project.resume("--on-deviation", "accept")
    assert accepted.code == 0, accepted.out
    assert project.repo.tree()["stray.txt"]
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]


def test_an_option_accepts_undeclared_changes(project: Project) -> None:
    """R-GIT-5."""
    project.plan(straying())
    answer = project.execute("--on-deviation", "accept")
    assert answer.code == 0
    assert sorted(answer.data["tasks"][0]["files"]) == ["a.txt", "stray.txt"]


def test_a_failed_task_has_a_checkpoint_too(project: Project) -> None:
    """R-GIT-2: a snapshot before each attempt, and after each the files as it left them, with error and attempts."""
    project.plan([bad("T1-01", "a.txt")])
    head = project.repo.head()
    assert project.execute("--max-attempts", "2").code == 1
    refs = project.repo.refs("refs/idumb/")
    for attempt in (1, 2):
        (base,) = [ref for ref in refs if ref.endswith(f"/T1-01/{attempt}/base")]
        (after,) = [ref for ref in refs if ref.endswith(f"/T1-01/{attempt}/checkpoint")]
        assert "worktree/a.txt" not in project.repo.tree(base)
        assert "worktree/a.txt" in project.repo.tree(after)
    document = project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    for line in ("status: failed", f'git_hash: "{head}"', '  - "a.txt"', "validation_result: fail"):
        assert line in document
    for line in ("retry_count: 1", "attempt: 2", 'error_message: "AC-1 failed"'):
        assert line in document


def test_an_unchanged_declared_file_fails_the_task(project: Project) -> None:
    """R-GIT-5: missing is a failure as extra is."""
    project.plan([task("T1-01", files="create `a.txt`, `b.txt`", check="true", steps=[write("a.txt", "a\n")])])
    answer = project.execute("--max-attempts", "1")
    assert answer.code == 1
    assert "b.txt" in answer.data["tasks"][0]["reason"]


def test_a_check_that_changes_its_files_fails_the_task_and_residue_is_never_committed(
    project: Project,
) -> None:
    """R-RUN-3."""
    project.plan(
        [
            making("T1-01", "a.txt", fields="- **Verify:** `echo x > residue.txt`\n"),
            making("T1-02", "b.txt", fields="- **Verify:** `echo x >> b.txt`\n"),
        ]
    )
    answer = project.execute("--max-attempts", "1")
    assert answer.code == 1
    assert project.statuses() == {"T1-01": "completed", "T1-02": "failed"}
    assert "b.txt" in {row["id"]: row["reason"] for row in answer.data["tasks"]}["T1-02"]
    assert "residue.txt" not in project.repo.tree()
    assert project.exists("residue.txt")
    assert project.json("show", "T1-01").data["attempts"][0]["residue"] == ["residue.txt"]


def test_conditions_and_invariants_are_checked(project: Project) -> None:
    """R-RUN-14, R-GATE-3, R-PLAN-4."""
    invariants = 'invariants: [{id: INV-1, text: no secrets, check: "test ! -e secret.txt"}]\n'
    project.plan(
        [
            making(
                "T1-01",
                "a.txt",
                fields="- **Preconditions:** file exists README.md\n- **Postconditions:** file exists a.txt\n",
            ),
            making("T1-02", "b.txt", fields="- **Preconditions:** file exists nowhere.txt\n"),
            making("T1-03", "c.txt", fields="- **Postconditions:** file absent c.txt\n"),
            making("T1-04", "secret.txt"),
        ],
        head=invariants,
    )
    project.execute("--max-attempts", "1")
    assert project.statuses() == {"T1-01": "completed", "T1-02": "failed", "T1-03": "failed", "T1-04": "failed"}
    assert not project.exists("b.txt")  # refused before anything was built
    reasons = {row["id"]: row["reason"] for row in project.json("resume", "1").data["tasks"]}
    assert "nowhere.txt" in reasons["T1-02"]
    assert "INV-1" in reasons["T1-04"]


# -- events -------------------------------------------------------------------------------------------------------


def test_events_are_printed_as_compact_lines_and_match_the_log(project: Project) -> None:
    """R-LOG-1, R-LOG-3."""
    project.plan([making("T1-01", "a.txt"), bad("T1-02", "b.txt")])
    answer = project.idumb("execute-phase", "1", "--approve", project.approval(), "--events", "--max-attempts", "1")
    assert answer.code == 1
    events = [json.loads(line) for line in answer.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert answer.out.isascii()
    assert project.events("1")[-1]["kind"] in {"run.failed", "operation.finished", "reports.committed"}
    in_log = {event["seq"]: event for event in project.events("--run", events[-1]["run"])}
    assert all(in_log[event["seq"]] == event for event in events if event["seq"] in in_log)
    step = next(event for event in events if event["kind"] == "step.finished")
    assert {"plan_hash", "index", "tool", "arguments", "response"} <= set(step["payload"])


def test_log_filters(project: Project) -> None:
    """R-LOG-1, R-OPS-1: by run, type, task and time."""
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt")])
    assert project.execute().code == 0
    every = project.events("1")
    assert project.events("1", "--task", "T1-02") == [e for e in every if e["task"] == "T1-02"]
    assert project.events("1", "--kind", "task.completed") == [e for e in every if e["kind"] == "task.completed"]
    assert project.events("--run", every[0]["run"]) == every
    middle = every[len(every) // 2]["at"]
    assert project.events("1", "--since", middle) == [e for e in every if e["at"] >= middle]
    assert project.events("1", "--until", middle) == [e for e in every if e["at"] <= middle]
    assert project.json("log", "1", "--limit", "2").data["events"] == every[-2:]
    assert "task.completed" in project.idumb("log", "1").out
    unknown = project.json("log", "--kind", "no.such")
    assert unknown.code in {2, 3} or unknown.data["events"] == []


# -- people -------------------------------------------------------------------------------------------------------


def test_a_criterion_for_a_person_waits_and_the_answer_completes_the_task(project: Project) -> None:
    """R-ASK-1, R-ASK-2, R-PLAN-12, R-RUN-3: pending, exit 5, answered later, in the record."""
    criteria = "  - [ ] it is there — check: `test -s a.txt`\n  - [ ] it reads well — human\n    - Read it aloud\n"
    project.plan([making("T1-01", "a.txt", criteria=criteria), making("T1-02", "b.txt", after="T1-01")])
    answer = project.execute()
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    (decision,) = project.json("decisions").data["decisions"]
    assert "Read it aloud" in decision["evidence"]
    assert [choice["id"] for choice in decision["choices"]] == ["yes", "no"]
    assert all(choice["consequence"] for choice in decision["choices"])
    assert decision["why"]
    assert project.json("status").data["next"]["command"] == "idumb decisions"
    assert decision["id"] in project.idumb("decisions").out
    assert project.trailers("Idumb-Task") == []
    assert project.resume().code == 5
    wrong = project.json("decide", decision["id"], "perhaps")
    assert (wrong.code, wrong.error["code"]) == (3, "decision.bad-choice")
    assert project.json("decide", "T9-99.x", "yes").error["code"] == "decision.unknown"
    decided = project.json("decide", decision["id"], "yes", "--guidance", "reads like a song")
    assert decided.code == 0
    assert "idumb resume 1" in decided.data["next"]
    assert project.json("decide", decision["id"], "no").error["code"] == "decision.answered"
    assert project.resume().code == 0
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.json("decisions").data["decisions"] == []
    assert "reads like a song" in json.dumps(project.json("show", "T1-01").data)


def test_a_criterion_denied_by_a_person_fails_the_attempt(project: Project) -> None:
    """R-ASK-2."""
    project.plan([making("T1-01", "a.txt", criteria="  - [ ] it reads well — human\n")])
    assert project.execute("--max-attempts", "1").code == 5
    (decision,) = project.json("decisions").data["decisions"]
    assert project.idumb("decide", decision["id"], "no").code == 0
    assert project.resume("--max-attempts", "1").code == 1
    assert project.statuses() == {"T1-01": "failed"}


def test_tasks_for_a_person_wait_while_others_continue(project: Project) -> None:
    """R-PLAN-12: human-verify, decision and human-action."""
    project.plan(
        [
            task("T1-01", criteria="  - [ ] it is so — human\n", fields="- **Kind:** human-action\n"),
            task(
                "T1-02",
                criteria="  - [ ] chosen — human\n",
                fields="- **Kind:** decision\n- **Options:**\n  - red: the warm one\n  - blue: the cold one\n",
            ),
            task(
                "T1-03", criteria="  - [ ] it looks right — human\n", fields="- **Kind:** human-verify\n", after="T1-04"
            ),
            making("T1-04", "a.txt"),
            making("T1-05", "b.txt", after="T1-01, T1-02, T1-03"),
        ]
    )
    answer = project.execute()
    assert answer.code == 5
    assert project.statuses()["T1-04"] == "completed"
    decisions = {row["task"]: row for row in project.json("decisions").data["decisions"]}
    assert set(decisions) == {"T1-01", "T1-02", "T1-03"}
    assert [choice["id"] for choice in decisions["T1-02"]["choices"]] == ["red", "blue"]
    for id, choice in (("T1-01", "done"), ("T1-02", "blue"), ("T1-03", "yes")):
        assert project.idumb("decide", decisions[id]["id"], choice).code == 0
    done = project.resume()
    assert done.code == 0, done.out
    assert set(project.statuses().values()) == {"completed"}
    assert "blue" in json.dumps(project.json("show", "T1-02").data)
