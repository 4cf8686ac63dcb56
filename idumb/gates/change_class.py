"""The gate `change-class`: the public names of the changed files allow the class of change that the task declares.

Signatures show the least class of a change: only tests show whether an unchanged signature behaves as before.
What may break a caller is unknown; that is never `preserving`, but fails nothing. idumb reads Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from idumb.domain import wording
from idumb.domain.plans import run_files
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change
from idumb.gates.languages import public_python
from idumb.gates.languages.public_python import BREAKING, CLASSES, PRESERVING, UNKNOWN, Difference

_MOST_FILES = 500
_NOT_JUDGED = "not judged"


def judge(inputs: Inputs) -> Judged | None:
    """Return public names that a change of the declared class would not touch; None if no source file changed."""
    declared = inputs.task.change or BREAKING
    judged = list(_differences(inputs))
    if not judged:
        return None
    wrong = [
        Violation(path, 0, f"{one.words}: the change is {one.change}, and {inputs.task.id} declares {declared}")
        for path, one in sorted(judged, key=lambda pair: pair[1].change != BREAKING)
        if one.change in CLASSES and CLASSES.index(one.change) > CLASSES.index(declared)
    ]
    uncertain = [f"{path}: {one.words}" for path, one in judged if one.change == UNKNOWN]
    if not wrong and uncertain and declared != BREAKING:
        return _unproven(f"unknown whether the change is {declared}: {wording.listed(uncertain, 10, between='; ')}")
    others = wording.listed(path for path, one in judged if one.change == _NOT_JUDGED)
    unread = f"{_NOT_JUDGED}, because idumb reads the public names of Python only: {others}" if others else ""
    classes = [CLASSES.index(one.change) for _, one in judged if one.change in CLASSES]
    if others and not classes:
        return _unproven(unread, level=0)
    words = _words(CLASSES[max(classes)], declared) if classes else f"declared {declared}"
    return Judged(wrong, f"{words}; {unread}" if others else words)


def _unproven(words: str, *, level: int = 1) -> Judged:
    row = gate_table.of_name(gate_table.CHANGE_CLASS)
    subject, text = f"{evidence.GATE}{gate_table.CHANGE_CLASS}", words if row is None or level == 0 else row.summary
    return Judged(proofs=(Evidence(subject, text, evidence.UNPROVEN, output=words, level=level),))


def _words(least: str, declared: str) -> str:
    if least == PRESERVING:
        return f"declared {declared}; no public name changed, and only tests show whether behaviour did"
    return f"declared {declared}; the public names show {least}"


def _differences(inputs: Inputs) -> Iterator[tuple[str, Difference]]:
    """Yield what happened to the public names of each changed file, by its path; PRESERVING if nothing did."""
    modules: dict[str, list[Change]] = {}
    for change in inputs.changes:
        if run_files.has_no_callers(change.path):
            continue
        bare, _, suffix = change.path.rpartition(".")
        if suffix == "py":
            modules.setdefault(bare.removesuffix("__init__").rstrip("/"), []).append(change)
        elif suffix.lower() in _OTHER_CODE:
            yield change.path, Difference(_NOT_JUDGED, "")
    for module, changes in list(modules.items())[:_MOST_FILES]:
        path = next((change.path for change in changes if change.new is not None), changes[0].path)
        before, after = (_text(inputs, changes, old=old) for old in (True, False))
        found = None if before is None or after is None else _compared(module, before, after)
        if found is None:
            yield path, Difference(UNKNOWN, "idumb cannot read the file")
        else:
            yield from ((path, one) for one in found or [Difference(PRESERVING, "no public name changed")])
    if len(modules) > _MOST_FILES:
        yield path, Difference(UNKNOWN, f"{len(modules) - _MOST_FILES} further files were not read")


_OTHER_CODE = frozenset(
    {"go", "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "rs", "java", "c", "h", "sh", "bash", "cc", "cpp",
     "cxx", "hh", "hpp", "hxx", "m", "mm", "cs", "kt", "kts", "swift", "scala", "rb", "php", "pl", "lua", "ex", "exs",
     "erl", "hs", "clj", "dart", "r", "jl", "zig", "vue", "svelte", "proto"}
)  # fmt: skip


def _text(inputs: Inputs, changes: Sequence[Change], *, old: bool) -> str | None:
    """Return the text of one side of a module; "" if it has no file, None if one cannot be read."""
    entries = (change.old if old else change.new for change in changes)
    parts = [inputs.text(entry) for entry in entries if entry is not None]
    return None if None in parts else "\n".join(filter(None, parts))


def _compared(module: str, before: str, after: str) -> list[Difference] | None:
    parts = module.split("/")
    if any(part.startswith("_") and part != "__main__" for part in parts):
        return []
    return public_python.compare(parts[-1] or "module", before, after)
