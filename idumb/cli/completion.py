"""What a shell completes: the phases and tasks of the repository. It reads plans and starts nothing of theirs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from idumb.app.core.services import Services


def phases(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _completed(_phases, incomplete)


def tasks(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _completed(_tasks, incomplete)


def _completed(names: Callable[[Services], Iterator[tuple[str, str]]], incomplete: str) -> list[CompletionItem]:
    """Return the names that begin so. Whatever is wrong with the repository, a shell hears nothing of it."""
    from click.shell_completion import CompletionItem

    from idumb.cli import opened_services

    found: dict[str, Any] = {}
    quiet = contextlib.redirect_stderr(io.StringIO())
    with quiet, contextlib.suppress(Exception), opened_services.opened(as_json=True) as services:
        for name, title in names(services):
            found.setdefault(name, title)
    begun = incomplete.casefold()
    return [CompletionItem(name, help=title) for name, title in found.items() if name.casefold().startswith(begun)]


def _phases(services: Services) -> Iterator[tuple[str, str]]:
    yield from ((number, title) for number, title, _ in services.plans.roadmap())
    yield from ((name, "") for name in services.log.phases())


def _tasks(services: Services) -> Iterator[tuple[str, str]]:
    from idumb.app.contract import loading
    from idumb.domain.errors import IdumbError

    for name, _ in _phases(services):
        with contextlib.suppress(IdumbError):
            contract = loading.load_present(services, name).contract
            if contract is not None:
                yield from ((task.id, task.title) for task in contract.tasks.values())
