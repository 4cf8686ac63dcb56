"""What an earlier task was proven by must stay true: at the end, all checks run on the final tree (R-RUN-13)."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, edit, making, task, write

ONE_LINE = "test $(wc -l < a.txt) = 1"
BROKEN = "T1-01 AC-1 passed when its task was done and fails on the final tree"


def _done(sandbox: GitSandbox) -> Project:
    """T1-03 broke the work of T1-01, between two tasks that have nothing to do with it."""
    project = projects.create(sandbox)
    one = task("T1-01", files="create `a.txt`", check=ONE_LINE, steps=[write("a.txt", "one\n")])
    breaks = [edit("a.txt", "one\n", "one\ntwo\n")]
    three = task("T1-03", files="modify `a.txt`", check="grep -q two a.txt", after="T1-02", steps=breaks)
    project.plan([one, making("T1-02", "b.txt", after="T1-01"), three, making("T1-04", "d.txt", after="T1-03")])
    assert run(project).code == 1
    return project


project = prepared_project(_done)


def test_the_task_that_broke_an_earlier_one_is_named(project: Project) -> None:
    assert set(project.statuses().values()) == {"completed"}
    answer = project.quick("verify-work", "1", "--json")
    assert (answer.code, answer.data["status"]) == (1, "partial")
    hint = "T1-03 broke it; `- **Replaces:** T1-01/AC-1` in T1-03 says that it should"
    assert answer.data["causes"] == [f"{BROKEN}: {hint}"]
    assert "T1-03 broke it" in project.read(".planning/phases/1/1-VERIFICATION.md")


def test_a_check_may_use_what_an_earlier_check_of_its_task_built(sandbox: GitSandbox) -> None:
    """After a later task and at the end, the checks of a task run together, also if another task has the same build."""
    project = projects.create(sandbox)

    def built(id: str, path: str, after: str) -> str:
        criteria = (
            f"  - [ ] none — check: `test -s {path} && test ! -e out`\n"
            "  - [ ] one — check: `mkdir out && cat *.txt > out/all`\n"
            f"  - [ ] two — check: `grep -q {path} out/all`\n"
        )
        test = "test -s out/all || test ! -s b.txt"  # before the work, nothing is built
        fields = f"- **Tests:**\n  - `{test}` — passes before and after: it is built\n" if id == "T1-02" else ""
        steps = [write(path, f"{path}\n")]
        return task(id, files=f"create `{path}`", criteria=criteria, after=after, steps=steps, fields=fields)

    both = built("T1-01", "a.txt", "none"), built("T1-02", "b.txt", "T1-01")
    project.plan([*both, making("T1-03", "c.txt", after="T1-02")])
    answer = run(project)
    assert answer.code == 0, answer.out


def test_a_check_that_a_later_task_replaces_is_declared_and_not_repeated(project: Project) -> None:
    """The plan diff and the report name it, and `prove` does not run it on the final commit."""
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    plan = place.read_text(encoding="utf-8")
    declared = plan.replace("- **Depends on:** T1-02\n", "- **Depends on:** T1-02\n- **Replaces:** T1-01/AC-1\n")
    place.write_text(declared.replace("T1-01/AC-1", "T1-04/AC-1"), encoding="utf-8")
    findings = project.json("check-plan", "1").data["findings"]
    assert [row["found"] for row in findings if row["code"] == "task.unknown-replaced"] == ["T1-04/AC-1"]
    place.write_text(declared, encoding="utf-8")
    assert project.json("check-plan", "1", "--diff").data["lines"] == ["T1-03: replaces + T1-01/AC-1"]
    assert project.json("amend", "1", "--from-file", "--yes").code == 0
    verified = project.json("verify-work", "1")
    assert (verified.code, verified.data["replaced"]) == (0, {"T1-01/AC-1": "T1-03"})
    assert "| replaced by T1-03 |" in project.read(".planning/phases/1/1-VERIFICATION.md")
    assert project.json("prove", "1").data["proven"]
