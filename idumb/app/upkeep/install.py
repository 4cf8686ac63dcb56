"""`idumb install`: write, update and remove the slash commands of an agent host; no other file is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from idumb.app.core.result import Result
from idumb.domain import hosts
from idumb.domain.errors import Refusal
from idumb.domain.hosts import Host
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from idumb.system.files.host_files import HostFiles

CREATE = "create"
UPDATE = "update"
CURRENT = "current"
REMOVE = "remove"
EDITED = "edited"
FOREIGN = "foreign"
LEFT = (EDITED, FOREIGN)
Row = dict[str, str]
_WHY = {EDITED: "was changed after idumb wrote it", FOREIGN: "was not written by idumb"}


@dataclass(frozen=True, slots=True)
class Place:
    """A folder where a host looks for commands, relative to the root of `files`; `scope` is project or user."""

    host: Host
    scope: str
    folder: str
    files: HostFiles


def install(places: Sequence[Place], texts: Mapping[str, str], version: str, *, dry_run: bool = False) -> Result:
    """Write the commands that are missing or of another version; report files that the user changed and keep them."""
    return _result(places, [_install(place, texts, version, dry_run=dry_run) for place in places], dry_run=dry_run)


def _install(place: Place, texts: Mapping[str, str], version: str, *, dry_run: bool) -> list[Row]:
    shipped = _shipped(place, texts, version)
    rows = [_row(place, file, _action(_read(place, file), text)) for file, text in shipped.items()]
    rows += [_row(place, f, REMOVE) for f in _ours(place) if f not in shipped and _state(_read(place, f)) == CURRENT]
    if not dry_run:
        for row, text in zip(rows, [*shipped.values(), *[""] * len(rows)], strict=False):
            _carry_out(place, row, text)
    return rows


def remove(places: Sequence[Place], *, dry_run: bool = False) -> Result:
    """Remove the unchanged files that idumb installed, and the folders that are empty then."""
    return _result(places, [_remove(place, dry_run=dry_run) for place in places], dry_run=dry_run, removing=True)


def _remove(place: Place, *, dry_run: bool) -> list[Row]:
    states = {file: _state(_read(place, file)) for file in _ours(place)}
    rows = [_row(place, file, REMOVE if state == CURRENT else state) for file, state in states.items()]
    if not dry_run:
        for row in rows:
            _carry_out(place, row, "")
    return rows


def _shipped(place: Place, texts: Mapping[str, str], version: str) -> dict[str, str]:
    """Return the text of each file that this version installs."""
    commands = ((name, hosts.read(name, text)) for name, text in sorted(texts.items()))
    return {hosts.path(place.host, name): hosts.installed(place.host, command, version) for name, command in commands}


def _ours(place: Place) -> tuple[str, ...]:
    """Return files in the host's folder with the names of idumb's commands."""
    depth = place.host.file.count("/")
    return tuple(f for f in place.files.below(place.folder, depth) if hosts.is_named_like_ours(place.host, f))


def _read(place: Place, file: str) -> str | None:
    try:
        return place.files.read(f"{place.folder}/{file}")
    except OSError as problem:
        raise _refused(f"{place.folder}/{file}", problem) from problem


def _state(text: str | None) -> str:
    if text is None or not hosts.is_marked(text):
        return FOREIGN
    return EDITED if hosts.version_of(text) is None else CURRENT


def _action(present: str | None, shipped: str) -> str:
    if present is None:
        return CREATE
    state = _state(present)
    if state != CURRENT or present == shipped:
        return state
    return UPDATE


def _row(place: Place, file: str, action: str) -> Row:
    return {"path": f"{place.folder}/{file}", "action": action}


def _carry_out(place: Place, row: Row, text: str) -> None:
    try:
        if row["action"] in (CREATE, UPDATE):
            place.files.write(row["path"], text)
        elif row["action"] == REMOVE:
            place.files.remove(row["path"])
    except OSError as problem:
        raise _refused(row["path"], problem) from problem


def _refused(path: str, problem: OSError) -> Refusal:
    return Refusal(
        "install.refused",
        f"{path} cannot be read or written: {problem.strerror or problem}. Earlier files were written.",
        hint="Fix this and run the command again; links are not followed",
    )


def _result(places: Sequence[Place], by_place: Sequence[list[Row]], *, dry_run: bool, removing: bool = False) -> Result:
    place, rows = places[0], [row for one in by_place for row in one]
    unchanged = [row for row in rows if row["action"] in LEFT]
    again = "idumb install --host " + place.host.name + (" --user" if place.scope == "user" else "")
    hint = "" if removing else f". To replace it, move it away and run {again}"
    warnings = tuple(f"{row['path']} {_WHY[row['action']]}, so it was not changed{hint}" for row in unchanged)
    data = {
        "host": place.host.name,
        "scope": place.scope,
        "folder": place.folder,
        "dry_run": dry_run,
        "files": rows,
        "typed": place.host.typed.format(f"{hosts.PREFIX}next"),
        "next": [] if removing else [f"{again} --remove"],
        "folders": [one.folder for one in places],
    }
    return Result(data, warnings=warnings)
