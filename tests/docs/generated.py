"""Pages that programs in docs/ make."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page(name: str, *arguments: str) -> str:
    """The page of `docs/generate_NAME.py`, as it is to be."""
    return str(runpy.run_path(str(DOCS / f"generate_{name}.py"))["page"](*arguments))
