"""R-GIT-5 on the command line: a symbol too many or one missing fails the task, and is seen wherever files are."""

from __future__ import annotations

from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task, write

SOURCE = "def slugify():\n    pass\n\n\ndef other():\n    pass\n"


def _run(sandbox: GitSandbox, path: str, content: str, symbols: str) -> tuple[Project, Answer]:
    sandbox.write("README.md", "# A project\n")
    sandbox.commit("first")
    project = Project(sandbox, sandbox.root)
    assert project.quick("init").code == 0
    project.configure("run:\n  max_attempts: 1\n")
    steps, fields = (write(path, content),), f"- **Symbols:** {symbols}\n" if symbols else ""
    project.plan([task("T1-01", files=f"create `{path}`", steps=steps, fields=fields)])
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project, project.quick("execute-phase", "1", "--approve", consent, "--json")


def test_an_undeclared_symbol_fails_the_task_and_is_named(sandbox: GitSandbox) -> None:
    project, answer = _run(sandbox, "slug.py", SOURCE, "add slugify")
    assert answer.code == 1
    assert "the symbol other in slug.py was added and is not declared" in answer.data["failure"]["error"]
    shown = project.quick("show", "T1-01")
    assert "undeclared: added symbol other in slug.py, declared nothing" in shown.out
    assert "added symbol slugify in slug.py, as declared" in shown.out
    assert "--on-deviation" not in shown.out


def test_a_missing_declared_symbol_fails_the_task(sandbox: GitSandbox) -> None:
    _, answer = _run(sandbox, "slug.py", SOURCE, "add slugify, other, third")
    assert answer.code == 1
    assert "the symbol third was declared (add third), but nothing did that" in answer.data["failure"]["error"]


def test_declared_symbols_are_in_checkpoint_and_summary(sandbox: GitSandbox) -> None:
    project, answer = _run(sandbox, "slug.py", SOURCE, "add slugify, other")
    assert answer.code == 0, answer
    checkpoint = project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    assert "symbol `slugify` in `slug.py`" in checkpoint
    assert "added slugify in slug.py" in checkpoint.split("---")[1]
    assert "added other in slug.py" in project.read(answer.data["summary"])


def test_an_unsupported_language_is_reported_as_not_judged(sandbox: GitSandbox) -> None:
    project, answer = _run(sandbox, "slug.lua", "function slugify() end\n", "add slugify")
    assert answer.code == 0, answer
    assert "not judged" in project.quick("show", "T1-01").out


def test_without_declared_symbols_the_record_names_what_every_file_added(sandbox: GitSandbox) -> None:
    """R-GATE-4: no symbol is declared, so nothing fails, and show, summary and checkpoint name both."""
    project, answer = _run(sandbox, "slug.py", SOURCE, "")
    assert answer.code == 0, answer
    assert "symbols of slug.py: added other, slugify" in project.quick("show", "T1-01").out
    assert "added other in slug.py" in project.read(answer.data["summary"])
    assert "added slugify in slug.py" in project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    rows = project.json("show", "T1-01").data["attempts"][-1]["ledger"]
    assert [row["status"] for row in rows if "symbol" in row] == ["recorded", "recorded"]
