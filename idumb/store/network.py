"""Refuses to create a log where locks and fsync may not work."""

from __future__ import annotations

from collections.abc import Callable

from idumb.domain import paths
from idumb.store import log_errors
from idumb.system.files import file_systems


def refuse(folder: str, allowed: Callable[[], bool], kind_of: Callable[[str], str] = file_systems.kind_of) -> None:
    """StoreError `store.network` if `folder` is, or would be, on a network file system and that is not `allowed`."""
    kind = kind_of(folder)
    if paths.is_network_file_system(kind) and not allowed():
        raise log_errors.network(folder, kind)
