"""Fill the templates of reports with jinja2, which is loaded when the first report is written.

What a template prints is Markdown prose with all markup escaped, unless a filter made it `Markdown`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from idumb.domain import wording
from idumb.system.files import shipped_files
from idumb.views import markup, quantities
from idumb.views.reports import evidence_table

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_SUBJECTS = 10


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def render(template: str, **values: Any) -> str:
    """Return the document that `templates/reports/<template>` makes of these values."""
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> Environment:
    import jinja2

    environment = jinja2.Environment(  # noqa: S701 - this is no HTML, and _escaped escapes what is not Markdown yet
        loader=jinja2.FunctionLoader(lambda name: shipped_files.template(f"reports/{name}")),
        finalize=_escaped,
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
    )
    environment.filters.update({name: _markdown(function) for name, function in _FORMS.items()})
    environment.filters.update(_FACTS)
    environment.globals.update(row=_row, head=lambda *names: Markdown("\n".join(markup.table(names, ()))))
    return environment


def _escaped(value: object) -> str:
    return value if isinstance(value, Markdown) else markup.prose(str(value))


def _row(*cells: object) -> Markdown:
    return Markdown("| " + " | ".join(_escaped(cell).replace("|", "\\|") for cell in cells) + " |")


def _markdown(function: Callable[..., str]) -> Callable[..., Markdown]:
    return lambda *arguments: Markdown(function(*arguments))


def _fenced(text: str, info: str = "") -> str:
    """Return the text as a block, or `None.` without one."""
    return "\n".join(markup.block(text, info)) if text.strip() else "None."


def _symbol(line: Mapping[str, Any]) -> str:
    """Return the subject of a line of the ledger: a file, or a symbol with its file."""
    if "symbol" not in line:
        return markup.code(line["path"])
    return f"symbol {markup.code(line['symbol'])}" + (f" in {markup.code(line['path'])}" if line["path"] else "")


_FORMS: Mapping[str, Callable[..., str]] = {
    "markdown": str,
    "code": markup.code,
    "exit_code": lambda row: "-" if row.get("exit_code") is None else str(row["exit_code"]),
    "fenced": _fenced,
    "front_matter": lambda fields: "\n".join(markup.frontmatter(fields)),
    "how": evidence_table.how,
    "json": lambda value: markup.json_text(dict(value)).rstrip(),
    "ledger_subject": _symbol,
    "line_counts": lambda counts: quantities.line_counts(*counts),
    "mermaid": lambda text: f"```mermaid\n{text.rstrip()}\n```",
    "output_digest": evidence_table.output_digest,
    "output_end": evidence_table.output_end,
    "result": evidence_table.result_words,
}
"""Filters whose result is Markdown."""

_FACTS: Mapping[str, Callable[..., Any]] = {
    "clip": quantities.clip,
    "controls": evidence_table.controls,
    "counted": quantities.counted,
    "duration": _markdown(quantities.duration),
    "failures": evidence_table.failures,
    "listed": lambda names: wording.listed(names, _MOST_SUBJECTS),
    "moment": quantities.moment,
    "short": quantities.short,
    "subject": lambda row: f"{row['subject']}: {row['text']}" if row.get("text") else row["subject"],
    "summed": evidence_table.summed,
    "weakened": evidence_table.weakened,
}
"""Filters whose result is a fact, or prose that is escaped."""
