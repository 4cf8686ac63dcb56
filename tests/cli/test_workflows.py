"""`idumb workflow`: definitions are found, checked and run on the engine of plans (R-PLAN-8)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from idumb.system.clock import SystemClock
from tests.docs.test_workflow_page import EXAMPLE
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

RUN = ".planning/workflows/001-greet"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    define(project, EXAMPLE)
    return project


def define(project: Project, text: str, name: str = "greet") -> None:
    project.repo.write(f".idumb/workflows/{name}.md", text)
    project.repo.git("add", "-A")
    project.repo.git("commit", "-qm", "a workflow")


def start(project: Project, *arguments: str) -> Answer:
    """Run a workflow, with consent to what the first answer names."""
    refused = project.quick("workflow", "run", *arguments, "--json")
    assert refused.error["code"] == "consent.missing", refused.out
    return project.json("workflow", "run", *arguments, "--approve", refused.error["details"]["consent_hash"])


def look(project: Project, *arguments: str) -> dict[str, Any]:
    answer = project.quick("workflow", *arguments, "--json")
    assert answer.code == 0, answer.out
    return dict(answer.data)


def steps(project: Project, phase: str = "W1") -> dict[str, str]:
    (row,) = look(project, "status", phase)["runs"]
    return {step["step"]: step["status"] for step in row["steps"]}


def test_a_workflow_is_consented_to_run_proven_and_committed_like_a_plan(project: Project) -> None:
    """R-PLAN-8, R-LOG-1: the same consent, proofs, commits and events; `test_workflow_runs.py` has the rest."""
    refused = project.quick("workflow", "run", "greet", "--input", "name=World", "--json")
    assert refused.code == 5, refused.out
    assert 'input name = "World"' in "\n".join(refused.error["details"]["evidence"])
    assert not project.exists("greeting.txt")
    assert not project.exists(RUN), "nothing is written without consent"

    done = start(project, "greet", "--input", "name=World")

    assert done.code == 0, done.out
    assert project.read("greeting.txt") == "Hello World\n"
    assert steps(project) == {"words": "completed", "is-loud": "completed", "shout": "omitted"}
    assert project.quick("check-plan", f"{RUN}/01-PLAN.md", "--json").data["phase"] == "W1"
    assert project.read(f"{RUN}/01-PLAN.md").startswith(EXAMPLE)
    subjects = project.repo.git("log", "--format=%s", "-2").splitlines()
    assert subjects == ["Phase W1: reports of run 1", "Write the words"]
    assert "false" in project.quick("graph", "W1").out or "true: TW1-03" in project.quick("graph", "W1").out
    assert "omitted    TW1-03" in project.quick("graph", "W1").out
    kinds = [event["kind"] for event in project.json("log", "W1", "--kind", "task.omitted").data["events"]]
    assert kinds == ["task.omitted"]

    assert start(project, "greet", "--input", "name=World").code == 1, "the file is there already"
    assert [row["phase"] for row in look(project, "status")["runs"]] == ["W1", "W2"], "with the same inputs, too"
    begun = project.events("--workflow", "greet", "--kind", "run.started")
    assert [event["payload"]["phase"] for event in begun] == ["W2"], "that of its newest run"


def test_a_true_condition_runs_its_step_with_the_output_of_another_and_no_value_reaches_a_shell(
    project: Project,
) -> None:
    name = "$(touch pwned) `touch pwned`; \"'x"
    done = start(project, "greet", "--input", f"name={name}", "--input", "loud=true")
    assert done.code == 0, done.out
    assert project.read("greeting.txt") == f"Hello {name}\n".upper()
    assert not project.exists("pwned")
    (row,) = look(project, "status", "greet")["runs"]
    assert row["steps"][0]["outputs"] == {"words": f"Hello {name}"}
    assert row["inputs"] == {"name": name, "loud": True}


def test_a_run_is_pinned_to_the_definition_and_inputs_it_began_with(project: Project) -> None:
    """A changed definition is a new contract; a changed plan of a run is a changed plan."""
    run = "test -e $IDUMB_REPOSITORY/allowed"
    broken = f"### broken: Fails first\n\n```yaml step\nkind: script\nretries: 0\nrun: {run}\n```\n\n"
    failing = EXAMPLE.replace("kind: condition", "kind: condition\nneeds: [broken]")
    define(project, failing.replace("### is-loud", f"{broken}### is-loud"))
    assert start(project, "greet", "--input", "name=A").code == 1
    define(project, EXAMPLE.replace("Hello", "Goodbye"))
    (row,) = look(project, "status", "W1")["runs"]
    assert row["definition"] == "changed"
    (project.folder / "allowed").write_text("")
    assert project.quick("resume", "W1", "--retry-failed").code == 0
    assert project.read("greeting.txt") == "Hello A\n"

    plan = project.folder / RUN / "01-PLAN.md"
    plan.write_text(plan.read_text().replace("Hello", "Goodbye"))
    changed = project.quick("execute-phase", "W1", "--json")
    assert changed.error["code"] == "consent.missing"
    refused = project.quick("resume", "W1", "--json")
    assert refused.error["code"] == "run.contract-changed"


def test_a_changed_plan_of_a_run_is_amended_by_its_user_or_started_again_and_keeps_what_was_omitted(
    project: Project,
) -> None:
    """The omitted branch stays omitted, also while the new run only waits for consent."""
    define(project, EXAMPLE + """
