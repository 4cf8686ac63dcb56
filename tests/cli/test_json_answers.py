"""Every command's real `--json` output against its published schema, and the documents that describe them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from idumb.cli import main
from idumb.domain import errors
from tests.support import schemas
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

DOCS = Path(__file__).parents[2] / "docs"
TEMPLATES = DOCS.parent / "templates"


class Shell:
    """Runs commands as a user does, and holds each answer against its schemas."""

    def __init__(self, sandbox: GitSandbox) -> None:
        self.root = sandbox.root
        self._project = Project(sandbox, sandbox.root)

    def run(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        done = self._project.quick(*arguments, "--json")
        assert done.code == code, done.out + done.err
        assert done.out.isascii()
        answer = json.loads(done.out)
        assert isinstance(answer, dict)
        schemas.validator("answer").validate(answer)
        assert answer["command"] == arguments[0]
        if answer["data"]:
            named = schemas.by_command()
            names = (f"{arguments[0]} {arguments[-1]}", " ".join(arguments[:2]), arguments[0])
            found = next(named[name] for name in names if name in named)
            schemas.validator(found).validate(answer["data"])
        return answer

    def plan(self, *tasks: str, head: str = "") -> str:
        """Write the plan of phase 1 and give its contract hash."""
        folder = self.root / ".planning/phases/1"
        folder.mkdir(parents=True, exist_ok=True)
        front = f'---\ntype: plan\nphase: "1"\nplan: "01"\ntitle: P\ngoal: G\n{head}---\n\n## Tasks\n\n'
        (folder / "01-PLAN.md").write_text(front + "\n".join(tasks))
        return str(self.run("check-plan", "1")["data"]["contract_hash"])


@pytest.fixture
def shell(sandbox: GitSandbox) -> Shell:
    shell = Shell(sandbox)
    shell.run("init")
    return shell


def _task(number: int, check: str, needs: str = "none", proof: str = "check") -> str:
    mark = f"check: `{check}`" if proof == "check" else proof
    step = f"- {{tool: write_file, intent: make it, arguments: {{path: f{number}, content: x}}}}"
    return (
        f"### T1-0{number}: Task {number}\n\n- **Depends on:** {needs}\n- **Files:** create `f{number}`\n"
        f"- **Acceptance:**\n  - [ ] it works — {mark}\n\n```yaml steps\n{step}\n```\n"
    )


def test_answers_about_a_successful_phase_follow_their_schemas(shell: Shell) -> None:
    contract = shell.plan(
        _task(1, "test -f f1").replace("- **Files:**", "- **Requirements:** REQ-1\n- **Files:**"),
        _task(2, "test -f f2", "T1-01"),
        head="success_criteria: [{text: it runs, check: 'test -d .'}]\nrequirements: {REQ-1: all}\n",
    )
    for command in ("status", "next", "roadmap", "decisions"):
        shell.run(command)
    shell.run("graph", "1", "--format", "mermaid")
    ended = shell.run("execute-phase", "1", "--approve", contract)
    assert ended["data"]["outcome"] == "complete"
    for arguments in (
        ["status"],
        ["next"],
        ["roadmap"],
        ["show", "T1-02"],
        ["show", "T1-01", "--diff"],
        ["show", "T1-01", "--transcript"],
        ["log", "1"],
        ["audit", "verify"],
        ["graph", "1"],
        ["verify-work", "1"],
        ["check-plan", "1"],
    ):
        shell.run(*arguments)  # fmt: skip
    rolled = shell.run("rollback", "1", "--to", "T1-01", "--yes")
    assert rolled["data"]["tasks"] == ["T1-02"]
    unconfirmed = shell.run("undo", code=errors.EXIT_REFUSED)
    shell.run(*unconfirmed["error"]["hint"].split()[1:])


def test_answers_about_a_failing_and_waiting_phase_follow_their_schemas(shell: Shell) -> None:
    contract = shell.plan(_task(1, "false"), _task(2, "true", "T1-01"), _task(3, "", proof="human"))
    flags = ("--approve", contract, "--max-attempts", "1")
    failed = shell.run("execute-phase", "1", *flags, code=errors.EXIT_WAITING)
    assert failed["data"]["failure"]["audit_trail"]
    assert failed["error"]["code"] == "run.waiting"
    for arguments in (["status"], ["next"], ["show", "T1-01"], ["show", "T1-03"], ["metrics"], ["config", "list"]):
        shell.run(*arguments)
    decisions = {one["kind"]: one["id"] for one in shell.run("decisions")["data"]["decisions"]}
    shell.run("decide", decisions["judge"], "yes")
    shell.run("accept", "T1-01", "--why", "good enough")
    shell.run("skip", "T1-02", "--why", "not now")
    shell.run("resume", "1")


def test_answers_of_refused_commands_follow_their_schemas(shell: Shell) -> None:
    shell.plan(_task(1, "true"))
    refused = shell.run("execute-phase", "1", code=errors.EXIT_WAITING)
    assert refused["error"]["code"] == "consent.missing"
    assert shell.run("show", "T1-99", code=errors.EXIT_INVALID)["error"]["hint"]
    shell.run("execute-phase", "9", code=errors.EXIT_INVALID)
    shell.run("execute-phase", "--nonsense", code=errors.EXIT_USAGE)
    shell.run("undo", code=errors.EXIT_REFUSED)
    plan = shell.root / ".planning/phases/1/01-PLAN.md"
    plan.write_text(plan.read_text().replace("Depends on:** none", "Depends on:** T1-07"))
    wrong = shell.run("check-plan", "1", code=errors.EXIT_INVALID)
    assert wrong["data"]["findings"][0]["code"] == "task.unknown-dependency"
    shell.run("status")


def test_every_command_has_a_schema() -> None:
    assert {command.partition(" ")[0] for command in schemas.by_command()} == set(main.COMMANDS)


@pytest.mark.nightly
def test_every_schema_is_valid() -> None:
    for schema in schemas.every().values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_name_in_the_page_of_answers_is_a_type_or_a_schema() -> None:
    text = json.dumps(schemas.every())
    assert {name.removesuffix(".json") for name in re.findall(r'"\$ref": "([^#"]+)"', text)} <= set(schemas.every())
    local = [(s.get("$defs", {}), re.findall(r'"#/\$defs/(\w+)"', json.dumps(s))) for s in schemas.every().values()]
    assert [name for defined, used in local for name in used if name not in defined] == []


def test_the_documented_example_is_a_valid_answer() -> None:
    example = re.search(r"```json\n(.*?)```", (DOCS / "json.md").read_text(), re.DOTALL)
    assert example is not None
    schemas.validator("answer").validate(json.loads(example[1]))


def test_every_exit_code_is_documented() -> None:
    text = (DOCS / "exit-codes.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert documented == {value for name, value in vars(errors).items() if name.startswith("EXIT_")} | {141}


def test_the_templates_are_a_roadmap_of_one_phase_and_a_runnable_plan_that_asks_to_be_filled_in(shell: Shell) -> None:
    phases = shell.run("roadmap")["data"]["phases"]
    assert [(row["phase"], row["title"]) for row in phases] == [("1", "The first step")]
    assert (shell.root / ".planning/PROJECT.md").is_file()
    folder = shell.root / ".planning/phases/1"
    folder.mkdir(parents=True)
    (folder / "01-PLAN.md").write_bytes((TEMPLATES / "plan.md").read_bytes())
    checked = shell.run("check-plan", "1")["data"]
    assert {(f["code"], f["severity"]) for f in checked["findings"]} == {("text.unfilled", "warning")}
    ended = shell.run("execute-phase", "1", "--approve", checked["consent_hash"])
    assert ended["data"]["verification"]["status"] == "passed"
