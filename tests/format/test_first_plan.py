"""The plan template filled in for a user is valid with any roadmap text, and research hides nothing."""

from __future__ import annotations

from pathlib import Path

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from idumb.app.planning import new_tasks
from idumb.domain import wording
from idumb.domain.finding import ERROR
from idumb.domain.plans import new_task
from idumb.domain.plans.new_task import NewTask
from idumb.markdown import report_files
from idumb.markdown.plans import plan_parser
from idumb.system import shipped
from idumb.views import documents

TEMPLATE = (Path(__file__).resolve().parents[2] / "templates/phase-plan.md").read_text()
words = st.text(
    st.sampled_from("ab1 T-:#`*_<!>[]{}()|&\"'\\$\n\t\r\x00\x1b\u2028\u202e\ud800\ufeff—✓") | st.characters(),
    max_size=40,
).filter(lambda text: bool(wording.one_line(text)))
printable = words.map(lambda text: "".join(filter(str.isprintable, text)) or "true")


@settings(max_examples=30)
@given(title=words, goal=words, roadmap=words)
@example("T1-02: Two", "- [ ] T1-03 Three — check: `false`", "```\n---\ntype: plan\n---\n### T1-04: Four")
@example("$goal", "null", "<!-- never closed")
@example("Task 3: x", "~", "`````")
def test_the_template_is_a_plan_of_one_task_with_any_roadmap_text(title: str, goal: str, roadmap: str) -> None:
    """R-PLAN-10."""
    fields = {"phase": "1", "title": title, "goal": goal, "roadmap": roadmap, "builder": "human"}
    text = documents.first_plan(TEMPLATE, fields)
    parsed = plan_parser.parse(text.encode("utf-8", "surrogateescape"), ".planning/phases/1/01-PLAN.md")
    assert [f.message for f in parsed.findings if f.severity == ERROR] == []
    assert parsed.plan is not None
    assert [task.id for task in parsed.plan.tasks] == ["T1-01"]
    assert [c.command for t in parsed.plan.tasks for c in t.acceptance] == [None]


@settings(max_examples=30)
@given(title=words, goal=words, template=st.sampled_from(new_tasks.NAMES), check=printable)
@example("T1-02: Two", "- [ ] T1-03 Three — check: `false`", "bugfix", "grep -q '$x' `echo a`")
@example("$goal", "null", "docs", "``")
@example("a — check: x", "## Tasks", "refactor", "a\\n, b")
def test_new_tasks_are_written_as_given(title: str, goal: str, template: str, check: str) -> None:
    """R-PLAN-10: or the plan is refused; no word becomes another task, dependency or command."""
    task = NewTask(title, "create a.py, b.py", check)
    assume(new_task.problem(task) is None)
    text = shipped.template(f"plans/{template}.md")
    fields = {"phase": "1", "title": goal, "goal": goal, "requirement": goal, "builder": "human"}
    placed = new_task.placed([task, task], ["T1-01", "T1-02"], (), lambda _: False)
    written = documents.new_plan(text, fields, placed)
    parsed = plan_parser.parse(written.encode("utf-8", "surrogateescape"), ".planning/phases/1/01-PLAN.md")
    if parsed.plan is None:
        return
    assert [(t.id, t.depends_on) for t in parsed.plan.tasks] == [("T1-01", ()), ("T1-02", ("T1-01",))]
    assert {c.command for t in parsed.plan.tasks for c in t.acceptance} == {check.strip()}
    assert [[(c.verb, c.path) for c in t.files or ()] for t in parsed.plan.tasks] == [
        [("create", "a.py"), ("create", "b.py")]
    ] * 2


@settings(max_examples=30)
@given(body=words)
@example("---\ntype: research\nbundle: other\n---\nwords")
@example("<!-- obey -->\x1b[2J")
def test_research_is_read_as_written_and_hides_nothing(body: str) -> None:
    """R-ADAPT-4."""
    text = documents.research({"type": "research", "bundle": "ab" * 32, "model": None}, body)
    bundle, findings = report_files.research(text)
    assert bundle == "ab" * 32
    assert "<!--" not in findings
    assert "\x1b" not in text
    assert findings.strip() in text
