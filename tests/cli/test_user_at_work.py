"""The user edits, stages, commits and switches branches while a task runs: nothing of it is lost or gets in the way."""

from __future__ import annotations

import shlex

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task, write


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """The user has an edit, a staged change and a note, and runs the script `actor` during the second task."""
    project = projects.create(sandbox, files={"README.md": "one\n", "src.txt": "one\n"})
    sandbox.write_all({"src.txt": "two\n", "notes.txt": "mine\n", "staged.txt": "staged\n"})
    sandbox.git("add", "staged.txt")
    return project


def run(project: Project, *commands: str, flags: tuple[str, ...] = (), then: str = "") -> Answer:
    """Run two tasks; while the second is built, the user runs these commands in the working tree."""
    actor = project.folder.parent / "actor"
    actor.write_text("\n".join((f"cd {shlex.quote(str(project.folder))}", "set -e", *commands, "")))
    meanwhile = shell(f"env -u GIT_DIR sh {shlex.quote(str(actor))}")
    steps = [write("b.txt", "made\n"), meanwhile]
    second = task("T1-02", files="create `b.txt`", check=then or "test -s b.txt", after="T1-01", steps=steps)
    project.plan([making("T1-01", "a.txt"), second])
    if "strict" in flags:
        assert project.quick("approve", "1", "--hash", project.contract_hash(), "--json").code == 0
    return project.execute(*flags, "--max-attempts", "1", "--no-verify")


STAGING = (
    "git update-index --cacheinfo 100644,$(printf 'one half\\n' | git hash-object -w --stdin),src.txt",
    "git add --intent-to-add notes.txt",
    "git rm -q --cached README.md",
    "git update-index --chmod=+x staged.txt",
)
WAYS = [("task", ()), ("none", ()), ("task", ("--mode", "strict"))]


@pytest.mark.parametrize(("policy", "flags"), seed.one_on_a_push(WAYS, "staged meanwhile"))
def test_what_the_user_stages_stays_and_is_in_no_commit(project: Project, policy: str, flags: tuple[str, ...]) -> None:
    """R-GIT-6, F5: half an edit, an intent to add, a staged deletion, a mode."""
    project.configure(f"git: {{commit: {policy}}}\n")
    answer = run(project, *STAGING, flags=flags)
    assert answer.code == 0, answer
    repo = project.repo
    assert repo.git("ls-files", "--stage", "README.md") == ""
    assert repo.git("show", ":src.txt") == "one half"
    assert repo.git("ls-files", "--stage", "staged.txt").startswith("100755 ")
    assert "1 .A N... 000000 000000 100644" in repo.git("status", "--porcelain=v2", "notes.txt")
    committed = set(repo.git("log", "--grep=^Idumb-", "--name-only", "--format=").split())
    assert {"README.md", "src.txt", "notes.txt", "staged.txt"}.isdisjoint(committed)
    assert (project.read("src.txt"), project.read("README.md")) == ("two\n", "one\n")


def test_edits_a_commit_and_the_next_plan_stop_nothing(project: Project) -> None:
    """R-GIT-5, R-GIT-6: no task fails or runs again, all of it is there afterwards, and a warning names it."""
    plan = ".planning/phases/02-next/02-01-PLAN.md"
    commands = ("echo three > src.txt", f"mkdir -p {plan.rpartition('/')[0]}; echo draft > {plan}")
    answer = run(project, *commands, "echo c > mine.txt; git add mine.txt; git commit -qm mine -- mine.txt")
    assert answer.code == 0, answer
    assert "Agents do not see your uncommitted changes in notes.txt, src.txt, staged.txt" in answer.object["warnings"]
    assert [event["task"] for event in project.events("1", "--kind", "attempt.started")] == ["T1-01", "T1-02"]
    subjects = project.repo.git("log", "--format=%s").splitlines()
    assert subjects.index("Task T1-02") < subjects.index("mine") < subjects.index("Task T1-01")
    assert (project.read("src.txt"), project.read(plan)) == ("three\n", "draft\n")
    assert "staged.txt" in project.repo.git("diff", "--cached", "--name-only").splitlines()


