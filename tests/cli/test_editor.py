"""The builder drives idumb: next, start, submit, give-up. The changed files are judged, whoever wrote them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, task

MINE = "builder: editor\n"


TASKS = [
    task("T1-01", files="create `a.txt`", check="grep -q right a.txt"),
    task("T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01"),
]


def _planned(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan(TASKS, head=MINE)
    return project


def _open_one(sandbox: GitSandbox) -> Project:
    project = _planned(sandbox)
    started = project.json("start", "T1-01", "--by", "an agent", "--approve", project.approval())
    assert started.code == 0, started.out
    return project


project = prepared_project(_planned)


open_one = prepared_project(_open_one)
"""The first task is begun."""


def _done_one(sandbox: GitSandbox) -> Project:
    project = _open_one(sandbox)
    put(project, "a.txt", "right\n")
    assert project.json("submit", "T1-01").code == 0
    return project


done_one = prepared_project(_done_one)
"""The first task is done."""


def put(project: Project, path: str, text: str) -> None:
    (project.folder / path).write_text(text, encoding="utf-8")


def files(project: Project) -> list[str]:
    """Return the files in HEAD except idumb's own."""
    lines = project.repo.git("ls-tree", "-r", "HEAD").splitlines()
    return [line for line in lines if line.split("\t")[1].split("/")[0] not in (".idumb", ".planning")]


def test_a_phase_driven_by_a_script_ends_in_the_tree_of_its_steps(project: Project, tmp_path: Path) -> None:
    """R-ADAPT-7."""
    begun = project.json("start", "T1-01", "--approve", project.approval()).data
    assert (begun["task"]["allowed"], begun["task"]["attempt"], begun["task"]["feedback"]) == (["a.txt"], 1, "")
    assert "create `a.txt`" in begun["task"]["prompt"]
    put(project, "a.txt", "wrong\n")
    wrong = project.json("submit", "T1-01", "--say", "all is well")
    message = wrong.data
    assert (wrong.code, wrong.error["code"]) == (1, "task.not-accepted")
    assert (message["accepted"], message["verdict"]) == (False, "FAIL")
    assert "$ grep -q right a.txt" in message["feedback"]
    assert message["next"][0] == "idumb start T1-01"
    assert project.trailers("Idumb-Task") == []
    upcoming = project.json("next", "1").data
    assert (upcoming["task"]["id"], upcoming["task"]["attempt"]) == ("T1-01", 2)
    again = project.json("start", "T1-01").data["task"]
    assert again["feedback"] == message["feedback"]
    assert "grep -q right a.txt" in again["prompt"]
    assert project.read("a.txt") == "wrong\n"
    put(project, "a.txt", "right\n")
    right = project.json("submit", "T1-01").data
    assert (right["accepted"], right["ended"], right["next"]) == (True, None, ["idumb start T1-02"])
    assert project.json("start", "T1-02").code == 0
    put(project, "b.txt", "b\n")
    last = project.json("submit", "T1-02")
    ended = last.data["ended"]
    assert (last.code, ended["outcome"], ended["verification"]["status"]) == (0, "complete", "passed")
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.json("audit", "verify").code == 0

    other = projects.create(GitSandbox.create(tmp_path / "other"))
    other.repo.commit_with({"a.txt": "right\n", "b.txt": "b\n"}, "by steps")
    assert files(project) == files(other)


