"""What passes before the work does not show that it was done, and what was proven stays true (R-RUN-3, R-RUN-13).

What checks judge for each way to commit: the table of `docs/what-proof-means.md`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from idumb.app.attempt import task_checks
from tests.support import approvals, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, edit, making, task, write

DONE = "test -s a.txt"


def execute(project: Project, *flags: str) -> Answer:
    return project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify", *flags, "--json")


def strict(project: Project) -> Answer:
    return approvals.strict(project, "--max-attempts", "1", "--no-verify")


def built_when(project: Project, monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    """Let the builder of `a.txt` wait for a condition of `test`, and nobody for controls after it."""
    monkeypatch.setattr(task_checks, "LONGEST_CONTROLS", 0.0)
    project.built_by(f"until [ {condition} ]; do :; done; echo one > a.txt")


def criteria(*lines: str) -> str:
    return "".join(f"  - [ ] {line}\n" for line in lines)


def controls(project: Project) -> dict[str, str]:
    """Return the recorded control of each check of the last attempt."""
    (*_, last) = project.quick("show", "T1-01", "--json").data["attempts"]
    return {row["subject"]: row["control"] for row in last["evidence"] if "control" in row}


def summary(project: Project) -> str:
    return project.read(".planning/phases/1/1-SUMMARY.md")


def test_a_guided_task_completes_and_the_summary_names_a_check_that_passed_before(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    built_when(project, monkeypatch, f"-e {begun}")
    fields = f"- **Verify:** `{DONE}`, `touch {begun}`\n"
    project.plan([task("T1-01", files="create `a.txt`", criteria=criteria("it holds — check: `true`"), fields=fields)])
    assert execute(project).code == 0
    recorded = controls(project)
    assert (recorded["AC-1"], recorded["verify 1"]) == ("passed", "failed")
    assert "Passed before the work, and so does not show that the work was done: AC-1" in summary(project)


def test_what_passed_before_is_named_although_a_hook_changed_the_work(project: Project) -> None:
    """Then the checks run once more, on the commit."""
    steps = [write("a.txt", "one\n")]
    project.plan([task("T1-01", files="create `a.txt`", criteria=criteria("it holds — check: `true`"), steps=steps)])
    project.repo.write(".git/hooks/pre-commit", HOOK, mode=0o755)
    assert execute(project).code == 0
    assert project.read("a.txt") == "one\nhooked\n"
    assert "does not show that the work was done: AC-1" in summary(project)


def test_a_strict_task_does_not_complete_if_a_criterion_was_proven_before(project: Project) -> None:
    lines = ("a — check: `true`", f"b — check: `{DONE}`", "c — keeps: `test -e README.md`")
    steps = [write("a.txt", "one\n")]
    project.plan([task("T1-01", files="create `a.txt`", criteria=criteria(*lines), steps=steps)])
    answer = strict(project)
    assert answer.code == 1
    assert project.statuses() == {"T1-01": "ready"}
    assert "AC-1 passed before the work too, and so does not show that it was done" in answer.out
    assert "keeps:" in answer.out
    assert "a.txt" not in project.repo.git("ls-files")


def test_a_strict_task_completes_if_each_criterion_depends_on_the_work_or_keeps_a_property(project: Project) -> None:
    lines, fields = (
        (f"a — check: `{DONE}`", "b — keeps: `test -e README.md`", "c — verify"), f"- **Verify:** `true`, `{DONE}`\n"
    )  # fmt: skip
    steps = [write("a.txt", "one\n")]
    project.plan([task("T1-01", files="create `a.txt`", criteria=criteria(*lines), fields=fields, steps=steps)])
    assert strict(project).code == 0
    assert "failed" in controls(project).values()


@pytest.mark.nightly
def test_without_controls_a_strict_task_completes_and_its_evidence_is_weaker(project: Project) -> None:
    project.configure("checks: {control: off}\n")
    project.plan([task("T1-01", files="create `a.txt`", steps=[write("a.txt", "one\n")])])
    assert strict(project).code == 0
    (attempt,) = project.quick("show", "T1-01", "--json").data["attempts"]
    assert [row["weaker"] for row in attempt["evidence"]] == [
        ["nothing shows whether it passed before the work (checks.control: off)"]
    ]


def runs_checks(project: Project) -> Answer:
    return project.quick("check-plan", "1", "--run-checks", "--json")


def passed_before(answer: Answer) -> list[tuple[str, int, str]]:
    findings = [f for f in answer.data["findings"] if f["code"] == "check.passed-before"]
    return [(f["severity"], f["line"], f["message"]) for f in findings]


def test_checks_of_a_plan_run_only_with_consent(project: Project, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    project.plan([making("T1-01", "a.txt", fields=f"- **Verify:** `touch {ran}`\n")])
    answer = runs_checks(project)
    assert (answer.code, answer.error["code"], ran.exists()) == (4, "consent.missing", False)
    assert project.quick("check-plan", "1", "--json").code == 0


def test_check_plan_finds_checks_that_pass_before_the_work(project: Project) -> None:
    lines = ("a — check: `true`", f"b — check: `{DONE}`", "c — keeps: `test -e README.md`", "d — verify")
    project.built_by("true")
    one = task(
        "T1-01",
        files="create `a.txt`",
        criteria=criteria(*lines),
        fields="- **Verify:** `true`, `test -e README.md`, `echo`\n",
    )
    two = task(
        "T1-02", files="create `b.txt`", criteria=criteria("e — verify"), fields=f"- **Verify:** `true`, `{DONE}`\n"
    )
    path = project.plan([one, two])
    assert project.quick("approve", "1", "--hash", project.contract_hash()).code == 0
    project.repo.write("a.txt", "not committed\n")
    text = path.read_text().splitlines()
    words = "passes before the work, and so does not show that the work was done."
    expected = [
        ("warning", text.index("  - [ ] a — check: `true`") + 1, f"T1-01: AC-1 {words}"),
        ("warning", text.index("  - [ ] d — verify") + 1, f"T1-01: AC-4 {words}"),
    ]
    answer = runs_checks(project)
    assert (answer.code, passed_before(answer)) == (0, expected)
    assert {row["command"]: row["result"] for row in answer.data["ran"]}[DONE] == "failed"
    assert project.events() == []


def test_check_plan_finds_invariants_that_do_not_hold_before_the_work(project: Project) -> None:
    """R-GATE-1: it needs consent, so it blocks no approval by itself; at level 2 the finding is an error."""
    head = "invariants:\n  - {id: INV-1, text: a.txt is there, check: test -e a.txt}\n"
    head += "  - {id: INV-2, text: it has a readme, check: test -e README.md}\n"
    project.plan([making("T1-01", "a.txt")], head=head)
    for level, code, severity in ((1, 0, "warning"), (2, 3, "error")):
        project.configure(f"gates: {{invariants: {{level: {level}}}}}\n")
        assert project.quick("approve", "1", "--hash", project.contract_hash()).code == 0
        answer = runs_checks(project)
        found = [(f["severity"], f["found"]) for f in answer.data["findings"] if f["code"] == "invariant.broken-before"]
        assert (answer.code, found) == (code, [(severity, "INV-1 failed")])


ONE_LINE = "test $(wc -l < a.txt) = 1"


def _done(sandbox: GitSandbox) -> Project:
    """T1-03 broke the work of T1-01, between two tasks that have nothing to do with it."""
    project = projects.create(sandbox)
    one = task("T1-01", files="create `a.txt`", check=ONE_LINE, steps=[write("a.txt", "one\n")])
    breaks = [edit("a.txt", "one\n", "one\ntwo\n")]
    three = task("T1-03", files="modify `a.txt`", check="grep -q two a.txt", after="T1-02", steps=breaks)
    project.plan([one, making("T1-02", "b.txt", after="T1-01"), three, making("T1-04", "d.txt", after="T1-03")])
    assert run(project).code == 1
    return project


building = prepared_project(_done)


def test_a_check_may_use_what_an_earlier_check_of_its_task_built(sandbox: GitSandbox) -> None:
    """After a later task and at the end, the checks of a task run together, also if another task has the same build."""
    building = projects.create(sandbox)

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
    building.plan([*both, making("T1-03", "c.txt", after="T1-02")])
    answer = run(building)
    assert answer.code == 0, answer.out


def test_a_check_that_a_later_task_replaces_is_declared_and_not_repeated(building: Project) -> None:
    """The plan diff and the report name it, and `prove` does not run it on the final commit."""
    place = building.folder / ".planning/phases/1/01-PLAN.md"
    plan = place.read_text(encoding="utf-8")
    declared = plan.replace("- **Depends on:** T1-02\n", "- **Depends on:** T1-02\n- **Replaces:** T1-01/AC-1\n")
    place.write_text(declared.replace("T1-01/AC-1", "T1-04/AC-1"), encoding="utf-8")
    findings = building.json("check-plan", "1").data["findings"]
    assert [row["found"] for row in findings if row["code"] == "task.unknown-replaced"] == ["T1-04/AC-1"]
    place.write_text(declared, encoding="utf-8")
    assert building.json("check-plan", "1", "--diff").data["lines"] == ["T1-03: replaces + T1-01/AC-1"]
    assert building.json("amend", "1", "--from-file", "--yes").code == 0
    verified = building.json("verify-work", "1")
    assert (verified.code, verified.data["replaced"]) == (0, {"T1-01/AC-1": "T1-03"})
    assert "| replaced by T1-03 |" in building.read(".planning/phases/1/1-VERIFICATION.md")
    assert building.json("prove", "1").data["proven"]


@dataclass(frozen=True, slots=True)
class Way:
    """One column: `heads` are the subjects of HEAD in the checks of two tasks; `hooks` may change the work."""

    settings: str
    heads: tuple[str, str] = ("plan", "Task T1-01")
    hooks: bool = True
    commits: int = 2


WAYS = {
    "`task`": Way(""),
    "`none`": Way("git: {commit: none}\n", ("plan", "plan"), hooks=False, commits=0),
}
SEES = (
    "git show -s --format=%s HEAD; git diff --cached --quiet HEAD && echo clean;"
    " test -e ignored.log && echo ignored; grep -q mine README.md && echo uncommitted; cat *.txt"
)
HOOK = "#!/bin/sh\nfor f in $(git diff --cached --name-only -- '*.txt'); do echo hooked >> $f; git add $f; done\n"


@pytest.mark.nightly
@pytest.mark.parametrize("name", seed.one_on_a_push([*WAYS], "what checks judge"))
def test_what_checks_judge(sandbox: GitSandbox, name: str) -> None:
    way = WAYS[name]
    project = projects.create(sandbox, files={"README.md": "one\n", ".gitignore": "*.log\n"})
    script = project.folder.parent / "builder.sh"
    script.write_text("if test -e a.txt; then echo built > b.txt; else echo built > a.txt; fi\n")
    binding = f"bindings:\n  b: {{adapter: command, argv: [sh, {json.dumps(str(script))}]}}\n"
    project.plan(
        [
            task("T1-01", files="create `a.txt`", check=f"{SEES} && test -s a.txt"),
            task("T1-02", files="create `b.txt`", check=f"{SEES} && test -s b.txt", after="T1-01"),
        ]
    )
    project.configure(f"builder: b\n{way.settings}{binding}")
    sandbox.write(".git/hooks/pre-commit", HOOK, mode=0o755)
    sandbox.write_all({"ignored.log": "x\n", "README.md": "mine\n"})
    before = len(project.subjects())
    answer = run(project)
    assert answer.data["outcome"] == "complete", answer
    made = [subject for subject in project.subjects()[before:] if not subject.startswith("Phase 1: reports")]
    assert len(made) == way.commits
    for number, head in zip(("1", "2"), way.heads, strict=True):
        rows = [row["payload"] for row in project.events("--task", f"T1-0{number}", "--kind", "evidence.recorded")]
        assert {row["result"] for row in rows} == {"passed"}
        assert [row.get("weaker") for row in rows] == [None] * len(rows)
        saw = rows[0]["output"].splitlines()
        assert saw[0] == head
        assert not {"clean", "ignored", "uncommitted"} & set(saw)
        assert saw.count("built") == int(number)  # its work, and that of the finished tasks
        assert ("hooked" in rows[-1]["output"]) == way.hooks, rows  # proven once more, as committed
    for arguments in ((), ("T1-02",)):
        proven = project.quick("prove", "1", *arguments, "--json")
        assert {row["result"] for row in proven.data["tasks"]} == {"proven"}, proven
        assert any("no commit" in words for words in proven.object["warnings"]) == (way.commits == 0), proven
