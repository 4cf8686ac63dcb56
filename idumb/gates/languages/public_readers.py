"""Reads the public names of JavaScript, TypeScript, Go, Rust and Java by patterns. They expect formatted source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from idumb.gates.languages.public_names import CLOSED, FUNCTION, OPEN, REEXPORT, VALUE, Parameter, Public, Surface

Reader = Callable[[str, str], Surface]
"""Reads a text, given its path."""

_QUOTED = r'"(?:\\.|[^"\\\n])*"'
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_SCRIPT_BARE = re.compile(rf"{_QUOTED}|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|{_COMMENT}", re.DOTALL)
_BARE = re.compile(rf"{_QUOTED}|`[^`]*`|'(?:\\.|[^'\\\n])'|{_COMMENT}", re.DOTALL)
_OPENING, _CLOSING = "([{<", ")]}>"


def _without_comments(text: str, pattern: re.Pattern[str]) -> str:
    """Return the text without comments, and without strings that have brackets or commas in them."""

    def bare(match: re.Match[str]) -> str:
        if match[0].startswith("/"):
            return "\n" * match[0].count("\n") or " "
        return '""' if re.search(r"[(){}\[\]<>,;\n]", match[0]) else match[0]

    closed = text.rfind("*/") + 2  # after that, a search from each `/*` would go through the rest of the file
    return pattern.sub(bare, text[:closed] + text[closed:].replace("/*", "/ *"))


def _entries(text: str, separators: str) -> list[str]:
    """Return the parts between separators that are in no bracket, without blank ones."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING and not (character == ">" and text[place - 1 : place] in "=-"):
            depth = max(0, depth - 1)
        elif depth == 0 and character in separators:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [one for part in parts if (one := " ".join(part.split()))]


def _inside(text: str, start: int) -> tuple[str, int]:
    """Return what is in the bracket that opens at or after `start`, and the place after it."""
    opening = next((i for i in range(start, len(text)) if text[i] in "({"), len(text))
    closing = {"(": ")", "{": "}"}.get(text[opening : opening + 1], "")
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == text[opening]) - (text[place] == closing)
        if depth == 0:
            return text[opening + 1 : place], place + 1
    return text[opening + 1 :], len(text)


def _tight(text: str) -> str:
    return re.sub(r"\s*([^\w\s])\s*", r"\1", " ".join(text.split()))


def _to_brace(text: str, start: int) -> str:
    return re.split(r"\{|;|\n\s*\n|=>", text[start : start + 400], maxsplit=1)[0]


# JavaScript and TypeScript

_DECLARED = re.compile(
    r"^(?P<export>export[ \t]+)?(?P<default>default[ \t]+)?(?:declare[ \t]+)?(?:abstract[ \t]+|async[ \t]+)*"
    r"(?:(?P<function>function)\b[ \t]*\*?[ \t]*(?P<f>[\w$]*)|(?P<class>class)\b[ \t]*(?P<c>[\w$]*)"
    r"|(?P<type>interface|type|(?:const[ \t]+)?enum|namespace)[ \t]+(?P<t>[\w$]+)"
    r"|(?:const|let|var)[ \t]+(?P<v>[\w$]+))",
    re.MULTILINE,
)
_ARROW = re.compile(
    r"[ \t]*(?::[^=\n]+)?=[ \t]*(?:async[ \t]*)?(?:function\b[ \t]*\*?[ \t]*[\w$]*[ \t]*)?(?:<[^>\n]*>)?(?=\()"
)
_LIST = re.compile(r"^export[ \t]*(?:type[ \t]*)?\{([^}]*)\}(?P<source>[ \t]*from\b)?", re.MULTILINE)
_ALL = re.compile(r"^export[ \t]*\*[^;\n]*", re.MULTILINE)
_DEFAULT = re.compile(
    r"^(?:export[ \t]+default|module\.exports[ \t]*=)[ \t]+(?P<name>[\w$]+)[ \t]*;?[ \t]*$", re.MULTILINE
)
_DEFAULT_VALUE = re.compile(
    r"^(?:export[ \t]+default|module\.exports[ \t]*=)[ \t]*(?!function|class|async|abstract)\S", re.MULTILINE
)
_COMMON = re.compile(r"^(?:module\.)?exports\.(?P<name>[\w$]+)[ \t]*=", re.MULTILINE)
_COMMON_LIST = re.compile(r"^module\.exports[ \t]*=[ \t]*\{([^{}]*)\}", re.MULTILINE)
_MEMBER = re.compile(
    r"(?P<hidden>(?:private|protected)\b.*|[#_])?(?:(?:public|static|async|readonly|override|abstract|declare|get|set)\s+)*"
    r"\*?(?P<name>[\w$]+)[?!]?\s*(?:<[^>]*>)?(?P<call>\()?"
)
_TYPED = re.compile(r"(?:readonly\s+)?[\"']?(?P<name>[\w$-]+)[\"']?(?P<rest>.*)")


