"""Code lines by room, without blank lines, comments and docstrings: `python -m tests.meta.size`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from tests.meta import source

_ENGINE = ("attempt", "engine", "worktree", "core", "session", "contract", "consent")
_ENGINE_ROOMS = (*(f"app/{room}/" for room in _ENGINE), "app/ports.py")

_SEE = (
    "views/page.py",
    "app/reading/report_page.py",
    "app/reading/debugging.py",
    "app/reading/metrics.py",
    "app/reading/stages.py",
    "app/upkeep/run_integrity.py",
    "domain/runs/transitions.py",
    "cli/monitoring_commands.py",
    "cli/telemetry.py",
    "views/answers/monitoring.py",
    "app/reading/watch.py",
    "views/terminal/board.py",
    "markdown/single_settings.py",
    "cli/watching.py",
    "cli/configuring.py",
    "system/notices.py",
)
"""What shows runs to others: pages, live boards, notices."""

ROOMS: dict[str, Callable[[str], bool]] = {
    "domain": lambda name: name.startswith("domain/") and not name.startswith(_SEE),
    "markdown": lambda name: name.startswith("markdown/") and not name.startswith(_SEE),
    "app, engine rooms": lambda name: name.startswith(_ENGINE_ROOMS),
    "app, use cases": lambda name: name.startswith("app/") and not name.startswith((*_ENGINE_ROOMS, *_SEE)),
    "composition": lambda name: name.startswith("composition/"),
    "cli, views": lambda name: name.startswith(("cli/", "views/")) and not name.startswith(_SEE),
    "see and steer": lambda name: name.startswith(_SEE),
    "git": lambda name: name.startswith("git/"),
    "store": lambda name: name.startswith("store/"),
    "system": lambda name: name.startswith("system/") and not name.startswith(_SEE),
    "gates": lambda name: name.startswith("gates/"),
    "agents, fake_model": lambda name: name.startswith(("agents/", "fake_model/")),
    "the root": lambda name: "/" not in name,
}
"""Each file of the package is in exactly one of these; names are relative to `idumb/`."""


def code_lines(text: str) -> int:
    """How many lines of Python hold code."""
    lines = text.splitlines()
    without = {number for number, line in enumerate(lines, 1) if not line.strip() or line.lstrip().startswith("#")}
    for node in source.statements(ast.parse(text)):
        without.update(_docstring(node))
    return len(lines) - len(without)


def _docstring(node: ast.AST) -> Iterable[int]:
    """Return the lines of a string that stands as a statement: a docstring of whatever is above it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return ()


def by_room() -> dict[str, int]:
    sizes = dict.fromkeys(ROOMS, 0)
    for name, text in modules():
        for room, holds in ROOMS.items():
            sizes[room] += code_lines(text) if holds(name) else 0
    return sizes


def modules() -> Iterator[tuple[str, str]]:
    """Yield the name, relative to `idumb/`, and the text of each module."""
    package = source.ROOT / "idumb"
    for place in source.python_files("idumb"):
        yield place.relative_to(package).as_posix(), place.read_text(encoding="utf-8")


def bytes_of_pages() -> int:
    """Count the bytes of the README and of all files below `docs/`, which a stranger has to read."""
    pages = [place for place in (source.ROOT / "docs").rglob("*") if place.is_file() and place.suffix != ".pyc"]
    return sum(place.stat().st_size for place in (source.ROOT / "README.md", *pages))


def lines_of_tests() -> int:
    """Count all lines of the tests, with comments and blanks."""
    return sum(len(place.read_text(encoding="utf-8").splitlines()) for place in source.python_files("tests"))


if __name__ == "__main__":
    found = by_room()
    found |= {"all": sum(found.values()), "files of the package": len(list(modules()))}
    found |= {"tests, all lines": lines_of_tests(), "pages, bytes": bytes_of_pages()}
    for room, size in found.items():
        print(f"{size:7,}  {room}")  # noqa: T201
