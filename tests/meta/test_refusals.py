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
from idumb.domain import amendment, grant, refusals
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
    "idumb/app/contract/changed_contract.py code": (*_LOCK, "run.contract-changed"),
    "f'amend.{field}'": tuple(f"amend.{name}" for name in amendment.UNCHANGEABLE),
    "f'verification.{status}'": _VERIFICATION,
    "f'role.{why.kind}'": ("role.errored",),
    "f'role.{code}'": ("role.errored",),
    "_CODES.get(ending.kind, 'run.failed')": (
        "run.failed", "run.halted", "run.waiting", "run.paused", "run.in-editor", "git.commit-refused",
    ),
    "ended.failure[0]": ("git.commit-refused",),
    # In the module that is named: the parameter or variable `code`.
    "idumb/git/open_repository.py code": tuple(code for _, code, _ in open_repository._IN_PROGRESS),
    "idumb/git/git_program.py code": ("git.ownership", "git.failed"),
    "idumb/markdown/configuration.py code": ("config.invalid", "policy.invalid", "script.invalid"),
    "f'{kind.prefix}.unreadable'": ("config.unreadable", "policy.unreadable"),
    "idumb/app/editor.py code": ("task.failed", "task.waiting", "task.not-ready", "task.other-unfinished"),
    "idumb/app/workflows.py code": ("workflow.other-handoff", "workflow.handoff-over", "workflow.handoff-stale"),
    "idumb/cli/main.py code": (),  # the tuples of its table
    "idumb/store/connection.py code": ("store.failed",),  # and those of its table
}  # fmt: skip
_used: set[str] = set()
"""The rows of the table that a place needs."""
ALWAYS = {"internal": "", "usage": "", "run.interrupted": "domain/errors.py gives it to every Interrupted"}


@dataclass(frozen=True, slots=True)
class Raised:
    """A place that raises a code. `details` are names that are certainly present; None if that is unknown."""

    code: str
    place: str
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
                yield Raised(code, where, _details(node))


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


FAMILIES = frozenset(prefix for family in refusals.FAMILIES for prefix in family.prefixes.split())
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
    row = words if words in COMPUTED else f"{module} {words}"
    is_known = row in COMPUTED or words in PASSED_ON or module.startswith("idumb/cli/")
    assert is_known, f"{module}: which codes can `{words}` be?"
    _used.add(row)
    return COMPUTED.get(row, ())


def _constants(tree: ast.Module) -> dict[str, str]:
    assignments = (node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    return {node.targets[0].id: str(node.value.value) for node in assignments if isinstance(node.targets[0], ast.Name)}  # type: ignore[attr-defined]


def _keyword(node: ast.AST, name: str) -> ast.expr | None:
    given = node.keywords if isinstance(node, ast.Call) else ()
    return next((one.value for one in given if one.arg == name), None)


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
    assert sorted(code for code in codes if refusals.family(code) is None) == [], (
        "name its family in domain/refusals.py"
    )
    assert sorted(FAMILIES - {code.partition(".")[0] for code in codes}) == [], "nothing raises it: take it out"
    assert sorted(refusals.ROWS.keys() - codes) == [], "nothing raises it: take its row out"
    assert sorted(COMPUTED.keys() - _used) == [], "no code is computed like this: correct the row, or take it out"
    assert len(codes) > 150
    assert [missing for one in raised() for missing in unfilled(one)] == []


def unfilled(one: Raised) -> list[str]:
    """If a choice names a detail, every place that raises the code supplies it or its own choices."""
    if one.details is None or "choices" in one.details:
        return []
    ways = refusals.ROWS.get(one.code, ())
    missing = {"phase" for way in ways if "{phase}" in str(way.command)} - one.details
    return [f"{one.place} {one.code}: {sorted(missing)}"] if missing else []


def test_a_code_without_a_command_of_its_own_has_its_hint_or_what_its_family_offers() -> None:
    """R-ASK-1: a detail that is unknown fills no command in, and half a command is never offered."""
    by_hint = refusals.details_of("plan.invalid", "wrong", "Close the fence", {})["choices"]
    assert [(one["text"], one["command"]) for one in by_hint] == [("Close the fence", None)]
    by_family = refusals.details_of("plan.invalid", "wrong", None, {"phase": "1 2"})["choices"]
    assert [str(one["command"]) for one in by_family] == ["None", "idumb check-plan '1 2'"]
    by_words = refusals.details_of("plan.invalid", "wrong", None, {})["choices"]
    assert [(one["text"], one["command"]) for one in by_words] == [("Correct it in an editor", None)]


def test_every_command_of_a_choice_is_accepted_by_the_program() -> None:
    """R-ASK-1: the command and its options exist."""
    ways = [way for ways in refusals.ROWS.values() for way in ways]
    ways += [family.way for family in refusals.FAMILIES if family.way is not None]
    commands = {str(refusals.command_of(way, {"phase": "X"})) for way in ways}
    assert [command for command in commands if not _runs(command)] == []
    assert len(commands) > 10


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
