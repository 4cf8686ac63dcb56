"""Files of a project that a command runs, and files that nothing in the project calls, as far as names show."""

from __future__ import annotations

import functools
import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence

from idumb import lazy_pattern
from idumb.domain import paths
from idumb.domain.plans import commands, programs
from idumb.lazy_dataclass import dataclass

# fmt: off
_NO_TARGET = frozenset({
    "add", "audit", "ci", "dlx", "exec", "i", "info", "init", "install", "link", "list", "ls", "outdated", "pack",
    "remove", "update", "version", "view", "why", "x",
})
"""Subcommands of package managers that run no script of the project on purpose."""
_WITH_VALUE = frozenset({"-R", "-c", "-e", "-g", "-k", "-m", "-n", "-o", "-p", "-r", "-t"})
# fmt: on
_TEST = lazy_pattern.compile(
    r"(?:^|/)(?:tests?|test_[^/]*|[^/]*_tests?|[^/]*[.-](?:test|spec)s?|[^/]*Tests?|[^/]*_spec|conftest)\.[A-Za-z]+$"
    r"|(?:^|/)(?:tests?|specs?|__tests__)(?:/|$)"
)
_ASIDE = lazy_pattern.compile(
    r"(?:^|/)(?:testing|fixtures|testdata|examples?|benches|bench|benchmarks?|migrations|vendor|_?vendored|third[_-]party"
    r"|node_modules|dist)/|^(?:scripts|tools|bin|docs?|build|hack|ci|\.[^/]+)/"
    r"|(?:^|/)(?:setup|noxfile|manage|__main__)\.py$|\.min\.js$|\.(?:stories|config)\.[cm]?[jt]sx?$"
)
"""Programs, data, and code of others or of tools: what no caller of the project names."""
_JUDGING = lazy_pattern.compile(r"test|spec|check|verif|valid|assert|smoke|e2e|lint|(?:^|/)ci(?:\W|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Paths relative to the root of the repository.

    - `programs`: scripts that judge, and files that define targets.
    - `tests`: files that a test program is given. `suites`: folders whose tests it runs all ("" is the root).
    """

    programs: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()


def is_test(path: str) -> bool:
    """Return whether a path or glob names tests, or what configures them."""
    return _TEST.search(path) is not None


def has_no_callers(path: str) -> bool:
    """Return whether nothing outside a file calls what it defines: tests, scripts, vendored and generated code."""
    return is_test(path) or _ASIDE.search(path) is not None


@functools.lru_cache(maxsize=1024)
def of_command(text: str) -> RunFiles:
    """Return the files of the project that a command runs."""
    folder = ""
    scripts: dict[str, None] = {}
    tests: dict[str, None] = {}
    suites: dict[str, None] = {}
    for command in commands.read(text).commands:
        words = command.own
        if words[:1] == ["cd"] and len(words) > 1:
            folder = _below(folder, words[1]) or folder
            continue
        tool = _test_tool(words)
        if tool is not None:
            _take_tests(words[:tool], words[tool:], folder, tests, suites)
            continue
        for path in filter(None, (_below(folder, name) for name in _scripts(words))):
            (tests if is_test(path) else scripts)[path] = None
    return RunFiles(tuple(scripts), tuple(tests), tuple(suites))


def _below(folder: str, name: str) -> str:
    """Return a path relative to the root; "" if it is not below it."""
    path = posixpath.normpath(posixpath.join(folder, name))
    return "" if paths.problem(path) is not None or path == "." else path


def _test_tool(words: Sequence[str]) -> int | None:
    """Return the index after the test program of a command; None if it starts none."""
    names = [word.rpartition("/")[2] for word in words]
    for index, name in enumerate(names[:8]):
        if programs.does(name, programs.TEST) and name not in programs.DEFINITIONS:
            return index + 1
        if name in ("go", "cargo", "bun", "deno") and names[index + 1 : index + 2] == ["test"]:
            return index + 2
        if name == "node" and "--test" in names:
            return index + 1
        if programs.does(names[0], programs.INTERPRETER):
            if index and "-m" not in (name, names[index - 1]):
                return None
        elif not programs.does(names[0], programs.STARTS) or names[:2] == ["npm", "run"]:
            return None
    return None


def _take_tests(
    program: Sequence[str], arguments: Sequence[str], folder: str, tests: dict[str, None], suites: dict[str, None]
) -> None:
    """Add the files and folders that are given to a test program; without any, it runs all tests below `folder`."""
    given = [operand for operand in programs.operands(arguments, _WITH_VALUE) if operand != "run"]
    if "unittest" in program:
        given = [] if "discover" in arguments else [_module(name) for name in given]
    if "cargo" in program:
        given = [f"tests/{one}.rs" for flag, one in itertools.pairwise(arguments) if flag == "--test"]
    named = False
    for operand in given:
        recursive = operand.endswith(("/...", "/")) or operand == "..."
        name = operand.partition("::")[0].removesuffix("...").rstrip("/")
        path = _below(folder, name)
        if not path and name not in (".", ""):
            continue
        named = True
        (suites if recursive or not posixpath.splitext(path)[1] else tests)[path] = None
    if not named:
        suites[folder] = None


def _module(name: str) -> str:
    """Return the file of a Python module."""
    return name if "/" in name or name.endswith(".py") else f"{name.replace('.', '/')}.py"


def _scripts(words: Sequence[str]) -> Iterator[str]:
    """Yield the scripts that judge, and the files with the targets, that a simple command runs."""
    while words and programs.does(words[0], programs.STARTS) and words[0] not in programs.DEFINITIONS:
        rest = [word for word in words[1:] if not word.startswith("-")]
        words = rest[1:] if rest[:1] == ["run"] else rest
    if not words:
        return
    name = words[0].rpartition("/")[2]
    if "/" in words[0] and not words[0].startswith("/"):
        if _JUDGING.search(words[0]):
            yield words[0]
    elif programs.does(name, programs.INTERPRETER, programs.SHELL) or name.startswith("python3."):
        options = {word for word in words[1:] if word in ("-c", "-e", "-m")}
        is_module = words[1:2] == ["-m"] and len(words) > 2
        script = _module(words[2]) if is_module else next(iter(programs.operands(words[1:], _WITH_VALUE)), "")
        if (is_module or not options) and _JUDGING.search(script):
            yield script
    elif name in programs.DEFINITIONS:
        yield from _definitions(name, words[1:])


def _definitions(name: str, arguments: Sequence[str]) -> Iterator[str]:
    folder = next((b for a, b in itertools.pairwise(arguments) if a in ("-C", "--prefix", "--dir")), "")
    given = [b for a, b in itertools.pairwise(arguments) if a in ("-f", "--file", "--makefile")]
    operands = [argument for argument in arguments if not argument.startswith("-") and argument != folder]
    if "package.json" in programs.DEFINITIONS[name] and (not operands or operands[0] in _NO_TARGET):
        return
    yield from (posixpath.join(folder, file) for file in given or programs.DEFINITIONS[name])
