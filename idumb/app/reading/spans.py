"""A run as the spans of a trace: run, tasks, attempts, their stages. Agent calls follow the conventions for GenAI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.app.reading import debugging, stages
from idumb.app.reading.stages import Stage
from idumb.domain import outcome
from idumb.domain.runs import run

_ENDED_WELL = frozenset({None, "", outcome.COMPLETED, outcome.WAITING, outcome.ACCEPTED, outcome.SKIPPED})
_PROVIDERS = {"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini"}
"""Adapters of one provider; a model such as `anthropic:NAME` names its own."""


class Span(NamedTuple):
    """`key` is the same whenever a run is exported. Times are UTC. `error` is "" unless it failed."""

    key: str
    parent: str
    name: str
    start: str
    end: str
    attributes: Mapping[str, Any]
    error: str = ""


def of_run(services: Services, name: str) -> tuple[str, list[Span]]:
    """Return the id of a run and its spans, each after its parent. What is still open ends now."""
    id = debugging.run_named(services, name)
    state = run_lookup.run_of(services, id)
    now = services.clock.now()
    parts = sorted(stages.of_run(services.log.events(run=id)), key=lambda one: (one.task, one.attempt, one.start))
    about = {"idumb.run": id, "idumb.phase": state.phase}
    facts = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": state.phase,
        "idumb.state": state.state,
    }
    error = state.reason or state.state if state.state == run.FAILED else ""
    whole = Span(
        id, "", f"invoke_workflow {state.phase}", state.started_at, state.changed_at, {**about, **facts}, error
    )
    rest = list(_parts(parts, id, about, now))
    return id, [whole._replace(end=max([whole.end, *(span.end for span in rest)])), *rest]


def _parts(parts: list[Stage], run: str, about: Mapping[str, Any], now: str) -> Iterator[Span]:
    for task, of_task in groupby(parts, lambda one: one.task):
        rows, key = list(of_task), f"{run}/{task}" if task else run
        if task:
            yield _around(rows, key, run, f"task {task}", {**about, "idumb.task": task}, now)
        for attempt, of_attempt in groupby(rows, lambda one: one.attempt):
            calls, parent = list(of_attempt), f"{key}/{attempt}" if task else run
            of = {**about, **({"idumb.task": task, "idumb.attempt": attempt} if task else {})}
            if task:
                yield _around(calls, parent, key, f"attempt {attempt}", of, now)
            for number, stage in enumerate(calls):
                yield _span(stage, f"{parent}/{attempt}.{number}", parent, of, now)


def _around(rows: list[Stage], key: str, parent: str, name: str, about: Mapping[str, Any], now: str) -> Span:
    """Return the span of a task or an attempt: it lasts as long as what it holds, and ends as the last of that."""
    last = max((row for row in rows if row.facts.get("outcome")), key=lambda row: row.end or now, default=rows[-1])
    ended = str(last.facts.get("outcome") or "")
    error = "" if ended in _ENDED_WELL else str(last.facts.get("reason") or ended)
    start, end = min(row.start for row in rows), max(row.end or now for row in rows)
    return Span(key, parent, name, start, end, {**about, "idumb.outcome": ended}, error)


def _span(stage: Stage, key: str, parent: str, about: Mapping[str, Any], now: str) -> Span:
    facts = stage.facts
    ended, name, more = facts.get("outcome"), stage.name, {}
    if facts.get("role") and facts.get("adapter"):
        name, more = f"invoke_agent {facts['binding']}", _of_agent(facts)
    own = {
        f"idumb.{name}": facts[name] for name in ("role", "outcome", "decision", "choice", "commit") if facts.get(name)
    }
    error = "" if ended in _ENDED_WELL else str(facts.get("reason") or facts.get("failure") or ended)
    failed = {"error.type": str(facts.get("failure") or ended)} if error else {}
    return Span(key, parent, name, stage.start, stage.end or now, {**about, **own, **more, **failed}, error)


def _of_agent(facts: Mapping[str, Any]) -> dict[str, Any]:
    model, adapter = str(facts.get("model") or ""), str(facts["adapter"])
    named = model.partition(":")[0] if ":" in model else adapter
    values = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": _PROVIDERS.get(adapter, named),
        "gen_ai.agent.name": facts.get("binding"),
        "gen_ai.request.model": model,
        "gen_ai.usage.input_tokens": facts.get("tokens_in"),
        "gen_ai.usage.output_tokens": facts.get("tokens_out"),
        "idumb.cost_usd": facts.get("cost_usd"),
    }
    return {name: value for name, value in values.items() if value not in (None, "")}
