"""What the arguments of commands name: phases, tasks, files and times; and what a shell completes for them."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from idumb.domain import errors
from idumb.domain.action import Action
from idumb.domain.plans import phase_ids

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from idumb.app.core.services import Services


def _placed(path: str, root: str) -> str:
    """Return a path as it was typed or, if nothing is there, as answers name it: from the project's folder."""
    named = os.path.join(root, path)
    return named if os.path.lexists(named) and not os.path.lexists(path) else path


def step_plan_path(file: str, root: str) -> str:
    """Return the path of a step plan from the repository's root. Links in its folder are resolved.

    A name without a folder that is no file here is returned unchanged: it may be a phase.
    """
    folder, name = os.path.split(os.path.join(os.getcwd(), _placed(file, root)))
    if not os.path.lexists(os.path.join(folder, name)) and "/" not in file:
        return file
    return os.path.relpath(os.path.join(os.path.realpath(folder), name), os.path.realpath(root)).replace(os.sep, "/")


def phase_id(phase: str, root: str) -> str:
    """Return the phase of a phase, plan file or step plan; the path of a step plan is made relative to the root."""
    if phase.endswith(phase_ids.STEP_PLAN_SUFFIXES) and os.path.isfile(phase):
        return step_plan_path(phase, root)
    path = plan_file(phase, root)
    return phase if path is None else phase_of_file(path) or phase


def plan_file(name: str, root: str) -> str | None:
    """Return the path of a plan in Markdown from the repository's root, or None if the name is no such file."""
    return step_plan_path(name, root) if name.endswith(".md") and os.path.isfile(_placed(name, root)) else None


def source_path(name: str, services: Services) -> str:
    """Return the path of a file or folder from the project's folder; outside the repository, an absolute one.

    Elsewhere in the repository it begins with `../`, so that the plan names the same file in every clone.
    """
    whole, root = os.path.realpath(_placed(name, services.root)), os.path.realpath(services.root)
    top = root.removesuffix(f"/{services.folder}") if services.folder else root
    inside = whole == top or whole.startswith(top.rstrip("/") + "/")
    return os.path.relpath(whole, root).replace(os.sep, "/") if inside else whole


def phase_of_file(path: str) -> str | None:
    """Return the phase whose folder holds a plan; None for a file elsewhere."""
    match = _IN_PHASE.fullmatch(path)
    if match is None:
        return None
    if match[1] == "phases":
        return match[2]
    return next(filter(None, (kind.phase_of(path) for kind in phase_ids.NUMBERED)), None)


_IN_PHASE = re.compile(r"\.planning/(phases|quick|workflows)/([^/]+)/[^/]*PLAN\.md")


def declared_path(path: str, root: str) -> str:
    """Return a path that a task declares, from the repository's root. The file need not exist; links are not resolved.

    A slash at the end stays: it declares a folder. An absolute path is returned unchanged: plan checks reject it.
    """
    if os.path.isabs(path):
        return path
    relative = os.path.relpath(os.path.join(os.path.realpath(os.getcwd()), path), os.path.realpath(root))
    return relative.replace(os.sep, "/") + "/" * path.endswith("/")


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Return the values of an option that is written NAME=VALUE, by their names."""
    values = dict(text.partition("=")[::2] for text in texts if "=" in text)
    if len(values) < len(texts):
        raise click.UsageError(f"{option} needs a value: {option} NAME=VALUE, each name once.")
    return values


def require_free(path: str) -> None:
    """Refuse to write a file where something is already. InputError `file.exists`."""
    if os.path.lexists(path):
        raise errors.InputError("file.exists", f"{path} already exists.", hint="Choose another name, or move it away")


_LARGEST_TEXT = 32 * 1024 * 1024 + 1  # one byte more than a plan may have, so that the parser reports it as too large


def read_text(name: str, command: str) -> str:
    """Return the text of a regular file, or of standard input for `-`. Undecodable bytes become surrogates."""
    from idumb.system import named_files

    try:
        if name == "-":
            return sys.stdin.buffer.read(_LARGEST_TEXT).decode("utf-8", "surrogateescape")
        return named_files.read(name, _LARGEST_TEXT).decode("utf-8", "surrogateescape")
    except OSError as problem:
        message = f"Cannot read {name}: {problem.strerror or problem} (- is standard input)"
        raise errors.InputError("file.unreadable", message, hint=Action.of(*command.split(), "--help")) from problem


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return an ISO 8601 date or time in the spelling of the log, in UTC. Other spellings would match no event."""
    from datetime import UTC, datetime

    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
        utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        words = f"{value!r} is not a time. Write 2026-01-31 or 2026-01-31T12:00:00Z."
        raise click.BadParameter(words, ctx, param) from None
    return utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


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
    yield from ((phase.number, phase.title) for phase in services.plans.roadmap())
    yield from ((name, "") for name in services.log.phases())


def _tasks(services: Services) -> Iterator[tuple[str, str]]:
    from idumb.app.contract import loading

    for name, _ in _phases(services):
        with contextlib.suppress(errors.IdumbError):
            contract = loading.load_present(services, name).contract
            if contract is not None:
                yield from ((task.id, task.title) for task in contract.tasks.values())
