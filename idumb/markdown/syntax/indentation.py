"""Find wrong indentation of a line, and its fix."""

from __future__ import annotations

from collections.abc import Sequence

from idumb import lazy_pattern

_BULLETS = lazy_pattern.compile(r" *(?:(?:[-+*]|\d{1,9}[.)]) +)+")
_STRUCTURE = lazy_pattern.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]|#{1,6}[ \t]|`{3,}|~{3,}|---$")

_ABOVE = 500  # lines above that can explain an indentation

Fault = tuple[str, str]
"""The fault and its fix."""


def in_yaml(lines: Sequence[str], number: int) -> Fault | None:
    """Check a line of YAML, which continues a mapping or list exactly where one of its lines starts."""
    if has_tab(lines[number]):
        return "This line is indented with a tab, but YAML requires spaces", "replace the tab with spaces"
    levels = sorted({level for pair in _levels(lines, number) for level in pair})
    width = width_of(lines[number])
    if not levels or width in levels:
        return None
    accepted = " or ".join(map(str, levels))
    message = f"This line is indented by {spaces(width)}, the lines above it by {accepted}"
    return message, f"indent it by {accepted}, like the lines it belongs to"


def in_markdown(lines: Sequence[str], number: int) -> Fault | None:
    """Check a heading, a fence or a list item.

    A bullet aligns with a bullet above it, or with its text plus at most three spaces; all others are not indented.
    """
    line = lines[number]
    if not _STRUCTURE.match(line.strip()):
        return None
    if has_tab(line):
        return "it is indented with a tab", "replace the tab with spaces"
    width, levels = width_of(line), _levels(lines, number)
    if width and line.lstrip().startswith("#"):
        levels = []
    lists = [(begin, text) for begin, text in levels if text > begin]
    if not width or any(width == begin or text <= width <= text + 3 for begin, text in lists):
        return None
    if not lists:
        return f"it is indented by {spaces(width)}", "remove the indentation"
    accepted = " or ".join(str(level) for level in sorted({level for pair in lists for level in pair}))
    return f"it is indented by {spaces(width)}", f"indent it by {accepted}, like the lines it belongs to"


def _levels(lines: Sequence[str], number: int) -> list[tuple[int, int]]:
    """Return, for each line above that could continue, its start and the start of the text after its bullets."""
    levels: list[tuple[int, int]] = []
    last = len(lines[number]) + 10**6
    for line in reversed(lines[max(0, number - _ABOVE) : number]):
        if line.strip() and (begin := width_of(line)) < last:
            last = begin
            bullets = _BULLETS.match(line)
            levels.append((begin, bullets.end() if bullets else begin))
        if not last:
            break
    return levels


def width_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def has_tab(line: str) -> bool:
    return "\t" in line[: len(line) - len(line.lstrip(" \t"))]


def spaces(count: int) -> str:
    return f"{count} space{'s' * (count != 1)}"


def bullet_of(line: str) -> int:
    """Return the start of the text after a line's bullets; 0 without bullets."""
    bullets = _BULLETS.match(line)
    return bullets.end() if bullets else 0
