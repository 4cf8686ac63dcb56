"""`idumb graph N`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from idumb.cli import mistyped, options, output

if TYPE_CHECKING:
    from idumb.domain.contract import Contract
    from idumb.domain.runs.run import RunState


@click.command("graph")
@click.argument("phase")
@click.option(
    "--format",
    "form",
    type=mistyped.Choice(["text", "mermaid", "svg"]),
    default="text",
    show_default=True,
    help="The output format.",
)
@options.as_json
@options.debug
def command(phase: str, form: str, as_json: bool) -> int:
    """Show the tasks of a phase in the order they run.

    Tasks in the same wave do not depend on each other.
    """
    from idumb.app.review import check_plan

    with options.services(as_json=as_json) as services:
        result = check_plan.show_graph(services, phase, _renderer(form))
    return output.finish("graph", result, as_json=as_json)


def _renderer(form: str) -> Callable[[Contract, RunState | None, dict[str, str]], str]:
    def render(contract: Contract, state: RunState | None, shown: dict[str, str]) -> str:
        statuses = shown if state is not None else None
        if form == "mermaid":
            from idumb.views.graph import mermaid

            return mermaid.render(contract, statuses)
        if form == "svg":
            from idumb.views.graph import svg

            return svg.render(contract, statuses)
        from idumb.views.graph import text

        return text.render(contract, statuses)

    return render
