"""Python programs that import idumb, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def start(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a program with pipes for what it reads and for what it prints, errors included."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(code: str, *arguments: str | Path) -> str:
    """Return what a program prints, and assert that it succeeds."""
    with start(code, *arguments) as process:
        printed = process.communicate()[0]
    assert process.returncode == 0, printed
    return printed
