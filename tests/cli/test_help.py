"""`idumb help` has every page that an error names, also where only the program is installed (R-LOCK-1, R-PLAN-5)."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import jsonschema
import pytest

from idumb.cli import main
from idumb.system.files import shipped_files
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

ROOT = Path(__file__).parents[2]
HELP = re.compile(r"idumb help ([a-z-]+)")


def constants() -> list[tuple[str, str]]:
    """(place, text) of every text in the program but docstrings; the help of a command is one of its texts."""
    package = Path(main.__file__).parents[1]
    return [text for file in sorted(package.rglob("*.py")) for text in constants_of(file)]


def constants_of(file: Path) -> list[tuple[str, str]]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    quiet = set() if file.parent.name == "cli" else {id(node) for node in docstrings(tree)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [(f"{file.name}:{node.lineno}", str(node.value)) for node in texts if id(node) not in quiet]


def docstrings(tree: ast.AST) -> list[ast.Constant]:
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    firsts = [body[0].value for body in bodies if body and isinstance(body[0], ast.Expr)]
    return [value for value in firsts if isinstance(value, ast.Constant)]


def test_no_message_names_a_page_that_only_a_checkout_has() -> None:
    assert [(where, text) for where, text in constants() if re.search(r"docs/[a-z-]+\\.md", text)] == []


def test_every_topic_that_a_message_names_is_there() -> None:
    named = {(where, topic) for where, text in constants() for topic in HELP.findall(text)}
    assert named
    assert [(where, topic) for where, topic in named if topic not in shipped_files.pages() and topic != "lists"] == []


def test_help_lists_the_topics_with_their_titles(project: Project) -> None:
    answer = project.json("help")
    assert {"topic": "plan-format", "title": "The plan format"} in answer.data["topics"]
    assert [row["topic"] for row in answer.data["topics"]] == list(shipped_files.pages())
    assert all(row["topic"] in project.idumb("help").out for row in answer.data["topics"])


def test_help_on_a_topic_prints_its_page(project: Project) -> None:
    page = shipped_files.pages()["agents"]
    assert project.idumb("help", "agents").out == page
    assert project.json("help", "agents").data == {"topic": "agents", "text": page}


def test_help_on_a_command_prints_its_options(project: Project) -> None:
    assert project.idumb("help", "check-plan").out == project.idumb("check-plan", "--help").out


def test_help_on_something_else_names_the_nearest_topic(project: Project) -> None:
    answer = project.json("help", "plan-fromat")
    assert (answer.code, answer.error["code"], answer.error["hint"]) == (2, "usage", "idumb help plan-format")


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


@pytest.mark.parametrize("words", [(), ("agents",), ("check-plan",)])
def test_the_answer_follows_its_schema(project: Project, words: tuple[str, ...]) -> None:
    schema = json.loads((ROOT / "docs/schemas/help.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(project.json("help", *words).data)
