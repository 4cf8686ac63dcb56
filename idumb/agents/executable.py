"""Resolves a program name once to a file outside the repository that other users cannot write."""

from __future__ import annotations

import os
import stat

from idumb.domain import failures
from idumb.domain.errors import AdapterError


def resolve(program: str, path: str, repository: str) -> str:
    """Return the absolute path of a program with links resolved. Raises AdapterError if it must not be started.

    `path` is a PATH. Relative entries and entries inside the repository are ignored, because tasks can write there.
    """
    inside = os.path.realpath(repository)
    found = _named(program, path, inside)
    if found is None:
        raise AdapterError(
            "agent.not-found",
            f"Program {program} not found.",
            hint=f"Install it{_how(program)}, put its folder on PATH, or set its absolute path in .idumb/config.yaml.",
        )
    real = os.path.realpath(found)
    if _is_below(real, inside):
        raise AdapterError(
            "agent.inside-repository",
            f"Program {program} is inside the repository ({real}), where tasks can change it.",
            hint="Start it with an interpreter outside the repository, for example [python3, tools/builder.py].",
        )
    if os.stat(real).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise AdapterError(
            "agent.writable-by-others",
            f"Program {real} is writable by other users of this machine.",
            hint="Remove write permission for group and others, or install it for your user only.",
        )
    return real if os.path.basename(real) == os.path.basename(found) else os.path.abspath(found)


def _how(program: str) -> str:
    command = failures.install(program)
    return f" ({command})" if command else ""


def _named(program: str, path: str, inside: str) -> str | None:
    if "/" in program:
        # A relative name is relative to the repository; the caller refuses it and says why.
        candidate = os.path.join(inside, os.path.expanduser(program))
        return candidate if _is_executable(candidate) else None
    for folder in path.split(os.pathsep):
        if folder.startswith("/") and not _is_below(os.path.realpath(folder), inside):
            candidate = os.path.join(folder, program)
            if _is_executable(candidate):
                return candidate
    return None


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