def script(text: str, path: str) -> Surface:
    """Return the exports of a module of JavaScript or TypeScript."""
    typed = path.rpartition(".")[2].lower() in ("ts", "tsx", "mts", "cts")
    bare = _without_comments(text, _SCRIPT_BARE)
    declared: dict[str, Public] = {}
    exports: dict[str, Public] = {}
    for match in _DECLARED.finditer(bare):
        name = match["f"] or match["c"] or match["t"] or match["v"] or "default"
        declared[name] = _script_name(bare, match, typed=typed)
        if match["export"]:
            exports["default" if match["default"] else name] = declared[name]
    for match in _LIST.finditer(bare):
        for entry in _entries(match[1], ","):
            local, _, name = entry.removeprefix("type ").partition(" as ")
            source = Public(REEXPORT) if match["source"] else declared.get(local, Public(REEXPORT))
            exports[name or local] = source
    for match in _COMMON_LIST.finditer(bare):
        for entry in _entries(match[1], ","):
            name, _, local = entry.partition(":")
            exports[name.strip()] = declared.get(local.strip() or name.strip(), Public(VALUE))
    exports.update((match["name"], Public(VALUE)) for match in _COMMON.finditer(bare))
    exports.update((match[0].strip(), Public(REEXPORT)) for match in _ALL.finditer(bare))
    for match in _DEFAULT.finditer(bare):
        exports["default"] = declared.get(match["name"], Public(VALUE))
    if _DEFAULT_VALUE.search(bare) and not _COMMON_LIST.search(bare):
        exports.setdefault("default", Public(VALUE))
    return exports


def _script_name(bare: str, match: re.Match[str], *, typed: bool) -> Public:
    arrow = _ARROW.match(bare, match.end()) if match["v"] else None
    if match["function"] or (arrow and "=>" in _after_call(bare, arrow.end())) or (arrow and "function" in arrow[0]):
        return _script_function(bare, arrow.end() if arrow else match.end(), typed=typed)
    if match["class"]:
        return Public(CLOSED, members=_script_members(_inside(bare, bare.find("{", match.end()))[0], typed=typed))
    if match["type"]:
        return _script_type(bare, match)
    return Public(VALUE)


def _after_call(bare: str, start: int) -> str:
    after = _inside(bare, start)[1]
    return re.split(r"[;{]", bare[after : after + 300], maxsplit=1)[0]


def _script_function(bare: str, start: int, *, typed: bool) -> Public:
    written, end = _inside(bare, bare.find("(", start))
    parameters = []
    for entry in _entries(written, ","):
        name, _, type_ = entry.partition(":") if not entry.startswith(("{", "[")) else ("", "", "")
        optional = entry.startswith("...") or "=" in entry.replace("=>", "") or name.rstrip().endswith("?")
        if not (typed and name.strip() == "this"):
            required = False if optional else True if typed else None
            parameters.append(
                Parameter(_tight(type_.partition("=")[0]) if "=>" not in type_ else _tight(type_), required)
            )
    result = _to_brace(bare, end).strip()
    return Public(FUNCTION, tuple(parameters), _tight(result[1:]) if result.startswith(":") else "")


def _script_members(body: str, *, typed: bool) -> Mapping[str, Public]:
    members = {}
    for entry in _entries(_ended(body), ";\n"):
        match = _MEMBER.match(entry)
        if match and not match["hidden"]:
            members[match["name"]] = (
                _script_function(entry, match.end() - 1, typed=typed) if match["call"] else Public(VALUE)
            )
    return members


def _ended(body: str) -> str:
    """Return a body in which each closing brace ends an entry."""
    depth, parts = 0, []
    for character in body:
        depth += (character in "({[") - (character in ")}]")
        parts.append(character + "\n" if character == "}" and depth == 0 else character)
    return "".join(parts)


