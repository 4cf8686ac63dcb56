"""The gate `change-class`: the public names of the changed files allow the class of change that the task declares.

Signatures show the least class of a change: only tests show whether an unchanged signature behaves as before.
What may break a caller is unknown; that is never `preserving`, but fails nothing. idumb reads Python.
"""

from __future__ import annotations

import ast
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from idumb.domain import wording
from idumb.domain.plans import run_files
from idumb.domain.proof import evidence, gate_table
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change
from idumb.gates import python_source

PRESERVING = "preserving"
EXTENDING = "extending"
MODIFYING = "modifying"
BREAKING = "breaking"
CLASSES = (PRESERVING, EXTENDING, MODIFYING, BREAKING)
"""The classes of a change, the harmless ones first."""
UNKNOWN = "unknown"


class Difference(NamedTuple):
    """`change` is one of CLASSES, or UNKNOWN: what may or may not break a caller."""

    change: str
    words: str


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
        words = f"unknown whether the change is {declared}: {wording.listed(uncertain, 10, between='; ')}"
        return Judged(words=words, result=evidence.UNPROVEN)
    others = wording.listed(path for path, one in judged if one.change == _NOT_JUDGED)
    unread = f"{_NOT_JUDGED}, because idumb reads the public names of Python only: {others}" if others else ""
    classes = [CLASSES.index(one.change) for _, one in judged if one.change in CLASSES]
    if others and not classes:
        subject = f"{evidence.GATE}{gate_table.CHANGE_CLASS}"
        return Judged(proofs=(Evidence(subject, unread, evidence.UNPROVEN, output=unread, level=0),))
    words = _words(CLASSES[max(classes)], declared) if classes else f"declared {declared}"
    return Judged(wrong, f"{words}; {unread}" if others else words)


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
    for module, changes in modules.items():
        path = next((change.path for change in changes if change.new is not None), changes[0].path)
        before, after = (_text(inputs, changes, old=old) for old in (True, False))
        found = None if before is None or after is None else _compared(module, before, after)
        if found is None:
            yield path, Difference(UNKNOWN, "idumb cannot read the file")
        else:
            yield from ((path, one) for one in found or [Difference(PRESERVING, "no public name changed")])


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
    return _compare(parts[-1] or "module", before, after)


def _compare(module: str, before: str, after: str) -> list[Difference] | None:
    """Return what happened to the public names; None if one of the texts cannot be parsed, or only too slowly."""
    once, now = (python_source.read(text, _plain) for text in (before, after))
    if once is None or now is None:
        return None
    import griffe

    logging.getLogger("griffe").setLevel(logging.CRITICAL)  # about names that other files define
    try:
        with warnings.catch_warnings(action="ignore"):  # about escapes in the user's strings
            path: Any = PurePosixPath(f"{module}.py")
            old, new = (griffe.visit(module, path, text) for text in (once, now))
            return [*_broken(griffe, old, new), *_added(old, new, "")]
    except (SyntaxError, ValueError, RecursionError, MemoryError, griffe.GriffeError):
        return None


def _plain(tree: ast.Module) -> str | None:
    """Return the text that griffe is to read; None if that would take too long.

    For each assigned name griffe goes through all others.
    """
    blocks = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    assigned = sum(isinstance(each, ast.Assign | ast.AnnAssign) for block in blocks for each in block)
    return ast.unparse(_Plain().visit(tree)) if assigned <= _MOST_ASSIGNED else None


class _Plain(ast.NodeTransformer):
    """Writes out what griffe overlooks: each name of `a, b = 1, 2`, and the attributes that any method sets.

    Callers do not pass the first parameter of a method, so it is omitted.
    """

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.Assign]:
        if not any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            return node
        names = (name for target in node.targets for name in python_source.assigned(target))
        return [ast.copy_location(ast.Assign([name], ast.Constant(...)), node) for name in names]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        methods = {each.name: each for each in node.body if isinstance(each, python_source.FUNCTIONS)}
        for method in methods.values():
            listed = method.args.posonlyargs or method.args.args
            if listed and not any(python_source.last(each) == "staticmethod" for each in method.decorator_list):
                owner = listed.pop(0).arg
                for each in ast.walk(method):
                    match each:
                        case ast.Attribute(ast.Name(name), attribute, ast.Store()) if name == owner:
                            node.body += () if attribute in methods else ast.parse(f"{attribute} = ...").body
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [ast.Pass()]  # what Python 3.11 cannot write out again is mostly in bodies
        return node


