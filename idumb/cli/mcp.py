"""`idumb mcp`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("mcp")
@click.option("--list", "only_list", is_flag=True, help="Name the tools and end.")
@options.as_json
@options.debug
def command(only_list: bool, as_json: bool) -> int:
    """Serve idumb to an agent in an editor by the Model Context Protocol, over standard input and output.

    The tools: begin a session on a phase, get the next task, submit it, look at what was not accepted, try it again or
    give it up, ask what a person must decide, look at the state, check what is there, end the session. Each answers
    with the JSON object of its command. Needs the extra: pip install 'idumb[mcp]'.
    """
    from idumb.cli import mcp_tools

    if only_list or as_json:
        output.show("mcp", {"tools": mcp_tools.listed()}, as_json=as_json)
        return 0
    mcp_tools.serve()
    return 0
