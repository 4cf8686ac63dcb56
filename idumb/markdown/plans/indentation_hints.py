"""Add a hint about wrong indentation to errors that it may have caused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from idumb.domain.finding import ERROR, Finding
from idumb.markdown.plans import fields, near_misses
from idumb.markdown.syntax import indentation
from idumb.markdown.syntax.nodes import Block, Fence, YamlItem
from idumb.markdown.syntax.source import Source

_BELOW = 20  # lines to search for the next line with text


def explained(findings: Sequence[Finding], source: Source, first: int, blocks: Iterable[Block]) -> tuple[Finding, ...]:
    """Return the findings with hints. `first` is the line after the frontmatter, `blocks` are those of the plan."""
    inner = (inner for one in blocks for inner in near_misses.walk(one))
    data = {n for one in inner if isinstance(one, Fence | YamlItem) for n in range(one.line + 1, one.end_line)}
    return tuple(_explained(one, source, first, data) if one.severity == ERROR else one for one in findings)


def _explained(finding: Finding, source: Source, first: int, data: set[int]) -> Finding:
    at = finding.line - 1
    in_first_column = "first column" in finding.fix and not indentation.has_tab(source.lines[at])
    if "indent" in finding.fix or in_first_column:
        return finding
    following = next((n for n in range(at + 1, min(at + _BELOW, len(source.lines))) if source.lines[n].strip()), at)
    for line in (at, following):
        fault = None if line < first or line in data else _fault(finding, source.lines, at, line)
        if fault is not None:
            message, fix = fault
            where = "" if line == at else f"on line {line + 1} "
            return replace(finding, fix=f"{where}{message}: {fix}; otherwise {finding.fix}")
    return finding


def _fault(finding: Finding, lines: Sequence[str], at: int, line: int) -> indentation.Fault | None:
    fault = indentation.in_markdown(lines, line)
    label, below, width = (
        indentation.bullet_of(lines[at]),
        indentation.bullet_of(lines[line]),
        indentation.width_of(lines[line]),
    )
    if fault is not None or line == at or not label or not below:
        return fault
    field_label = fields.label_of(lines[line][below:])
    field = field_label is not None and field_label.name is not None
    if finding.code == "field.empty" and not field and width < label:
        return (
            f"it is indented by {indentation.spaces(width)}",
            f"indent it by {label}, if it is the value of {finding.field}",
        )
    if finding.code == "field.two-places" and field:
        beside = indentation.width_of(lines[at])
        return f"it is indented by {indentation.spaces(width)}", f"indent it by {beside}, if it is a field of its own"
    return None
