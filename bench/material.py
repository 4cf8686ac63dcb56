"""What is measured on: repositories of n files and plans of n tasks, the same bytes on every machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

IDUMB = (sys.executable, "-m", "idumb")
_IDENTITY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "bench"), ("EMAIL", "bench@localhost"))
}
_CONFIG = "builder: noop\nbindings:\n  noop:\n    adapter: command\n    argv: ['true']\ngit:\n  commit: {policy}\n"


def environment(home: str) -> dict[str, str]:
    """This process's variables with git and idumb looking into an empty home of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "IDUMB_"))}
    home_of = {"HOME": home, "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
    return {**kept, **_IDENTITY, **home_of, "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": ""}


@dataclass(frozen=True, slots=True)
class Place:
    """A repository to measure in. `files` are the tracked files that idumb did not write."""

    root: str
    files: tuple[str, ...]
    env: Mapping[str, str]

    def git(self, *arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=self.root, env=self.env, capture_output=True, check=True).stdout

    def idumb(self, *arguments: str, expected: int = 0) -> bytes:
        done = subprocess.run([*IDUMB, *arguments], cwd=self.root, env=self.env, capture_output=True, check=False)
        if done.returncode != expected:
            words = f"idumb {' '.join(arguments)} ended with {done.returncode}: {done.stdout!r} {done.stderr!r}"
            raise RuntimeError(words)
        return done.stdout

    def approval(self, phase: str = "1") -> str:
        return str(json.loads(self.idumb("check-plan", phase, "--json"))["data"]["consent_hash"])

    def settle(self) -> None:
        """Commit everything, and pack, so that every measurement starts from the same state."""
        self.git("add", "-A")
        self.git("commit", "-qm", "settle", "--allow-empty")
        self.git("repack", "-adq")
        self.git("status")

    def write(self, path: str, text: str) -> None:
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as stream:
            stream.write(text)


def repository(folder: str, count: int) -> Place:
    """A packed repository with `count` small source files, fifty in each folder."""
    shutil.rmtree(folder, ignore_errors=True)
    home = f"{folder}.home"
    os.makedirs(home, exist_ok=True)
    os.makedirs(folder)
    place = Place(folder, tuple(_names(count)), environment(home))
    for number, path in enumerate(place.files):
        place.write(path, f"# file {number}\n" + "x = 1\n" * (50 + number % 300))
    place.git("init", "-q")
    place.git("config", "gc.auto", "0")
    place.git("config", "core.untrackedCache", "true")
    place.settle()
    return place


def _names(count: int) -> Iterator[str]:
    return (f"d{n // 2500:02}/s{n // 50 % 50:02}/f{n:05}.py" for n in range(count))


Task = Callable[[str, int, "Place"], str]


def project(folder: str, files: int, tasks: int, task: Task, policy: str = "none", phases: int = 1) -> Place:
    """A repository with idumb set up in it and phases of `tasks` tasks each, all committed."""
    place = repository(folder, files)
    place.idumb("init")
    place.write(".idumb/config.yaml", _CONFIG.format(policy=policy))
    for number in range(1, phases + 1):
        phase = str(number)
        text = plan(tasks, lambda n, phase=phase: task(phase, n, place), phase)  # type: ignore[misc]
        place.write(f".planning/phases/{phase}/01-PLAN.md", text)
    place.settle()
    return place


def plan(tasks: int, task: Callable[[int], str], phase: str = "1") -> str:
    head = f'---\ntype: plan\nphase: "{phase}"\nplan: "01"\ntitle: A plan to measure with\ngoal: Nothing\n---\n'
    return f"{head}\n## Tasks\n\n" + "\n".join(task(n) for n in range(1, tasks + 1))


def task_id(number: int, phase: str = "1") -> str:
    return f"T{phase}-{number:02}"


def two_edges(number: int) -> str:
    """Task i waits for i - 1 and i / 2: few edges, very many paths."""
    dependencies = sorted({n for n in (number - 1, number // 2) if 0 < n < number})
    return ", ".join(task_id(n) for n in dependencies) or "none"


def noop(phase: str, number: int, _: Place) -> str:
    """A task whose builder is the program `true`, and whose one check is `true`."""
    return f"### {task_id(number, phase)}: Task {number}\n\n- **Acceptance:**\n  - [ ] it holds — check: `true`\n"


def written(_: str, number: int, __: Place) -> str:
    return full(number)


def full(number: int) -> str:
    """A task as people write it: a paragraph, seven fields, two criteria."""
    return (
        f"### {task_id(number)}: Implement feature number {number}\n\n"
        f"Write **module {number}** with `func_{number}()` and its tests.\n\n"
        f"- **Depends on:** {two_edges(number)}\n"
        f"- **Files:**\n  - create `src/mod_{number}.py`\n  - create `tests/test_mod_{number}.py`\n"
        f"- **Acceptance:**\n  - [ ] it imports — check: `python -c 'import mod_{number}'`\n"
        f"  - [ ] its tests pass — verify\n"
        f"- **Verify:** `pytest -q tests/test_mod_{number}.py`\n- **Estimate:** 30m\n- **Priority:** high\n"
    )


def editing(phase: str, number: int, place: Place) -> str:
    """A task that starts one process, which appends a line to one file, and whose check is `true`."""
    path = place.files[number * 37 % len(place.files)]
    argv = ["/bin/sh", "-c", f"echo '# {number}' >> {path}"]
    step = json.dumps({"tool": "run", "intent": "append a line", "arguments": {"argv": argv}})
    return (
        f"### {task_id(number, phase)}: Task {number}\n\n- **Files:** modify `{path}`\n"
        f"- **Acceptance:**\n  - [ ] it holds — check: `true`\n\n```yaml steps\n- {step}\n```\n"
    )
