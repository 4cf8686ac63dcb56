"""`idumb help` has every page that an error names, also where only the program is installed (R-LOCK-1, R-PLAN-5)."""

from __future__ import annotations

import ast
import functools
import json
import re
from pathlib import Path

import click
import jsonschema
import pytest

from idumb.cli import main
from idumb.system.files import shipped_files
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project

ROOT = Path(__file__).parents[2]
HELP = re.compile(r"idumb help ([a-z-]+)")


@functools.cache
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
    """Return the texts that are statements: docstrings, also those of attributes."""
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return [value for value in values if isinstance(value, ast.Constant)]


def test_no_message_names_a_page_that_only_a_checkout_has() -> None:
    assert [(where, text) for where, text in constants() if re.search(r"docs/[a-z-]+\.md", text)] == []


def test_every_topic_that_a_message_names_exists() -> None:
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


@pytest.mark.parametrize(("typed", "nearest"), [("plan-fromat", "plan-format"), ("resmue", "resume")])
def test_help_on_an_unknown_word_suggests_the_nearest_topic(project: Project, typed: str, nearest: str) -> None:
    answer = project.json("help", typed)
    assert (answer.code, answer.error["code"], answer.error["hint"]) == (2, "usage", f"idumb help {nearest}")
    assert f"Did you mean {nearest!r}?" in answer.error["message"]


def test_help_on_an_unrelated_word_shows_the_list_of_topics(project: Project) -> None:
    answer = project.json("help", "xyzzy")
    assert (answer.code, answer.error["hint"]) == (2, "idumb help lists the topics")


def test_idumb_help_lists_every_command_once_in_its_group_everyday_ones_first(project: Project) -> None:
    titles = [f"{title}:" for title in main.GROUPS]
    assert titles[0] == "Everyday:"
    assert len(main.GROUPS["Everyday"]) == 8
    lines = project.quick("--help").out.partition("Everyday:")[2].splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("  idumb ")]
    assert listed == list(main.COMMANDS)
    printed = [line for line in project.quick("--help").out.splitlines() if line in titles]
    assert printed == titles


def test_no_line_of_the_list_of_commands_wraps(project: Project) -> None:
    printed = project.quick("--help").out.splitlines()
    for name, summary in main.COMMANDS.items():
        assert any(line.split() == [name, *summary.split()] for line in printed), name


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_list_shows_the_first_paragraph_of_each_command_s_help(name: str) -> None:
    command = main.group.get_command(click.Context(main.group), name)
    assert command is not None
    assert (command.help or "").split("\n\n")[0] == main.COMMANDS[name]


MISTYPED = {
    "a command": (("stauts",), "No such command 'stauts'. Did you mean 'status'?", "idumb status"),
    "the beginning of a command": (
        ("check", "1"),
        "No such command 'check'. Did you mean 'check-plan'?",
        "idumb check-plan 1",
    ),
    "a word after a command": (
        ("dlq", "lsit"),
        "No such command 'dlq lsit'. Did you mean 'dlq list'?",
        "idumb dlq list",
    ),
    "an option": (
        ("show", "T1-01", "--jsn"),
        "No such option '--jsn'. Did you mean '--json'?",
        "idumb show T1-01 --json",
    ),
    "an option with a value": (
        ("pause", "1", "--wy=too late"),
        "No such option '--wy'. Did you mean '--why'?",
        "idumb pause 1 '--why=too late'",
    ),
    "a choice": (
        ("resume", "1", "--mode", "strct"),
        "Invalid value for '--mode': 'strct' is not one of 'guided', 'strict'. Did you mean 'strict'?",
        "idumb resume 1 --mode strict",
    ),
    "a choice behind an equals sign": (
        ("resume", "1", "--mode=strct"),
        "Invalid value for '--mode': 'strct' is not one of 'guided', 'strict'. Did you mean 'strict'?",
        "idumb resume 1 --mode=strict",
    ),
}


@pytest.mark.parametrize("case", MISTYPED)
def test_a_mistyped_word_gets_the_nearest_one_suggested(project: Project, case: str) -> None:
    typed, message, corrected = MISTYPED[case]
    answer = project.quick(*typed)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"idumb: {message} [usage]\n  next: {corrected}\n"
    error = project.quick(*typed, "--json").error
    assert (error["message"], error["hint"]) == (message, f"{corrected} --json")
    assert f"'{error['details']['nearest']}'" in message or error["details"]["nearest"] == "list"


@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        (("xyzzy",), "No such command 'xyzzy'.", "idumb --help"),
        (("dlq", "xyzzy"), "No such command 'dlq xyzzy'. dlq takes list, show, retry, remove.", "idumb dlq --help"),
        (("status", "--xyzzy"), "No such option '--xyzzy'.", "idumb status --help"),
        (("cancel", "--reason", "x"), "No such option '--reason'.", "idumb cancel --help"),
        (("doctor", "--men"), "No such option '--men'.", "idumb doctor --help"),
    ],
)
def test_a_word_without_a_near_one_leads_to_the_help(
    project: Project, typed: tuple[str, ...], message: str, hint: str
) -> None:
    """Hidden options are never suggested."""
    error = project.quick(*typed, "--json").error
    assert (error["message"], error["hint"]) == (message, hint)
    assert "nearest" not in error["details"]


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


@pytest.mark.parametrize("words", [(), ("agents",), ("check-plan",)])
def test_the_answer_follows_its_schema(project: Project, words: tuple[str, ...]) -> None:
    schema = json.loads((ROOT / "docs/schemas/help.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(project.json("help", *words).data)


def test_an_option_without_its_value_leads_to_the_help_of_its_command(project: Project) -> None:
    assert project.quick("log", "--run").err.endswith("  next: idumb log --help\n")


def test_schema_prints_what_an_editor_reads(project: Project) -> None:
    """R-PLAN-10: the file itself, not wrapped in an answer."""
    assert json.loads(project.quick("schema", "plan").out) == shipped_files.schemas()["plan"]
    assert json.loads(project.quick("schema", "snippets").out) == shipped_files.snippets()
    listed = project.quick("schema", "--json").data["names"]
    assert [row["name"] for row in listed] == ["snippets", *shipped_files.schemas()]
    assert project.quick("schema", "plna", "--json").error["hint"] == "idumb schema plan"
