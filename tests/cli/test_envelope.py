"""The environment of attempts: each part is shown, compared between attempts, and locked in (R-ENV-1, R-ENV-2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.envelopes import BUILDER, CONFIG, built, differing, kinds, parts, rewrite, shown
from tests.support.plans import run
from tests.support.project import Project, making


@pytest.fixture
def program(tmp_path: Path, project: Project) -> Path:
    """A builder outside the repository that makes TASK.txt, and a configuration that names it."""
    executable = tmp_path / "coder"
    rewrite(executable, BUILDER)
    project.configure(CONFIG.format(program=executable))
    return executable


def test_each_part_is_shown_with_the_text_that_was_hashed(project: Project, program: Path) -> None:
    """R-ENV-1, R-OPS-1: model, prompt template, context, toolchain, tools, rules and configuration."""
    context = "- **Preconditions:**\n  - context `README.md`\n"
    project.plan([built("T1-01", fields=context), making("T1-02", "b.txt", fields=context)])
    assert run(project, "--no-verify").code == 0
    envelope = shown(project, "T1-01")
    by_name = parts(envelope)
    assert (envelope["task"], envelope["attempt"], envelope["builder"]) == ("T1-01", 1, "coder")
    assert by_name["model"]["value"] == "small"
    assert "$acceptance" in by_name["prompt"]["source"]
    assert json.loads(by_name["program"]["source"])["argv"] == [str(program), "--model", "small"]
    assert str(program) in json.loads(by_name["program"]["source"])["files"]
    assert json.loads(by_name["context"]["source"]) == {"README.md": project.repo.git("rev-parse", "HEAD:README.md")}
    assert set(by_name["tools"]["value"]) == {"git", "python"}
    assert json.loads(by_name["rules"]["source"])[1]["name"] == "validator"
    assert json.loads(by_name["configuration"]["source"])["builder"] == "coder"
    assert by_name["policy"]["absent"] is True
    output = project.quick("show", "t1-01", "--envelope").out
    assert "  model:           small\n" in output
    assert "  policy:          none\n" in output
    assert set(differing(project, "T1-01", "T1-02")) == {"adapter", "program", "model", "binding", "prompt"}


def test_lock_in_shows_checks_levels_and_confidence(project: Project) -> None:
    """R-GATE-6: the lock shows a confidence score and its parts."""
    criteria = "  - [ ] it is there — check: `test -s a.txt`\n  - [ ] it reads well — opinion\n"
    project.plan([making("T1-01", "a.txt", criteria=criteria)])
    answer = project.quick("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    assert "Locked in: confidence 0." in answer.err
    assert "1 of 2 criteria and tests are proven by commands" in answer.err
    (locked,) = kinds(project, "run.locked")
    assert 0 < locked["confidence"] < 1
    assert {part["name"] for part in locked["parts"]} == {
        "checks", "proofs", "coverage", "files", "reversible", "agents"
    }  # fmt: skip
    assert {rule["name"]: rule["level"] for rule in locked["levels"]} == {"size": 1, "validator": 1}
    begun = [e["kind"] for e in project.events("1") if e["kind"] in {"run.locked", "attempt.started"}]
    assert begun[0] == "run.locked"
