"""What an earlier task was proven by must stay true: nothing is built on a break unnoticed (R-RUN-13).

`unit/app/test_regressions.py` has what the engine decides alone.
"""

from __future__ import annotations

from typing import Any

import pytest

from idumb.app.engine import regressions
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, edit, making, shell, task, write

ONE_LINE = "test $(wc -l < a.txt) = 1"
BREAKS = edit("a.txt", "one\n", "one\ntwo\n")


def first() -> str:
    tests = "- **Tests:**\n  - `grep -c . a.txt | grep -qx 1` — fails before, passes after: it has one line\n"
    return task("T1-01", files="create `a.txt`", check=ONE_LINE, steps=[write("a.txt", "one\n")], fields=tests)


def second() -> str:
    return task("T1-02", files="modify `a.txt`", check="grep -q two a.txt", after="T1-01", steps=[BREAKS])


def _broken(sandbox: GitSandbox) -> Project:
    """T1-02 broke the work of T1-01, and the run waits."""
    project = projects.create(sandbox)
    project.plan([first(), second(), making("T1-03", "c.txt", after="T1-02")])
    answer = run(project)
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    return project


@pytest.fixture
def project(prepared: Prepared) -> Project:
    return prepared.get(_broken)


def question(project: Project) -> dict[str, Any]:
    (asked,) = project.quick("decisions", "--json").data["decisions"]
    assert asked["kind"] == "regression"
    return dict(asked)


def test_a_broken_check_stops_the_run_and_a_person_may_accept_it(project: Project) -> None:
    assert project.statuses() == {"T1-01": "completed", "T1-02": "completed", "T1-03": "ready"}
    asked = question(project)
    assert asked["what"] == "T1-02 broke the work of T1-01: T1-01 AC-1, T1-01 test 1 fail"
    assert asked["evidence"][0] == f"T1-01 AC-1 (failed): {ONE_LINE}"
    assert [choice["id"] for choice in asked["choices"]] == ["roll-back", "accept"]
    assert project.quick("resume", "1", "--json").code == 5
    assert project.quick("decide", question(project)["id"], "accept", "--guidance", "two lines now").code == 0
    ended = project.quick("resume", "1")
    assert ended.code == 0, ended.out
    assert "Verification passed" not in ended.out
    assert "Checks passed, not everything is verified" in ended.out
    assert "T1-01 AC-1 failed, and " in ended.out
    assert "T1-01 AC-1 failed, and " in project.read(".planning/phases/1/1-VERIFICATION.md")
    assert "T1-01 test 1 failed, and " in project.read(".planning/phases/1/1-VERIFICATION.md")


def test_a_roll_back_tells_the_next_builder_what_broke(project: Project) -> None:
    asked = question(project)
    answer = project.quick("decide", asked["id"], "roll-back", "--json")
    assert (answer.code, answer.data["result"]["tasks"]) == (0, ["T1-02"])
    assert project.read("a.txt") == "one\n"
    assert project.statuses()["T1-01"] == "completed"
    guided = project.events("--kind", "task.guided")[-1]
    assert (guided["task"], ONE_LINE in guided["payload"]["guidance"]) == ("T1-02", True)
    assert project.quick("decisions", "--json").data["decisions"] == []
    assert project.quick("resume", "1", "--json").code == 5  # its steps break it again
    assert question(project)["id"] != asked["id"]


def test_a_check_whose_inputs_are_known_runs_again_only_after_they_changed(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link may lead elsewhere, and attributes may change the bytes of every file."""
    project = projects.create(sandbox)

    def checked(number: int, path: str, command: str, step: dict[str, Any] | None = None) -> str:
        after = f"T1-0{number - 1}" if number > 1 else "none"
        steps = [step or write(path, "one\n")]
        return task(f"T1-0{number}", files=f"create `{path}`", check=command, after=after, steps=steps)

    project.plan(
        [
            checked(1, "docs/a.txt", "grep -rq one docs"),
            checked(2, "link", "test -s link", shell("ln -s docs/a.txt link")),
            checked(3, "b.txt", "test -s b.txt"),
            checked(4, ".gitattributes", "true", write(".gitattributes", "*.png binary\n")),
            checked(5, "docs/c.txt", "true"),
            checked(6, "d.txt", "true"),
        ]
    )
    rounds: list[list[str]] = []
    find, failures = regressions.find, regressions._failures

    def began(context: Any) -> str | None:
        rounds.append([])
        return find(context)

    def ran(context: Any, checks: Any, tree: str) -> Any:
        rounds[-1].append(checks[0].subject.partition(" ")[0])
        return failures(context, checks, tree)

    monkeypatch.setattr(regressions, "find", began)
    monkeypatch.setattr(regressions, "_failures", ran)
    assert run(project, "--no-verify").code == 0
    assert [sorted(tasks) for tasks in rounds] == [
        [],
        [],
        ["T1-02"],
        ["T1-01", "T1-02", "T1-03"],
        ["T1-01", "T1-02"],
    ], rounds


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


def test_an_editor_cannot_start_a_task_on_a_break(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox)
    last = making("T1-03", "c.txt", after="T1-02", fields="- **Builder:** editor\n")
    project.plan([first(), second(), last])
    run(project)
    answer = project.quick("start", "T1-03", "--json")
    assert answer.code == 5, answer.out
    assert question(project)["what"].startswith("T1-02 broke")
