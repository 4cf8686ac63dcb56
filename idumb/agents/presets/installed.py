"""The version of an installed agent, read from its package without starting it."""

from __future__ import annotations

import hashlib
import os

from idumb.domain import canonical_json

_DEEPEST = 6


def version(program: str) -> str:
    """Return the version of the npm package that contains the program, else the start of its SHA-256, else ""."""
    real = os.path.realpath(program)
    folder = os.path.dirname(real)
    for _ in range(_DEEPEST):
        found = _of_package(os.path.join(folder, "package.json"))
        if found:
            return found
        if os.path.basename(folder) == "node_modules" or folder == os.path.dirname(folder):
            break
        folder = os.path.dirname(folder)
    try:
        with open(real, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:12]
    except OSError:
        return ""


def _of_package(path: str) -> str:
    try:
        with open(path, "rb") as file:
            found = canonical_json.decode(file.read())
    except (OSError, ValueError):
        return ""
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, str) else ""
