"""Runs each offered choice as a user would paste it, and restores everything before the next one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.answer import Answer
from tests.support.project import Project

ASKS = frozenset({"consent.missing", "amend.not-confirmed", "approval.not-given", "rollback.not-confirmed"})
"""Refusals that only ask to confirm the chosen action; at a terminal they are the question."""


def state() -> Path:
    """What idumb keeps for the user."""
    return Path(os.environ["XDG_STATE_HOME"])


def refusal_of(project: Project, command: str) -> str | None:
    """Return why a pasted command is refused, after which everything is restored; None if it is done or asks."""
    with put_back(project.folder, state()):
        for answer in _one_after_the_other(project, command.split("; ")):
            if (code := _refusal(answer)) is not None and not command.startswith("idumb check-plan"):
                return f"{code} {answer.err or answer.out}"
    return None


def run_each(project: Project, offer: Answer) -> dict[str, list[Answer]]:
    """The id of each choice that has a command, to the answers of its commands."""
    answers: dict[str, list[Answer]] = {}
    for row in offer.error["details"].get("choices", ()):
        if row["command"] is not None:
            with put_back(project.folder, state()):
                answers[row["id"]] = list(_one_after_the_other(project, row["command"].split("; ")))
    return answers


def _one_after_the_other(project: Project, commands: Iterable[str]) -> Iterator[Answer]:
    """Up to the first that is not done: a refusal, or a question that only a person can answer."""
    for command in commands:
        yield (answer := _typed(project, command))
        if answer.code == 4:
            return


def refused(project: Project, offer: Answer) -> dict[str, tuple[str, str]]:
    """Return the choices that fail: a mapping from id to the command and its refusal."""
    answers = run_each(project, offer)
    commands = {row["id"]: row["command"] for row in offer.error["details"].get("choices", ())}
    return {
        name: (commands[name], f"{code} {answer.err}")
        for name, ended in answers.items()
        for answer in ended
        if (code := _refusal(answer)) is not None and not commands[name].startswith("idumb check-plan")
    }


def _refusal(answer: Answer) -> str | None:
    if answer.code in (0, 1, 5):
        return None
    code = answer.err.rpartition("[")[2].partition("]")[0] if not answer.out.startswith("{") else answer.error["code"]
    return None if code in ASKS else code


def _typed(project: Project, command: str) -> Answer:
    words = shlex.split(command.replace("REASON", "because"))
    if words[0] == "idumb":
        return project.json(*words[1:]) if ">" not in words else project.idumb(*words[1:])
    done = subprocess.run(["sh", "-c", command], cwd=project.folder, capture_output=True, text=True, check=False)
    return Answer(0 if done.returncode == 0 else 4, done.stdout, done.stderr)


@contextmanager
def put_back(*folders: Path) -> Iterator[None]:
    """Restore these folders to their current content afterwards; the folders themselves stay the same."""
    kept = {folder: folder.with_name(f"{folder.name}.kept") for folder in folders if folder.exists()}
    for folder, aside in kept.items():
        shutil.copytree(folder, aside, symlinks=True)
    try:
        yield
    finally:
        for folder, aside in kept.items():
            _empty(folder)
            shutil.copytree(aside, folder, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(aside)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            _empty(path)  # a repository is known by the inode of its git folder, so folders stay
        else:
            path.unlink()
