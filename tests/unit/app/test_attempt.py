"""An attempt is one record: it is saved whole, and loads as an equal value (R-RUN-7)."""

from __future__ import annotations

import dataclasses
import json
import random
import types
import typing
from collections.abc import Mapping
from typing import Any

from idumb.app.core.attempt import MOST_REPLY, STAGES, Attempt, loaded
from idumb.app.ports.repository import Head, RepositoryState
from idumb.domain.agent import AgentResult
from idumb.domain.plans.plan import Plan, Task
from tests.support.seed import commit_seed

TASK = Task("T1-01", "Work")
PLAN = Plan("p", "h", "1", "01", "A plan", "Work is done", tasks=(TASK,))


def drawn(kind: Any, chance: random.Random) -> Any:
    """Return a value of a type, with a value for every field of a dataclass, also for those with a default."""
    if kind in (Task, Plan):
        return TASK if kind is Task else PLAN
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return kind(**{one.name: drawn(hints[one.name], chance) for one in dataclasses.fields(kind)})
    outer, inner = typing.get_origin(kind), typing.get_args(kind)
    if outer is tuple and inner[-1] is ...:
        return tuple(drawn(inner[0], chance) for _ in range(chance.randrange(3)))
    if outer is tuple:
        return tuple(drawn(one, chance) for one in inner)
    if outer in (types.UnionType, typing.Union):
        return drawn(chance.choice(inner), chance)
    if isinstance(outer, type) and issubclass(outer, Mapping):
        return {chance.choice("abc"): drawn(inner[1], chance) for _ in range(chance.randrange(3))}
    return chance.choice(PLAIN[kind])


PLAIN: dict[Any, list[Any]] = {
    str: ["", "a", "é\n", "x y"],
    int: [0, 1, 1 << 40],
    float: [0.0, 0.5, 3.25],
    bool: [True, False],
    types.NoneType: [None],
    **{kind: [None, "a", 1, ["b"], {"c": 0}] for kind in (Any, object)},
    frozenset[tuple[str, str]]: [frozenset()],
}


def test_an_attempt_loads_from_the_log_as_an_equal_value() -> None:
    chance = random.Random(commit_seed())
    for stage in STAGES * 20:
        some = drawn(Attempt, chance)
        before = RepositoryState(some.before.head, some.before.guarded)
        attempt = dataclasses.replace(some, stage=stage, started=3.0, before=before)
        again = loaded(json.loads(json.dumps(attempt.saved(10.0))), TASK, PLAN, 110.0)
        assert again == attempt
        assert again.started == 103.0  # a hundred seconds passed in which nobody worked on it


def test_of_a_long_reply_the_end_is_saved() -> None:
    reply = "x" * MOST_REPLY + "the answer"
    fields: dict[str, Any] = {"base": "", "feedback": "", "builder": "b", "validator": None, "ref": "r"}
    result = AgentResult("completed", reply=reply)
    attempt = Attempt(task=TASK, plan=PLAN, number=1, started=0.0, result=result, **fields)
    again = loaded(attempt.saved(0.0), TASK, PLAN, 0.0)
    assert again.result is not None
    assert again.result.reply == reply[-MOST_REPLY:]


def test_git_s_configuration_is_not_recorded() -> None:
    """It may hold credentials."""
    before = RepositoryState(Head(None, None), {}, {"config": frozenset({("url.x", "secret")})})
    fields: dict[str, Any] = {"base": "", "feedback": "", "builder": "b", "validator": None, "ref": "r"}
    attempt = Attempt(task=TASK, plan=PLAN, number=1, started=0.0, before=before, **fields)
    assert "secret" not in json.dumps(attempt.saved(0.0))
