"""Whether a place that an agent cites is in a tree. What it says about that place stays its word."""

from __future__ import annotations

from idumb.app.ports.repository import Trees
from idumb.domain import paths
from idumb.domain.proof.judgement import Citation


def resolves(trees: Trees, cited: Citation, tree: str) -> bool:
    """Whether a tree has the file that is cited, with that many lines."""
    path = cited.file.removeprefix("./")
    if cited.line < 1 or paths.problem(path):
        return False
    entry = trees.entry(tree, path)
    if entry is None or trees.is_folder(tree, path):
        return False
    data = trees.read(entry.oid)
    return cited.line <= data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
