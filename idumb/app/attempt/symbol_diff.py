"""Symbols of an attempt: the files it changed are read before and after, where the task declares symbols."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from idumb.app.core.run_context import Bench
from idumb.domain.plans.plan import Task
from idumb.domain.proof import symbols
from idumb.domain.proof.ledger import LINK, Change, Entry, Ledger


def judge(bench: Bench, task: Task, changes: Iterable[Change], found: Ledger) -> Ledger:
    """The ledger with the task's symbols in it; without them where it declares none."""
    if task.symbols is None:
        return found
    read = [symbols.Found(c.path, _names(bench, c.path, c.old), _names(bench, c.path, c.new)) for c in changes]
    return dataclasses.replace(found, symbols=symbols.compare(task.symbols, read))


def _names(bench: Bench, path: str, entry: Entry | None) -> frozenset[str] | None:
    if entry is None:
        return frozenset()
    if entry.mode == LINK:
        return frozenset()
    return bench.services.symbols.defined(path, bench.work.read(entry.oid))
