"""The gate `syntax`: every changed Python, JSON, YAML and TOML file parses. Only new errors count.

A gate that refuses valid work is worse than none. A file that did not parse before is not judged, nor are templates,
files of test data, and text that only a newer parser than idumb's own can read.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from idumb.domain.proof.gate import Inputs, Judged, Violation

_LONGEST_YAML = 256 * 1024
_DATA = frozenset(
    {"fixture", "fixtures", "__fixtures__", "testdata", "test_data", "test-data", "corpus", "corpora", "snapshots",
     "__snapshots__", "golden", "goldens", "testfiles", "invalid", "malformed", "broken"}
)  # fmt: skip
"""Folders whose files may be broken on purpose."""
_TEMPLATES = frozenset(("template", "templates", "cookiecutter", "skeleton", "skeletons", "scaffold", "boilerplate"))
_MARKS = ("{{", "{%", "{#", "<%", "${", "<<")
"""What placeholders of templates begin with."""


class Problem(NamedTuple):
    line: int
    words: str


Parse = Callable[[str], Problem | None]
"""Parses a text; None if it is valid or cannot be judged."""


def judge(inputs: Inputs) -> Judged | None:
    """Return the files that do not parse any more; None if no changed file can be judged."""
    moved = {change.old.oid for change in inputs.changes if change.old is not None}
    wrong, judged = [], 0
    for change in inputs.changes:
        parse = parser_of(change.path)
        if parse is None or change.new is None or change.new.oid in moved:
            continue
        text = inputs.text(change.new)
        judged += text is not None
        is_empty = change.old is None and text is not None and not text.strip()
        problem = None if text is None or is_empty else _problem(parse, change.path, text)
        if problem is None:
            continue
        before = inputs.text(change.old)
        if change.old is None or (before is not None and parse(before) is None):
            wrong.append(Violation(change.path, problem.line, problem.words))
    return Judged(wrong, f"parsed {judged} of {len(inputs.changes)} changed files") if judged else None


def parser_of(path: str) -> Parse | None:
    """Return what parses this file; None if its language has no parser here, or if it may be broken on purpose."""
    *folders, name = path.lower().split("/")
    if not _DATA.isdisjoint(folders) or _allows_comments(path):
        return None
    return next((parse for ending, parse in _PARSERS.items() if name.endswith(ending)), None)


def _problem(parse: Parse, path: str, text: str) -> Problem | None:
    """Return what is wrong with a text, unless it may be a template."""
    problem = parse(text)
    if problem is None:
        return None
    conflict = next((number for number, line in enumerate(text.split("\n"), 1) if line.startswith("<<<<<<< ")), 0)
    if conflict:
        return Problem(conflict, "an unresolved merge conflict")
    return None if _is_template(path, text) else problem


def _is_template(path: str, text: str) -> bool:
    """Return whether a file that does not parse may be the template of one that does."""
    if path.endswith((".py", ".pyi")):  # braces and dollar signs are common in source
        return any(folder.lower() in _TEMPLATES or "{{" in folder for folder in path.split("/"))
    # In YAML, `${{ x }}` and `${x}` are valid, and workflows are full of them.
    is_yaml = path.endswith((".yaml", ".yml"))
    bare = text.replace("${{", "").replace("${", "") if is_yaml else "".join(text.split('"')[::2])
    is_named = any(len(word) > 2 and word[0] == word[-1] == "@" for word in bare.split())
    return is_named or any(mark in bare for mark in _MARKS)


def _python(text: str) -> Problem | None:
    try:
        with warnings.catch_warnings(action="ignore"):  # about escapes in the user's strings
            ast.parse(text)
    except SyntaxError as problem:
        line = problem.lineno or 0
        return None if _is_other_python(text, line, problem.msg) else Problem(line, problem.msg)
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


_NEWER = ("type ", "lazy import ", "lazy from ")
_NOT_ABOUT_STRINGS = ("was never closed", "indent", "expected ", "forgot a comma")
_QUOTES = ("'", '"')
_LOGICAL = 10
"""The longest f-string that is recognized, in lines."""


def _is_other_python(text: str, line: int, message: str) -> bool:
    """Return whether the error may be valid syntax of another version of Python.

    Since 3.12, an f-string may have any expression, also with quotes and line breaks.
    """
    near = text.split("\n")[max(0, line - _LOGICAL) : line] or [""]
    is_other = message.startswith(("too many ", "encoding problem")) or "python2" in text.partition("\n")[0]
    if is_other or _is_newer(near[-1].strip()):
        return True
    if any(words in message for words in _NOT_ABOUT_STRINGS):
        return False
    return any(f"{prefix}{quote}" in line.lower() for line in near for prefix in ("f", "fr") for quote in _QUOTES)


def _is_newer(line: str) -> bool:
    """Return whether only a newer Python than 3.11 accepts a line: type parameters, template strings, lazy imports."""
    head = line.partition("(")[0]
    has_parameters = "[" in head and head.startswith(("def ", "async def ", "class "))
    is_template = any(f"{prefix}{quote}" in line.lower() for prefix in ("t", "tr", "rt") for quote in _QUOTES)
    return has_parameters or is_template or line.startswith(_NEWER) or (line.startswith("except") and "," in line)


_WITH_COMMENTS = frozenset(
    {"devcontainer.json", ".eslintrc.json", "deno.json", "tslint.json", "turbo.json", "biome.json", "babel.config.json",
     "nx.json", "project.json", "wrangler.json", "renovate.json", "language-configuration.json", "pyrightconfig.json",
     "cspell.json", ".markdownlint.json", ".oxlintrc.json", ".luarc.json", ".mocharc.json", ".babelrc.json"}
)  # fmt: skip
_BEGINNINGS = ("tsconfig", "jsconfig", "appsettings", "api-extractor")


def _allows_comments(path: str) -> bool:
    """Return whether a file of JSON may have comments and trailing commas, by its name."""
    folder, _, name = path.lower().rpartition("/")
    is_by_name = name in _WITH_COMMENTS or name.startswith(_BEGINNINGS) or folder.endswith(".vscode")
    return is_by_name and name.endswith(".json")


def _json(text: str) -> Problem | None:
    problem = _strict_json(text)
    has_comment = text.lstrip().startswith(("//", "/*"))
    return None if problem is None or has_comment or _is_json_lines(text) else problem


def _strict_json(text: str) -> Problem | None:
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as problem:
        return Problem(problem.lineno, problem.msg)
    except RecursionError:
        return None
    return None


def _is_json_lines(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and all(line.lstrip()[0] in "{[" and _strict_json(line) is None for line in lines)


def _yaml(text: str) -> Problem | None:
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


def _toml(text: str) -> Problem | None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        if _is_newer_toml(text):
            return None
        words, _, place = str(problem).rpartition(" (at ")
        line = place.partition(",")[0].removeprefix("line ")
        return Problem(int(line) if line.isdigit() else text.count("\n") + 1, words)
    except RecursionError:
        return None
    return None


def _is_newer_toml(text: str) -> bool:
    """Return whether a text may be TOML 1.1: tables over several lines, a comma at their end, more escapes."""
    open_table = any(line.count("{") > line.count("}") for line in text.splitlines())
    return open_table or any(mark in text.replace(" ", "") for mark in (",}", "\\e", "\\x"))


_PARSERS: Mapping[str, Parse] = {
    ".py": _python, ".pyi": _python, ".json": _json, ".ipynb": _json, ".yaml": _yaml, ".yml": _yaml, ".toml": _toml,
}  # fmt: skip
