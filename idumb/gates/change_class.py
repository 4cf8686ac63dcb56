"""The gate `change-class`: the public names of the changed files allow the class of change that the task declares.

Signatures show the least class of a change: only tests show whether an unchanged signature behaves as before.
What may break a caller is unknown, and so are other languages; unknown is never `preserving`, but fails nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from idumb.domain import wording
from idumb.domain.plans import run_files
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change
from idumb.gates.languages.imports import SCRIPTS
from idumb.gates.languages.public_names import BREAKING, CLASSES, PRESERVING, UNKNOWN, Difference

_LONGEST = 1024 * 1024
_MOST_FILES = 500
_OTHER_CODE = frozenset(
    {"cc", "cpp", "cxx", "hh", "hpp", "hxx", "m", "mm", "cs", "kt", "kts", "swift", "scala", "rb", "php",
     "pl", "lua", "ex", "exs", "erl", "hs", "clj", "dart", "r", "jl", "zig", "vue", "svelte", "proto"}
)  # fmt: skip


def judge(inputs: Inputs) -> Judged | None:
    """Return public names that a change of the declared class would not touch; None if no source file changed."""
    declared = inputs.task.change or BREAKING
    allowed = CLASSES.index(declared)
    judged = list(_differences(inputs))
    if not judged:
        return None
    wrong = [
        Violation(path, 0, f"{one.words}: the change is {one.change}, and {inputs.task.id} declares {declared}")
        for path, one in sorted(judged, key=lambda pair: pair[1].change != BREAKING)
        if one.change != UNKNOWN and CLASSES.index(one.change) > allowed
    ]
    uncertain = [f"{path}: {one.words}" for path, one in judged if one.change == UNKNOWN]
    if wrong or not uncertain or declared == BREAKING:
        return Judged(wrong, _words([one.change for _, one in judged if one.change != UNKNOWN], declared))
    row = gate_table.of_name(gate_table.CHANGE_CLASS)
    words = f"unknown whether the change is {declared}: {wording.listed(uncertain, 10, between='; ')}"
    summary = "" if row is None else row.summary
    proof = Evidence(f"{evidence.GATE}{gate_table.CHANGE_CLASS}", summary, evidence.UNPROVEN, output=words)
    return Judged(proofs=(proof,))


def _words(classes: Sequence[str], declared: str) -> str:
    least = CLASSES[max(map(CLASSES.index, classes), default=0)]
    if least == PRESERVING:
        return f"declared {declared}; no public name changed, and only tests show whether behaviour did"
    return f"declared {declared}; the public names show {least}"


def _differences(inputs: Inputs) -> Iterator[tuple[str, Difference]]:
    """Yield what happened to the public names of each changed file, by its path; PRESERVING if nothing did."""
    modules: dict[tuple[str, str], list[Change]] = {}
    for change in inputs.changes:
        suffix = change.path.rpartition(".")[2].lower() if "." in change.path.rpartition("/")[2] else ""
        if run_files.has_no_callers(change.path):
            continue
        if suffix in _OTHER_CODE:
            yield change.path, Difference(UNKNOWN, "idumb does not know the language")
        elif suffix in _SUFFIXES:
            modules.setdefault(_module(change.path, suffix), []).append(change)
    for (language, module), changes in list(modules.items())[:_MOST_FILES]:
        path = next((change.path for change in changes if change.new is not None), changes[0].path)
        texts = [_text(inputs, changes, old=old) for old in (True, False)]
        found = None if None in texts else _compare(language, module, path, *(text or "" for text in texts))
        if found is None:
            yield path, Difference(UNKNOWN, "idumb cannot read the file")
        else:
            yield from ((path, one) for one in found or [Difference(PRESERVING, "no public name changed")])
    if len(modules) > _MOST_FILES:
        yield path, Difference(UNKNOWN, f"{len(modules) - _MOST_FILES} further files were not read")


_PROGRAMS = frozenset({"c", "sh", "bash"})
"""Nothing in such a file says whether another one calls a function; only other bodies are certain."""
_SUFFIXES = frozenset({"py", "go", "rs", "java", "h", *_PROGRAMS, *SCRIPTS})


def _module(path: str, suffix: str) -> tuple[str, str]:
    """Return the language and what callers name: a folder in Go, a module in Python and JavaScript, else the file."""
    bare = path.rpartition(".")[0]
    if suffix == "go":
        return suffix, path.rpartition("/")[0]
    if suffix == "py":
        return suffix, re.sub(r"(?:^|/)__init__$", "", bare)
    return ("ts", re.sub(r"/index$", "", bare)) if suffix in SCRIPTS else (suffix, path)


def _text(inputs: Inputs, changes: Sequence[Change], *, old: bool) -> str | None:
    """Return the text of one side of a module; "" if it has no file, None if one cannot be read."""
    entries = [entry for change in changes if (entry := change.old if old else change.new) is not None]
    parts = [inputs.read(entry, _LONGEST) for entry in entries]
    try:
        return "\n".join(part.decode("utf-8-sig") for part in parts if part is not None) if None not in parts else None
    except UnicodeDecodeError:
        return None


def _compare(language: str, module: str, path: str, before: str, after: str) -> list[Difference] | None:
    if language == "py":
        if any(part.startswith("_") and part != "__main__" for part in module.split("/")):
            return []
        from idumb.gates.languages import public_python

        return public_python.compare(module.rpartition("/")[2] or "module", before, after)
    from idumb.gates.languages import public_names

    if language == "h" or language in _PROGRAMS:
        from idumb.gates.languages import public_c

        sides = [public_c.header(text) if language == "h" else public_c.program(text, path) for text in (before, after)]
        if sides[0] is None or sides[1] is None:
            return None
        found = public_names.compare(sides[0], sides[1])
        return [one if language == "h" else one._replace(change=UNKNOWN) for one in found]
    from idumb.gates.languages import public_readers

    read = public_readers.READERS[language]
    return list(public_names.compare(read(before, path), read(after, path)))
