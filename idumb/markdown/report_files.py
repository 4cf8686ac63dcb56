"""Read back what idumb wrote, or an old iDumb: reports, research, state. Nothing in these files is trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from idumb.domain import canonical_json, whole_numbers
from idumb.domain.runs import state_file
from idumb.domain.runs.state_file import OldFile

# Reports and research of idumb, perhaps from another machine

_LARGEST = 64 * 1024


def metadata(data: bytes, kind: str) -> Mapping[str, Any] | None:
    """Return the frontmatter of a report whose `type` is `kind`; None for anything else."""
    if len(data) > _LARGEST and b"\n---" not in data[:_LARGEST]:
        return None
    try:
        values = _metadata(data[:_LARGEST].decode("utf-8", "replace").encode())  # it may end in a character
    except ValueError:
        return None
    return values if values.get("type") == kind.lower() else None


_UNFINISHED = re.compile(
    r"^(?:status|verification_result)[ \t]*:[ \t]*[\"']?(?!(?:done|completed?|passed|executed|success(?:ful)?)\b)\w.*",
    re.MULTILINE | re.IGNORECASE,
)


def unfinished(summary: str) -> re.Match[str] | None:
    """Return where the front matter of GSD's summary says that the work is not done, such as `status: halted`."""
    return _UNFINISHED.search(summary, 0, max(summary.find("\n---", 3), 0))


def research(text: str) -> tuple[str | None, str]:
    """Return the bundle digest of a research file (None if idumb did not write it) and its text without frontmatter."""
    values = metadata(text.encode("utf-8", "surrogateescape"), "RESEARCH")
    if values is None or not isinstance(values.get("bundle"), str):
        return None, text
    return values["bundle"], text.partition("\n---\n")[2].lstrip("\n")


# The files of an old iDumb in `.idumb/`: state.json, progress.json, and checkpoints in JSON or Markdown

_LARGEST_OLD = 8 << 20
_STATE = ".idumb/brain/state.json"
_EXECUTION = re.compile(r"\.idumb/brain/execution/([^/]+)/(?:(progress)\.json|(checkpoint)-[^/]+\.(?:json|md))")
# Folders of an old iDumb's state; everything else in `.idumb/` belongs to the project.
_FOLDERS = (".idumb/brain/", ".idumb/sessions/", ".idumb/anchors/", ".idumb/governance/", ".idumb/config.json")
_OURS = frozenset({".idumb/config.yaml", ".idumb/.gitignore", ".idumb/brain/README.md"})


def old_state(path: str, data: bytes) -> OldFile | None:
    """Return the content of a file of an old iDumb; None if idumb wrote it, which names a run in its files.

    It may be damaged: then the reason is in it. The caller removes from a state what the log has.
    """
    if path in _OURS or path.endswith(".tmp") or not path.startswith(_FOLDERS):
        return None
    match = _EXECUTION.fullmatch(path)
    file = OldFile(path, state_file.UNKNOWN, canonical_json.digest(data.hex()), {}, match[1] if match else None)
    if len(data) > _LARGEST_OLD:
        return replace(file, why=f"it is larger than {_LARGEST_OLD >> 20} MiB")
    try:
        values = _metadata(data) if path.endswith(".md") else _object(data)
    except ValueError as problem:
        return replace(file, why=str(problem))
    if path == _STATE:
        session = values.get("session") or values.get("sessionId") or values.get("session_id")
        return replace(file, kind=state_file.STATE, content={**values, **({"session": session} if session else {})})
    if values.get("contract_hash" if match and match[2] else "run"):
        return None
    if match is None:
        return replace(file, why="its kind is not known to idumb")
    return _progress(file, values) if match[2] else _checkpoint(file, values)


def _progress(file: OldFile, values: Mapping[str, Any]) -> OldFile:
    if not isinstance(values.get("completed"), list):
        return replace(file, why="it has no list `completed`")
    lists = {name: _tasks(values, name) for name in ("completed", "failed", "blocked")}
    return replace(file, kind=state_file.PROGRESS, content={**values, **lists})


def _checkpoint(file: OldFile, values: Mapping[str, Any]) -> OldFile:
    if not isinstance(values.get("task_id"), str) or not isinstance(values.get("status"), str):
        return replace(file, why="it has no `task_id` and `status`")
    files = [str(name) for name in _list(values, "files_modified")]
    return replace(file, kind=state_file.CHECKPOINT, content={**values, "files_modified": files})


def _list(values: Mapping[str, Any], name: str) -> list[Any]:
    value = values.get(name)
    return value if isinstance(value, list) else []


def _tasks(values: Mapping[str, Any], name: str) -> list[str]:
    """Return task ids; some versions write tasks as objects."""
    rows = (row.get("id") or row.get("task_id") if isinstance(row, dict) else row for row in _list(values, name))
    return [str(row) for row in rows if row]


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = canonical_json.decode(data.decode("utf-8-sig"), parse_int=whole_numbers.parse_json_int)
        plain = json.loads(json.dumps(value, allow_nan=False))
    except ValueError as problem:
        raise ValueError(f"it is not JSON: {problem}") from problem
    if not isinstance(plain, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 (a fault of the file)
    return plain


def _metadata(data: bytes) -> dict[str, Any]:
    """Return the frontmatter with strings for values that JSON does not have."""
    import frontmatter

    try:
        metadata = frontmatter.loads(data.decode("utf-8-sig")).metadata
        plain = json.loads(json.dumps(metadata, default=str, skipkeys=True))
    # Reports are not trusted, and foreign YAML makes this library raise almost anything.
    except Exception as problem:
        raise ValueError(f"its frontmatter cannot be read: {type(problem).__name__}") from problem
    if not isinstance(plain, dict) or not plain:
        raise ValueError("it has no frontmatter")
    return plain
