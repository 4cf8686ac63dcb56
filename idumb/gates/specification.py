"""The gate `specification`: public functions that a task adds or changes say what callers must know.

That is inputs, outputs, errors and side effects. Only what the source shows counts: a raised error, a written file, a
parameter without a type. Problems that a function had before are none of the task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from idumb import lazy_pattern
from idumb.domain.plans import run_files
from idumb.domain.proof.gate import Before, Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change
from idumb.gates.languages import public_readers, public_scripts

_LONGEST = 1024 * 1024


class Function(NamedTuple):
    """One public function: the line of its start, its source text, and what it does not declare."""

    line: int
    text: str
    problems: tuple[str, ...]


Reader = Callable[[str, str], Iterator[tuple[str, Function]]]
"""Reads the public functions of a text, given its path."""


def judge(inputs: Inputs) -> Judged | None:
    """Return what new and changed public functions do not declare; None if there is no such function."""
    wrong: list[Violation] = []
    judged = 0
    elsewhere = Before(inputs, lambda change: _functions(inputs, change, old=True))
    for change in inputs.changes:
        if change.new is None or run_files.has_no_callers(change.path):
            continue
        after, before = (_functions(inputs, change, old=old) for old in (False, True))
        for name, function in after.items():
            old = before.get(name) or elsewhere.find(name)
            if old is None or old.text != function.text:
                judged += 1
                known = () if old is None else old.problems
                problems = [each for each in function.problems if each not in known]
                wrong += [Violation(change.path, function.line, f"{name} {each}") for each in problems]
    return Judged(wrong, f"{judged} new or changed public functions are specified") if judged else None


def _functions(inputs: Inputs, change: Change, *, old: bool) -> Mapping[str, Function]:
    reader = _READERS.get(change.path.rpartition(".")[2].lower())
    data = None if reader is None else inputs.read(change.old if old else change.new, _LONGEST)
    if reader is None or data is None or _GENERATED.search(data[:_HEADER]):
        return {}
    try:
        return dict(reader(data.decode("utf-8-sig"), change.path))
    except UnicodeDecodeError:
        return {}


_HEADER = 1000
_GENERATED = lazy_pattern.compile(rb"DO NOT EDIT|@generated")
"""What generators write at the top: nobody adds a comment there."""


def _python(text: str, path: str) -> Iterator[tuple[str, Function]]:
    from idumb.gates.languages import python_functions

    for each in python_functions.public(text, path):
        yield each.name, Function(each.line, each.text, tuple(each.problems()))


_EXPORTED = lazy_pattern.compile(
    r"^export[ \t]+(?:default[ \t]+)?(?:async[ \t]+)?function[ \t]*\*?[ \t]*(?P<f>[\w$]+)"
    r"|^export[ \t]+const[ \t]+(?P<v>[\w$]+)(?=[^=\n]*=[ \t]*(?:async[ \t]*)?(?:<[^>\n]*>)?\()",
    re.MULTILINE,
)
_RETURNS = lazy_pattern.compile(r"\breturn[ \t]+[^;\s]|\byield\b")
_THROWS = lazy_pattern.compile(r"\bthrow\b")


def _doc_above(text: str, start: int) -> str:
    """Return the comment `/** */` that ends on the line above; "" if there is none."""
    if not _line_above(text, start).endswith("*/"):
        return ""
    opening = text.rfind("/**", 0, start)
    doc, _, between = text[opening + 3 : start].partition("*/")
    return doc if opening >= 0 and not between.strip() else ""


def _line_above(text: str, start: int) -> str:
    return text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start].rstrip()


def _script(text: str, path: str) -> Iterator[tuple[str, Function]]:
    """Exported functions need types (TypeScript) or JSDoc for inputs and outputs, and JSDoc for what they throw."""
    typed = path.rpartition(".")[2].lower() in ("ts", "tsx", "mts", "cts")
    surface = public_scripts.script(text, path)
    for match in _EXPORTED.finditer(text):
        name = match["f"] or match["v"]
        public = surface.get(name)
        if public is None or public.kind != "function":
            continue
        body = _until_unindented(text, match.start())
        own = _without_inner_functions(body)
        doc = _doc_above(text, match.start())
        is_typed = typed and match["v"] and ":" in text[match.end() : text.find("=", match.end())]
        documented = len(re.findall(r"@param\b", doc))
        untyped = sum(1 for each in public.parameters if not each.type and each.required is not False)
        problems = []
        if untyped and not is_typed and documented < (untyped if typed else len(public.parameters)):
            problems.append("does not declare the types of its inputs")
        returns = _RETURNS.search(own) is not None
        if returns and not (typed and (public.text or is_typed)) and not re.search(r"@returns?\b|@yields?\b", doc):
            problems.append("does not declare its output")
        if (
            _THROWS.search(own)
            and not re.search(r"\bcatch\b", own)
            and not re.search(r"throw|error", doc, re.IGNORECASE)
        ):
            problems.append("throws, and its comment does not say so")
        yield name, Function(text.count("\n", 0, match.start()) + 1, body, tuple(problems))


def _without_inner_functions(body: str) -> str:
    """Return a function without what is in functions inside it, as far as its indentation shows them."""
    kept: list[str] = []
    inner: int | None = None
    for number, line in enumerate(body.split("\n")):
        depth = len(line) - len(line.lstrip())
        if inner is not None and (depth > inner or not line.strip()):
            continue
        inner = depth if number and _INNER.search(line) else None
        kept.append(line)
    return "\n".join(kept)


_INNER = lazy_pattern.compile(r"(?:=>|\bfunction\b[^{]*)[ \t]*\{[ \t]*$")


_GO = lazy_pattern.compile(r"^func[ \t]+(?:\([^()\n]*\)[ \t]*)?(?P<name>[A-Z]\w*)", re.MULTILINE)
_GO_KNOWN = frozenset(
    {"String", "Error", "Unwrap", "Is", "As", "Len", "Less", "Swap", "Read", "Write", "Close", "Scan", "Value",
     "Format", "ServeHTTP", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}
)  # fmt: skip
"""Methods that interfaces of Go's own library document."""


def _go(text: str, path: str) -> Iterator[tuple[str, Function]]:
    """Exported functions need a doc comment; Go itself demands the types."""
    surface = public_readers.go(text, path)
    for match in _GO.finditer(text):
        owner = re.search(r"(\w+)(?:\[[^\]]*\])?\)[ \t]*\Z", text[match.start() : match.start("name")])
        name = f"{owner[1]}.{match['name']}" if owner else match["name"]
        if name in surface and not (owner and match["name"] in _GO_KNOWN):
            above = _line_above(text, match.start())
            problems = () if above.startswith("//") or above.endswith("*/") else ("has no doc comment",)
            body = _until_unindented(text, match.start())
            yield name, Function(text.count("\n", 0, match.start()) + 1, body, problems)


def _until_unindented(text: str, start: int) -> str:
    """Return the definition that begins in the first column, up to the line that closes it."""
    following = _UNINDENTED.search(text, text.find("\n", start) + 1 or len(text))
    if following is None:
        return text[start:]
    end = _CLOSING.match(text, following.start())
    return text[start : end.end() if end else following.start()]


_UNINDENTED = lazy_pattern.compile(r"^\S", re.MULTILINE)
_CLOSING = lazy_pattern.compile(r"[})\]][^\n]*\n(?![ \t]*[{)\]])")


_READERS: Mapping[str, Reader] = {
    "py": _python,
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), _script),
    "go": _go,
}
