"""Every command's real `--json` output against its published schema, and the documents that describe them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from idumb.cli import main
from idumb.domain import errors
from tests.support import schemas
from tests.support.project import Project

DOCS = Path(__file__).parents[2] / "docs"
TEMPLATES = DOCS.parent / "templates"


def test_every_command_has_a_schema() -> None:
    """Each answer of a test is held against it: `Project.quick`."""
    assert {command.partition(" ")[0] for command in schemas.by_command()} == set(main.COMMANDS)


def test_an_answer_that_does_not_follow_its_schema_is_noticed(project: Project) -> None:
    answer = project.json("next", "1").object
    for wrong in ({**answer, "ways": None}, {**answer, "data": {"next": []}}):
        with pytest.raises(jsonschema.ValidationError):
            schemas.check(("next", "1", "--json"), wrong)


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


def test_the_templates_are_a_roadmap_of_one_phase_and_a_runnable_plan_that_asks_to_be_filled_in(
    project: Project,
) -> None:
    phases = project.json("roadmap").data["phases"]
    assert [(row["phase"], row["title"]) for row in phases] == [("1", "The first step")]
    assert project.exists(".planning/PROJECT.md")
    project.repo.write(".planning/phases/1/01-PLAN.md", (TEMPLATES / "plan.md").read_bytes())
    checked = project.json("check-plan", "1").data
    assert {(f["code"], f["severity"]) for f in checked["findings"]} == {("text.unfilled", "warning")}
    assert project.execute().data["verification"]["status"] == "passed"
