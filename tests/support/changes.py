"""The change of an attempt, made from texts, as gates judge it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from idumb.domain.plans.plan import Plan, Task
from idumb.domain.proof import gate
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs
from idumb.domain.proof.ledger import CREATED, DELETED, MODIFIED, Change, Entry
from idumb.domain.settings import GateSettings
from idumb.gates import registry

FILE = 0o100644


def inputs(
    before: Mapping[str, str | bytes],
    after: Mapping[str, str | bytes],
    *,
    task: Task | None = None,
    proofs: tuple[Evidence, ...] = (),
    mode: int = FILE,
    strict: bool = False,
    asked: Mapping[str, GateSettings] | tuple[str, ...] = (),
    **plan: Any,
) -> Inputs:
    """The difference of two trees, of texts by path."""
    blobs: dict[str, bytes] = {}

    def entry(texts: Mapping[str, str | bytes], path: str) -> Entry | None:
        if path not in texts:
            return None
        text = texts[path]
        data = text.encode() if isinstance(text, str) else text
        oid = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        blobs[oid] = data
        return Entry(mode, oid)

    changes = []
    for path in sorted({*before, *after}):
        old, new = entry(before, path), entry(after, path)
        if old != new:
            changes.append(Change(path, CREATED if old is None else DELETED if new is None else MODIFIED, old, new))

    def read(entry: Entry | None, limit: int) -> bytes | None:
        if entry is None or entry.mode != FILE:
            return None
        return blobs[entry.oid] if len(blobs[entry.oid]) <= limit else None

    made = Plan("p", "", "1", "01", "", "", **plan)
    gates = asked if isinstance(asked, Mapping) else dict.fromkeys(asked, GateSettings())
    frozen = task or Task("T1-01", "A task")
    return Inputs(
        frozen, made, tuple(changes), read, dict, proofs, gates, lambda path: entry(after, path), strict=strict
    )


def judge(inputs: Inputs) -> dict[str, Evidence]:
    """The evidence of each gate that applies, as if all had level 1."""
    judged = registry.StepGates().judge(inputs)
    return {name: proof for name, result in judged for proof in gate.evidence_of(name, result, 1)}
