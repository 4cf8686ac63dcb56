"""Plan files that people wrote, if they are on this machine. They are read in place and never copied."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

CORPUS = Path(os.environ.get("PLAN_CORPUS") or Path(__file__).resolve().parents[3] / "shared" / "corpus")


def plans(*kinds: str) -> Iterator[tuple[Path, str]]:
    """Yield the plan files of some kinds, with their paths in their own repositories."""
    for kind in kinds:
        for path in sorted((CORPUS / kind).rglob("*.md")):
            if "PLAN" in path.name and path.is_file():
                yield path, "/".join(path.relative_to(CORPUS).parts[2:])
