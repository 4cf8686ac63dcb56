"""Gates at the command line: their page, their levels, and what each of them stops (R-GATE-1, R-GATE-6, R-GIT-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.domain import agent
from idumb.domain.proof import gate_table
from tests.support import approvals
from tests.support.answer import Answer
from tests.support.plans import run
from tests.support.project import Project, making, task, write

PAGE = Path(__file__).parents[2] / "docs" / "gates.md"


def test_help_shows_the_gates_in_the_order_in_which_they_run(project: Project) -> None:
    """R-GATE-1."""
    rows = [[f"| `{row.name}`", row.stage, str(row.level), row.summary] for row in gate_table.ROWS]
    assert [line.split(" | ")[:4] for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")] == rows
    listed = project.quick("help", "gates").out
    assert all(row.name in listed and row.summary in listed for row in gate_table.ROWS)


def test_every_gate_and_role_accepts_a_level(project: Project) -> None:
    """R-GATE-1, R-GATE-6."""
    names = [*(row.name for row in gate_table.ROWS), *agent.ROLES]
    project.configure("gates:\n" + "".join(f"  {name}: {{level: 2}}\n" for name in names))
    assert project.quick("status", "--json").code == 0


def settings(project: Project, text: str) -> Answer:
    """The answer of `status` under a configuration that nobody has to commit."""
    (project.folder / ".idumb/config.yaml").write_text(text, encoding="utf-8")
    return project.quick("status", "--json")


def test_no_level_disables_the_gates_that_prove_the_work(project: Project) -> None:
    rows = [row for row in gate_table.ROWS if row.lowest]
    assert rows
    for row in rows:
        answer = settings(project, f"gates: {{{row.name}: {{level: {row.lowest - 1}}}}}\n")
        assert (answer.code, "because no setting disables it" in answer.error["message"]) == (3, True), row


@pytest.mark.nightly
@pytest.mark.parametrize(("level", "status"), [(0, "passed"), (1, "partial")])
def test_a_contradiction_is_reported_at_level_0_and_leaves_the_phase_unverified_at_level_1(
    project: Project, level: int, status: str
) -> None:
    """R-GATE-2: T1-01 promises a name that T1-02 removes undeclared."""
    project.configure(f"gates: {{agreement: {{level: {level}}}}}\n")
    made, gone = (write("a.py", "def load(): ...\n"),), (write("a.py", "LIMIT = 1\n"),)
    promise = "- **Symbols:** add load\n"
    tasks = [
        task("T1-01", files="create `a.py`", check="test -s a.py", steps=made, fields=promise),
        task("T1-02", files="modify `a.py`", check="test -s a.py", steps=gone, after="T1-01"),
    ]
    project.plan(tasks)
    answer = run(project)
    assert answer.code == (0 if status == "passed" else 1)
    words = "T1-01 declares that it adds load in a.py, and T1-02 removed it undeclared"
    data = answer.data["verification"]
    assert (data["status"], words in data.get("open", []), words in data["causes"]) == (status, level == 0, level == 1)
    assert words in project.read(".planning/phases/1/1-VERIFICATION.md")


def test_level_2_blocks_the_approval_of_a_plan_that_shows_that_a_gate_cannot_hold(project: Project) -> None:
    """R-GATE-1, R-GATE-2: at level 1 the same plan is approved, with warnings."""
    fields = "- **Change:** preserving\n- **Limits:** files 1\n"
    symbols = "- **Symbols:** add `greet`\n"
    files, both = "create `a.py`, create `b.py`", (write("a.py", "A = 1\n"), write("b.py", "B = 1\n"))
    project.plan([task("T1-01", files=files, check="nowhere-at-all --help", fields=fields + symbols, steps=both)])
    codes = {"limit.exceeded", "change.contradiction", "check.no-program"}
    for level, severity in ((1, "warning"), (2, "error")):
        project.configure(
            f"gates: {{size: {{level: {level}}}, change-class: {{level: {level}}}, criteria: {{level: {level}}}}}\n"
        )
        checked = project.quick("check-plan", "1", "--json")
        assert {f["code"]: f["severity"] for f in checked.data["findings"] if f["code"] in codes} == dict.fromkeys(
            codes, severity
        )
        answer = project.json("approve", "1", *(("--hash", checked.data["contract_hash"]) if level == 1 else ()))
        assert answer.code == (0 if level == 1 else 3)


MISSING = "nowhere-at-all"


def test_level_2_blocks_approval_and_run_for_what_is_missing_now(project: Project) -> None:
    """R-GATE-1: what `check-plan` refuses, nothing approves or runs. A program in three places, and a file."""
    tests = f"- **Tests:**\n  - `{MISSING}` — fails before, passes after: it works\n"
    project.configure(
        "builder: me\nbindings: {me: {adapter: human}}\n"
        "gates: {conditions: {level: 2}, ledger: {level: 2}, test-intent: {level: 2}, invariants: {level: 2}}\n"
    )
    project.plan(
        [
            task("T1-01", check="test -s a.txt", fields=f"- **Preconditions:** command `{MISSING}`\n{tests}"),
            task("T1-02", files="modify `gone.txt`", check="test -s a.txt"),
        ],
        head=f"invariants: [{{id: INV-1, text: it works, check: {MISSING}}}]\n",
    )
    checked = project.quick("check-plan", "1", "--json")
    codes = sorted(f["code"] for f in checked.data["findings"] if f["severity"] == "error")
    assert (checked.code, codes) == (3, ["check.no-program"] * 3 + ["path.missing"]), checked
    for command in (
        ("approve", "1"),
        ("execute-phase", "1", "--approve", "0" * 64),
        ("execute-phase", "1", "--dry-run"),
    ):
        answer = project.quick(*command, "--json")
        assert (answer.code, answer.error["code"]) == (3, "plan.invalid"), answer
        assert codes[0] in answer.out


NON_GOAL = "non_goals: [{id: NG-1, text: no other docs, paths: [docs]}]\n"


def beside_a_non_goal(project: Project) -> None:
    both = [write("a.txt", "a\n"), write("docs/b.txt", "b\n")]
    made = task("T1-01", files="create `a.txt`, create `docs/b.txt`", check="test -s a.txt", steps=both)
    project.plan([made], head=NON_GOAL)


WORDS = "docs/b.txt: created, which the non-goal NG-1 excludes: no other docs"


@pytest.mark.nightly
@pytest.mark.parametrize(("choice", "status"), [("yes", "completed"), ("no", "failed")])
def test_a_guided_plan_asks_about_a_changed_non_goal(project: Project, choice: str, status: str) -> None:
    """R-GATE-3: the reason is in the question, in `show` and in the report."""
    beside_a_non_goal(project)
    answer = run(project, "--max-attempts", "1")
    assert (answer.code, project.statuses()) == (5, {"T1-01": "waiting"}), answer
    (question,) = project.quick("decisions", "--json").data["decisions"]
    assert question["what"] == "T1-01 changed docs/b.txt, which the plan excludes"
    assert WORDS in project.quick("decisions").out
    assert WORDS in project.quick("show", "T1-01").out
    assert project.quick("decide", question["id"], choice).code == 0
    project.quick("resume", "1", "--max-attempts", "1", "--no-verify")
    assert project.statuses() == {"T1-01": status}
    assert WORDS in project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")


def test_a_strict_plan_fails_a_task_that_changed_a_non_goal(project: Project) -> None:
    """R-GATE-3, R-GATE-6: by default."""
    beside_a_non_goal(project)
    answer = approvals.strict(project, "--no-verify")
    assert (answer.code, WORDS in answer.data["tasks"][0]["reason"]) == (1, True), answer


def test_an_informational_gate_reports_an_exceeded_limit(project: Project) -> None:
    """R-GATE-6, R-GATE-1, R-RUN-3: how strict it is; the limits of the plan hold for a task without its own."""
    two = task(
        "T1-01",
        files="create `a.txt`, create `b.txt`",
        check="test -s b.txt",
        steps=(write("a.txt", "a\n"), write("b.txt", "b\n")),
        fields="- **Limits:** files 1\n",
    )
    long = task("T1-02", files="create `c.txt`", steps=(write("c.txt", "a\nb\nc\n"),))
    project.plan([two, long], head="limits: {lines: 2}\n")
    exceeded = project.execute("--max-attempts", "1")
    assert ["limit files failed" in exceeded.data["tasks"][0]["reason"],
            "limit lines failed" in exceeded.data["tasks"][1]["reason"]] == [True, True]  # fmt: skip
    project.configure("gates: {size: {level: 0}}\n")
    assert project.execute("--force", "--no-verify").code == 0
    evidence = project.json("show", "T1-01").data["attempts"][-1]["evidence"]
    assert [(e["subject"], e["result"], e.get("level")) for e in evidence if "limit" in e["subject"]] == [
        ("limit files", "failed", 0)
    ]


OTHERS = [role for role in agent.ROLES if role != agent.VALIDATOR]


def test_every_role_accepts_a_level_and_an_informational_validator_blocks_nothing(project: Project) -> None:
    """R-GATE-6: it is shown at lock-in, and a run is locked under it. Level 0 is only reported."""
    levels = "".join(f"  {role}: {{level: 2}}\n" for role in OTHERS)
    reviewer = "{adapter: command, argv: [sh, -c, 'echo not good enough; exit 1']}"
    project.configure(
        f"validator: reviewer\nbindings: {{reviewer: {reviewer}}}\ngates:\n  validator: {{level: 0}}\n{levels}"
    )
    project.plan([making("T1-01", "a.txt")])
    answer = project.execute("--no-verify")
    assert answer.code == 0, answer
    for role in OTHERS:
        time = None if role == agent.BUILDER else 60.0
        assert {"name": role, "kind": "role", "level": 2, "timeout": time} in answer.data["lock_in"]["levels"]
    evidence = project.json("show", "T1-01").data["attempts"][0]["evidence"]
    assert [(e["subject"], e["result"], e.get("level")) for e in evidence] == [
        ("AC-1", "passed", None),
        ("validator reviewer", "failed", 0),
    ]


SOURCE = "def slugify():\n    pass\n\n\ndef other():\n    pass\n"


def _making(id: str, path: str, content: str, symbols: str = "") -> str:
    fields = f"- **Symbols:** {symbols}\n" if symbols else ""
    return task(id, files=f"create `{path}`", steps=(write(path, content),), fields=fields)


def test_an_undeclared_symbol_and_a_missing_one_fail_the_task_and_are_named(project: Project) -> None:
    first = _making("T1-01", "slug.py", SOURCE, "add slugify")
    project.plan([first, _making("T1-02", "more.py", SOURCE, "add slugify, other, third")])
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1
    reasons = [row["reason"] for row in answer.data["tasks"]]
    assert "the symbol other in slug.py was added and is not declared" in reasons[0]
    assert "the symbol third was declared (add third), but nothing did that" in reasons[1]
    shown = project.quick("show", "T1-01")
    assert "undeclared: added symbol other in slug.py, declared nothing" in shown.out
    assert "\n  added symbol slugify in slug.py, as declared\n" in shown.out
    assert "--on-deviation" not in shown.out


def test_symbols_are_in_checkpoint_and_summary_declared_or_not_and_a_language_that_is_not_judged_is_named(
    project: Project,
) -> None:
    """R-GATE-4: where no symbol is declared nothing fails, and show, summary and checkpoint name what was added."""
    tasks = [
        _making("T1-01", "slug.py", SOURCE, "add slugify, other"),
        _making("T1-02", "free.py", SOURCE),
        _making("T1-03", "slug.lua", "function slugify() end\n", "add slugify"),
    ]
    project.plan(tasks)
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer
    checkpoint = project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    assert "symbol `slugify` in `slug.py`" in checkpoint
    assert "added slugify in slug.py" in checkpoint.split("---")[1]
    summary = project.read(answer.data["summary"])
    assert "added other in slug.py" in summary
    assert "added other in free.py" in summary
    assert "added slugify in free.py" in project.read(".idumb/brain/execution/1/checkpoint-T1-02.md")
    assert "recorded: added symbol other in free.py" in project.quick("show", "T1-02").out
    rows = project.quick("show", "T1-02", "--json").data["attempts"][-1]["ledger"]
    assert [row["status"] for row in rows if "symbol" in row] == ["recorded", "recorded"]
    assert "not judged" in project.quick("show", "T1-03").out
