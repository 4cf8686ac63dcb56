"""The tools that a user would choose instead: how to start each, and the same project in its own format.

`bench/install_peers.py` installs them, `bench/against_peers.py` measures them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping

from bench import install_peers, material, measure
from bench.material import Place

_HERE = os.path.dirname(os.path.abspath(__file__))


def program(peer: str) -> tuple[str, ...] | None:
    """Return how to start a peer; None if it is not installed."""
    if peer == "make":
        return ("make",) if shutil.which("make") else None
    if peer == "typer":
        argv: tuple[str, ...] = (install_peers.PYTHON, os.path.join(_HERE, "typer_hello.py"))
        return argv if _works([install_peers.PYTHON, "-c", "import typer"]) else None
    if peer == "gsd-tools":
        script = "node_modules/get-shit-done-cc/get-shit-done/bin/gsd-tools.cjs"
        argv = ("node", os.path.join(install_peers.folder(peer), script))
    elif peer in install_peers.FROM_NODE:
        argv = (os.path.join(install_peers.folder(peer), "node_modules/.bin", peer),)
    else:
        argv = (os.path.join(os.path.dirname(install_peers.PYTHON), peer),)
    return argv if os.path.exists(argv[-1]) and shutil.which(argv[0]) else None


def _works(argv: list[str]) -> bool:
    return os.path.exists(argv[0]) and subprocess.run(argv, capture_output=True, check=False).returncode == 0


def engine(name: str, steps: int, folder: str) -> Callable[[], Mapping[str, float]] | None:
    """Return a case that runs `steps` durable steps in one process: `seconds` a step and `peak` MiB; or None."""
    module = {"DBOS": "dbos", "LangGraph": "langgraph.checkpoint.sqlite"}[name]
    if not _works([install_peers.PYTHON, "-c", f"import {module}"]):
        return None

    def case() -> Mapping[str, float]:
        place = tempfile.mkdtemp(prefix=name, dir=folder)
        argv = [install_peers.PYTHON, os.path.join(_HERE, "peer_engine.py"), name, str(steps), place]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=material.environment(place))
        if done.returncode != 0:
            raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr[-2000:]}")
        answer: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
        return answer

    return case


def project(peer: str, folder: str, tasks: int, *, waits: bool = True) -> Place:
    """A committed repository with `tasks` tasks as `peer` keeps them; if `waits`, task i waits for i - 1 and i / 2."""
    place = material.repository(folder, 20)
    edges = {n: (sorted({x for x in (n - 1, n // 2) if 0 < x < n}) if waits else []) for n in range(1, tasks + 1)}
    _WRITERS[peer](place, edges)
    place.settle()
    return place


def _gsd(place: Place, edges: Mapping[int, list[int]]) -> None:
    """Phases of ten plans with one task each, because its commands count plans."""
    head = '---\nphase: "{0:02}"\nplan: "{1:02}"\ntype: execute\nwave: {1}\ndepends_on: []\nautonomous: true\n---\n\n'
    task = (
        '<tasks>\n<task type="auto">\n  <name>Implement feature number {0}</name>\n  <files>src/mod_{0}.py</files>\n'
        "  <action>Write module {0} and its tests.</action>\n  <verify>pytest -q tests/test_mod_{0}.py</verify>\n"
        "  <done>its tests pass</done>\n</task>\n</tasks>\n"
    )
    phases = range(1, -(-len(edges) // 10) + 1)
    place.write(".planning/config.json", "{}\n")
    place.write(".planning/PROJECT.md", "# A project to measure with\n")
    place.write(".planning/STATE.md", "# State\n\n**Current Phase:** 1\n**Status:** executing\n")
    rows = "".join(f"- [ ] **Phase {n}: Features {n}**\n" for n in phases)
    parts = "".join(f"\n### Phase {n}: Features {n}\n\n**Goal**: Features\n**Plans**: 10 plans\n" for n in phases)
    place.write(".planning/ROADMAP.md", f"# Roadmap\n\n{rows}{parts}")
    for number in edges:
        phase, plan = (number - 1) // 10 + 1, (number - 1) % 10 + 1
        path = f".planning/phases/{phase:02}-features-{phase}/{phase:02}-{plan:02}-PLAN.md"
        place.write(path, head.format(phase, plan) + task.format(number))


def _task_master(place: Place, edges: Mapping[int, list[int]]) -> None:
    rows = [
        {
            "id": number, "title": f"Implement feature number {number}",
            "description": f"Write module {number} with func_{number}() and its tests.", "details": "",
            "testStrategy": f"pytest -q tests/test_mod_{number}.py", "priority": "high", "dependencies": dependencies,
            "status": "pending", "subtasks": [],
        }
        for number, dependencies in edges.items()
    ]  # fmt: skip
    model = {"provider": "anthropic", "modelId": "none", "maxTokens": 1000, "temperature": 0.2}
    settings = {
        "models": {"main": model},
        "global": {"logLevel": "info", "defaultTag": "master", "projectName": "bench"},
    }
    when = "2026-01-01T00:00:00Z"
    tag = {"tasks": rows, "metadata": {"created": when, "updated": when, "description": "A project to measure with"}}
    place.write(".taskmaster/config.json", json.dumps(settings))
    place.write(".taskmaster/state.json", json.dumps({"currentTag": "master", "migrationNoticeShown": True}))
    place.write(".taskmaster/tasks/tasks.json", json.dumps({"master": tag}, indent=2))


def _backlog(place: Place, edges: Mapping[int, list[int]]) -> None:
    start = program("backlog") or ()
    for arguments in (("init", "bench", "--defaults"), ("config", "set", "remoteOperations", "false")):
        measure.program((*start, *arguments), place.root, place.env)()
    for number, dependencies in edges.items():
        waits = "".join(f"\n  - TASK-{n}" for n in dependencies) or " []"
        text = (
            f"---\nid: TASK-{number}\ntitle: Implement feature number {number}\nstatus: To Do\nassignee: []\n"
            f"created_date: '2026-01-01 00:00'\nlabels: []\ndependencies:{waits}\npriority: high\n---\n\n"
            f"## Description\n\nWrite module {number} with func_{number}() and its tests.\n\n"
            "## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [ ] #1 it imports\n- [ ] #2 its tests pass\n<!-- AC:END -->\n"
        )
        place.write(f"backlog/tasks/task-{number} - Implement-feature-number-{number}.md", text)


def _specify(place: Place, edges: Mapping[int, list[int]]) -> None:
    """Steps in a row: a workflow has no other order."""
    head = 'schema_version: "1.0"\nworkflow:\n  id: bench\n  name: Bench\n  version: "1.0.0"\n  author: bench\n'
    steps = "".join(f'  - id: t{number}\n    type: shell\n    run: "true"\n' for number in edges)
    place.write(".specify/.keep", "")
    place.write("workflow.yml", f"{head}  description: A workflow to measure with\nsteps:\n{steps}")


def _doit(place: Place, edges: Mapping[int, list[int]]) -> None:
    tasks = "".join(
        f"    yield {{'name': '{number}', 'actions': ['true'], 'task_dep': {[f't:{n}' for n in dependencies]}}}\n"
        for number, dependencies in edges.items()
    )
    place.write("dodo.py", f"DOIT_CONFIG = {{'verbosity': 0}}\n\n\ndef task_t():\n{tasks}")


def _make(place: Place, edges: Mapping[int, list[int]]) -> None:
    rules = (f"t{n}: {' '.join(f't{x}' for x in waits)}\n\t@true\n" for n, waits in edges.items())
    names = " ".join(f"t{n}" for n in edges)
    place.write("Makefile", f".PHONY: all {names}\nall: {names}\n{''.join(rules)}")


_WRITERS: Mapping[str, Callable[[Place, Mapping[int, list[int]]], None]] = {
    "gsd-tools": _gsd,
    "task-master": _task_master,
    "backlog": _backlog,
    "specify": _specify,
    "doit": _doit,
    "make": _make,
}
