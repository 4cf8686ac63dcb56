"""The contracts of import-linter that a project declares, as far as single imports can break them."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

FILES = ("pyproject.toml", ".importlinter", "setup.cfg")


class Contract(NamedTuple):
    """`breaks` returns whether a module must not import another one; `ignored` imports never count."""

    name: str
    breaks: Callable[[str, str], bool]
    ignored: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]

    def forbids(self, importer: str, imported: str) -> bool:
        if any(one.fullmatch(importer) and other.fullmatch(imported) for one, other in self.ignored):
            return False
        return self.breaks(importer, imported)


class Contracts(NamedTuple):
    roots: tuple[str, ...]
    contracts: tuple[Contract, ...]


def read(read_text: Callable[[str], str | None]) -> Contracts | None:
    """Return the contracts of the first file that has some; None if there is none, or if it cannot be read."""
    for path in FILES:
        text = read_text(path)
        if text is None or not (path == ".importlinter" or "importlinter" in text):
            continue
        try:
            options, declared = _of_toml(text) if path.endswith(".toml") else _of_ini(text)
        except (tomllib.TOMLDecodeError, configparser.Error, KeyError, TypeError, AttributeError):
            return None
        roots = (*_listed(options.get("root_package")), *_listed(options.get("root_packages")))
        made = (_contract(each) for each in declared)
        return Contracts(roots, tuple(each for each in made if each is not None)) if roots else None
    return None


def _of_toml(text: str) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    options = tomllib.loads(text)["tool"]["importlinter"]
    return options, options.get("contracts", [])


def _of_ini(text: str) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    options = dict(parser["importlinter"])
    return options, [dict(parser[name]) for name in parser.sections() if name.startswith("importlinter:contract:")]


def _listed(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return (
        tuple(line.strip() for line in value.splitlines() if line.strip()) if isinstance(value, str) else tuple(value)
    )


def _contract(values: Mapping[str, Any]) -> Contract | None:
    make = {"layers": _layers, "forbidden": _forbidden, "independence": _independence}.get(str(values.get("type")))
    if make is None:
        return None
    pairs = (each.partition("->") for each in _listed(values.get("ignore_imports")))
    ignored = tuple((_pattern(one.strip()), _pattern(other.strip())) for one, _, other in pairs)
    return Contract(str(values.get("name", "")), make(values), ignored)


def _pattern(text: str, *, below: bool = False) -> re.Pattern[str]:
    """Return a pattern for a module: `*` is one part of its name, `**` are any."""
    parts = re.split(r"(\*\*|\*)", text)
    words = {"**": r"[\w.]+", "*": r"\w+"}
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts) + (r"(?:\..+)?" if below else ""))


def _layers(values: Mapping[str, Any]) -> Callable[[str, str], bool]:
    containers = _listed(values.get("containers")) or ("",)
    rows = [[part.strip(" ()") for part in re.split(r"[|:]", row)] for row in _listed(values["layers"])]
    apart = ["|" in row for row in _listed(values["layers"])]

    def place(container: str, module: str) -> tuple[int, str] | None:
        for number, row in enumerate(rows):
            for layer in row:
                if _is_in(module, ".".join(filter(None, (container, layer)))):
                    return number, layer
        return None

    def breaks(importer: str, imported: str) -> bool:
        for container in containers:
            one, other = place(container, importer), place(container, imported)
            if one and other and (other[0] < one[0] or (other[0] == one[0] and other[1] != one[1] and apart[one[0]])):
                return True
        return False

    return breaks


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _forbidden(values: Mapping[str, Any]) -> Callable[[str, str], bool]:
    sources = [_pattern(each, below=True) for each in _listed(values["source_modules"])]
    targets = [_pattern(each, below=True) for each in _listed(values["forbidden_modules"])]
    return lambda importer, imported: (
        any(each.fullmatch(importer) for each in sources) and any(each.fullmatch(imported) for each in targets)
    )


def _independence(values: Mapping[str, Any]) -> Callable[[str, str], bool]:
    modules = [_pattern(each, below=True) for each in _listed(values["modules"])]

    def places(module: str) -> Iterator[int]:
        return (number for number, each in enumerate(modules) if each.fullmatch(module))

    def breaks(importer: str, imported: str) -> bool:
        one, other = set(places(importer)), set(places(imported))
        return bool(one and other) and one.isdisjoint(other)

    return breaks
