"""The name of a project's state in a repository: of its runs, refs and files."""

from __future__ import annotations

_SLASH = "%2F"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def of_project(working_tree: str, folder: str) -> str:
    """Return the key of the project in a folder of a working tree. At the top, it is the working tree's own name.

    It is one name of a folder, which is also allowed in names of refs: `main%2Fapps%2Fapi`.
    """
    if not folder:
        return working_tree
    letters = (chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in folder.encode("utf-8", "surrogateescape"))
    return f"{working_tree}{_SLASH}{''.join(letters)}"


def parts(key: str) -> tuple[str, str]:
    """Return the working tree and the folder of a project from its key."""
    tree, _, encoded = key.partition(_SLASH)
    first, *pieces = encoded.split("%")
    try:
        data = first.encode() + b"".join(bytes.fromhex(piece[:2]) + piece[2:].encode() for piece in pieces)
    except ValueError:
        return key, ""
    folder = data.decode("utf-8", "surrogateescape")
    return (tree, folder) if of_project(tree, folder) == key else (key, "")


def shown(key: str) -> str:
    """Return a key as people read it."""
    tree, folder = parts(key)
    return f"{tree}, project {folder}" if folder else tree
