"""`idumb help` has every page that an error names, also where only the program is installed (R-LOCK-1, R-PLAN-5)."""

from __future__ import annotations

import ast
import functools
import json
import re
from pathlib import Path

import click

from idumb.cli import main
from idumb.cli.options import Group
from idumb.markdown.plans import frontmatter
from idumb.system import shipped
from tests.support import schemas
from tests.support.project import Project

HELP = re.compile(r"idumb help ([a-z-]+)")
PAGE = re.compile(r"docs/[a-z-]+\.md")
NAMES_A_PAGE = re.compile(rf"{HELP.pattern}|{PAGE.pattern}|idumb help ?[\"']|docs/[\"']")


@functools.cache
def constants() -> list[tuple[str, str]]:
    """(place, text) of every text in the program but docstrings; the help of a command is one of its texts.

    Only of files that name a page: to parse all takes seconds.
    """
    package = Path(main.__file__).parents[1]
    sources = (file for file in sorted(package.rglob("*.py")) if NAMES_A_PAGE.search(file.read_text(encoding="utf-8")))
    return [text for file in sources for text in constants_of(file)]


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
    assert [(where, text) for where, text in constants() if PAGE.search(text)] == []


def test_every_topic_that_a_message_names_exists() -> None:
    named = {(where, topic) for where, text in constants() for topic in HELP.findall(text)}
    assert named
    assert [(where, topic) for where, topic in named if topic not in shipped.pages() and topic != "lists"] == []


def test_help_lists_the_topics_and_prints_the_page_of_each(project: Project) -> None:
    answer = project.quick("help", "--json")
    assert {"topic": "plan-format", "title": "The plan format"} in answer.data["topics"]
    assert [row["topic"] for row in answer.data["topics"]] == list(shipped.pages())
    listed = project.quick("help").out
    assert [row["topic"] for row in answer.data["topics"] if row["topic"] not in listed] == []
    page = shipped.pages()["agents"]
    assert project.idumb("help", "agents").out == page
    assert project.quick("help", "agents", "--json").data == {"topic": "agents", "text": page}
    assert "<!--" not in project.quick("help", "reliability").out
    assert project.quick("help", "check-plan", "--json").code == 0


def test_idumb_help_lists_every_command_once_in_its_group_everyday_ones_first(project: Project) -> None:
    """Each in one line, with the first paragraph of its own help."""
    titles = [f"{title}:" for title in main.GROUPS]
    assert titles[0] == "Everyday:"
    assert len(main.GROUPS["Everyday"]) == 8
    printed = project.quick("--help").out
    lines = printed.partition("Everyday:")[2].splitlines()
    listed = [line.split() for line in lines if line.startswith("  ") and not line.startswith("  idumb ")]
    assert [words[0] for words in listed] == main.COMMANDS
    assert [line for line in printed.splitlines() if line in titles] == titles
    for name, *summary in listed:
        command = main.group.get_command(click.Context(main.group), name)
        assert command is not None
        assert (command.help or "").split("\n\n")[0].split() == summary


def test_the_help_of_a_group_has_each_command_whole_on_one_line(project: Project) -> None:
    commands = {name: main.group.get_command(click.Context(main.group), name) for name in main.COMMANDS}
    groups = {name: command for name, command in commands.items() if isinstance(command, Group)}
    assert {"audit", "debug", "handoff"} <= groups.keys()
    for name, group in groups.items():
        listed = project.quick(name, "--help").out.partition("Commands:\n")[2].splitlines()
        summaries = [(command.help or "").partition("\n\n")[0] for command in group.commands.values()]
        assert [line.split(maxsplit=1)[1] for line in listed] == summaries, name
    one = project.quick("help", "plan", "add-task").out
    assert one == project.quick("plan", "add-task", "--help").out
    assert project.quick("help", "status", "now").err.startswith("idumb: No help on 'status now'.")


MISTYPED = {
    # what is typed: (what is wrong, the nearest word, whose help is shown)
    ("stauts",): ("No such command 'stauts'", "status", "idumb"),
    ("check", "1"): ("No such command 'check'", "check-plan", "idumb"),
    ("dlq", "lsit"): ("No such command 'dlq lsit'", "list", "idumb dlq"),
    ("show", "T1-01", "--jsn"): ("No such option '--jsn'", "--json", "idumb show"),
}


def test_a_mistyped_word_gets_the_nearest_one_suggested(project: Project) -> None:
    for typed, (wrong, nearest, command) in MISTYPED.items():
        message = f"{wrong}. Did you mean '{nearest}'?"
        answer = project.quick(*typed)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err == f"idumb: {message} [usage]\n  next: {command} --help\n"
        error = project.quick(*typed, "--json").error
        assert (error["message"], error["details"]["nearest"]) == (message, nearest)


def test_an_answer_has_the_command_as_it_was_typed(project: Project) -> None:
    for typed in (("nope", "show"), ("--set", "run.max_attempts=1", "nope", "show")):
        answer = json.loads(project.quick(*typed, "--json").out)
        assert answer["command"] == "nope", typed


def test_schema_prints_what_an_editor_reads(project: Project) -> None:
    """R-PLAN-10: the file itself, not wrapped in an answer."""
    assert json.loads(project.quick("schema", "plan").out) == frontmatter.schema()
    assert json.loads(project.quick("schema", "snippets").out) == shipped.snippets()
    listed = [row["name"] for row in project.quick("schema", "--json").data["names"]]
    assert listed == ["snippets", "config", "plan", *schemas.every()]
    assert project.quick("schema", "plna", "--json").error["hint"] == "idumb schema plan"
