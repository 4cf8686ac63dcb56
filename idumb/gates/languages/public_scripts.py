"""Reads the exports of JavaScript and TypeScript by patterns. They expect formatted source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from idumb import lazy_pattern
from idumb.gates.languages import brackets
from idumb.gates.languages.public_names import ALL, CLOSED, FUNCTION, OPEN, REEXPORT, VALUE, Parameter, Public, Surface

_DECLARED = lazy_pattern.compile(
    r"^(?P<export>export[ \t]+)?(?P<default>default[ \t]+)?(?:declare[ \t]+)?(?:abstract[ \t]+|async[ \t]+)*"
    r"(?:(?P<function>function)\b[ \t]*\*?[ \t]*(?P<f>[\w$]*)|(?P<class>class)\b[ \t]*(?P<c>[\w$]*)"
    r"|(?P<type>interface|type|(?:const[ \t]+)?enum|namespace)[ \t]+(?P<t>[\w$]+)"
    r"|(?:const|let|var)[ \t]+(?P<v>[\w$]+))",
    re.MULTILINE,
)
_ARROW = lazy_pattern.compile(
    r"[ \t]*(?::[^=\n]+)?=[ \t]*(?:async[ \t]*)?(?:function\b[ \t]*\*?[ \t]*[\w$]*[ \t]*)?(?:<[^>\n]*>)?(?=\()"
)
_LIST = lazy_pattern.compile(r"^export[ \t]*(?:type[ \t]*)?\{([^}]*)\}(?P<source>[ \t]*from\b)?", re.MULTILINE)
_TAKEN_APART = lazy_pattern.compile(r"^export[ \t]+(?:const|let|var)[ \t]*[{\[]([^{}\[\]]*)[}\]][ \t]*=", re.MULTILINE)
_ALL = lazy_pattern.compile(r"^export[ \t]*\*[^;\n]*", re.MULTILINE)
_DEFAULT = lazy_pattern.compile(
    r"^(?:export[ \t]+default|module\.exports[ \t]*=)[ \t]+(?P<name>[\w$]+)[ \t]*;?[ \t]*$", re.MULTILINE
)
_DEFAULT_VALUE = lazy_pattern.compile(r"^(?:export[ \t]+default\b|module\.exports[ \t]*=)[ \t]*\S", re.MULTILINE)
_COMMON = lazy_pattern.compile(r"^(?:module\.)?exports\.(?P<name>[\w$]+)[ \t]*=", re.MULTILINE)
_COMMON_LIST = lazy_pattern.compile(r"^module\.exports[ \t]*=[ \t]*(?=\{)", re.MULTILINE)
_COMMON_ENTRY = lazy_pattern.compile(
    r"(?:(?:async|get)[ \t]+)?[*'\"]*(?P<name>[\w$-]+)['\"]?[ \t]*:?[ \t]*(?P<local>.*)", re.DOTALL
)
_MEMBER = lazy_pattern.compile(
    r"(?P<hidden>(?:private|protected)\b.*|[#_])?(?:(?:public|static|async|readonly|override|abstract|declare|get|set)\s+)*"
    r"\*?(?P<name>[\w$]+)[?!]?\s*(?:<[^>]*>)?(?P<call>\()?"
)
_TYPED = lazy_pattern.compile(r"(?:readonly\s+)?[\"']?(?P<name>[\w$-]+)[\"']?(?P<rest>.*)")


def script(text: str, path: str) -> Surface:
    """Return the exports of a module of JavaScript or TypeScript."""
    typed = path.rpartition(".")[2].lower() in ("ts", "tsx", "mts", "cts")
    bare = brackets.without_comments(text, brackets.SCRIPT)
    declared: dict[str, Public] = {}
    exports: dict[str, Public] = {}
    for match in _DECLARED.finditer(bare):
        name = match["f"] or match["c"] or match["t"] or match["v"] or "default"
        made = {name: _script_name(bare, match, typed=typed)}
        if match["v"]:
            made |= dict.fromkeys(_further_names(bare, match.end()), Public(VALUE))
        declared |= made
        if match["export"]:
            exports |= {"default": made[name]} if match["default"] else made
    for match in _LIST.finditer(bare):
        for entry in brackets.entries(match[1], ","):
            local, _, name = entry.removeprefix("type ").partition(" as ")
            source = Public(REEXPORT) if match["source"] else declared.get(local, Public(REEXPORT))
            exports[name or local] = source
    exports |= {name: Public(VALUE) for name in _taken_apart(bare)}
    exports.update((match[0].strip(), Public(REEXPORT)) for match in _ALL.finditer(bare))
    exports |= _common(bare, declared)
    for match in _DEFAULT.finditer(bare):
        exports["default"] = declared.get(match["name"], Public(VALUE))
    if _DEFAULT_VALUE.search(bare) and not _COMMON_LIST.search(bare):
        exports.setdefault("default", Public(VALUE))
    return exports


def _taken_apart(bare: str) -> Iterator[str]:
    """Yield the names of `export const { a, b: c, d = 1, ...e } =`."""
    for match in _TAKEN_APART.finditer(bare):
        for entry in brackets.entries(match[1], ","):
            yield entry.partition("=")[0].rpartition(":")[2].strip(" .")


def _common(bare: str, declared: Surface) -> Surface:
    """Return the exports of a CommonJS module."""
    exports = {match["name"]: Public(VALUE) for match in _COMMON.finditer(bare)}
    for match in _COMMON_LIST.finditer(bare):
        for entry in brackets.entries(brackets.inside(bare, match.end())[0], ","):
            each = _COMMON_ENTRY.match(entry)
            if each is None:
                exports[f"{ALL} of {entry.strip('.')}"] = Public(REEXPORT)
            else:
                exports[each["name"]] = declared.get(each["local"].strip() or each["name"], Public(VALUE))
    return exports


def _further_names(bare: str, start: int) -> list[str]:
    """Return the names after the first one of `const a = 1, b = 2`, on its line."""
    line = bare[start : bare.find("\n", start) if "\n" in bare[start:] else len(bare)]
    found = (re.match(r"([\w$]+)[ \t]*(?:[=:;]|$)", entry) for entry in brackets.entries(line, ",")[1:])
    return [each[1] for each in found if each]


def _script_name(bare: str, match: re.Match[str], *, typed: bool) -> Public:
    arrow = _ARROW.match(bare, match.end()) if match["v"] else None
    if match["function"] or (arrow and "=>" in _after_call(bare, arrow.end())) or (arrow and "function" in arrow[0]):
        return _script_function(bare, arrow.end() if arrow else match.end(), typed=typed)
    if match["class"]:
        opening = bare.find("{", match.end())
        members = _script_members(brackets.inside(bare, opening)[0], typed=typed)
        return Public(CLOSED, members=members, inherits=_extends(bare, match.end(), opening))
    if match["type"]:
        return _script_type(bare, match)
    return Public(VALUE)


def _extends(bare: str, start: int, opening: int) -> bool:
    return re.search(r"\bextends\b", re.sub(r"<[^<>]*>", "", bare[start:opening])) is not None


def _after_call(bare: str, start: int) -> str:
    after = brackets.inside(bare, start)[1]
    return re.split(r"[;{]", bare[after : after + 300], maxsplit=1)[0]


def _script_function(bare: str, start: int, *, typed: bool) -> Public:
    written, end = brackets.inside(bare, bare.find("(", start))
    parameters = []
    for entry in brackets.entries(written, ","):
        name, *types = brackets.entries(entry, ":")
        has_default = len(brackets.entries(entry.replace("=>", ""), "=")) > 1
        optional = entry.startswith("...") or has_default or name.endswith("?")
        type_ = ":".join(types)
        if not (typed and name == "this"):
            required = False if optional else True if typed else None
            parameters.append(Parameter(_type(type_ if "=>" in type_ else type_.partition("=")[0]), required))
    result = brackets.to_brace(bare, end).strip()
    if result == ":":  # an object
        result = f":{{{brackets.inside(bare, bare.find('{', end))[0]}}}"
    return Public(FUNCTION, tuple(parameters), _type(result[1:]) if result.startswith(":") else "")


def _type(text: str) -> str:
    """Return a type without what a formatter chooses: blanks, quotes, and separators at the ends."""
    plain = brackets.tight(text).replace('"', "'").removeprefix("|")
    return re.sub(r"(?<=[=:<(,])\||[,;](?=[}\])>])", "", plain)


def _script_members(body: str, *, typed: bool) -> Mapping[str, Public]:
    members = {}
    for entry in brackets.entries(brackets.ended(_joined(body)), ";\n"):
        match = _MEMBER.match(entry)
        if match and not match["hidden"]:
            members[match["name"]] = (
                _script_function(entry, match.end() - 1, typed=typed) if match["call"] else Public(VALUE)
            )
    return members


def _joined(body: str) -> str:
    """Return a body in which an expression or type that continues is one line."""
    return re.sub(r"(?<==>)[ \t]*\n|(?<=[=:?|&+,])[ \t]*\n|\n(?=[ \t]*[.?:|&+=])", " ", body)


def _script_type(bare: str, match: re.Match[str]) -> Public:
    line_end = bare.find("\n", match.end())
    brace = bare.find("{", match.end(), line_end if line_end > 0 else len(bare))
    equals = bare.find("=", match.end(), brace if brace > 0 else len(bare))
    if brace < 0 or (match["type"] == "type" and bare[equals + 1 : brace].strip()):
        return Public(OPEN, text=_type(re.split(r";|\n(?=\S)", bare[match.end() :], maxsplit=1)[0]))
    written, _ = brackets.inside(bare, brace)
    inherits = _extends(bare, match.end(), brace)
    typed = (each for entry in brackets.entries(_joined(written), ";,\n") if (each := _TYPED.match(entry)))
    return Public(
        OPEN, members={each["name"]: Public(VALUE, text=_type(each["rest"])) for each in typed}, inherits=inherits
    )
