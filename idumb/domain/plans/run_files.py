"""Files of a project that a command runs, and files that nothing in the project calls, as far as names show."""

from __future__ import annotations

import functools
import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from idumb.domain import paths
from idumb.domain.plans import commands, programs
from idumb.lazy_dataclass import dataclass

_TEST = re.compile(
    r"(?:^|/)(?:tests?|test_[^/]*|[^/]*_tests?|[^/]*[.-](?:test|spec)s?|[^/]*Tests?|[^/]*_spec|conftest)\.[A-Za-z]+$"
    r"|(?:^|/)(?:tests?|specs?|__tests__)(?:/|$)"
)
_ASIDE = re.compile(
    r"(?:^|/)(?:testing|fixtures|testdata|examples?|benches|bench|benchmarks?|migrations|vendor|_?vendored|third[_-]party"
    r"|node_modules|dist)/|^(?:scripts|tools|bin|docs?|build|hack|ci|\.[^/]+)/"
    r"|(?:^|/)(?:setup|noxfile|manage|__main__)\.py$|\.min\.js$|\.(?:stories|config)\.[cm]?[jt]sx?$"
)
"""Programs, data, and code of others or of tools: what no caller of the project names."""
_JUDGING = re.compile(r"test|spec|check|verif|valid|assert|smoke|e2e|lint|(?:^|/)ci(?:\W|$)", re.IGNORECASE)


_READING = (programs.COMPARE, programs.SHOW, programs.FILTER, programs.SURE, programs.ARRANGE)


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
        if not words or programs.does(command.program, *_READING):
            continue
        named = [path for before, word in itertools.pairwise(("", *words)) for path in _named(folder, before, word)]
        own_tests = [path for path in named if is_test(path) and posixpath.splitext(path)[1]]
        tests.update(dict.fromkeys(own_tests))
        of_suite: list[str] = []
        if not own_tests and programs.judges(words, only_tests=True):
            dots = [word.removesuffix("...") for word in words[1:] if word.startswith("./")]
            of_suite = [*(path for path in named if is_test(path)), *(_below(folder, name) for name in dots)]
            suites.update(dict.fromkeys(of_suite or [folder]))
        judging = [path for path in named if path not in (*own_tests, *of_suite) and _JUDGING.search(path)]
        targets = programs.DEFINITIONS.get(command.program, ()) if programs.judges(words, only_tests=False) else ()
        scripts.update(dict.fromkeys([*judging, *(_below(_folder_of(folder, words), file) for file in targets)]))
    return RunFiles(tuple(scripts), tuple(tests), tuple(suites))


def _below(folder: str, name: str) -> str:
    """Return a path relative to the root; "" if it is not below it."""
    path = posixpath.normpath(posixpath.join(folder, name))
    return "" if paths.problem(path) is not None or path == "." else path


def _named(folder: str, before: str, word: str) -> Iterator[str]:
    """Yield the file that a word may name: a path, a module of Python, or a test of cargo."""
    name = word.partition("::")[0]
    if before in ("-m", "unittest") and not programs.does(name, programs.TEST):
        name = name if "/" in name or name.endswith(".py") else f"{name.replace('.', '/')}.py"
    elif before == "--test" and "." not in name:
        name = f"tests/{name}.rs"
    elif " " in name or ("/" not in name and "." not in name):
        return
    yield from filter(None, [_below(folder, name)])


def _folder_of(folder: str, words: Sequence[str]) -> str:
    """Return the folder whose file defines the targets of a command."""
    given = (b for a, b in itertools.pairwise(words) if a in ("-C", "--prefix", "--dir"))
    return posixpath.join(folder, next(given, ""))


_RECORDED = re.compile(r"(?:^|/)__snapshots__/|\.(?:snap|ambr)$")
"""What test programs record of a result, and complete by themselves."""


def rewritten(command: str, changed: Iterable[str]) -> tuple[str, ...]:
    """Return those of the paths that decide the result of the command: tests, and files that it names or runs."""
    files = of_command(command)
    script = commands.read(command)
    named = {w.text.removeprefix("./") for part in script.commands for w in (*part.words, *part.targets)}
    named.update(files.programs, files.tests)
    return tuple(path for path in changed if path in named or (is_test(path) and not _RECORDED.search(path)))
