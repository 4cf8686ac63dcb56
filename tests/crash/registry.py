"""All programmes by their ids, each in a module that is imported when it is asked for."""

from __future__ import annotations

import importlib

from tests.crash.programme import Programme

MODULES: dict[str, str] = {
    "T1": "tests.crash.kill_points",
    "T2": "tests.crash.kill_points:RANDOM",
    "T3": "tests.crash.power_cut",
    "T4": "tests.crash.failing_calls",
    "T5": "tests.crash.full_disk",
    "T6": "tests.crash.concurrency",
    "T7": "tests.crash.fencing",
    "T8": "tests.states.matrix",
    "T9": "tests.crash.rollback_undo",
    "T10": "tests.hostile.fuzzing",
    "T11": "tests.crash.corruption",
    "T12": "tests.hostile.cheating",
    "T13": "tests.hostile.hostile_repositories",
    "T14": "tests.crash.leftover_processes",
    "T15": "tests.crash.hostile_output",
    "T16": "tests.crash.secrets",
    "T21": "tests.hostile.honest_work",
    "T22": "tests.crash.user_at_work",
}


def load(name: str) -> Programme:
    module, _, attribute = MODULES[name].partition(":")
    programme = getattr(importlib.import_module(module), attribute or "PROGRAMME")
    assert isinstance(programme, Programme)
    return programme
