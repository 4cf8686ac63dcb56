"""`idumb audit verify`, `idumb audit workspace N`, `idumb audit bundle N`."""

from __future__ import annotations

import click

from idumb.cli import options, output


@click.command("audit")
@click.argument("action", type=click.Choice(["verify", "workspace", "bundle"]))
@click.argument("phase", required=False)
@options.as_json
@options.debug
def command(action: str, phase: str | None, as_json: bool) -> int:
    """Check the event log, or what a run left; or tell all of it in one object.

    `verify`: every hash again, from the first event to the last. Says up to which event the chain is intact, and up to
    which one the copy in your state directory confirms it. A cut after that one shows only against a head that you
    noted elsewhere. `workspace N`: whether files, plans, git's own files and the log are as the newest run of a phase
    left them. `bundle N`: run, plans, commits, evidence and the head of the log in one object with its digest, to be
    kept elsewhere; it is not signed.
    """
    if (phase is None) != (action == "verify"):
        raise click.UsageError("verify looks at the whole log and takes no phase; workspace and bundle take one.")
    with options.services(as_json=as_json) as services:
        if phase is None:
            from idumb.app.reading import show

            result = show.audit(services)
        else:
            from idumb.app.verify import attestation

            made = {"workspace": attestation.workspace, "bundle": attestation.bundle}[action]
            result = made(services, phase)
    return output.finish("audit", result, as_json=as_json)
