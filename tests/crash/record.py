"""Keeps the last result of each programme in results.json and makes the table of docs/reliability.md from it."""

from __future__ import annotations

import datetime as dt
import json
import platform
import subprocess
from pathlib import Path
from typing import Any

from tests.crash.programme import KINDS, Result

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "crash" / "results.json"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def write(result: Result) -> None:
    results: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    results[result.programme] = {
        "title": result.title,
        "cases": result.cases,
        "seed": result.seed,
        "seconds": result.seconds,
        "skipped": result.skipped,
        "failures": {kind: result.count(kind) for kind in KINDS if kind in result.measures},
        "notes": dict(sorted(result.notes.items())),
        "commit": _commit(),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
    }
    KEPT.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def page(text: str, results: dict[str, Any]) -> str:
    """The page with the table between its two marks replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(results)}\n{END}{after}"


def table(results: dict[str, Any]) -> str:
    """One row for each programme, which the page describes above; results.json has what else it counted."""
    lines = ["| programme | cases | failures | seed | commit | date |", "|---|---|---|---|---|---|"]
    for name in sorted(results, key=lambda one: int(one.removeprefix("T"))):
        row = results[name]
        failures = ", ".join(f"{count} {kind}" for kind, count in row["failures"].items() if count) or "none"
        cells = [
            name,
            f"{row['cases']:,}",
            f"skipped: {row['skipped']}" if row["skipped"] else failures,
            str(row["seed"]),
            row["commit"],
            row["date"],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _commit() -> str:
    """Return the measured commit, with `+` if files of the program differ from it."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "idumb"], cwd=ROOT, check=False).returncode
    return commit + ("+" if changed else "")
