"""Measures idumb beside its floors and peers.

    python -m bench.run [--quick] [--only NAME ...] [--write]

A table goes to standard output as it grows; `--write` puts it into bench/measured.md. What a user
feels is in docs/performance.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench import (
    against_peers,
    corpus,
    events,
    git_part,
    material,
    pages,
    parsing,
    proving,
    quick,
    running,
    snapshots,
    starting,
)
from bench.measure import Effort, Figure

PAGE = "bench/measured.md"

GROUPS: Mapping[str, Callable[[Effort], Iterator[Figure]]] = {
    "start": starting.start,
    "status": starting.reading,
    "check-plan": parsing.check_plan,
    "parse": parsing.parse,
    "corpus": corpus.corpus,
    "order": parsing.order,
    "snapshot": snapshots.snapshot,
    "proving": proving.proving,
    "task": running.whole_task,
    "git": git_part.git_part,
    "quick": quick.quick,
    "orchestration": running.orchestration,
    "long": running.long_runs,
    "resume": running.resuming,
    "rollback": snapshots.rollback,
    "footprint": starting.footprint,
    "page": pages.page,
    "events": events.newest,
    "peers": against_peers.against_peers,
}
HEAD = ("| goal | what | beside | measured | wanted | met | rounds |", "|---|---|---|---|---|---|---|")


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    folder = tempfile.mkdtemp(prefix="idumb-bench-", dir=options.folder)
    os.environ.update({k: v for k, v in material.environment(folder).items() if k.startswith(("HOME", "XDG", "GIT"))})
    effort = Effort(folder, options.quick)
    rows: list[str] = []
    broken: list[str] = []
    print(_machine(arguments), *HEAD, sep="\n", flush=True)
    try:
        for name in options.only or GROUPS:
            try:
                for figure in GROUPS[name](effort):
                    rows.append(row(figure))
                    print(rows[-1], flush=True)
            except Exception:  # noqa: BLE001 - a group that breaks must not take the hour of the others with it
                traceback.print_exc()
                broken.append(name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
        return 1
    if options.write:
        _write([_machine(arguments), "", *HEAD, *rows])
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description="Measure idumb beside floors and peers.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes: minutes, not an hour")
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="NAME", help=f"one of {', '.join(GROUPS)}")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    parser.add_argument("--folder", help="where to make the repositories (the system's temporary folder)")
    return parser.parse_args(arguments)


def row(figure: Figure) -> str:
    unit = "×" if figure.unit == "x" else f" {figure.unit}" if figure.unit else ""
    measured = figure.note if figure.value is None else f"{figure.value:.2f}{unit}"
    if figure.note and figure.value is not None:
        measured += f" ({figure.note})"
    goal = "" if figure.goal is None else f"≤ {figure.goal:g}{unit}"
    cells = (str(figure.number), figure.what, figure.beside, measured, goal, figure.verdict, str(figure.rounds or ""))
    return "| " + " | ".join(cells) + " |"


def _machine(arguments: Sequence[str]) -> str:
    """What was measured where, without any path: the figures are ratios, the machine is background."""
    import pygit2

    shown = " ".join(["python -m bench.run", *(a for a in arguments if a != "--write")])
    return (
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, commit {_commit()}, `{shown}`: {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {_git('version')}, "
        f"libgit2 {pygit2.LIBGIT2_VERSION}; load at the start {os.getloadavg()[0]:.1f}."
    )


def _commit() -> str:
    changed = _git("status", "--porcelain", "--", "idumb", "bench")
    return _git("rev-parse", "--short=12", "HEAD") + (" with uncommitted changes" if changed else "")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.strip()


def _write(lines: Sequence[str]) -> None:
    with open(PAGE, "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
