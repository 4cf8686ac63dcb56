"""Finds the files of the repository that commands and argument lists name: their content decides what these do."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from idumb.domain import paths
from idumb.domain.plans.programs import DEFINITIONS

_SEPARATORS = re.compile(r"[\s;|&()<>\"'`=,]+")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NAME = re.compile(r"[A-Za-z_]\w*")


_PLAIN_OPTION = re.compile(r"-(?!m.)[\w-]*")
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


def unbound(commands: Iterable[str], files: Iterable[str], root: str) -> tuple[str, ...]:
    """Return commands that name none of these files and are not just a program with options (`git --version`)."""
    bound_files = frozenset(files)
    return tuple(
        command
        for command in dict.fromkeys(commands)
        if not _is_plain_program(command) and bound_files.isdisjoint(_named_paths(command, root))
    )


def _is_plain_program(command: str) -> bool:
    program, *options = command.split() or [""]
    is_program_name = re.fullmatch(r"(?:/(?:[\w.+-]+/)*)?[\w.+-]+", program) is not None
    return is_program_name and all(_PLAIN_OPTION.fullmatch(option) for option in options)


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