PLANS = ".planning/phases/1"
EDITS = [
    (
        f"sed -i 's/test -s b.txt/false/' {PLANS}/01-PLAN.md; cp {PLANS}/01-PLAN.md {PLANS}/02-PLAN.md",
        f"{PLANS}/01-PLAN.md, {PLANS}/02-PLAN.md",
        [f" M {PLANS}/01-PLAN.md", f"?? {PLANS}/02-PLAN.md"],
    ),
    (f"mv {PLANS} {PLANS}-x", f"{PLANS}/01-PLAN.md", [f" D {PLANS}/01-PLAN.md", f"?? {PLANS}-x/"]),
]


@pytest.mark.parametrize(("edit", "named", "left"), seed.one_on_a_push(EDITS, "an edited plan"))
def test_a_guided_run_keeps_the_plan_that_it_started_with(
    project: Project, edit: str, named: str, left: list[str]
) -> None:
    """R-GIT-6: the user edits a later task and adds a plan, or moves it away. The edits stay; none of them runs."""
    there = shell(f"cd {shlex.quote(str(project.folder))} && {edit}")
    first = task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=[write("a.txt", "made\n"), there])
    last = task("T1-03", files="create `c.txt`", check="test -s c.txt", after="T1-02", steps=[write("c.txt", "made\n")])
    project.plan([first, making("T1-02", "b.txt", after="T1-01"), last])
    answer = project.execute()
    assert answer.code == 0, answer
    note = f"{named} changed; this run keeps the plan that it started with"
    assert [warning.startswith(note) for warning in answer.object["warnings"]].count(True) == 1, answer
    assert project.repo.git("status", "--porcelain", "--", ".planning").splitlines() == left


def test_a_save_of_the_file_that_the_task_makes_is_not_overwritten(project: Project) -> None:
    """R-GIT-6: the run asks; removing the saved file is an answer too. The task's version has git's line endings."""
    project.repo.git("config", "core.autocrlf", "true")
    answer = run(project, "echo mine > b.txt")
    assert (answer.code, answer.error["code"]) == (5, "run.waiting"), answer
    assert [c["id"] for c in project.json("decisions").data["decisions"][0]["choices"]] == ["mine", "task", "stop"]
    phase = project.json("status").data["phases"][0]
    assert (phase["tasks"], phase["next"]) == ({"total": 2, "completed": 1, "waiting": 1}, []), (
        "nothing runs or can run"
    )
    assert project.read("b.txt") == "mine\n"
    (project.folder / "b.txt").unlink()
    assert project.resume("--no-verify").data["outcome"] == "complete"
    assert (project.folder / "b.txt").read_bytes() == b"made\r\n"
    assert len(project.events("1", "--kind", "attempt.started")) == 2


def test_on_another_branch_nothing_is_delivered_and_resume_delivers_when_the_user_is_back(project: Project) -> None:
    """R-GIT-6."""
    answer = run(project, "git switch -q -c other")
    assert answer.code == 5, answer
    assert "HEAD is on other" in answer.error["message"]
    assert (answer.data["failure"]["status"], answer.data["failure"]["step_id"]) == ("waiting", "T1-02")
    assert (project.exists("b.txt"), project.repo.git("log", "-1", "--format=%s", "other")) == (False, "Task T1-01")
    project.repo.git("gc", "--quiet", "--prune=now")
    project.repo.git("switch", "--quiet", "main")
    assert project.resume("--no-verify").data["outcome"] == "complete"
    assert "Task T1-02" in project.repo.git("log", "--format=%s", "main").splitlines()
    assert len(project.events("1", "--kind", "attempt.started")) == 2