### last: Use it

```yaml step
kind: script
retries: 0
run: test -e allowed && cp greeting.txt last.txt
files: {create: [last.txt]}
```
""")  # fmt: skip
    assert start(project, "greet", "--input", "name=A").code == 1
    refused = project.quick("amend", "W1", "--drop-dependency", "TW1-04", "TW1-03", "--json")
    assert refused.error["code"] == "amend.workflow"
    plan = project.folder / RUN / "01-PLAN.md"
    plan.write_text(plan.read_text().replace("test -e allowed && ", ""))
    (row,) = [row for row in project.quick("status", "--json").data["phases"] if row["phase"] == "W1"]
    assert row["tasks"] == {"total": 4, "completed": 2, "omitted": 1, "ready": 1}
    consent = project.quick("check-plan", "W1", "--json").data["contract_hash"]
    assert project.json("amend", "W1", "--from-file", "--hash", consent).code == 0
    assert project.json("resume", "W1").code == 0
    assert project.read("last.txt") == "Hello A\n"
    assert steps(project) == {"words": "completed", "is-loud": "completed", "shout": "omitted", "last": "completed"}


TYPES = """---
type: workflow
name: types
version: 1
description: Every type of input.
inputs:
  word: {type: text, default: ""}
  whole: {type: integer, default: 0}
  part: {type: number, default: 0}
  yes: {type: boolean, default: false}
  one: {type: choice, choices: [a, b], default: a}
---

## All

### show: Show them

