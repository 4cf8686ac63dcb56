"""`idumb execute FILE`: a step plan from approval to undo, with the program as a user has it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, delete, edit, shell, write

PLAN = "deploy/web.yaml"
ID = "deploy+web.yaml"


def with_page(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n", "page.html": "<h1>Hi</h1>\n"})


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return with_page(sandbox)


def failed(sandbox: GitSandbox) -> Project:
    """A run whose second step failed."""
    project = with_page(sandbox)
    put(project, write("a.txt", "x\n"), shell("exit 3"))
    assert execute(project).code == 1
    return project


def put(project: Project, *steps: dict[str, Any], path: str = PLAN) -> None:
    """Write a step plan with one step a line, and commit it."""
    lines = "".join(f"- {json.dumps(step)}\n" for step in steps)
    project.repo.commit_with({path: f"steps:\n{lines}"}, "a step plan", path)


def approve(project: Project, path: str = PLAN) -> None:
    done = project.json(*project.approving(path))
    assert done.code == 0, done.out


def execute(project: Project, *flags: str, path: str = PLAN, verify: bool = False) -> Answer:
    """Approve the plan as it is, and run it."""
    approve(project, path)
    return project.json("execute", path, *flags, *(() if verify else ("--no-verify",)))


def test_a_step_plan_runs_only_after_approval(project: Project) -> None:
    """R-PLAN-7, R-LOCK-4: it is strict by nature; guided consent is not enough."""
    put(project, write("a.txt", "x\n"))
    refused = project.quick("execute", PLAN, "--json")
    assert (refused.code, refused.error["code"]) == (4, "approval.missing")
    contract = project.quick("check-plan", PLAN, "--json").data["contract_hash"]
    assert project.quick("execute", PLAN, "--approve", contract, "--json").code == 4
    assert project.quick("execute", PLAN, "--mode", "guided", "--json").error["code"] == "mode.strict-plan"
    assert not project.exists("a.txt")
    assert f"idumb approve {ID}" in project.quick("execute", PLAN).err


def test_steps_run_in_order_and_each_is_proven_and_committed(project: Project) -> None:
    """R-PLAN-7: a commit, a snapshot and a checkpoint for each step; the workspace is verified at the end.

    Reports are below `brain`, and the plan itself is never written.
    """
    put(project, write("a.txt", "one\n"), edit("page.html", "Hi", "Hello"), delete("README.md"))
    before = (project.folder / PLAN).stat()
    done = execute(project, verify=True)
    assert done.code == 0, done.out
    assert (done.object["command"], done.data["phase"], done.data["outcome"]) == ("execute", ID, "complete")
    assert [(t["id"], t["status"], t["files"]) for t in done.data["tasks"]] == [
        (f"{ID}-01", "completed", ["a.txt"]),
        (f"{ID}-02", "completed", ["page.html"]),
        (f"{ID}-03", "completed", ["README.md"]),
    ]
    assert project.trailers("Idumb-Task") == [f"{ID}-01", f"{ID}-02", f"{ID}-03"]
    assert done.data["verification"]["status"] == "passed"
    assert (project.read("a.txt"), project.exists("README.md")) == ("one\n", False)
    evidence = project.events("--kind", "evidence.recorded")
    assert [(e["payload"]["subject"], e["payload"]["result"]) for e in evidence] == [("AC-1", "passed")] * 3
    for reads in ("log", "prove"):  # the path names the run
        assert project.quick(reads, PLAN, "--json").data["run"] == done.data["run"]
    folder = f".idumb/brain/execution/{ID}"
    assert done.data["summary"] == f"{folder}/{ID}-SUMMARY.md"
    for name in (f"{ID}-SUMMARY.md", f"{ID}-VERIFICATION.md", f"checkpoint-{ID}-01.md", "progress.json"):
        assert project.exists(f"{folder}/{name}"), name
    assert (project.folder / PLAN).stat().st_mtime_ns == before.st_mtime_ns
    assert sorted(p.name for p in (project.folder / "deploy").iterdir()) == ["web.yaml"]
    assert project.repo.status() == []
    project.repo.commit_with({"a.txt": "two\n"}, "mine", "a.txt")
    assert project.json("verify-work", PLAN, "--gaps").error["code"] == "phase.step-plan"


def test_a_failed_step_stops_the_plan_and_the_answer_is_structured(project: Project) -> None:
    """R-RUN-7: status, step, tool, error, plan hash and audit trail, as the error's details; nothing is retried."""
    put(project, write("a.txt", "x\n"), shell("echo no >&2; exit 3"), write("b.txt", "y\n"))
    failed = execute(project)
    assert failed.code == 1
    details = failed.error["details"]
    assert details.items() >= failed.data["failure"].items()
    assert (details["status"], details["step_id"], details["tool"]) == ("failed", f"{ID}-02", "run")
    assert "exit 3" in details["error"]
    assert "no" in details["error"]
    assert details["plan_hash"] == project.quick("check-plan", PLAN, "--json").data["plan_hashes"][PLAN]
    calls = [e for e in details["audit_trail"] if e["kind"] == "step.finished"]
    assert [(e["task"], e["index"], e["tool"], e["ok"]) for e in calls] == [
        (f"{ID}-01", 0, "write_file", True),
        (f"{ID}-02", 1, "run", False),
    ]
    assert all(e["plan_hash"] == details["plan_hash"] and e["at"] and e["call"] for e in calls)
    assert not project.exists("b.txt")
    assert {t["id"]: t["attempts"] for t in failed.data["tasks"]}[f"{ID}-02"] == 1