def _script_type(bare: str, match: re.Match[str]) -> Public:
    line_end = bare.find("\n", match.end())
    brace = bare.find("{", match.end(), line_end if line_end > 0 else len(bare))
    equals = bare.find("=", match.end(), brace if brace > 0 else len(bare))
    if brace < 0 or (match["type"] == "type" and bare[equals + 1 : brace].strip()):
        return Public(OPEN, text=_tight(re.split(r";|\n(?=\S)", bare[match.end() :], maxsplit=1)[0]))
    written, _ = _inside(bare, brace)
    typed = (each for entry in _entries(written, ";,\n") if (each := _TYPED.match(entry)))
    return Public(OPEN, members={each["name"]: Public(VALUE, text=_tight(each["rest"])) for each in typed})


# Go

_GO_FUNCTION = re.compile(
    r"^func[ \t]+(?:\((?:\w+[ \t]+)?\*?(?P<owner>\w+)(?:\[[^\]\n]*\])?\)[ \t]*)?(?P<name>\w+)[ \t]*"
    r"(?:\[[^\]\n]*\])?(?=\()",
    re.MULTILINE,
)
_GO_TYPE = re.compile(r"^type[ \t]+(?P<name>\w+)(?:\[[^\]\n]*\])?[ \t]+(?P<rest>=?[^\n]*)", re.MULTILINE)
_GO_VALUE = re.compile(r"^(?:const|var)[ \t]+(?P<name>\w+)", re.MULTILINE)
_GO_BLOCK = re.compile(r"^(?P<kind>const|var|type)[ \t]*\(\n(?P<body>.*?)^\)", re.MULTILINE | re.DOTALL)
_GO_TYPES = re.compile(r"(?:chan|func|map|struct|interface)\b|<-|\*|\[|\.\.\.")


def go(text: str, path: str) -> Surface:
    """Return the exported names of a Go file; none of a program or an internal package."""
    bare = _without_comments(text, _BARE)
    if re.search(r"^package[ \t]+main\b", bare, re.MULTILINE) or "internal" in path.split("/"):
        return {}
    names: dict[str, Public] = {}
    for match in _GO_FUNCTION.finditer(bare):
        written, end = _inside(bare, match.end())
        name = ".".join(filter(None, (match["owner"], match["name"])))
        types = tuple(Parameter(each, required=True) for each in _go_types(written))
        names[name] = Public(FUNCTION, types, _tight(_go_result(bare, end)), exact=True)
    for match in _GO_TYPE.finditer(bare):
        names[match["name"]] = _go_type(bare, match)
    names.update((match["name"], Public(VALUE)) for match in _GO_VALUE.finditer(bare))
    for match in _GO_BLOCK.finditer(bare):
        for line in _entries(match["body"], "\n"):
            names.setdefault(
                re.split(r"\W", line, maxsplit=1)[0], Public(REEXPORT if match["kind"] == "type" else VALUE)
            )
    return {name: public for name, public in names.items() if all(part[:1].isupper() for part in name.split("."))}


def _go_result(bare: str, end: int) -> str:
    line = bare[end : bare.find("\n", end)] if "\n" in bare[end:] else bare[end:]
    text = line.rstrip().removesuffix("{").strip()
    return "(" + ",".join(_go_types(text[1:-1])) + ")" if text.startswith("(") and text.endswith(")") else text


def _go_types(written: str) -> list[str]:
    """Return the types of parameters: `a, b int` are two of the same type."""
    entries = _entries(written, ",")
    pairs = [each.partition(" ") for each in entries]
    if not any(rest and not _GO_TYPES.match(first) for first, _, rest in pairs):
        return [_tight(each) for each in entries]
    types: list[str] = []
    for first, _, rest in reversed(pairs):
        types.append(_tight(rest) if rest else types[-1] if types else first)
    return types[::-1]


def _go_type(bare: str, match: re.Match[str]) -> Public:
    shape = re.match(r"(struct|interface)\s*\{", match["rest"])
    if shape is None:
        return Public(CLOSED, text=_tight(match["rest"]), exact=True)
    body = _inside(bare, match.start("rest"))[0]
    members: dict[str, Public] = {}
    for line in _entries(body, ";\n"):
        field = re.match(r"(?P<names>\w+(?:, ?\w+)*)(?P<rest>.*)", line)
        embedded = re.fullmatch(r"\*?[\w.]+(?:\[.*\])?", line)
        if embedded:
            members[line.rpartition(".")[2].lstrip("*")] = Public(VALUE)
        elif field:
            rest = _tight(re.sub(r'(`[^`]*`|"")\s*$', "", field["rest"]))
            members.update((name.strip(), Public(VALUE, text=rest, exact=True)) for name in field["names"].split(","))
    kind = OPEN if shape[1] == "interface" else CLOSED
    return Public(kind, members={name: one for name, one in members.items() if kind == OPEN or name[:1].isupper()})


# Rust

