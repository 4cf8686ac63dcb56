"""What the scanner knows of one folder between scans."""

from __future__ import annotations

from collections.abc import Iterator

State = tuple[int, int, int, int, int, bytes]
UNKNOWN: State = (-1, -1, -1, -1, -1, b"")


class Folder:
    """What is known of one folder. `tree` is None when its tree object must be written again.

    files: name -> (ctime_ns, mtime_ns, size, inode, st_mode, row of the tree); ignored: name -> is a folder;
    links: submodule -> row of the tree; odd: permission bits that a umask does not give;
    rules: stat of an ignored .gitignore.
    """

    __slots__ = ("files", "folders", "ignored", "links", "odd", "rules", "skipped", "tree", "unsteady")

    def __init__(self) -> None:
        self.files: dict[str, State] = {}
        self.folders: dict[str, Folder] = {}
        self.ignored: dict[str, bool] = {}
        self.links: dict[str, bytes] = {}
        self.odd: dict[str, int] = {}
        self.skipped: dict[str, str] = {}
        self.unsteady: set[str] = set()
        self.rules: tuple[int, ...] | None = None
        self.tree: bytes | None = None

    @property
    def holds_nothing(self) -> bool:
        """Whether all that is in it is ignored or skipped."""
        return not (self.files or self.folders or self.links)

    def forget(self, name: str) -> None:
        self.files.pop(name, None)
        self.folders.pop(name, None)
        self.links.pop(name, None)
        self.odd.pop(name, None)
        self.unsteady.discard(name)
        self.tree = None

    def below(self, prefix: str = "") -> Iterator[tuple[str, Folder]]:
        """This folder and all below it, with their paths (`""` or ending in `/`)."""
        stack = [(prefix, self)]
        while stack:
            at, folder = stack.pop()
            yield at, folder
            stack.extend((f"{at}{name}/", child) for name, child in folder.folders.items())
