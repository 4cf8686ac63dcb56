"""`idumb deinit`: remove idumb from a repository, after a backup.

If it is killed, run it again: it removes the rest.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from idumb.app.core import actions, open_attempt
from idumb.app.core.services import Result, Services, same_command
from idumb.domain import wording
from idumb.domain.action import Action, Choice, Decision
from idumb.domain.errors import Refusal, StoreError
from idumb.domain.runs import project_key

_FILES = ".idumb"
_BUNDLE = "refs.bundle"
_SETTINGS = "dot-idumb"
_STAYS = (
    "every commit and branch",
    "the plans and reports that are files in .planning/ (idumb report PHASE --write, before deinit, writes the others)",
)


def deinit(
    services: Services, *, yes: bool, backup: str | None, keep: bool, files: bool, every: bool = False
) -> Result:
    """Remove idumb. Refusal `deinit.not-confirmed`, `deinit.projects`, `attempt.open`, `lock.held` or `backup.exists`.

    Refs and log are those of all projects of the repository, so with others, `every` is required. If the backup fails,
    nothing is removed.
    """
    if not every:
        _require_alone(services)
    going = _going(services, files=files)
    if not (going["refs"] or going["folders"] or going["files"]):
        return Result({**going, "removed": False, "backup": None, "next": []})
    with suppress(StoreError):  # a damaged log shows no attempts, and is removed too
        open_attempt.refuse_command(services, "deinit")
    own = services.local_data
    folder = (backup or own.place_for_backup(services.root.rpartition("/")[2])) if keep else None
    if not yes:
        _confirm(services, going, folder)
    with own.held():
        with suppress(StoreError):
            services.checkouts.keep_left()
        refs = services.kept_refs.list()
        if folder is not None:
            _back_up(services, folder, refs, files=bool(going["files"]))
        if refs:
            services.kept_refs.delete(refs)
        if going["files"]:
            own.remove_files(f"{services.root}/{_FILES}")
        own.remove()
    return Result({**going, "removed": True, "backup": folder, "next": _next(services, going, folder)})


def _require_alone(services: Services) -> None:
    folders = set(services.local_data.projects())
    with suppress(StoreError):
        folders |= {project_key.parts(start.worktree)[1] for start in services.log_files.starts()}
    others = sorted(folder or "the top of the repository" for folder in folders - {services.folder})
    if others:
        way = Action.of("deinit", "--all-projects")
        every = Choice("all", "remove idumb from all of them", "after a backup", way)
        raise Refusal(
            "deinit.projects",
            f"Nothing was removed: {wording.listed(others)} {'has' if len(others) == 1 else 'have'} runs in this"
            " repository too, and one event log holds the history of all projects.",
            hint=every.command,
            details={"projects": others, "choices": actions.choice_rows((every,))},
        )


def _going(services: Services, *, files: bool) -> dict[str, Any]:
    """Return what will be removed and what stays."""
    present = services.files.below(_FILES)
    stays = [
        *_STAYS,
        *([f"{_FILES}/ with {len(present)} files (--files removes it too)"] if present and not files else []),
    ]
    refs = sorted(services.kept_refs.list())
    folders = services.local_data.list()
    return {
        "refs": len(refs),
        "ref_names": refs,
        "folders": [{"what": f.contents, "path": f.path, "files": f.files, "bytes": f.bytes} for f in folders],
        "files": list(present) if files else [],
        "stays": stays,
    }


def _confirm(services: Services, going: Mapping[str, Any], backup: str | None) -> None:
    parts = [f"{going['refs']} refs under refs/idumb/ (--json lists them)"] if going["refs"] else []
    parts += [f"the {folder['what']} ({folder['path']})" for folder in going["folders"]]
    parts += [f"{len(going['files'])} files in {_FILES}/"] if going["files"] else []
    copy = f"writes a backup to {backup} first" if backup else "writes no backup"
    question = Decision.confirmation(
        "confirm",
        "deinit",
        "Remove idumb from this repository",
        f"This removes snapshots, checkpoints and the history of runs. idumb {copy}.",
        (*(f"removes {part}" for part in parts), *(f"keeps {kept}" for kept in going["stays"])),
        Choice(
            "yes",
            "remove idumb",
            "earlier runs can be rolled back or undone only after you restore the backup",
            same_command(services, "--yes"),
        ),
        "keep everything",
        "nothing is removed",
    )
    words = "Nothing was removed: idumb deinit needs your confirmation."
    details = actions.offer_of(question, **going, backup=backup)
    actions.require_yes(services, question, Refusal("deinit.not-confirmed", words, details=details))


def _back_up(services: Services, folder: str, refs: Mapping[str, str], *, files: bool) -> None:
    own = services.local_data
    own.begin_backup(folder)
    if refs:
        written = services.kept_refs.bundle(f"{folder}/{_BUNDLE}")
        if written != len(refs):
            raise Refusal(
                "backup.incomplete",
                f"The backup contains {written} of {len(refs)} refs, so nothing was removed.",
                hint=Action("doctor"),
            )
    own.back_up(folder)
    if files:
        own.keep(folder, _SETTINGS, f"{services.root}/{_FILES}")


def _next(services: Services, going: Mapping[str, Any], backup: str | None) -> list[str]:
    """Return the commands that restore everything, to run at the root of the working tree."""
    if not backup:
        return []
    refs = shlex.quote(f"{backup}/{_BUNDLE}")
    commands = [f"git fetch {refs} 'refs/idumb/*:refs/idumb/*'"] if going["refs"] else []
    folders = [f["path"] for f in going["folders"] if f["path"].endswith("/idumb")]
    commands += [f"cp -R {shlex.quote(f'{backup}/idumb')} {shlex.quote(path)}" for path in folders[:1]]
    if going["files"]:
        commands.append(f"cp -R {shlex.quote(f'{backup}/{_SETTINGS}')} {shlex.quote(f'{services.root}/{_FILES}')}")
    return commands
