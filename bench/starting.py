"""Goals 1, 2 and 15: the time and memory of commands that only answer, and what is installed for them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Sequence

from bench import material, measure, peers
from bench.measure import Effort, Figure

HERE = os.path.dirname(os.path.abspath(__file__))
CLICK = (sys.executable, os.path.join(HERE, "click_hello.py"))
LIBRARIES = (sys.executable, "-c", "import click, filelock, pygit2, ruamel.yaml, sqlite3")
"""Loads what a command that changes something needs, and does nothing: a floor for such commands."""
_PARSE = """
import sys
from idumb.markdown.plans import plan_parser
with open(sys.argv[1], "rb") as stream:
    plan_parser.parse(stream.read(), sys.argv[1])
"""


def idumb() -> tuple[str, ...]:
    """The installed command where there is one beside this Python, as a user starts it."""
    script = os.path.join(os.path.dirname(sys.executable), "idumb")
    return (script,) if os.path.exists(script) else material.IDUMB


def start(effort: Effort) -> Iterator[Figure]:
    """Goal 1."""
    place = material.repository(f"{effort.folder}/start", 20)
    commands: dict[str, Sequence[str]] = {
        "click": CLICK,
        "--version": (*idumb(), "--version"),
        "--help": (*idumb(), "--help"),
    }
    for peer, arguments in (("typer", ()), ("gsd-tools", ("current-timestamp",))):
        argv = peers.program(peer)
        if argv is not None:
            commands[peer] = (*argv, *arguments)
    cases = {name: measure.program(argv, place.root, place.env) for name, argv in commands.items()}
    times = measure.turns(cases, effort.starts, warm=2)
    for flag, goal in (("--version", 1.15), ("--help", 2.0)):
        yield Figure(1, f"idumb {flag}", "click hello", measure.ratio(times, flag, "click"), goal, effort.starts)
    for peer, label, goal in (("typer", "typer hello", 0.5), ("gsd-tools", "gsd-tools current-timestamp", 0.75)):
        for flag in ("--version", "--help"):
            floor_ratio = measure.ratio(times, flag, peer) if peer in times else None
            note = "" if peer in times else f"{peer} is not installed"
            yield Figure(1, f"idumb {flag}", label, floor_ratio, goal, effort.starts if peer in times else 0, note=note)


def reading(effort: Effort) -> Iterator[Figure]:
    """Goal 2."""
    for tasks in (10, 1000) if effort.quick else (10, 1000, 10_000):
        yield from _reading(effort, tasks)


def _reading(effort: Effort, tasks: int) -> Iterator[Figure]:
    place = material.project(f"{effort.folder}/read{tasks}", 20, tasks, material.written)
    path = ".planning/phases/1/01-PLAN.md"
    with open(os.path.join(place.root, path), encoding="utf-8") as stream:
        text = stream.read()
    place.idumb("status")
    # A view is kept for good only once its inputs are older than the clock's grain.
    measure.turns({"wait": measure.program((*idumb(), "status"), place.root, place.env)}, 3)
    cases = {name: measure.program((*idumb(), name), place.root, place.env) for name in ("status", "next")}
    times = measure.turns({"click": measure.program(CLICK, place.root, place.env), **cases}, effort.starts, warm=2)
    for name in ("status", "next"):
        value = measure.ratio(times, name, "click")
        yield Figure(2, f"idumb {name}, {tasks:,} tasks", "click hello", value, 1.75, effort.starts)
    edits = iter(range(10**9))

    def edit() -> None:
        place.write(path, f"{text}\n<!-- edit {next(edits)} -->\n")

    rounds = effort.rounds if tasks > 1000 else effort.starts
    times = measure.turns(
        {
            "click": measure.program(CLICK, place.root, place.env),
            "status": cases["status"],
            "parser": measure.program((sys.executable, "-c", _PARSE, path), place.root, place.env),
        },
        rounds,
        before=edit,
    )
    goal = 1.5 if tasks == 1000 else None
    label, value = "idumb status after an edit of the plan", measure.ratio(times, "status", "click")
    yield Figure(2, f"{label}, {tasks:,} tasks", "click hello", value, goal, rounds)
    label, value = "a program that only parses that plan", measure.ratio(times, "parser", "click")
    yield Figure(2, f"{label}, {tasks:,} tasks", "click hello", value, None, rounds)


def footprint(effort: Effort) -> Iterator[Figure]:
    """Goal 15."""
    place = material.project(f"{effort.folder}/memory", 20, 1000, material.noop)
    place.idumb("status")

    def peak(*arguments: str) -> float:
        return measure.peak_memory(sys.executable, arguments, place.root, place.env, effort.folder)

    yield Figure(
        15, "memory of idumb status, 1,000 tasks", "click hello", peak("idumb", "status") / peak(CLICK[1]), 1.5, 1
    )
    runs = {}
    for tasks in (20, 200) if effort.quick else (100, 1000):
        place = material.project(f"{effort.folder}/memory{tasks}", 100, tasks, material.noop)
        runs[tasks] = peak("idumb", "execute-phase", "1", "--approve", place.approval(), "--no-verify")
    few, many = runs
    yield Figure(15, f"memory of a run of {many:,} tasks", f"a run of {few:,}", runs[many] / runs[few], 1.1, 1)
    yield Figure(15, f"memory of a run of {many:,} tasks", "", runs[many], None, 1, "MiB")
    yield Figure(15, "installed, with all core dependencies", "", installed() / 2**20, 30, 0, "MiB")


def installed() -> int:
    """Bytes of idumb and of everything that it requires without extras; compiled Python files are not counted."""
    seen: set[str] = set()
    queue = ["idumb"]
    total = _package_size()
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name != "idumb":
            total += sum(
                _size(str(distribution.locate_file(f))) for f in distribution.files or () if f.suffix != ".pyc"
            )
        needed = (r for r in distribution.requires or () if "extra ==" not in r)
        queue.extend(re.split(r"[^A-Za-z0-9._-]", r, maxsplit=1)[0].lower() for r in needed)
    return total


def _package_size() -> int:
    spec = importlib.util.find_spec("idumb")
    folder = os.path.dirname(spec.origin) if spec is not None and spec.origin else HERE
    return sum(
        _size(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names if not name.endswith(".pyc")
    )


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
