"""The gate `design`: no new import cycle, and no import that breaks a layer contract of the project.

Coupling and complexity are compared with the base as a score, which fails nothing unless a threshold is configured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from idumb import lazy_pattern
from idumb.domain.plans import run_files
from idumb.domain.proof import gate_table
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change
from idumb.gates import layer_contracts
from idumb.gates.languages import imports
from idumb.gates.languages.imports import Import

_LONGEST = 1024 * 1024
_MOST_FILES = 3000


def judge(inputs: Inputs) -> Judged | None:
    """Return new cycles and broken contracts of changed files; None if no changed file has imports that idumb reads."""
    tree = _Tree(inputs)
    if not tree.changed:
        return None
    wrong = [*_cycles(tree), *_broken_contracts(tree)]
    score, words = _score(tree)
    asked = inputs.asked.get(gate_table.DESIGN)
    threshold = None if asked is None else asked.threshold
    if score is not None and threshold is not None and score < threshold:
        wrong.append(Violation("", 0, f"{words}; the threshold is {threshold}"))
    return Judged(wrong, words)


class _Tree:
    """The import graph before and after, read file by file as far as it is needed."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._texts: dict[tuple[str, bool], str | None] = {}
        self._imports: dict[tuple[str, bool], list[Import] | None] = {}
        self._targets: dict[tuple[str, bool], Mapping[str, int]] = {}
        self._all = {change.path: change for change in inputs.changes}
        moved = {change.old.oid for change in inputs.changes if change.old is not None and change.new is None}
        self.changed = {
            path: change
            for path, change in self._all.items()
            if path.rpartition(".")[2] in imports.SUFFIXES
            and change.new is not None
            and change.new.oid not in moved
            and not run_files.has_no_callers(path)
        }

    def text(self, path: str, *, old: bool) -> str | None:
        """Return the text of a file before or after; None if there is none, or if it cannot be read."""
        key = (path, old and path in self._all)
        if key not in self._texts:
            change = self._all.get(path)
            entry = self._inputs.entry(path) if change is None else change.old if old else change.new
            data = self._inputs.read(entry, _LONGEST)
            self._texts[key] = None if data is None else data.decode("utf-8-sig", "replace")
        return self._texts[key]

    def exists(self, path: str) -> bool:
        change = self._all.get(path)
        return (self._inputs.entry(path) if change is None else change.new) is not None

    def imports(self, path: str, *, old: bool) -> list[Import]:
        key = (path, old and path in self._all)
        if key not in self._imports:
            text = self.text(path, old=old)
            self._imports[key] = None if text is None else imports.of_text(path, text)
        return self._imports[key] or []

    def targets(self, path: str, *, old: bool) -> Mapping[str, int]:
        """Return the files that a file imports when it is imported, with the line of the first such import."""
        key = (path, old and path in self._all)
        if key not in self._targets:
            targets: dict[str, int] = {}
            for one in self.imports(path, old=old):
                target = imports.file_of(path, one, self.exists) if one.runs else None
                if target is not None and target != path and not self._only_types(path, one, target, old=old):
                    targets.setdefault(target, one.line)
            self._targets[key] = targets
        return self._targets[key]

    def _only_types(self, path: str, one: Import, target: str, *, old: bool) -> bool:
        is_typed = path.endswith((".ts", ".tsx", ".mts", ".cts"))
        return is_typed and imports.only_types(one, self.text(target, old=old) or "")

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


def _cycles(tree: _Tree) -> Iterator[Violation]:
    """Yield each cycle that a new import closes. Files that already imported each other in a cycle count no more."""
    named: set[frozenset[str]] = set()
    for path in tree.changed:
        before = tree.targets(path, old=True)
        for target, line in tree.targets(path, old=False).items():
            chain = None if target in before else tree.way(target, path, old=False)
            if chain is None or frozenset(chain) in named:
                continue
            named.add(frozenset(chain))
            if tree.way(target, path, old=True) is None or tree.way(path, target, old=True) is None:
                yield Violation(path, line, f"a new import cycle: {' → '.join((path, *chain))}")


