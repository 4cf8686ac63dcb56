"""Files of a project that a command runs, and files that nothing in the project calls, as far as names show."""

from __future__ import annotations

import functools
import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence

from idumb import lazy_pattern
from idumb.domain import paths
from idumb.domain.plans import shell
from idumb.lazy_dataclass import dataclass

# fmt: off
_INTERPRETERS = frozenset({
    "bash", "bun", "dash", "deno", "ksh", "lua", "node", "perl", "php", "python", "python2", "python3", "Rscript",
    "ruby", "sh", "ts-node", "tsx", "zsh",
})
_DEFINITIONS = {
    "make": ("Makefile", "makefile", "GNUmakefile"), "gmake": ("Makefile", "makefile", "GNUmakefile"),
    "npm": ("package.json",), "pnpm": ("package.json",), "yarn": ("package.json",),
    "just": ("justfile", "Justfile", ".justfile"), "task": ("Taskfile.yml", "Taskfile.yaml"), "tox": ("tox.ini",),
    "nox": ("noxfile.py",), "rake": ("Rakefile",), "invoke": ("tasks.py",), "inv": ("tasks.py",),
}
"""Programs whose targets a file of the project defines."""
_NO_TARGET = frozenset({
    "add", "audit", "ci", "dlx", "exec", "i", "info", "init", "install", "link", "list", "ls", "outdated", "pack",
    "remove", "update", "version", "view", "why", "x",
})
"""Subcommands of package managers that run no script of the project on purpose."""
_TEST_TOOLS = frozenset({
    "ava", "jasmine", "jest", "mocha", "phpunit", "py.test", "pytest", "rspec", "tap", "tape", "unittest", "vitest",
})
_RUNNERS = frozenset({
    "bunx", "coverage", "env", "hatch", "nice", "npx", "nyc", "pdm", "pipenv", "pnpm", "poetry", "rye", "time",
    "timeout", "uv", "yarn",
})
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
_ASSIGNED = lazy_pattern.compile(r"[A-Za-z_]\w*=")
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


@functools.lru_cache(maxsize=512)
def of_command(command: str) -> RunFiles:
    """Return the files of the project that a command runs."""
    folder = ""
    programs: dict[str, None] = {}
    tests: dict[str, None] = {}
    suites: dict[str, None] = {}
    for words in shell.read(command).commands:
        texts = [word.text for word in words if not _ASSIGNED.match(word.text)]
        if texts[:1] == ["cd"] and len(texts) > 1:
            folder = _below(folder, texts[1]) or folder
            continue
        tool = _test_tool(texts)
        if tool is not None:
            _take_tests(texts[0:tool], texts[tool:], folder, tests, suites)
            continue
        for path in filter(None, (_below(folder, name) for name in _scripts(texts))):
            (tests if is_test(path) else programs)[path] = None
    return RunFiles(tuple(programs), tuple(tests), tuple(suites))


def _below(folder: str, name: str) -> str:
    """Return a path relative to the root; "" if it is not below it."""
    path = posixpath.normpath(posixpath.join(folder, name))
    return "" if paths.problem(path) is not None or path == "." else path


def _test_tool(texts: Sequence[str]) -> int | None:
    """Return the index after the test program of a command; None if it starts none."""
    names = [text.rpartition("/")[2] for text in texts]
    for index, name in enumerate(names[:8]):
        if name in _TEST_TOOLS:
            return index + 1
        if name in ("go", "cargo", "bun", "deno") and names[index + 1 : index + 2] == ["test"]:
            return index + 2
        if name == "node" and "--test" in texts:
            return index + 1
        direct = index == 0 or names[0] in _RUNNERS or names[0] in _INTERPRETERS
        if not direct or (index and names[0] in _INTERPRETERS and not (texts[index - 1] == "-m" or name == "-m")):
            return None
    return None


def _take_tests(
    program: Sequence[str], arguments: Sequence[str], folder: str, tests: dict[str, None], suites: dict[str, None]
) -> None:
    """Add the files and folders that are given to a test program; without any, it runs all tests below `folder`."""
    given = [operand for operand in _operands(arguments) if operand != "run"]
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
        if recursive or not posixpath.splitext(path)[1]:
            suites[path] = None
        else:
            tests[path] = None
    if not named:
        suites[folder] = None


def _module(name: str) -> str:
    """Return the file of a Python module."""
    return name if "/" in name or name.endswith(".py") else f"{name.replace('.', '/')}.py"


def _operands(arguments: Sequence[str]) -> Iterator[str]:
    before = ""
    for argument in arguments:
        if not argument.startswith("-") and before not in _WITH_VALUE:
            yield argument
        before = argument


def _scripts(texts: Sequence[str]) -> Iterator[str]:
    """Yield the scripts that judge, and the files with the targets, that a simple command runs."""
    while texts and texts[0].rpartition("/")[2] in _RUNNERS and texts[0] not in _DEFINITIONS:
        rest = [text for text in texts[1:] if not text.startswith("-") and not text[:1].isdigit()]
        texts = rest[1:] if rest[:1] == ["run"] else rest
    if not texts:
        return
    name = texts[0].rpartition("/")[2]
    if "/" in texts[0] and not texts[0].startswith("/"):
        if _JUDGING.search(texts[0]):
            yield texts[0]
    elif name in _INTERPRETERS or name.startswith("python3."):
        options = {text for text in texts[1:] if text in ("-c", "-e", "-m")}
        script = _module(next(iter(texts[2:]), "")) if texts[1:2] == ["-m"] else next(_operands(texts[1:]), "")
        if (not options or texts[1] == "-m") and _JUDGING.search(script):
            yield script
    elif name in _DEFINITIONS:
        yield from _definitions(name, texts[1:])


def _definitions(name: str, arguments: Sequence[str]) -> Iterator[str]:
    folder = next((b for a, b in itertools.pairwise(arguments) if a in ("-C", "--prefix", "--dir")), "")
    given = [b for a, b in itertools.pairwise(arguments) if a in ("-f", "--file", "--makefile")]
    operands = [argument for argument in arguments if not argument.startswith("-") and argument != folder]
    if name in ("npm", "pnpm", "yarn") and (not operands or operands[0] in _NO_TARGET):
        return
    yield from (posixpath.join(folder, file) for file in given or _DEFINITIONS[name])
