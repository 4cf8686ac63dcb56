"""Workflows that run: proven, rolled back, repeated and undone; and those that ship with idumb (R-PLAN-8)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from idumb.domain.plans.plan import Task
from idumb.markdown.plans import workflow_parser
from tests.cli.test_workflows import define, start, steps
from tests.crash.shapes import BRANCH
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project
from tests.support.seed import one_on_a_push

BRANCHES = """---
type: workflow
name: w
version: 1.0.0
description: An agent, a branch, and a step after it.
inputs: {word: text}
---

## All

### make: Make it

```yaml step
kind: agent
files: {create: [a.txt]}
acceptance: [{text: It is there, check: 'grep -q "$INPUT_WORD" a.txt'}]
outputs: {word: {type: text, file: a.txt}, size: integer}
```

### is-more: More?

```yaml step
kind: condition
if: steps.make.size > 3 and steps.make.word != ''
then: [more]
else: [less]
```

"""
BRANCHES += BRANCH.replace("more.lines", "{from: more.lines, default: 0}")
AGENT = 'echo "$INPUT_WORD" > a.txt; echo \'{"size": 5}\''
STATUSES = {"make": "completed", "is-more": "completed", "more": "completed", "less": "omitted", "last": "completed"}


def workflow_project(sandbox: GitSandbox, settings: str = "") -> Project:
    project = projects.create(sandbox)
    argv = json.dumps(["sh", "-c", AGENT])
    project.configure(f"builder: b\nbindings:\n  b: {{adapter: command, argv: {argv}}}\n{settings}")
    define(project, BRANCHES, "w")
    project.repo.write("mine.txt", "never committed\n")
    return project


def reported(project: Project) -> None:
    """What is shown of a run names the branch that it took; its checks see the inputs when they run again."""
    assert project.quick("prove", "W1").code == 0
    graph = project.quick("graph", "W1").out
    assert "(true: TW1-03, false: TW1-04)" in graph
    assert "omitted    TW1-04" in graph
    calls = project.quick("show", "W1", "--usage", "--json").data["calls"]
    assert {row["task"] for row in calls} == {"TW1-01", "TW1-02", "TW1-03", "TW1-05"}
    assert project.quick("audit", "verify").code == 0
    assert project.quick("audit", "workspace", "W1").code == 0
    assert "n1 -->|false| n3" in project.read(".planning/workflows/001-w/001-w-SUMMARY.md")


@pytest.mark.nightly
@pytest.mark.parametrize("settings", one_on_a_push(["", "git: {commit: none}\n"], "commits of workflows"))
def test_a_workflow_is_proven_rolled_back_repeated_and_undone(sandbox: GitSandbox, settings: str) -> None:
    """R-PLAN-8: under each policy of commits; the branch is chosen again the same."""
    project = workflow_project(sandbox, settings)
    refused = project.quick("workflow", "run", "w", "--input", "word=good", "--json")
    consent = ("--approve", refused.error["details"]["consent_hash"])
    if not settings:
        rehearsed = project.json("workflow", "run", "w", "--input", "word=good", "--dry-run", *consent)
        would = {row["task"] for row in rehearsed.data["dry_run"]["would_commit"]}
        assert would == {"TW1-01", "TW1-03", "TW1-05"}, rehearsed.out
    done = project.json("workflow", "run", "w", "--input", "word=good", *consent)
    assert done.code == 0, done.out
    assert steps(project) == STATUSES
    committed = project.repo.git("log", "--format=%s").splitlines()
    subjects = [] if settings else ["Use the number", "Add more", "Make it"]
    assert [s for s in committed if s in {"Make it", "Add more", "Use the number"}] == subjects
    if not settings:
        reported(project)

    assert project.json("rollback", "W1", "--to", "TW1-01", "--yes").code == 0
    assert (project.read("a.txt"), project.exists("sub.txt")) == ("good\n", False)
    assert steps(project) == {"make": "completed", "is-more": "ready", "more": "pending", "less": "pending",
                              "last": "pending"}  # fmt: skip
    again = project.json("resume", "W1", "--deterministic")
    assert again.code == 0, again.out
    assert (project.read("a.txt"), project.read("sub.txt")) == ("good\ngood\n", "2\n")
    assert steps(project) == STATUSES

    if not settings:
        assert project.json(*project.undoing()).code == 0
    assert project.json("rollback", "W1", "--to", "start", "--yes").code == 0
    assert (project.exists("a.txt"), project.exists("sub.txt")) == (False, False)
    assert project.read("mine.txt") == "never committed\n"


def test_a_failed_workflow_is_a_dead_letter_and_resumes_at_the_failed_step(sandbox: GitSandbox) -> None:
    """Completed steps are not repeated; later ones wait. The same workflow with the same inputs is the same run."""
    project = workflow_project(sandbox)
    allowed = project.folder.parent / "allowed"
    define(project, BRANCHES.replace('run: echo "$LINES"', f'retries: 0\nrun: test -e {allowed} && echo "$LINES"'), "w")
    failed = start(project, "w", "--input", "word=good")
    assert failed.code == 1
    letters = project.quick("dlq", "list", "--json").data["dead_letters"]
    assert ("TW1-05", "permanent") in [(letter["task"], letter["class"]) for letter in letters]
    assert len(project.quick("log", "W1", "--kind", "workflow_failed", "--json").data["events"]) == 1
    again = project.json("workflow", "run", "w", "--input", "word=good")
    assert (again.error["code"], again.data["run"]) == ("run.failed", failed.data["run"]), "it continues"
    allowed.touch()
    assert project.quick("dlq", "retry", "TW1-05").code == 0
    assert steps(project) == STATUSES
    started = project.quick("log", "W1", "--kind", "step_started", "--json").data["events"]
    assert sorted(event["task"] for event in started) == ["TW1-01", "TW1-02", "TW1-03", "TW1-05", "TW1-05"]
    assert project.quick("dlq", "list", "--json").data["dead_letters"] == []


TEMPLATES = Path(__file__).parents[2] / "templates/workflows"
CHANGES = "# Changes\n\n## Unreleased\n\n- It greets.\n\n## 1.0.0 (2020-01-01)\n\n- First.\n"


def created(sandbox: GitSandbox, files: Mapping[str, str], agent: str = "") -> Project:
    project = projects.create(sandbox, files=dict(files))
    if agent:
        argv = json.dumps(["sh", "-c", agent])
        project.configure(f"builder: agent\nbindings:\n  agent: {{adapter: command, argv: {argv}}}\n")
    return project


def answer(project: Project, choice: str) -> None:
    (question,) = project.json("decisions").data["decisions"]
    assert project.quick("decide", question["id"], choice).code == 0


@pytest.mark.nightly
def test_a_release_has_its_changes_its_version_a_persons_word_and_a_tag(sandbox: GitSandbox) -> None:
    """The tag is irreversible: it needs its own acceptance, and a person reads the changes first."""
    project = created(sandbox, {"CHANGELOG.md": CHANGES, "VERSION": "1.0.0\n"})
    arguments = ("release", "--input", "version=1.1.0")
    asked = project.quick("workflow", "run", *arguments, "--json").error["details"]
    assert not [line for line in asked["evidence"] if "does not exist" in line], "the other file is never written"
    approved = asked["contract_hash"]
    refused = project.quick("workflow", "run", *arguments, "--approve", approved, "--json")
    assert refused.error["code"] == "irreversible.not-accepted"
    accept = ("approve", "W1", "--hash", approved, "--accept-irreversible", refused.error["details"]["tasks"][0])
    assert project.quick(*accept).code == 0

    waits = project.json("workflow", "run", *arguments)
    assert waits.code == 5, waits.out
    assert project.read("VERSION") == "1.1.0\n"
    assert "## Unreleased\n\n## 1.1.0 (20" in project.read("CHANGELOG.md")
    assert project.read("CHANGELOG.md").endswith("\n- It greets.\n\n## 1.0.0 (2020-01-01)\n\n- First.\n")
    assert project.repo.git("tag", "--list") == ""

    answer(project, "yes")
    done = project.json("resume", "W1")
    assert done.code == 0, done.out
    assert project.repo.git("tag", "--list").strip() == "v1.1.0"
    assert project.repo.git("log", "-3", "--format=%s").splitlines() == [
        "Phase W1: reports of run 1", "Write the version", "Give the unreleased changes their version"
    ]  # fmt: skip
    assert done.data["next"] == ["idumb next"], "a rollback would be refused"
    assert [step for step, status in steps(project).items() if status == "omitted"] == ["edit-version"]
    back = project.quick("rollback", "W1", "--to", "start", "--yes", "--json")
    assert back.error["code"] == "rollback.irreversible"


def tasks(workflow: str) -> tuple[Task, ...]:
    plan = workflow_parser.parse((TEMPLATES / f"{workflow}.md").read_bytes(), f"{workflow}.md").plan
    assert plan is not None
    return plan.tasks


def test_a_release_changes_nothing_before_its_check() -> None:
    first, *others = tasks("release")
    assert (first.flow and first.flow.step, first.depends_on) == ("check", ())
    assert [task.id for task in others if not task.depends_on] == []


def scripted(sandbox: GitSandbox, workflow: str, step: str, **inputs: str) -> tuple[int, str]:
    """Exit code and errors of the script of one step, without an engine around it."""
    (script,) = (
        task.steps[0].arguments for task in tasks(workflow) if task.flow is not None and task.flow.step == step
    )
    given = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
    done = subprocess.run(
        ["sh", "-c", script["command"]], cwd=sandbox.root, env={**os.environ, **given}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_the_check_of_a_release_says_why_it_cannot_be_made(sandbox: GitSandbox) -> None:
    sandbox.commit_with({"CHANGELOG.md": CHANGES}, "first")
    sandbox.git("tag", "v1.0.0")
    for version, changes, words in (
        ("1.1", CHANGES, "the version must be three numbers"),
        ("1.0.0", CHANGES, "the tag v1.0.0 exists already"),
        ("1.1.0", CHANGES.replace("Unreleased", "Next"), "CHANGELOG.md has no section"),
        ("1.1.0", CHANGES.replace("- It greets.\n", ""), "CHANGELOG.md has no changes"),
    ):
        sandbox.write("CHANGELOG.md", changes)
        code, errors = scripted(sandbox, "release", "check", version=version)
        assert (code, words in errors) == (1, True), errors
    sandbox.write("CHANGELOG.md", CHANGES)
    assert scripted(sandbox, "release", "check", version="1.1.0") == (0, "")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", '[project]\nname = "x"\nversion = "1.0.0"\n[tool.x]\nversion = "9"\n'),
        ("package.json", '{\n  "name": "x",\n  "version": "1.0.0",\n  "private": true\n}\n'),
    ],
    ids=["pyproject.toml", "package.json"],
)
def test_a_release_replaces_the_first_version_of_a_file(sandbox: GitSandbox, file: str, text: str) -> None:
    sandbox.write_all({file: text, "CHANGELOG.md": CHANGES.replace("Unreleased", "[Unreleased]")})
    assert scripted(sandbox, "release", "edit-version", version="1.1.0", version_file=file) == (0, "")
    assert (sandbox.root / file).read_text() == text.replace("1.0.0", "1.1.0")
    assert scripted(sandbox, "release", "changelog", version="1.1.0") == (0, "")
    assert "## [Unreleased]\n\n## [1.1.0] - 20" in (sandbox.root / "CHANGELOG.md").read_text()


PINS = "a==1.0\nb==1.0\nb-extra==1.0\nc==1.0; python_version < '4' # why\n"
TEST = "test=! grep -q bad requirements.txt"


@pytest.mark.nightly
def test_dependencies_are_updated_one_by_one_with_tests_between(sandbox: GitSandbox) -> None:
    project = created(sandbox, {"requirements.txt": PINS})
    inputs = ("--input", TEST, "--input", "first=b==2.0", "--input", "second=c==3.0")
    done = start(project, "dependency-update", *inputs)
    assert done.code == 0, done.out
    assert project.read("requirements.txt") == PINS.replace("\nb==1.0", "\nb==2.0").replace("c==1.0", "c==3.0")
    assert steps(project)["update-third"] == "omitted"
    subjects = project.repo.git("log", "--format=%s", "-4").splitlines()
    assert subjects[1:3] == ["Update the second dependency", "Update the first dependency"]


def test_a_dependency_that_is_not_pinned_changes_nothing(sandbox: GitSandbox) -> None:
    sandbox.write("requirements.txt", PINS)
    inputs = {"test": "true", "file": "requirements.txt", "second": "", "third": ""}
    for step, first, words in (
        ("tests-pass", "b", "write a dependency as NAME==VERSION, not b"),
        ("update-first", "d==1.0", "does not pin d"),
    ):
        code, errors = scripted(sandbox, "dependency-update", step, first=first, **inputs)
        assert (code, words in errors) == (1, True), errors
    assert (sandbox.root / "requirements.txt").read_text() == PINS
    assert {path.name for path in sandbox.root.iterdir()} == {".git", "requirements.txt"}


FIX = """
case $IDUMB_TASK in
TW1-02) printf 'test "$(sh add.sh 2 2)" = 4\\n' > add_test.sh; echo '{"cause": "it subtracts"}';;
TW1-04) test "$CAUSE" = "it subtracts" || exit 9; echo 'echo $(($1 + $2))' > add.sh; %s echo '{"summary": "adds"}';;
esac
"""
BUG = ("--input", "report=2 and 2 are 0", "--input", "test=add_test.sh", "--input", "source=add.sh",
       "--input", "run=sh add_test.sh", "--input", "suite=test -s add.sh")  # fmt: skip


@pytest.mark.nightly
def test_a_bug_fix_begins_with_a_test_that_fails_and_ends_when_it_passes(sandbox: GitSandbox) -> None:
    project = created(sandbox, {"add.sh": "echo $(($1 - $2))\n"}, FIX % "")
    done = start(project, "bug-fix", *BUG)
    assert done.code == 0, done.out
    assert project.read("add.sh") == "echo $(($1 + $2))\n"
    assert set(steps(project).values()) == {"completed"}


REVIEW = """
case $IDUMB_TASK in
TW1-01) if grep -q subtract docs/page.md
  then printf '{"findings": ["docs/page.md:1 says subtract, add.sh:1 adds"], "count": 1}\\n'
  else printf '{"findings": [], "count": 0}\\n'; fi;;
TW1-03) case $FINDINGS in *"add.sh:1 adds"*) sed -i s/subtract/add/ docs/page.md;; esac;;
esac
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("page", "after"), seed.one_on_a_push([("It subtracts\n", "It adds\n"), ("It adds\n", "It adds\n")], "a page")
)
def test_a_review_corrects_the_documentation_only_if_it_is_wrong(sandbox: GitSandbox, page: str, after: str) -> None:
    project = created(sandbox, {"docs/page.md": page, "add.sh": "echo $(($1 + $2))\n"}, REVIEW)
    first = start(project, "docs-review")
    if page == after:
        assert first.code == 0, first.out
        assert steps(project)["correct"] == steps(project)["confirm"] == "omitted"
    else:
        assert first.code == 5, first.out
        answer(project, "yes")
        assert project.quick("resume", "W1").code == 0
        assert set(steps(project).values()) == {"completed"}
    assert project.read("docs/page.md") == after