_MOST_ASSIGNED = 2500


def _broken(griffe: Any, old: Any, new: Any) -> Iterator[Difference]:
    kind = griffe.BreakageKind
    words = {
        kind.OBJECT_REMOVED: (BREAKING, "was removed"),
        kind.PARAMETER_REMOVED: (BREAKING, "no longer takes {}"),
        kind.PARAMETER_MOVED: (BREAKING, "takes {} at another position"),
        kind.PARAMETER_CHANGED_KIND: (BREAKING, "takes {} in another way"),
        kind.PARAMETER_CHANGED_REQUIRED: (BREAKING, "now requires {}"),
        kind.PARAMETER_ADDED_REQUIRED: (BREAKING, "now requires {}"),
        kind.PARAMETER_CHANGED_DEFAULT: (MODIFYING, "has another default of {}"),
        kind.CLASS_REMOVED_BASE: (BREAKING, "lost a base class"),
    }
    for breakage in griffe.find_breaking_changes(old, new):
        name = breakage.obj.path.partition(".")[2]
        change, text = words.get(breakage.kind, (UNKNOWN, ""))
        if breakage.kind is kind.OBJECT_REMOVED and (breakage.obj.is_special or _may_come_from_elsewhere(new, name)):
            change = UNKNOWN
        parameter = getattr(breakage.old_value or breakage.new_value, "name", "")
        if breakage.kind is kind.OBJECT_CHANGED_KIND:
            # An assigned function can be called like a defined one; a property cannot.
            certain = "property" in getattr(breakage.obj, "labels", ())
            now = "a property" if certain else f"of kind {breakage.new_value}"
            yield Difference(BREAKING if certain else UNKNOWN, f"{name} was of kind {breakage.old_value} and is {now}")
        elif breakage.kind is kind.CLASS_REMOVED_BASE:
            lost = {str(base) for base in breakage.old_value} - {str(base) for base in breakage.new_value}
            if lost - {"object"}:
                # A new base may inherit from the lost one; who declares type parameters needs no base for them.
                certain = not breakage.new_value and not any(base.startswith("Generic") for base in lost)
                yield Difference(BREAKING if certain else UNKNOWN, f"{name} {text}")
        elif text:
            yield Difference(change, f"{name} {text.format(parameter)}")


def _may_come_from_elsewhere(new: Any, name: str) -> bool:
    """Return whether a name that its module or class no longer defines may be inherited, generated or imported."""
    owner = new
    for part in name.split(".")[:-1]:
        owner = owner.members.get(part)
        if owner is None or not owner.is_class:
            return False
    if owner.is_module:
        return any(n == "__getattr__" or (m.is_alias and m.wildcard) for n, m in owner.members.items())
    return bool(owner.decorators) or any(str(base) != "object" for base in owner.bases)


def _added(old: Any, new: Any, owner: str) -> Iterator[Difference]:
    """Yield new public names, and new optional parameters."""
    for name, member in new.members.items():
        before = old.members.get(name)
        if not member.is_public or member.is_alias or (before is None and member.is_special):
            continue
        if before is None:
            yield Difference(EXTENDING, f"{owner}{name} was added")
        elif member.is_class and before.is_class:
            yield from _added(before, member, f"{owner}{name}.")
        elif member.is_function and before.is_function:
            taken = {parameter.name for parameter in before.parameters}
            optional = [p.name for p in member.parameters if p.name not in taken and not p.required]
            yield from (Difference(EXTENDING, f"{owner}{name} takes a new {parameter}") for parameter in optional)
