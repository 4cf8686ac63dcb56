"""The figures of `idumb metrics` as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Sample = tuple[Mapping[str, str], float]


def text(data: Mapping[str, Any]) -> str:
    """Return the text format of Prometheus. Names and labels stay as they are; new ones may follow."""
    agents, total = data["agents"], data["total"]
    families: list[tuple[str, str, str, Iterable[Sample]]] = [
        ("idumb_runs_total", "counter", "Ends of runs.", _by("state", data["runs"])),
        ("idumb_tasks_total", "counter", "Ends of tasks.", _by("status", data["tasks"])),
        ("idumb_calls_total", "counter", "Calls to agents.", _outcomes(agents)),
        ("idumb_call_seconds_total", "counter", "Seconds that agents worked.", _of(agents, "seconds")),
        ("idumb_tokens_total", "counter", "Tokens that agents reported.", _of(agents, "tokens")),
        ("idumb_cost_usd_total", "counter", "Dollars that agents reported.", _of(agents, "cost_usd")),
        ("idumb_calls_without_cost_total", "counter", "Calls whose cost is unknown.", [({}, total["unknown_cost"])]),
        ("idumb_waiting_seconds_total", "counter", "Seconds that questions waited.", [({}, data["waiting_seconds"])]),
        ("idumb_tasks_completed", "gauge", "Completed tasks.", [({}, data["first_pass"]["completed"])]),
        ("idumb_tasks_first_pass", "gauge", "Those with one attempt.", [({}, data["first_pass"]["at_once"])]),
    ]
    lines: list[str] = []
    for name, kind, words, samples in families:
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(labels)} {value}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _by(label: str, counts: Mapping[str, int]) -> list[Sample]:
    return [({label: name}, number) for name, number in counts.items()]


def _of(agents: Iterable[Mapping[str, Any]], figure: str) -> list[Sample]:
    return [({"adapter": row["adapter"], "model": row["model"]}, row[figure]) for row in agents]


def _outcomes(agents: Iterable[Mapping[str, Any]]) -> list[Sample]:
    rows = ((row, name, number) for row in agents for name, number in row["outcomes"].items())
    return [({"adapter": row["adapter"], "model": row["model"], "outcome": name}, number) for row, name, number in rows]


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