```yaml step
kind: script
run: printf '%s|%s|%s|%s' "$INPUT_WHOLE" "$INPUT_PART" "$INPUT_YES" "$INPUT_ONE"; printf %s "$INPUT_WORD" | wc -m
```
"""


REFUSED = ("word=" + "é" * 4097, "whole=1.0", "part=inf", "yes=True", "one=c")
ACCEPTED = {"word=" + "é" * 4096: "é" * 4096, "word=two\nlines": "two\nlines", "whole=-12": -12,
            "part=-1.5e-05": -1.5e-05, "yes=true": True, "one=b": "b"}  # fmt: skip


def test_an_input_of_each_type_is_accepted_up_to_its_limit(project: Project) -> None:
    define(project, TYPES, "types")
    for text in REFUSED:
        refused = project.quick("workflow", "run", "types", "--input", text, "--json")
        assert refused.error["code"] == "workflow.bad-input", refused.out
    assert not project.exists(".planning/workflows")
    for text, value in ACCEPTED.items():
        asked = project.quick("workflow", "run", "types", "--input", text, "--json")
        assert asked.error["code"] == "consent.missing", asked.out
        line = f"input {text.partition('=')[0]} = {json.dumps(value)}"
        assert any(line in evidence for evidence in asked.error["details"]["evidence"]), asked.out


WRONG = (
    (("run", "great"), "workflow.unknown", "Did you mean greet?"),
    (("show", "nothing-like-it"), "workflow.unknown", "idumb workflow list"),
    (("check", "great"), "workflow.unknown", "Did you mean greet?"),
    (("run", "greet"), "workflow.missing-input", " idumb workflow run greet --input name=VALUE"),
    (("run", "greet", "--input", "nam=x"), "workflow.unknown-input", "Did you mean name?"),
    (("run", "greet", "--input", "name=x", "--input", "loud=yes"), "workflow.bad-input", "not true or false"),
    (("run", "--from", "0000"), "handoff.unknown", "idumb handoff list"),
    (("status", "W9"), "workflow.no-run", "idumb workflow list"),
    (("run", "greet", "--input", "name"), "usage", "needs a value"),
    (("list", "--input", "a=b"), "usage", "No such option '--input'"),
    (("shw", "greet"), "usage", "Did you mean 'show'"),
    (("show",), "usage", "Missing argument 'NAME'"),
)


def test_a_wrong_word_is_refused_with_the_nearest_one_and_nothing_is_written(project: Project) -> None:
    for arguments, code, words in WRONG:
        refused = project.quick("workflow", *arguments, "--json")
        assert refused.error["code"] == code, arguments
        assert words in f"{refused.error['message']} {refused.error['hint']}"
    assert not project.exists(".planning/workflows")


def test_an_invalid_definition_is_checked_with_its_lines_and_does_not_run(project: Project) -> None:
    define(project, EXAMPLE.replace("kind: condition", "kind: conditon"))
    checked = project.quick("workflow", "check", "greet", "--json")
    assert (checked.code, checked.data["errors"]) == (3, 1)
    (finding,) = checked.data["findings"]
    assert (finding["code"], finding["path"], finding["line"]) == ("workflow.bad-kind", ".idumb/workflows/greet.md", 28)
    refused = project.quick("workflow", "run", "greet", "--input", "name=x", "--json")
    assert (refused.code, refused.error["code"]) == (3, "workflow.invalid")
    assert refused.error["details"]["findings"][0]["line"] == 28
    rows = {row["name"]: row for row in look(project, "list")["workflows"]}
    assert rows["greet"]["errors"] == 1


def test_definitions_of_the_repository_hide_those_of_the_user_and_the_program(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "idumb/workflows"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text(EXAMPLE.replace("1.0.0", "2.0.0"))
    (folder / "release.md").write_text(EXAMPLE.replace("name: greet", "name: release"))
    (folder / "README.md").write_text("no workflow")
    rows = [(r["name"], r["origin"], r["hidden"]) for r in look(project, "list")["workflows"]]
    assert [row for row in rows if row[0] in ("greet", "release")] == [
        ("greet", "repository", False), ("greet", "user", True),
        ("release", "user", False), ("release", "program", True),
    ]  # fmt: skip
    assert look(project, "show", "greet")["version"] == "1.0.0"
    assert look(project, "show", "release")["path"] == str(folder / "release.md")
    assert [other["origin"] for other in look(project, "show", "greet")["hides"]] == ["user"]


def test_the_consent_question_names_the_definitions_that_do_not_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A repository can name a workflow like one of idumb or of the user, but not secretly."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    define(project, EXAMPLE.replace("name: greet", "name: release"), "release")
    asked = project.quick("workflow", "run", "release", "--input", "name=x", "--json")
    lines = asked.error["details"]["evidence"]
    assert lines[0] == "workflow release 1.0.0 of this repository: .idumb/workflows/release.md"
    assert lines[1].startswith("  not the workflow release of idumb, which differs: ")
    own = tmp_path / "idumb/workflows/greet.md"
    own.parent.mkdir(parents=True)
    own.write_text(EXAMPLE)
    asked = project.quick("workflow", "run", "greet", "--input", "name=x", "--json")
    assert asked.error["details"]["evidence"][1] == '  input name = "x"', "the same text hides nothing"

    strict = project.quick("workflow", "run", "release", "--input", "name=x", "--mode", "strict", "--json")
    assert strict.error["code"] == "approval.missing", "the plan is there to be approved"
    plan = project.folder / ".planning/workflows/001-release/01-PLAN.md"
    plan.write_text(plan.read_text().replace('"repository"', '"program"').replace("Hello", "Goodbye"))
    forged = project.quick("execute-phase", "W1", "--json").error["details"]["evidence"]
    assert forged[0].endswith("01-PLAN.md defines it; no present definition has this text")
    assert [line.split(" which ")[0] for line in forged[1:3]] == [
        "  not the workflow release of this repository,", "  not the workflow release of idumb,"
    ]  # fmt: skip


def test_a_definition_that_cannot_be_read_is_listed_as_broken_and_stops_only_itself(project: Project) -> None:
    folder = project.folder / ".idumb/workflows"
    os.mkfifo(folder / "docs-review.md")
    (folder / "release.md").mkdir()
    (folder / "large.md").write_bytes(b"x" * (1024 * 1024 + 1))
    rows = {(row["name"], row["origin"]): row for row in look(project, "list")["workflows"]}
    broken = [name for (name, _), row in rows.items() if row["errors"]]
    assert broken == ["docs-review", "large", "release"]
    assert rows["docs-review", "program"]["hidden"] is True, "nothing else runs in its place"
    checked = project.quick("workflow", "check", "release", "--json")
    assert [(f["code"], f["path"]) for f in checked.data["findings"]] == [
        ("workflow.unreadable", ".idumb/workflows/release.md")
    ]
    assert project.quick("workflow", "run", "release", "--json").error["code"] == "workflow.invalid"
    assert "1 error" in project.quick("workflow", "list").out
    other = project.quick("workflow", "run", "greet", "--input", "name=x", "--json")
    assert other.error["code"] == "consent.missing", "it can run"


HUMAN = """---
type: workflow
name: ask
version: 1.0.0
description: Asks a person.
---

