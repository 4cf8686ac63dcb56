"""What git ignores since an attempt: no snapshot has such files and no commit brings them, and yet checks see them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from idumb.app.core.run_context import Attempt, Bench
from idumb.domain import listing, paths
from idumb.domain.paths import IGNORE_FILE
from idumb.domain.proof import ledger
from idumb.domain.proof.ledger import Change


def bring_to_light(bench: Bench, attempt: Attempt, changes: Sequence[Change]) -> Attempt:
    """The candidate with what undeclared rules hide, so that all of it is held against what the task declares.

    Rules that the task declares may hide what they like, and a tool's cache hides itself: both are told.
    """
    known = _hidden(bench, changes)
    came = tuple(path for path in bench.work.caches() if path not in attempt.caches)
    attempt = dataclasses.replace(attempt, new_caches=came)
    _tell(bench, attempt, known)
    declared = paths.cover(ledger.written_paths(attempt.task.files))
    strays = [path for path, rules in known.items() if not declared(rules)]
    if not strays:
        return attempt
    return dataclasses.replace(attempt, candidate=bench.work.scan((*attempt.literal_paths, *strays)))


def _hidden(bench: Bench, changes: Sequence[Change]) -> Mapping[str, str]:
    """Path that is ignored since the attempt to the file of rules that it made or changed; git is seldom asked."""
    rules = [c for c in changes if c.new is not None and c.path.rpartition("/")[2] == IGNORE_FILE]
    if not rules:
        return {}
    return bench.work.hidden_by((c.path for c in rules if c.old is None), (c.path for c in rules if c.old is not None))


def _tell(bench: Bench, attempt: Attempt, known: Mapping[str, str]) -> None:
    note, task = bench.services.reporter.note, attempt.task.id
    if attempt.new_caches:
        note(f"While {task} ran, folders came that git ignores as caches: {listing.listed(attempt.new_caches)}")
    for rules in sorted(set(known.values())):
        note(f"Since {task} ran, git ignores because of {rules}: {listing.listed(_by(known, rules))}")


def _by(known: Mapping[str, str], rules: str) -> Iterable[str]:
    return (path for path, file in sorted(known.items()) if file == rules)
