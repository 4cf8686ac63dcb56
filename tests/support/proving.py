"""Proving trees of a sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from idumb.git import discover, proving_folders
from idumb.git.proving_tree import ProvingTree
from tests.support.gitrepo import GitSandbox


def create(sandbox: GitSandbox, **options: Any) -> ProvingTree:
    repository = discover.find(str(sandbox.root))
    return ProvingTree(repository, proving_folders.place(repository), **options)


def tree(sandbox: GitSandbox, revision: str = "HEAD") -> str:
    return sandbox.git("rev-parse", f"{revision}^{{tree}}").strip()


def shown(proving: ProvingTree) -> dict[str, bytes]:
    """Return path to bytes of its files, without the git folder."""
    root = Path(proving.root)
    files = (path for path in sorted(root.rglob("*")) if ".git" not in path.relative_to(root).parts)
    return {str(p.relative_to(root)): p.read_bytes() for p in files if p.is_file()}


def show(proving: ProvingTree, sandbox: GitSandbox, revision: str = "HEAD") -> Path:
    proving.show(tree(sandbox, revision), sandbox.git("rev-parse", revision).strip())
    return Path(proving.root)
