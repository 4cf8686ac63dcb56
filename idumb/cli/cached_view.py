"""`status`, `next` and `roadmap` from the kept view, before the command line library is even imported.

People and agents ask these all day. Whatever is not as usual (an option, a stale view, no repository) is left to the
full command line.
"""

from __future__ import annotations

COMMANDS = frozenset({"status", "next", "roadmap"})


def answer(argv: list[str]) -> int | None:
    """The exit code, or None where the full command line must answer."""
    if not argv or argv[0] not in COMMANDS or argv[1:] not in ([], ["--json"]):
        return None
    import os

    from idumb.composition import status_view
    from idumb.domain.errors import IdumbError

    try:
        kept = status_view.saved(os.getcwd())
    except (IdumbError, OSError):
        return None
    if kept is None:
        return None
    from idumb.cli import output

    try:
        output.show(argv[0], kept, as_json=len(argv) > 1)
    except OSError as problem:
        return output.unwritten(problem)
    return 0
