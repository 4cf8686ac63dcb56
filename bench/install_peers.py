"""Installs the tools that idumb is compared with, each at one version, into folders below the virtual environment.

    python -m bench.install_peers

Nothing is installed for the user or for the system. If a tool cannot be installed, the table says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

PLACE = os.path.join(sys.prefix, "peers")
PYTHON = os.path.join(PLACE, "python", "bin", "python")
# Tools in Python share one environment, apart from idumb's; the newest versions that were measured together.
FROM_PYTHON = {
    "doit": "doit==0.37.0",
    "specify": "specify-cli==1.2.3",
    "typer": "typer",  # the version that specify-cli brings
    "DBOS": "dbos==3.4.0",
    "LangGraph": "langgraph==1.2.22 langgraph-checkpoint-sqlite==3.1.2",
}
FROM_NODE = {
    "gsd-tools": "get-shit-done-cc@1.32.0",
    "backlog": "backlog.md@1.52.0",
    "task-master": "task-master-ai@0.43.1",
}


def folder(peer: str) -> str:
    """Return the folder of a tool from npm."""
    return os.path.join(PLACE, "node", peer)


def main() -> int:
    os.makedirs(PLACE, exist_ok=True)
    missing = [*_from_python(), *_from_node()]
    print(f"missing: {', '.join(missing) or 'none'}")
    return 0


def _from_python() -> list[str]:
    if not os.path.exists(PYTHON) and not _runs(
        [sys.executable, "-m", "venv", os.path.dirname(os.path.dirname(PYTHON))]
    ):
        return list(FROM_PYTHON)
    pip = [PYTHON, "-m", "pip", "install", "--quiet"]
    return [peer for peer, packages in FROM_PYTHON.items() if not _runs([*pip, *packages.split()])]


def _from_node() -> list[str]:
    if shutil.which("npm") is None:
        return list(FROM_NODE)
    quiet = ("--no-audit", "--no-fund", "--loglevel", "error")
    return [
        peer for peer, package in FROM_NODE.items()
        if not _is_there(peer, package) and not _runs(["npm", "install", "--prefix", folder(peer), *quiet, package])
    ]  # fmt: skip


def _is_there(peer: str, package: str) -> bool:
    name, _, version = package.rpartition("@")
    try:
        with open(os.path.join(folder(peer), "node_modules", name, "package.json"), encoding="utf-8") as stream:
            return bool(json.load(stream)["version"] == version)
    except OSError:
        return False


def _runs(argv: Sequence[str]) -> bool:
    print("+", *argv, flush=True)
    return subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
