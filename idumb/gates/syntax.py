"""The gate `syntax`: every changed source, JSON, YAML and TOML file parses. Only new errors count.

A gate that refuses valid work is worse than none. A file that did not parse before is not judged, nor are templates,
files of test data, and text that only a newer parser than idumb's own can read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from idumb import lazy_pattern
from idumb.domain import wording
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.proof.ledger import Change

_LONGEST = 1024 * 1024
_LONGEST_YAML = 256 * 1024
_DATA = frozenset(
    {"fixture", "fixtures", "__fixtures__", "testdata", "test_data", "test-data", "corpus", "corpora", "snapshots",
     "__snapshots__", "golden", "goldens", "testfiles", "invalid", "malformed", "broken"}
)  # fmt: skip
"""Folders whose files may be broken on purpose."""
_TEMPLATE_FOLDER = lazy_pattern.compile(
    r"templates?|cookiecutter|skeletons?|scaffolds?|archetypes?|boilerplates?|\{\{.*", re.IGNORECASE
)
_PLACEHOLDER = lazy_pattern.compile(r"\{%|\{#|<%|\{\{|\$\{|@[A-Z_]+@|<<\w+>>")
_YAML_PLACEHOLDER = lazy_pattern.compile(r"(?<![$\"'])\{\{|\{%|\{#|<%|@[A-Z_]+@")
"""Without `${{`, which is valid, and which workflows are full of."""
_EXTRA = "pip install 'idumb[syntax]'"
_C = frozenset({"c", "h"})
"""What a macro expands to decides whether a file parses; only one that parsed before the task is judged."""
_GRAMMARS = _C | {"js", "jsx", "mjs", "cjs", "ts", "mts", "cts", "tsx", "go", "rs", "java"}
_SHELL = frozenset({"sh", "bash"})
_DATA_FORMATS = (".json", ".ipynb", ".yaml", ".yml", ".toml")
_STRING = lazy_pattern.compile(r'"(?:\\.|[^"\\\n])*"')
_CONFLICT = lazy_pattern.compile(r"^(?:<{7} |>{7} |={7}$)", re.MULTILINE)


class Problem(NamedTuple):
    line: int
    words: str


Parse = Callable[[str, str], Problem | None]
"""Parses a text, given its path; None if it is valid or cannot be judged."""


class Parser(NamedTuple):
    """`parse` accepts common extensions of the format, `strict` does not."""

    parse: Parse
    strict: Parse


def judge(inputs: Inputs) -> Judged | None:
    """Return the files that do not parse any more; None if no changed file can be judged."""
    moved = {change.old.oid for change in inputs.changes if change.old is not None}
    wrong, judged = [], 0
    unread: list[str] = []
    for change in inputs.changes:
        parser = parser_of(change.path)
        if parser is None or change.new is None or change.new.oid in moved or _is_unknown(change):
            continue
        if not _can_parse(change.path):
            unread.append(change.path)
            continue
        text = _text(inputs.read(change.new, _LONGEST))
        judged += text is not None
        if text is not None and parser.strict(text, change.path) is not None:
            problem = _new_problem(inputs, change, parser, text)
            wrong += [] if problem is None else [Violation(change.path, problem.line, problem.words)]
    words = f"parsed {judged} of the changed files"
    if unread:
        words += f"; nothing here parses {wording.listed(unread)}"
        words += f": {_EXTRA}" if any(_ending(path) in _GRAMMARS for path in unread) else ""
    return Judged(wrong, words) if judged or unread else None


def _is_unknown(change: Change) -> bool:
    """Return whether nothing can tell if a new file of this language parses."""
    return change.old is None and _ending(change.path) in _C


def _can_parse(path: str) -> bool:
    if _ending(path) not in _GRAMMARS | _SHELL:
        return True
    from idumb.gates.languages import source_syntax  # most changes have no file for it

    return source_syntax.is_installed(_ending(path))


def _ending(path: str) -> str:
    return path.rpartition(".")[2].lower()


def parser_of(path: str) -> Parser | None:
    """Return what parses this file; None if its language has no parser here, or if it may be broken on purpose."""
    *folders, name = path.split("/")
    if "." not in name or not _DATA.isdisjoint(folder.lower() for folder in folders):
        return None
    return _PARSERS.get(_ending(name))


def _new_problem(inputs: Inputs, change: Change, parser: Parser, text: str) -> Problem | None:
    """Return what is wrong with a text that does not parse strictly; None if it was wrong before the task too."""
    if change.old is None:
        return problem_of(parser.parse, change.path, text) if text.strip() else None
    before = _text(inputs.read(change.old, _LONGEST))
    if before is None or parser.parse(before, change.path) is not None:
        return None
    was_strict = parser.strict(before, change.path) is None
    return problem_of(
        parser.strict if was_strict and not _allows_comments(change.path) else parser.parse, change.path, text
    )


def problem_of(parse: Parse, path: str, text: str) -> Problem | None:
    """Return what is wrong with a text, unless it may be a template."""
    problem = parse(text, path)
    if problem is None:
        return None
    conflict = _CONFLICT.search(text)
    if conflict is not None and "\n>>>>>>> " in text:
        return Problem(text.count("\n", 0, conflict.start()) + 1, "an unresolved merge conflict")
    return None if _is_template(path, text) else problem


def _text(data: bytes | None) -> str | None:
    """Return the text without a byte-order mark; None if it is not UTF-8."""
    try:
        return None if data is None or b"\0" in data else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _is_template(path: str, text: str) -> bool:
    """Return whether a file that does not parse may be the template of one that does."""
    if not path.lower().endswith(_DATA_FORMATS):  # braces and dollar signs are common in source
        return any(_TEMPLATE_FOLDER.fullmatch(folder) for folder in path.split("/"))
    if path.endswith((".yaml", ".yml")):
        return _YAML_PLACEHOLDER.search(text) is not None
    return _PLACEHOLDER.search(_STRING.sub("", text)) is not None


def _python(text: str, _: str) -> Problem | None:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the user's strings
            ast.parse(text)
    except SyntaxError as problem:
        line = problem.lineno or 0
        return None if _is_other_python(text, line, problem.msg) else Problem(line, problem.msg)
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


_NEWER = lazy_pattern.compile(
    r"\s*(?:type\s+\w+\s*[\[=]|(?:async\s+)?def\s+\w+\[|class\s+\w+\[|except\*?\s+[\w.]+\s*,|lazy\s+(?:import|from)\b)"
    r"|.*\b[tT][rR]?[\"']"
)
"""Lines that only a newer Python than 3.11 accepts: type parameters, template strings, lazy imports."""
_WITH_EXPRESSIONS = lazy_pattern.compile(r"\b(?:[rR]?[fF]|[fF][rR])[\"']")
_NOT_ABOUT_STRINGS = lazy_pattern.compile(r".*(?:was never closed|indent|expected |forgot a comma)")
_PYTHON_2 = lazy_pattern.compile(r"#!.*python2")
_LOGICAL = 10
"""The longest f-string that is recognized, in lines."""


def _is_other_python(text: str, line: int, message: str) -> bool:
    """Return whether the error may be valid syntax of another version of Python.

    Since 3.12, an f-string may have any expression, also with quotes and line breaks.
    """
    near = text.split("\n")[max(0, line - _LOGICAL) : line] or [""]
    if message.startswith(("too many ", "encoding problem")) or _PYTHON_2.match(text) or _NEWER.match(near[-1]):
        return True
    if _NOT_ABOUT_STRINGS.match(message):
        return False
    triple = any(_WITH_EXPRESSIONS.search(each) and ('"""' in each or "'''" in each) for each in near)
    return triple or _WITH_EXPRESSIONS.search(near[-1]) is not None


