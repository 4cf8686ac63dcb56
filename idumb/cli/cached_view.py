"""Answers `status`, `next` and `roadmap` from the cached view, before the command-line library is imported.

People and agents run these all day. The full command line handles everything else: options, a stale view, no
repository.
"""

from __future__ import annotations

COMMANDS = frozenset({"status", "next", "roadmap"})


def answer(argv: list[str]) -> int | None:
    """Print the cached view and return the exit code, or return None if the full command line must answer."""
    if not argv or argv[0] not in COMMANDS or argv[1:] not in ([], ["--json"]):
        return None
    import os

    from idumb.composition import status_view
    from idumb.domain.errors import IdumbError

    try:
        view = status_view.saved(os.getcwd())
    except (IdumbError, OSError):
        return None
    if view is None:
        return None
    from idumb.cli import output

    try:
        output.show(argv[0], view, as_json=len(argv) > 1)
    except OSError as problem:
        return output.unwritten(problem)
    return 0
