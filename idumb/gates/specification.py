"""The gate `specification`: public functions that a task adds or changes say what callers must know.

That is inputs, outputs, errors and side effects in Python; other languages are not judged.
Only what the source shows counts. Problems that a function had before are none of the task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from idumb.domain.plans import run_files
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change
from idumb.gates import python_source


def judge(inputs: Inputs) -> Judged | None:
    """Return what new and changed public functions do not declare; None if there is no such function."""
    wrong: list[Violation] = []
    judged = 0
    olds = {change.path: _functions(inputs, change, old=True) for change in inputs.changes}
    elsewhere = {name: old for found in olds.values() for name, old in found.items()}  # what only moved is not new
    for change in inputs.changes:
        if change.new is None or run_files.has_no_callers(change.path):
            continue
        after, before = _functions(inputs, change, old=False), olds[change.path]
        for name, function in after.items():
            old = before.get(name) or elsewhere.get(name)
            if old is None or old.text != function.text:
                judged += 1
                known = () if old is None else tuple(old.problems())
                problems = [each for each in function.problems() if each not in known]
                wrong += [Violation(change.path, function.line, f"{name} {each}") for each in problems]
    return Judged(wrong, f"{judged} new or changed public functions are specified") if judged else None


def _functions(inputs: Inputs, change: Change, *, old: bool) -> Mapping[str, Function]:
    text = inputs.text(change.old if old else change.new) if change.path.endswith(".py") else None
    if text is None or any(words in text[:_HEADER] for words in _GENERATED):
        return {}
    return {each.name: each for each in _public(text, change.path)}


_HEADER = 1000
_GENERATED = ("DO NOT EDIT", "@generated")
"""What generators write at the top: nobody adds a comment there."""


_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_NOT_OWN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_OVERRIDES = frozenset({"override", "overload", "setter", "deleter"})
_UNEXPECTED = frozenset({"NotImplementedError", "AssertionError", "StopIteration", "StopAsyncIteration"})
"""Errors that no caller is meant to handle."""
_EFFECTS = frozenset(
    f"{module}.{name}"
    for module, names in {
        "os": "remove unlink rename replace mkdir makedirs rmdir system kill chmod",
        "shutil": "rmtree move copy copyfile copytree",
        "subprocess": "run Popen check_call check_output call",
        "requests": "post put delete",
        "urllib.request": "urlopen",
    }.items()
    for name in names.split()
)
_WRITING = frozenset({"write_text", "write_bytes", "unlink", "rmdir", "mkdir", "touch"})


class Function(Struct, frozen=True):
    """`name` has its class, as in `Config.read`; `line` counts from 1."""

    name: str
    line: int
    text: str
    node: _Definition
    in_class: bool

    def problems(self) -> Iterator[str]:
        doc = ast.get_docstring(self.node) or ""
        own = list(_own(self.node))
        untyped = (each.arg for each in self._inputs() if each.annotation is None and not each.arg.startswith("_"))
        yield from (f"does not declare the type of {name}" for name in untyped if not _has_type(doc, name))
        if self.node.returns is None and any(map(_gives, own)) and not _has_output(doc):
            yield "does not declare its output"
        raised = [name for name in _raised(own) if name not in _UNEXPECTED]
        if raised and not any(word in doc.lower() for word in ("raise", *(name.lower() for name in raised))):
            yield f"raises {raised[0]}, and its docstring does not say so"
        effect = next((words for node in own if (words := _effect(node))), "")
        if effect and not doc:
            yield f"has a side effect ({effect}) and no docstring"

    def _inputs(self) -> Iterator[ast.arg]:
        arguments = self.node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        static = any(python_source.last(each) == "staticmethod" for each in self.node.decorator_list)
        yield from positional[1:] if self.in_class and not static else positional
        yield from arguments.kwonlyargs


_OUTPUT = (":rtype:", ":return:", ":returns:", "Returns", "Yields")


def _has_output(doc: str) -> bool:
    """Return whether a docstring says what comes out, as Sphinx, Google or NumPy write it."""
    return any(line.strip().startswith(_OUTPUT) for line in doc.splitlines())


def _has_type(doc: str, name: str) -> bool:
    """Return whether a docstring gives the type of a parameter, as Sphinx, Google or NumPy write it."""
    for line in map(str.strip, doc.splitlines()):
        sphinx = line[1:].partition(":")[0].split() if line.startswith((":type ", ":param ")) else []
        if sphinx and sphinx[-1] == name and (sphinx[0] == "type" or len(sphinx) > 2):
            return True
        rest = line.removeprefix(name).lstrip() if line.startswith(name) else ""
        if (rest.startswith("(") and "):" in rest) or (rest.startswith(":") and rest[1:].strip()):
            return True
    return False


def _public(text: str, path: str) -> Iterator[Function]:
    """Yield the functions and methods whose names, modules and classes have no leading underscore."""
    if any(part.startswith("_") and not part.startswith("__") for part in path.split("/")):
        return
    yield from python_source.read(text, lambda tree: [*_of(tree.body, "", text.split("\n"))]) or ()


def _of(body: list[ast.stmt], owner: str, lines: list[str]) -> Iterator[Function]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _of(node.body, f"{owner}{node.name}.", lines)
        if not isinstance(node, _Definition) or node.name.startswith("_"):
            continue
        if _OVERRIDES.isdisjoint(python_source.last(each) for each in node.decorator_list):
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            yield Function(owner + node.name, node.lineno, source, node, bool(owner))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a function contains, without the functions and classes in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _NOT_OWN):
            yield child
            yield from _own(child)


def _gives(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)
    return isinstance(node, ast.Yield | ast.YieldFrom)


def _raised(own: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the names of errors that leave the function; in one that handles some, none is certain to."""
    if not any(isinstance(node, ast.ExceptHandler) for node in own):
        errors = (node.exc for node in own if isinstance(node, ast.Raise) and node.exc is not None)
        yield from (name for name in map(python_source.last, errors) if name[:1].isupper())


def _effect(node: ast.AST) -> str:
    if isinstance(node, ast.Global):
        return f"it changes {', '.join(node.names)}"
    if not isinstance(node, ast.Call):
        return ""
    name = ast.unparse(node.func)
    if name in _EFFECTS or (isinstance(node.func, ast.Attribute) and node.func.attr in _WRITING):
        return f"it calls {name}"
    mode = next((each.value for each in [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
                 if isinstance(each, ast.Constant)), "")  # fmt: skip
    return "it writes a file" if name == "open" and isinstance(mode, str) and set(mode) & set("wax+") else ""
