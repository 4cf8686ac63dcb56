"""The slash commands of `commands/` say only what the program can do, and never speak for a person."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from idumb.domain import hosts
from idumb.system import shipped
from tests.docs.test_command_lines import problem
from tests.support import schemas

FOLDER = Path(__file__).resolve().parents[2] / "commands"
NAMES = (
    "approve", "check-plan", "debug", "discuss-phase", "execute-phase", "init", "next", "plan-phase", "quick",
    "research-phase", "resume", "roadmap", "rollback", "status", "verify-work",
)  # fmt: skip
LOOKING = frozenset({"status", "next", "check-plan", "graph", "show", "decisions", "log"})
COMMANDS = {name: hosts.read(name, text) for name, text in shipped.commands().items()}


def spans(command: hosts.Command) -> list[str]:
    """Every command line that a slash command names, without the name of the program."""
    return [line for line in re.findall(r"`idumb ([^`]+)`", command.body) if line != "COMMAND --help"]


def test_the_folder_has_exactly_these_commands() -> None:
    """R-OPS-6."""
    assert tuple(COMMANDS) == NAMES
    assert {path.name for path in FOLDER.iterdir()} == {"README.md", *(f"{name}.md" for name in NAMES)}


def test_a_slash_command_names_only_existing_commands_and_options() -> None:
    lines = {command.name: spans(command) for command in COMMANDS.values()}
    assert [name for name, named in lines.items() if not named] == []
    assert [(name, line, why) for name, named in lines.items() for line in named if (why := problem(line))] == []


def test_the_demo_suggests_only_existing_commands_and_options() -> None:
    run = runpy.run_path(str(FOLDER.parent / "docs" / "demo" / "run.py"))
    assert [why for words in run["TRY"] if (why := problem(words))] == []


def test_a_slash_command_is_short_and_handles_each_exit_code() -> None:
    for command in COMMANDS.values():
        assert len(command.body.splitlines()) < 40, command.name
        rows = re.findall(r"^\| (\d+) \|", command.body, re.MULTILINE)
        assert set(rows) <= {"0", "1", "2", "3", "4", "5"}, command.name
        assert rows == sorted(rows), command.name
        assert {"0", "2", "4"} <= set(rows) or command.name == "check-plan", command.name
        run = [line for line in spans(command) if line.split()[0] in ("execute-phase", "check-plan")]
        assert all("--json" in line for line in run), command.name


def test_only_read_only_commands_are_allowed_without_a_question() -> None:
    """R-PLAN-8: only a person approves, so no host may let it pass."""
    for command in COMMANDS.values():
        allowed = re.findall(r"Bash\(idumb ([a-z-]+):\*\)", command.tools)
        assert command.tools == ", ".join(f"Bash(idumb {name}:*)" for name in allowed), command.name
        assert set(allowed) <= LOOKING, command.name


def test_no_host_runs_or_reads_anything_automatically() -> None:
    """Hosts run text after an exclamation mark, and insert files after an at sign."""
    signs = re.compile(r"!`|!\{|@\{|(?<!\w)@\w|\$\d|\$\{|'''")
    assert {name: found[0] for name, command in COMMANDS.items() if (found := signs.search(command.body))} == {}


def test_the_hosts_page_lists_the_hosts_of_the_program() -> None:
    page = (FOLDER.parent / "docs/hosts.md").read_text(encoding="utf-8")
    for host in hosts.HOSTS:
        assert f"| `{host.name}` | `{host.project}/`" in page
        assert all(f"`{place.project}/`" in page for place in host.places)
        assert all(place.user is None or f"`~/{place.user}/`" in page for place in host.places)
        assert f"`{host.typed.format('idumb-next')}`" in page
        assert len(re.findall(rf"^\| `{host.name}` \|", page, re.MULTILINE)) == 1


def answered(line: str) -> set[str]:
    """The keys that the data of a command's answer can have, by its published schema."""
    names = schemas.by_command()
    words = line.split()
    found = next(names[name] for name in (*(f"{words[0]} {word}" for word in words[1:]), words[0]) if name in names)
    return set(schemas.published(found)["properties"])


def test_every_field_that_a_slash_command_reads_is_in_the_answer() -> None:
    for command in COMMANDS.values():
        fields = {key for line in spans(command) for key in answered(line)}
        assert set(re.findall(r"`data\.(\w+)", command.body)) <= fields, command.name
        assert set(re.findall(r"`error\.(\w+)", command.body)) <= {"code", "message", "hint", "details"}, command.name
