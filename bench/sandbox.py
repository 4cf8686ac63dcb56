"""Measures what a sandbox adds to each start of a program: `python -m bench.sandbox`.

The program does nothing. Wall time is the median; CPU time includes that of all children.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from idumb.composition.sandboxes import LocalSandboxes
from idumb.domain.permissions import SANDBOX_BWRAP, Fence
from idumb.system import programs

ROUNDS = 101


def main() -> int:
    available = LocalSandboxes()
    support = available.support()
    with tempfile.TemporaryDirectory() as folder:
        fence = Fence((os.path.realpath(folder),))
        launchers = {"nothing": (), "an interpreter (python -I -S)": (sys.executable, "-I", "-S", "-c", "0")}
        if support.bwrap:
            launchers["bwrap"] = available.launcher(SANDBOX_BWRAP, fence)
            launchers["no network"] = programs.without_network(programs.confined(support.bwrap, {"/": True}))
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in launchers}
        for _ in range(ROUNDS):
            for name, words in launchers.items():
                times[name].append(_start((*words, "/bin/true"), folder))
    print("| sandbox | wall | CPU |", "|---|---|---|", sep="\n")
    for name, rows in times.items():
        wall, cpu = (statistics.median(values) * 1000 for values in zip(*rows, strict=True))
        print(f"| {name} | {wall:.1f} ms | {cpu:.1f} ms |")
    return 0


def _start(argv: tuple[str, ...], folder: str) -> tuple[float, float]:
    """Return wall and CPU time in seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, cwd=folder, check=False, capture_output=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
