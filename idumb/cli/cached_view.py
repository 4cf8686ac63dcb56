"""Answers `status`, `next` and `roadmap` without the command-line library: from the cached view, or from a new one.

People and agents run these all day. The full command line handles options, and folders without a repository.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` is slow; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

COMMANDS = {"status": "status.status", "next": "status.upcoming", "roadmap": "status.roadmap"}
"""Each with the function that makes its text."""


def answer(argv: list[str]) -> int | None:
    """Print the view and return the exit code, or return None if the full command line must answer."""
    if not argv or argv[0] not in COMMANDS or argv[1:] not in ([], ["--json"]):
        return None
    import os

    from idumb.composition import status_view
    from idumb.domain.errors import IdumbError

    try:
        view = status_view.saved(os.getcwd())
    except (IdumbError, OSError):
        return None
    try:
        return _show(argv[0], view, as_json=len(argv) > 1)
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001 - users never see a traceback
        from idumb.cli import main as command_line

        return command_line.failed(problem, argv)


def _show(name: str, view: dict[str, Any] | None, *, as_json: bool) -> int:
    from idumb.cli import output

    if view is None:
        return _show_new(name, as_json=as_json)
    try:
        output.show(name, view, COMMANDS[name], as_json=as_json)
    except OSError as problem:
        return output.unwritten(problem)
    return 0


def _show_new(name: str, *, as_json: bool) -> int:
    from idumb.app.core.result import Result
    from idumb.cli import opened_services, output
    from idumb.composition import status_view

    with opened_services.opened(as_json=as_json) as services:
        result = Result(status_view.refresh(services))
    try:
        return output.finish(name, result, COMMANDS[name], as_json=as_json)
    except BrokenPipeError as problem:
        return output.unwritten(problem)
