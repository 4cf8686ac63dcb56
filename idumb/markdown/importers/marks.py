"""Mark completed tasks in the files of other tools, and nothing that the plan did not do."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from typing import cast

from idumb.domain import paths
from idumb.domain.errors import InputError
from idumb.domain.plans.imported import Marked, SourcePlan
from idumb.markdown.importers import registry

_OWN_FOLDERS = frozenset(paths.ALWAYS_PROTECTED[:4])  # those of git and idumb; a checklist may be in .planning


def marked(path: str, files: Mapping[str, str], kind: str, done: Mapping[str, Mapping[str, str]]) -> Marked:
    """Return the source at `path` with tasks marked. `done` has, by tag, their ids and the digests that were imported.

    `files` are as in `registry.read`. A task that differs from the imported one is not marked, and neither is one whose
    id several tasks have. InputError as in `registry.read`, and `export.unclear-marks` if other tasks would change.
    """
    # Only the first map is written. Neighbours of a file are read if its format needs them.
    after = ChainMap[str, str]({}, cast("MutableMapping[str, str]", files))
    names = [""] if "" in files else sorted(name for name in files if name.endswith(".md"))
    marks: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    changed: dict[str, tuple[str, ...]] = {}
    unclear: list[str] = []
    markless: list[str] = []
    for tag, recorded in done.items():
        before = registry.read(path, after, kind, tag)
        digests = {task.id: task.digest() for task in before.tasks}
        repeated = [id for id in recorded if f"{id}~2" in digests or id.rpartition("~")[0] in digests]
        other = [id for id in recorded if digests.get(id) != recorded[id] and id not in repeated]
        wanted = recorded.keys() - {*repeated, *other}
        for name in names:
            after[name], ids = registry.with_done(registry.below(path, name), after[name], kind, wanted, tag)
            marks[name] += ids
        now = registry.read(path, after, kind, tag)
        _require_same(before, now, wanted)
        if other:
            changed[tag] = tuple(other)
        unclear += repeated
        markless += [task.id for task in now.tasks if task.id in wanted and not task.done]
    rows = ((registry.below(path, name), files[name], after[name], ids) for name, ids in marks.items() if ids)
    return Marked(tuple(sorted(rows)), changed, tuple(unclear), tuple(markless))


def require_writable(path: str) -> None:
    """Refuse a source whose marks idumb does not write: plans name it, and a plan may come from anybody."""
    outside = path != "." and paths.problem(path) is not None
    if outside or paths.protecting_rule(path, ()) in _OWN_FOLDERS:
        why = "is outside the project" if outside else "belongs to git or to idumb"
        raise InputError("export.outside", f"{path} {why}, so idumb does not change it.", hint="Mark the tasks by hand")


def _require_same(before: SourcePlan, after: SourcePlan, wanted: set[str]) -> None:
    """Raise InputError if a reader would see another change than that the wanted tasks are done."""

    def rest(plan: SourcePlan) -> dict[str, tuple[bool, str]]:
        return {task.id: (task.done and task.id not in wanted, task.digest()) for task in plan.tasks}

    if rest(before) != rest(after):
        message = f"The marks of {before.path} cannot be changed without a change of something else."
        raise InputError("export.unclear-marks", message, hint="Mark the tasks by hand")