## Ask

### choose: Choose a colour

```yaml step
kind: human
options: {red: the warm one, blue: the cold one}
```

### is-red: Is it red?

```yaml step
kind: condition
if: steps.choose.choice == 'red'
then: [paint-red]
else: [paint-blue]
```

### paint-red: Paint it red

```yaml step
kind: script
run: echo red > colour.txt
files: {create: [colour.txt]}
```

### paint-blue: Paint it blue

```yaml step
kind: script
run: echo blue > colour.txt
files: {create: [colour.txt]}
```
"""


def test_a_human_step_waits_as_a_pending_decision_and_its_answer_chooses_the_branch(project: Project) -> None:
    """R-PLAN-12: without an answer nothing runs; the answer continues the run."""
    define(project, HUMAN, "ask")
    waits = start(project, "ask")
    assert waits.code == 5, waits.out
    assert not project.exists("colour.txt")
    assert steps(project)["choose"] == "waiting"
    (question,) = project.json("decisions").data["decisions"]
    decided = project.quick("decide", question["id"], "blue")
    assert (decided.code, decided.err) == (0, ""), "the plan of a run has no place for answers"
    assert project.quick("resume", "W1").code == 0
    assert project.read("colour.txt") == "blue\n"
    assert steps(project)["paint-red"] == "omitted"


def test_an_answer_after_the_time_of_a_human_step_is_refused_and_resume_goes_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = HUMAN.replace("kind: human\n", "kind: human\ntimeout: 1h\ntimeout_action: skip\n")
    define(project, waiting, "ask")
    assert start(project, "ask").code == 5
    asked = project.events("W1", "--kind", "decision.asked")[-1]["payload"]
    monkeypatch.setattr(SystemClock, "now", lambda _: "2999-01-01T00:00:00.000000Z")
    late = project.quick("decide", asked["id"], "red", "--json")
    assert (late.code, late.error["code"], late.error["hint"]) == (4, "decision.void", "idumb resume W1")
    assert f"open until {asked['until']}, and nobody answered" in late.error["message"]
    assert project.quick("resume", "W1").code == 0
    assert (steps(project)["choose"], project.read("colour.txt")) == ("omitted", "blue\n")


HANDING = """---
type: workflow
name: first
version: 1.0.0
description: Hands its work on.
---

