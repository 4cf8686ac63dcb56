"""Every import of the program is a declared dependency."""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache

from tests.meta import source

IMPORTED_AS = {
    "griffelib": {"griffe"},
    "markdown-it-py": {"markdown_it"},
    **{f"opentelemetry-{name}": {"opentelemetry"} for name in ("exporter-otlp-proto-http", "sdk")},
    "pydantic-ai-slim": {"pydantic_ai", "openai", "anthropic"},
    "python-frontmatter": {"frontmatter"},
    **{name: {"ruamel"} for name in ("ruamel.yaml", "ruamel.yaml.clib")},
}


_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)
TOOLS = {"test", "dev"}  # extras for those who work on the program; it never imports them


def declared() -> set[str]:
    """Return everything that an installation with all extras includes."""
    project = tomllib.loads((source.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (lines for name, lines in project["optional-dependencies"].items() if name not in TOOLS)
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return {re.split(r"[<>=;\[ ]", line, maxsplit=1)[0] for line in lines}


@cache
def imported() -> dict[str, str]:
    """Top-level name of every imported module that is neither ours nor Python's, with one place."""
    modules: dict[str, str] = {}
    for place in source.python_files("idumb"):
        if all(map(ours, _IMPORT.findall(source.text(place)))):
            continue  # also in the words of a text; most files need not be parsed
        for line, name in source.imports(place):
            top = name.partition(".")[0]
            if not ours(top):
                modules.setdefault(top, f"{source.name_of(place)}:{line}")
    return modules


def ours(module: str) -> bool:
    return module == "idumb" or module in sys.stdlib_module_names


def test_every_import_is_a_declared_dependency() -> None:
    names = set().union(*(IMPORTED_AS.get(name, {name.replace("-", "_")}) for name in declared()))
    assert {name: place for name, place in imported().items() if name not in names} == {}


def test_every_dependency_is_imported() -> None:
    modules = {name: IMPORTED_AS.get(name, {name.replace("-", "_")}) for name in declared()}
    assert [name for name, names in modules.items() if not names & imported().keys()] == []
