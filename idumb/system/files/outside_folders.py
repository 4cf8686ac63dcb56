"""A place for temporary folders outside a repository, where no project above them decides what a program loads.

Node, Python, Go, Cargo and others search every parent folder for a manifest or for dependencies.
"""

from __future__ import annotations

import os

from idumb.system.files import user_folders

MANIFESTS = (
    ".git",
    "Cargo.toml",
    "WORKSPACE",
    "build.gradle",
    "composer.json",
    "conftest.py",
    "deno.json",
    "go.mod",
    "go.work",
    "node_modules",
    "package.json",
    "pnpm-workspace.yaml",
    "pom.xml",
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "tsconfig.json",
)


def places(name: str) -> tuple[str, ...]:
    """Return the folders that may hold temporary folders, the preferred one first; few of them exist.

    Each user has their own, because others may write to the folders above.
    """
    temporary = os.environ.get("TMPDIR", "")
    above = [temporary] if os.path.isabs(temporary) else []
    own = f"{name}-{os.geteuid()}"
    shared = [os.path.join(os.path.realpath(folder), own) for folder in (*above, "/tmp", "/var/tmp")]  # noqa: S108
    return tuple(dict.fromkeys((*shared, os.path.join(os.path.realpath(user_folders.path()), name))))


def place(name: str, repository: str) -> tuple[str, str | None]:
    """Return a private folder outside `repository`, created if missing, and a manifest above it if none is free of one.

    Raises OSError if no folder can be written.
    """
    usable: list[tuple[str, str]] = []
    for folder in places(name):
        if _is_below(folder, os.path.realpath(repository)) or not _is_private(folder):
            continue
        manifest = manifest_above(folder)
        if manifest is None:
            return folder, None
        usable.append((folder, manifest))
    if usable:
        return usable[0]
    raise PermissionError(f"no folder for temporary files can be written: {', '.join(places(name))}")


def manifest_above(folder: str) -> str | None:
    """Return the nearest manifest in a folder or above it, or None."""
    while True:
        for name in MANIFESTS:
            if os.path.lexists(os.path.join(folder, name)):
                return os.path.join(folder, name)
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _is_below(folder: str, top: str) -> bool:
    return f"{folder}/".startswith(f"{top.rstrip('/')}/")


def _is_private(folder: str) -> bool:
    """Create a folder if it is missing. Return whether it belongs to the user alone and programs can run there."""
    try:
        user_folders.make_private(folder)
        return (
            user_folders.unsafe(folder, folder=True) is None
            and os.access(folder, os.W_OK | os.X_OK)
            and not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)  # only Linux names the flag
        )
    except OSError:
        return False
