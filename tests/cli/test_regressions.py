"""What an earlier task was proven by must stay true: nothing is built on a break unnoticed (R-RUN-13)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from idumb.app.engine import regressions
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, edit, making, shell, task, write

ONE_LINE = "test $(wc -l < a.txt) = 1"
BREAKS = edit("a.txt", "one\n", "one\ntwo\n")


def first(check: str = ONE_LINE) -> str:
    return task("T1-01", files="create `a.txt`", check=check, steps=[write("a.txt", "one\n")])


def second(step: dict[str, Any] = BREAKS) -> str:
    return task("T1-02", files="modify `a.txt`", check="grep -q two a.txt", after="T1-01", steps=[step])


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
    assert asked["what"] == "T1-02 broke the work of T1-01: T1-01 AC-1 fails"
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


def test_a_repair_by_hand_withdraws_the_question(project: Project) -> None:
    project.repo.write_all({"a.txt": "one and two\n"})
    project.repo.commit("repair", "a.txt")
    assert project.quick("resume", "1", "--no-verify", "--json").code == 0
    assert project.quick("decisions", "--json").data["decisions"] == []


def test_what_was_committed_between_the_tasks_is_no_task_s_fault(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox)
    failing = task("T1-02", files="create `b.txt`", check="test -s c.txt", after="T1-01", steps=[write("b.txt", "b\n")])
    project.plan([first(), failing])
    run(project, "--max-attempts", "1", "--no-verify")
    project.repo.write_all({"a.txt": "one\ntwo\n"})
    project.repo.commit("mine", "a.txt")
    answer = project.quick("resume", "1", "--retry-failed", "--max-attempts", "1")
    assert (
        answer.err.count("T1-01 AC-1 passed when the task was done and now fails, because of what was committed") == 1
    )
    assert project.statuses() == {"T1-01": "completed", "T1-02": "failed"}
    assert project.quick("decisions", "--json").data["decisions"][0]["kind"] == "exhausted"


def test_a_commit_that_is_gone_only_means_that_the_checks_run_again(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user may squash it away, and git then removes it."""
    project = projects.create(sandbox)
    check = f"echo x >> {tmp_path}/runs && test -s a.txt"
    failing = task("T1-02", files="create `b.txt`", check="test -s c.txt", after="T1-01", steps=[write("b.txt", "b\n")])
    project.plan([first(check), failing])
    assert run(project, "--max-attempts", "1").code == 1
    (gone,) = project.repo.git("log", "--format=%H", "-1", "--", "a.txt").split()
    project.repo.git("reset", "-q", "--soft", "HEAD~1")
    project.repo.git("commit", "-qm", "squashed")
    project.repo.write_all({"c.txt": "c\n"})
    project.repo.commit("c", "c.txt")
    tree_of = GitHistory.tree_of

    def without(self: GitHistory, commit: str | None) -> str:
        if commit == gone:
            raise KeyError(commit)
        return tree_of(self, commit)

    monkeypatch.setattr(GitHistory, "tree_of", without)
    assert project.quick("resume", "1", "--retry-failed", "--no-verify", "--json").code == 0
    assert (tmp_path / "runs").read_text(encoding="utf-8").count("x") == 2


