"""Output of `watch`, `metrics` and `debug`: how runs go and went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from idumb.domain import outcome
from idumb.views import forms, phrases
from idumb.views.answers import look, status

FORMS = {
    "metrics": """
Since {since}
Runs: {runs:counts}
else Runs: none has ended
Tasks: {tasks:counts}; {first_pass.at_once} of {first_pass.completed} completed with their first attempt
else Tasks: none has ended
agents*   {adapter}[ {model}] | {success_rate:percent} completed | {:spent}
People were waited for: {waiting_seconds:duration}
workflows* Phase {phase}: {runs:#run}, {completed} completed, {failed} failed[, {seconds:duration} each]
*   last run     {last}
*   last success {last_success}
*   last failure {last_failure}
""",
    "inspect": """
Run {number} of phase {phase} ({run}): {state}[: {reason}]
  after event {event.seq}, {event.kind}[ {event.task}], {event.at}
  contract {contract.hash:short}, version {contract.version}, {mode}
  started[ on {branch}] at {base_commit:short}
tasks*   {id} | {status} | {attempt:?attempt }{attempt} | {:spent}[, commit {commit:short}]
waiting*   waits for {id}: {what}
  verification: {verification}
Used: {spent:spent}
""",
    "trace": """
{task} in run {run} of phase {phase}: {status}
attempts*   attempt {attempt}, announced {announced}
* stages*     {name} | {seconds:duration} | [{facts.decision}: {facts.choice}, by {facts.by}][{facts.binding} ]\
[{facts.model} ][{is_open:?still open}][{facts.outcome:spoken}][: {facts.reason:80}][, {facts:reported}]\
[, commit {facts.commit:short}]
Worked {worked_seconds:duration}, waited for people {waited_seconds:duration}
""",
    "validate": """
{faults:!Run} {run}: {events:#event}, valid
else Run {run} is not valid:
{faults:!  chain, order, payloads, and what they name in git}
faults*20   [event {event}, {kind}: ]{why}
""",
    "export": """
Run {run}: {spans:#span} sent as trace {trace}
""",
}
_REPLAYED = """
Run {run}: {events:#event} replayed
  {same:#recorded value} as the events give
differences*20   event {event}, {kind}: {what}
*     recorded: {recorded:72}
*     rebuilt: {rebuilt:72}
"""
_COMPARED = """
First: run {first.number} of phase {first.phase} ({first.run}), {first.state}, {first:spent}
Second: run {second.number} of phase {second.phase} ({second.run}), {second.state}, {second:spent}
cells*   {id} | {name} | {status} | {attempt:?attempt }{attempt} | {:spent}[, commit {commit:short}]
{differences:?Differences:}
differences*   {name} | [{first:24}][{first:!none}] | [{second:24}][{second:!none}]
else Nothing else differs.
"""
_ABSENT = {"status": "none", "seconds": 0, "tokens": 0, "cost_usd": 0}
_Sample = tuple[Mapping[str, str], float]


def watch(data: phrases.Data) -> phrases.Lines:
    done = sum(row["status"] in outcome.ENDED for row in data["tasks"])
    form = "Phase {phase}: the run is {state}, {done} of {tasks:#task} done[: {reason}]"
    return forms.fill(form, {**data, "done": done})


def everything(data: phrases.Data) -> phrases.Lines:
    return [*status.status(data["status"]), "", "Newest events:", *look.log(data)]


def prometheus(data: phrases.Data) -> str:
    """Return the text format of Prometheus. Names and labels stay as they are; new ones may follow."""
    agents, total = data["agents"], data["total"]
    families: list[tuple[str, str, str, Iterable[_Sample]]] = [
        ("idumb_runs_total", "counter", "Ends of runs.", _counts("state", data["runs"])),
        ("idumb_tasks_total", "counter", "Ends of tasks.", _counts("status", data["tasks"])),
        ("idumb_calls_total", "counter", "Calls to agents.", _outcomes(agents)),
        ("idumb_call_seconds_total", "counter", "Seconds that agents worked.", _figures(agents, "seconds")),
        ("idumb_tokens_total", "counter", "Tokens that agents reported.", _figures(agents, "tokens")),
        ("idumb_cost_usd_total", "counter", "Dollars that agents reported.", _figures(agents, "cost_usd")),
        ("idumb_calls_without_cost_total", "counter", "Calls whose cost is unknown.", [({}, total["unknown_cost"])]),
        ("idumb_waiting_seconds_total", "counter", "Seconds that questions waited.", [({}, data["waiting_seconds"])]),
        ("idumb_tasks_completed", "gauge", "Completed tasks.", [({}, data["first_pass"]["completed"])]),
        ("idumb_tasks_first_pass", "gauge", "Those with one attempt.", [({}, data["first_pass"]["at_once"])]),
    ]
    lines: list[str] = []
    for name, kind, words, samples in families:
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_in_braces(labels)} {value}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _counts(label: str, counts: Mapping[str, int]) -> list[_Sample]:
    return [({label: name}, number) for name, number in counts.items()]


def _figures(agents: Iterable[Mapping[str, Any]], figure: str) -> list[_Sample]:
    return [({"adapter": row["adapter"], "model": row["model"]}, row[figure]) for row in agents]


def _outcomes(agents: Iterable[Mapping[str, Any]]) -> list[_Sample]:
    rows = ((row, name, number) for row in agents for name, number in row["outcomes"].items())
    return [({"adapter": row["adapter"], "model": row["model"], "outcome": name}, number) for row, name, number in rows]


def _in_braces(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def replay(data: phrases.Data) -> phrases.Lines:
    same = data["compared"] - len(data["differences"])
    return forms.fill(_REPLAYED, {**data, "same": same})


def compare(data: phrases.Data) -> phrases.Lines:
    pair = ("first", "second")
    cells = [{"id": task["id"], "name": name, **(task[name] or _ABSENT)} for task in data["tasks"] for name in pair]
    return forms.fill(_COMPARED, {**data, "cells": cells})
