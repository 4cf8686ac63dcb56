"""Every error code that the program can raise has the required parts of a refusal (R-ASK-1)."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import click

from idumb.cli import main
from idumb.domain import amendment
from idumb.domain.consent import grant
from idumb.domain.refusals import row, table
from idumb.git import open_repository
from tests.meta import source

ERRORS = frozenset(
    {"Refusal", "StoreError", "WorkFailed", "AdapterError", "InputError", "UsageError", "IdumbError", "Forbidden"}
)
CODE = re.compile(r"[a-z]+(-[a-z]+)*(\.[a-z]+(-[a-z]+)*)*")
PASSED_ON = frozenset({"problem.code", "refused.code"})
"""The code of an error that was raised elsewhere, where it is found."""

_VERIFICATION = ("verification.failed", "verification.partial", "verification.waiting")
_LOCK = ("lock.plan-changed", "lock.configuration-changed", "lock.policy-changed")
# Where a code is no constant: its expression, to all that it can be.
COMPUTED = {
    "f'approval.{kind}'": tuple(
        f"approval.{kind}" for kind in (grant.VOID, grant.EXPIRED, grant.REVOKED, "missing", "bad-signature")
    ),
    "f'lock.{part}-changed'": _LOCK,
    "f'amend.{field}'": tuple(f"amend.{name}" for name in amendment.UNCHANGEABLE),
    "f\"verification.{verification['status']}\"": _VERIFICATION,
    "f\"verification.{record['status']}\"": _VERIFICATION,
    "f'role.{told.kind}'": tuple(code for code in table.ROWS if code.startswith("role.")),
    "f'role.{code}'": tuple(code for code in table.ROWS if code.startswith("role.")),
    "slug.get(ending.kind, 'run.failed')": (
        "run.failed", "run.halted", "run.waiting", "run.paused", "run.in-editor", "git.commit-refused",
    ),
    "ended.failure[0]": ("git.commit-refused",),
    # In the module that is named: the parameter or variable `code`.
    "idumb/app/worktree/preconditions.py code": (
        *(code for _, code, _ in open_repository._IN_PROGRESS),
        "git.bare", "git.work-tree-elsewhere", "git.holds-state", "git.index-locked", "git.unmerged", "git.failed",
        "git.unreadable",
    ),
    "idumb/git/git_program.py code": ("git.ownership", "git.failed"),
    "idumb/markdown/settings/setting_values.py code": ("config.invalid", "policy.invalid", "script.invalid"),
    "idumb/cli/system_errors.py code": (),  # the tuples of its table
    "idumb/store/log_errors.py code": ("store.failed",),  # and those of its table
}  # fmt: skip
ALWAYS = {"internal": "", "usage": "", "run.interrupted": "domain/errors.py gives it to every Interrupted"}


@dataclass(frozen=True, slots=True)
class Raised:
    """A place that raises a code. `details` are names that are certainly present; None if that is unknown."""

    code: str
    place: str
    hint: str | None
    details: frozenset[str] | None


@cache
def raised() -> tuple[Raised, ...]:
    return tuple(_raised())


def _raised() -> Iterator[Raised]:
    for place in source.python_files("idumb"):
        if not _SIGNS.search(source.text(place)):
            continue
        tree, module = source.parsed(place), source.name_of(place)
        for node in ast.walk(tree):
            for code in _codes(module, tree, _argument(node)):
                where = f"{module}:{getattr(node, 'lineno', 0)}"
                yield Raised(code, where, _hint(node), _details(node))


def _argument(node: ast.AST) -> ast.expr | None:
    """The code of an error that is made here, or of a triple of code, message and hint."""
    if isinstance(node, ast.Call) and node.args:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return node.args[0] if name in ERRORS else None
    if not isinstance(node, ast.Tuple) or len(node.elts) != 3:
        return None
    first, second = node.elts[0], node.elts[1]
    if not isinstance(first, ast.Constant):
        return first if ast.unparse(first) in COMPUTED else None
    if isinstance(second, ast.Constant) and CODE.fullmatch(str(second.value)):
        return None  # a list of names, not a code with its words
    family, dot, _ = str(first.value).partition(".")
    return first if dot and family in FAMILIES and CODE.fullmatch(str(first.value)) else None


FAMILIES = frozenset(code.partition(".")[0] for code in table.ROWS)
_CONSTANTS = {
    word.partition("(")[0].partition("[")[0] for word in COMPUTED if not word.startswith(("idumb/", "f'", 'f"'))
}
_SIGNS = re.compile(
    rf"\b({'|'.join(ERRORS)})\(|['\"]({'|'.join(FAMILIES)})\.|\b({'|'.join(map(re.escape, _CONSTANTS))})"
)
"""A file without any of these raises no code; most files need not be parsed."""


def _codes(module: str, tree: ast.Module, argument: ast.expr | None) -> tuple[str, ...]:
    if argument is None:
        return ()
    if isinstance(argument, ast.IfExp):
        return (*_codes(module, tree, argument.body), *_codes(module, tree, argument.orelse))
    if isinstance(argument, ast.Constant):
        # click's UsageError takes words; its code is "usage"
        return (str(argument.value),) if CODE.fullmatch(str(argument.value)) else ()
    words = ast.unparse(argument)
    if isinstance(argument, ast.Name) and argument.id in (constants := _constants(tree)):
        return (constants[argument.id],)
    if words in PASSED_ON or module.startswith("idumb/cli/"):
        return COMPUTED.get(f"{module} {words}", ())
    code = COMPUTED.get(words, COMPUTED.get(f"{module} {words}"))
    assert code is not None, f"{module}: which codes can `{words}` be?"
    return code


def _constants(tree: ast.Module) -> dict[str, str]:
    assignments = (node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    return {node.targets[0].id: str(node.value.value) for node in assignments if isinstance(node.targets[0], ast.Name)}  # type: ignore[attr-defined]


def _keyword(node: ast.AST, name: str) -> ast.expr | None:
    given = node.keywords if isinstance(node, ast.Call) else ()
    return next((one.value for one in given if one.arg == name), None)


def _hint(node: ast.AST) -> str | None:
    """Return the hint with X for inserted values; None if there is none or it is computed."""
    value = node.elts[2] if isinstance(node, ast.Tuple) else _keyword(node, "hint")
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else None
    if isinstance(value, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in value.values)
    return None


def _details(node: ast.AST) -> frozenset[str] | None:
    value = _keyword(node, "details")
    if isinstance(node, ast.Tuple) or (value is not None and not isinstance(value, ast.Dict)):
        return None
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "Forbidden":
        return None  # who raises it as a refusal tells more
    keys = value.keys if isinstance(value, ast.Dict) else []
    return None if None in keys else frozenset(str(key.value) for key in keys if isinstance(key, ast.Constant))


def test_every_code_has_an_explanation_and_a_choice_with_its_consequence() -> None:
    """R-ASK-1: a code that is new must say so before it can be raised; a row of no code is taken out."""
    codes = {one.code for one in raised()} | ALWAYS.keys()
    assert sorted(codes - table.ROWS.keys()) == [], "write a row in idumb/domain/refusals/"
    assert sorted(table.ROWS.keys() - codes) == [], "nothing raises it: take its row out"
    assert len(codes) > 150
    assert [missing for one in raised() for missing in unfilled(one)] == []
    assert [place for place, hint in offered() if not _runs(hint)] == [], "a hint that is offered as a command is one"


def unfilled(one: Raised) -> list[str]:
    """If a choice names a detail, every place that raises the code supplies it or its own choices."""
    if one.details is None or "choices" in one.details:
        return []
    ways = table.ROWS[one.code].ways
    needed = {name for way in ways for name in row.names(way.command or "")} - {"hint"} - one.details
    return [f"{one.place} {one.code}: {sorted(needed) or 'no choices'}"] if needed or not ways else []


def offered() -> list[tuple[str, str]]:
    """The hints that a choice offers as its command; it can be pasted as it is."""
    rows = {code for code, entry in table.ROWS.items() if any(way.command == row.HINT for way in entry.ways)}
    shown = (one for one in raised() if one.code in rows and "choices" not in (one.details or ()))
    return [(one.place, one.hint) for one in shown if one.hint is not None]


def test_every_command_of_a_choice_is_accepted_by_the_program() -> None:
    """R-ASK-1: the command and its options exist."""
    commands = {way.command for known in table.ROWS.values() for way in known.ways if way.command}
    filled = [
        row.filled(command, None, dict.fromkeys(row.names(command), "X"))
        for command in sorted(commands)
        if command.startswith("idumb ")
    ]
    assert [command for command in filled if command is None or not _runs(command)] == []
    assert len(filled) > 40


def _runs(command: str) -> bool:
    words = shlex.split(command)
    if words[:2] == ["idumb", "--help"]:
        return True
    if words[0] != "idumb":
        return words[0] in {"git", "mkdir", "cd", "ls", "pip"} and command == command.strip(".")
    context = click.Context(main.group)
    subcommand = main.group.get_command(context, words[1])
    if subcommand is None:
        return False
    try:
        subcommand.make_context(words[1], words[2:], parent=context)
    except click.exceptions.Exit:
        return True  # --help
    except click.UsageError:
        return False
    return True
