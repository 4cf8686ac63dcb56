"""Timing. Every figure is a ratio of two things that took turns within one run, so the machine's speed cancels out."""

from __future__ import annotations

import math
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

Case = Callable[[], object]
Times = dict[str, list[float]]


class Took(float):
    """Seconds of wall time, and the `cpu` seconds that all processes took; NaN where the system does not say."""

    def __new__(cls, wall: float, cpu: float) -> Self:
        made = super().__new__(cls, wall)
        made.cpu = cpu
        return made

    cpu: float


def processor_time() -> float:
    """Return the CPU seconds of this process and of all its children that ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table. `value` and `goal` are ratios unless `unit` says otherwise.

    A `goal` of None means no goal. `rounds` is the number of pairs, or 0 if a value is counted instead of timed.
    """

    number: int
    what: str
    beside: str
    value: float | None
    goal: float | None
    rounds: int
    unit: str = "x"
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "skipped"
        if self.goal is None:
            return ""
        return "yes" if self.value <= self.goal else "no"


@dataclass(frozen=True, slots=True)
class Effort:
    """How often and how large to measure. `quick` omits cases that take minutes. `folder` is scratch space."""

    folder: str
    quick: bool

    @property
    def starts(self) -> int:
        return 5 if self.quick else 15

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 5


def turns(cases: Mapping[str, Case], rounds: int, warm: int = 1, before: Case | None = None) -> Times:
    """Seconds of each case, all cases once a round. A case that returns a float has timed itself."""
    times: Times = {name: [] for name in cases}
    for number in range(warm + rounds):
        for name, case in cases.items():
            if before is not None:
                before()
            took = _timed(case)
            if number >= warm:
                times[name].append(took)
    return times


def _timed(case: Case) -> float:
    start = time.perf_counter()
    own = case()
    took = time.perf_counter() - start
    return own if isinstance(own, float) else took


def ratio(times: Times, ours: str, theirs: str) -> float:
    """The median over rounds of ours against theirs in the same round."""
    return statistics.median(a / b for a, b in zip(times[ours], times[theirs], strict=True))


def cpu(times: Times) -> Times:
    """Return CPU times instead of wall times, of cases that return `Took`."""
    return {name: [took.cpu for took in each if isinstance(took, Took)] for name, each in times.items()}


def beside_peer(
    number: int, what: str, beside: str, times: Times, names: tuple[str, str], goal: float | None = None
) -> Figure:
    """Return the row of two cases, the second of which is there only if that peer is installed."""
    ours, peer = names
    if peer not in times:
        return Figure(number, what, beside, None, goal, 0, note=f"{peer} is not installed")
    return Figure(number, what, beside, ratio(times, ours, peer), goal, len(times[peer]))


def median(times: Times, name: str) -> float:
    return statistics.median(times[name])


def exponent(small: tuple[int, float], large: tuple[int, float]) -> float:
    """The e of cost ~ size ** e between two sizes."""
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])


def program(argv: Sequence[str], cwd: str, env: Mapping[str, str], expected: Sequence[int] = (0,)) -> Case:
    """A case that runs one program with its output thrown away; an unexpected exit is a RuntimeError."""

    def case() -> None:
        done = subprocess.run(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            check=False,
        )  # fmt: skip
        if done.returncode not in expected:
            words = f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.decode('utf-8', 'replace')}"
            raise RuntimeError(words)

    return case


_WATCHED = """
import atexit, re, runpy, sys
target, sys.argv = sys.argv[1], sys.argv[2:]
def tell():
    peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]
    open(target, 'w').write(peak)
atexit.register(tell)
if sys.argv[0].endswith('.py'):
    runpy.run_path(sys.argv[0], run_name='__main__')
else:
    runpy.run_module(sys.argv[0], run_name='__main__')
"""


def peak_memory(python: str, arguments: Sequence[str], cwd: str, env: Mapping[str, str], folder: str) -> float:
    """The largest resident size of a Python program in MiB, from its own /proc entry; NaN where there is none.

    What `wait4` tells is of no use here: a child inherits the figure of the process that started it.
    """
    if not os.path.exists("/proc/self/status"):
        return math.nan
    target = os.path.join(folder, "peak")
    program([python, "-c", _WATCHED, target, *arguments], cwd, env)()
    with open(target, encoding="ascii") as stream:
        return int(stream.read()) / 1024