def test_the_task_that_broke_it_is_found_among_several(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    project = projects.create(sandbox)
    two, four = (making(f"T1-0{n}", f"{n}.txt", after=f"T1-0{n - 1}") for n in (2, 4))
    breaks = task("T1-03", files="modify `a.txt`", check="grep -q two a.txt", after="T1-02", steps=[BREAKS])
    failing = task("T1-05", files="create `b.txt`", check="test -s z", after="T1-04", steps=[write("b.txt", "b\n")])
    project.plan([first(), two, breaks, four, failing])
    with monkeypatch.context() as earlier:  # as if the runs were killed each time before the checks ran again
        earlier.setattr(regressions, "find", lambda _: None)
        assert run(project, "--max-attempts", "1", "--no-verify").code == 1
    assert project.quick("resume", "1", "--retry-failed", "--json").code == 5
    assert question(project)["what"].startswith("T1-03 broke")


def test_an_accepted_test_no_longer_fails_the_phase(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox)
    fields = f"- **Tests:**\n  - `{ONE_LINE}` — fails before, passes after: it has one line\n"
    tested = task(
        "T1-01", files="create `a.txt`", check="test -s a.txt", steps=[write("a.txt", "one\n")], fields=fields
    )
    project.plan([tested, second(), making("T1-03", "c.txt", after="T1-02")])
    run(project)
    assert question(project)["what"] == "T1-02 broke the work of T1-01: T1-01 test 1 fails"
    assert project.quick("decide", question(project)["id"], "accept").code == 0
    ended = project.quick("resume", "1", "--json")
    assert ended.code == 0, ended.out
    assert [words.partition(",")[0] for words in ended.data["verification"]["open"]] == ["T1-01 test 1 failed"]


def test_what_takes_too_long_between_tasks_runs_at_the_end(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regressions, "_allowance", lambda _: -1.0)
    project = projects.create(sandbox)

    def counted(n: int) -> str:
        check = f"echo {n} >> {tmp_path}/runs && test -s {n}.txt"
        return task(f"T1-0{n}", files=f"create `{n}.txt`", check=check, steps=[write(f"{n}.txt", "x\n")])

    project.plan(map(counted, (1, 2, 3, 4)))
    answer = project.quick("execute-phase", "1", "--approve", project.approval())
    assert answer.code == 0
    assert answer.err.count("no time to repeat the checks") == 1
    # Each with its task and at the end; of those that wait, one in each round, the longest waiting first.
    assert (tmp_path / "runs").read_text(encoding="utf-8").split() == list("1213241234")


@pytest.mark.parametrize(
    ("configuration", "count"),
    [("checks: {regression: end}\n", 2), *seed.one_on_a_push([("", 3), ("run: {workspace: clone}\n", 3)], "places")],
)
def test_a_check_runs_again_only_after_a_change(
    sandbox: GitSandbox, tmp_path: Path, configuration: str, count: int
) -> None:
    """With its task, after T1-02 and at the end, but not after T1-03, which changes nothing."""
    project = projects.create(sandbox)
    project.configure(configuration)
    log = tmp_path / "runs"
    nothing = task("T1-03", files="none", check="true", after="T1-02", steps=[shell("true")])
    check = f"echo x >> {log} && test -s a.txt"
    project.plan(
        [first(check), making("T1-02", "b.txt", after="T1-01"), nothing, making("T1-04", "d.txt", after="T1-03")]
    )
    assert run(project).code == 0
    assert log.read_text(encoding="utf-8").count("x") == count


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


def test_without_commits_the_files_are_compared_only_after_a_task_that_changed_what_a_check_reads(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before T1-02, because nothing is known yet, and before T1-04, because T1-03 changed a.txt."""
    project = projects.create(sandbox)
    project.configure("git: {commit: none}\n")
    two = edit("a.txt", "one", "two")
    breaks = task("T1-03", files="modify `a.txt`", check="grep -q two a.txt", after="T1-02", steps=[two])
    others = making("T1-02", "b.txt", after="T1-01"), making("T1-04", "d.txt", after="T1-03")
    project.plan([first("grep -q one a.txt"), others[0], breaks, others[1]])
    scan, scans = GitTrees.scan, list[tuple[str, ...]]()

    def counted(trees: GitTrees, also: Iterable[str] = ()) -> str:
        scans.append(tuple(also))
        return scan(trees, scans[-1])

    monkeypatch.setattr(GitTrees, "scan", counted)
    assert run(project, "--no-verify").code == 5
    assert question(project)["what"].startswith("T1-03 broke the work of T1-01: T1-01 AC-1 fails")
    assert scans.count(()) == 2


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


def test_a_check_that_fails_only_once_breaks_nothing(sandbox: GitSandbox, tmp_path: Path) -> None:
    project = projects.create(sandbox)
    check = f"echo x >> {tmp_path}/runs && test $(wc -l < {tmp_path}/runs) != 2"
    project.plan([first(check), making("T1-02", "b.txt", after="T1-01"), making("T1-03", "c.txt", after="T1-02")])
    assert run(project, "--no-verify").code == 0


def test_an_editor_cannot_start_a_task_on_a_break(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox)
    last = making("T1-03", "c.txt", after="T1-02", fields="- **Builder:** editor\n")
    project.plan([first(), second(), last])
    run(project)
    answer = project.quick("start", "T1-03", "--json")
    assert answer.code == 5, answer.out
    assert question(project)["what"].startswith("T1-02 broke")
