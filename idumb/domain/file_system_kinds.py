"""Kinds of file systems, as the system calls them, and why a path is in no snapshot."""

from __future__ import annotations

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "afs", "ncpfs", "ceph", "glusterfs", "lustre", "fuse"}
)

IGNORED_BY_GIT = "ignored by git"


def is_network_file_system(kind: str) -> bool:
    """Whether locks and forced writes may not hold there. What FUSE is used for cannot be told, so it counts."""
    return kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse.")