def test_nobody_is_asked_to_agree_to_a_start_that_is_refused(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    assert project.json("start", "T1-01").error["code"] == "task.other-builder"
    assert project.json("start", "T1-09").error["code"] == "task.unknown"
    assert project.json("decisions").data["decisions"] == []


def test_next_returns_the_task_with_the_builder_s_brief(project: Project) -> None:
    """R-ADAPT-7: before any task starts, and with the reason why the others wait."""
    data = project.json("next", "1").data
    assert (data["task"]["id"], data["open"], data["next"]) == ("T1-01", None, ["idumb start T1-01"])
    assert data["task"]["acceptance"][0]["command"] == "grep -q right a.txt"
    assert [(t["id"], t["why"]) for t in data["others"]] == [("T1-02", "waits for T1-01 (ready)")]
    assert "T1-01" in project.quick("next", "1").out
    assert project.json("status").data["next"]["command"] == "idumb start T1-01"


def test_debug_of_an_open_task_names_submit_and_no_retry(open_one: Project) -> None:
    shown = open_one.json("show", "T1-01", "--debug", "--facts-only").data
    assert shown["next"] == ["idumb submit T1-01"]
    assert [row["command"] for row in shown["checklist"]] == ["idumb show T1-01 --diff"]


def test_only_declared_files_are_committed_and_others_are_left_alone(open_one: Project) -> None:
    """R-ADAPT-7: also if the builder staged some of them."""
    put(open_one, "a.txt", "right\n")
    put(open_one, "stray.txt", "mine\n")
    put(open_one, "README.md", "mine\n")
    open_one.repo.git("add", "a.txt", "stray.txt")
    data = open_one.json("submit", "T1-01").data
    assert (data["accepted"], data["undeclared"]) == (True, ["README.md", "stray.txt"])
    assert open_one.repo.git("show", "--name-only", "--format=", "HEAD").split() == ["a.txt"]
    assert {"A  stray.txt", " M README.md"} <= {*open_one.repo.status()}


def test_another_version_that_the_user_staged_of_his_work_is_kept_and_named(open_one: Project) -> None:
    """R-GIT-3: the index follows the commit, and no other place has those bytes."""
    put(open_one, "a.txt", "staged\n")
    open_one.repo.git("add", "a.txt")
    put(open_one, "a.txt", "right\n")
    words = open_one.quick("submit", "T1-01").err
    kept = next(line.partition(": ")[2] for line in words.splitlines() if "What you had staged of a.txt" in line)
    assert open_one.repo.git(*kept.split()[1:]) == "staged"
    assert "a.txt" not in "".join(open_one.repo.status())


def test_what_is_corrected_after_git_refused_the_commit_is_judged_by_the_next_submit(open_one: Project) -> None:
    """R-ADAPT-7: in the same attempt, as the refusal says."""
    hook = open_one.repo.git_dir / "hooks/pre-commit"
    open_one.repo.write(str(hook), "#!/bin/sh\n! git grep -q --cached ugly -- a.txt\n", mode=0o755)
    put(open_one, "a.txt", "right, but ugly\n")
    refused = open_one.json("submit", "T1-01")
    assert (refused.error["code"], refused.error["hint"]) == ("git.commit-refused", "idumb submit T1-01")
    put(open_one, "a.txt", "right\n")
    accepted = open_one.json("submit", "T1-01")
    assert (accepted.data["accepted"], accepted.data["attempt"]) == (True, 1), accepted
    assert open_one.repo.git("show", "HEAD:a.txt") == "right"


def test_what_a_hook_changes_in_the_work_of_a_person_is_in_the_working_tree_too(open_one: Project) -> None:
    """R-ADAPT-7: the work is proven once more, and the working tree matches the commit."""
    hook = open_one.repo.git_dir / "hooks/pre-commit"
    open_one.repo.write(str(hook), "#!/bin/sh\necho 'right, formatted' > a.txt; git add a.txt\n", mode=0o755)
    put(open_one, "a.txt", "right\n")
    assert open_one.json("submit", "T1-01").data["accepted"]
    assert (open_one.repo.git("show", "HEAD:a.txt"), open_one.read("a.txt")) == (
        "right, formatted",
        "right, formatted\n",
    )
    assert " M a.txt" not in open_one.repo.status()


def test_what_a_person_saves_while_a_hook_changes_the_work_stays(open_one: Project) -> None:
    """R-GIT-6: also a save that restores the file as it was before the work."""
    hook = open_one.repo.git_dir / "hooks/pre-commit"
    script = f"echo right, formatted > a.txt; git add a.txt; rm '{open_one.folder}/a.txt'"
    open_one.repo.write(str(hook), f"#!/bin/sh\n{script}\n", mode=0o755)
    put(open_one, "a.txt", "right\n")
    waiting = open_one.json("submit", "T1-01")
    assert (waiting.code, waiting.data["ended"]["reason"]) == (5, "T1-01 is done, and you changed a.txt since it began")
    assert not open_one.exists("a.txt")


def test_a_changed_plan_stops_submit_and_the_attempt_stays_open(open_one: Project) -> None:
    """R-ADAPT-7, R-LOCK-1: the task's checks are the locked ones."""
    put(open_one, "a.txt", "wrong\n")
    plan = open_one.folder / ".planning/phases/1/01-PLAN.md"
    kept = plan.read_text()
    plan.write_text(kept.replace("grep -q right a.txt", "true"))
    refused = open_one.json("submit", "T1-01")
    assert (refused.code, refused.error["code"]) == (4, "run.contract-changed")
    # What is refused while an attempt is open is no way on.
    assert refused.error["hint"].startswith("idumb give-up T1-01 --why REASON")
    assert [choice["id"] for choice in refused.error["details"]["choices"]] == ["give-up", "put-back"]
    plan.write_text(kept)
    assert open_one.json("submit", "T1-01").data["feedback"]


def test_an_open_task_whose_plan_is_gone_offers_what_works(open_one: Project) -> None:
    """R-LOG-6: `next` names what shows the ways out: the plan is restored, or the attempt is given up."""
    [plan] = (open_one.folder / ".planning/phases/1").iterdir()
    plan.unlink()
    view = open_one.json("status").data
    assert (view["phases"][0]["open"]["task"], view["next"]["command"]) == ("T1-01", "idumb check-plan 1")
    refused = open_one.json("check-plan", "1")
    offered = {choice["id"]: choice["command"] for choice in refused.error["details"]["choices"]}
    assert list(offered) == ["bring-back", "give-up"]
    subprocess.run(["sh", "-c", offered["bring-back"]], cwd=open_one.folder, check=True)
    put(open_one, "a.txt", "right\n")
    assert open_one.json("submit", "T1-01").code == 0


def test_only_an_open_task_can_be_submitted(project: Project) -> None:
    """R-ADAPT-7: without a start, and twice."""
    assert project.json("submit", "T1-01").error["code"] == "run.none"
    hint = f"idumb start T1-01 --approve {project.approval()}"
    assert project.json("start", "T1-01").error["hint"] == hint
    assert project.json("start", "T1-02", "--approve", project.approval()).error["code"] == "task.not-ready"
    closed = project.json("submit", "T1-01").error
    assert (closed["code"], closed["hint"]) == ("attempt.not-open", "idumb next 1"), "it may have another builder"
    assert project.json("start", "T1-01").code == 0
    put(project, "a.txt", "right\n")
    assert project.json("submit", "T1-01").code == 0
    recorded = project.events()
    assert project.json("start", "T1-01").error["code"] == "task.already-done"
    assert project.events() == recorded, "the run was not taken up"
    assert project.json("submit", "T1-01").error["code"] == "task.already-done"
    assert project.json("give-up", "T1-01", "--why", "no").error["code"] == "task.already-done"


def test_abandoned_work_is_kept_and_removed_from_the_files(open_one: Project) -> None:
    put(open_one, "a.txt", "half\n")
    put(open_one, "mine.txt", "mine\n")
    data = open_one.json("give-up", "T1-01", "--why", "too hard").data
    assert (data["put_back"], open_one.exists("a.txt"), open_one.read("mine.txt")) == (["a.txt"], False, "mine\n")
    assert open_one.repo.git("show", f"{data['kept']}:worktree/a.txt") == "half"
    interruption = open_one.events("1", "--kind", "attempt.interrupted")[0]["payload"]
    assert "too hard" in interruption["reason"]
    begun = open_one.json("start", "T1-01")
    assert (begun.code, begun.data["task"]["attempt"]) == (0, 2)


def test_giving_up_brings_back_what_was_deleted_unless_that_is_committed(tmp_path: Path) -> None:
    project = projects.create(GitSandbox.create(tmp_path / "p"), files={"a.txt": "a\n", ".gitignore": "b.txt\n"})
    project.plan([task("T1-01", files="delete `a.txt`, delete `b.txt`", check="test ! -e a.txt")], head=MINE)
    put(project, "b.txt", "never committed\n")
    assert project.json("start", "T1-01", "--approve", project.approval()).code == 0
    project.repo.git("rm", "-q", "a.txt")
    project.repo.git("commit", "-qm", "mine")
    (project.folder / "b.txt").unlink()
    assert project.json("give-up", "T1-01", "--why", "not now").data["put_back"] == ["b.txt"]
    assert (project.exists("a.txt"), project.read("b.txt")) == (False, "never committed\n")


def test_the_audit_compares_a_run_s_result_with_the_working_tree(done_one: Project) -> None:
    """R-OPS-6, R-OPS-1, R-OPS-3: integrity of the working tree, and a bundle that claims no signature."""
    whole = done_one.json("audit", "workspace", "1").data
    assert (whole["intact"], whole["broken"]) == (True, [])
    audit = done_one.json("audit", "bundle", "1")
    bundle = audit.data
    assert bundle["signed"] is False
    assert "not signed" in audit.object["warnings"][0]
    first = bundle["bundle"]["tasks"][0]
    assert first["commit"] == done_one.repo.git("rev-parse", "HEAD").strip()
    assert [(e["subject"], e["result"], e["exit_code"]) for e in first["evidence"]] == [("AC-1", "passed", 0)]
    assert bundle["bundle"]["log"]["head"] == done_one.json("audit", "verify").data["head"]
    put(done_one, "a.txt", "mine now\n")
    edited = done_one.json("audit", "workspace", "1")
    assert (edited.code, edited.data["changed"]) == (0, ["a.txt"])
    done_one.repo.commit("tampered", "a.txt")
    broken = done_one.json("audit", "workspace", "1")
    assert (broken.code, broken.error["code"]) == (1, "audit.not-intact")
    assert broken.data["broken"] == ["a.txt is not as T1-01 left it"]


def test_what_held_before_the_work_in_an_editor_does_not_show_that_it_was_done(project: Project) -> None:
    """R-RUN-3."""
    project.configure("checks: {control: before}\n")
    project.plan([task("T1-01", files="create `a.txt`", check="true")], head=MINE)
    assert project.json("start", "T1-01", "--approve", project.approval()).code == 0
    put(project, "a.txt", "right\n")
    refused = project.json("submit", "T1-01")
    assert (refused.code, "AC-1 passed before the work too" in refused.out) == (1, True)
    assert "a.txt" not in project.repo.git("ls-files")


def _strict_one(sandbox: GitSandbox) -> Project:
    """The task of a strict plan is begun, and its file written. A hook refuses to commit what is ugly."""
    hook = sandbox.git_dir / "hooks/pre-commit"
    sandbox.write(str(hook), "#!/bin/sh\n! git grep -q --cached ugly -- a.txt\n", mode=0o755)
    project = projects.create(sandbox)
    head = (
        "mode: strict\nrequirements: {REQ-1: a}\nnon_goals: []\nsuccess_criteria: [{text: yes, check: 'test -d .'}]\n"
    )
    fields = "- **Requirements:** REQ-1\n- **Change:** extending\n- **Estimate:** 5m\n"
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", fields=fields)], head=MINE + head)
    assert project.json(*project.approving()).code == 0
    assert project.json("start", "T1-01").code == 0
    put(project, "a.txt", "a\n")
    return project


strict_one = prepared_project(_strict_one)


@pytest.mark.parametrize(
    ("choice", "committed"),
    seed.one_on_a_push([("leave-out", ["a.txt"]), ("keep", ["README.md", "a.txt"])], "whose changes"),
)
def test_in_strict_mode_a_person_says_whose_the_other_changes_are(
    strict_one: Project, choice: str, committed: list[str]
) -> None:
    """R-ADAPT-7: one question is asked; the person's own changes stay as they are, uncommitted."""
    project = strict_one
    put(project, "README.md", "mine\n")
    asked = project.json("submit", "T1-01")
    assert asked.code == 5, asked
    (question,) = project.json("decisions").data["decisions"]
    assert ([c["id"] for c in question["choices"]], question["evidence"]) == (["leave-out", "keep"], ["README.md"])
    assert project.json("decide", question["id"], choice).code == 0
    assert project.resume("--no-verify").data["outcome"] == "complete"
    assert project.repo.git("show", "--name-only", "--format=", "HEAD~1").split() == committed
    assert project.read("README.md") == "mine\n"


@pytest.mark.nightly
def test_a_person_says_it_of_each_change_beside_a_correction_too(strict_one: Project) -> None:
    """R-ADAPT-7: after git refused the commit, in the same attempt; an answer serves only the files of its question."""
    project = strict_one
    put(project, "a.txt", "ugly\n")
    put(project, "README.md", "mine\n")
    assert project.json("submit", "T1-01").code == 5
    assert project.json("decide", "T1-01.deviation.1", "keep").code == 0
    assert project.resume("--no-verify").error["code"] == "git.commit-refused"
    put(project, "a.txt", "right\n")
    put(project, "notes.txt", "secret plans\n")
    assert project.json("submit", "T1-01").code == 5
    (question,) = project.json("decisions").data["decisions"]
    assert (question["id"], question["evidence"]) == ("T1-01.deviation.1.2", ["notes.txt"])
    assert project.json("decide", question["id"], "leave-out").code == 0
    assert project.resume("--no-verify").data["outcome"] == "complete"
    assert project.repo.git("show", "--name-only", "--format=", "HEAD~1").split() == ["README.md", "a.txt"]


LOOKS = "  - [ ] it is right — human\n"


@pytest.mark.nightly
def test_an_agent_s_waiting_work_is_committed_when_a_person_starts_another_task(sandbox: GitSandbox) -> None:
    """R-ADAPT-7: the work continues in the checkout in which it began, even if git converts line endings."""
    project = projects.create(sandbox, files={".gitattributes": "* text=auto\n", "a.txt": "one\n"})
    project.built_by("echo right > a.txt")
    first = task("T1-01", files="modify `a.txt`", criteria=LOOKS)
    project.plan(
        [first, task("T1-02", files="create `b.txt`", check="test -s b.txt", fields="- **Builder:** editor\n")]
    )
    assert project.execute().code == 5
    assert project.json("decide", "T1-01.AC-1.1", "yes").code == 0
    assert project.json("start", "T1-02").code == 0
    assert (project.repo.git("show", "HEAD:a.txt"), project.read("a.txt")) == ("right", "right\n")


@pytest.mark.nightly
def test_a_task_taken_before_any_attempt_continues_in_the_working_tree(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox)
    project.built_by("exit 1")
    project.plan([task("T1-01", files="create `a.txt`", criteria=LOOKS)])
    assert project.json("take", "T1-01", "--approve", project.approval()).code == 0
    put(project, "a.txt", "right\n")
    assert project.json("submit", "T1-01").code == 5
    assert project.json("decide", "T1-01.AC-1.1", "yes").code == 0
    assert project.resume("--no-verify").data["outcome"] == "complete"
    assert project.repo.git("show", "HEAD:a.txt") == "right"