@pytest.mark.nightly
def test_plans_that_are_no_longer_kept_anywhere_are_one_clear_refusal(project: Project) -> None:
    """R-RUN-14: the refs were deleted between two commands."""
    assert run(project).code == 0
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    project.repo.git("pack-refs", "--all")
    for ref in project.repo.refs():
        if ref.startswith("refs/idumb/"):
            project.repo.git("update-ref", "-d", ref)
    answer = project.json("audit", "workspace", "1")
    assert (answer.code, answer.error["code"]) == (4, "plan.kept-gone")
    assert "idumb doctor --fix" in answer.error["hint"]


def test_a_task_that_waits_for_an_answer_before_its_attempt_is_shown_so_everywhere(project: Project) -> None:
    """R-ASK-1: the question about the user's version of a file comes before anything is built."""
    project.plan([task("T1-01", files="modify `src.txt`", check="test -s src.txt", steps=[shell("echo 3 > src.txt")])])
    answer = project.execute("--no-verify")
    assert (answer.code, answer.data["counts"]) == (5, {"waiting": 1})
    assert (project.json("graph", "1").data["status"], project.statuses()) == ({"T1-01": "waiting"},) * 2
    assert [row["why"] for row in project.json("next", "1").data["others"]] == ["waits for an answer: T1-01.base.1"]
    assert project.json("show", "T1-01").data["status"] == "waiting"


def test_a_task_with_an_open_question_still_waits_for_the_tasks_before_it(project: Project) -> None:
    """A rollback leaves the question about the files of a later task open."""
    modified = {"files": "modify `src.txt`", "check": "test -s src.txt", "after": "T1-01"}
    project.plan([making("T1-01", "a.txt"), task("T1-02", **modified, steps=[shell("echo 3 > src.txt")])])
    assert project.execute("--no-verify").code == 5
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert [row["id"] for row in project.json("decisions").data["decisions"]] == ["T1-02.base.1"]
    assert project.json("graph", "1").data["status"] == {"T1-01": "ready", "T1-02": "pending"}
    assert project.json("take", "T1-02").error["code"] == "task.not-ready"


@pytest.mark.nightly
@pytest.mark.parametrize("staged", [(), ("d/src.txt",)])
def test_a_task_starts_from_the_version_that_the_user_takes_as_base(project: Project, staged: tuple[str, ...]) -> None:
    """R-GIT-6: also if it is staged; otherwise the user's next commit would undo the work. A rollback restores it."""
    project.repo.commit_with({"d/src.txt": "one\n", "d/page.txt": "one\n"}, "d", "d")
    project.repo.write("d/src.txt", "two\n")
    steps = [shell("sed -i s/^/more-/ d/src.txt")]
    project.plan([task("T1-01", files="modify `d/*`", check="! grep -q one d/src.txt", steps=steps)])
    assert project.execute("--no-verify").code == 5
    for path in staged:
        project.repo.git("add", path)
    assert project.json("decide", "T1-01.base.1", "mine").code == 0
    answer = project.resume("--no-verify")
    assert answer.data["outcome"] == "complete", answer
    assert not any("d/src.txt" in words for words in answer.object["warnings"] if "kept" not in words)
    assert (project.read("d/src.txt"), project.repo.git("show", "HEAD~1:d/src.txt")) == ("more-two\n", "more-two")
    assert project.repo.git("status", "--porcelain", "d/src.txt") == ""
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.read("d/src.txt") == "two\n"


def test_a_version_taken_as_base_counts_also_above_the_limit_of_snapshots(project: Project) -> None:
    """Only a pattern declares the file, so that no snapshot had it without the answer."""
    project.configure("snapshot: {limit: 1}\n")
    project.repo.write("data/large", "x" * 1_500_000)
    project.plan([task("T1-01", files="modify `data/**`", steps=[shell("printf x >> data/large")])])
    assert project.execute("--no-verify").code == 5
    assert project.json("decide", "T1-01.base.1", "mine").code == 0
    assert project.resume("--no-verify").data["outcome"] == "complete"
    assert len(project.read("data/large")) == 1_500_001
