"""A builder outside the repository whose program can be replaced, and the envelopes of its attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.project import Project, task

BUILDER = """#!/bin/sh
# made for tests
echo "$IDUMB_TASK" > "$IDUMB_TASK.txt"
"""
CONFIG = "builder: coder\nbindings:\n  coder:\n    adapter: command\n    argv: [{program}, --model, small]\n"


def rewrite(program: Path, text: str) -> None:
    """Replace the program's file, as an update does."""
    new = program.with_name("new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o755)
    new.replace(program)


def built(id: str, after: str = "none", **more: Any) -> str:
    return task(id, files=f"create `{id}.txt`", check=f"test -s {id}.txt", after=after, **more)


def shown(project: Project, task: str, *arguments: str) -> dict[str, Any]:
    answer = project.json("show", task, "--envelope", *arguments)
    assert answer.code == 0, answer.out
    return answer.data


def parts(data: dict[str, Any]) -> dict[str, Any]:
    return {part["name"]: part for part in data["parts"]}


def differing(project: Project, one: str, other: str) -> list[str]:
    """The parts in which the newest attempts of two tasks differ."""
    left, right = parts(shown(project, one)), parts(shown(project, other))
    return [name for name in left if left[name]["value"] != right[name]["value"]]


def kinds(project: Project, kind: str) -> list[dict[str, Any]]:
    return [dict(e["payload"]) for e in project.events("1", "--kind", kind)]