## All

### make: Make the words

```yaml step
kind: script
run: printf 'a name\\n'
outputs: {name: text}
handoff_to: ["workflow:greet", "workflow:nothing", "human (never)"]
```
"""


def test_a_workflow_takes_up_the_handoff_of_another_with_its_outputs(project: Project) -> None:
    """R-HAND-1, R-HAND-2: created, registered, taken up, completed; a failed one stops nothing."""
    define(project, HANDING, "first")
    assert start(project, "first").code == 0
    listed = project.json("handoff", "list").data
    (handoff,) = listed["handoffs"]
    assert (handoff["to_agent"], handoff["status"]) == ("workflow:greet", "pending")
    assert handoff["outputs"] == {"name": "a name"}
    assert listed["failed"][0]["to_agent"] == "workflow:nothing"
    assert "a name" in project.read(handoff["path"])
    (project.folder / handoff["path"]).write_text(project.read(handoff["path"]).replace("a name", "another name"))

    wrong = project.quick("workflow", "run", "first", "--from", handoff["handoff_id"], "--json")
    assert wrong.error["code"] == "workflow.other-handoff"
    assert start(project, "--from", handoff["handoff_id"][:8]).code == 0
    assert project.read("greeting.txt") == "Hello a name\n"
    said = project.json("handoff", "show", handoff["handoff_id"]).data["handoff"]["said"]
    assert [row["status"] for row in said] == ["in_progress", "complete"]
    over = project.quick("workflow", "run", "--from", handoff["handoff_id"], "--json")
    assert over.error["code"] == "workflow.handoff-over"
    assert over.error["details"]["choices"][0]["command"] == over.error["hint"]
    (row,) = look(project, "status", "greet")["runs"]
    assert row["inputs"]["name"] == "a name"

    assert project.json("handoff", "update", handoff["handoff_id"], "pending").code == 0
    define(project, EXAMPLE.replace("name: text", "name: integer", 1), "greet")
    other = project.quick("workflow", "run", "--from", handoff["handoff_id"], "--json")
    assert (other.error["code"], other.error["message"]) == (
        "workflow.bad-input", "The input name is not an integer: 'a name'."
    )  # fmt: skip
    typed = project.quick("workflow", "run", "--from", handoff["handoff_id"], "--input", "name=7", "--json")
    assert typed.error["code"] == "consent.missing", "what you give counts"


@pytest.mark.nightly
def test_a_handoff_of_work_that_was_rolled_back_or_done_again_is_refused(project: Project) -> None:
    """R-HAND-1: a stale handoff starts nothing; the one of the repeated step does."""
    define(project, HANDING, "first")
    assert start(project, "first").code == 0
    (old,) = project.json("handoff", "list").data["handoffs"]
    assert project.quick("rollback", "W1", "--to", "start", "--yes").code == 0
    gone = project.quick("workflow", "run", "--from", old["handoff_id"], "--json")
    assert (gone.code, gone.error["code"]) == (4, "workflow.handoff-stale")
    assert "TW1-01 was rolled back since" in gone.error["message"]
    assert project.quick("resume", "W1").code == 0
    again = project.quick("workflow", "run", "--from", old["handoff_id"], "--json")
    assert "TW1-01 was done again since" in again.error["message"]
    new = project.json("handoff", "list").data["handoffs"][-1]
    taken = project.quick("workflow", "run", "--from", new["handoff_id"], "--json")
    assert taken.error["code"] == "consent.missing"
    assert not (project.folder / ".planning/workflows/003-greet").exists()
