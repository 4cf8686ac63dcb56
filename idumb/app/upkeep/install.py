"""`idumb install`: write, update and remove the slash commands of an agent host; no other file is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from idumb.app.core.services import Result
from idumb.domain import hosts
from idumb.domain.errors import Refusal
from idumb.domain.hosts import Host

if TYPE_CHECKING:
    from idumb.system.rooted_files import HostFiles

CREATE = "create"
UPDATE = "update"
CURRENT = "current"
REMOVE = "remove"
EDITED = "edited"
FOREIGN = "foreign"
LEFT = (EDITED, FOREIGN)
Row = dict[str, str]
_WHY = {EDITED: "was changed after idumb wrote it", FOREIGN: "was not written by idumb"}


class Place(Struct, frozen=True):
    """A folder where a host looks for commands, relative to the root of `files`.

    `scope` is project or user, and `above` the path from the project to that root.
    """

    host: Host
    scope: str
    folder: str
    files: HostFiles
    above: str = ""


def install(places: Sequence[Place], texts: Mapping[str, str], version: str, *, dry_run: bool = False) -> Result:
    """Write the commands that are missing or of another version; report files that the user changed and keep them."""
    rows = list[Row]()
    for place in places:
        commands = ((name, hosts.read(name, text)) for name, text in sorted(texts.items()))
        own = {hosts.path(place.host, name): hosts.installed(place.host, each, version) for name, each in commands}
        rows += _change(place, own, dry_run=dry_run)
    return _result(places, rows, dry_run=dry_run)


def remove(places: Sequence[Place], *, dry_run: bool = False) -> Result:
    """Remove the unchanged files that idumb installed, and the folders that are empty then."""
    rows = [row for place in places for row in _change(place, {}, dry_run=dry_run)]
    return _result(places, rows, dry_run=dry_run, removing=True)


def _change(place: Place, shipped: Mapping[str, str], *, dry_run: bool) -> list[Row]:
    """Make the files of a place those that are shipped, and return what was done with each."""
    rows = []
    files = (path.removeprefix(f"{place.folder}/") for path in place.files.below(place.folder))
    ours = (file for file in files if hosts.is_named_like_ours(place.host, file))
    for file in dict.fromkeys((*shipped, *ours)):
        path, text = f"{place.folder}/{file}", shipped.get(file)
        try:
            action = _action(place.files.read(path), text)
            if action == REMOVE and not dry_run:
                place.files.remove(path)
            elif action in (CREATE, UPDATE) and not dry_run:
                place.files.write(path, text or "")
        except OSError as problem:
            raise Refusal(
                "install.refused",
                f"{path} cannot be read or written: {problem.strerror or problem}.",
                hint="Fix this and run the command again; links are not followed",
            ) from problem
        rows.append({"path": path, "action": action})
    return rows


def _action(present: str | None, shipped: str | None) -> str:
    if present is None:
        return CREATE
    present = present.replace("\r\n", "\n")  # git may have changed the ends of lines
    if not hosts.is_marked(present):
        return FOREIGN
    if not hosts.is_unchanged(present):
        return EDITED
    if present == shipped:
        return CURRENT
    return REMOVE if shipped is None else UPDATE


def _result(places: Sequence[Place], rows: Sequence[Row], *, dry_run: bool, removing: bool = False) -> Result:
    place = places[0]
    unchanged = [row for row in rows if row["action"] in LEFT]
    again = "idumb install --host " + place.host.name + " --user" * (place.scope == "user")
    hint = "" if removing else f". To replace it, move it away and run {again}"
    warnings = tuple(
        f"{place.above}{row['path']} {_WHY[row['action']]}, so it was not changed{hint}" for row in unchanged
    )
    data = {
        "host": place.host.name,
        "scope": place.scope,
        "above": place.above,
        "folder": place.folder,
        "dry_run": dry_run,
        "files": list(rows),
        "typed": place.host.typed.format(f"{hosts.PREFIX}next"),
        "next": [again + " --remove" * (removing or not dry_run)] if dry_run or not removing else [],
        "folders": [one.folder for one in places],
    }
    return Result(data, warnings=warnings)
