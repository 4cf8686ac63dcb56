"""`idumb execute-phase --ask`: everything prepared, nothing run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task

# It leaves its prompt outside of the repository, and does the work only when it is asked a second time.
SCRIPT = 'cat > "$HOME/prompt-$(ls "$HOME" | grep -c ^prompt)"; test -e "$HOME/prompt-1" && echo x > a.txt; true'


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.built_by(SCRIPT)
    project.plan(
        [task("T1-01", files="create `a.txt`", check="test -s a.txt"), making("T1-02", "b.txt", after="T1-01")]
    )
    return project


def ask(project: Project) -> list[dict[str, Any]]:
    answer = project.json("execute-phase", "1", "--ask")
    assert answer.code == 0, answer.out
    return list(answer.data["prepared"])


def test_the_shown_prompt_is_the_one_that_the_builder_gets(project: Project, home: Path) -> None:
    """R-ADAPT-2: for the first attempt, and for the one after a failure with its cause."""
    first = ask(project)
    assert project.execute("--max-attempts", "1").code == 1
    assert (home / "prompt-0").read_text(encoding="utf-8") == first[0]["prompt"]

    second = ask(project)[0]
    assert second["attempt"] == 2
    assert "test -s a.txt" in second["feedback"]
    assert project.resume("--retry-failed", "--no-verify").code == 0
    assert (home / "prompt-1").read_text(encoding="utf-8") == second["prompt"]
    assert ask(project) == []


def test_ask_mode_shows_the_program_and_runs_records_and_consents_to_nothing(project: Project, home: Path) -> None:
    """R-ADAPT-2."""
    before = sorted(str(p) for p in (*project.folder.rglob("*"), *home.rglob("*")))
    (shown,) = ask(project)
    assert (shown["id"], shown["agent"]["argv"][-1]) == ("T1-01", SCRIPT)
    assert project.quick("execute-phase", "1", "--ask").code == 0
    assert sorted(str(p) for p in (*project.folder.rglob("*"), *home.rglob("*"))) == before
    assert project.quick("execute-phase", "1", "--json").error["code"] == "consent.missing"


def test_what_would_run_something_is_refused(project: Project) -> None:
    for flags in (("--events",), ("--approve", "0" * 64), ("--branch", "b"), ("--dry-run",), ("--force",)):
        refused = project.quick("execute-phase", "1", "--ask", *flags)
        assert (refused.code, "--ask runs nothing" in refused.err) == (2, True), flags


def test_the_builder_gets_the_plan_s_assumptions_and_decisions(project: Project, home: Path) -> None:
    """R-RUN-4, R-ASK-3, R-PLAN-4."""
    fields = "- **Kind:** decision\n- **Options:**\n  - red: the warm one\n  - blue: the cold one\n"
    choosing = task("T1-01", criteria="  - [ ] chosen — human\n", fields=fields)
    built = task("T1-02", files="create `a.txt`", check="test -s a.txt", after="T1-01")
    project.plan([choosing, built], head="assumptions: [Paint is dry]\n")
    assert project.execute().code == 5
    (decision,) = project.json("decisions").data["decisions"]
    decide = ("decide", decision["id"], "blue", "--guidance", "as dark as can be")
    assert project.quick(*decide).code == 0
    assert project.resume("--max-attempts", "1").code == 1
    prompt = (home / "prompt-0").read_text(encoding="utf-8")
    assert "- Paint is dry" in prompt
    assert "blue (the cold one). as dark as can be" in prompt
