"""Reads the public names of Go, Rust and Java by patterns. They expect formatted source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from idumb import lazy_pattern
from idumb.gates.languages import brackets, public_scripts
from idumb.gates.languages.public_names import ALL, CLOSED, FUNCTION, OPEN, REEXPORT, VALUE, Parameter, Public, Surface

Reader = Callable[[str, str], Surface]
"""Reads a text, given its path."""

# Go

_GO_FUNCTION = lazy_pattern.compile(
    r"^func[ \t]+(?:\((?:\w+[ \t]+)?\*?(?P<owner>\w+)(?:\[[^\]\n]*\])?\)[ \t]*)?(?P<name>\w+)[ \t]*"
    r"(?:\[[^\]\n]*\])?(?=\()",
    re.MULTILINE,
)
_GO_TYPE = lazy_pattern.compile(r"^type[ \t]+(?P<name>\w+)(?:\[[^\]\n]*\])?[ \t]+(?P<rest>=?[^\n]*)", re.MULTILINE)
_GO_VALUE = lazy_pattern.compile(r"^(?:const|var)[ \t]+(?P<names>\w+(?:,[ \t]*\w+)*)", re.MULTILINE)
_GO_BLOCK = lazy_pattern.compile(r"^(?P<kind>const|var|type)[ \t]*\(\n(?P<body>.*?)^\)", re.MULTILINE | re.DOTALL)
_GO_TYPES = lazy_pattern.compile(r"(?:chan|func|map|struct|interface)\b|<-|\*|\[|\.\.\.")


def go(text: str, path: str) -> Surface:
    """Return the exported names of a Go file; none of a program or an internal package."""
    bare = brackets.without_comments(text, brackets.OTHERS)
    if re.search(r"^package[ \t]+main\b", bare, re.MULTILINE) or "internal" in path.split("/"):
        return {}
    names: dict[str, Public] = {}
    for match in _GO_FUNCTION.finditer(bare):
        written, end = brackets.inside(bare, match.end())
        name = ".".join(filter(None, (match["owner"], match["name"])))
        types = tuple(Parameter(each, required=not each.startswith("...")) for each in _go_types(written))
        names[name] = Public(FUNCTION, types, _go_result(bare, end), exact=True)
    for match in _GO_TYPE.finditer(bare):
        names[match["name"]] = _go_type(bare, match)
    for match in _GO_VALUE.finditer(bare):
        names |= dict.fromkeys(re.findall(r"\w+", match["names"]), Public(VALUE))
    for match in _GO_BLOCK.finditer(bare):
        for line in brackets.entries(match["body"], "\n"):
            named = re.match(r"\w+(?:, ?\w+)*", line)
            for name in re.findall(r"\w+", named[0]) if named else ():
                names.setdefault(name, Public(REEXPORT if match["kind"] == "type" else VALUE))
    return {name: public for name, public in names.items() if all(part[:1].isupper() for part in name.split("."))}


def _go_result(bare: str, end: int) -> str:
    opening = re.compile(r"[ \t]*(?=\()").match(bare, end)
    if opening:
        return "(" + ",".join(_go_types(brackets.inside(bare, opening.end())[0])) + ")"
    line = bare[end : bare.find("\n", end)] if "\n" in bare[end:] else bare[end:]
    return _go_text(line.rstrip().removesuffix("{"))


def _go_text(text: str) -> str:
    """Return a type without blanks; `any` is another name of `interface{}`."""
    return brackets.tight(text).replace("interface{}", "any")


def _go_types(written: str) -> list[str]:
    """Return the types of parameters: `a, b int` are two of the same type."""
    entries = brackets.entries(written, ",")
    pairs = [each.partition(" ") for each in entries]
    if not any(rest and not _GO_TYPES.match(first) for first, _, rest in pairs):
        return [_go_text(each) for each in entries]
    types: list[str] = []
    for first, _, rest in reversed(pairs):
        types.append(_go_text(rest) if rest else types[-1] if types else first)
    return types[::-1]


def _go_type(bare: str, match: re.Match[str]) -> Public:
    shape = re.match(r"(struct|interface)\s*\{", match["rest"])
    if match["rest"].startswith("="):
        return Public(REEXPORT)
    if shape is None:
        return Public(CLOSED, text=_go_text(match["rest"]), exact=True)
    body = brackets.inside(bare, match.start("rest"))[0]
    members: dict[str, Public] = {}
    inherits = False
    for line in brackets.entries(body, ";\n"):
        field = re.match(r"(?P<names>\w+(?:, ?\w+)*)(?P<rest>.*)", line)
        embedded = re.fullmatch(r"\*?[\w.]+(?:\[.*\])?", line)
        if embedded:
            members[line.partition("[")[0].rpartition(".")[2].lstrip("*")] = Public(VALUE)
            inherits = True
        elif field:
            rest = _go_text(re.sub(r'(`[^`]*`|"")\s*$', "", field["rest"]))
            members.update((name.strip(), Public(VALUE, text=rest, exact=True)) for name in field["names"].split(","))
    kind = OPEN if shape[1] == "interface" else CLOSED
    public = {name: one for name, one in members.items() if kind == OPEN or name[:1].isupper()}
    return Public(kind, members=public, inherits=inherits)


# Rust

_RUST_ITEM = lazy_pattern.compile(
    r"^(?P<indent>[ \t]*)(?:(?P<impl>impl)\b(?P<header>[^{;]*)|(?P<inner>(?:pub[^\n{;]*[ \t])?mod[ \t]+\w+[ \t]*\{)"
    r"|pub[ \t]+(?:(?:const|async|unsafe|extern(?:[ \t]*\"[^\"\n]*\")?)[ \t]+)*fn[ \t]+(?P<fn>\w+)[ \t]*"
    r"(?:<[^(]*>)?(?=\()"
    r"|pub[ \t]+(?:unsafe[ \t]+)?(?P<kind>struct|enum|trait|union|type|const|static|mod|use)[ \t]+"
    r"(?P<name>[^\s;:({=<]+))",
    re.MULTILINE,
)


def rust(text: str, _: str) -> Surface:
    """Return the items with `pub`, and the methods with `pub` of types."""
    bare = brackets.without_comments(text, brackets.OTHERS)
    names: dict[str, Public] = {}
    owner = ""
    for match in _RUST_ITEM.finditer(bare):
        if match["inner"] or (match["impl"] and match["indent"]):
            owner = ""  # what a module inside the file has is not read
        elif match["impl"]:
            target = re.split(r"\bfor\b", re.sub(r"<[^<>]*>", "", match["header"]))[-1]
            owner = re.split(r"\bwhere\b", target)[0].strip() or "impl"
        elif match["fn"] and (owner or not match["indent"]):
            prefix = f"{owner}." if match["indent"] else ""
            names[prefix + match["fn"]] = _rust_function(bare, match.end(), owner)
        elif match["kind"] == "use" and not match["indent"]:
            used = bare[match.start("name") : bare.find(";", match.end())]
            leaves = re.findall(r"(\w+|\*)\s*(?=[,}]|$)", used)
            names |= {f"{ALL} of {used}" if leaf == ALL else leaf: Public(REEXPORT) for leaf in leaves}
        elif match["kind"] and not match["indent"]:
            names[match["name"]] = _rust_type(bare, match)
    return names


def _rust_text(text: str, owner: str) -> str:
    """Return a type without blanks, paths and lifetimes, all of which have more than one spelling."""
    plain = re.sub(r"'\w+\b(?!')\s*,?\s*|\b(?:\w+::)+", "", text).replace("<>", "")
    return re.sub(r"\bSelf\b", owner or "Self", brackets.tight(plain))


def _rust_function(bare: str, start: int, owner: str) -> Public:
    written, end = brackets.inside(bare, start)
    types = (re.sub(r"^[^:]*:(?!:)", "", entry) for entry in brackets.entries(written, ","))
    result = re.split(r"\bwhere\b", brackets.to_brace(bare, end))[0]
    parameters = tuple(Parameter(_rust_text(each, owner), required=True) for each in types)
    return Public(FUNCTION, parameters, _rust_text(result, owner), exact=True)


def _rust_type(bare: str, match: re.Match[str]) -> Public:
    brace = re.compile(r"[^{;]*\{").match(bare, match.end())
    if match["kind"] not in ("struct", "enum", "trait") or brace is None:
        return Public(VALUE)
    body = brackets.inside(bare, brace.end() - 1)[0]
    if match["kind"] == "struct":
        found = (
            re.match(r"(?:#\[.*\] )*pub (?P<name>\w+)\s*:(?P<rest>.*)", entry) for entry in brackets.entries(body, ",")
        )
        fields = {each["name"]: Public(VALUE, text=_rust_text(each["rest"], ""), exact=True) for each in found if each}
        return Public(CLOSED, members=fields)
    separators = "," if match["kind"] == "enum" else ";\n"
    words = (
        re.match(r"(?:#\[.*\] )*(?:(?:async|unsafe|const|fn|type) )*(?P<name>\w+)", e)
        for e in brackets.entries(brackets.ended(body), separators)
    )
    return Public(OPEN, members={each["name"]: Public(VALUE) for each in words if each})


# Java

_JAVA_TYPE = lazy_pattern.compile(
    r"^public[ \t]+(?:\w+[ \t]+)*?(?P<kind>class|interface|enum|record|@interface)[ \t]+(?P<name>\w+)", re.MULTILINE
)
_JAVA_MEMBER = lazy_pattern.compile(
    r"^[ \t]+(?:@\w+(?:\([^)\n]*\))?[ \t]+)*(?:public|protected)[ \t]+"
    r"(?:(?:static|final|abstract|synchronized|default|native|volatile|transient)[ \t]+)*"
    r"(?:<[^>\n]*>[ \t]*)?(?P<type>[\w.\[\]<>,? ]+?[ \t]+)?(?P<name>\w+)[ \t]*(?P<next>[(=;])",
    re.MULTILINE,
)


def _java_text(text: str) -> str:
    """Return a type without blanks and packages."""
    return re.sub(r"\b(?:[a-z]\w*\.)+(?=\w)", "", brackets.tight(text))


def java(text: str, _: str) -> Surface:
    """Return the public types and members of a file; methods by the types of their parameters."""
    bare = brackets.without_comments(text, brackets.OTHERS)
    names = {match["name"]: Public(match["kind"]) for match in _JAVA_TYPE.finditer(bare)}
    headers = (bare[match.end() : match.end() + 300].partition("{")[0] for match in _JAVA_TYPE.finditer(bare))
    if any(re.search(r"\bextends\b", re.sub(r"<[^<>]*>", "", header)) for header in headers):
        names[f"{ALL} of a superclass"] = Public(REEXPORT)
    for match in _JAVA_MEMBER.finditer(bare) if names else ():
        result = _java_text(match["type"] or "")
        if match["next"] != "(":
            names[match["name"]] = Public(VALUE, text=result, exact=True)
            continue
        written = brackets.entries(brackets.inside(bare, match.end() - 1)[0], ",")
        types = (
            re.sub(r"(?:@\w+(?:\([^)]*\))?|\bfinal\b)\s*", "", entry.replace(" ...", "...")).rpartition(" ")[0]
            for entry in written
        )
        names[f"{match['name']}({', '.join(map(_java_text, types))})"] = Public(VALUE, text=result, exact=True)
    return names


READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), public_scripts.script),
    "go": go,
    "rs": rust,
    "java": java,
}
