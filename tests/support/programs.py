"""Programs that tests write themselves."""

from __future__ import annotations

from pathlib import Path


def script(path: Path, text: str = "exit 0", mode: int = 0o755) -> Path:
    """Write an executable shell script, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(mode)
    return path
