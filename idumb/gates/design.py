"""The gate `design`: a task adds no import cycle in Python. Other languages are not judged.

Coupling and complexity are compared with the base as a score, which fails nothing unless a threshold is configured.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from idumb.domain.plans import run_files
from idumb.domain.proof import gate_table
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.gates import python_source

_MOST_FILES = 3000


class Import(NamedTuple):
    """`module` is the dotted name, with the dots of a relative one; `name` what `from` takes. `line` counts from 1.

    `runs`: the import runs when the file is imported, so that it can close a cycle.
    """

    module: str
    name: str
    line: int
    runs: bool


def judge(inputs: Inputs) -> Judged | None:
    """Return new cycles of changed files; None if no changed file has imports that idumb reads."""
    tree = _Tree(inputs)
    if not tree.changed:
        return None
    wrong = [*_cycles(tree)]
    score, words = _score(tree)
    asked = inputs.asked.get(gate_table.DESIGN)
    threshold = None if asked is None else asked.threshold
    if score is not None and threshold is not None and score < threshold:
        wrong.append(Violation("", 0, f"{words}; the threshold is {threshold}"))
    return Judged(wrong, words)


class _Read(NamedTuple):
    """What counts of a file: lines with text, branches, imported modules; `imports` may close a cycle."""

    lines: int = 0
    branches: int = 0
    modules: int = 0
    imports: tuple[Import, ...] = ()


class _Tree:
    """The import graph before and after, read file by file as far as it is needed."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._read: dict[tuple[str, bool], _Read] = {}
        self._targets: dict[tuple[str, bool], Mapping[str, int]] = {}
        self._all = {change.path: change for change in inputs.changes}
        moved = {change.old.oid for change in inputs.changes if change.old is not None and change.new is None}
        self.changed = [
            path
            for path, change in self._all.items()
            if path.endswith(".py")
            and change.new is not None
            and change.new.oid not in moved
            and not run_files.has_no_callers(path)
        ]

    def read(self, path: str, *, old: bool) -> _Read:
        """Return what is in a file before or after; nothing if there is none, or if it cannot be read."""
        key = (path, old and path in self._all)
        if key not in self._read:
            change = self._all.get(path)
            entry = self._inputs.entry(path) if change is None else change.old if old else change.new
            self._read[key] = _read(self._inputs.text(entry) or "")
        return self._read[key]

    def _exists(self, path: str) -> bool:
        change = self._all.get(path)
        return (self._inputs.entry(path) if change is None else change.new) is not None

    def targets(self, path: str, *, old: bool) -> Mapping[str, int]:
        """Return the files that a file imports when it is imported, with the line of the first such import."""
        key = (path, old and path in self._all)
        if key not in self._targets:
            targets: dict[str, int] = {}
            for one in self.read(path, old=old).imports:
                target = _file_of(path, one, self._exists) if one.runs else None
                if target is not None:
                    targets.setdefault(target, one.line)
            self._targets[key] = targets
        return self._targets[key]

    def way(self, start: str, end: str, *, old: bool) -> list[str] | None:
        """Return the shortest chain of imports from a file to another; None if there is none, or too many files."""
        reached: dict[str, str] = {start: ""}
        waiting = [start]
        while waiting and len(reached) <= _MOST_FILES:
            path = waiting.pop(0)
            if path == end:
                chain = [path]
                while reached[chain[-1]]:
                    chain.append(reached[chain[-1]])
                return chain[::-1]
            for target in self.targets(path, old=old):
                if target not in reached:
                    reached[target] = path
                    waiting.append(target)
        return None


def _read(text: str) -> _Read:
    lines = sum(map(bool, map(str.strip, text.splitlines())))
    return python_source.read(text, partial(_of_python, lines)) or _Read()


def _of_python(lines: int, tree: ast.Module) -> _Read:
    found = [*_below(tree, runs=True)]
    branches = sum(isinstance(node, _BRANCHES) for node in ast.walk(tree))
    return _Read(lines, branches, len({one.module for one in found}), tuple(found))


_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case, ast.BoolOp)


def _below(node: ast.AST, *, runs: bool) -> Iterator[Import]:
    """Yield the imports of a module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(each.name, "", child.lineno, runs) for each in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = "." * child.level + (child.module or "")
            yield from (Import(module, each.name, child.lineno, runs) for each in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (each for part in child.orelse for each in _below(part, runs=runs))
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _below(child, runs=runs and not isinstance(child, python_source.FUNCTIONS))


def _file_of(path: str, one: Import, exists: Callable[[str], bool]) -> str | None:
    """Return the file of the tree that an import in `path` means; None if it is a package from elsewhere."""
    name = one.module.lstrip(".")
    level = len(one.module) - len(name)
    folders = path.split("/")[:-1]
    roots = ["/".join(folders[: len(folders) - level + 1])] if level else _roots(folders, exists)
    for root in roots:
        place = "/".join(filter(None, (root, *name.split("."))))
        inner = "/".join(filter(None, (place, one.name)))
        for base in dict.fromkeys((inner, place) if one.name else (place,)):
            for candidate in (f"{base}.py", f"{base}/__init__.py"):
                if exists(candidate):
                    return candidate
    return None


def _roots(folders: list[str], exists: Callable[[str], bool]) -> list[str]:
    """Return where absolute imports begin: the folder above the file's outermost package, the top, and `src`."""
    depth = len(folders)
    while depth and exists("/".join((*folders[:depth], "__init__.py"))):
        depth -= 1
    return list(dict.fromkeys(("/".join(folders[:depth]), "", "src")))


def _cycles(tree: _Tree) -> Iterator[Violation]:
    """Yield the cycle that each new import closes, unless a chain of imports already led the same way before."""
    for path in tree.changed:
        before = tree.targets(path, old=True)
        for target, line in tree.targets(path, old=False).items():
            chain = None if target in before else tree.way(target, path, old=False)
            if chain is not None and tree.way(path, target, old=True) is None:
                yield Violation(path, line, f"a new import cycle: {' → '.join((path, *chain))}")


def _score(tree: _Tree) -> tuple[int | None, str]:
    """Return the score, and its parts in words; None if no changed file existed before."""
    before, after = ([tree.read(path, old=old) for path in tree.changed] for old in (True, False))
    if not any(each.lines for each in before):
        return None, "no score: no changed file existed before"
    dense, coupled = zip(_measured(before), _measured(after), strict=True)
    parts = [100 * min(1.0, (old + 1) / (new + 1)) for old, new in (dense, coupled)]
    score = round(sum(parts) / len(parts))
    return score, (
        f"score {score} of 100: complexity {dense[0]:.1f} → {dense[1]:.1f} branches per 100 lines,"
        f" coupling {coupled[0]:.1f} → {coupled[1]:.1f} imports per file"
    )


def _measured(files: Sequence[_Read]) -> tuple[float, float]:
    """Return branches per 100 lines, and imported modules per file."""
    lines, count = sum(each.lines for each in files), sum(1 for each in files if each.lines)
    branches, modules = sum(each.branches for each in files), sum(each.modules for each in files)
    return 100 * branches / max(1, lines), modules / max(1, count)
