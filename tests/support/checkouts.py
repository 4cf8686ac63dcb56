"""Checkouts of a sandbox."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from idumb.git import discover
from idumb.git.checkouts.checkout import PROOF, Additions, Checkout
from idumb.git.checkouts.pool import Checkouts
from idumb.git.history import GitHistory
from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox


def opened(sandbox: GitSandbox, *, folder: str = "", **additions: Any) -> Checkouts:
    """Return the checkouts of a command; none is taken yet."""
    place = discover.find(str(sandbox.root))
    return Checkouts(place, lambda: GitTrees(place, folder=folder), lambda: Additions(**additions))


_COMMANDS = dict[Checkout, Checkouts]()


def create(sandbox: GitSandbox, use: str = PROOF, **additions: Any) -> Checkout:
    """Return a checkout of a command of its own, until `close`."""
    command = opened(sandbox, **additions)
    checkout = command.open(use)
    _COMMANDS[checkout] = command
    return checkout


def close(checkout: Checkout) -> None:
    """End the command that uses a checkout, unless it has ended."""
    if checkout in _COMMANDS:
        _COMMANDS.pop(checkout).close()


@contextlib.contextmanager
def committing(sandbox: GitSandbox, folder: str = "") -> Iterator[GitHistory]:
    """Yield the history of the sandbox, or of its project in `folder`, with a checkout for the hooks of its commits."""
    command = opened(sandbox, folder=folder)
    place = discover.find(str(sandbox.root))
    yield GitHistory(place, project=discover.Project(place, folder), proof=lambda: command.open(PROOF))
    command.close()


def tree(sandbox: GitSandbox, revision: str = "HEAD") -> str:
    return sandbox.git("rev-parse", f"{revision}^{{tree}}").strip()


def shown(checkout: Checkout) -> dict[str, bytes]:
    """Return path to bytes of its files, without the git folder."""
    root = Path(checkout.top)
    files = (path for path in sorted(root.rglob("*")) if ".git" not in path.relative_to(root).parts)
    return {str(p.relative_to(root)): p.read_bytes() for p in files if p.is_file()}


def show(checkout: Checkout, sandbox: GitSandbox, revision: str = "HEAD") -> Path:
    checkout.show(tree(sandbox, revision), sandbox.git("rev-parse", revision).strip())
    return Path(checkout.top)


def names(place: str | Path) -> list[str]:
    return sorted(os.listdir(place))


def run(command: str, checkout: Checkout) -> str:
    done = subprocess.run(command, cwd=checkout.top, shell=True, check=True, capture_output=True, text=True)
    return done.stdout.strip()