_JSON_WITH_COMMENTS = lazy_pattern.compile(
    r"(?:ts|js)config[^/]*\.json|\.vscode/[^/]*\.json|devcontainer\.json|\.eslintrc\.json|\.swcrc|deno\.json|"
    r"api-extractor[^/]*\.json|tslint\.json|turbo\.json|biome\.json|babel\.config\.json|nx\.json|project\.json|"
    r"wrangler\.json|renovate\.json|launch\.json|settings\.json|tasks\.json|keybindings\.json|language-configuration\.json|"
    r"pyrightconfig\.json|appsettings[^/]*\.json|cspell\.json|\.markdownlint\.json|\.oxlintrc\.json|\.luarc\.json",
    re.IGNORECASE,
)
_COMMENT_OR_STRING = lazy_pattern.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = lazy_pattern.compile(r'"(?:\\.|[^"\\\n])*"|,(?=\s*[\]}])')


def _allows_comments(path: str) -> bool:
    return _JSON_WITH_COMMENTS.search(path) is not None


def _json(text: str, path: str) -> Problem | None:
    """Parse JSON; comments and trailing commas are valid in some files by name, and in others that have comments."""
    problem = _strict_json(text, path)
    if problem is None or path.endswith("package.json"):
        return problem
    bare = _COMMENT_OR_STRING.sub(lambda m: m[0] if m[0][0] == '"' else " ", text)
    if bare == text and not _allows_comments(path):
        return problem
    bare = _TRAILING_COMMA.sub(lambda m: m[0] if m[0][0] == '"' else "", bare)
    return None if _strict_json(bare, path) is None else problem


