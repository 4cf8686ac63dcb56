"""Files of a project that commands run or name, and files that nothing in the project calls, as far as names show.

The content of a file that a command names decides what the command does.
"""

from __future__ import annotations

import functools
import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from idumb.domain import paths
from idumb.domain.plans import programs, shell
from idumb.domain.plans.programs import DEFINITIONS

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


class RunFiles(Struct, frozen=True):
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
    for command in shell.read(text).commands:
        words = command.own
        if words[:1] == ["cd"] and len(words) > 1:
            folder = _below(folder, words[1]) or folder
        if not words or programs.has_trait(command.program, *_READING):
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
    if before in ("-m", "unittest") and not programs.has_trait(name, programs.TEST):
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


def deciding(command: str, changed: Iterable[str]) -> tuple[str, ...]:
    """Return those of the paths that decide the result of the command: tests, and files that it names or runs."""
    files = of_command(command)
    script = shell.read(command)
    named = {w.text.removeprefix("./") for part in script.commands for w in (*part.words, *part.targets)}
    named.update(files.programs, files.tests)
    return tuple(path for path in changed if path in named or (is_test(path) and not _RECORDED.search(path)))


_SEPARATORS = re.compile(r"[\s;|&()<>\"'`=,]+")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NAME = re.compile(r"[A-Za-z_]\w*")

_HERE = r"\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`"
# Every word is tried in each folder, so this limit prevents quadratic time for thousands of `cd`.
_MOST_FOLDERS = 16


def named_files(
    commands: Iterable[str], written: Iterable[str], root: str, arguments: Iterable[Sequence[str]] = ()
) -> tuple[str, ...]:
    """Return relative paths that commands and argument lists may name; the content of those files decides what they do.

    `tests/test_a.py::one`, `--config=x.ini`, `python -m tests.test_a`, `cd tests && ./a.sh` and absolute paths below
    `root`, the repository's own, name files too. Paths that a task declares to write (`written`, globs allowed) are
    omitted, because the plan itself changes them. Each argument of an argument list is one word, including its spaces.
    """
    is_written = paths.cover(written)
    lists = [tuple(argv) for argv in arguments]
    texts = dict.fromkeys([*commands, *(" ".join(argv) for argv in lists)])
    files = {path for text in texts for path in _named_paths(text, root)}
    whole = ((argument, argument.partition("=")[2]) for argv in lists for argument in argv)  # and after `--option=`
    files |= {path for words in whole for path in _named_by(words, root)}
    return tuple(sorted(path for path in files if not is_written(path)))


def _named_paths(command: str, root: str) -> set[str]:
    """Return what the words of one command may name, from the root or from a folder that it changed to."""
    # a word does not end inside the root's own name, whatever characters it contains
    top = r"(?<![^\s;|&()<>\"'`=,])" + re.escape(root.rstrip("/"))
    plain = re.sub(rf"(?:{_HERE}|{top})[\"']?/", "./", re.sub(r"/(?:\.?/)+", "/", command))
    names: set[str] = set()
    # `"tests"/a.sh` is one word for a shell, and `sh -c "a.sh"` has two
    for text in dict.fromkeys((plain, re.sub(r"[\"']", "", plain))):
        names |= _named_by(_SEPARATORS.split(text), root)
    return names


def _named_by(words: Sequence[str], root: str) -> set[str]:
    named_paths: set[str] = set()
    folders, last, before = [""], "", ""
    for word in filter(None, words):
        names = tuple(_paths_of(word, before))
        placed = (_from_root(root, folder, name) for folder in folders for name in names)
        named_paths.update(path for path in placed if path is not None and paths.problem(path) is None)
        if before == "cd" and len(folders) < _MOST_FOLDERS:
            last = posixpath.join(last, word)
            folders += [folder for folder in dict.fromkeys((word, last)) if folder not in folders]
        if before != "cd" or word != "--":
            before = word
    return named_paths


def _from_root(root: str, folder: str, name: str) -> str | None:
    """Return a path relative to the root, or None if it is outside."""
    top = posixpath.normpath(root).rstrip("/") + "/"
    path = posixpath.normpath(posixpath.join(top, folder, name))
    return path.removeprefix(top) if path.startswith(top) else None


def _paths_of(word: str, before: str) -> Iterable[str]:
    """Yield what a word may name; `before` is the previous word."""
    name = word.partition("::")[0]
    yield name
    yield from DEFINITIONS.get(name.rpartition("/")[2], ())
    module = name if before == "-m" else name.removeprefix("-m")
    if _MODULE.fullmatch(module) or (_NAME.fullmatch(module) and (before == "-m" or module != name)):
        yield from _of_module(module)


def _of_module(module: str) -> Iterable[str]:
    """Yield the files that Python reads for a module: its own, and those of its packages."""
    place = module.replace(".", "/")
    yield f"{place}.py"
    yield f"{place}/__main__.py"
    while place:
        yield f"{place}/__init__.py"
        place = place.rpartition("/")[0]