_RUST_ITEM = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?P<impl>impl)\b(?P<header>[^{;]*)"
    r"|pub[ \t]+(?:(?:const|async|unsafe|extern(?:[ \t]*\"[^\"\n]*\")?)[ \t]+)*fn[ \t]+(?P<fn>\w+)[ \t]*"
    r"(?:<[^(]*>)?(?=\()"
    r"|pub[ \t]+(?:unsafe[ \t]+)?(?P<kind>struct|enum|trait|union|type|const|static|mod|use)[ \t]+"
    r"(?P<name>[^\s;:({=<]+))",
    re.MULTILINE,
)


def rust(text: str, _: str) -> Surface:
    """Return the items with `pub`, and the methods with `pub` of types."""
    bare = _without_comments(text, _BARE)
    names: dict[str, Public] = {}
    owner = ""
    for match in _RUST_ITEM.finditer(bare):
        if match["impl"]:
            target = re.split(r"\bfor\b", re.sub(r"<[^<>]*>", "", match["header"]))[-1]
            owner = re.split(r"\bwhere\b", target)[0].strip() or "impl"
        elif match["fn"]:
            prefix = f"{owner}." if match["indent"] else ""
            names[prefix + match["fn"]] = _rust_function(bare, match.end())
        elif match["kind"] == "use":
            names["use " + bare[match.start("name") : bare.find(";", match.end())]] = Public(REEXPORT)
        elif not match["indent"]:
            names[match["name"]] = _rust_type(bare, match)
    return names


def _rust_function(bare: str, start: int) -> Public:
    written, end = _inside(bare, start)
    types = (re.sub(r"^[^:]*:(?!:)", "", entry) for entry in _entries(written, ","))
    result = re.split(r"\bwhere\b", _to_brace(bare, end))[0]
    return Public(FUNCTION, tuple(Parameter(_tight(each), required=True) for each in types), _tight(result), exact=True)


def _rust_type(bare: str, match: re.Match[str]) -> Public:
    brace = re.compile(r"[^{;]*\{").match(bare, match.end())
    if match["kind"] not in ("struct", "enum", "trait") or brace is None:
        return Public(VALUE)
    body = _inside(bare, brace.end() - 1)[0]
    if match["kind"] == "struct":
        found = (re.match(r"(?:#\[.*\] )*pub (?P<name>\w+)\s*:(?P<rest>.*)", entry) for entry in _entries(body, ","))
        fields = {each["name"]: Public(VALUE, text=_tight(each["rest"]), exact=True) for each in found if each}
        return Public(CLOSED, members=fields)
    separators = "," if match["kind"] == "enum" else ";\n"
    words = (
        re.match(r"(?:#\[.*\] )*(?:(?:async|unsafe|const|fn|type) )*(?P<name>\w+)", e)
        for e in _entries(_ended(body), separators)
    )
    return Public(OPEN, members={each["name"]: Public(VALUE) for each in words if each})


# Java

_JAVA_TYPE = re.compile(
    r"^public[ \t]+(?:\w+[ \t]+)*?(?P<kind>class|interface|enum|record|@interface)[ \t]+(?P<name>\w+)", re.MULTILINE
)
_JAVA_MEMBER = re.compile(
    r"^[ \t]+(?:public|protected)[ \t]+"
    r"(?:(?:static|final|abstract|synchronized|default|native|volatile|transient)[ \t]+)*"
    r"(?:<[^>\n]*>[ \t]*)?(?P<type>[\w.\[\]<>,? ]+?[ \t]+)?(?P<name>\w+)[ \t]*(?P<next>[(=;])",
    re.MULTILINE,
)


def java(text: str, _: str) -> Surface:
    """Return the public types and members of a file; methods by the types of their parameters."""
    bare = _without_comments(text, _BARE)
    names = {match["name"]: Public(match["kind"]) for match in _JAVA_TYPE.finditer(bare)}
    for match in _JAVA_MEMBER.finditer(bare) if names else ():
        result = _tight(match["type"] or "")
        if match["next"] != "(":
            names[match["name"]] = Public(VALUE, text=result, exact=True)
            continue
        written = _entries(_inside(bare, match.end() - 1)[0], ",")
        types = (re.sub(r"(?:@\w+(?:\([^)]*\))?|\bfinal\b)\s*", "", entry).rpartition(" ")[0] for entry in written)
        names[f"{match['name']}({', '.join(map(_tight, types))})"] = Public(VALUE, text=result, exact=True)
    return names


READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), script),
    "go": go,
    "rs": rust,
    "java": java,
}
