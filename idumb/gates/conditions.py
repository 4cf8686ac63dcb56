"""Conditions about files, symbols and variables. Evaluating one starts no process and follows no link outside."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Mapping

from idumb.domain import paths
from idumb.domain.plans.plan import Condition
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.gates import python_source
from idumb.system.rooted_files import RootedFiles

_LONGEST = 32 * 1024 * 1024
_FILE = "a file"

Judged = tuple[bool, str]


def check(
    subject: str, condition: Condition, *, root: str, environment: Mapping[str, str], tree: str | None
) -> Evidence:
    """Evaluate any condition except a command. `env NAME` looks in `environment`."""
    try:
        held, words = _JUDGES[condition.kind](condition, root, environment)
        result = evidence.PASSED if held else evidence.FAILED
    except (OSError, ValueError) as problem:
        result, words = evidence.ERRORED, str(problem)
    return Evidence(subject, described(condition), result, output=words, tree=tree)


def described(condition: Condition) -> str:
    """Return the condition as a plan writes it."""
    if condition.kind == "symbol":
        return f"symbol {condition.subject} in {condition.path}"
    if condition.kind == "file-contains":
        return f'file contains {condition.subject} "{condition.text}"'
    return f"{condition.kind.replace('-', ' ')} {condition.subject}"


def _exists(condition: Condition, root: str, _: Mapping[str, str]) -> Judged:
    kind = _kind(root, condition.subject)
    return kind is not None, f"{condition.subject} is {kind}" if kind else f"{condition.subject} does not exist"


def _absent(condition: Condition, root: str, environment: Mapping[str, str]) -> Judged:
    exists, words = _exists(condition, root, environment)
    return not exists, words


def _contains(condition: Condition, root: str, _: Mapping[str, str]) -> Judged:
    expected = (condition.text or "").encode("utf-8", "surrogateescape")
    data = read(root, condition.subject)
    if data is None:
        return False, f"{condition.subject} is not a file in the workspace"
    held = expected in data
    return held, f"{condition.subject} {'contains' if held else 'does not contain'} {condition.text!r}"


def _symbol(condition: Condition, root: str, _: Mapping[str, str]) -> Judged:
    path = condition.path or ""
    data = read(root, path)
    if data is None:
        return False, f"{path} is not a file in the workspace"
    text, name = data.decode("utf-8-sig", "replace"), condition.subject
    is_python = path.endswith((".py", ".pyi"))
    held = name.removesuffix("()") in python_source.names(text) if is_python else mentions(text, name)
    return held, f"{path} {'has' if held else 'does not have'} {name}"


def _variable(condition: Condition, _: str, environment: Mapping[str, str]) -> Judged:
    held = bool(environment.get(condition.subject))
    return held, f"{condition.subject} is {'set' if held else 'not set'}"


_JUDGES: Mapping[str, Callable[[Condition, str, Mapping[str, str]], Judged]] = {
    "file-exists": _exists,
    "file-absent": _absent,
    "file-contains": _contains,
    "symbol": _symbol,
    "env": _variable,
    "context": _exists,
}


def read(root: str, path: str) -> bytes | None:
    """Return the bytes of a regular file below `root`, or None. No symbolic link is followed."""
    if _kind(root, path) != _FILE:
        return None
    data, _ = RootedFiles(root).head(path, _LONGEST + 1)
    if len(data) > _LONGEST:
        raise ValueError(f"{path} has more than {_LONGEST} bytes")
    return data


def _kind(root: str, path: str) -> str | None:
    """Return what kind of file is at a path below `root`; None for nothing, also behind a link."""
    problem = paths.problem(path)
    if problem is not None:
        raise ValueError(f"{path!r} {problem}")
    status = RootedFiles(root).status(path.rstrip("/"))
    if status is None:
        return None
    kinds = {stat.S_IFREG: _FILE, stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symbolic link"}
    return kinds.get(stat.S_IFMT(status.st_mode), "a special file")


def mentions(text: str, name: str) -> bool:
    """Return whether `name` occurs in the text as a whole word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
