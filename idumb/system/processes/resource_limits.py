"""Ceilings that the system itself keeps for a process and all it starts: memory, CPU time, processes, files."""

from __future__ import annotations

from collections.abc import Mapping

# Our name, and the system's for the same.
NAMES: Mapping[str, str] = {
    "memory": "RLIMIT_AS",
    "cpu": "RLIMIT_CPU",
    "processes": "RLIMIT_NPROC",
    "file_size": "RLIMIT_FSIZE",
    "open_files": "RLIMIT_NOFILE",
}

Ceilings = tuple[tuple[int, int], ...]


def ceilings(limits: Mapping[str, int]) -> Ceilings:
    """(the system's number, value) of each; a name that the system does not have is left out."""
    import resource

    known = ((getattr(resource, NAMES[name], None), value) for name, value in limits.items())
    return tuple((number, value) for number, value in known if number is not None)


def apply(chosen: Ceilings) -> None:
    """Set them for this process, never above what it has already."""
    import resource

    for number, value in chosen:
        _, hard = resource.getrlimit(number)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # Above a soft limit of CPU time comes a signal that can be caught; the hard one kills.
        top = most + 1 if number == resource.RLIMIT_CPU and (hard == resource.RLIM_INFINITY or most < hard) else most
        resource.setrlimit(number, (most, top))
