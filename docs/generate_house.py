"""Writes the list of the rooms into docs/design/house.md from the code; a test checks that it is up to date."""

from __future__ import annotations

import ast
import pathlib
import sys
import tomllib
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "design" / "house.md"
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
            "```",
            *_layers(orders["layers"]),
            "```",
            "",
            f"The rooms of `idumb/app`, the highest first: {', '.join(_layers(orders['app-rooms']))}.",
            "",
            "```",
            *_tree(ROOT / "idumb"),
            "```",
            "",
        ]
    )


def _orders() -> dict[str, list[str]]:
    """The layers of each contract of pyproject.toml, the highest first; a layer is one or several rooms."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return {one["id"]: one["layers"] for one in contracts if one["type"] == "layers"}


def _layers(layers: list[str]) -> Iterator[str]:
    yield from (", ".join(room.strip(" ()") for room in layer.split("|")) for layer in layers)


def _tree(folder: pathlib.Path, depth: int = 0) -> Iterator[str]:
    """A line for each package, and for each module that is a room of app: its name and the first line of its text."""
    yield _line(f"{'  ' * depth}{folder.name}/", folder / "__init__.py")
    for below in sorted(folder.iterdir()):
        if (below / "__init__.py").exists():
            yield from _tree(below, depth + 1)
        elif folder.name == "app" and below.suffix == ".py" and below.stem != "__init__":
            yield _line(f"    {below.name}", below)


def _line(name: str, place: pathlib.Path) -> str:
    text = ast.get_docstring(ast.parse(place.read_text(encoding="utf-8"))) or ""
    return f"{name:<18}{text.partition(chr(10))[0]}".rstrip()


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