def _broken_contracts(tree: _Tree) -> Iterator[Violation]:
    """Yield each new import that a contract of import-linter forbids; it does not judge chains of imports."""
    if not any(path.endswith(".py") for path in tree.changed):
        return
    declared = layer_contracts.read(lambda path: tree.text(path, old=False))
    if declared is None:
        return
    for path in tree.changed:
        importer = _module(path, declared.roots)
        if importer is None:
            continue
        before = set(_imported(path, importer, tree, old=True))
        for name, line in _imported(path, importer, tree, old=False).items():
            for contract in declared.contracts if name not in before else ():
                if contract.forbids(importer, name):
                    words = f"{importer} imports {name}, which breaks the contract: {contract.name}"
                    yield Violation(path, line, words)


def _module(path: str, roots: tuple[str, ...]) -> str | None:
    """Return the dotted name of a file of one of the root packages."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    places = (number for number, part in enumerate(parts) if part in roots)
    place = next(places, None) if path.endswith(".py") else None
    return None if place is None else ".".join(parts[place:])


def _imported(path: str, importer: str, tree: _Tree, *, old: bool) -> Mapping[str, int]:
    """Return the dotted names of imported modules, with their lines; also of imports inside functions."""
    names: dict[str, int] = {}
    package = importer.split(".") if path.endswith("/__init__.py") else importer.split(".")[:-1]
    for one in tree.imports(path, old=old):
        name = one.module.lstrip(".")
        level = len(one.module) - len(name)
        parts = [*(package[: len(package) - level + 1] if level else ()), *filter(None, name.split("."))]
        target = imports.file_of(path, one, tree.exists)
        is_module = target is not None and re.search(rf"(?:^|/){re.escape(one.name)}(?:\.py|/__init__\.py)$", target)
        names.setdefault(".".join([*parts, one.name] if one.name and is_module else parts), one.line)
    return names


_BRANCH = lazy_pattern.compile(r"\b(?:if|for|while|case|catch|except|elif)\b|&&|\|\||\band\b|\bor\b|\?(?![.?:])")
_NOT_CODE = lazy_pattern.compile(
    r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|#[^\n]*|/\*[\s\S]*?\*/'
)


def _score(tree: _Tree) -> tuple[int | None, str]:
    """Return the score, and its parts in words; None if no changed file existed before."""
    before, after = (
        [_measured(tree, path, change, old=old) for path, change in tree.changed.items()] for old in (True, False)
    )
    if not any(lines for lines, _, _ in before):
        return None, "no score: no changed file existed before"
    sums = [tuple(map(sum, zip(*rows, strict=True))) for rows in (before, after)]
    dense = [100 * branches / max(1, lines) for lines, branches, _ in sums]
    files = [sum(1 for lines, _, _ in rows if lines) for rows in (before, after)]
    coupled = [imported / max(1, count) for (_, _, imported), count in zip(sums, files, strict=True)]
    parts = [100 * min(1.0, (old + 1) / (new + 1)) for old, new in (dense, coupled)]
    score = round(sum(parts) / len(parts))
    return score, (
        f"score {score} of 100: complexity {dense[0]:.1f} → {dense[1]:.1f} branches per 100 lines,"
        f" coupling {coupled[0]:.1f} → {coupled[1]:.1f} imports per file"
    )


def _measured(tree: _Tree, path: str, change: Change, *, old: bool) -> tuple[int, int, int]:
    """Return lines, branches and imported modules of a file; zeros if there is none."""
    text = tree.text(path, old=old) if not old or change.old is not None else None
    if text is None:
        return 0, 0, 0
    lines = sum(1 for line in text.splitlines() if line.strip())
    modules = {one.module for one in tree.imports(path, old=old)}
    closed = text.rfind("*/") + 2  # after that, a search from each `/*` would go through the rest of the file
    code = _NOT_CODE.sub('""', text[:closed] + text[closed:].replace("/*", "/ *"))
    return lines, len(_BRANCH.findall(code)), len(modules)
