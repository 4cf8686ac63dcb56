"""Reads what a header of C declares, and what a C file or a script of a shell defines, by patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping

from idumb import lazy_pattern
from idumb.gates.languages import brackets, symbols
from idumb.gates.languages.public_names import CLOSED, FUNCTION, VALUE, Parameter, Public, Surface

_FUNCTION = lazy_pattern.compile(
    r"^(?!typedef\b|static\b|return\b|else\b|#)(?:extern[ \t]+)?"
    r"(?P<type>[A-Za-z_][\w \t*]*?[ \t*])(?P<name>[A-Za-z_]\w*)"
    r"[ \t]*\((?P<parameters>[^;{}()]*(?:\([^()]*\)[^;{}()]*)*)\)[ \t\n]*(?P<end>[;{])",
    re.MULTILINE,
)
_MACRO = lazy_pattern.compile(r"^#[ \t]*define[ \t]+(?P<name>\w+)(?:\(|[ \t]+\S)", re.MULTILINE)
"""Without a value, it guards the header against a second inclusion."""
_TYPE = lazy_pattern.compile(r"^(?:typedef[ \t]+)?(?:struct|union|enum)[ \t]+(?P<name>\w+)[ \t\n]*(?=\{)", re.MULTILINE)
_ALIAS = lazy_pattern.compile(r"^(?:typedef\b[^;{}]*\b|\}[ \t]*)(?P<name>\w+)[ \t]*;", re.MULTILINE)
_OTHER_LANGUAGE = lazy_pattern.compile(r"^[ \t]*(?:class|template|namespace|using)\b|^@interface\b", re.MULTILINE)
_LAST_WORD = lazy_pattern.compile(
    r"(?<=[\w* ])\b(?!(?:int|char|long|short|float|double|unsigned|signed|const)\b)\w+[ \t]*(?=\[|$)"
)


def header(text: str) -> Surface | None:
    """Return the functions, types and macros of a header; None if it is one of C++ or Objective-C."""
    bare = brackets.without_comments(text, brackets.OTHERS)
    if _OTHER_LANGUAGE.search(bare):
        return None
    names = {match["name"]: Public(VALUE) for match in _MACRO.finditer(bare)}
    names |= {match["name"]: Public(VALUE) for match in _ALIAS.finditer(bare)}
    for match in _TYPE.finditer(bare):
        names[match["name"]] = Public(CLOSED, text=brackets.tight(brackets.inside(bare, match.end())[0]))
    return {**names, **_functions(bare)}


def _functions(bare: str) -> Mapping[str, Public]:
    """Return the functions that are not static. Names of parameters do not count."""
    found: dict[str, Public] = {}
    for match in _FUNCTION.finditer(bare):
        written = [each for each in brackets.entries(match["parameters"], ",") if each != "void"]
        parameters = tuple(Parameter(brackets.tight(_LAST_WORD.sub("", each)), required=True) for each in written)
        found[match["name"]] = Public(FUNCTION, parameters, brackets.tight(match["type"]), exact=True)
    return found


def program(text: str, path: str) -> Surface | None:
    """Return the functions that a C file or a script defines, and that others may call; None if it cannot be read."""
    if path.endswith(".c"):
        return _functions(brackets.without_comments(text, brackets.OTHERS))
    defined = symbols.definitions(path, text.encode())
    return None if defined is None else {name: Public(VALUE) for name in defined}