def _strict_json(text: str, _: str) -> Problem | None:
    problem = _of_json(text)
    return None if problem is None or _is_json_lines(text) else problem


def _of_json(text: str) -> Problem | None:
    import json

    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as problem:
        return Problem(problem.lineno, problem.msg)
    except RecursionError:
        return None
    return None


def _is_json_lines(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and all(line.lstrip()[0] in "{[" and _of_json(line) is None for line in lines)


def _yaml(text: str, _: str) -> Problem | None:
    """Two parsers must agree that it is wrong: one for YAML 1.1, one for 1.2."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    problem = None
    for pure in (False, True) if len(text) <= _LONGEST_YAML else ():
        try:
            for _ in YAML(typ="safe", pure=pure).parse(text):
                pass
        except MarkedYAMLError as error:
            mark: Any = error.problem_mark or error.context_mark
            problem = Problem(mark.line + 1 if mark else 0, error.problem or error.context or "not valid YAML")
        except (YAMLError, RecursionError, ValueError):
            return None
        else:
            return None
    return problem


_TOML_1_1 = lazy_pattern.compile(r"[={,]\s*\{[^}\n]*$|,\s*\}|\\[ex]", re.MULTILINE)
_AT_LINE = lazy_pattern.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")


def _toml(text: str, _: str) -> Problem | None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        if _TOML_1_1.search(text):
            return None
        place = _AT_LINE.search(str(problem))
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        return Problem(line, _AT_LINE.sub("", str(problem)).strip())
    except RecursionError:
        return None
    return None


def _source(text: str, path: str) -> Problem | None:
    from idumb.gates.languages import source_syntax

    found = source_syntax.error(text, path)
    return None if found is None else Problem(*found)


_PARSERS: Mapping[str, Parser] = {
    **dict.fromkeys(("py", "pyi"), Parser(_python, _python)),
    "json": Parser(_json, _strict_json),
    "ipynb": Parser(_strict_json, _strict_json),
    **dict.fromkeys(("yaml", "yml"), Parser(_yaml, _yaml)),
    "toml": Parser(_toml, _toml),
    **dict.fromkeys((*_GRAMMARS, *_SHELL), Parser(_source, _source)),
}
