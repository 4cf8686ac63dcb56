"""Writes the picture of the rooms into docs/design/house.md from the code; a test checks that it is up to date."""

from __future__ import annotations

import ast
import pathlib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "design" / "house.md"
_IMPORT = re.compile(r"^[ \t]*from (idumb[\w.]*) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)
_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:.*\n(?:(?: .*)?\n)+", re.MULTILINE)
BEGIN, END = "<!-- rooms: begin -->", "<!-- rooms: end -->"


def page(text: str) -> str:
    """The page with its generated part made again."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{rooms()}{END}{after}"


def rooms() -> str:
    orders = _orders()
    return "\n".join(
        [
            "```mermaid",
            *_picture("idumb", orders["layers"]),
            "```",
            "",
            "The rooms of `idumb/app`, the highest first:",
            "",
            "```mermaid",
            *_picture("idumb/app", orders["app-rooms"]),
            "```",
            "",
            "```",
            *_tree(ROOT / "idumb"),
            "```",
            "",
        ]
    )


def _orders() -> dict[str, list[list[str]]]:
    """The layers of each contract of pyproject.toml, the highest first; a layer is one or several rooms."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return {
        one["id"]: [[room.strip(" ()") for room in layer.split("|")] for layer in one["layers"]]
        for one in contracts
        if one["type"] == "layers"
    }


def _picture(package: str, layers: list[list[str]]) -> Iterator[str]:
    """A Mermaid graph. An arrow means "imports"; what follows from other arrows is omitted."""
    order = [room for layer in layers for room in layer]
    imports = {room: _imports(package, room, order) for room in order}
    yield "graph TD"
    for number, layer in enumerate(layers):
        if len(layer) > 1:
            yield f"    subgraph side_by_side_{number} [side by side]"
            yield from (f"        {room}" for room in layer)
            yield "    end"
    for room in order:
        yield from (f"    {room} --> {other}" for other in order if other in _direct(imports, room))


def _imports(package: str, room: str, order: list[str]) -> frozenset[str]:
    folder = ROOT / package / room
    files = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    prefix = package.replace("/", ".") + "."
    found = {
        name.removeprefix(prefix).split(".")[0] for file in files for name in _names(file) if name.startswith(prefix)
    }
    return frozenset(found & set(order) - {room})


def _names(file: pathlib.Path) -> Iterator[str]:
    """What a module imports when it runs."""
    for module, names in _IMPORT.findall(_TYPES_ONLY.sub("", file.read_text(encoding="utf-8"))):
        yield from (f"{module}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", names))


def _direct(imports: Mapping[str, frozenset[str]], room: str) -> frozenset[str]:
    """The imports of a room that no other import of it has already."""
    return frozenset(imports[room] - {far for near in imports[room] for far in _reachable(imports, near)})


def _reachable(imports: Mapping[str, frozenset[str]], room: str) -> frozenset[str]:
    return imports[room].union(*(_reachable(imports, other) for other in imports[room]))


def _tree(folder: pathlib.Path, depth: int = 0) -> Iterator[str]:
    """A line for each package: its name and the first sentence of its docstring."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    name = f"{'  ' * depth}{folder.name}/"
    yield f"{name:<18}{text.splitlines()[0] if text else ''}".rstrip()
    for below in sorted(folder.iterdir()):
        if (below / "__init__.py").exists():
            yield from _tree(below, depth + 1)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
