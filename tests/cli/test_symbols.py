"""R-GIT-5 on the command line: a symbol too many or one missing fails the task, and is seen wherever files are."""

from __future__ import annotations

from tests.support.plans import run
from tests.support.project import Project, task, write

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
    assert "added symbol slugify in slug.py, as declared" in shown.out
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
    assert "symbols of free.py: added other, slugify" in project.quick("show", "T1-02").out
    rows = project.quick("show", "T1-02", "--json").data["attempts"][-1]["ledger"]
    assert [row["status"] for row in rows if "symbol" in row] == ["recorded", "recorded"]
    assert "not judged" in project.quick("show", "T1-03").out
