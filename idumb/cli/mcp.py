"""`idumb mcp`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("mcp")
@click.option("--list", "only_list", is_flag=True, help="List the tools and exit.")
@options.as_json
@options.debug
def command(only_list: bool, as_json: bool) -> int:
    """Serve idumb over the Model Context Protocol.

    Serves an agent in an editor over standard input and output. With the tools, the agent takes the tasks of a phase,
    submits or gives up its work, retries what was not accepted, and sees what a person must decide. Each tool answers
    with the JSON object of its command. Needs the extra: pip install 'idumb[mcp]'.
    """
    from idumb.cli import mcp_tools

    if only_list or as_json:
        output.show("mcp", {"tools": mcp_tools.listed()}, as_json=as_json)
        return 0
    mcp_tools.serve()
    return 0
