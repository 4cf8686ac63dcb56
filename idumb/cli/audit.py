"""`idumb audit verify`, `idumb audit workspace N`, `idumb audit bundle N`."""

from __future__ import annotations

import click

from idumb.cli import mistyped, options, output


@click.command("audit")
@click.argument("action", type=mistyped.Action(["verify", "workspace", "bundle"]))
@click.argument("phase", required=False)
@options.as_json
@options.debug
def command(action: str, phase: str | None, as_json: bool) -> int:
    """Verify the event log, or what a run left behind.

    `verify` recomputes every hash of the event log. It reports up to which event the chain is intact, and up to which
    event the copy in your state directory confirms it. To detect events that were cut off after that one, compare the
    head with one that you kept elsewhere.

    `workspace N` reports whether files, plans, git's own files and the event log are as the newest run of phase N left
    them.

    `bundle N` prints run, plans, commits, evidence and the head of the event log as one object with its digest. The
    object is not signed.
    """
    if (phase is None) != (action == "verify"):
        raise click.UsageError("audit verify takes no phase; audit workspace and audit bundle need one.")
    with options.services(as_json=as_json) as services:
        if phase is None:
            from idumb.app.reading import event_history

            result = event_history.audit(services)
        else:
            from idumb.app.verify import attestation

            attest = {"workspace": attestation.workspace, "bundle": attestation.bundle}[action]
            result = attest(services, phase)
    return output.finish("audit", result, as_json=as_json)