def test_the_text_of_a_failure_names_the_step_its_tool_and_the_plan(project: Project) -> None:
    """R-RUN-7."""
    put(project, shell("exit 3"))
    approve(project)
    failed = project.idumb("execute", PLAN)
    assert failed.code == 1
    for words in (f"Failed step: {ID}-01 (run)", "sha256 ", "idumb log --run ", "exit 3, expected 0"):
        assert words in failed.out, failed.out


def test_a_step_that_may_fail_does_not_stop_the_plan_and_never_counts_as_passed(project: Project) -> None:
    """R-PLAN-7: continue_on_error; the step's changes within its scope are kept and committed.

    After a failed program, a wrong edit, a missing file, a missing program, and a timeout of the step's own.
    """
    failing: list[dict[str, Any]] = [
        edit("page.html", "nowhere", "x"),
        delete("nowhere.txt"),
        {"tool": "run", "intent": "w", "arguments": {"argv": ["no-such-program"]}},
        {**shell("sleep 60"), "timeout": 1},
    ]
    half = {**shell("echo half > out.txt; exit 3"), "scope": ["out.txt"]}
    put(project, *({**step, "continue_on_error": True} for step in (half, *failing)), write("a.txt", "x\n"))
    done = execute(project)
    assert done.code == 0, done.out
    assert [t["status"] for t in done.data["tasks"]] == ["completed"] * 6
    assert "exit 3, expected 0" in done.data["tasks"][0]["reason"]
    assert [n for n in (1, 2, 3, 4, 5) if not any(f"{ID}-0{n}" in w for w in done.object["warnings"])] == []
    evidence = project.events("--kind", "evidence.recorded")
    assert [e["payload"]["result"] for e in evidence] == ["tolerated"] * 5 + ["passed"]
    assert (project.read("out.txt"), project.read("a.txt")) == ("half\n", "x\n")
    assert "tolerated" in project.read(done.data["summary"])


def test_a_run_step_may_change_only_what_its_scope_declares(project: Project) -> None:
    """R-PLAN-7, R-LOCK-5."""
    put(project, {**shell("mkdir out; echo x > out/a.txt"), "scope": ["out/**"]}, shell("echo y > b.txt"))
    failed = execute(project)
    assert failed.code == 1
    assert failed.error["details"]["step_id"] == f"{ID}-02"
    assert "b.txt" in failed.error["details"]["error"]
    assert project.read("out/a.txt") == "x\n"


