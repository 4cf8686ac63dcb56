"""Text that no file of the project may contain. Each rule is tested with a line that breaks it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

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
    "a possessive group": r"\)([*+?]|\{[\d,]+\})\+",  # Python before 3.11.5 loses matches; `(?>(?:...)*)` is right
}

# Files that have a reason: file -> what they may contain.
WITH_A_REASON = {
    # A private file for the process that is started next: who can write it could as well change idumb itself.
    "idumb/gates/own_gate.py": {"pickle"},
    # A hint that a person may follow; idumb itself never does.
    "idumb/app/worktree/task_base.py": {"the stash"},
}

# The modules that open files are kept out by the layer contracts; these need no import.
OPENS_WITHOUT_IMPORT = frozenset({"open", "input", "breakpoint", "print", "__import__"})

REAL_CLOCK = frozenset({
    "time.sleep", "asyncio.sleep", "sleep", "time.time", "time.time_ns", "datetime.now", "datetime.datetime.now",
})  # fmt: skip

# Written so that this file does not match itself.
PLACES = {
    "a path of one machine": re.compile(r"(?<![\w.])/(wor[k]|roo[t])/|/tmp/brie[f]"),
    "a package index": re.compile(r"\b(pyp[i]|pythonhoste[d]|npmj[s]|crate[s]|proxy\.golan[g])\.(org|io|com)\b"),
}


# Code that has none of these breaks no rule; most files need not be parsed.
_SIGNS = re.compile(
    r"--(hard|merge|keep)\b|\bclean\b['\",\s]+-|['\" ]stash['\" ]|\b(checkout|switch)\b['\",\s]+[-.]|\bshell\s*="
    r"|\bos\.(system|popen)\b|\b(eval|exec)\s*\(|\b(pickle|marshal|shelve)\b|\)[*+?}\d,{]+\+"
)


def forbidden_in(code: str) -> set[str]:
    if not _SIGNS.search(code):
        return set()
    text = source.without_docstrings(code)
    return {rule for rule, pattern in FORBIDDEN.items() if re.search(pattern, text)}


def test_no_command_can_lose_work_or_bypass_the_argument_vector() -> None:
    """A reason that no longer has a file is one too many."""
    found = {source.name_of(place): forbidden_in(source.text(place)) for place in source.python_files("idumb")}
    assert {name: rules for name, rules in found.items() if rules} == WITH_A_REASON


BROKEN = [
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
    ("re.compile('(?:a|b){0,9}+c')", "a possessive group"),
]


def test_each_rule_detects_a_line_that_breaks_it() -> None:
    assert [(code, rule) for code, rule in BROKEN if forbidden_in(code) != {rule}] == []
    assert {rule for _, rule in BROKEN} == set(FORBIDDEN)


def test_pure_packages_call_no_builtin_with_effects() -> None:
    rooms = [*source.python_files("idumb/domain"), *source.python_files("idumb/app")]
    assert calls_of(OPENS_WITHOUT_IMPORT, rooms) == []


def calls_of(names: frozenset[str], places: list[Path]) -> list[str]:
    """Each call of one of these names; only files that have the last word of one are parsed."""
    word = re.compile(rf"\b({'|'.join(name.rpartition('.')[2] for name in names)})\s*\(")
    return [
        f"{source.name_of(place)}:{line} {name}"
        for place in places
        if word.search(source.text(place))
        for line, name in source.calls(place)
        if name in names
    ]


def test_a_call_is_found_in_any_place() -> None:
    place = source.ROOT / "tests" / "meta" / "source.py"
    assert Counter(call.split()[1] for call in calls_of(frozenset({"subprocess.run", "sorted"}), [place])) == {
        "subprocess.run": 1,
        "sorted": 1,
    }


def test_every_room_is_a_package() -> None:
    """A folder without `__init__.py` is not seen by the layer contracts."""
    folders = {place.parent for place in source.python_files("idumb")}
    assert [source.name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_every_package_is_in_the_house_plan() -> None:
    packages = {place.parent.name for place in (source.ROOT / "idumb").glob("*/__init__.py")}
    assert packages <= set(source.ROOMS)


def test_no_test_sleeps_or_reads_the_clock() -> None:
    assert calls_of(REAL_CLOCK, source.python_files("tests")) == []


def test_the_repository_names_no_private_place() -> None:
    matches = []
    for place in source.files():
        text = place.read_bytes().decode("utf-8", "replace")
        found = (match for pattern in PLACES.values() for match in pattern.finditer(text))
        matches += [f"{source.name_of(place)}: {match[0]}" for match in found]
    assert matches == []
