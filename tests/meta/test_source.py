"""Text that no file of the project may contain. Each rule is tested with a line that breaks it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.meta import source

# (what, where it is looked for: code without comments and docstrings, string lists joined by blanks)
FORBIDDEN = {
    "a reset that throws work away": r"\breset\b[^'\"]*--(hard|merge|keep)\b",
    "a clean": r"\bclean -[a-zA-Z]*[fdxX]",
    "the stash": r"(?<=['\" ])stash(?=['\" ])",
    "a forced checkout or switch": r"\b(checkout|switch) (-f\b|--force\b|--discard-changes\b)",
    "a checkout of everything": r"\bcheckout (-- )?\.(?=['\" ])",
    "a shell for composed text": r"\bshell ?= ?True\b",
    "os.system or os.popen": r"\bos\.(system|popen)\b",
    "eval": r"(?<![\w.])eval\(",
    "exec": r"(?<![\w.])exec\(",
    "pickle": r"\b(pickle|marshal|shelve)\b",
}

# Files that have a reason: file -> what they may contain.
WITH_A_REASON = {
    # A cache that is beside the hooks git would run: who can write it needs no other way in.
    "idumb/git/scan/scan_cache.py": {"pickle"},
    # A private file for the process that is started next: who can write it could as well change idumb itself.
    "idumb/gates/project/own.py": {"pickle"},
    "idumb/gates/project/entry_point.py": {"pickle"},
    # Through a pair of sockets between idumb and a process that it started; no other process has them.
    "idumb/system/processes/started_program.py": {"pickle"},
    "idumb/system/processes/guardian.py": {"pickle"},
    # A hint that a person may follow; idumb itself never does.
    "idumb/app/running/task_overrides.py": {"the stash"},
    "idumb/app/worktree/task_base.py": {"the stash"},
    "idumb/domain/refusals/running.py": {"the stash"},
    # As in the standard dataclasses: a function composed of the names of fields, which are in the source of a class.
    "idumb/lazy_dataclass.py": {"exec"},
}

# The modules that open files are kept out by the layer contracts; these need no import.
OPENS_WITHOUT_IMPORT = {"open", "input", "breakpoint", "print", "__import__"}

REAL_CLOCK = {
    "time.sleep",
    "asyncio.sleep",
    "sleep",
    "time.time",
    "time.time_ns",
    "datetime.now",
    "datetime.datetime.now",
}

# Written so that this file does not match itself.
PLACES = {
    "a path of one machine": re.compile(r"(?<![\w.])/(wor[k]|roo[t])/|/tmp/brie[f]"),
    "a package index": re.compile(r"\b(pyp[i]|pythonhoste[d]|npmj[s]|crate[s]|proxy\.golan[g])\.(org|io|com)\b"),
}


def forbidden_in(code: str) -> set[str]:
    text = source.without_docstrings(code)
    return {rule for rule, pattern in FORBIDDEN.items() if re.search(pattern, text)}


@pytest.mark.parametrize("place", source.python_files("idumb"), ids=source.name_of)
def test_no_command_can_lose_work_or_bypass_the_argument_vector(place: Path) -> None:
    violations = forbidden_in(place.read_text(encoding="utf-8"))
    assert violations <= WITH_A_REASON.get(source.name_of(place), set())


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("run(['git', 'reset', '-q', '--hard', oid])", "a reset that throws work away"),
        ("git('clean', '-xfd')", "a clean"),
        ("git('stash', 'push')", "the stash"),
        ("run('git stash push')", "the stash"),
        ("git('checkout', '-f', name)", "a forced checkout or switch"),
        ("git('switch', '--discard-changes', name)", "a forced checkout or switch"),
        ("git('checkout', '--', '.')", "a checkout of everything"),
        ("run(text, shell=True)", "a shell for composed text"),
        ("os.system(text)", "os.system or os.popen"),
        ("eval(text)", "eval"),
        ("exec(text)", "exec"),
        ("import pickle", "pickle"),
    ],
)
def test_the_rule_detects(code: str, rule: str) -> None:
    assert forbidden_in(code) == {rule}


@pytest.mark.parametrize(
    "code",
    [
        '"""Never `git reset --hard` and never `git stash`."""',
        "x = 1  # git clean -fdx would be wrong here",
        "REF = 'refs/stash'",
        "git('reset', '-q', '--', path)",
        "await create_subprocess_exec(*argv)",
        "git('checkout', '-b', name)",
    ],
)
def test_the_rule_allows(code: str) -> None:
    assert forbidden_in(code) == set()


def test_no_module_compiles_a_regular_expression_when_it_is_loaded() -> None:
    """`lazy_pattern` does so at the first use."""
    for place in source.python_files("idumb"):
        outside = list(ast.iter_child_nodes(source.parsed(place)))
        while outside:
            node = outside.pop()
            assert not (isinstance(node, ast.Call) and source.dotted(node.func) == "re.compile"), source.name_of(place)
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                outside.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("room", ["domain", "app"])
def test_pure_packages_call_no_builtin_with_effects(room: str) -> None:
    calls = [
        f"{source.name_of(place)}:{line} {name}"
        for place in source.python_files(f"idumb/{room}")
        for line, name in source.calls(place)
        if name in OPENS_WITHOUT_IMPORT
    ]
    assert calls == []


def test_every_room_is_a_package() -> None:
    """A folder without `__init__.py` is not seen by the layer contracts."""
    folders = {place.parent for place in source.python_files("idumb")}
    assert [source.name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_every_package_is_in_the_house_plan() -> None:
    packages = {place.parent.name for place in (source.ROOT / "idumb").glob("*/__init__.py")}
    assert packages <= set(source.ROOMS)


def test_no_test_sleeps_or_reads_the_clock() -> None:
    calls = [
        f"{source.name_of(place)}:{line} {name}"
        for place in source.python_files("tests")
        for line, name in source.calls(place)
        if name in REAL_CLOCK
    ]
    assert calls == []


@pytest.mark.parametrize("kind", PLACES)
def test_the_repository_names_no_private_place(kind: str) -> None:
    matches = []
    for place in source.files():
        text = place.read_bytes().decode("utf-8", "replace")
        matches += [f"{source.name_of(place)}: {match[0]}" for match in PLACES[kind].finditer(text)]
    assert matches == []