def test_protected_paths_and_the_plan_itself_are_refused_before_anything_runs(project: Project) -> None:
    """R-LOCK-5: a step never writes its own plan."""
    paths = (".git/config", ".idumb/config.yaml", "../outside.txt", "/tmp/x", PLAN)
    put(project, *(write(path, "steps: []\n") for path in paths))
    checked = project.quick("check-plan", PLAN, "--json")
    assert checked.code == 3
    wrong = [f for f in checked.data["findings"] if f["severity"] == "error"]
    assert {f["code"] for f in wrong} <= {"path.protected", "path.outside-workspace"}
    assert {f["line"] for f in wrong} == {2, 3, 4, 5, 6}
    assert project.quick("execute", PLAN, "--json").code == 3


def test_an_invalid_step_plan_file_is_refused_with_the_next_step(project: Project) -> None:
    """R-PLAN-7."""
    (project.folder.parent / "outside.yaml").write_text("steps: []\n", encoding="utf-8")
    for file, code in (
        ("missing.yaml", "phase.no-plan"),
        ("README.md", "plan.no-step-plan"),
        ("../outside.yaml", "plan.outside-repository"),
        ("a b.yaml", "plan.bad-name"),
        ("1", "plan.no-step-plan"),
    ):
        refused = project.quick("execute", file, "--json")
        assert (refused.code, refused.error["code"]) == (3, code)
        assert refused.error["hint"]
    assert refused.object["ways"][-1]["command"] == "idumb execute-phase 1"


@pytest.mark.nightly
def test_a_removed_step_plan_at_the_top_can_be_restored_or_its_run_dropped(project: Project) -> None:
    """R-LOG-6: the commands that the refusal offers work; the plan has no folder that could be gone."""
    put(project, write("a.txt", "x\n"), shell("exit 3"), path="web.yaml")
    assert execute(project, path="web.yaml").code == 1
    (project.folder / "web.yaml").unlink()
    refused = project.json("resume", "web.yaml")
    offered = {choice["id"]: choice["command"] for choice in refused.error["details"]["choices"]}
    restored = subprocess.run(["sh", "-c", offered["bring-back"]], cwd=project.folder, capture_output=True, check=True)
    assert (restored.stderr, project.repo.git("status", "--porcelain", "--", "web.yaml")) == (b"", "")
    (project.folder / "web.yaml").unlink()
    assert offered["drop"] == "idumb drop web.yaml --why REASON"
    assert project.json("drop", "web.yaml", "--why", "not wanted").data["tasks"] == ["web.yaml-02"]


def test_reports_are_written_beside_a_step_plan_that_stays_the_link_it_is(project: Project) -> None:
    put(project, write("a.txt", "x\n"))
    assert execute(project).code == 0
    plan = project.folder / PLAN
    plan.rename(project.folder / "real.yaml")
    plan.symlink_to("../real.yaml")
    written = project.json("report", ID, "--write").data["written"]
    assert (plan.is_symlink(), PLAN in written, len(written)) == (True, False, 2)


@pytest.mark.nightly
def test_idumb_amends_no_step_plan(prepared: Prepared) -> None:
    """R-PLAN-7, R-LOCK-8: it never writes one; a changed plan is approved and run again, and what is done is kept."""
    project = prepared.get(failed)
    before = (project.folder / PLAN).read_bytes()
    refused = project.quick("amend", PLAN, "--widen", f"{ID}-02", "modify a.txt", "--yes", "--json")
    assert (refused.code, refused.error["code"]) == (4, "amend.step-plan")
    assert (project.folder / PLAN).read_bytes() == before
    put(project, write("a.txt", "x\n"), shell("exit 0"), write("b.txt", "y\n"))
    done = execute(project)
    assert done.code == 0, done.out
    assert project.trailers("Idumb-Task") == [f"{ID}-01", f"{ID}-02", f"{ID}-03"]
