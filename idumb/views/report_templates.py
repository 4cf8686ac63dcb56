"""Fill the templates of reports with jinja2, which is loaded when the first report is written.

What a template prints is Markdown prose with all markup escaped, unless a filter made it `Markdown`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from idumb.domain import wording
from idumb.domain.proof import evidence
from idumb.system import shipped
from idumb.views import markup, phrases

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_SUBJECTS = 10
_ANSWER_WIDTH = 120
_OUTPUT_LINES = 20

Recorded = Mapping[str, Any]
Grouped = list[tuple[str, list[str]]]
"""Words with the subjects that they are about."""

_WORDS = {
    evidence.PASSED: "passed",
    evidence.FAILED: "failed",
    evidence.ERRORED: "errored (could not run)",
    evidence.TIMED_OUT: "timed out",
    evidence.WAITING: "waits for a person",
    evidence.OPINION: "opinion (no proof)",
    evidence.UNPROVEN: "unproven",
    evidence.TOLERATED: "failed, tolerated (continue_on_error)",
}
"""Each result in words, in the order of sums."""


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
        loader=jinja2.FunctionLoader(lambda name: shipped.template(f"reports/{name}")),
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


def weakened(events: Sequence[Recorded]) -> Grouped:
    """Return the reasons why evidence proves less, with its subjects."""
    return _grouped((reason, row["subject"]) for row in events for reason in row.get("weaker", ()))


def controls(events: Sequence[Recorded]) -> Grouped:
    """Return the checks that passed before the work, and the reasons why a control did not run."""
    results = ((str(row.get("control") or ""), row["subject"]) for row in events)
    return _grouped(
        (_control_words(result), subject)
        for result, subject in results
        if result == evidence.PASSED or result.startswith(evidence.NOT_RUN)
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> Grouped:
    subjects: dict[str, list[str]] = {}
    for words, subject in pairs:
        subjects.setdefault(words, []).append(subject)
    return list(subjects.items())


def _control_words(result: str) -> str:
    if result == evidence.PASSED:
        return "Passed before the work, and so does not show that the work was done"
    return f"Its control before the work was {result}"


def _result_words(result: str) -> str:
    return _WORDS.get(result) or markup.prose(result)


def _how(row: Recorded) -> str:
    """Return the command as a code span, else the answer of a person, else `no command`, as Markdown."""
    if row.get("command"):
        return markup.code(row["command"])
    answer = row.get("output") if row.get("exit_code") is None else ""
    return markup.prose(phrases.clip(answer, _ANSWER_WIDTH)) if answer else "no command"


def _summed(events: Sequence[Recorded]) -> str:
    """Return `3 passed, 1 unproven`."""
    results = [row["result"] for row in events]
    parts = [f"{results.count(r)} {words.split(' (')[0]}" for r, words in _WORDS.items() if r in results]
    return ", ".join(parts) or "no evidence"


def _output_end(row: Recorded) -> str:
    """Return the last lines of a check's output as a fenced block."""
    kept = str(row.get("output") or "").rstrip("\n").split("\n")
    if kept == [""]:
        return "No output."
    head = [f"The last {_OUTPUT_LINES} of {len(kept)} kept lines:", ""] if len(kept) > _OUTPUT_LINES else []
    return "\n".join([*head, *markup.block("\n".join(kept[-_OUTPUT_LINES:]), "text")])


_FORMS: Mapping[str, Callable[..., str]] = {
    "markdown": str,
    "code": markup.code,
    "fenced": _fenced,
    "front_matter": lambda fields: "\n".join(markup.frontmatter(fields)),
    "how": _how,
    "json": lambda value: markup.json_text(dict(value)).rstrip(),
    "link": lambda text, target: markup.link(markup.prose(text), target),
    "line_counts": lambda counts: phrases.line_counts(*counts),
    "mermaid": lambda text: f"```mermaid\n{text.rstrip()}\n```",
    "output_end": _output_end,
    "result": _result_words,
    "yaml": markup.yaml_scalar,
}
"""Filters whose result is Markdown."""

_FACTS: Mapping[str, Callable[..., Any]] = {
    "controls": controls,
    "counted": phrases.counted,
    "duration": _markdown(phrases.duration),
    "failures": lambda rows: [row for row in rows if row["result"] in evidence.BROKEN],
    "listed": lambda names: wording.listed(names, _MOST_SUBJECTS),
    "moment": phrases.moment,
    "short": phrases.short,
    "subject": lambda row: f"{row['subject']}: {row['text']}" if row.get("text") else row["subject"],
    "summed": _summed,
    "weakened": weakened,
}
"""Filters whose result is a fact, or prose that is escaped."""
